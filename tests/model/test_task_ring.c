/* SPDX-License-Identifier: Apache-2.0 */
/* sink/task_ring.c, unchanged, between a loop that
 * offers tasks and a thread that reads. The two do not wait for each other for
 * ever, and each task is extracted once. */
#include "sink/task_ring.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "model/explore.h"
#include "uvarrow/arrow.h"

enum { TASKS_MAX = 4, ARENA = 4096 };

/* The kinds of the tasks. A checker wraps them, but for those for which it had
 * no memory. A claim elects the one thread that uses a task of ours. */
enum kind { WRAPPED, OURS, MIXED };

static const struct {
    const char *name;
    int64_t batches, bytes; /* limits of the window; a task has one byte */
    uint64_t tasks;         /* tasks of the producer */
    bool releases;          /* the reader releases after the first batch */
    bool cancels;           /* another thread cancels, seen by the loop */
    bool dribbles;          /* the producer offers one task in each turn */
    enum kind kind;
} cases[] = {
    {"task ring", 2, 100, 4, false, false, false, WRAPPED},
    {"task ring, full of bytes", 3, 1, 2, false, false, false, WRAPPED},
    {"task ring, released", 2, 100, 2, true, false, false, WRAPPED},
    {"task ring, a cancel", 1, 100, 1, false, true, false, WRAPPED},
    {"task ring, read one by one", 4, 100, 3, false, false, true, WRAPPED},
    {"task ring, told one by one, a cancel", 2, 100, 2, false, true, true,
     WRAPPED},
    {"task ring of ours", 2, 100, 4, false, false, false, OURS},
    {"task ring of ours, full of bytes", 3, 1, 2, false, false, false, OURS},
    {"task ring of ours, released", 2, 100, 2, true, false, false, OURS},
    {"task ring of ours, a cancel", 1, 100, 1, false, true, false, OURS},
    {"task ring of ours, one by one, a cancel", 2, 100, 2, false, true, true,
     OURS},
    {"task ring of ours, far from a request, a cancel", 6, 100, 2, false, true,
     false, OURS},
    {"task ring of both", 2, 100, 4, false, false, false, MIXED},
    {"task ring of both, released", 4, 100, 4, true, false, false, MIXED},
    {"task ring of both, a cancel", 3, 100, 3, false, true, false, MIXED},
};

enum {
    PLAIN,
    BYTES,
    RELEASES,
    CANCEL,
    DRIBBLES,
    DRIBBLES_CANCEL,
    ALL_OURS,
    OURS_BYTES,
    OURS_RELEASES,
    OURS_CANCEL,
    OURS_DRIBBLES_CANCEL,
    OURS_FLOWS_CANCEL,
    BOTH,
    BOTH_RELEASES,
    BOTH_CANCEL,
    CASES
};

