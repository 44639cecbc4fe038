/* SPDX-License-Identifier: Apache-2.0 */
/* source/foreign.c, foreign_handler.c and pending_tasks.c, unchanged, between a
 * peer on its own thread and a loop that has extra threads request
 * and cancel. No demand is lost, no method of the peer runs or starts once its
 * terminal callback has returned, and everything is released once. A peer on a
 * loop thread makes no extraction there, and its ctx is freed after its tasks.
 *
 * The mutants replace a function that one file calls in another, through the
 * linker (--wrap). */
#include "source/foreign.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "model/explore.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

enum { ARENA = 6144 };

enum mutant {
    NONE,
    NO_WAIT,
    RETURNS_WITHOUT_A_WAIT,
    SENDS_NO_REQUESTER,
    REQUESTS_ONE_LESS,
    REQUESTS_ONE_MORE,
    FORGETS_ITS_REQUESTS,
    EXTRACTS_ON_THE_LOOP
};

static const struct {
    const char *name;
    uint64_t batches; /* batches that the peer has */
    int64_t window;   /* window of our side */
    bool cancels;     /* the loop cancels after the first batch */
    bool on_loop;     /* the peer's thread belongs to another loop */
    bool late;        /* the peer makes a call after its release */
} cases[] = {
    {"foreign producer", 2, 1, false, false, false},
    {"foreign producer, a cancel", 1, 1, true, false, false},
    {"foreign producer on a loop", 1, 1, false, true, false},
    {"foreign producer on a loop, a cancel", 1, 1, true, true, false},
    {"foreign producer, a late call", 1, 1, false, false, true},
};

enum { PLAIN, CANCEL, ON_LOOP, CANCEL_ON_LOOP, LATE, CASES };

struct peer {
    struct ArrowAsyncProducer abi;
    struct uva__atomic64 requested, cancelled;
    uint64_t delivered;
    bool over;       /* a terminal callback has returned */
    uint64_t thread; /* its own */
};

static struct {
    struct uva__rt rt;
    struct uva__meter meter;
    struct uva__measure measure;
    struct uva__foreign foreign;
    struct peer peer;
    struct uva__atomic64 posted;
    uint64_t received; /* batches received by the loop */
    uint64_t cancels;  /* calls of the peer's cancel */
    uint64_t breaches;
    uint64_t freed, left; /* how often the state was freed, and its ctx */
    uint64_t used[2];    /* plain memory that the peer and the loop use in it */
    uint64_t batches[2]; /* plain memory: the peer's batches */
    uint64_t methods[2]; /* plain memory: used by request and cancel */
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static enum mutant mutant; /* mutant of the case */
static int now;            /* index of the case */

/* ---- what surrounds it -------------------------------------------------- */

/* The outline of the schema is made before any other thread knows of it. */
int uva__outline_acquire(struct uva__rt *rt, const struct ArrowSchema *schema,
                         struct uva__outline **out)
{
    *out = (struct uva__outline *)(void *)&world.measure;
    return uva__measure_init(&world.measure, &rt->allocator, schema);
}

void uva__outline_release(struct uva__outline *outline)
{
    if (outline != NULL)
        uva__measure_fini(&world.measure);
}

const struct uva__measure *
uva__outline_measure(const struct uva__outline *outline)
{
    return (const struct uva__measure *)(const void *)outline;
}

struct uva__handler_slot *uva__slots_take_handler(struct uva__rt *rt,
                                                  size_t size)
{
    (void)rt;
    (void)size;
    sim_fail("there is one handler");
    return NULL;
}

void uva__slots_put_handler(struct uva__rt *rt,
                            struct uva__handler_slot *handler)
{
    (void)rt;
    if (handler != &world.foreign.slot)
        return;
    sim_plain(&world.used[0]);
    sim_plain(&world.used[1]);
    world.freed++;
}

struct uva__rt *uva__rt_acquire(struct uva__rt *rt)
{
    return rt;
}

void uva__rt_release(struct uva__rt *rt)
{
    (void)rt;
}

bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *node)
{
    (void)rt;
    (void)node;
    uva__atomic64_exchange(&world.posted, 1);
    return false;
}

