/* SPDX-License-Identifier: Apache-2.0 */
/* A claim of a task that was revoked: its result, and that the word is read
 * again if it changed meanwhile. */
#include "stream/task_state.h"

#include <check.h>

#include "support/check_suite.h"

static struct uva__atomic64 state;

static void set_up(void)
{
    bool counted;
    uint64_t generation;

    uva__atomic64_store(&state, 0);
    generation = uva__task_state_offer(&state, 0);
    ck_assert(uva__task_state_take_back(&state, generation, UVA__TASK_ORPHAN,
                                        &counted));
}

START_TEST(a_claim_during_the_discard_is_late)
{
    uint64_t seen = uva__atomic64_load(&state);
    bool orphaned = false;

    ck_assert_int_eq(uva__task_state_late(&state, &seen, &orphaned), ECANCELED);
    ck_assert(!orphaned);
    ck_assert(!uva__task_state_orphan(&state)); /* it was extracted */
}
END_TEST

START_TEST(the_word_is_read_again_if_the_discard_ended_meanwhile)
{
    uint64_t seen = uva__atomic64_load(&state);
    bool orphaned = false;

    ck_assert(uva__task_state_orphan(&state));
    ck_assert_int_eq(uva__task_state_late(&state, &seen, &orphaned), 0);
    ck_assert(!orphaned);
    ck_assert_uint_eq(seen, uva__atomic64_load(&state));
    ck_assert_int_eq(uva__task_state_late(&state, &seen, &orphaned), ECANCELED);
    ck_assert(orphaned);
}
END_TEST

int main(void)
{
    TCase *tc = suite_tests(
        "task state", a_claim_during_the_discard_is_late,
        the_word_is_read_again_if_the_discard_ended_meanwhile, NULL);

    return suite_main("task state", set_up, NULL, tc, NULL);
}
