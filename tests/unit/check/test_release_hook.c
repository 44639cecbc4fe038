/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and schemas with release hooks: released correctly, no breach is
 * reported and no memory is left; in any other way, exactly that is reported.
 */
#include "check/release_hook.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/structs.h"
#include "check/arrow_node.h"
#include "check/live_structs.h"
#include "check/reporter.h"
#include "support/breach_log.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

struct fixture {
    struct breach_log log;
    struct faulty_allocator memory;
    struct uva__reporter *reporter;
    struct ArrowArray array;
    struct ArrowSchema schema;
};

/* Two columns, the second with a dictionary: 4 nodes each. */
static void make_array(struct ArrowArray *array)
{
    plain_array(array, 3, 1, 2);
    plain_array(array->children[0], 3, 2, 0);
    plain_array(array->children[1], 3, 2, 0);
    plain_array(plain_array_dictionary(array->children[1]), 3, 2, 0);
}

static void make_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "+s", NULL, 2);
    plain_schema(schema->children[0], "l", "a", 0);
    plain_schema(schema->children[1], "c", "b", 0);
    plain_schema(plain_schema_dictionary(schema->children[1]), "g", "", 0);
}

static void fixture_open(struct fixture *fixture, bool deep)
{
    struct uva_check options;

    memset(fixture, 0, sizeof(*fixture));
    breach_log_init(&fixture->log);
    faulty_allocator_init(&fixture->memory, 0);
    options = breach_log_options(&fixture->log);
    options.allocator = faulty_allocator_table(&fixture->memory);
    options.deep = deep;
    options.keep = true;
    ck_assert_int_eq(uva__reporter_new(&options, &fixture->reporter, NULL), 0);
    make_array(&fixture->array);
    make_schema(&fixture->schema);
}

static void fixture_hook(struct fixture *fixture)
{
    ck_assert_int_eq(
        uva__release_hook_array(fixture->reporter, &fixture->array, 5), 0);
    ck_assert_int_eq(
        uva__release_hook_schema(fixture->reporter, &fixture->schema, 6), 0);
}

static void open_with_hooks(struct fixture *fixture, bool deep)
{
    fixture_open(fixture, deep);
    fixture_hook(fixture);
}

static int64_t live(const struct fixture *fixture,
                    enum uva__live_struct_kind kind)
{
    return uva__live_structs_live(uva__reporter_live_structs(fixture->reporter),
                                  kind);
}

static void release_array(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
}

/* Releases the remaining objects, and expects no further report. */
static void fixture_close(struct fixture *fixture)
{
    release_array(&fixture->array);
    uva_schema_release(&fixture->schema);
    breach_log_expect(&fixture->log, "");
    ck_assert_int_eq(live(fixture, UVA__LIVE_STRUCT_ARRAY), 0);
    ck_assert_int_eq(live(fixture, UVA__LIVE_STRUCT_SCHEMA), 0);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(fixture->log.freed, 0);
    uva__reporter_release(fixture->reporter);
    ck_assert_int_eq(fixture->log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&fixture->memory), 0);
}

/* ---- correct ------------------------------------------------------------ */

START_TEST(released_once_wherever_it_lies_nothing_is_told)
{
    for (int deep = 0; deep < 2; deep++) {
        struct fixture fixture;
        struct ArrowArray elsewhere;
        open_with_hooks(&fixture, deep == 1);
        ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), deep ? 4 : 1);
        ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_SCHEMA), deep ? 4 : 1);
        elsewhere = fixture.array;
        memset(&fixture.array, 0xDD, sizeof(fixture.array));
        fixture.array.release = NULL;
        elsewhere.release(&elsewhere);
        ck_assert(elsewhere.release == NULL);
        ck_assert_int_eq(plain_live(), 4);
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(the_struct_is_as_it_was_when_its_own_release_runs)
{
    struct fixture fixture;
    struct ArrowArray before;

    fixture_open(&fixture, false);
    before = fixture.array;
    fixture_hook(&fixture);
    ck_assert(fixture.array.release != before.release);
    ck_assert(fixture.array.private_data != before.private_data);
    before.release = fixture.array.release;
    before.private_data = fixture.array.private_data;
    ck_assert_int_eq(memcmp(&before, &fixture.array, sizeof(before)), 0);
    fixture_close(&fixture); /* plain_tree's release needs its private_data */
}
END_TEST

