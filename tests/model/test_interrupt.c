/* SPDX-License-Identifier: Apache-2.0 */
/* source/interrupt.h: a worker calls its source, twice if it is not stopped,
 * and closes it; a loop cancels and has an extra thread interrupt. If the
 * source is being called, it is interrupted until it returns, and never after
 * it was closed; otherwise it is not called any more. */
#include "source/interrupt.h"

#include <check.h>

#include "model/explore.h"

enum mutant {
    NONE,
    TWO_WORDS,
    INTERRUPTS_WITHOUT_A_CHECK,
    INTERRUPTS_ONCE,
    LEAVES_WITHOUT_WAITING,
    CALLS_WITHOUT_ENTRY,
    COUNTS_AFTER_IT_CANCELLED
};

/* How the source behaves. */
static const struct {
    const char *name;
    bool stuck;   /* a call returns only when interrupted */
    bool forgets; /* a call ignores an interrupt before it */
} sources[] = {
    {"phase, a source that returns", false, false},
    {"phase, a source that waits", true, false},
    {"phase, a source that waits and forgets", true, true},
};

enum { RETURNS, WAITS, FORGETS, SOURCES };

static struct {
    struct uva__interrupt phase;
    struct uva__atomic64 cancelled;    /* for TWO_WORDS */
    struct uva__atomic64 interrupted;  /* the source was interrupted */
    struct uva__atomic64 stuck;        /* calls counted as stuck */
    struct uva__atomic64 extra_thread; /* 1: needed; 2: not needed */
    bool closed;
} world;

static enum mutant mutant; /* mutant of the case */
static int now;            /* index of the source */

/* ---- the source --------------------------------------------------------- */

static bool source_is_interrupted(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.interrupted) != 0;
}

static void source_call(void)
{
    sim_point();
    if (world.extra_thread.value == 2)
        sim_fail("a source is called after a cancel that found nobody inside");
    if (sources[now].forgets)
        uva__atomic64_exchange(&world.interrupted, 0);
    if (sources[now].stuck)
        sim_wait(source_is_interrupted, NULL);
    else
        sim_point();
}

static void source_interrupt(void)
{
    sim_plain(&world.closed);
    if (world.closed)
        sim_fail("a source is interrupted after it was closed");
    sim_point();
    if (world.closed)
        sim_fail("a source is closed while it is interrupted");
    uva__atomic64_exchange(&world.interrupted, 1);
}

/* ---- the worker --------------------------------------------------------- */

static bool worker_enter(void)
{
    if (mutant != TWO_WORDS)
        return uva__interrupt_enter(&world.phase);
    uva__atomic64_store(&world.phase.word, INTERRUPT_INSIDE);
    if (uva__atomic64_load(&world.cancelled) == 0)
        return true;
    uva__atomic64_and(&world.phase.word, ~(uint64_t)INTERRUPT_INSIDE);
    return false;
}

static uint64_t worker_leave(void)
{
    if (mutant == LEAVES_WITHOUT_WAITING)
        return uva__atomic64_and(&world.phase.word, INTERRUPT_CANCEL);
    return uva__interrupt_leave(&world.phase);
}

static void worker_run(void *arg)
{
    uint64_t phase;

    (void)arg;
    if (worker_enter()) {
        source_call();
        phase = mutant == CALLS_WITHOUT_ENTRY ? worker_leave() : 0;
        if (!uva__interrupt_is_cancelled(&world.phase))
            source_call();
        if (mutant != CALLS_WITHOUT_ENTRY)
            phase = worker_leave();
        if (phase & INTERRUPT_STUCK)
            uva__atomic64_sub(&world.stuck, 1);
        if (phase & INTERRUPT_CANCEL)
            uva__interrupt_wake(&world.phase);
    }
    sim_plain(&world.closed);
    world.closed = true;
}

/* ---- the canceller ------------------------------------------------------ */

static bool loop_cancel(void)
{
    uint64_t word;

    if (mutant != TWO_WORDS)
        return uva__interrupt_cancel(&world.phase);
    uva__atomic64_store(&world.cancelled, 1); /* a load may pass this store */
    word = uva__atomic64_load(&world.phase.word);
    return (word & INTERRUPT_INSIDE) &&
           uva__atomic64_cas(&world.phase.word, &word,
                             word | INTERRUPT_CANCEL | INTERRUPT_STUCK);
}

