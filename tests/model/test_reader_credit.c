/* SPDX-License-Identifier: Apache-2.0 */
/* source/reader_credit.h, with an inbox: a loop grants slots, a worker fills
 * them, pauses, is resumed and closes the source; two workers can run its job.
 * No slot is forgotten, no two workers hold the source, it is closed once, and
 * every filled slot is taken or discarded once. */
#include "source/reader_credit.h"

#include <check.h>

#include "base/mpsc.h"
#include "model/explore.h"

enum { GRANTS = 2, WORKERS = 2 };

enum mutant {
    NONE,
    TWO_WORDS,
    STOPS_WITHOUT_A_CHECK,
    GRANTS_OVER_A_PAUSE,
    CANCELS_WITHOUT_STARTING,
    STARTS_WHOEVER_HAS_IT,
    CLOSES_WHATEVER_CAME
};

/* Further events besides grants. */
static struct {
    const char *name;
    uint64_t ends_at; /* slots that the source can fill */
    bool cancels;     /* the loop cancels after granting */
    bool pauses;      /* the worker pauses after its first slot */
} const cases[] = {
    {"reader credit", UINT64_MAX, false, false},
    {"reader credit, a pause", UINT64_MAX, false, true},
    {"reader credit, a cancel", UINT64_MAX, true, false},
    {"reader credit, an end and a cancel", 1, true, false},
    {"reader credit, a pause and a cancel", UINT64_MAX, true, true},
};

enum { PLAIN, PAUSE, CANCEL, END, PAUSE_AND_CANCEL, CASES };

static struct {
    struct uva__reader_credit credit;
    struct uva__atomic64 credits;    /* only for TWO_WORDS */
    struct uva__mpsc fresh;          /* slots filled */
    struct uva__atomic64 jobs;       /* jobs to run */
    struct uva__atomic64 posted;     /* wake-ups of the loop */
    uint64_t taken;                  /* slots taken by the loop */
    bool stopped, seen_closed, over; /* state of the loop */
    uint64_t left;                   /* worker: credits taken and not used */
    uint64_t done;                   /* worker: slots filled */
    bool paused;                     /* worker: has paused once */
    uint64_t discarded;              /* slots discarded by the worker */
    uint64_t owner;                  /* the worker that holds the source */
    uint64_t closed;                 /* how often the source was closed */
    uint64_t resting;                /* idle workers */
    struct uva__link slots[GRANTS];  /* plain memory: one slot each */
} world;

static enum mutant mutant; /* mutant of the case */
static int now;            /* index of the case */

/* ---- the worker --------------------------------------------------------- */

enum worker_end { WORKER_IDLE, WORKER_TO_CLOSE };

static void worker_must_own(uint64_t me)
{
    sim_plain(&world.owner);
    if (world.owner != me)
        sim_fail("two workers have the source");
}

static void worker_post(void)
{
    uva__atomic64_exchange(&world.posted, 1);
}

static uint64_t take_all(void)
{
    const struct uva__link *link = uva__mpsc_take(&world.fresh);
    uint64_t count = 0;

    for (; link != NULL; link = link->next, count++)
        sim_plain(link);
    return count;
}

static bool is_cancelled(void)
{
    unsigned facts;

    (void)uva__reader_credit_look(&world.credit, &facts);
    return (facts & READER_CANCELLED) != 0;
}

static void worker_close(uint64_t me)
{
    worker_must_own(me);
    if (world.closed++ != 0)
        sim_fail("the source is closed twice");
    if (mutant != CLOSES_WHATEVER_CAME && is_cancelled())
        world.discarded = take_all();
    sim_plain(&world.owner);
    uva__reader_credit_state(&world.credit, READER_ENDED, UVA__READER_CLOSED);
    worker_post();
}

/* The two halves of a refill, without the lock between them. */
static enum uva__reader_credit_next worker_refill_in_halves(void)
{
    enum uva__reader_credit_next next;

    if (mutant == TWO_WORDS) {
        world.left = uva__atomic64_exchange(&world.credits, 0);
    } else {
        uva__lock_take(&world.credit.lock);
        world.left = world.credit.credits;
        world.credit.credits = 0;
        uva__lock_drop(&world.credit.lock);
    }
    if (world.left > 0)
        return UVA__READER_CREDIT_GO;
    uva__lock_take(&world.credit.lock);
    next = world.credit.facts & READER_CANCELLED && mutant == TWO_WORDS
               ? UVA__READER_CREDIT_STOP
               : UVA__READER_CREDIT_IDLE;
    if (next == UVA__READER_CREDIT_IDLE)
        world.credit.owner = UVA__READER_IDLE;
    uva__lock_drop(&world.credit.lock);
    return next;
}