START_TEST(the_witness_lasts_until_the_last_is_released)
{
    struct fixture fixture;

    open_with_hooks(&fixture, true);
    uva__reporter_release(fixture.reporter);
    release_array(&fixture.array);
    ck_assert_int_eq(fixture.log.freed, 0);
    uva_schema_release(&fixture.schema);
    ck_assert_int_eq(fixture.log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
    breach_log_expect(&fixture.log, "");
}
END_TEST

START_TEST(the_release_is_in_the_transcript)
{
    struct fixture fixture;

    open_with_hooks(&fixture, false);
    release_array(&fixture.array);
    uva_schema_release(&fixture.schema);
    uva__reporter_breach(fixture.reporter, "AB-01", 0, "x");
    ck_assert_str_eq(fixture.log.entries[0].transcript,
                     "thread 1: release of array 5\n"
                     "thread 1: release of schema 6");
    breach_log_expect(&fixture.log, "AB-01");
    fixture_close(&fixture);
}
END_TEST

START_TEST(lc10_a_child_moved_out_outlives_its_parent)
{
    struct fixture fixture;
    struct ArrowArray child;
    struct ArrowSchema field;

    open_with_hooks(&fixture, true);
    child = *fixture.array.children[1];
    fixture.array.children[1]->release = NULL;
    field = *fixture.schema.children[1];
    fixture.schema.children[1]->release = NULL;
    release_array(&fixture.array);
    uva_schema_release(&fixture.schema);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 2);
    child.release(&child);
    field.release(&field);
    fixture_close(&fixture);
}
END_TEST

/* ---- the consumer's faults ---------------------------------------------- */