static struct {
    struct uva__rt rt;
    struct uva__atomic64 alive;
    struct uva_stream stream;
    struct uva__producer producer;
    struct uva__producer_loop loop; /* its rest */
    struct ArrowAsyncProducer
        checker;               /* in front of it, if tasks are wrapped */
    struct uva__source source; /* with a share that does not count */
    struct uva__atomic64 posted;
    uint64_t spent[TASKS_MAX];   /* how often each task was extracted */
    uint64_t dropped[TASKS_MAX]; /* how often the loop dropped it */
    struct uva__atomic64 claims[TASKS_MAX]; /* of our tasks: 1 if claimed */
    uint64_t requested, ended_code_known;   /* tasks requested and offered */
    uint64_t read;                          /* tasks read by the reader */
    uint64_t done, cancels, released;       /* how often each happened */
    bool paused, ended; /* offering is paused; the end was offered */
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static int now; /* index of the case */

/* Faults, which the loop's fiber makes in the ring. */
static enum {
    SOUND,
    NO_REFILL,   /* the reader is not told when to have more requested */
    NOT_AWAITED, /* the reader is not told that the loop waits */
    DROPS_ALL    /* a cancel drops what the reader has, too */
} mutant;

/* ---- the surroundings --------------------------------------------------- */

struct uva__rt *uva__rt_acquire(struct uva__rt *rt)
{
    return rt;
}

void uva__rt_release(struct uva__rt *rt)
{
    (void)rt;
}

bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    (void)rt;
    (void)wakeup;
    uva__atomic64_exchange(&world.posted, 1);
    return false;
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

bool uva__rt_must_not_wait(const struct uva__rt *rt)
{
    (void)rt;
    return false;
}

void uva__lane_wait_begin(void)
{
}

void uva__lane_wait_end(void)
{
}

int uva__sink_start(struct uva_stream *stream,
                    const struct uva__sink_kind *kind, const void *options,
                    struct uva_error *error)
{
    stream->sink =
        uva__memory_new_aligned(&stream->rt->allocator, kind->ops.size, 64);
    stream->sink->ops = &kind->ops;
    memcpy((char *)stream->sink + kind->copy, options, kind->options.size);
    return kind->init(stream, error);
}

int uva__stream_take_schema(struct uva_stream *stream,
                            const struct ArrowAsyncProducer *from,
                            struct ArrowSchema *schema)
{
    (void)stream;
    (void)from;
    (void)schema;
    return 0;
}

void uva__stream_open_given(struct uva_stream *stream)
{
    (void)stream;
    sim_fail("no stream is given to the ring");
}

void uva__stream_settle(struct uva_stream *stream, int code,
                        const struct uva_error *error)
{
    (void)stream;
    (void)code;
    (void)error;
    sim_fail("no stream is given to the ring");
}

const struct uva__failure *
uva__stream_cancelled(const struct uva_stream *stream)
{
    return uva__atomic64_load(&stream->latch) != 0 ? &stream->why : NULL;
}

void uva__stream_done(struct uva_stream *stream, int code,
                      const struct uva_error *error)
{
    (void)stream;
    (void)code;
    (void)error;
    world.done++;
}

struct uva_stream *uva_stream_acquire(struct uva_stream *stream)
{
    return stream;
}

void uva_stream_release(struct uva_stream *stream)
{
    (void)stream;
    world.released++;
}

void uva_stream_cancel(struct uva_stream *stream, int code, const char *message)
{
    (void)message;
    stream->why.code = code;
    uva__atomic64_exchange(&stream->latch, 1);
    uva__rt_wake(stream->rt, &stream->wakeup);
}

void uva__producer_begin_driving(struct uva__producer *producer,
                                 struct ArrowAsyncDeviceStreamHandler *handler,
                                 const struct uva__producer_hooks *hooks,
                                 void *ctx)
{
    (void)hooks;
    (void)ctx;
    producer->loop->handler = handler;
    world.checker = producer->abi;
    handler->producer =
        cases[now].kind == OURS ? &producer->abi : &world.checker;
}

void uva__producer_begin_above(struct uva__producer *producer,
                               struct ArrowAsyncDeviceStreamHandler *handler,
                               const struct uva__producer *below, bool ahead)
{
    (void)producer;
    (void)handler;
    (void)below;
    (void)ahead;
    sim_fail("the ring is no stage");
}

void uva__producer_release(struct uva__producer *producer)
{
    (void)producer;
}

void uva__producer_end_stop(struct uva__producer *producer)
{
    (void)producer;
    sim_fail("no stop waits for the ring");
}

bool uva__source_uses_stream(const struct uva__source *source)
{
    (void)source;
    return false;
}

void uva__producer_pause(struct uva__producer *producer, bool paused)
{
    (void)producer;
    world.paused = paused;
}

void uva__producer_quit(struct uva__producer *producer,
                        struct ArrowAsyncProducer *seen)
{
    (void)producer;
    seen->cancel(seen);
}

/* ---- tasks -------------------------------------------------------------- */

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void task_spend(const struct ArrowAsyncTask *task)
{
    uint64_t *spent = task->private_data;

    sim_plain(spent);
    if (++*spent != 1)
        sim_fail("a task is spent twice");
}

static int task_extract(struct ArrowAsyncTask *task,
                        struct ArrowDeviceArray *out)
{
    task_spend(task);
    if (out == NULL)
        return 0;
    memset(out, 0, sizeof(*out));
    out->array.release = array_release;
    return 0;
}

int64_t uva__task_bytes(const struct ArrowAsyncTask *task)
{
    (void)task;
    return 1;
}

static bool task_claim(const struct ArrowAsyncTask *task)
{
    const uint64_t *spent = task->private_data;
    uint64_t unclaimed = 0;

    return uva__atomic64_cas(&world.claims[spent - world.spent], &unclaimed, 1);
}

int uva__task_extract(struct ArrowAsyncTask *task, struct ArrowDeviceArray *out)
{
    if (task_claim(task))
        return task_extract(task, out);
    return out == NULL ? 0 : ECANCELED;
}

/* The loop drops a task once, or it may go round for ever. */
void uva__task_drop(struct ArrowAsyncTask *task)
{
    const uint64_t *spent = task->private_data;

    if (world.dropped[spent - world.spent]++ != 0)
        sim_fail("the loop drops a task again");
    if (!uva__task_is_ours(task) || task_claim(task))
        task_spend(task);
}

/* It is the first block that the arena gives. */
static struct uva__task_ring *task_ring_at_start(void)
{
    return (void *)world.bytes;
}

/* ---- the loop, with a producer on it ------------------------------------ */

static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    world.requested += (uint64_t)n;
    if (world.requested - task_ring_at_start()->locked.taken.tasks >
        (uint64_t)cases[now].batches)
        sim_fail("more is asked for than there is room for");
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
    world.cancels++;
}

