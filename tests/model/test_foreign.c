/* SPDX-License-Identifier: Apache-2.0 */
/* source/foreign_state.c, inlet.c, peer_side.c and depot.c, unchanged,
 * between a peer on its own thread and a loop that has extra threads request
 * and cancel. No demand is lost, no method of the peer runs or starts once its
 * terminal callback has returned, and everything is released once.
 *
 * The mutants replace a function that one of the files calls in another,
 * through the linker (--wrap). */
#include "source/foreign.h"

#include <check.h>
#include <string.h>

#include "source/foreign_handler.h"
#include "model/explore.h"
#include "stream/producer.h"
#include "uvarrow/arrow.h"

enum { ARENA = 6144 };

enum mutant {
    NONE,
    NO_GATE,
    GATE_WITHOUT_A_WAIT,
    SENDS_NO_REQUESTER,
    ASKS_FOR_ONE_LESS,
    ASKS_FOR_ONE_MORE,
    FORGETS_WHAT_IT_ASKED
};

static const struct {
    const char *name;
    uint64_t batches; /* batches that the peer has */
    int64_t window;   /* window of our side */
    bool cancels;     /* the loop cancels after the first batch */
} cases[] = {
    {"inlet", 2, 1, false},
    {"inlet, a cancel", 1, 1, true},
};

enum { PLAIN, CANCEL, CASES };

struct peer {
    struct ArrowAsyncProducer abi;
    struct uva__word asked, cancelled;
    uint64_t delivered;
    bool over; /* a terminal callback has returned */
};

static struct {
    struct uva__hub hub;
    struct uva__inlet inlet;
    struct peer peer;
    struct uva__word posted;
    uint64_t received; /* batches received by the loop */
    uint64_t cancels;  /* calls of the peer's cancel */
    uint64_t breaches;
    uint64_t freed, left; /* how often the state was freed, and its ctx */
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static enum mutant mutant; /* mutant of the case */
static int now;            /* index of the case */

/* ---- what surrounds it -------------------------------------------------- */

static void inlet_dealloc(void *ctx, void *block, size_t size)
{
    if (block == &world.inlet)
        world.freed++;
    else
        explore_dealloc(ctx, block, size);
}

struct uva__hub *uva__hub_acquire(struct uva__hub *hub)
{
    return hub;
}

void uva__hub_release(struct uva__hub *hub)
{
    (void)hub;
}

void uva__hub_post(struct uva__hub *hub, struct uva__node *node)
{
    (void)hub;
    (void)node;
    uva__word_exchange(&world.posted, 1);
}

void uva__hub_breach(struct uva__hub *hub, const char *stream,
                     const char *clause, const char *what)
{
    (void)hub;
    (void)stream;
    (void)clause;
    (void)what;
    world.breaches++;
}

bool uva__hub_job_begin(struct uva__hub *hub)
{
    (void)hub;
    return true;
}

void uva__hub_job_end(struct uva__hub *hub)
{
    (void)hub;
}

static void guest_job(void *arg)
{
    struct uva_job *job = arg;

    job->run(job);
}

void uva__guest_run(struct uva__jobs *jobs, struct uva_job *job)
{
    (void)jobs;
    sim_spawn("guest", guest_job, job);
}

void uva__producer_wake(struct uva__producer *producer)
{
    (void)producer;
}

uint64_t __wrap_uva__clock_ns(void);

uint64_t __wrap_uva__clock_ns(void)
{
    return sim_now_ns();
}

/* ---- mutants ------------------------------------------------------------ */

void __real_uva__inlet_close_gate(struct uva__inlet *inlet);
void __wrap_uva__inlet_close_gate(struct uva__inlet *inlet);
int64_t __real_uva__consumer_want(const struct uva__consumer_state *s);
int64_t __wrap_uva__consumer_want(const struct uva__consumer_state *s);
void __real_uva__consumer_note_request(struct uva__consumer_state *s,
                                       int64_t n);
void __wrap_uva__consumer_note_request(struct uva__consumer_state *s,
                                       int64_t n);

void __wrap_uva__inlet_close_gate(struct uva__inlet *inlet)
{
    if (mutant == NO_GATE)
        return;
    if (mutant != GATE_WITHOUT_A_WAIT) {
        __real_uva__inlet_close_gate(inlet);
        return;
    }
    uva__lock_take(&inlet->lock);
    inlet->locked.producer = NULL;
    uva__lock_drop(&inlet->lock);
}

int64_t __wrap_uva__consumer_want(const struct uva__consumer_state *s)
{
    const int64_t n = __real_uva__consumer_want(s);

    if (mutant == ASKS_FOR_ONE_LESS)
        return n > 0 ? n - 1 : 0;
    return mutant == ASKS_FOR_ONE_MORE && n > 0 ? n + 1 : n;
}

void __wrap_uva__consumer_note_request(struct uva__consumer_state *s, int64_t n)
{
    if (mutant != FORGETS_WHAT_IT_ASKED)
        __real_uva__consumer_note_request(s, n);
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
    uva__word_add(&world.peer.asked, (uint64_t)n);
    if (world.peer.asked.value - world.peer.delivered >
        (uint64_t)cases[now].window)
        sim_fail("more is asked for than there is room for");
    sim_point();
    peer_must_be_there();
}

static void peer_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
    peer_must_be_there();
    world.cancels++;
    uva__word_exchange(&world.peer.cancelled, 1);
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
    return uva__word_load(&world.peer.asked) > world.peer.delivered ||
           uva__word_load(&world.peer.cancelled) != 0;
}

