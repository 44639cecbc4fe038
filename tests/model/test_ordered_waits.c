/* SPDX-License-Identifier: Apache-2.0 */
/* stage/ordered_waits.c and stage/flight.c, unchanged, between devices that
 * complete the events of its batches and a loop that passes the batches on,
 * stops, or reaches a time limit. No wake-up is lost; the batches come in
 * order; each array is released once, and each slot and count given back; and
 * no device stream is used after the stop of the stage has ended.
 *
 * Waits (device/event_wait.h) are replaced by the part between their threads:
 * the exchanges of `side` and `holder`. The mutants replace that. */
#include "stage/ordered_waits.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "device/wait_error.h"
#include "model/explore.h"
#include "stream/slots.h"
#include "uvarrow/arrow.h"

enum { BATCHES = 2, ARENA = 1024 };

enum mutant {
    NONE,
    WAKES_BEFORE_THE_BATCH_IS_DONE,
    WAKES_BEFORE_IT_IS_OVER,
    COMPLETES_BY_A_STORE,
    ABANDONS_WHAT_IS_OVER,
    UNCHAINS_WHAT_IS_IN_USE
};

enum kind { PASSES, STOPS, LIMITS, CHAINS };

static struct {
    struct uva__rt rt;
    struct uva__meter meter;
    struct uva__source above_source;
    struct uva__producer above, producer;
    struct uva__ordered_waits waits;
    struct uva_watch watches[BATCHES];
    struct uva__task slots[BATCHES];
    int64_t slots_out;           /* slots that the stage has */
    struct uva__atomic64 posted; /* 1: the loop is woken */
    uint64_t begun, requested;   /* batches that have come; requested of them */
    uint64_t taken;              /* batches passed on */
    uint64_t arrays;             /* arrays that are not released */
    uint64_t freed;              /* waits freed */
    int64_t refs, jobs;
    int64_t tracked; /* the stop waits, and a close is to end that */
    bool stopped;    /* the stop of the stage has ended */
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static enum mutant mutant; /* mutant of the case */
static enum kind kind;     /* of the case */

/* ---- the surroundings --------------------------------------------------- */

struct uva__devices *uva__devices_acquire(struct uva__devices *devices)
{
    return devices;
}

void uva__devices_release(struct uva__devices *devices)
{
    (void)devices;
}

void uva__producer_run(struct uva__producer *producer)
{
    (void)producer;
}

void uva__task_drop(struct ArrowAsyncTask *task)
{
    (void)task;
    sim_fail("a task is dropped");
}

void uva__stage_acquire(struct uva__stage *stage)
{
    (void)stage;
    world.refs++;
}

void uva__stage_release(struct uva__stage *stage)
{
    (void)stage;
    world.refs--;
}

struct uva__stage *uva__stage_of(struct uva__source *source)
{
    return uva__container_of(source, struct uva__stage, source);
}

static void above_request(struct ArrowAsyncProducer *producer, int64_t n)
{
    (void)producer;
    world.requested += (uint64_t)n;
}

void uva__stage_stop(struct uva__source *source)
{
    if (!uva__list_is_empty(&uva__stage_of(source)->ready.tasks))
        sim_fail("a batch was not taken");
    uva__timer_stop(source->rt, &uva__stage_of(source)->timer);
    source->stopped = true;
}

void uva__inlet_fail_extraction(struct uva__inlet *inlet, int code,
                                struct uva__source *source)
{
    (void)inlet;
    (void)code;
    (void)source;
    sim_fail("an extraction failed");
}

void uva__inlet_quit(struct uva__inlet *inlet)
{
    inlet->state = UVA__INLET_QUIT;
}

void uva__inlet_lose(struct uva__inlet *inlet)
{
    (void)inlet;
    sim_fail("a batch is lost");
}

void uva__inlet_conclude(struct uva__inlet *inlet, struct uva__source *source)
{
    source->ended = inlet->state == UVA__INLET_ENDED;
}

bool uva__rt_job_begin(struct uva__rt *rt)
{
    (void)rt;
    world.jobs++;
    return true;
}

void uva__rt_job_end(struct uva__rt *rt)
{
    (void)rt;
    world.jobs--;
}

bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    (void)rt;
    (void)wakeup;
    if (mutant != WAKES_BEFORE_THE_BATCH_IS_DONE)
        uva__atomic64_exchange(&world.posted, 1);
    return false;
}

