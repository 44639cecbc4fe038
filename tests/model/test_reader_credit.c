/* SPDX-License-Identifier: Apache-2.0 */
/* source/reader_credit.h: a loop grants slots, a worker fills them, pauses, is
 * resumed and closes the source; two workers can run its job. No slot is
 * forgotten, no two workers hold the source, it is closed once, and every
 * filled slot is taken or discarded once. */
#include "source/reader_credit.h"

#include <check.h>

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
    struct uva__atomic64 word, credits; /* `credits`: only for TWO_WORDS */
    struct uva__atomic64 jobs;          /* jobs to run */
    struct uva__atomic64 posted;        /* wake-ups of the loop */
    struct uva__atomic64 tail;          /* slots filled */
    uint64_t taken, discard_from;       /* counts of the loop */
    bool stopped, seen_closed, over;    /* state of the loop */
    uint64_t left;                      /* worker: credits taken and not used */
    bool paused;                        /* worker: has paused once */
    uint64_t discarded;                 /* slots discarded by the worker */
    uint64_t owner;                     /* the worker that holds the source */
    uint64_t closed;                    /* how often the source was closed */
    uint64_t resting;                   /* idle workers */
    uint64_t slots[GRANTS];             /* plain memory: one slot each */
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

static void worker_close(uint64_t me)
{
    bool is_the_loops = true;

    worker_must_own(me);
    if (world.closed++ != 0)
        sim_fail("the source is closed twice");
    if (mutant == CLOSES_WHATEVER_CAME)
        uva__reader_credit_set_closed(&world.word);
    else
        is_the_loops = uva__reader_credit_finish(&world.word);
    if (!is_the_loops) {
        sim_plain(&world.discard_from);
        world.discarded = world.tail.value - world.discard_from;
        uva__reader_credit_set_closed(&world.word);
    }
    worker_post();
}

static enum uva__reader_credit_next worker_refill(void)
{
    sim_plain(&world.owner); /* it may give up the source */
    if (mutant == STOPS_WITHOUT_A_CHECK &&
        uva__atomic64_load(&world.word) >> CREDIT_SHIFT == 0) {
        uva__atomic64_and(&world.word, ~(uint64_t)CREDIT_RUNNING);
        return UVA__READER_CREDIT_IDLE;
    }
    if (mutant != TWO_WORDS)
        return uva__reader_credit_refill(&world.word, &world.left);
    world.left = uva__atomic64_exchange(&world.credits, 0);
    if (world.left > 0)
        return UVA__READER_CREDIT_GO;
    uva__atomic64_and(&world.word, ~(uint64_t)CREDIT_RUNNING);
    return UVA__READER_CREDIT_IDLE;
}

static void worker_fill(uint64_t me)
{
    sim_point(); /* a call of the source */
    worker_must_own(me);
    world.left--;
    sim_plain(&world.slots[uva__atomic64_peek(&world.tail)]);
    uva__atomic64_store(&world.tail, uva__atomic64_peek(&world.tail) + 1);
    worker_post();
}

static bool worker_wants_to_pause(void)
{
    const bool wants =
        cases[now].pauses && !world.paused && world.tail.value > 0;

    world.paused = world.paused || wants;
    return wants;
}

static enum worker_end worker_fill_all(uint64_t me)
{
    while (world.left > 0) {
        if (uva__atomic64_peek(&world.tail) == cases[now].ends_at)
            return WORKER_TO_CLOSE;
        worker_fill(me);
    }
    return WORKER_IDLE;
}

