/* SPDX-License-Identifier: Apache-2.0 */
/* uva_outcome.rows of each way to consume a stream. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/recording_handler.h"
#include "uvarrow/arrow.h"

static struct fixture f;
static struct uva_outcome outcome;
static bool over;

static void set_up(void)
{
    fixture_open(&f, 7);
    f.fake.rows = 3;
    over = false;
}

static void tear_down(void)
{
    fixture_close(&f);
}

static bool is_over(void *ctx)
{
    (void)ctx;
    return over;
}

static void keep(const struct uva_outcome *given)
{
    outcome = *given;
    over = true;
}

static void counts(int64_t batches, int64_t rows)
{
    ck_assert_int_eq(outcome.batches, batches);
    ck_assert_int_eq(outcome.rows, rows);
}

/* ---- callbacks ---------------------------------------------------------- */

static void empty_it(struct recording_consumer *c, struct uva_batch *batch)
{
    (void)c;
    uva_array_release(&batch->data);
    memset(&batch->data, 0, sizeof(batch->data));
}

START_TEST(callbacks_count_what_they_are_given)
{
    f.stream = fixture_sources[_i].make(&f);
    f.got.on_batch = empty_it; /* the array may be gone when it returns */
    ck_assert_int_eq(fixture_run(&f), 0);
    outcome = f.got.outcome;
    counts(7, 21);
}
END_TEST

/* What is refused is not delivered; what a consumer stops at is. */
START_TEST(callbacks_that_stop_count_what_they_took)
{
    static const int codes[] = {EDOM, ECANCELED, EAGAIN};

    f.got.batch_code = codes[_i];
    f.got.batch_from = 4;
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    if (codes[_i] == EAGAIN) {
        recording_await(&f.got, &f.loop, 5);
        uva_stream_cancel(f.stream, 0, NULL);
    }
    (void)fixture_await(&f);
    outcome = f.got.outcome;
    counts(codes[_i] == EDOM ? 4 : 5, codes[_i] == EDOM ? 12 : 15);
}
END_TEST

/* ---- the others --------------------------------------------------------- */

static void take_some(void *ctx)
{
    struct uva_batch batch;
    int code;

    (void)ctx;
    while ((code = uva_stream_take(f.stream, &batch, &outcome)) == 0)
        uva_array_release(&batch.data);
    over = code == ENOENT;
}

START_TEST(take_counts_what_was_taken)
{
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(
        uva_stream_start_take(f.stream, NULL, take_some, NULL, NULL), 0);
    take_some(NULL);
    loop_until(&f.loop, is_over, NULL);
    counts(7, 21);
}
END_TEST

static void on_collected(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *given)
{
    (void)ctx;
    (void)info;
    (void)batches;
    (void)count;
    keep(given);
}

START_TEST(collect_counts_all)
{
    f.stream = fixture_tasks(&f);
    ck_assert_int_eq(uva_stream_collect(f.stream, 0, on_collected, NULL, NULL),
                     0);
    loop_until(&f.loop, is_over, NULL);
    counts(7, 21);
}
END_TEST

/* ---- a foreign handler -------------------------------------------------- */

static int first_row(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    out->array.length = 1;
    return 0;
}

static void on_driven(void *ctx, const struct uva_outcome *given)
{
    (void)ctx;
    keep(given);
}

/* Rows behind the maps, as far as the handler has extracted them. */
START_TEST(drive_counts_what_was_extracted)
{
    const struct uva_drive options = {.on_done = on_driven,
                                      .on_worker = _i >= 3};
    const int way = _i % 3;
    struct recording_handler handler;

    recording_handler_init(&handler, 7, 0);
    f.stream = way == 0 ? fixture_blocking(&f) : fixture_tasks(&f);
    for (int i = 0; i < way; i++)
        ck_assert_int_eq(
            uva_stream_map(f.stream, &(struct uva_map){.batch = first_row}), 0);
    ck_assert_int_eq(
        uva_stream_drive(f.stream, &handler.handler, &options, NULL), 0);
    loop_until(&f.loop, is_over, NULL);
    ck_assert_int_eq(outcome.end, UVA_END_COMPLETE);
    counts(7, handler.rows);
    ck_assert_int_eq(handler.rows, way == 0 ? 21 : 7);
    recording_handler_fini(&handler);
}
END_TEST

/* ---- an attempt --------------------------------------------------------- */

static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t batches, int64_t rows)
{
    (void)ctx;
    (void)attempt;
    ck_assert_int_eq(failed->batches, batches);
    ck_assert_int_eq(failed->rows, rows);
    keep(failed);
    return NULL;
}

START_TEST(a_retry_is_told_what_was_passed_on)
{
    const struct uva_retry options = {
        .again = again, .resume = true, .delay_ms = 1};

    f.fake.fail_at = 2;
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_retry(f.stream, &options), 0);
    (void)fixture_run(&f);
    ck_assert(over);
    counts(2, 6);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("rows");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add(tc, take_counts_what_was_taken, collect_counts_all,
              a_retry_is_told_what_was_passed_on, NULL);
    tcase_add_loop_test(tc, callbacks_count_what_they_are_given, 0,
                        FIXTURE_SOURCES);
    tcase_add_loop_test(tc, callbacks_that_stop_count_what_they_took, 0, 3);
    tcase_add_loop_test(tc, drive_counts_what_was_extracted, 0, 6);
    return suite_main("outcome_rows", NULL, NULL, tc, NULL);
}
