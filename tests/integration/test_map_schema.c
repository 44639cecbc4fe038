/* SPDX-License-Identifier: Apache-2.0 */
/* The fate of a schema that the function of a map has made: with a success,
 * with a failure after that, and invalid. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/loop_fixture.h"
#include "support/plain_tree.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

enum way { GIVE, GIVE_AND_FAIL, FAIL_ALONE, GIVE_INVALID, WAYS };

static struct loop_fixture loop;
static struct recording_consumer consumer;

static void set_up(void)
{
    recording_init(&consumer);
    loop_open(&loop);
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static void table_schema(struct ArrowSchema *out, const char *format)
{
    plain_schema(out, "+s", "", 1);
    plain_schema(out->children[0], format, "column", 0);
}

static int make_schema(void *ctx, const struct ArrowSchema *in,
                       struct ArrowSchema *out, struct uva_error *error)
{
    const enum way *way = ctx;

    ck_assert_str_eq(in->children[0]->format, "l");
    if (*way != FAIL_ALONE)
        table_schema(out, "i");
    if (*way == GIVE_INVALID)
        out->format = NULL;
    return *way == GIVE_AND_FAIL || *way == FAIL_ALONE
               ? uva_error_set(error, EDOM, "the second thought")
               : 0;
}

static int no_batch(void *ctx, struct uva_batch *in,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)in;
    (void)out;
    return uva_error_set(error, EINVAL, "there is no batch");
}

START_TEST(a_schema_that_is_made_is_released)
{
    static const int CODES[] = {0, EDOM, EDOM, EPROTO};
    enum way way = (enum way)(_i % WAYS);
    struct ArrowSchema schema;
    struct uva_stream *stream;

    table_schema(&schema, "l");
    stream = uva_stream_from_arrays(loop.runtime, &schema, NULL, 0);
    ck_assert_int_eq(
        uva_stream_map(stream, &(struct uva_map){.batch = no_batch,
                                                 .schema = make_schema,
                                                 .ctx = &way,
                                                 .on_loop = _i >= WAYS}),
        0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
    ck_assert_int_eq(consumer.outcome.end,
                     way == GIVE ? UVA_END_COMPLETE : UVA_END_FAILED);
    ck_assert_int_eq(consumer.outcome.error.code, CODES[way]);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("schemas");

    suite_add_loops(tcase, 0, 2 * WAYS, a_schema_that_is_made_is_released,
                    NULL);
    return suite_main("map_schema", set_up, tear_down, tcase, NULL);
}
