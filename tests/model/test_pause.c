/* SPDX-License-Identifier: Apache-2.0 */
/* stream/pausing.h, in two programs. In the first, on_batch returns EAGAIN at
 * each batch, and a writer resumes the stream once it has written that batch,
 * perhaps before on_batch has returned. In the second, another thread pauses
 * the stream, and resumes it later.
 *
 * A resume is lost if the loop sleeps for ever, and a pause if a batch is
 * delivered before the resume that follows. */
#include "stream/pausing.h"

#include <check.h>

#include "model/explore.h"

enum { BATCHES = 3 };

enum mutant {
    NONE,
    FULL_FORGETS_THE_RESUME,
    RESUMES_WITHOUT_A_NOTE,
    BEGINS_WITH_AN_OLD_RESUME,
    RESUMES_WITHOUT_A_CALL,
    BEGINS_BY_A_STORE
};

static struct {
    struct uva__atomic64 word;
    struct uva__atomic64 called;  /* the loop is woken */
    struct uva__atomic64 given;   /* batches given to on_batch */
    struct uva__atomic64 written; /* batches that the writer has written */
    struct uva__atomic64 off;     /* the switch has paused the stream ... */
    struct uva__atomic64 on;      /* ... and is about to resume it */
    uint64_t early; /* batches that came although the stream was paused */
} world;

static enum mutant mutant; /* mutant of the case */
static bool is_full;       /* on_batch returns EAGAIN: the first program */

/* ---- threads of the user ------------------------------------------------ */

static void call_loop(void)
{
    if (mutant != RESUMES_WITHOUT_A_CALL)
        uva__atomic64_exchange(&world.called, 1);
}

static void resume(void)
{
    uint64_t paused = UVA__PAUSING_PAUSED;

    if (mutant == RESUMES_WITHOUT_A_NOTE) {
        if (uva__atomic64_cas(&world.word, &paused, UVA__PAUSING_NOT))
            call_loop();
    } else if (uva__pausing_resume(&world.word) == UVA__PAUSING_PAUSED) {
        call_loop();
    }
}

static bool batch_is_given(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.given) >
           uva__atomic64_load(&world.written);
}

static void writer_run(void *arg)
{
    for (int i = 0; i < BATCHES; i++) {
        sim_wait(batch_is_given, arg);
        uva__atomic64_add(&world.written, 1);
        resume();
    }
}

static void switch_run(void *arg)
{
    (void)arg;
    (void)uva__pausing_pause(&world.word);
    uva__atomic64_store(&world.off, 1);
    uva__atomic64_store(&world.on, 1);
    resume();
}

/* ---- the loop ----------------------------------------------------------- */

static void begin(void)
{
    if (mutant == BEGINS_BY_A_STORE)
        uva__atomic64_store(&world.word, UVA__PAUSING_NOT);
    else if (mutant != BEGINS_WITH_AN_OLD_RESUME)
        uva__pausing_begin(&world.word);
}

static void note_full(void)
{
    if (mutant == FULL_FORGETS_THE_RESUME)
        uva__atomic64_store(&world.word, UVA__PAUSING_PAUSED);
    else
        uva__pausing_note_full(&world.word);
}

static void batch_deliver(bool off)
{
    world.early += is_full ? world.written.value < world.given.value
                           : off && world.on.value == 0;
    begin();
    uva__atomic64_add(&world.given, 1);
    if (is_full)
        note_full();
}

static bool loop_is_called(void *arg)
{
    (void)arg;
    return uva__atomic64_load(&world.called) != 0;
}

static void loop_run(void *arg)
{
    while (world.given.value < BATCHES) {
        const bool off = uva__atomic64_load(&world.off) != 0;

        if (!uva__pausing_is_on(&world.word)) {
            batch_deliver(off);
        } else {
            sim_wait(loop_is_called, arg);
            uva__atomic64_exchange(&world.called, 0);
        }
    }
}

static void first(void *arg)
{
    sim_spawn("loop", loop_run, arg);
    if (is_full)
        sim_spawn("writer", writer_run, arg);
    else
        sim_spawn("switch", switch_run, arg);
}

static const char *wrong(void)
{
    return world.early > 0 ? "a batch came although it was paused" : NULL;
}

static const struct explore_kernel kernel = {
    .name = "pause",
    .memory = &world,
    .size = sizeof(world),
    .first = first,
    .wrong = wrong,
};

START_TEST(no_pause_and_no_resume_is_lost)
{
    for (int i = 0; i < 2; i++) {
        is_full = i == 0;
        explore_holds(&kernel);
    }
}
END_TEST

START_TEST(its_mutants_are_found)
{
    static const char *const names[] = {
        [FULL_FORGETS_THE_RESUME] = "EAGAIN forgets the resume before it",
        [RESUMES_WITHOUT_A_NOTE] = "a resume counts after EAGAIN alone",
        [BEGINS_WITH_AN_OLD_RESUME] = "a batch begins with an old resume",
        [RESUMES_WITHOUT_A_CALL] = "a resume does not wake the loop",
        [BEGINS_BY_A_STORE] = "a batch begins by a store",
    };

    for (mutant = 1; mutant <= BEGINS_BY_A_STORE; mutant++) {
        is_full = mutant != BEGINS_BY_A_STORE;
        explore_finds(&kernel, names[mutant]);
    }
}
END_TEST

START_TEST(its_word_must_be_exchanged)
{
    mutant = NONE;
    is_full = true;
    explore_finds_spoiled(&kernel, &world.word, SIM_SPLIT,
                          "the word is loaded and stored");
}
END_TEST

START_TEST(no_pause_and_no_resume_is_lost_in_weak_memory)
{
    for (int i = 0; i < 2; i++) {
        is_full = i == 0;
        explore_holds_weak(&kernel, 3);
    }
}
END_TEST

int main(void)
{
    return explore_main("pause", no_pause_and_no_resume_is_lost,
                        its_mutants_are_found, its_word_must_be_exchanged,
                        no_pause_and_no_resume_is_lost_in_weak_memory, NULL);
}
