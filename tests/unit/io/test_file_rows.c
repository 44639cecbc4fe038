/* SPDX-License-Identifier: Apache-2.0 */
/* The rows and bytes that a file is expected to give: counted from the heads of
 * its batches, which its footer lists; and no harm from a footer that lies. */
#define _GNU_SOURCE
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/io.h"

enum { ROWS = 7 };

static struct fixture f;
static int file; /* owns; -1: none */

static void set_up(void)
{
    fixture_open(&f, 0);
    f.fake.rows = ROWS;
    file = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
}

static void tear_down(void)
{
    fixture_close(&f);
    (void)close(file);
}

static void on_written(void *ctx, const struct uva_outcome *outcome,
                       int64_t count)
{
    (void)count;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    *(int *)ctx = 1;
}

static bool is_set(void *ctx)
{
    return *(int *)ctx != 0;
}

/* Writes `batches` batches. Returns the size of the file. */
static int64_t write_file(enum uva_format format, int64_t batches)
{
    int done = 0;
    const struct uva_write write = {
        .encode.format = format, .on_done = on_written, .ctx = &done};
    struct uva_stream *stream;

    f.fake.batches = batches;
    stream = fixture_blocking(&f);
    ck_assert_int_eq(uva_stream_write_file(stream, file, &write, NULL), 0);
    loop_until(&f.loop, is_set, &done);
    uva_stream_release(stream);
    atomic_store(&f.fake.given, 0);
    return lseek(file, 0, SEEK_END);
}

/* Reads it, in whatever way that ends, and gives the statistics of the source.
 */
static struct uva_stage_stats read_file(int from)
{
    struct uva_stage_stats stage;
    size_t count = 1;

    ck_assert(lseek(from, 0, SEEK_SET) == 0 || from != file);
    fixture_release(&f);
    recording_init(&f.got);
    f.stream = uva_stream_from_file(f.loop.runtime, NULL,
                                    &(struct uva_ipc_source){.fd = from});
    fixture_start(&f);
    recording_await_done(&f.got, &f.loop);
    ck_assert_int_eq(uva_stream_get_stats(f.stream, &stage, &count), 0);
    ck_assert_str_eq(stage.name, "file");
    return stage;
}

START_TEST(a_file_knows_its_rows)
{
    static const int64_t counts[] = {0, 1, 5, 1024};
    const int64_t size = write_file(UVA_FORMAT_ARROW_FILE, counts[_i]);
    const struct uva_stage_stats stage = read_file(file);

    ck_assert_int_eq(stage.rows_expected, counts[_i] * ROWS);
    ck_assert_int_eq(stage.bytes_expected, size);
    ck_assert_int_eq(f.got.rows, counts[_i] * ROWS);
}
END_TEST

START_TEST(of_very_many_batches_the_rows_are_not_counted)
{
    const int64_t size = write_file(UVA_FORMAT_ARROW_FILE, 1025);
    const struct uva_stage_stats stage = read_file(file);

    ck_assert_int_eq(stage.rows_expected, 0);
    ck_assert_int_eq(stage.bytes_expected, size);
    ck_assert_int_eq(f.got.rows, 1025 * ROWS);
}
END_TEST

START_TEST(a_stream_in_a_file_has_bytes_alone)
{
    const int64_t size = write_file(UVA_FORMAT_ARROW, 5);
    const struct uva_stage_stats stage = read_file(file);

    ck_assert_int_eq(stage.rows_expected, 0);
    ck_assert_int_eq(stage.bytes_expected, size);
}
END_TEST

START_TEST(of_a_pipe_nothing_is_known)
{
    char bytes[4096];
    const int64_t size = write_file(UVA_FORMAT_ARROW, 2);
    struct uva_stage_stats stage;
    int ends[2];

    ck_assert_int_lt(size, (int64_t)sizeof(bytes));
    ck_assert_int_eq(pread(file, bytes, (size_t)size, 0), size);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], bytes, (size_t)size), size);
    (void)close(ends[1]);
    stage = read_file(ends[0]);
    (void)close(ends[0]);
    ck_assert_int_eq(stage.rows_expected, 0);
    ck_assert_int_eq(stage.bytes_expected, 0);
    ck_assert_int_eq(f.got.rows, 2 * ROWS);
}
END_TEST

/* Every byte of the footer and of the heads is turned, one at a time: the count
 * may be wrong or missing, but it ends. */
START_TEST(a_changed_file_is_harmless)
{
    const int64_t size = write_file(UVA_FORMAT_ARROW_FILE, 2);
    unsigned char byte, turned;

    for (int64_t at = 8; at < size; at++) {
        ck_assert_int_eq(pread(file, &byte, 1, at), 1);
        turned = (unsigned char)~byte;
        ck_assert_int_eq(pwrite(file, &turned, 1, at), 1);
        ck_assert_int_ge(read_file(file).rows_expected, 0);
        ck_assert_int_eq(pwrite(file, &byte, 1, at), 1);
    }
    ck_assert_int_eq(read_file(file).rows_expected, 2 * ROWS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_rows");
    TCase *cases = suite_case(suite, "file rows", set_up, tear_down);

    tcase_add_loop_test(cases, a_file_knows_its_rows, 0, 4);
    suite_add(cases, of_very_many_batches_the_rows_are_not_counted,
              a_stream_in_a_file_has_bytes_alone, of_a_pipe_nothing_is_known,
              a_changed_file_is_harmless, NULL);
    return suite_run(suite);
}