void uva__producer_wake(struct uva__producer *producer)
{
    (void)producer;
}

void uva__loop_track(struct uva__rt *rt, struct uva__open_object *object)
{
    (void)rt;
    (void)object;
    world.tracked++;
}

void uva__loop_untrack(struct uva__rt *rt, struct uva__open_object *object)
{
    (void)rt;
    (void)object;
    world.tracked--;
}

void uva__producer_end_stop(struct uva__producer *producer)
{
    (void)producer;
    world.waits.flight.stage.source.stopping--;
}

struct uva__task *uva__kept_take_in(struct uva__inlet *inlet,
                                    struct uva__producer *producer,
                                    struct ArrowAsyncTask *task,
                                    const char *metadata,
                                    enum uva__kept_content content)
{
    struct uva__task *slot = &world.slots[world.begun - 1];

    (void)inlet;
    (void)producer;
    (void)metadata;
    (void)content;
    world.slots_out++;
    slot->info.ordinal = (int64_t)(uintptr_t)task->private_data;
    slot->info.bytes = 1;
    (void)task->extract_data(task, &slot->array);
    return slot;
}

void uva__slots_end_task(struct uva__rt *rt, struct uva__list *empty,
                         struct uva__task *task)
{
    (void)rt;
    (void)empty;
    (void)task;
    world.slots_out--;
}

void uva__task_free_texts(struct uva__task *task,
                          const struct uva_allocator *allocator)
{
    (void)task;
    (void)allocator;
    sim_fail("a slot has texts");
}

void uva__kept_push(struct uva__kept *kept, struct uva__task *task)
{
    uva__list_push(&kept->tasks, &task->link);
}

struct uva__task *uva__stage_take(struct uva__source *source)
{
    struct uva__stage *stage = uva__stage_of(source);
    struct uva__link *link = uva__list_pop(&stage->ready.tasks);
    struct uva__task *slot = uva__container_of(link, struct uva__task, link);

    source->ready--;
    uva__intake_leave(&stage->in, slot->info.bytes);
    return slot;
}

void uva__timer_start(struct uva__rt *rt, struct uva__timer *timer, int64_t ms)
{
    (void)rt;
    (void)ms;
    timer->running = true;
}

void uva__timer_start_at(struct uva__rt *rt, struct uva__timer *timer,
                         uint64_t due_ns)
{
    (void)rt;
    (void)due_ns;
    timer->running = true;
}

enum uva__event_kind uva__devices_classify(struct uva__devices *devices,
                                           ArrowDeviceType device_type,
                                           const void *sync_event,
                                           struct uva_error *error)
{
    (void)devices;
    (void)device_type;
    (void)sync_event;
    (void)error;
    return UVA__EVENT_WAIT;
}

void uva__timer_stop(struct uva__rt *rt, struct uva__timer *timer)
{
    (void)rt;
    timer->running = false;
}

int uva__wait_error_timeout(const struct uva_watch *watch, int64_t timeout_ms,
                            struct uva_error *error)
{
    (void)watch;
    (void)timeout_ms;
    error->code = ETIMEDOUT;
    return ETIMEDOUT;
}

uint64_t __wrap_uva__clock_ns(void);

uint64_t __wrap_uva__clock_ns(void)
{
    return sim_now_ns();
}

/* There is no budget, and no trace. */
void uva__share_hold(struct uva__share *share, int64_t batches, int64_t bytes)
{
    (void)share;
    (void)batches;
    (void)bytes;
}

bool uva__share_is_free(const struct uva__share *share)
{
    (void)share;
    return true;
}

void uva__meter_trace_held(const struct uva__meter *meter, int64_t batches,
                           int64_t bytes)
{
    (void)meter;
    (void)batches;
    (void)bytes;
}