/* No job of a lane is submitted here. */
void uva__lane_submit_counted(struct uva__jobs *jobs, enum uva_lane lane,
                              struct uva__job *job,
                              struct uva__counter *wakeups)
{
    (void)jobs;
    (void)lane;
    (void)job;
    (void)wakeups;
    sim_fail("a job was submitted");
}

void uva__rt_breach(struct uva__rt *rt, const char *stream, const char *clause,
                    const char *what)
{
    (void)rt;
    (void)stream;
    (void)clause;
    (void)what;
    world.breaches++;
}

void uva__label_release(struct uva__label *label)
{
    (void)label;
}

void uva__rt_log(struct uva__rt *rt, enum uva_log_level level,
                 const char *stream, const char *clause, const char *format,
                 ...)
{
    (void)rt;
    (void)level;
    (void)stream;
    (void)clause;
    (void)format;
}

bool uva__rt_job_begin(struct uva__rt *rt)
{
    (void)rt;
    return true;
}

void uva__rt_job_end(struct uva__rt *rt)
{
    (void)rt;
}

static void uncapped_job(void *arg)
{
    struct uva__job *job = arg;

    job->run(job);
}

void uva__lane_run_uncapped(struct uva__jobs *jobs, struct uva__job *job)
{
    (void)jobs;
    if (mutant != SENDS_NO_REQUESTER || job != &world.foreign.requester)
        sim_spawn("guest", uncapped_job, job);
}

static void discard(void *arg)
{
    struct uva__discard *item = arg;

    item->run(item);
}

void uva__discard_add(struct uva__rt *rt, struct uva__discard *item)
{
    (void)rt;
    sim_spawn("guest", discard, item);
}

int uva__turn_depth(void)
{
    return cases[now].on_loop && uva__thread_self() == world.peer.thread;
}

bool uva__rt_on_loop(const struct uva__rt *rt)
{
    (void)rt;
    return false;
}

enum uva__task_kind uva__task_kind(const struct ArrowAsyncTask *task)
{
    (void)task;
    return UVA__TASK_FOREIGN;
}

void uva__task_drop(struct ArrowAsyncTask *task)
{
    (void)task;
}

void uva__producer_run(struct uva__producer *producer)
{
    (void)producer;
}

uint64_t __wrap_uva__clock_ns(void);

uint64_t __wrap_uva__clock_ns(void)
{
    return sim_now_ns();
}

/* ---- mutants ------------------------------------------------------------ */

void __real_uva__foreign_await_calls(struct uva__foreign *foreign);
void __wrap_uva__foreign_await_calls(struct uva__foreign *foreign);
bool __real_uva__foreign_is_on_loop(const struct uva__foreign *foreign);
bool __wrap_uva__foreign_is_on_loop(const struct uva__foreign *foreign);
int64_t __real_uva__consumer_state_want(const struct uva__consumer_state *s);
int64_t __wrap_uva__consumer_state_want(const struct uva__consumer_state *s);
void __real_uva__consumer_state_note_request(struct uva__consumer_state *s,
                                             int64_t n);
void __wrap_uva__consumer_state_note_request(struct uva__consumer_state *s,
                                             int64_t n);

void __wrap_uva__foreign_await_calls(struct uva__foreign *foreign)
{
    if (mutant == NO_WAIT)
        return;
    if (mutant != RETURNS_WITHOUT_A_WAIT) {
        __real_uva__foreign_await_calls(foreign);
        return;
    }
    uva__lock_take(&foreign->lock);
    foreign->locked.producer = NULL;
    uva__lock_drop(&foreign->lock);
}

bool __wrap_uva__foreign_is_on_loop(const struct uva__foreign *foreign)
{
    return mutant != EXTRACTS_ON_THE_LOOP &&
           __real_uva__foreign_is_on_loop(foreign);
}

int64_t __wrap_uva__consumer_state_want(const struct uva__consumer_state *s)
{
    const int64_t n = __real_uva__consumer_state_want(s);

    if (mutant == REQUESTS_ONE_LESS)
        return n > 0 ? n - 1 : 0;
    return mutant == REQUESTS_ONE_MORE && n > 0 ? n + 1 : n;
}

void __wrap_uva__consumer_state_note_request(struct uva__consumer_state *s,
                                             int64_t n)
{
    if (mutant != FORGETS_ITS_REQUESTS)
        __real_uva__consumer_state_note_request(s, n);
}