/* Does the same as uva__reader_worker_cancel(). */
static void loop_run(void *arg)
{
    bool inside;

    (void)arg;
    if (mutant != COUNTS_AFTER_IT_CANCELLED)
        uva__atomic64_add(&world.stuck, 1);
    inside = loop_cancel();
    if (mutant == COUNTS_AFTER_IT_CANCELLED && inside &&
        (uva__atomic64_load(&world.phase.word) & INTERRUPT_INSIDE))
        uva__atomic64_add(&world.stuck, 1);
    if (mutant != COUNTS_AFTER_IT_CANCELLED && !inside)
        uva__atomic64_sub(&world.stuck, 1);
    uva__atomic64_store(&world.extra_thread, inside ? 1 : 2);
}

static bool uncapped_is_wanted(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.extra_thread) != 0;
}

/* Does the same as uva__reader_worker_interrupt(). */
static void uncapped_run(void *arg)
{
    sim_wait(uncapped_is_wanted, arg);
    if (world.extra_thread.value == 2)
        return;
    if (mutant == INTERRUPTS_WITHOUT_A_CHECK) {
        source_interrupt();
        return;
    }
    while (uva__interrupt_begin(&world.phase)) {
        source_interrupt();
        uva__interrupt_end(&world.phase);
        if (mutant == INTERRUPTS_ONCE)
            return;
        uva__interrupt_await(&world.phase, 100);
    }
}

static void first(void *arg)
{
    sim_spawn("lane", worker_run, arg);
    sim_spawn("guest", uncapped_run, arg);
    loop_run(arg);
}

static const char *wrong(void)
{
    if (world.phase.word.value & ~(uint64_t)INTERRUPT_CANCEL)
        return "the word is not as it is outside";
    return world.stuck.value == 0 ? NULL : "a call counts as stuck for ever";
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(int source)
{
    now = source;
    kernel.name = sources[source].name;
    return &kernel;
}

START_TEST(a_call_is_interrupted_and_a_closed_source_is_not)
{
    for (int i = 0; i < SOURCES; i++)
        explore_holds(kernel_of(i));
}
END_TEST

static void finds(enum mutant which, int source, const char *name)
{
    mutant = which;
    explore_finds(kernel_of(source), name);
    mutant = NONE;
}

START_TEST(its_mutants_are_found)
{
    finds(TWO_WORDS, WAITS, "inside and cancelled are two words");
    finds(INTERRUPTS_WITHOUT_A_CHECK, RETURNS,
          "interrupts without a look at the word");
    finds(INTERRUPTS_ONCE, FORGETS, "interrupts once");
    finds(LEAVES_WITHOUT_WAITING, RETURNS, "leaves while an interrupt runs");
    finds(CALLS_WITHOUT_ENTRY, RETURNS, "leaves, and calls once more");
    finds(COUNTS_AFTER_IT_CANCELLED, RETURNS,
          "counts a stuck call after it may be over");
}
END_TEST

START_TEST(its_word_must_be_exchanged)
{
    for (int i = 0; i < SOURCES; i++)
        explore_finds_spoiled(kernel_of(i), &world.phase.word, SIM_SPLIT,
                              "the word is loaded and stored");
}
END_TEST

START_TEST(a_call_is_interrupted_in_weak_memory)
{
    for (int i = 0; i < SOURCES; i++)
        explore_holds_weak(kernel_of(i), 0);
    explore_finds_weak(kernel_of(RETURNS), &world.phase.word, SIM_UNACQUIRED,
                       "a call is left without an acquire");
    explore_finds_weak(kernel_of(RETURNS), &world.phase.word, SIM_UNRELEASED,
                       "an interrupt ends without a release");
    mutant = TWO_WORDS;
    explore_finds_weak(kernel_of(WAITS), NULL, SIM_SOUND,
                       "inside and cancelled are two words");
    mutant = NONE;
}
END_TEST

int main(void)
{
    return explore_main("interrupt",
                        a_call_is_interrupted_and_a_closed_source_is_not,
                        its_mutants_are_found, its_word_must_be_exchanged,
                        a_call_is_interrupted_in_weak_memory, NULL);
}