static enum uva__reader_credit_next worker_refill(bool full)
{
    sim_plain(&world.owner); /* it may give up the source */
    return mutant == TWO_WORDS || mutant == STOPS_WITHOUT_A_CHECK
               ? worker_refill_in_halves()
               : uva__reader_credit_refill(&world.credit, full, &world.left);
}

static void worker_fill(uint64_t me)
{
    struct uva__link *slot = &world.slots[world.done];

    sim_point(); /* a call of the source */
    worker_must_own(me);
    world.left--;
    world.done++;
    sim_plain(slot);
    if (uva__mpsc_push(&world.fresh, slot))
        worker_post();
}

static bool worker_wants_to_pause(void)
{
    const bool wants = cases[now].pauses && !world.paused && world.done > 0;

    world.paused = world.paused || wants;
    return wants;
}

static enum worker_end worker_fill_all(uint64_t me)
{
    while (world.left > 0) {
        if (world.done == cases[now].ends_at)
            return WORKER_TO_CLOSE;
        worker_fill(me);
    }
    return WORKER_IDLE;
}

static enum worker_end worker_work(uint64_t me)
{
    enum uva__reader_credit_next next = UVA__READER_CREDIT_GO;
    bool pauses;

    if (is_cancelled())
        return WORKER_TO_CLOSE;
    while (next == UVA__READER_CREDIT_GO) {
        if (worker_fill_all(me) == WORKER_TO_CLOSE)
            return WORKER_TO_CLOSE;
        pauses = worker_wants_to_pause();
        next = worker_refill(pauses);
        if (pauses && next == UVA__READER_CREDIT_IDLE)
            worker_post();
    }
    return next == UVA__READER_CREDIT_IDLE ? WORKER_IDLE : WORKER_TO_CLOSE;
}

static bool worker_is_wanted(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.jobs) != 0 || world.over;
}

static bool worker_take_job(void)
{
    uint64_t jobs = uva__atomic64_load(&world.jobs);

    while (jobs > 0) {
        if (uva__atomic64_cas(&world.jobs, &jobs, jobs - 1))
            return true;
    }
    return false;
}

static void worker_run(void *arg)
{
    const uint64_t me = (uint64_t)sim_self();

    while (!world.over) {
        world.resting++;
        sim_wait(worker_is_wanted, arg);
        world.resting--;
        if (!worker_take_job())
            continue;
        world.owner = me;
        if (worker_work(me) == WORKER_TO_CLOSE)
            worker_close(me);
    }
}

/* ---- the loop ----------------------------------------------------------- */

static void loop_start_worker(void)
{
    uva__atomic64_add(&world.jobs, 1);
}

/* Sets the worker off, whatever it does. */
static void loop_force_worker(void)
{
    uva__lock_take(&world.credit.lock);
    world.credit.owner = UVA__READER_RUNNING;
    uva__lock_drop(&world.credit.lock);
    loop_start_worker();
}

static void loop_grant(enum uva__reader_owner from, uint64_t n)
{
    if (mutant == TWO_WORDS) {
        uva__atomic64_add(&world.credits, n);
        n = 0;
    }
    if (uva__reader_credit_grant(&world.credit, from, n))
        loop_start_worker();
}

/* Does the same as reader_pull(). */
static void loop_pull(uint64_t n)
{
    unsigned facts;
    const enum uva__reader_owner owner =
        uva__reader_credit_look(&world.credit, &facts);

    world.taken += take_all();
    if (mutant == GRANTS_OVER_A_PAUSE && owner == UVA__READER_PAUSED) {
        loop_grant(UVA__READER_PAUSED, n);
        loop_force_worker();
        return;
    }
    if (owner == UVA__READER_PAUSED)
        loop_grant(UVA__READER_PAUSED, 0);
    if (n > 0)
        loop_grant(UVA__READER_IDLE, n);
}