void uva__meter_wait(const struct uva__meter *meter, const char *name,
                     int64_t ordinal, uint64_t since_ns)
{
    (void)meter;
    (void)name;
    (void)ordinal;
    (void)since_ns;
}

void uva__meter_note_wakeup(struct uva__meter *meter)
{
    (void)meter;
}

/* ---- waits -------------------------------------------------------------- */

int uva__event_wait_new(struct uva__devices *devices,
                        const struct uva_device_event *event,
                        void (*over)(struct uva_watch *watch), void *client,
                        struct uva_watch **out)
{
    struct uva_watch *watch = event->sync_event;

    (void)devices;
    watch->over = over;
    watch->client = client;
    watch->refs.value = 1;
    *out = watch;
    return 0;
}

void uva__event_wait_release(struct uva_watch *watch)
{
    if (uva__atomic64_sub(&watch->refs, 1) != 1)
        return;
    uva_array_release(&watch->left);
    world.freed++;
}

int uva__event_wait_outcome(struct uva_watch *watch, struct uva_error *error)
{
    (void)watch;
    return error->code = 0;
}

/* On a device's thread: the event is complete. */
static void device_run(void *arg)
{
    struct uva_watch *watch = arg;
    bool wanted = true;

    sim_plain(&watch->left); /* for the result, which the loop reads */
    if (mutant == WAKES_BEFORE_THE_BATCH_IS_DONE)
        uva__atomic64_exchange(&world.posted, 1);
    if (mutant == WAKES_BEFORE_IT_IS_OVER) {
        watch->over(watch);
        uva__atomic64_exchange(&watch->side, UVA__EVENT_WAIT_OVER);
    } else if (mutant == COMPLETES_BY_A_STORE) {
        uva__atomic64_store(&watch->side, UVA__EVENT_WAIT_OVER);
        watch->over(watch);
    } else {
        wanted = uva__atomic64_exchange(&watch->side, UVA__EVENT_WAIT_OVER) !=
                 UVA__EVENT_WAIT_ABANDONED;
        if (wanted)
            watch->over(watch);
    }
    uva__event_wait_release(watch);
}

static void stream_use(void)
{
    if (world.stopped)
        sim_fail("a device stream is used after the stop");
}

/* On the device thread: makes a stream wait. */
static void device_chain(void *arg)
{
    struct uva_watch *watch = arg;
    uint64_t open = UVA__EVENT_WAIT_OPEN;

    if (!uva__atomic64_cas(&watch->holder, &open, UVA__EVENT_WAIT_IN_USE)) {
        uva__event_wait_release(watch);
        return;
    }
    stream_use();
    uva__atomic64_store(&watch->holder, UVA__EVENT_WAIT_FIRED);
    stream_use();
    device_run(arg);
}

void uva__event_wait_begin(struct uva_watch *watch)
{
    uva__atomic64_add(&watch->refs, 1);
    sim_spawn("device", watch->chains ? device_chain : device_run, watch);
}

bool uva__event_wait_unchain(struct uva_watch *watch)
{
    uint64_t open = UVA__EVENT_WAIT_OPEN;

    if (!watch->chains)
        return true;
    return uva__atomic64_cas(&watch->holder, &open, UVA__EVENT_WAIT_FIRED) ||
           mutant == UNCHAINS_WHAT_IS_IN_USE;
}

bool uva__event_wait_abandon(struct uva_watch *watch,
                             struct ArrowDeviceArray *array)
{
    uint64_t pending = UVA__EVENT_WAIT_PENDING;

    if (!uva__atomic64_cas(&watch->side, &pending, UVA__EVENT_WAIT_ABANDONED) &&
        mutant != ABANDONS_WHAT_IS_OVER)
        return false;
    uva_array_move(array, &watch->left);
    uva__event_wait_release(watch);
    return true;
}

/* ---- the stage ---------------------------------------------------------- */

static void batch_begin(struct uva__ordered_waits *waits,
                        struct uva__pending_batch *wait)
{
    const struct uva_device_event event = uva__pending_batch_event(wait);

