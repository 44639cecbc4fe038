/* SPDX-License-Identifier: Apache-2.0 */
/* The counted half of a runtime by itself, without a loop: the test plays the
 * loop's part. */
#include "loop/rt.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/faulty_allocator.h"
#include "support/forked_child.h"

static struct faulty_allocator memory;
static struct uva__hub *hub;
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
    ck_assert_int_eq(uva__hub_new(&how, &hub), 0);
}

static void tear_down(void)
{
    uva__hub_retire(hub);
    uva__hub_release(hub);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

/* ---- nodes -------------------------------------------------------------- */

struct counted {
    struct uva__node node;
    int freed; /* how often */
};

static uint64_t refs_of(const struct counted *counted)
{
    return uva__word_load(&counted->node.refs);
}

static bool visit_never(struct uva__node *node)
{
    (void)node;
    ck_abort_msg("nobody turns here");
    return false;
}

static void counted_free(struct uva__node *node)
{
    uva__container_of(node, struct counted, node)->freed++;
}

static const struct uva__node_ops counted_ops = {visit_never, counted_free};

START_TEST(what_still_waits_when_the_loop_lets_go_is_released)
{
    struct counted posted = {.node.ops = &counted_ops};
    struct counted queued = {.node.ops = &counted_ops};
    struct counted late = {.node.ops = &counted_ops};

    uva__hub_post(hub, &posted.node);
    uva__word_store(&hub->turn, uva__thread_self());
    uva__hub_post(hub, &queued.node);
    uva__hub_post(hub, &queued.node);
    uva__word_store(&hub->turn, 0);
    ck_assert_uint_eq(refs_of(&posted), 1);
    ck_assert_uint_eq(refs_of(&queued), 1);
    uva__hub_shut(hub);
    uva__hub_post(hub, &late.node);
    ck_assert_uint_eq(refs_of(&posted), 0);
    ck_assert_int_eq(posted.freed, 1);
    ck_assert_uint_eq(refs_of(&queued), 0);
    ck_assert_int_eq(queued.freed, 1);
    ck_assert_uint_eq(refs_of(&late), 0);
    ck_assert_int_eq(late.freed, 1);
}
END_TEST

static int post_in_child(void *ctx)
{
    struct counted *counted = ctx;

    uva__hub_post(hub, &counted->node);
    return (int)refs_of(counted) + counted->freed;
}

START_TEST(a_node_is_freed_with_its_last_reference)
{
    struct counted counted = {0};

    uva__node_init(&counted.node, &counted_ops, 1);
    uva__hub_post(hub, &counted.node);
    ck_assert_uint_eq(refs_of(&counted), 2);
    uva__hub_shut(hub);
    ck_assert_uint_eq(refs_of(&counted), 1);
    ck_assert_int_eq(counted.freed, 0);
    uva__node_release(&counted.node);
    ck_assert_int_eq(counted.freed, 1);
}
END_TEST

START_TEST(a_forked_child_posts_nothing)
{
    struct counted counted = {.node.ops = &counted_ops};

    forked_child_run(post_in_child, &counted);
    ck_assert_uint_eq(refs_of(&counted), 0);
    ck_assert_int_eq(counted.freed, 0);
}
END_TEST

/* ---- annexes ------------------------------------------------------------ */

struct shed {
    struct uva__annex annex;
    int freed;
};

static struct shed first, second;

static void shed_free(struct uva__hub *of, struct uva__annex *annex)
{
    ck_assert_ptr_eq(of, hub);
    uva__container_of(annex, struct shed, annex)->freed++;
}

static struct uva__annex *make_first(struct uva__hub *of)
{
    (void)of;
    first.annex.free = shed_free;
    return &first.annex;
}

/* Another thread makes one while this one is being made. */
static struct uva__annex *make_second(struct uva__hub *of)
{
    ck_assert_ptr_eq(uva__hub_annex(of, UVA__ANNEX_SLOTS, make_first),
                     &first.annex);
    second.annex.free = shed_free;
    return &second.annex;
}

static struct uva__annex *make_none(struct uva__hub *of)
{
    (void)of;
    return NULL;
}

START_TEST(of_two_annexes_made_at_once_the_first_is_kept)
{
    first.freed = second.freed = 0;
    ck_assert_ptr_null(uva__hub_annex(hub, UVA__ANNEX_SLOTS, make_none));
    ck_assert_ptr_eq(uva__hub_annex(hub, UVA__ANNEX_SLOTS, make_second),
                     &first.annex);
    ck_assert_int_eq(second.freed, 1);
    ck_assert_int_eq(first.freed, 0);
    ck_assert_ptr_eq(uva__hub_annex(hub, UVA__ANNEX_SLOTS, make_second),
                     &first.annex);
    uva__word_add(&hub->refs, 1);
    uva__hub_release(hub);
    ck_assert_int_eq(first.freed, 0);
    uva__shared_store(&hub->annex[UVA__ANNEX_SLOTS], NULL); /* static */
}
END_TEST

static int detached[3], detach_count;

struct numbered {
    struct uva__detach_hook hook;
    int number;
};

static void note_detached(struct uva__detach_hook *hook)
{
    detached[detach_count++] =
        uva__container_of(hook, struct numbered, hook)->number;
}

START_TEST(hooks_run_once_at_the_detachment_unless_they_were_removed)
{
    struct numbered hooks[4];
    int i;

    detach_count = 0;
    for (i = 0; i < 4; i++) {
        hooks[i] = (struct numbered){.hook.run = note_detached, .number = i};
        uva__hub_add_detach_hook(hub, &hooks[i].hook);
    }
    uva__hub_remove_detach_hook(hub, &hooks[3].hook); /* the first */
    uva__hub_remove_detach_hook(hub, &hooks[1].hook); /* in the middle */
    uva__hub_remove_detach_hook(hub, &hooks[0].hook); /* the last */
    uva__hub_add_detach_hook(hub, &hooks[0].hook);
    uva__hub_shut(hub);
    ck_assert_int_eq(detach_count, 2);
    ck_assert_int_eq(detached[0], 0);
    ck_assert_int_eq(detached[1], 2);
    uva__hub_shut(hub);
    ck_assert_int_eq(detach_count, 2);
}
END_TEST

/* ---- everything else ---------------------------------------------------- */

START_TEST(half_an_allocator_makes_no_hub)
{
    struct uva_runtime_options how = options();
    struct uva__hub *none = NULL;

    how.allocator.dealloc = NULL;
    ck_assert_int_eq(uva__hub_new(&how, &none), EINVAL);
    ck_assert_ptr_null(none);
}
END_TEST

START_TEST(no_job_begins_once_the_workers_have_gone)
{
    int64_t compute = -1, blocking = -1;

    uva__hub_retire(hub);
    ck_assert(!uva__hub_job_begin(hub));
    ck_assert_int_eq(uva__hub_ensure_lane(hub, UVA_LANE_BLOCKING), ESHUTDOWN);
    ck_assert_int_eq(uva__hub_ensure_guest(hub), ESHUTDOWN);
    uva__hub_count_threads(hub, &compute, &blocking);
    ck_assert_int_eq(compute, -1);
    ck_assert_int_eq(blocking, -1);
}
END_TEST

START_TEST(lines_above_the_level_or_after_the_end_are_not_logged)
{
    uva__hub_log(hub, UVA_LOG_INFO, NULL, NULL, "not said");
    ck_assert_int_eq(lines, 0);
    uva__hub_log(hub, UVA_LOG_WARN, NULL, NULL, "said");
    ck_assert_int_eq(lines, 1);
    uva__hub_shut(hub);
    uva__hub_log(hub, UVA_LOG_WARN, NULL, NULL, "too late");
    ck_assert_int_eq(lines, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hub");
    TCase *tc = tcase_create("hub");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_still_waits_when_the_loop_lets_go_is_released);
    tcase_add_test(tc, a_node_is_freed_with_its_last_reference);
    tcase_add_test(tc, a_forked_child_posts_nothing);
    tcase_add_test(tc, of_two_annexes_made_at_once_the_first_is_kept);
    tcase_add_test(tc,
                   hooks_run_once_at_the_detachment_unless_they_were_removed);
    tcase_add_test(tc, half_an_allocator_makes_no_hub);
    tcase_add_test(tc, no_job_begins_once_the_workers_have_gone);
    tcase_add_test(tc, lines_above_the_level_or_after_the_end_are_not_logged);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