/* ---- the peer ----------------------------------------------------------- */

static void peer_must_be_there(void)
{
    if (world.peer.over)
        sim_fail("a method runs after a terminal callback has returned");
}

static void peer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    peer_must_be_there();
    sim_plain(&world.methods[0]);
    uva__atomic64_add(&world.peer.requested, (uint64_t)n);
    if (world.peer.requested.value - world.peer.delivered >
        (uint64_t)cases[now].window)
        sim_fail("more is asked for than there is room for");
    sim_point();
    peer_must_be_there();
}

static void peer_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
    peer_must_be_there();
    sim_plain(&world.methods[1]);
    world.cancels++;
    uva__atomic64_exchange(&world.peer.cancelled, 1);
    sim_point();
    peer_must_be_there();
}

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static int peer_extract(struct ArrowAsyncTask *task,
                        struct ArrowDeviceArray *out)
{
    static const void *no_buffers[1];

    (void)task;
    if (uva__turn_depth() > 0)
        sim_fail("a loop thread extracts");
    if (world.left != 0)
        sim_fail("a task is extracted after free_ctx");
    out->array.n_buffers = 1;
    out->array.buffers = no_buffers;
    out->array.release = array_release;
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    return 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static bool peer_may_go_on(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.peer.requested) > world.peer.delivered ||
           uva__atomic64_load(&world.peer.cancelled) != 0;
}

static void peer_deliver(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncTask task = {.extract_data = peer_extract};

    while (world.peer.delivered < cases[now].batches) {
        sim_wait(peer_may_go_on, NULL);
        if (uva__atomic64_load(&world.peer.cancelled) != 0)
            return;
        sim_plain(&world.batches[world.peer.delivered]);
        world.peer.delivered++;
        (void)handler->on_next_task(handler, &task, NULL);
    }
}

static void peer_run(void *arg)
{
    struct ArrowAsyncDeviceStreamHandler *handler = arg;
    struct ArrowSchema schema = {.format = "+s", .release = schema_release};

    world.peer.thread = uva__thread_self();
    handler->producer = &world.peer.abi;
    if (handler->on_schema(handler, &schema) == 0) {
        peer_deliver(handler);
        (void)handler->on_next_task(handler, NULL, NULL);
        world.peer.over = true;
        sim_plain(&world.methods[0]);
        sim_plain(&world.methods[1]);
    }
    sim_plain(&world.used[0]);
    handler->release(handler);
    if (cases[now].late)
        handler->on_error(handler, EIO, "late", NULL);
}

static void peer_leave(void *ctx)
{
    (void)ctx;
    world.left++;
}

/* ---- the loop, as source/from_async.c --------------------------------- */

static int64_t loop_take(struct uva__list *queue)
{
    struct ArrowDeviceArray array;
    struct uva__link *link;
    int64_t taken = 0;

    while ((link = uva__list_pop(queue)) != NULL) {
        if (uva__pending_task_extract(uva__pending_task_of(link), &array,
                                      NULL) == 0)
            uva_array_release(&array);
        uva__foreign_extracted(&world.foreign);
        sim_plain(&world.batches[world.received++]);
        taken++;
    }
    return taken;
}

/* Returns whether the stream continues. */
static bool loop_on_wakeup(int64_t *taken)
{
    struct uva__foreign_events events;
    bool ended;

    do {
        uva__foreign_poll(&world.foreign, *taken, &events);
        if (events.schema.release != NULL)
            uva_schema_release(&events.schema);
        ended = events.ended || events.failure.code != 0;
        *taken = loop_take(&events.queue);
    } while (*taken > 0 && !cases[now].cancels);
    return !ended && !(cases[now].cancels && world.received > 0);
}

static bool loop_has_events(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0;
}

static void loop_run(void *arg)
{
    struct uva__list rest = {0};
    int64_t taken = 0;

    do {
        sim_wait(loop_has_events, arg);
        uva__atomic64_exchange(&world.posted, 0);
    } while (loop_on_wakeup(&taken));
    uva__foreign_stop(&world.foreign, taken, &rest);
    sim_plain(&world.used[1]);
    uva__source_release(&world.foreign.source);
}