    if (!uva__pending_batch_prepare(waits, wait, &event))
        sim_fail("a batch has failed");
    wait->watch->chains = kind == CHAINS;
    wait->watch->device_stream = &world;
    uva__event_wait_begin(wait->watch);
}

static void batch_over(struct uva__ordered_waits *waits,
                       struct uva__pending_batch *wait,
                       const struct uva_error *error)
{
    (void)waits;
    (void)wait;
    (void)error;
}

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
    world.arrays--;
}

static int batch_extract(struct ArrowAsyncTask *task,
                         struct ArrowDeviceArray *out)
{
    memset(out, 0, sizeof(*out));
    out->array.release = array_release;
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CUDA;
    out->sync_event = &world.watches[(uintptr_t)task->private_data];
    world.arrays++;
    return 0;
}

/* ---- the loop ----------------------------------------------------------- */

static bool loop_is_woken(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0;
}

/* The requested batches come, and then the end. Returns whether any came. */
static bool loop_feed(void)
{
    const uint64_t before = world.begun;

    while (world.begun < BATCHES && world.begun < world.requested) {
        struct ArrowAsyncTask task = {.extract_data = batch_extract,
                                      .private_data =
                                          (void *)(uintptr_t)world.begun++};

        uva__ordered_waits_task(&world.waits.flight.stage, &task, NULL);
    }
    world.waits.flight.stage.inlet.state =
        world.begun == BATCHES ? UVA__INLET_ENDED : UVA__INLET_RUNNING;
    return world.begun > before;
}

/* The next stage takes the array. */
static void loop_pass_on(struct uva__task *slot)
{
    const int64_t ordinal = slot->info.ordinal;

    if (ordinal != (int64_t)world.taken++)
        sim_fail("the batches change places");
    if (world.watches[ordinal].side.value != UVA__EVENT_WAIT_OVER)
        sim_fail("a batch is passed on that is not ready");
    sim_plain(&world.watches[ordinal].left);
    uva_array_release(&slot->array);
    world.slots_out--;
}

/* Pulls until no more come. Returns whether the stream goes on. */
static bool loop_pull(void)
{
    struct uva__source *source = &world.waits.flight.stage.source;

    do {
        uva__ordered_waits_pull(source, BATCHES);
        while (source->ready > 0)
            loop_pass_on(uva__stage_take(source));
    } while (loop_feed());
    return source->failure.code == 0 && !source->ended;
}

static void loop_expire(void)
{
    struct uva__timer *timer = &world.waits.flight.stage.timer;

    if (!timer->running)
        return;
    timer->running = false;
    timer->fire(timer);
}

/* Stops the stage, which may wait for a call in flight. */
static void loop_stop(void *arg)
{
    struct uva__stage *stage = &world.waits.flight.stage;

    uva__ordered_waits_stop(&stage->source);
    while (stage->source.stopping > 0) {
        sim_wait(loop_is_woken, arg);
        uva__atomic64_exchange(&world.posted, 0);
        uva__ordered_waits_clear(stage);
    }
    world.stopped = true;
}

static void loop_run(void *arg)
{
    bool more = loop_pull();

    if (more && kind == LIMITS) {
        loop_expire();
        more = loop_pull();
    }
    while (more && kind != STOPS && kind != CHAINS) {
        sim_wait(loop_is_woken, arg);
        uva__atomic64_exchange(&world.posted, 0);
        more = loop_pull();
    }
    loop_stop(arg);
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
}

/* ---- test programs ------------------------------------------------------ */

static void prepare(void)
{
    static const struct uva__ordered_waits_ops ops = {batch_begin, batch_over};
    const struct uva__window window = {
        .batches = BATCHES, .refill = BATCHES - 1, .bytes = 1 << 20};
    struct uva__stage *stage = &world.waits.flight.stage;

    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    world.rt.allocator = (struct uva_allocator){.alloc = explore_alloc,
                                                .dealloc = explore_dealloc,
                                                .ctx = &world.arena};
    world.meter.point.rt = &world.rt;
    stage->source.rt = &world.rt;
    stage->source.meter = &world.meter;
    stage->source.producer = &world.producer;
    stage->source.schema_known = true;
    world.above.source = &world.above_source;
    world.above.rt = &world.rt;
    world.above.abi.request = above_request;
    stage->inlet.state = UVA__INLET_RUNNING;
    stage->inlet.known = true;
    stage->inlet.handler.producer = &world.above.abi;
    world.waits.timeout_ms = kind == LIMITS;
    stage->inlet.above = &world.above;
    uva__intake_init(&stage->in, &window);
    uva__ordered_waits_init(&world.waits, &ops, &(struct uva__stage_setup){0});
}

