/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that follow uva_stream_encode(): which there are, what each of them
 * has, and who may take it. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { MOST = 16, ROOM = 4096 };

/* A part that was taken. */
struct taken {
    char bytes[ROOM];
    size_t size;
    int64_t rows, ordinal;
};

/* A consumer of parts. */
struct reader {
    struct taken parts[MOST];
    int count;
    int64_t columns; /* of the schema */
    bool is_done;
    struct uva_error error;
};

static struct fixture f;
static struct uva_stream *stream;
static struct reader reader, other;

static void set_up(void)
{
    memset(&reader, 0, sizeof(reader));
    memset(&other, 0, sizeof(other));
    fixture_open(&f, 3);
    f.fake.rows = 2;
}

static void tear_down(void)
{
    uva_stream_release(stream);
    stream = NULL;
    fixture_close(&f);
}

/* ---- the reader ---------------------------------------------------------- */

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    ((struct reader *)ctx)->columns = info->schema->n_children;
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct reader *r = ctx;
    struct taken *to = &r->parts[r->count++];
    struct uva_part part;
    int64_t bytes = 0;

    ck_assert_int_eq(batch->data.array.n_children, 0);
    ck_assert_int_eq(uva_part_take(&batch->data, &part), 0);
    ck_assert(!uva_array_is_live(&batch->data));
    ck_assert_int_eq(uva_part_take(&batch->data, &part), EINVAL);
    for (size_t i = 0; i < part.count; i++) {
        ck_assert_uint_gt(part.buffers[i].len, 0);
        ck_assert_uint_le(to->size + part.buffers[i].len, ROOM);
        memcpy(to->bytes + to->size, part.buffers[i].base, part.buffers[i].len);
        to->size += part.buffers[i].len;
        bytes += (int64_t)part.buffers[i].len;
    }
    ck_assert_int_eq(bytes, part.bytes);
    ck_assert_int_gt(bytes, 0);
    ck_assert(part.reserved[0] == 0 && part.reserved[1] == 0);
    to->rows = part.rows;
    to->ordinal = batch->ordinal;
    uva_part_release(&part);
    ck_assert(part.owner == NULL && part.buffers == NULL && part.rows == 0);
    uva_part_release(&part);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct reader *r = ctx;

    r->is_done = true;
    r->error = outcome->error;
}

static int start(struct uva_stream *of, struct reader *r)
{
    return uva_stream_for_each(of,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = r},
                               &r->error);
}

static bool is_done(void *ctx)
{
    return ((struct reader *)ctx)->is_done;
}

/* Reads all parts of the fixture's source. */
static void read_parts(const struct uva_encode *options)
{
    stream = fixture_blocking(&f);
    (void)uva_stream_encode(stream, options);
    if (start(stream, &reader) == 0)
        loop_until(&f.loop, is_done, &reader);
}

static void check_text(int i, const char *text, int64_t rows)
{
    struct taken *part = &reader.parts[i];

    ck_assert_int_lt(i, reader.count);
    part->bytes[part->size] = '\0';
    ck_assert_str_eq(part->bytes, text);
    ck_assert_int_eq(part->rows, rows);
    ck_assert_int_eq(part->ordinal, i);
}

/* ---- which parts there are ----------------------------------------------- */

static const struct uva_encode csv = {.format = UVA_FORMAT_CSV};
static const struct uva_encode json = {.format = UVA_FORMAT_JSON};

START_TEST(names_are_with_the_first_lines)
{
    read_parts(&csv);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.columns, 0);
    ck_assert_int_eq(reader.count, 3);
    check_text(0, "n\n0\n1\n", 2);
    check_text(1, "10\n11\n", 2);
    check_text(2, "20\n21\n", 2);
}
END_TEST

START_TEST(names_alone_are_a_part)
{
    f.fake.batches = _i == 0 ? 0 : 3;
    f.fake.rows = 0;
    read_parts(&csv);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.count, 1);
    check_text(0, "n\n", 0);
}
END_TEST