START_TEST(lc02_a_second_release_by_a_copy_is_told_and_does_nothing)
{
    for (int deep = 0; deep < 2; deep++) {
        struct fixture fixture;
        struct ArrowArray copy;
        struct ArrowSchema other;
        open_with_hooks(&fixture, deep == 1);
        copy = fixture.array;
        other = fixture.schema;
        release_array(&fixture.array);
        uva_schema_release(&fixture.schema);
        copy.release(&copy);
        ck_assert(copy.release == NULL);
        ck_assert_str_eq(fixture.log.entries[0].message,
                         "array 5 is released a second time");
        breach_log_expect_one(&fixture.log, "LC-02", UVA_PARTY_CONSUMER,
                              UVA_SEVERITY_FATAL);
        other.release(&other);
        ck_assert_str_eq(fixture.log.entries[0].message,
                         "schema 6 is released a second time");
        breach_log_expect(&fixture.log, "LC-02");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(lc02_a_copy_of_long_ago_is_still_known)
{
    struct fixture fixture;
    struct ArrowArray copy, array;

    open_with_hooks(&fixture, false);
    copy = fixture.array;
    release_array(&fixture.array);
    for (int i = 0; i < 3000; i++) {
        plain_array(&array, 0, 1, 0);
        ck_assert_int_eq(uva__release_hook_array(fixture.reporter, &array, i),
                         0);
        if (i % 50 == 0) {
            struct ArrowArray stale = copy;
            stale.release(&stale);
            breach_log_expect(&fixture.log, "LC-02");
        }
        array.release(&array);
    }
    ck_assert_int_lt(faulty_allocator_live(&fixture.memory), 100);
    fixture_close(&fixture);
}
END_TEST

START_TEST(da13_release_is_called_with_the_struct_that_holds_it)
{
    struct fixture fixture;
    struct ArrowArray moved;
    struct ArrowSchema other;

    open_with_hooks(&fixture, false);
    moved = fixture.array;
    moved.release = NULL;
    fixture.array.release(&moved);
    ck_assert_int_eq(plain_live(), 8);
    breach_log_expect_one(&fixture.log, "DA-13", UVA_PARTY_CONSUMER,
                          UVA_SEVERITY_FATAL);
    other = fixture.schema;
    other.release = NULL;
    fixture.schema.release(&other);
    breach_log_expect(&fixture.log, "DA-13");
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_leads_nowhere_is_let_be)
{
    struct fixture fixture;
    static char nothing[4096] __attribute__((aligned(256)));
    void *const wrong[] = {NULL, nothing + 128, nothing + 64 + 63};

    open_with_hooks(&fixture, false);
    for (int i = 0; i < 3; i++) {
        struct ArrowArray odd = fixture.array;
        odd.private_data = wrong[i];
        odd.release(&odd);
    }
    ck_assert_int_eq(plain_live(), 8);
    fixture_close(&fixture);
}
END_TEST

/* Changes one field, or changes it back. */
static void alter(struct fixture *fixture, int what, bool back)
{
    static void *before;
    struct ArrowArray *array = &fixture->array;

    if (!back)
        before = what == 0   ? (void *)(uintptr_t)array->buffers[0]
                 : what == 1 ? (void *)array->buffers
                 : what == 2 ? (void *)array->children[0]
                             : (void *)(uintptr_t)fixture->schema.name;
    if (what == 0)
        array->buffers[0] = back ? before : fixture;
    else if (what == 1)
        array->buffers = back ? before : (const void **)&array->children;
    else if (what == 2)
        array->children[0] = back ? before : NULL;
    else
        fixture->schema.name = back ? before : "another";
}

static int altered; /* the altered part */
static struct fixture *altering;
static void (*altered_release)(struct ArrowArray *);
static void (*altered_schema)(struct ArrowSchema *);

/* Puts the altered part back, so that the release can run. */
static void mend_array(struct ArrowArray *array)
{
    ck_assert_ptr_eq(array, &altering->array);
    if (altered < 3)
        alter(altering, altered, true);
    altered_release(array);
}

static void mend_schema(struct ArrowSchema *schema)
{
    if (altered == 3)
        alter(altering, altered, true);
    altered_schema(schema);
}

START_TEST(lc11_what_the_producer_owns_is_not_altered)
{
    for (altered = 0; altered < 4; altered++) {
        struct fixture fixture;
        fixture_open(&fixture, false);
        altering = &fixture;
        altered_release = fixture.array.release;
        altered_schema = fixture.schema.release;
        fixture.array.release = mend_array;
        fixture.schema.release = mend_schema;
        fixture_hook(&fixture);
        alter(&fixture, altered, false);
        if (altered < 3)
            release_array(&fixture.array);
        else
            uva_schema_release(&fixture.schema);
        breach_log_expect_one(&fixture.log, "LC-11", UVA_PARTY_CONSUMER,
                              UVA_SEVERITY_ERROR);
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(lc03_a_child_is_released_by_its_parent)
{
    struct fixture fixture;
    struct ArrowArray *child;
    struct ArrowSchema *field;

    open_with_hooks(&fixture, true);
    child = fixture.array.children[1];
    child->release(child);
    breach_log_expect_one(&fixture.log, "LC-03", UVA_PARTY_CONSUMER,
                          UVA_SEVERITY_ERROR);
    field = fixture.schema.children[1]->dictionary;
    field->release(field);
    breach_log_expect(&fixture.log, "LC-03");
    fixture_close(&fixture);
}
END_TEST

START_TEST(lc10_a_child_moved_out_is_not_released_before_its_parent)
{
    struct fixture fixture;
    struct ArrowArray child;

    open_with_hooks(&fixture, true);
    child = *fixture.array.children[0];
    fixture.array.children[0]->release = NULL;
    child.release(&child);
    breach_log_expect_one(&fixture.log, "LC-10", UVA_PARTY_CONSUMER,
                          UVA_SEVERITY_ERROR);
    fixture_close(&fixture);
}
END_TEST

START_TEST(lc02_what_was_never_released_is_told_when_all_is_over)
{
    struct fixture fixture;

    open_with_hooks(&fixture, true);
    ck_assert_int_eq(uva__reporter_settle(fixture.reporter), 8);
    ck_assert_str_eq(fixture.log.entries[0].message,
                     "array 5 was never released, and 1 more");
    ck_assert_int_eq(fixture.log.entries[0].severity, UVA_SEVERITY_ERROR);
    breach_log_expect(&fixture.log, "LC-02");
    release_array(&fixture.array);
    ck_assert_int_eq(uva__reporter_settle(fixture.reporter), 4);
    ck_assert_str_eq(fixture.log.entries[0].message,
                     "schema 6 was never released");
    breach_log_expect(&fixture.log, "LC-02");
    uva_schema_release(&fixture.schema);
    ck_assert_int_eq(uva__reporter_settle(fixture.reporter), 0);
    fixture_close(&fixture);
}
END_TEST

/* ---- the producer's faults ---------------------------------------------- */

static void (*real_release)(struct ArrowArray *);
static void (*real_schema_release)(struct ArrowSchema *);

/* Releases, and does not mark. */
static void unmarked_array(struct ArrowArray *array)
{
    real_release(array);
    array->release = unmarked_array;
}

static void unmarked_schema(struct ArrowSchema *schema)
{
    real_schema_release(schema);
    schema->release = unmarked_schema;
}

START_TEST(lc07_release_marks_what_it_released)
{
    struct fixture fixture;

    fixture_open(&fixture, false);
    real_release = fixture.array.release;
    fixture.array.release = unmarked_array;
    real_schema_release = fixture.schema.release;
    fixture.schema.release = unmarked_schema;
    fixture_hook(&fixture);
    release_array(&fixture.array);
    ck_assert(fixture.array.release == NULL);
    breach_log_expect_one(&fixture.log, "LC-07", UVA_PARTY_PRODUCER,
                          UVA_SEVERITY_ERROR);
    uva_schema_release(&fixture.schema);
    breach_log_expect(&fixture.log, "LC-07");
    fixture_close(&fixture);
}
END_TEST

static struct ArrowArray *forgotten; /* a child of an array that is gone */

/* Leaves a child and its children unreleased. */
static void forgetful(struct ArrowArray *array)
{
    forgotten = array->children[1];
    array->children[1] = calloc(1, sizeof(*array));
    real_release(array);
}

START_TEST(lc05_release_releases_the_children_that_are_live)
{
    struct fixture fixture;
    struct ArrowArray child, dictionary, late;

    fixture_open(&fixture, true);
    child = *fixture.array.children[1];
    dictionary = *child.dictionary;
    real_release = fixture.array.release;
    fixture.array.release = forgetful;
    fixture_hook(&fixture);
    release_array(&fixture.array);
    ck_assert_str_eq(fixture.log.entries[0].message,
                     "the release of array 5 left 2 live below it");
    breach_log_expect_one(&fixture.log, "LC-05", UVA_PARTY_PRODUCER,
                          UVA_SEVERITY_ERROR);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 0);
    late = *forgotten;
    late.release(&late);
    breach_log_expect(&fixture.log, "LC-02");
    *child.dictionary = dictionary;
    child.release(&child);
    free(forgotten);
    fixture_close(&fixture);
}
END_TEST

/* ---- failed calls ------------------------------------------------------- */

static void no_release(struct ArrowArray *array)
{
    (void)array;
    ck_abort_msg("called");
}

static void no_schema_release(struct ArrowSchema *schema)
{
    (void)schema;
    ck_abort_msg("called");
}

START_TEST(what_a_failed_call_left_behind_is_not_to_be_released)
{
    struct fixture fixture;
    struct ArrowArray array = {.release = no_release};
    struct ArrowSchema schema = {.release = no_schema_release};

    open_with_hooks(&fixture, false);
    uva__release_hook_trap_array(fixture.reporter, &array, "AT-22");
    array.release(&array);
    ck_assert(array.release == NULL);
    breach_log_expect_one(&fixture.log, "AT-22", UVA_PARTY_CONSUMER,
                          UVA_SEVERITY_FATAL);
    uva__release_hook_trap_schema(fixture.reporter, &schema, "DS-19");
    schema.release(&schema);
    breach_log_expect(&fixture.log, "DS-19");
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 1);
    ck_assert_int_eq(uva__reporter_settle(fixture.reporter), 2);
    breach_log_expect(&fixture.log, "LC-02");
    fixture_close(&fixture);
}
END_TEST

START_TEST(without_keep_there_are_no_traps)
{
    struct uva_check options = {.keep = false};
    struct uva__reporter *reporter;
    struct ArrowArray array = {.release = no_release};
    struct ArrowSchema schema = {.release = no_schema_release};

    ck_assert_int_eq(uva__reporter_new(&options, &reporter, NULL), 0);
    uva__release_hook_trap_array(reporter, &array, "AT-22");
    uva__release_hook_trap_schema(reporter, &schema, "DS-19");
    ck_assert(array.release == no_release);
    ck_assert(schema.release == no_schema_release);
    uva__reporter_release(reporter);
}
END_TEST

START_TEST(no_trap_lies_where_nobody_would_step)
{
    struct fixture fixture;
    struct ArrowArray array = {.release = NULL}, before;

    open_with_hooks(&fixture, false);
    uva__release_hook_trap_array(fixture.reporter, &array, "AT-22");
    ck_assert(array.release == NULL);
    before = fixture.array; /* a live one */
    uva__release_hook_trap_array(fixture.reporter, &fixture.array, "AT-22");
    ck_assert_int_eq(memcmp(&before, &fixture.array, sizeof(before)), 0);
    fixture.memory.fail_at = fixture.memory.asked + 1;
    for (int i = 0; i < 16; i++) /* the last without memory */
        uva__release_hook_trap_array(
            fixture.reporter, &(struct ArrowArray){.release = no_release},
            "AT-22");
    ck_assert(faulty_allocator_has_failed(&fixture.memory));
    fixture_close(&fixture);
}
END_TEST

/* ---- odd trees ---------------------------------------------------------- */

START_TEST(trees_that_are_none_are_shimmed_as_far_as_they_go)
{
    struct fixture fixture;
    struct ArrowArray **children, *child;

    fixture_open(&fixture, true);
    children = fixture.array.children;
    child = children[0];
    child->release(child); /* a released one */
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 3);
    release_array(&fixture.array);
    make_array(&fixture.array); /* a NULL one */
    children = fixture.array.children;
    child = children[0];
    children[0] = NULL;
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 3);
    release_array(&fixture.array);
    child->release(child);
    free(child);
    make_array(&fixture.array); /* and no child is possible */
    children = fixture.array.children;
    fixture.array.children = NULL;
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 1);
    fixture.array.children = children;
    release_array(&fixture.array);
    breach_log_expect(&fixture.log, "LC-11");
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_circle_is_entered_once)
{
    struct fixture fixture;
    struct ArrowArray *circle;

    fixture_open(&fixture, true);
    circle = fixture.array.children[0];
    circle->n_children = 1;
    circle->children = fixture.array.children; /* its own parent's */
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 4);
    circle->n_children = 0;
    circle->children = NULL;
    release_array(&fixture.array);
    breach_log_expect(&fixture.log, "LC-11");
    fixture_close(&fixture);
}
END_TEST