static const char *wrong(void)
{
    struct uva__stage *stage = &world.waits.flight.stage;
    const int failed = stage->source.failure.code;

    if (stage->source.stopped)
        uva__ordered_waits_clear(stage); /* the wake-up of the last callbacks */
    if (kind == PASSES && world.taken != BATCHES)
        return "a batch is lost";
    if (failed != 0 && (kind != LIMITS || failed != ETIMEDOUT))
        return "the stream fails";
    if (world.arrays != 0)
        return "an array is not released";
    if (world.slots_out != 0)
        return "a slot is not given back";
    if (world.freed != world.begun)
        return "a wait is not freed";
    if (world.tracked != 0)
        return "a stop is not over";
    return world.refs == 0 && world.jobs == 0 ? NULL : "a count is not back";
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .prepare = prepare,
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(enum kind of)
{
    static const char *const names[] = {
        "ordered waits", "ordered waits, a stop", "ordered waits, a time limit",
        "ordered waits, a device stream"};

    kind = of;
    kernel.name = names[of];
    return &kernel;
}

START_TEST(no_wake_up_is_lost_and_everything_is_given_back)
{
    explore_holds(kernel_of(PASSES));
    explore_holds(kernel_of(STOPS));
    explore_holds(kernel_of(LIMITS));
    explore_holds(kernel_of(CHAINS));
}
END_TEST

static const struct {
    enum mutant mutant;
    enum kind kind;
    const char *what;
} mutants[] = {
    {WAKES_BEFORE_THE_BATCH_IS_DONE, PASSES, "it wakes before it is done"},
    {WAKES_BEFORE_THE_BATCH_IS_DONE, CHAINS, "it wakes before it is done"},
    {WAKES_BEFORE_IT_IS_OVER, PASSES, "the loop sees it before it is over"},
    {COMPLETES_BY_A_STORE, STOPS, "the device stores"},
    {ABANDONS_WHAT_IS_OVER, STOPS, "a wait that is over is abandoned"},
    {ABANDONS_WHAT_IS_OVER, LIMITS, "a wait that is over is abandoned"},
    {UNCHAINS_WHAT_IS_IN_USE, CHAINS, "a call in flight is not waited for"},
};

START_TEST(its_mutants_are_found)
{
    for (size_t i = 0; i < sizeof(mutants) / sizeof(*mutants); i++) {
        mutant = mutants[i].mutant;
        explore_finds(kernel_of(mutants[i].kind), mutants[i].what);
    }
    mutant = NONE;
    explore_finds_spoiled(kernel_of(PASSES), &world.waits.flight.done.newest,
                          SIM_SPLIT, "batches that are done are stored");
}
END_TEST

START_TEST(no_wake_up_is_lost_in_weak_memory)
{
    explore_holds_weak(kernel_of(PASSES), 2);
    explore_holds_weak(kernel_of(STOPS), 2);
    explore_holds_weak(kernel_of(LIMITS), 2);
    explore_holds_weak(kernel_of(CHAINS), 2);
    explore_finds_weak(kernel_of(PASSES), &world.waits.flight.done.newest,
                       SIM_UNACQUIRED, "a result is read without an acquire");
    explore_finds_weak(kernel_of(PASSES), &world.waits.flight.done.newest,
                       SIM_UNRELEASED, "a wait ends without a release");
}
END_TEST

int main(void)
{
    return explore_main(
        "ordered waits", no_wake_up_is_lost_and_everything_is_given_back,
        its_mutants_are_found, no_wake_up_is_lost_in_weak_memory, NULL);
}