static void peer_deliver(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncTask task = {.extract_data = peer_extract};

    while (world.peer.delivered < cases[now].batches) {
        sim_wait(peer_may_go_on, NULL);
        if (uva__word_load(&world.peer.cancelled) != 0)
            return;
        world.peer.delivered++;
        (void)handler->on_next_task(handler, &task, NULL);
    }
}

static void peer_run(void *arg)
{
    struct ArrowAsyncDeviceStreamHandler *handler = arg;
    struct ArrowSchema schema = {.format = "+s", .release = schema_release};

    handler->producer = &world.peer.abi;
    if (handler->on_schema(handler, &schema) == 0) {
        peer_deliver(handler);
        (void)handler->on_next_task(handler, NULL, NULL);
        world.peer.over = true;
    }
    handler->release(handler);
}

static void peer_leave(void *ctx)
{
    (void)ctx;
    world.left++;
}

/* ---- the loop, as source/from_async.c --------------------------------- */

static void guest_request(void *arg)
{
    uva__inlet_request(arg);
    uva__inlet_release(arg);
}

static void guest_cancel(void *arg)
{
    uva__inlet_cancel(arg);
    uva__inlet_release(arg);
}

static void loop_send(void (*body)(void *arg))
{
    uva__inlet_acquire(&world.inlet);
    sim_spawn("guest", body, &world.inlet);
}

static int64_t loop_take(struct uva__list *queue)
{
    struct ArrowDeviceArray array;
    struct uva__link *link;
    int64_t taken = 0;

    while ((link = uva__list_pop(queue)) != NULL) {
        if (uva__depot_extract(
                &world.inlet.depot,
                uva__container_of(link, struct uva__parcel, link), &array,
                NULL) == 0)
            uva_array_release(&array);
        uva__inlet_extracted(&world.inlet);
        world.received++;
        taken++;
    }
    return taken;
}

static void loop_stop(int64_t taken)
{
    struct uva__list rest = {0};
    struct uva__link *link;

    if (uva__inlet_stop(&world.inlet, taken, &rest))
        loop_send(guest_cancel);
    while ((link = uva__list_pop(&rest)) != NULL)
        uva__depot_discard(&world.inlet.depot,
                           uva__container_of(link, struct uva__parcel, link));
}

/* Returns whether the stream continues. */
static bool loop_visit(int64_t *taken)
{
    struct uva__inlet_news news;
    bool cancel, ended;

    do {
        if (uva__inlet_look(&world.inlet, *taken, &news, &cancel) &&
            mutant != SENDS_NO_REQUESTER)
            loop_send(guest_request);
        if (cancel)
            loop_send(guest_cancel);
        if (news.schema.release != NULL)
            uva_schema_release(&news.schema);
        ended = news.ended || news.failure.code != 0;
        *taken = loop_take(&news.queue);
    } while (*taken > 0 && !cases[now].cancels);
    return !ended && !(cases[now].cancels && world.received > 0);
}

static bool loop_has_news(void *arg)
{
    (void)arg;
    return uva__word_load(&world.posted) != 0;
}

static void loop_run(void *arg)
{
    int64_t taken = 0;

    do {
        sim_wait(loop_has_news, arg);
        uva__word_exchange(&world.posted, 0);
    } while (loop_visit(&taken));
    loop_stop(taken);
    uva__inlet_release(&world.inlet);
}

/* ---- test programs ------------------------------------------------------ */

static void prepare(void)
{
    struct uva__inlet *i = &world.inlet;

    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    world.hub.allocator = (struct uva_allocator){
        .alloc = explore_alloc, .dealloc = inlet_dealloc, .ctx = &world.arena};
    world.peer.abi = (struct ArrowAsyncProducer){
        .device_type = ARROW_DEVICE_CPU,
        .request = peer_request,
        .cancel = peer_cancel,
    };
    i->feed.hub = &world.hub;
    i->feed.device_type = ARROW_DEVICE_CPU;
    i->how.window.batches = cases[now].window;
    i->how.free_ctx = peer_leave;
    uva__inlet_init(i);
    i->locked.start_returned = true;
    uva__inlet_acquire(i); /* the peer's reference */
}

static void first(void *arg)
{
    sim_spawn("peer", peer_run, &world.inlet.handler);
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
    if (world.hub.counts.calls_stuck.value != 0)
        return "a call counts as stuck for ever";
    return world.breaches == 0 ? NULL : "a lawful peer is blamed";
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
    finds(NO_GATE, CANCEL, "no gate");
    finds(GATE_WITHOUT_A_WAIT, CANCEL, "a gate that does not wait");
    finds(GATE_WITHOUT_A_WAIT, PLAIN, "a gate that does not wait");
    finds(SENDS_NO_REQUESTER, PLAIN, "nobody is sent to request");
    finds(ASKS_FOR_ONE_LESS, PLAIN, "one batch less is asked for");
    finds(ASKS_FOR_ONE_MORE, PLAIN, "one batch more is asked for");
    finds(FORGETS_WHAT_IT_ASKED, PLAIN, "what is asked for is not noted");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, no_demand_is_lost_and_the_gate_holds);
    tcase_add_test(tests, its_mutants_are_found);
}

int main(void)
{
    return explore_main("inlet", add);
}