START_TEST(no_lines_are_no_part)
{
    struct uva_encode rows_only = csv;

    rows_only.csv.rows_only = true;
    f.fake.batches = _i & 1 ? 0 : 3;
    f.fake.rows = 0;
    read_parts(_i < 2 ? &json : &rows_only);
    ck_assert(reader.is_done);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.count, 0);
}
END_TEST

static bool begins(int i, const char *bytes, size_t size)
{
    return reader.parts[i].size >= size &&
           memcmp(reader.parts[i].bytes, bytes, size) == 0;
}

/* Whether the end of the stream is at `offset` of the part. */
static bool is_end_at(int i, size_t offset)
{
    return memcmp(reader.parts[i].bytes + offset, "\xff\xff\xff\xff\0\0\0\0",
                  8) == 0;
}

START_TEST(the_schema_is_with_the_first_batch)
{
    const struct uva_encode file = {.format = UVA_FORMAT_ARROW_FILE};
    size_t end;

    read_parts(_i == 0 ? NULL : &file);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.columns, 0);
    ck_assert_int_eq(reader.count, 4);
    ck_assert(_i == 0 ? begins(0, "\xff\xff\xff\xff", 4)
                      : begins(0, "ARROW1\0\0", 8));
    ck_assert_uint_gt(reader.parts[0].size, reader.parts[1].size);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(reader.parts[i].rows, i < 3 ? 2 : 0);
        ck_assert_int_eq(reader.parts[i].ordinal, i);
    }
    ck_assert(is_end_at(3, 0));
    end = reader.parts[3].size;
    ck_assert(_i == 0
                  ? end == 8
                  : memcmp(reader.parts[3].bytes + end - 6, "ARROW1", 6) == 0);
}
END_TEST

START_TEST(an_empty_stream_is_one_part)
{
    f.fake.batches = 0;
    read_parts(NULL);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.count, 1);
    ck_assert_int_eq(reader.parts[0].rows, 0);
    ck_assert(begins(0, "\xff\xff\xff\xff", 4));
    ck_assert(is_end_at(0, reader.parts[0].size - 8));
}
END_TEST

/* Their message is a part of its own, as of any other batch. */
START_TEST(batches_without_rows_are_parts_of_arrow)
{
    f.fake.rows = 0;
    read_parts(NULL);
    ck_assert_int_eq(reader.error.code, 0);
    ck_assert_int_eq(reader.count, 4);
}
END_TEST

/* ---- who takes them ------------------------------------------------------ */

/* Each branch of a tee shares the array. */
START_TEST(each_branch_takes_the_part)
{
    struct uva_stream *branch;

    stream = fixture_blocking(&f);
    (void)uva_stream_encode(stream, _i == 0 ? NULL : &csv);
    branch = uva_stream_tee(stream, NULL);
    ck_assert_int_eq(start(branch, &other), 0);
    ck_assert_int_eq(start(stream, &reader), 0);
    uva_stream_release(branch);
    loop_until(&f.loop, is_done, &reader);
    loop_until(&f.loop, is_done, &other);
    ck_assert_int_eq(reader.count, _i == 0 ? 4 : 3);
    ck_assert_int_eq(other.count, reader.count);
    for (int i = 0; i < reader.count; i++) {
        ck_assert_uint_eq(other.parts[i].size, reader.parts[i].size);
        ck_assert_int_eq(memcmp(other.parts[i].bytes, reader.parts[i].bytes,
                                reader.parts[i].size),
                         0);
    }
}
END_TEST

static struct uva_part kept[MOST];
static int kept_count;

static int on_kept(void *ctx, struct uva_batch *batch)
{
    int code;

    (void)ctx;
    faulty_libc_fail(1);
    code = uva_part_take(&batch->data, &kept[kept_count]);
    ck_assert(!faulty_libc_stop());
    ck_assert_int_eq(code, 0);
    kept_count++;
    return 0;
}

