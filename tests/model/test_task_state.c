/* SPDX-License-Identifier: Apache-2.0 */
/* stream/task_state.h: two threads hold copies of one token, while the loop
 * reuses the slot, revokes it, or releases the producer; or one thread passes
 * the token on, and counts that. Exactly one gets the slot's content, the
 * references of a watch and of an orphaned task are dropped once, and each
 * counted task is over once. */
#include "stream/task_state.h"

#include <check.h>

#include "model/explore.h"

enum { EXTRACTORS = 2 };

enum mutant {
    NONE,
    REUSES_BEFORE_IT_IS_OVER,
    SETTLES_AS_IF_ALONE,
    WATCHES_WITHOUT_A_COUNT,
    TOUCHES_AFTER_IT_SETTLED,
    ORPHANS_WHATEVER_CAME,
    COUNTS_WHATEVER_CAME,
    COUNTS_TOO_LATE
};

/* The loop's act on the slot. */
enum loop { REUSES, REVOKES, RELEASES, REVOKES_WHAT_IS_PASSED_ON };

static const char *const names[] = {"task state, a slot that is reused",
                                    "task state, a slot that is taken back",
                                    "task state, a slot that is released",
                                    "task state, a slot that is passed on"};

static struct {
    struct uva__atomic64 state;
    struct uva__atomic64 refs;    /* references of the loop and of watches */
    struct uva__atomic64 posted;  /* wake-ups of the loop */
    struct uva__atomic64 rt_refs; /* references of orphaned tasks */
    struct uva__atomic64 given;   /* tasks counted */
    struct uva__atomic64 over;    /* of these, the ended ones */
    uint64_t array;      /* content of the slot: its generation, or 0 */
    uint64_t generation; /* generation of the token handed out */
    uint64_t claims;     /* claims that succeeded */
    uint64_t discarded;  /* arrays discarded by the loop */
    uint64_t freed;      /* how often the producer was freed */
    bool reused;
} world;

static enum mutant mutant; /* mutant of the case */
static enum loop now;      /* loop behaviour of the case */

static void prepare(void)
{
    world.refs.value = 1;
    world.generation = uva__task_state_offer(&world.state, 0);
    world.array = world.generation;
}

/* ---- counts ------------------------------------------------------------- */

static void must_be_there(void)
{
    if (world.freed != 0)
        sim_fail("the producer is used after it was freed");
}

static void producer_release(void)
{
    must_be_there();
    if (uva__atomic64_sub(&world.refs, 1) == 1)
        world.freed++;
}

static void rt_release(void)
{
    if (uva__atomic64_sub(&world.rt_refs, 1) == 0)
        sim_fail("a reference to the rt is released twice");
}

/* Does the same as a watched slot's last user. */
static void producer_notify(void)
{
    uva__atomic64_exchange(&world.posted, 1);
    must_be_there();
    if (mutant != WATCHES_WITHOUT_A_COUNT)
        producer_release();
}

static void count_over(void)
{
    if (uva__atomic64_add(&world.over, 1) >= uva__atomic64_load(&world.given))
        sim_fail("more tasks are over than were counted");
}

static void slot_settle(enum uva__task_state as)
{
    if (uva__atomic64_peek(&world.state) & UVA__TASK_COUNTED)
        count_over();
    if (!uva__task_state_settle(&world.state, as,
                                mutant == SETTLES_AS_IF_ALONE)) {
        if (mutant == TOUCHES_AFTER_IT_SETTLED && now == RELEASES) {
            sim_point();
            must_be_there();
        }
        return;
    }
    producer_notify();
}

/* ---- extracting threads ------------------------------------------------- */

static void slot_empty(uint64_t generation)
{
    sim_plain(&world.array);
    if (world.array != generation)
        sim_fail("the slot is another's, or empty");
    sim_point();
    if (world.array != generation)
        sim_fail("somebody else has what is in the slot");
    world.array = 0;
}

static void extractor_run(void *arg)
{
    const uint64_t generation = 1; /* as the token has it */
    bool orphaned;

    (void)arg;
    if (uva__task_state_claim(&world.state, generation, &orphaned) == 0) {
        world.claims++;
        slot_empty(generation);
        slot_settle(UVA__TASK_DONE);
    } else if (orphaned) {
        rt_release();
    }
}

/* Does the same as uva__task_give(), and then passes the token on to a thread
 * that extracts. */
static void giver_run(void *arg)
{
    if (mutant != COUNTS_TOO_LATE)
        uva__atomic64_add(&world.given, 1);
    if (mutant == COUNTS_WHATEVER_CAME)
        uva__atomic64_or(&world.state, UVA__TASK_COUNTED);
    else if (!uva__task_state_count(&world.state, 1))
        uva__atomic64_add(&world.over, 1);
    if (mutant == COUNTS_TOO_LATE)
        uva__atomic64_add(&world.given, 1);
    extractor_run(arg);
}

/* ---- the loop ----------------------------------------------------------- */

static bool slot_is_over(void *arg)
{
    (void)arg;
    return (uva__atomic64_load(&world.state) & UVA__TASK_STATES) >=
           UVA__TASK_ORPHANED;
}

static void loop_reuse(void)
{
    if (mutant != REUSES_BEFORE_IT_IS_OVER && !slot_is_over(NULL))
        return;
    sim_plain(&world.array);
    world.array = 2;
    world.reused = true;
    (void)uva__task_state_offer(&world.state, 0);
}