START_TEST(trees_are_followed_to_a_depth)
{
    struct fixture fixture;
    struct ArrowArray *array;

    fixture_open(&fixture, true);
    release_array(&fixture.array);
    array = &fixture.array;
    for (int i = 0; i < 100; i++) {
        plain_array(array, 0, 1, 1);
        array = array->children[0];
    }
    plain_array(array, 0, 1, 0);
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 65);
    fixture_close(&fixture);
}
END_TEST

START_TEST(trees_are_followed_to_a_number_of_nodes)
{
    enum { MANY = UVA__STRUCTS_MAX_NODES };
    struct fixture fixture;
    struct ArrowArray **children,
        **many_children = malloc(MANY * sizeof(*many_children));

    ck_assert_ptr_nonnull(many_children);
    fixture_open(&fixture, true);
    children = fixture.array.children;
    for (int i = 0; i < MANY; i++)
        many_children[i] = children[0];
    fixture.array.children = many_children;
    fixture.array.n_children = MANY;
    fixture.array.dictionary = children[1]; /* one too many */
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 0), 0);
    ck_assert_int_eq(live(&fixture, UVA__LIVE_STRUCT_ARRAY), 2);
    fixture.array.children = children;
    fixture.array.n_children = 2;
    fixture.array.dictionary = NULL;
    release_array(&fixture.array);
    breach_log_expect(&fixture.log, "LC-11");
    free(many_children);
    fixture_close(&fixture);
}
END_TEST