/* It may be kept beyond the end, and to take it needs no memory. */
START_TEST(a_part_outlives_its_stream)
{
    kept_count = 0;
    stream = fixture_blocking(&f);
    (void)uva_stream_encode(stream, _i == 0 ? NULL : &csv);
    ck_assert_int_eq(
        uva_stream_for_each(stream,
                            &(struct uva_consumer){.on_batch = on_kept,
                                                   .on_done = on_done,
                                                   .ctx = &reader},
                            NULL),
        0);
    loop_until(&f.loop, is_done, &reader);
    uva_stream_release(stream);
    stream = NULL;
    ck_assert_int_eq(kept_count, _i == 0 ? 4 : 3);
    for (int i = 0; i < kept_count; i++) {
        ck_assert_int_ne(kept[i].buffers[0].base[0], 0);
        uva_part_release(&kept[i]);
    }
    uva_part_release(NULL);
}
END_TEST

/* ---- bad calls ----------------------------------------------------------- */

static int something;

static const struct {
    struct uva_encode options;
    const char *text;
} bad[] = {
    {{.format = (enum uva_format)9}, "uva_encode: format is 9"},
    {{.compression = (enum uva_compression)3}, "uva_encode: compression is 3"},
    {{.format = UVA_FORMAT_JSON, .compression = UVA_COMPRESSION_ZSTD},
     "uva_encode: compression is 2"},
    {{.format = UVA_FORMAT_CSV, .csv.delimiter = '"'},
     "uva_encode: csv.delimiter"},
    {{.format = UVA_FORMAT_CSV, .csv.null_text = ","},
     "uva_encode: csv.null_text"},
    {{.reserved = {NULL, NULL, NULL, &something}}, "uva_encode: reserved[3]"},
    {{.csv.reserved = {NULL, &something}}, "uva_csv: reserved[1]"},
};

START_TEST(options_are_checked)
{
    stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_encode(stream, &bad[_i].options), EINVAL);
    ck_assert_int_eq(start(stream, &reader), 0);
    loop_until(&f.loop, is_done, &reader);
    ck_assert_int_eq(reader.error.code, EINVAL);
    ck_assert_msg(strstr(reader.error.message, bad[_i].text) != NULL, "%s",
                  reader.error.message);
}
END_TEST

/* Also of text, for which there are two stages. */
START_TEST(a_stage_without_memory_fails_the_stream)
{
    bool failed = true;
    int refused = 0;

    for (long k = 1; failed; k++) {
        int code;

        tear_down();
        set_up();
        stream = fixture_blocking(&f);
        faulty_libc_fail(k);
        code = uva_stream_encode(stream, _i == 0 ? NULL : &csv);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        if (start(stream, &reader) == 0)
            loop_until(&f.loop, is_done, &reader);
        ck_assert_int_eq(reader.error.code, failed ? ENOMEM : 0);
        refused += failed;
    }
    ck_assert_int_gt(refused, _i); /* the stages need some, too */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("parts");
    TCase *all = suite_case(suite, "parts", set_up, tear_down);

    suite_add_loops(all, 0, 2, names_alone_are_a_part, NULL);
    suite_add_loops(all, 0, 4, no_lines_are_no_part, NULL);
    suite_add_loops(all, 0, 2, the_schema_is_with_the_first_batch, NULL);
    suite_add_loops(all, 0, 2, each_branch_takes_the_part, NULL);
    suite_add_loops(all, 0, 2, a_part_outlives_its_stream, NULL);
    suite_add_loops(all, 0, 2, a_stage_without_memory_fails_the_stream, NULL);
    suite_add_loops(all, 0, (int)(sizeof(bad) / sizeof(*bad)),
                    options_are_checked, NULL);
    suite_add(all, names_are_with_the_first_lines, an_empty_stream_is_one_part,
              batches_without_rows_are_parts_of_arrow, NULL);
    return suite_run(suite);
}