static bool producer_has_some(void)
{
    return world.ended_code_known < cases[now].tasks &&
           world.ended_code_known < world.requested && !world.paused &&
           world.cancels == 0;
}

static bool task_is_wrapped(uint64_t number)
{
    return cases[now].kind == WRAPPED ||
           (cases[now].kind == MIXED && number % 2 == 1);
}

static void producer_on_wakeup(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncTask task;

    while (producer_has_some()) {
        task.extract_data = task_is_wrapped(world.ended_code_known)
                                ? task_extract
                                : uva__task_extract;
        task.private_data = &world.spent[world.ended_code_known++];
        sim_plain(task.private_data);
        (void)handler->on_next_task(handler, &task, NULL);
        if (cases[now].dribbles)
            break;
    }
    world.producer.wakeup.queued = producer_has_some();
    if (world.ended ||
        (world.ended_code_known < cases[now].tasks && world.cancels == 0))
        return;
    world.ended = true;
    if (world.cancels == 0)
        (void)handler->on_next_task(handler, NULL, NULL);
    handler->release(handler);
}

static bool loop_is_posted(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0;
}

static void loop_run(void *arg)
{
    struct ArrowAsyncDeviceStreamHandler *handler = world.loop.handler;
    struct ArrowSchema schema = {.format = "+s"};

    (void)handler->on_schema(handler, &schema);
    while (world.done == 0) {
        if (cases[now].cancels && sim_choose(2) == 1)
            uva_stream_cancel(&world.stream, ECANCELED, "no more of it");
        producer_on_wakeup(handler);
        if (mutant == DROPS_ALL)
            task_ring_at_start()->locked.kept = 0;
        if (uva__atomic64_exchange(&world.posted, 0) != 0)
            world.stream.sink->ops->on_wakeup(&world.stream);
        if (mutant == NO_REFILL)
            task_ring_at_start()->locked.refill_at = UINT64_MAX;
        if (mutant == NOT_AWAITED)
            task_ring_at_start()->locked.awaited = false;
        if (world.done == 0 && !producer_has_some() &&
            (world.cancels == 0 || world.ended))
            sim_wait(loop_is_posted, arg);
    }
}

/* ---- the reader --------------------------------------------------------- */

static void reader_run(void *arg)
{
    struct uva__task_ring *o = arg;
    struct ArrowDeviceArray array;

    for (;;) {
        if (uva__task_ring_next(o, &array) != 0) {
            if (!cases[now].cancels)
                sim_fail("a read fails");
            break;
        }
        if (array.array.release == NULL)
            break;
        uva_array_release(&array);
        world.read++;
        if (cases[now].releases)
            break;
    }
    uva__task_ring_release(o);
}

