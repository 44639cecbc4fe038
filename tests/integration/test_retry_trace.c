/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a stream that is retried: a link leads from the batch of each
 * attempt, of whatever stream it is, to the batch that is passed on. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { LINKS = 16 };

static struct fixture f;
static struct uva_trace_event links[LINKS];
static int count;
static int calls; /* of `again` */

/* Links of the retry are reported by the loop thread alone. */
static void on_event(void *ctx, const struct uva_trace_event *event)
{
    (void)ctx;
    if (event->kind != UVA_TRACE_LINK)
        return;
    ck_assert_str_eq(event->stage_name, "retry");
    ck_assert_int_lt(count, LINKS);
    links[count++] = *event;
}

/* A stream of two batches, which ends with `code`. */
static struct uva_stream *attempt_new(int code)
{
    struct uva_pusher *pusher;
    struct uva_stream *stream =
        uva_stream_from_pusher(f.loop.runtime, NULL, &pusher);
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;
    struct uva_error error;

    batch_schema(&schema);
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    for (int i = 0; i < 2; i++) {
        batch_make(&array, 1);
        ck_assert_int_eq(uva_pusher_push(pusher, &array, NULL, 0), 0);
    }
    (void)uva_error_set(&error, code, "%s", "it broke");
    uva_pusher_close(pusher, code != 0 ? &error : NULL, NULL);
    return stream;
}

/* The stream of the second attempt fails, too, before the one of the third. */
static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    (void)ctx;
    (void)failed;
    (void)passed;
    (void)rows;
    calls++;
    return attempt_new(attempt < 2 ? EIO : 0);
}

START_TEST(a_retry_links_the_batches_of_all_its_streams)
{
    fixture_open_with(
        &f, 0, &(struct uva_runtime_options){.trace = {.event = on_event}});
    f.stream = attempt_new(EIO);
    ck_assert_int_eq(
        uva_stream_retry(
            f.stream,
            &(struct uva_retry){.again = again, .resume = true, .delay_ms = 1}),
        0);
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    ck_assert_int_eq(calls, 2);
    ck_assert_int_eq(count, 6);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(links[i].stage, 1);
        ck_assert_int_eq(links[i].ordinal, i);
        ck_assert_int_eq(links[i].value, i % 2);
        ck_assert_uint_eq(links[i].from_id, (unsigned)(1 + i / 2));
    }
    f.got.wrong = 0;
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *all = tcase_create("links");

    tcase_add_test(all, a_retry_links_the_batches_of_all_its_streams);
    return suite_main("retry_trace", NULL, NULL, all, NULL);
}