START_TEST(children_may_change_places)
{
    struct fixture fixture;
    struct ArrowArray first;

    open_with_hooks(&fixture, true);
    first = *fixture.array.children[0];
    *fixture.array.children[0] = *fixture.array.children[1];
    *fixture.array.children[1] = first;
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_digest_stands_no_impossible_struct)
{
    struct ArrowArray array = {.n_buffers = INT64_MAX, .buffers = NULL};
    struct ArrowSchema schema = {.n_children = -1};
    const void *none[1] = {NULL};
    static const int32_t MINUS[] = {-1};
    const uint64_t digest = UVA__ARROW_NODE_SCHEMA.digest(&schema);

    (void)UVA__ARROW_NODE_ARRAY.digest(&array);
    array.buffers = none;
    (void)UVA__ARROW_NODE_ARRAY.digest(&array);
    schema.metadata = (const char *)MINUS;
    ck_assert(UVA__ARROW_NODE_SCHEMA.digest(&schema) != digest);
}
END_TEST

/* ---- memory and threads ------------------------------------------------- */

START_TEST(without_memory_an_array_stays_as_it_is_and_children_unchecked)
{
    for (long fail_at = 1;; fail_at++) {
        struct fixture fixture;
        struct ArrowArray before;
        struct ArrowSchema schema;
        bool failed;
        int code;
        fixture_open(&fixture, true);
        before = fixture.array;
        schema = fixture.schema;
        fixture.memory.fail_at = fixture.memory.asked + fail_at;
        code = uva__release_hook_array(fixture.reporter, &fixture.array, 0);
        if (code != 0) {
            ck_assert_int_eq(code, ENOMEM);
            ck_assert_int_eq(memcmp(&before, &fixture.array, sizeof(before)),
                             0);
        }
        fixture.memory.fail_at = fixture.memory.asked + fail_at;
        code = uva__release_hook_schema(fixture.reporter, &fixture.schema, 0);
        failed = code != 0;
        if (failed)
            ck_assert_int_eq(memcmp(&schema, &fixture.schema, sizeof(schema)),
                             0);
        fixture_close(&fixture);
        if (!failed)
            break;
    }
}
END_TEST

