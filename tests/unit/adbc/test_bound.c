/* SPDX-License-Identifier: Apache-2.0 */
/* Bound rows, in calls that few drivers make: after a failure, and after a
 * cancel. */
#include <check.h>
#include <errno.h>

#include "adbc/bound.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

static struct fixture f; /* its source has the rows */
static struct ArrowArrayStream rows;
static struct uva__bound *bound;
static struct uva__adbc_failure failure;

static void wrap(int64_t batches, bool keeps_empty)
{
    fixture_open(&f, batches);
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    bound = uva__bound_new(&rows, keeps_empty);
    ck_assert_ptr_nonnull(bound);
    ck_assert_int_eq(uva__bound_open(bound, &failure), 0);
}

static void tear_down(void)
{
    uva__bound_release(bound);
    uva__adbc_failure_fini(&failure);
    fixture_close(&f);
}

START_TEST(the_first_failure_is_kept)
{
    struct ArrowArray batch;

    wrap(5, true);
    f.fake.fail_at = 0;
    f.fake.fail_code = ENOSPC;
    f.fake.fail_text = "the source is full";
    ck_assert_int_eq(rows.get_next(&rows, &batch), ENOSPC);
    uva__bound_cancel(bound);
    ck_assert_int_eq(rows.get_next(&rows, &batch), ECANCELED);
    ck_assert_str_eq(rows.get_last_error(&rows), "cancelled");
    rows.release(&rows);
    ck_assert_int_eq(uva__bound_check(bound, &failure), ENOSPC);
    text_contains(failure.error.message, "the source is full");
}
END_TEST

/* The caller's are released by then. */
START_TEST(rows_stay_cancelled_and_keep_their_schema)
{
    struct ArrowSchema schema;
    struct ArrowArray batch;

    wrap(5, true);
    uva__bound_cancel(bound);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rows.get_next(&rows, &batch), ECANCELED);
        ck_assert_int_eq(atomic_load(&f.fake.released), 1);
    }
    ck_assert_int_eq(rows.get_schema(&rows, &schema), 0);
    ck_assert_str_eq(schema.format, "+s");
    uva_schema_release(&schema);
    ck_assert_ptr_null(rows.get_last_error(&rows)); /* no failure */
    rows.release(&rows);
}
END_TEST

START_TEST(a_batch_without_rows_is_kept_or_left_out)
{
    struct ArrowArray batch;

    wrap(1, _i == 0);
    f.fake.rows = 0;
    ck_assert_int_eq(rows.get_next(&rows, &batch), 0);
    ck_assert_int_eq(batch.release != NULL, _i == 0);
    if (_i == 0)
        batch.release(&batch);
    rows.release(&rows);
}
END_TEST

static bool is_released(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&f.fake.released) > 0;
}

/* The cancel has not seen the worker that reads them. */
START_TEST(rows_that_were_cancelled_are_not_read_by_a_worker)
{
    wrap(5, true);
    uva__bound_cancel(bound);
    ck_assert_int_eq(uva__bound_detach(bound, f.loop.runtime, &rows, &failure),
                     0);
    loop_until(&f.loop, is_released, NULL);
    ck_assert_int_eq(atomic_load(&f.fake.given), 0);
    rows.release(&rows);
}
END_TEST

static void on_names_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static struct ArrowSchema names_field(const char *name)
{
    return (struct ArrowSchema){
        .format = "l", .name = name, .release = on_names_release};
}

/* A parameter without a name is not a column. */
START_TEST(names_are_looked_for_among_all)
{
    struct ArrowSchema fields[] = {names_field(""), names_field(":n")},
                       *children[] = {&fields[0], &fields[1]};
    struct ArrowSchema schema;
    const struct ArrowSchema names = {.format = "+s",
                                      .n_children = 2,
                                      .children = children,
                                      .release = on_names_release};

    wrap(0, true);
    ck_assert_int_eq(uva__bound_name(bound, &names, &failure), 0);
    ck_assert_int_eq(rows.get_schema(&rows, &schema), 0);
    ck_assert_str_eq(schema.children[0]->name, ":n");
    uva_schema_release(&schema);
    rows.release(&rows);
}
END_TEST

static int give_two(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    static struct ArrowSchema fields[2], *children[] = {&fields[0], &fields[1]};

    (void)self;
    fields[0] = names_field("a");
    fields[1] = names_field("b");
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = 2,
                                .children = children,
                                .release = on_names_release};
    return 0;
}

START_TEST(two_columns_have_two_names)
{
    const struct ArrowSchema nameless = {0};
    struct ArrowSchema schema;

    fixture_open(&f, 0);
    fake_source_plain(&f.fake, &rows);
    f.readers++;
    rows.get_schema = give_two;
    bound = uva__bound_new(&rows, false);
    ck_assert_ptr_nonnull(bound);
    ck_assert_int_eq(uva__bound_open(bound, &failure), 0);
    ck_assert_int_eq(uva__bound_name(bound, &nameless, &failure), 0);
    ck_assert_int_eq(rows.get_schema(&rows, &schema), 0);
    ck_assert_str_eq(schema.children[0]->name, "a");
    ck_assert_str_eq(schema.children[1]->name, "b");
    uva_schema_release(&schema);
    rows.release(&rows);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("bound");

    suite_add(tc, the_first_failure_is_kept,
              rows_stay_cancelled_and_keep_their_schema,
              rows_that_were_cancelled_are_not_read_by_a_worker,
              names_are_looked_for_among_all, two_columns_have_two_names, NULL);
    suite_add_loops(tc, 0, 2, a_batch_without_rows_is_kept_or_left_out, NULL);
    return suite_main("bound", NULL, tear_down, tc, NULL);
}
