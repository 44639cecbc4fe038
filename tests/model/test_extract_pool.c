/* SPDX-License-Identifier: Apache-2.0 */
/* stage/extract_pool.c, unchanged, between a loop that grants entries and
 * stops, and the two workers it may use. Each entry is extracted once or taken
 * back once, no entry is forgotten, and no worker stays counted. */
#include "stage/extract_pool.h"

#include <check.h>
#include <string.h>

#include "model/explore.h"
#include "uvarrow/arrow.h"

enum { ENTRIES = 3, ROOM = 2, WORKERS = 2, ARENA = 2048, JOBS = ENTRIES + 1 };

static struct {
    struct uva__rt rt;
    struct uva__meter meter;
    struct uva__producer producer;
    struct uva__measure measure;
    struct uva__extract_pool extract_pool;
    struct uva__flight_batch entries[ENTRIES];
    struct uva__task slots[ENTRIES];
    uint64_t spent[ENTRIES];              /* how often each was extracted */
    uint64_t granted, taken_back, done;   /* entries */
    struct uva__atomic64 submitted, over; /* jobs submitted; 1: all are */
    struct uva__job *jobs[JOBS];
    uint64_t put;                 /* jobs in the array */
    uint64_t run;                 /* jobs run */
    struct uva__atomic64 yielded; /* 1: a worker has yielded */
    int64_t refs, begun;
    struct explore_arena arena;
    _Alignas(64) char bytes[ARENA];
} world;

static bool stops;  /* the loop stops at once */
static bool yields; /* one worker yields after its first entry */
static bool loses;  /* a mutant: the second job is lost */

/* ---- the surroundings --------------------------------------------------- */

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

bool uva__rt_job_begin(struct uva__rt *rt)
{
    (void)rt;
    world.begun++;
    return true;
}

/* After each run of a worker, and after the loop has given a job up. */
void uva__rt_job_end(struct uva__rt *rt)
{
    if ((int64_t)uva__atomic64_load(&rt->stats.calls_stuck) < 0)
        sim_fail("fewer than no calls are stuck");
    world.begun--;
}

bool uva__rt_wake(struct uva__rt *rt, struct uva__wakeup *wakeup)
{
    (void)rt;
    (void)wakeup;
    return false;
}

void uva__lane_submit_counted(struct uva__jobs *jobs, enum uva_lane lane,
                              struct uva__job *job,
                              struct uva__counter *wakeups)
{
    const uint64_t at = world.put++;

    (void)jobs;
    (void)lane;
    (void)wakeups;
    if (at == (uint64_t)(yields ? JOBS : ENTRIES))
        sim_fail("more jobs than cells");
    if (loses && at == 1)
        return;
    world.jobs[at] = job;
    uva__atomic64_add(&world.submitted, 1);
}

enum uva__job_place uva__lane_give_up(struct uva__jobs *jobs,
                                      enum uva_lane lane, struct uva__job *job)
{
    (void)jobs;
    (void)lane;
    (void)job;
    return UVA__JOB_GONE;
}

bool uva__lane_must_yield(const struct uva__jobs *jobs, enum uva_lane lane,
                          enum uva__place place)
{
    (void)jobs;
    (void)lane;
    (void)place;
    return yields && uva__atomic64_exchange(&world.yielded, 1) == 0;
}

void uva__lane_raise(struct uva__jobs *jobs, enum uva_lane lane,
                     struct uva__job *job)
{
    (void)jobs;
    (void)lane;
    (void)job;
}

/* ---- workers ------------------------------------------------------------ */

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static int entry_extract(struct ArrowAsyncTask *task,
                         struct ArrowDeviceArray *out)
{
    static const void *no_buffers[1];
    uint64_t *spent = task->private_data;

    sim_plain(spent);
    sim_point();
    if (++*spent != 1)
        sim_fail("a cell is extracted twice");
    memset(out, 0, sizeof(*out));
    memcpy(out, task, sizeof(*task)); /* the array lies where the promise was:
                                         so a second extraction is found */
    out->array.n_buffers = 1;
    out->array.buffers = no_buffers;
    out->array.release = array_release;
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    return 0;
}

static bool worker_is_wanted(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.submitted) > world.run ||
           uva__atomic64_load(&world.over) != 0;
}

static void worker_run(void *arg)
{
    struct uva__job *job;

    for (;;) {
        sim_wait(worker_is_wanted, arg);
        if (world.submitted.value == world.run)
            return;
        job = world.jobs[world.run++];
        job->run(job);
    }
}

/* ---- the loop ----------------------------------------------------------- */

static void loop_grant(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct uva__flight_batch *entry = &world.entries[world.granted];

        sim_plain(&world.spent[world.granted]);
        entry->slot = &world.slots[world.granted];
        entry->slot->promise = (struct ArrowAsyncTask){
            .extract_data = entry_extract,
            .private_data = &world.spent[world.granted++],
        };
        uva__extract_pool_grant(&world.extract_pool, entry);
    }
    uva__extract_pool_publish(&world.extract_pool);
}

static bool one_is_done(void *arg)
{
    (void)arg;
    return !uva__mpsc_is_empty(&world.extract_pool.flight.done);
}

