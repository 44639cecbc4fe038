/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions, objects and schemas of tables, from the fake driver. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fake_driver.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/adbc.h"

#define FAKE UVA_TEST_BUILD "/tests/drivers/libadbc_driver_fake.so"

static struct fixture f;
static struct uva_adbc_pool *pool;
static struct ArrowDeviceArray taken; /* the batch of partitions */

static void set_up(void)
{
    fake_driver_reset();
    fixture_open(&f, 0);
}

static void make(int32_t connections)
{
    ck_assert_int_eq(
        uva_adbc_pool_new(f.loop.runtime,
                          &(struct uva_adbc_pool_options){
                              .driver = FAKE, .connections = connections},
                          &pool, NULL),
        0);
}

static void tear_down(void)
{
    uva_array_release(&taken);
    uva_adbc_pool_release(pool);
    pool = NULL;
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&fake_driver.statements), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.results), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.connections), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.databases), 0);
    ck_assert_int_eq(atomic_load(&fake_driver.wrong), 0);
}

static struct uva_error error; /* of the last stream */

/* Runs a stream to its end, if it can be started; gives its code. The recording
 * counts rows of a merge as wrong: they come in any order. */
static int play(struct uva_stream *stream)
{
    int code;

    fixture_release(&f);
    recording_init(&f.got);
    f.stream = stream;
    code = fixture_try(&f, &error);
    if (code == 0) {
        recording_await_done(&f.got, &f.loop);
        code = f.got.outcome.error.code;
        f.got.wrong = 0;
        error = f.got.outcome.error;
    }
    return code;
}

static int refused(struct uva_stream *stream, const char *text)
{
    const int code = play(stream);

    text_contains(error.message, text);
    return code;
}

/* ---- partitions --------------------------------------------------------- */