static enum worker_end worker_work(uint64_t me)
{
    if (uva__atomic64_load(&world.word) & CREDIT_CANCEL)
        return WORKER_TO_CLOSE;
    for (;;) {
        if (worker_fill_all(me) == WORKER_TO_CLOSE)
            return WORKER_TO_CLOSE;
        if (worker_wants_to_pause()) {
            if (!uva__reader_credit_pause(&world.word))
                return WORKER_TO_CLOSE;
            worker_post();
            return WORKER_IDLE;
        }
        switch (worker_refill()) {
        case UVA__READER_CREDIT_STOP:
            return WORKER_TO_CLOSE;
        case UVA__READER_CREDIT_IDLE:
            return WORKER_IDLE;
        case UVA__READER_CREDIT_GO:
            break;
        }
    }
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

static void loop_grant(void)
{
    if (mutant == TWO_WORDS) {
        uva__atomic64_add(&world.credits, 1);
        if (!(uva__atomic64_or(&world.word, CREDIT_RUNNING) & CREDIT_RUNNING))
            loop_start_worker();
    } else if (mutant == GRANTS_OVER_A_PAUSE) {
        if (!(uva__atomic64_add(&world.word, 1 << CREDIT_SHIFT) &
              (CREDIT_RUNNING | CREDIT_CLOSED))) {
            uva__reader_credit_run(&world.word);
            loop_start_worker();
        }
    } else if (uva__reader_credit_grant(&world.word, 1)) {
        loop_start_worker();
    }
}

static void loop_take(void)
{
    const uint64_t tail = uva__atomic64_load(&world.tail);

    while (world.taken < tail)
        sim_plain(&world.slots[world.taken++]);
}

/* Does the same as reader_stop(). */
static void loop_stop(void)
{
    uint64_t word;

    world.stopped = true;
    loop_take();
    sim_plain(&world.discard_from);
    world.discard_from = world.taken;
    word = uva__reader_credit_cancel(&world.word);
    if (word & CREDIT_CLOSED) {
        loop_take();
        world.seen_closed = true;
        return;
    }
    if ((word & CREDIT_RUNNING) && mutant != STARTS_WHOEVER_HAS_IT)
        return;
    if (mutant == CANCELS_WITHOUT_STARTING)
        return;
    uva__reader_credit_run(&world.word);
    loop_start_worker();
}

static void loop_on_wakeup(void)
{
    const uint64_t word = uva__atomic64_load(&world.word);

    if (world.stopped) {
        world.seen_closed = world.seen_closed || (word & CREDIT_CLOSED);
        return;
    }
    loop_take();
    if (!(word & CREDIT_PAUSED))
        return;
    uva__reader_credit_unpause(&world.word);
    loop_start_worker();
}

static bool loop_has_events(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.posted) != 0 ||
           (uva__atomic64_load(&world.jobs) == 0 && world.resting == WORKERS);
}

static void loop_run(void *arg)
{
    uva__reader_credit_run(&world.word);
    loop_start_worker();
    for (int i = 0; i < GRANTS; i++)
        loop_grant();
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
    if (world.taken + world.discarded != world.tail.value)
        return "a slot is forgotten, or taken twice";
    if (cases[now].cancels && !(world.seen_closed && world.closed == 1))
        return "the source is not closed";
    if (!cases[now].cancels && world.tail.value != GRANTS)
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

START_TEST(its_word_must_be_exchanged)
{
    explore_finds_spoiled(kernel_of(PLAIN), &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
    explore_finds_spoiled(kernel_of(CANCEL), &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
    explore_finds_spoiled(kernel_of(PAUSE), &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
}
END_TEST

START_TEST(no_slot_is_lost_in_weak_memory)
{
    for (int i = 0; i < CASES; i++)
        explore_holds_weak(kernel_of(i), 3);
    explore_finds_weak(kernel_of(PLAIN), &world.word, SIM_UNACQUIRED,
                       "the source is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.word, SIM_UNRELEASED,
                       "the source is given up without a release");
    explore_finds_weak(kernel_of(CANCEL), &world.word, SIM_UNACQUIRED,
                       "a cancel is seen without an acquire");
    explore_finds_weak(kernel_of(CANCEL), &world.word, SIM_UNRELEASED,
                       "a cancel is made without a release");
    explore_finds_weak(kernel_of(PLAIN), &world.tail, SIM_UNACQUIRED,
                       "a slot is taken without an acquire");
    explore_finds_weak(kernel_of(PLAIN), &world.tail, SIM_UNRELEASED,
                       "a slot is filled without a release");
}
END_TEST

int main(void)
{
    return explore_main("reader credit",
                        no_slot_is_lost_and_the_source_comes_home_once,
                        its_mutants_are_found, its_word_must_be_exchanged,
                        no_slot_is_lost_in_weak_memory, NULL);
}