/* Does the same as reader_stop(). */
static void loop_stop(void)
{
    enum uva__reader_owner owner;

    world.stopped = true;
    owner = uva__reader_credit_cancel(&world.credit);
    world.taken += take_all();
    if (owner == UVA__READER_CLOSED)
        world.seen_closed = true;
    else if (mutant == STARTS_WHOEVER_HAS_IT)
        loop_force_worker();
    else if (owner != UVA__READER_RUNNING && mutant != CANCELS_WITHOUT_STARTING)
        loop_grant(owner, 0);
}

static void loop_on_wakeup(void)
{
    unsigned facts;

    if (!world.stopped)
        loop_pull(0);
    else if (uva__reader_credit_look(&world.credit, &facts) ==
             UVA__READER_CLOSED)
        world.seen_closed = true;
}

static bool loop_has_events(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0 ||
           (uva__atomic64_load(&world.jobs) == 0 && world.resting == WORKERS);
}

static void loop_run(void *arg)
{
    loop_grant(UVA__READER_IDLE, 0);
    for (int i = 0; i < GRANTS; i++)
        loop_pull(1);
    if (cases[now].cancels)
        loop_stop();
    for (;;) {
        sim_wait(loop_has_events, arg);
        if (uva__atomic64_exchange(&world.posted, 0) == 0)
            break;
        loop_on_wakeup();
    }
    world.over = true;
}

static void first(void *arg)
{
    for (int i = 0; i < WORKERS; i++)
        sim_spawn("worker", worker_run, arg);
    loop_run(arg);
}

static const char *wrong(void)
{
    if (world.taken + world.discarded != world.done)
        return "a slot is forgotten, or taken twice";
    if (cases[now].cancels && !(world.seen_closed && world.closed == 1))
        return "the source is not closed";
    if (!cases[now].cancels && world.done != GRANTS)
        return "credit is lost";
    return NULL;
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(int number)
{
    now = number;
    kernel.name = cases[number].name;
    return &kernel;
}

START_TEST(no_slot_is_lost_and_the_source_comes_home_once)
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
    finds(TWO_WORDS, PLAIN, "credits and running are two words");
    finds(STOPS_WITHOUT_A_CHECK, PLAIN, "gives up what it has not looked at");
    finds(STOPS_WITHOUT_A_CHECK, CANCEL, "gives up what it has not looked at");
    finds(GRANTS_OVER_A_PAUSE, PAUSE, "a grant ends a pause, as its end does");
    finds(CANCELS_WITHOUT_STARTING, CANCEL, "a cancel starts no worker");
    finds(CANCELS_WITHOUT_STARTING, PAUSE_AND_CANCEL,
          "a cancel starts no worker");
    finds(STARTS_WHOEVER_HAS_IT, CANCEL, "a cancel sets off another worker");
    finds(CLOSES_WHATEVER_CAME, END, "closes whatever came meanwhile");
}
END_TEST

START_TEST(its_inbox_must_be_exchanged)
{
    explore_finds_spoiled(kernel_of(PLAIN), &world.fresh.newest, SIM_SPLIT,
                          "the inbox is loaded and stored");
    explore_finds_spoiled(kernel_of(CANCEL), &world.fresh.newest, SIM_SPLIT,
                          "the inbox is loaded and stored");
}
END_TEST

START_TEST(no_slot_is_lost_in_weak_memory)
{
    for (int i = 0; i < CASES; i++)
        explore_holds_weak(kernel_of(i), 3);
    explore_finds_weak(kernel_of(PLAIN), &world.credit.lock, SIM_UNACQUIRED,
                       "the source is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.credit.lock, SIM_UNRELEASED,
                       "the source is given up without a release");
    explore_finds_weak(kernel_of(CANCEL), &world.credit.lock, SIM_UNACQUIRED,
                       "a cancel is seen without an acquire");
    explore_finds_weak(kernel_of(CANCEL), &world.credit.lock, SIM_UNRELEASED,
                       "a cancel is made without a release");
    explore_finds_weak(kernel_of(PLAIN), &world.fresh.newest, SIM_UNACQUIRED,
                       "a slot is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.fresh.newest, SIM_UNRELEASED,
                       "a slot is filled without a release");
}
END_TEST

int main(void)
{
    return explore_main("reader credit",
                        no_slot_is_lost_and_the_source_comes_home_once,
                        its_mutants_are_found, its_inbox_must_be_exchanged,
                        no_slot_is_lost_in_weak_memory, NULL);
}
