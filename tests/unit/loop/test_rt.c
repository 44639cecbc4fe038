/* SPDX-License-Identifier: Apache-2.0 */
/* The counted half of a runtime by itself, without a loop: the test plays the
 * loop's part. */
#include "loop/rt.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/forked_child.h"

static struct faulty_allocator memory;
static struct uva__rt *rt;
static int lines; /* that were logged */

static void count_line(void *ctx, const struct uva_log_record *record)
{
    (void)ctx;
    (void)record;
    lines++;
}

static struct uva_runtime_options options(void)
{
    return (struct uva_runtime_options){
        .allocator = faulty_allocator_table(&memory),
        .log = {.write = count_line, .level = UVA_LOG_WARN},
    };
}

static void set_up(void)
{
    const struct uva_runtime_options how = options();

    lines = 0;
    faulty_allocator_init(&memory, 0);
    ck_assert_int_eq(uva__rt_new(&how, &rt), 0);
}

static void tear_down(void)
{
    uva__rt_retire(rt);
    uva__rt_release(rt);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

/* ---- wake-ups ----------------------------------------------------------- */

struct counted {
    struct uva__wakeup wakeup;
    int freed; /* how often */
};

static uint64_t refs_of(const struct counted *counted)
{
    return uva__atomic64_load(&counted->wakeup.refs);
}

static bool run_never(struct uva__wakeup *wakeup)
{
    (void)wakeup;
    ck_abort_msg("nobody turns here");
    return false;
}

static void counted_free(struct uva__wakeup *wakeup)
{
    uva__container_of(wakeup, struct counted, wakeup)->freed++;
}

static const struct uva__wakeup_ops counted_ops = {run_never, counted_free};

START_TEST(what_still_waits_when_the_loop_lets_go_is_released)
{
    struct counted posted = {.wakeup.ops = &counted_ops};
    struct counted queued = {.wakeup.ops = &counted_ops};
    struct counted timed_out = {.wakeup.ops = &counted_ops};

    uva__rt_wake(rt, &posted.wakeup);
    uva__atomic64_store(&rt->turn, uva__thread_self());
    uva__rt_wake(rt, &queued.wakeup);
    uva__rt_wake(rt, &queued.wakeup);
    uva__atomic64_store(&rt->turn, 0);
    ck_assert_uint_eq(refs_of(&posted), 1);
    ck_assert_uint_eq(refs_of(&queued), 1);
    uva__rt_close(rt);
    uva__rt_wake(rt, &timed_out.wakeup);
    ck_assert_uint_eq(refs_of(&posted), 0);
    ck_assert_int_eq(posted.freed, 1);
    ck_assert_uint_eq(refs_of(&queued), 0);
    ck_assert_int_eq(queued.freed, 1);
    ck_assert_uint_eq(refs_of(&timed_out), 0);
    ck_assert_int_eq(timed_out.freed, 1);
}
END_TEST

static int post_in_child(void *ctx)
{
    struct counted *counted = ctx;

    uva__rt_wake(rt, &counted->wakeup);
    return (int)refs_of(counted) + counted->freed;
}

START_TEST(a_node_is_freed_with_its_last_reference)
{
    struct counted counted = {0};

    uva__wakeup_init(&counted.wakeup, &counted_ops, 1);
    uva__rt_wake(rt, &counted.wakeup);
    ck_assert_uint_eq(refs_of(&counted), 2);
    uva__rt_close(rt);
    ck_assert_uint_eq(refs_of(&counted), 1);
    ck_assert_int_eq(counted.freed, 0);
    uva__wakeup_release(&counted.wakeup);
    ck_assert_int_eq(counted.freed, 1);
}
END_TEST

START_TEST(a_forked_child_posts_nothing)
{
    struct counted counted = {.wakeup.ops = &counted_ops};

    forked_child_run(post_in_child, &counted);
    ck_assert_uint_eq(refs_of(&counted), 0);
    ck_assert_int_eq(counted.freed, 0);
}
END_TEST

/* ---- attached data ------------------------------------------------------ */

struct shed {
    struct uva__rt_data data;
    int freed;
};

static struct shed first, second;

static void shed_free(struct uva__rt *of, struct uva__rt_data *data)
{
    ck_assert_ptr_eq(of, rt);
    uva__container_of(data, struct shed, data)->freed++;
}

static struct uva__rt_data *make_first(struct uva__rt *of)
{
    (void)of;
    first.data.free = shed_free;
    return &first.data;
}

/* Another thread makes one while this one is being made. */
static struct uva__rt_data *make_second(struct uva__rt *of)
{
    ck_assert_ptr_eq(uva__rt_get_data(of, UVA__RT_DATA_SLOTS, make_first),
                     &first.data);
    second.data.free = shed_free;
    return &second.data;
}

static struct uva__rt_data *make_none(struct uva__rt *of)
{
    (void)of;
    return NULL;
}

START_TEST(of_two_annexes_made_at_once_the_first_is_kept)
{
    first.freed = second.freed = 0;
    ck_assert_ptr_null(uva__rt_get_data(rt, UVA__RT_DATA_SLOTS, make_none));
    ck_assert_ptr_eq(uva__rt_get_data(rt, UVA__RT_DATA_SLOTS, make_second),
                     &first.data);
    ck_assert_int_eq(second.freed, 1);
    ck_assert_int_eq(first.freed, 0);
    ck_assert_ptr_eq(uva__rt_get_data(rt, UVA__RT_DATA_SLOTS, make_second),
                     &first.data);
    uva__atomic64_add(&rt->refs, 1);
    uva__rt_release(rt);
    ck_assert_int_eq(first.freed, 0);
    uva__atomic_ptr_store(&rt->data[UVA__RT_DATA_SLOTS], NULL); /* static */
}
END_TEST

static int detached[3], detach_count;

struct numbered {
    struct uva__hold_up hold_up;
    int number;
};

static void note_detached(struct uva__hold_up *hold_up)
{
    detached[detach_count++] =
        uva__container_of(hold_up, struct numbered, hold_up)->number;
}

static const struct uva__hold_up_ops detach_ops = {NULL, note_detached};

static int told;

static void note_close(struct uva__hold_up *hold_up)
{
    (void)hold_up;
    told++;
}

static const struct uva__hold_up_ops close_ops = {note_close, NULL};

START_TEST(a_hold_up_detaches_once_unless_it_was_dropped)
{
    struct numbered held[4];
    int i;

    detach_count = 0;
    for (i = 0; i < 4; i++) {
        held[i] = (struct numbered){.number = i};
        uva__rt_hold_up(rt, &held[i].hold_up, &detach_ops);
    }
    uva__rt_drop_hold_up(rt, &held[3].hold_up); /* the first */
    uva__rt_drop_hold_up(rt, &held[1].hold_up); /* in the middle */
    uva__rt_drop_hold_up(rt, &held[0].hold_up); /* the last */
    uva__rt_drop_hold_up(rt, &held[0].hold_up);
    uva__rt_hold_up(rt, &held[0].hold_up, &detach_ops);
    uva__rt_hold_up(rt, &held[2].hold_up, &detach_ops);
    uva__rt_close(rt);
    ck_assert_int_eq(detach_count, 2);
    ck_assert_int_eq(detached[0], 0);
    ck_assert_int_eq(detached[1], 2);
    uva__rt_close(rt);
    ck_assert_int_eq(detach_count, 2);
}
END_TEST

START_TEST(a_hold_up_hears_of_a_close_once_and_is_waited_for)
{
    struct uva__hold_up hears = {0}, silent = {0};

    told = 0;
    ck_assert(!uva__rt_is_held_up(rt));
    uva__rt_hold_up(rt, &hears, &close_ops);
    uva__rt_hold_up(rt, &silent, NULL);
    ck_assert_int_eq(told, 0);
    ck_assert(uva__rt_is_held_up(rt));
    ck_assert(uva__rt_is_held_up(rt));
    ck_assert_int_eq(told, 1);
    uva__rt_drop_hold_up(rt, &hears);
    ck_assert(uva__rt_is_held_up(rt));
    uva__rt_drop_hold_up(rt, &silent);
    ck_assert(!uva__rt_is_held_up(rt));
    uva__rt_hold_up(rt, &hears, &close_ops);
    ck_assert(uva__rt_is_held_up(rt));
    ck_assert_int_eq(told, 2);
    uva__rt_drop_hold_up(rt, &hears);
}
END_TEST

/* ---- everything else ---------------------------------------------------- */

START_TEST(half_an_allocator_makes_no_rt)
{
    struct uva_runtime_options how = options();
    struct uva__rt *none = NULL;

    how.allocator.dealloc = NULL;
    ck_assert_int_eq(uva__rt_new(&how, &none), EINVAL);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(no_job_begins_once_the_workers_have_gone)
{
    int64_t compute = -1, blocking = -1;

    uva__rt_retire(rt);
    ck_assert(!uva__rt_job_begin(rt));
    ck_assert_int_eq(uva__rt_ensure_lane(rt, UVA_LANE_BLOCKING), ESHUTDOWN);
    ck_assert_int_eq(uva__rt_ensure_uncapped(rt), ESHUTDOWN);
    uva__rt_count_threads(rt, &compute, &blocking);
    ck_assert_int_eq(compute, -1);
    ck_assert_int_eq(blocking, -1);
}
END_TEST

/* Objects that the log borrows may be freed once the workers have gone. */
START_TEST(nothing_is_logged_once_the_workers_have_gone)
{
    const int before = lines;

    uva__rt_retire(rt);
    uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL, "too late");
    ck_assert_int_eq(lines, before);
}
END_TEST

START_TEST(lines_above_the_level_or_after_the_end_are_not_logged)
{
    uva__rt_log(rt, UVA_LOG_INFO, NULL, NULL, "not said");
    ck_assert_int_eq(lines, 0);
    uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL, "said");
    ck_assert_int_eq(lines, 1);
    uva__rt_close(rt);
    uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL, "too late");
    ck_assert_int_eq(lines, 1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("rt");

    tcase_add_test(tc, what_still_waits_when_the_loop_lets_go_is_released);
    tcase_add_test(tc, a_node_is_freed_with_its_last_reference);
    tcase_add_test(tc, a_forked_child_posts_nothing);
    tcase_add_test(tc, of_two_annexes_made_at_once_the_first_is_kept);
    tcase_add_test(tc, a_hold_up_detaches_once_unless_it_was_dropped);
    tcase_add_test(tc, a_hold_up_hears_of_a_close_once_and_is_waited_for);
    tcase_add_test(tc, half_an_allocator_makes_no_rt);
    tcase_add_test(tc, no_job_begins_once_the_workers_have_gone);
    tcase_add_test(tc, nothing_is_logged_once_the_workers_have_gone);
    tcase_add_test(tc, lines_above_the_level_or_after_the_end_are_not_logged);
    return suite_main("hub", set_up, tear_down, tc, NULL);
}