START_TEST(without_memory_for_children_they_go_unchecked)
{
    struct fixture fixture;
    struct ArrowArray arrays[14];

    fixture_open(&fixture, true);
    for (int i = 0; i < 14; i++) { /* of 16 entries */
        plain_array(&arrays[i], 0, 1, 0);
        ck_assert_int_eq(
            uva__release_hook_array(fixture.reporter, &arrays[i], i), 0);
    }
    fixture.memory.fail_at = fixture.memory.asked + 1;
    ck_assert_int_eq(
        uva__release_hook_array(fixture.reporter, &fixture.array, 14), 0);
    ck_assert(faulty_allocator_has_failed(&fixture.memory));
    for (int i = 0; i < 14; i++)
        release_array(&arrays[i]);
    release_array(&fixture.array);
    fixture_close(&fixture);
}
END_TEST

enum { THREADS = 4, ROUNDS = 300 };

static void *hook_and_release(void *ctx)
{
    struct fixture *fixture = ctx;

    for (int i = 0; i < ROUNDS; i++) {
        struct ArrowArray array, child;
        make_array(&array);
        ck_assert_int_eq(uva__release_hook_array(fixture->reporter, &array, i),
                         0);
        child = *array.children[i % 2];
        array.children[i % 2]->release = NULL;
        array.release(&array);
        child.release(&child);
    }
    return NULL;
}