/* ---- test programs ------------------------------------------------------ */

static void wakeup_free(struct uva__wakeup *wakeup)
{
    uva__foreign_free(uva__container_of(wakeup, struct uva__source, wakeup),
                      &world.rt.allocator);
}

static void prepare(void)
{
    static const struct uva__wakeup_ops ops = {NULL, wakeup_free};
    struct uva__foreign *i = &world.foreign;

    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    world.rt.allocator = (struct uva_allocator){.alloc = explore_alloc,
                                                .dealloc = explore_dealloc,
                                                .ctx = &world.arena};
    world.peer.abi = (struct ArrowAsyncProducer){
        .device_type = ARROW_DEVICE_CPU,
        .request = peer_request,
        .cancel = peer_cancel,
    };
    i->source.rt = &world.rt;
    i->source.meter = &world.meter;
    world.meter.point.rt = &world.rt;
    i->source.device_type = ARROW_DEVICE_CPU;
    i->options.window.batches = cases[now].window;
    i->options.free_ctx = peer_leave;
    uva__wakeup_init(&i->source.wakeup, &ops, 1);
    uva__foreign_init(i);
    uva__foreign_handler_init(i);
    i->locked.start = UVA__FOREIGN_START_BACK;
    uva__source_acquire(&i->source); /* the peer's reference */
}

static void first(void *arg)
{
    sim_spawn("peer", peer_run, &world.foreign.handler);
    loop_run(arg);
}

static const char *wrong(void)
{
    if (!cases[now].cancels && world.received != cases[now].batches)
        return "a batch is lost";
    if (world.freed != 1 || world.left != 1)
        return "not all is given back once";
    if (world.cancels > 1)
        return "cancel is called twice";
    if (world.rt.stats.calls_stuck.value != 0)
        return "a call counts as stuck for ever";
    if (world.foreign.source.wakeup.refs.value != 0)
        return "a late call holds what is freed";
    if (world.breaches != cases[now].late)
        return cases[now].late ? "a late call is not reported"
                               : "a lawful peer is blamed";
    return NULL;
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .prepare = prepare,
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(int number)
{
    now = number;
    kernel.name = cases[number].name;
    return &kernel;
}

START_TEST(no_demand_is_lost_and_the_gate_holds)
{
    for (int i = 0; i < CASES; i++)
        explore_holds(kernel_of(i));
}
END_TEST

static void finds(enum mutant which, int number, const char *name)
{
    mutant = which;
    explore_finds(kernel_of(number), name);
    mutant = NONE;
}

START_TEST(its_mutants_are_found)
{
    finds(NO_WAIT, CANCEL, "no wait");
    finds(RETURNS_WITHOUT_A_WAIT, CANCEL, "a wait that returns at once");
    finds(RETURNS_WITHOUT_A_WAIT, PLAIN, "a wait that returns at once");
    finds(SENDS_NO_REQUESTER, PLAIN, "nobody is sent to request");
    finds(REQUESTS_ONE_LESS, PLAIN, "one batch less is asked for");
    finds(REQUESTS_ONE_MORE, PLAIN, "one batch more is asked for");
    finds(FORGETS_ITS_REQUESTS, PLAIN, "what is asked for is not noted");
    finds(EXTRACTS_ON_THE_LOOP, ON_LOOP, "a loop thread extracts");
}
END_TEST

START_TEST(the_gate_holds_in_weak_memory)
{
    for (int i = 0; i < CASES; i++)
        explore_holds_weak(kernel_of(i), 2);
    explore_finds_weak(kernel_of(PLAIN), &world.foreign.source.wakeup.refs,
                       SIM_UNACQUIRED, "it is freed without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.foreign.source.wakeup.refs,
                       SIM_UNRELEASED, "a reference is dropped without one");
    explore_finds_weak(kernel_of(PLAIN), &world.foreign.lock, SIM_UNACQUIRED,
                       "the lock is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.foreign.lock, SIM_UNRELEASED,
                       "the lock is dropped without a release");
}
END_TEST

int main(void)
{
    return explore_main(
        "foreign producer", no_demand_is_lost_and_the_gate_holds,
        its_mutants_are_found, the_gate_holds_in_weak_memory, NULL);
}