static bool slot_orphan(void)
{
    if (mutant != ORPHANS_WHATEVER_CAME)
        return uva__task_state_orphan(&world.state);
    uva__atomic64_store(&world.state,
                        (uint64_t)1 << UVA__TASK_GENERATION_SHIFT |
                            UVA__TASK_ORPHANED);
    return true;
}

/* Does the same as task_swept(). */
static void loop_discard(void)
{
    slot_empty(1);
    world.discarded++;
    uva__atomic64_add(&world.rt_refs, 1);
    if (slot_orphan()) {
        producer_notify();
        return;
    }
    slot_settle(UVA__TASK_REVOKED);
    rt_release();
}

static void loop_revoke(uint64_t flags)
{
    bool counted;

    if (!uva__task_state_take_back(&world.state, 1, flags, &counted))
        return;
    if (counted)
        count_over();
    loop_discard();
}

/* Does the same as uva__offered_notify() and a closing loop. */
static void loop_release(void)
{
    if (mutant != WATCHES_WITHOUT_A_COUNT)
        uva__atomic64_add(&world.refs, 1);
    if (!uva__task_state_notify(&world.state) &&
        mutant != WATCHES_WITHOUT_A_COUNT)
        producer_release();
    loop_revoke(UVA__TASK_ORPHAN);
    producer_release(); /* drops its own reference */
}

static void loop_run(void *arg)
{
    (void)arg;
    if (now == REUSES)
        loop_reuse();
    else if (now == REVOKES || now == REVOKES_WHAT_IS_PASSED_ON)
        loop_revoke(0);
    else
        loop_release();
}

static void first(void *arg)
{
    if (now == REVOKES_WHAT_IS_PASSED_ON)
        sim_spawn("giver", giver_run, arg);
    for (int i = 0; i < EXTRACTORS && now != REVOKES_WHAT_IS_PASSED_ON; i++)
        sim_spawn("extractor", extractor_run, arg);
    loop_run(arg);
}

static const char *wrong(void)
{
    if (world.claims + world.discarded != 1)
        return "the data was not spent once";
    if (!world.reused && !slot_is_over(NULL))
        return "the slot is not over";
    if (world.reused && world.array != 2)
        return "what was put into the slot anew is gone";
    if (now == RELEASES && world.freed != 1)
        return "the producer is never freed";
    if (world.rt_refs.value != 0)
        return "the rt is never freed";
    if (world.given.value != world.over.value)
        return "a task that is over is counted";
    return NULL;
}

static struct explore_kernel kernel = {
    .memory = &world,
    .size = sizeof(world),
    .prepare = prepare,
    .first = first,
    .wrong = wrong,
};

static const struct explore_kernel *kernel_of(enum loop what)
{
    now = what;
    kernel.name = names[what];
    return &kernel;
}

START_TEST(one_gets_what_is_in_the_slot)
{
    explore_holds(kernel_of(REUSES));
    explore_holds(kernel_of(REVOKES));
    explore_holds(kernel_of(RELEASES));
    explore_holds(kernel_of(REVOKES_WHAT_IS_PASSED_ON));
}
END_TEST

static void finds(enum mutant which, enum loop what, const char *name)
{
    mutant = which;
    explore_finds(kernel_of(what), name);
    mutant = NONE;
}

START_TEST(its_mutants_are_found)
{
    finds(REUSES_BEFORE_IT_IS_OVER, REUSES, "the slot is reused too early");
    finds(SETTLES_AS_IF_ALONE, RELEASES, "settles by a store off the loop");
    finds(WATCHES_WITHOUT_A_COUNT, RELEASES, "a watch takes no count");
    finds(TOUCHES_AFTER_IT_SETTLED, RELEASES,
          "a touch of the stream after the settle");
    finds(ORPHANS_WHATEVER_CAME, RELEASES, "lapses though it was asked for");
    finds(COUNTS_WHATEVER_CAME, REVOKES_WHAT_IS_PASSED_ON,
          "is marked whatever came");
    finds(COUNTS_TOO_LATE, REVOKES_WHAT_IS_PASSED_ON,
          "is counted when it is marked");
}
END_TEST

START_TEST(its_word_must_be_exchanged)
{
    for (int what = REUSES; what <= REVOKES_WHAT_IS_PASSED_ON; what++)
        explore_finds_spoiled(kernel_of((enum loop)what), &world.state,
                              SIM_SPLIT, "the word is loaded and stored");
}
END_TEST

START_TEST(one_gets_the_slot_in_weak_memory)
{
    for (int what = REUSES; what <= REVOKES_WHAT_IS_PASSED_ON; what++)
        explore_holds_weak(kernel_of((enum loop)what), 0);
    explore_finds_weak(kernel_of(REUSES), &world.state, SIM_UNACQUIRED,
                       "the slot is reused without an acquire");
    explore_finds_weak(kernel_of(REUSES), &world.state, SIM_UNRELEASED,
                       "the slot is settled without a release");
    mutant = SETTLES_AS_IF_ALONE;
    explore_finds_weak(kernel_of(RELEASES), NULL, SIM_SOUND,
                       "settles by a store off the loop");
    mutant = NONE;
}
END_TEST

int main(void)
{
    return explore_main("task state", one_gets_what_is_in_the_slot,
                        its_mutants_are_found, its_word_must_be_exchanged,
                        one_gets_the_slot_in_weak_memory, NULL);
}