START_TEST(many_threads_may_shim_and_release_at_once)
{
    struct fixture fixture;
    pthread_t threads[THREADS];

    open_with_hooks(&fixture, true);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, hook_and_release, &fixture), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fixture_close(&fixture);
}
END_TEST

static void *release_child(void *ctx)
{
    release_array(ctx);
    return NULL;
}

START_TEST(a_child_moved_out_goes_on_any_thread_while_its_parent_does)
{
    for (int i = 0; i < 100; i++) {
        struct fixture fixture;
        struct ArrowArray child;
        pthread_t thread;
        open_with_hooks(&fixture, true);
        child = *fixture.array.children[1];
        fixture.array.children[1]->release = NULL;
        release_array(&fixture.array);
        ck_assert_int_eq(pthread_create(&thread, NULL, release_child, &child),
                         0);
        uva_schema_release(&fixture.schema);
        pthread_join(thread, NULL);
        fixture_close(&fixture);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("release hook");

    tcase_add_test(tcase, released_once_wherever_it_lies_nothing_is_told);
    tcase_add_test(tcase, the_struct_is_as_it_was_when_its_own_release_runs);
    tcase_add_test(tcase, the_witness_lasts_until_the_last_is_released);
    tcase_add_test(tcase, the_release_is_in_the_transcript);
    tcase_add_test(tcase, lc10_a_child_moved_out_outlives_its_parent);
    tcase_add_test(tcase,
                   lc02_a_second_release_by_a_copy_is_told_and_does_nothing);
    tcase_add_test(tcase, lc02_a_copy_of_long_ago_is_still_known);
    tcase_add_test(tcase, da13_release_is_called_with_the_struct_that_holds_it);
    tcase_add_test(tcase, what_leads_nowhere_is_let_be);
    tcase_add_test(tcase, lc11_what_the_producer_owns_is_not_altered);
    tcase_add_test(tcase, lc03_a_child_is_released_by_its_parent);
    tcase_add_test(tcase,
                   lc10_a_child_moved_out_is_not_released_before_its_parent);
    tcase_add_test(tcase,
                   lc02_what_was_never_released_is_told_when_all_is_over);
    tcase_add_test(tcase, lc07_release_marks_what_it_released);
    tcase_add_test(tcase, lc05_release_releases_the_children_that_are_live);
    tcase_add_test(tcase, what_a_failed_call_left_behind_is_not_to_be_released);
    tcase_add_test(tcase, without_keep_there_are_no_traps);
    tcase_add_test(tcase, no_trap_lies_where_nobody_would_step);
    tcase_add_test(tcase, trees_that_are_none_are_shimmed_as_far_as_they_go);
    tcase_add_test(tcase, a_circle_is_entered_once);
    tcase_add_test(tcase, trees_are_followed_to_a_depth);
    tcase_add_test(tcase, trees_are_followed_to_a_number_of_nodes);
    tcase_add_test(tcase, children_may_change_places);
    tcase_add_test(tcase, a_digest_stands_no_impossible_struct);
    tcase_add_test(
        tcase, without_memory_an_array_stays_as_it_is_and_children_unchecked);
    tcase_add_test(tcase, without_memory_for_children_they_go_unchecked);
    tcase_add_test(tcase, many_threads_may_shim_and_release_at_once);
    tcase_add_test(tcase,
                   a_child_moved_out_goes_on_any_thread_while_its_parent_does);
    return suite_main("release hook", NULL, NULL, tcase, NULL);
}