static void loop_take_done(void)
{
    struct uva__link *link = uva__mpsc_take(&world.extract_pool.flight.done);
    const struct uva__flight_batch *batch;

    for (; link != NULL; link = link->next) {
        batch = uva__container_of(link, struct uva__flight_batch, work_link);
        sim_plain(&world.spent[batch - world.entries]);
        world.done++;
    }
}

static void loop_run(void *arg)
{
    struct uva__list back = {0};
    struct uva__link *link;

    loop_grant(ROOM);
    if (yields)
        uva__extract_pool_want(&world.extract_pool, 2);
    if (!stops) {
        sim_wait(one_is_done, arg);
        loop_take_done();
        loop_grant(1);
    } else {
        uva__extract_pool_stop(&world.extract_pool, &back);
    }
    while ((link = uva__list_pop(&back)) != NULL) {
        uint64_t *spent =
            uva__container_of(link, struct uva__flight_batch, work_link)
                ->slot->promise.private_data;

        sim_plain(spent);
        if (++*spent != 1)
            sim_fail("what is taken back is a worker's");
        world.taken_back++;
    }
    uva__atomic64_add(&world.over, 1);
}

static void first(void *arg)
{
    static const struct ArrowSchema schema = {.format = "+s"};

    uva__measure_lend(&world.measure, &world.rt.allocator, &schema);
    if (uva__extract_pool_prepare(&world.extract_pool, &world.measure) != 0)
        sim_fail("no memory");
    for (int i = 0; i < WORKERS; i++)
        sim_spawn("worker", worker_run, arg);
    loop_run(arg);
}

/* ---- test programs ------------------------------------------------------ */

static void prepare(void)
{
    world.arena = (struct explore_arena){.bytes = world.bytes,
                                         .size = sizeof(world.bytes)};
    world.rt.allocator = (struct uva_allocator){.alloc = explore_alloc,
                                                .dealloc = explore_dealloc,
                                                .ctx = &world.arena};
    world.extract_pool.flight.stage.source.rt = &world.rt;
    world.extract_pool.flight.stage.source.meter = &world.meter;
    world.meter.point.rt = &world.rt;
    world.extract_pool.flight.stage.source.producer = &world.producer;
    world.extract_pool.workers = WORKERS;
}

static const char *wrong(void)
{
    const struct uva__link *link =
        uva__mpsc_take(&world.extract_pool.flight.done);
    uint64_t done = world.done;

    for (uint64_t i = 0; i < world.granted; i++)
        if (world.spent[i] != 1)
            return "a cell is left lying";
    for (; link != NULL; link = link->next)
        done++;
    if (done + world.taken_back != world.granted)
        return "a cell is not done";
    if (world.extract_pool.locked.active != 0)
        return "a worker stays counted";
    if (world.rt.stats.calls_stuck.value != 0)
        return "a call stays stuck";
    return world.refs == 0 && world.begun == 0 ? NULL : "a count is not back";
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .prepare = prepare,
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(bool with_stop)
{
    stops = with_stop;
    kernel.name = stops ? "extract pool, a stop" : "extract pool";
    return &kernel;
}

static const struct explore_kernel *kernel_that_yields(void)
{
    (void)kernel_of(true);
    kernel.name = "extract pool, a yield and a stop";
    return &kernel;
}

START_TEST(every_cell_is_extracted_or_taken_back_once)
{
    explore_holds(kernel_of(false));
    explore_holds(kernel_of(true));
    yields = true;
    explore_holds(kernel_that_yields());
    yields = false;
}
END_TEST

START_TEST(its_words_must_be_exchanged)
{
    explore_finds_spoiled(kernel_of(false),
                          &world.extract_pool.flight.done.newest, SIM_SPLIT,
                          "what is done is loaded and stored");
    explore_finds_spoiled(kernel_of(true), &world.rt.stats.calls_stuck,
                          SIM_SPLIT, "stuck calls are loaded and stored");
}
END_TEST

START_TEST(each_extractor_must_be_submitted)
{
    loses = true;
    explore_finds(kernel_of(false), "a job is lost");
    explore_finds(kernel_of(true), "a job is lost");
    loses = false;
}
END_TEST

START_TEST(every_cell_is_extracted_once_in_weak_memory)
{
    explore_holds_weak(kernel_of(false), 2);
    explore_holds_weak(kernel_of(true), 2);
    yields = true;
    explore_holds_weak(kernel_that_yields(), 1);
    yields = false;
    explore_finds_weak(kernel_of(false), &world.extract_pool.lock,
                       SIM_UNACQUIRED, "a cell is claimed without an acquire");
    explore_finds_weak(kernel_of(false), &world.extract_pool.lock,
                       SIM_UNRELEASED, "cells are granted without a release");
    explore_finds_weak(kernel_of(false), &world.extract_pool.flight.done.newest,
                       SIM_UNACQUIRED, "what is done is taken without one");
    explore_finds_weak(kernel_of(false), &world.extract_pool.flight.done.newest,
                       SIM_UNRELEASED, "a cell is done without a release");
}
END_TEST

int main(void)
{
    return explore_main(
        "extract pool", every_cell_is_extracted_or_taken_back_once,
        its_words_must_be_exchanged, each_extractor_must_be_submitted,
        every_cell_is_extracted_once_in_weak_memory, NULL);
}