/* ---- test programs ------------------------------------------------------ */

static void first(void *arg)
{
    const struct uva_window window = {.batches = cases[now].batches,
                                      .bytes = cases[now].bytes};
    struct uva__task_ring *o;

    (void)arg;
    if (uva__task_ring_start(&world.stream, &window, &o, NULL) != 0)
        sim_fail("no task ring");
    world.stream.sink->ops->begin(&world.stream);
    sim_spawn("reader", reader_run, o);
    loop_run(arg);
}

static void prepare(void)
{
    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    world.rt.allocator = (struct uva_allocator){.alloc = explore_alloc,
                                                .dealloc = explore_dealloc,
                                                .ctx = &world.arena};
    world.rt.alive.word = &world.alive;
    world.alive.value = 1;
    world.producer.abi = (struct ArrowAsyncProducer){
        .device_type = ARROW_DEVICE_CPU,
        .request = producer_request,
        .cancel = producer_cancel,
    };
    world.stream.rt = &world.rt;
    world.producer.source = &world.source;
    world.producer.loop = &world.loop;
    world.stream.tail = &world.producer;
}

static const char *wrong(void)
{
    if (!cases[now].cancels &&
        world.read != (cases[now].releases ? 1 : cases[now].tasks))
        return "the reader has not got all";
    for (uint64_t i = 0; i < world.ended_code_known; i++) {
        if (world.spent[i] != 1)
            return "a task is not spent";
    }
    return world.done == 1 && world.released == 1 ? NULL
                                                  : "the stream is not over";
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

START_TEST(loop_and_reader_do_not_wait_for_each_other)
{
    for (int i = 0; i < CASES; i++)
        explore_holds(kernel_of(i));
}
END_TEST

START_TEST(its_words_must_be_exchanged)
{
    const struct uva__task_ring *o = task_ring_at_start();

    explore_finds_spoiled(kernel_of(PLAIN), &o->parker.sleeping, SIM_SPLIT,
                          "sleeping is loaded and stored");
    explore_finds_spoiled(kernel_of(OURS_CANCEL), &world.claims[0], SIM_SPLIT,
                          "the claim of a task is loaded and stored");
    explore_finds_spoiled(kernel_of(OURS_FLOWS_CANCEL), &world.claims[1],
                          SIM_SPLIT,
                          "the claim of the second one is loaded and stored");
}
END_TEST

START_TEST(its_mutants_are_found)
{
    mutant = NO_REFILL;
    explore_finds(kernel_of(PLAIN), "the reader has no more requested");
    explore_finds(kernel_of(ALL_OURS), "the same, with our tasks");
    mutant = NOT_AWAITED;
    explore_finds(kernel_of(BYTES), "the loop does not wait for room");
    explore_finds(kernel_of(OURS_BYTES), "the same, with our tasks");
    mutant = DROPS_ALL;
    explore_finds(kernel_of(CANCEL), "a cancel drops what the reader has");
    explore_finds(kernel_of(BOTH_CANCEL), "the same, with both kinds");
    mutant = SOUND;
}
END_TEST

START_TEST(loop_and_reader_do_not_wait_in_weak_memory)
{
    const struct uva__task_ring *o = task_ring_at_start();

    for (int i = 0; i < CASES; i++)
        explore_holds_weak(kernel_of(i), 2);
    explore_finds_weak(kernel_of(PLAIN), &o->lock, SIM_UNACQUIRED,
                       "the lock is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &o->lock, SIM_UNRELEASED,
                       "the lock is dropped without a release");
    explore_finds_weak(kernel_of(BYTES), &o->lock, SIM_UNACQUIRED,
                       "the lock is taken without an acquire, full of bytes");
    explore_finds_weak(kernel_of(BYTES), &o->lock, SIM_UNRELEASED,
                       "the lock is dropped without a release, full of bytes");
}
END_TEST

int main(void)
{
    return explore_main("task ring", loop_and_reader_do_not_wait_for_each_other,
                        its_words_must_be_exchanged, its_mutants_are_found,
                        loop_and_reader_do_not_wait_in_weak_memory, NULL);
}