static void on_partitions(void *ctx, const struct uva_stream_info *info,
                          struct ArrowDeviceArray *batches, size_t count,
                          const struct uva_outcome *outcome)
{
    ck_assert_int_eq(outcome->error.code, 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(info->schema->children[0]->name, "partition");
    ck_assert_str_eq(info->schema->children[0]->format, "z");
    uva_array_move(&batches[0], &taken);
    *(bool *)ctx = true;
}

static bool is_set(void *ctx)
{
    return *(bool *)ctx;
}

static void partition(const char *sql)
{
    bool done = false;
    struct uva_stream *s = uva_stream_from_query(
        pool,
        &(struct uva_adbc_query){.sql = sql, .result = UVA_ADBC_PARTITIONS});

    ck_assert_int_eq(uva_stream_collect(s, 0, on_partitions, &done, NULL), 0);
    loop_until(&f.loop, is_set, &done);
    uva_stream_release(s);
}

START_TEST(partitions_are_read_and_merged)
{
    make(2);
    partition("partitions 5");
    ck_assert_int_eq(taken.array.length, 5);
    ck_assert_int_eq(play(uva_stream_from_partitions(pool, &taken.array, NULL)),
                     0);
    ck_assert_int_eq(f.got.rows, 1 + 2 + 3 + 4 + 5);
    ck_assert_int_le(atomic_load(&fake_driver.most), 2);
    taken.array.offset = 1; /* the second and third one */
    taken.array.length = 2;
    ck_assert_int_eq(play(uva_stream_from_partitions(pool, &taken.array, NULL)),
                     0);
    ck_assert_int_eq(f.got.rows, 2 + 3);
}
END_TEST

START_TEST(there_may_be_few_partitions)
{
    make(2);
    partition("partitions 1");
    ck_assert_int_eq(play(uva_stream_from_partitions(pool, &taken.array, NULL)),
                     0);
    ck_assert_int_eq(f.got.rows, 1);
    uva_array_release(&taken);
    fake_driver.is_static = true;
    partition("partitions 0");
    ck_assert_int_eq(play(uva_stream_from_partitions(pool, &taken.array, NULL)),
                     0);
    ck_assert_int_eq(f.got.rows, 0);
}
END_TEST

START_TEST(one_partition_is_read)
{
    const struct uva_window window = {.batches = 1};

    make(1);
    ck_assert_int_eq(play(uva_stream_from_partition(pool, "rows 3", 6, NULL)),
                     0);
    ck_assert_int_eq(f.got.rows, 3);
    ck_assert_int_eq(
        play(uva_stream_from_partition(pool, "rows 31", 6, &window)), 0);
    ck_assert_int_eq(f.got.rows, 3);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(what_fails_is_reported)
{
    static const struct uva_adbc_query fails = {.sql = "fails",
                                                .result = UVA_ADBC_PARTITIONS};

    make(1);
    ck_assert_int_eq(refused(uva_stream_from_query(pool, &fails),
                             "cannot be partitioned: division"),
                     EIO);
    ck_assert_int_eq(
        refused(uva_stream_from_partition(pool, "execute fails", 13, NULL),
                "does not read the partition: division"),
        EIO);
    ck_assert_int_eq(
        refused(uva_stream_from_partition(pool, "batch 1 fails", 13, NULL),
                "the query fails: division"),
        EIO);
    ck_assert_int_eq(f.got.rows, 1);
    ck_assert_int_eq(
        refused(uva_stream_from_table_schema(pool, NULL, NULL, "nowhere"),
                "no such table"),
        ENOENT);
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 4);
}
END_TEST

START_TEST(a_driver_may_give_nothing)
{
    static const char *const texts[] = {"hollow0", "hollow1", "hollow2"};

    make(1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(
            refused(uva_stream_from_query(
                        pool,
                        &(struct uva_adbc_query){
                            .sql = texts[i], .result = UVA_ADBC_PARTITIONS}),
                    "without descriptors"),
            EPROTO);
    ck_assert_int_eq(
        refused(uva_stream_from_table_schema(pool, NULL, NULL, "hollow"),
                "no schema"),
        EPROTO);
}
END_TEST

static bool blocks(void *ctx)
{
    (void)ctx;
    loop_nudge(&f.loop);
    return atomic_load(&fake_driver.blocked) > 0;
}

START_TEST(a_cancel_reaches_the_connection)
{
    fake_driver.cancels_connections = true;
    make(1);
    f.stream = uva_stream_from_partition(pool, "execute stops", 13, NULL);
    fixture_start(&f);
    loop_until(&f.loop, blocks, NULL);
    uva_stream_cancel(f.stream, 0, NULL);
    ck_assert_int_eq(fixture_await(&f), ECANCELED);
}
END_TEST

/* ---- the catalog -------------------------------------------------------- */

START_TEST(objects_are_listed)
{
    static const char *const types[] = {"view", NULL};

    make(1);
    ck_assert_int_eq(play(uva_stream_from_objects(pool, NULL)), 0);
    ck_assert_int_eq(f.got.rows, 2);
    ck_assert_str_eq(fake_driver.asked, "0 - - - * -");
    ck_assert_int_eq(
        play(uva_stream_from_objects(
            pool, &(struct uva_adbc_objects){.depth = ADBC_OBJECT_DEPTH_TABLES,
                                             .catalog = "main",
                                             .db_schema = "s",
                                             .table = "rows 4",
                                             .column = "c",
                                             .table_types = types})),
        0);
    ck_assert_int_eq(f.got.rows, 4);
    ck_assert_str_eq(fake_driver.asked, "3 main s rows 4 view c");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

START_TEST(a_table_has_a_schema)
{
    make(1);
    ck_assert_int_eq(
        play(uva_stream_from_table_schema(pool, "main", NULL, "flights")), 0);
    ck_assert_int_eq(f.got.rows, 0);
    ck_assert_int_eq(f.got.schemas, 1);
    ck_assert_str_eq(fake_driver.asked, "main - flights");
    ck_assert_int_eq(atomic_load(&fake_driver.connected), 1);
}
END_TEST

/* ---- bad input ---------------------------------------------------------- */

START_TEST(a_simple_driver_has_none_of_them)
{
    static const struct uva_adbc_query query = {.sql = "partitions 1",
                                                .result = UVA_ADBC_PARTITIONS};

    fake_driver.is_simple = true;
    make(1);
    ck_assert_int_eq(play(uva_stream_from_query(pool, &query)), ENOTSUP);
    ck_assert_int_eq(play(uva_stream_from_partition(pool, "", 0, NULL)),
                     ENOTSUP);
    ck_assert_int_eq(play(uva_stream_from_objects(pool, NULL)), ENOTSUP);
    ck_assert_int_eq(play(uva_stream_from_table_schema(pool, NULL, NULL, "t")),
                     ENOTSUP);
}
END_TEST

START_TEST(a_limit_of_time_ends_a_list_of_objects)
{
    const struct uva_adbc_objects objects = {.table = "execute stops",
                                             .busy_ms = 1};

    fake_driver.cancels_connections = true;
    make(1);
    ck_assert_int_eq(
        refused(uva_stream_from_objects(pool, &objects), "busy_ms"), ETIMEDOUT);
}
END_TEST

START_TEST(what_is_invalid_is_refused)
{
    struct uva_adbc_objects objects = {.depth = 4};
    struct ArrowArray none = {0};

    make(1);
    ck_assert_int_eq(refused(uva_stream_from_objects(pool, &objects), "depth"),
                     EINVAL);
    objects.depth = -1;
    ck_assert_int_eq(refused(uva_stream_from_objects(pool, &objects), "depth"),
                     EINVAL);
    objects = (struct uva_adbc_objects){.busy_ms = -1};
    ck_assert_int_eq(
        refused(uva_stream_from_objects(pool, &objects), "busy_ms"), EINVAL);
    objects = (struct uva_adbc_objects){.reserved = {[3] = pool}};
    ck_assert_int_eq(
        refused(uva_stream_from_objects(pool, &objects), "reserved"), EINVAL);
    ck_assert_int_eq(
        refused(uva_stream_from_partitions(pool, &none, NULL), "no batch"),
        EINVAL);
    ck_assert_int_eq(
        refused(uva_stream_from_partitions(pool, NULL, NULL), "no batch"),
        EINVAL);
    ck_assert_int_eq(
        refused(uva_stream_from_partition(pool, NULL, 1, NULL), "no partition"),
        EINVAL);
    ck_assert_int_eq(
        refused(uva_stream_from_table_schema(pool, NULL, NULL, NULL),
                "no table"),
        EINVAL);
    ck_assert_int_eq(
        refused(uva_stream_from_partition(pool, "", SIZE_MAX, NULL),
                "no memory"),
        ENOMEM);
    partition("partitions 2");
    for (int i = 0; i < 12; i++) {
        struct ArrowArray column = *taken.array.children[0], *child = &column,
                          batch = taken.array;

        batch.children = &child;
        batch.n_children = i == 0 ? 0 : 1;
        batch.length = i == 1 ? -1 : i == 5 ? 3 : 2;
        batch.offset = i == 2 ? -1 : 0;
        column.n_buffers = i == 3 ? 2 : 3;
        batch.offset = i == 10 ? 1 : batch.offset;
        column.offset = i == 4 ? -1 : i == 10 ? INT64_MAX : 0;
        column.length = i == 11 ? INT64_MIN : column.length;
        column.n_children = i == 6;
        column.dictionary = i == 7 ? child : NULL;
        child = i == 8 ? NULL : child;
        column.release = i == 9 ? NULL : column.release;
        ck_assert_int_eq(
            refused(uva_stream_from_partitions(pool, &batch, NULL), "no batch"),
            EINVAL);
    }
}
END_TEST

/* The number of a fault. */
START_TEST(partitions_of_another_shape_are_refused)
{
    struct ArrowArray column, *child = &column, batch;

    make(1);
    partition("partitions 2");
    column = *taken.array.children[0];
    batch = taken.array;
    batch.children = _i == 0 ? NULL : &child;
    batch.buffers = _i == 1 ? NULL : batch.buffers;
    batch.null_count = _i == 1 ? -1 : 0;
    column.buffers = _i == 2 ? NULL : column.buffers;
    column.offset = _i == 3 ? INT64_MAX : 0;
    ck_assert_int_eq(
        refused(uva_stream_from_partitions(pool, &batch, NULL), "no batch"),
        EINVAL);
}
END_TEST

/* A batch with the texts between these offsets. */
static int read_texts(const int32_t *offsets, const char *data)
{
    struct ArrowArray column = *taken.array.children[0], *child = &column,
                      batch = taken.array;
    const void *buffers[] = {NULL, offsets, data};

    batch.children = &child;
    column.buffers = buffers;
    return play(uva_stream_from_partitions(pool, &batch, NULL));
}

/* They may have come from another process. */
START_TEST(texts_of_partitions_must_lie_in_order)
{
    static const int32_t good[] = {0, 6, 12}, back[] = {0, 6, 5},
                         before[] = {-1, 6, 12}, none[] = {0, 0, 0};
    static const char data[] = "rows 1rows 2";

    make(1);
    partition("partitions 2");
    ck_assert_int_eq(read_texts(good, data), 0);
    ck_assert_int_eq(f.got.rows, 3);
    ck_assert_int_eq(read_texts(back, data), EINVAL);
    ck_assert_int_eq(read_texts(before, data), EINVAL);
    ck_assert_int_eq(read_texts(NULL, data), EINVAL);
    ck_assert_int_eq(read_texts(good, NULL), EINVAL);
    ck_assert_int_eq(read_texts(none, NULL), EINVAL);
}
END_TEST

/* The offset before the first row that is read is not of the batch. */
START_TEST(texts_behind_an_offset_must_lie_in_order)
{
    static const int32_t good[] = {0, 0, 6}, before[] = {0, -1, 6};

    make(1);
    partition("partitions 2");
    taken.array.offset = 1;
    taken.array.length = 1;
    ck_assert_int_eq(read_texts(good, "rows 4"), 0);
    ck_assert_int_eq(f.got.rows, 4);
    ck_assert_int_eq(read_texts(before, "rows 4"), EINVAL);
}
END_TEST

/* A null has no text, whatever lies where that would be. */
START_TEST(null_partitions_are_refused)
{
    static const uint8_t second_is_null = 0x01;
    const void *bits[] = {&second_is_null}, *texts[3];
    struct ArrowArray column, *child = &column, batch;

    make(1);
    partition("partitions 2");
    column = *taken.array.children[0];
    batch = taken.array;
    memcpy(texts, column.buffers, sizeof(texts));
    batch.children = &child;
    batch.buffers = _i == 0 ? bits : batch.buffers;
    batch.null_count = _i == 0 ? -1 : 0;
    column.buffers = texts;
    texts[0] = _i == 1 ? &second_is_null : NULL;
    column.null_count = _i == 1 ? 1 : -1;
    ck_assert_int_eq(
        refused(uva_stream_from_partitions(pool, &batch, NULL), "no batch"),
        EINVAL);
    batch.length = 1; /* that has a text */
    ck_assert_int_eq(play(uva_stream_from_partitions(pool, &batch, NULL)), 0);
}
END_TEST

static void fails_without_pool(struct uva_stream *stream)
{
    ck_assert_int_eq(uva_stream_status(stream, NULL), EINVAL);
    uva_stream_release(stream);
}

START_TEST(a_pool_is_needed)
{
    fails_without_pool(uva_stream_from_objects(NULL, NULL));
    fails_without_pool(uva_stream_from_partition(NULL, "", 0, NULL));
    fails_without_pool(uva_stream_from_partitions(NULL, NULL, NULL));
    fails_without_pool(uva_stream_from_table_schema(NULL, NULL, NULL, "t"));
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

static struct uva_stream *make_kind(int kind)
{
    static const char *const types[] = {"view", NULL};
    static const struct uva_adbc_query query = {.sql = "partitions 3",
                                                .result = UVA_ADBC_PARTITIONS};

    switch (kind) {
    case 0:
        return uva_stream_from_query(pool, &query);
    case 1:
        return uva_stream_from_partition(pool, "rows 2", 6, NULL);
    case 2:
        return uva_stream_from_objects(
            pool, &(struct uva_adbc_objects){.catalog = "main",
                                             .table_types = types});
    case 3:
        return uva_stream_from_table_schema(pool, NULL, "s", "t");
    default:
        return uva_stream_from_partitions(pool, &taken.array, NULL);
    }
}

/* From five on, a connection is idle before each. */
START_TEST(every_allocation_may_fail)
{
    bool failed = true;

    make(2);
    partition("partitions 3");
    for (int k = 1; failed; k++) {
        ck_assert_int_lt(k, 1000);
        if (_i >= 5)
            ck_assert_int_eq(play(uva_stream_from_objects(pool, NULL)), 0);
        fixture_release(&f);
        recording_init(&f.got);
        faulty_libc_fail(k);
        f.stream = make_kind(_i % 5);
        if (fixture_try(&f, NULL) == 0)
            recording_await_done(&f.got, &f.loop);
        f.got.wrong = 0;
        failed = faulty_libc_stop();
    }
    ck_assert_int_eq(f.got.outcome.error.code, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("catalog");

    suite_add(tc, partitions_are_read_and_merged, there_may_be_few_partitions,
              one_partition_is_read, what_fails_is_reported,
              a_cancel_reaches_the_connection, objects_are_listed,
              a_limit_of_time_ends_a_list_of_objects, a_table_has_a_schema,
              a_simple_driver_has_none_of_them, what_is_invalid_is_refused,
              a_pool_is_needed, NULL);
    tcase_add_test(tc, texts_of_partitions_must_lie_in_order);
    tcase_add_test(tc, texts_behind_an_offset_must_lie_in_order);
    suite_add_loops(tc, 0, 2, null_partitions_are_refused, NULL);
    suite_add_loops(tc, 0, 4, partitions_of_another_shape_are_refused, NULL);
    tcase_add_test(tc, a_driver_may_give_nothing);
    suite_add_loops(tc, 0, 10, every_allocation_may_fail, NULL);
    return suite_main("catalog", set_up, tear_down, tc, NULL);
}
