/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of maps: the input of each map, in which order they run, and the fate
 * of the data when one fails. Each map appends its digit to the length. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"

enum { MAPS = 4, ARRAYS = 4 };

/* The treatment of a batch by a map. */
enum way { MAKE_ANEW, PASS_ON, SCRIBBLE, FAIL };

struct digit {
    int64_t value;  /* the number that it adds to the length */
    enum way way;   /* how it makes its batch */
    int64_t begins; /* the ordinal that it must see next */
};

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct digit digits[MAPS];

static void set_up(void)
{
    recording_init(&consumer);
    consumer.transcribes = true;
    loop_open(&loop);
    for (int i = 0; i < MAPS; i++)
        digits[i] = (struct digit){.value = i + 1, .way = (enum way)(i % 3)};
}

static void tear_down(void)
{
    loop_close(&loop);
    ck_assert_int_eq(plain_live(), 0);
}

static void never_released(struct ArrowArray *array)
{
    (void)array;
    abort();
}

/* Leaves invalid values, which must not be read. */
static void scribble(struct uva_batch *in)
{
    in->ordinal = -1;
    in->metadata = "x";
    in->schema = NULL;
    in->stream = (struct uva_stream *)(void *)in;
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct digit *digit = ctx;
    const int64_t length = in->data.array.length * 10 + digit->value;

    ck_assert(!uva_array_is_live(out));
    ck_assert_int_eq(in->ordinal, digit->begins++);
    ck_assert_str_eq(in->schema->format, "c");
    ck_assert_ptr_null(in->metadata);
    ck_assert_ptr_null(in->stream);
    ck_assert_int_eq(error->code, 0);
    ck_assert_str_eq(error->message, "");
    if (digit->way == FAIL && in->ordinal == 1) {
        out->array.release = never_released;
        return uva_error_set(error, EDOM, "digit %d", (int)digit->value);
    }
    if (digit->way == MAKE_ANEW) {
        batch_make(out, length);
    } else {
        uva_array_move(&in->data, out);
        out->array.length = length;
    }
    if (digit->way != PASS_ON)
        scribble(in);
    return 0;
}

/* Runs arrays of the lengths 1 to 4 through `n` maps. */
static void run(int n)
{
    struct ArrowDeviceArray arrays[ARRAYS];
    struct ArrowSchema schema;
    struct uva_stream *stream;

    batch_schema(&schema);
    for (int i = 0; i < ARRAYS; i++)
        batch_make(&arrays[i], i + 1);
    stream = uva_stream_from_arrays(loop.runtime, &schema, arrays, ARRAYS);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(
            uva_stream_map(stream, &(struct uva_map){.batch = map_batch,
                                                     .ctx = &digits[i],
                                                     .on_loop = true}),
            0);
    recording_consume(&consumer, stream);
    recording_await_done(&consumer, &loop);
}

START_TEST(maps_run_in_the_order_in_which_they_were_added)
{
    static const char *const transcripts[] = {
        "schema 11 21 31 41 complete",
        "schema 112 212 312 412 complete",
        "schema 1123 2123 3123 4123 complete",
        "schema 11234 21234 31234 41234 complete",
    };

    run(_i + 1);
    ck_assert_str_eq(consumer.transcript, transcripts[_i]);
}
END_TEST

/* The loop index selects which of how many maps fails. */
START_TEST(a_map_that_fails_ends_the_stream_and_none_after_it_runs)
{
    const int n = _i / MAPS + 1, which = _i % n;

    digits[which].way = FAIL;
    run(n);
    ck_assert_int_eq(consumer.outcome.end, UVA_END_FAILED);
    ck_assert_int_eq(consumer.outcome.error.code, EDOM);
    ck_assert_int_eq(consumer.outcome.error.message[6], '1' + which);
    ck_assert_int_eq(consumer.taken, 1);
    for (int i = which + 1; i < n; i++)
        ck_assert_int_eq(digits[i].begins, 1);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("chains");

    tcase_add_loop_test(tcase, maps_run_in_the_order_in_which_they_were_added,
                        0, MAPS);
    tcase_add_loop_test(tcase,
                        a_map_that_fails_ends_the_stream_and_none_after_it_runs,
                        0, MAPS * MAPS);
    return suite_main("maps", set_up, tear_down, tcase, NULL);
}
