/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are mapped, and the same files read: every type, from an odd
 * place, compressed; what outlives the stream; files that are cut before they
 * are opened and while they are read; what cannot be mapped; where the
 * descriptor stands afterwards; and memory that runs out. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/every_type.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { BATCHES = 6, ROWS = 200, MOST = 4, ODD = 5 };

static struct fixture f;
static int file; /* owns */
static int written;
static struct uva_ipc_source options;
static struct ArrowDeviceArray arrays[MOST]; /* owns: what was read */
static int count;                            /* of them */

static void set_up(void)
{
    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    options = (struct uva_ipc_source){.mmap = true};
    file = memfd_create("test", MFD_CLOEXEC);
    ck_assert_int_ge(file, 0);
    count = written = 0;
}

static void release_arrays(void)
{
    while (count > 0)
        uva_array_release(&arrays[--count]);
}

static void tear_down(void)
{
    release_arrays();
    fixture_close(&f);
    if (file >= 0)
        (void)close(file);
    every_type_forget();
    ck_assert_int_eq(plain_live(), 0);
}

/* ---- writing ------------------------------------------------------------ */

static void on_written(void *ctx, const struct uva_outcome *outcome,
                       int64_t size)
{
    (void)ctx;
    (void)size;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    written++;
}

static bool is_written(void *ctx)
{
    (void)ctx;
    return written > 0;
}

/* Writes the batches of the fixture's source behind what is there. Returns the
 * size of the file. */
static int64_t write_batches(enum uva_format format)
{
    const struct uva_write write = {.encode.format = format,
                                    .on_done = on_written};
    struct uva_stream *stream = fixture_blocking(&f);

    written = 0;
    ck_assert_int_eq(uva_stream_write_file(stream, file, &write, NULL), 0);
    loop_until(&f.loop, is_written, NULL);
    uva_stream_release(stream);
    atomic_store(&f.fake.given, 0);
    return lseek(file, 0, SEEK_END);
}

/* A batch of one column of a type. */
static void make_batch(int type, const struct every_variant *variant,
                       struct ArrowSchema *root, struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArray column;
    struct ArrowSchema of;

    every_type(type, variant, &of, &column);
    plain_schema(root, "+s", "", 1);
    *root->children[0] = of;
    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(&out->array, column.array.length, 1, 1);
    *out->array.children[0] = column.array;
}

static void write_part(struct uva_part *part)
{
    for (size_t i = 0; i < part->count; i++)
        ck_assert_int_eq(
            write(file, part->buffers[i].base, part->buffers[i].len),
            (ssize_t)part->buffers[i].len);
    uva_part_release(part);
}

/* Opens the file again, so that it has another position: a stream that has
 * failed may still move the one that it was given. */
static void reopen(int64_t at)
{
    char path[40];
    int again;

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    again = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(again, 0);
    (void)close(file);
    file = again;
    ck_assert_int_eq(lseek(file, at, SEEK_SET), at);
}

/* Writes a batch, after `front` bytes. False: the format cannot express it, or
 * the codec is not there. */
static bool write_type(int type, const struct every_variant *variant,
                       const struct uva_encode *encode, int front)
{
    struct ArrowDeviceArray batch;
    struct ArrowSchema root;
    struct uva_part part;
    int code;

    ck_assert_int_eq(ftruncate(file, 0), 0);
    reopen(front);
    make_batch(type, variant, &root, &batch);
    code = uva_array_encode(&root, &batch, 1, encode, &part, NULL);
    if (code == 0)
        write_part(&part);
    uva_array_release(&batch);
    uva_schema_release(&root);
    ck_assert_int_eq(lseek(file, front, SEEK_SET), front);
    return code == 0;
}

/* ---- reading ------------------------------------------------------------ */

static struct uva_stream *from_file(bool is_mapped)
{
    options.mmap = is_mapped;
    options.fd = file;
    return uva_stream_from_file(f.loop.runtime, NULL, &options);
}

static int keep_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    ck_assert_int_lt(count, MOST);
    uva_array_move(&batch->data, &arrays[count++]);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    f.got.outcome = *outcome;
    f.got.done++;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return f.got.done > 0;
}

/* Reads the file from its position on, and keeps the batches. */
static void keep(bool is_mapped)
{
    const struct uva_consumer consumer = {.on_batch = keep_batch,
                                          .on_done = on_done};
    struct uva_stream *stream = from_file(is_mapped);
    struct uva_error error = {0};
    int code;

    recording_init(&f.got);
    code = uva_stream_for_each(stream, &consumer, &error);
    uva_stream_release(stream);
    f.got.outcome = (struct uva_outcome){.end = UVA_END_FAILED, .error = error};
    if (code == 0)
        loop_until(&f.loop, is_done, NULL);
}

/* Reads it, in whatever way that ends. */
static void run(struct uva_stream *stream)
{
    recording_init(&f.got);
    recording_consume(&f.got, stream);
    recording_await_done(&f.got, &f.loop);
}

static void check_complete(void)
{
    recording_ended(&f.got, UVA_END_COMPLETE, 0, NULL);
    ck_assert_int_eq(f.got.taken, BATCHES);
    ck_assert(f.got.in_order);
    ck_assert_int_eq(f.got.wrong, 0);
}

static enum uva_format format_of(int i)
{
    return i % 2 == 0 ? UVA_FORMAT_ARROW : UVA_FORMAT_ARROW_FILE;
}

/* ---- equal -------------------------------------------------------------- */

/* The test's arrays have offsets and views of any kind, some of which readers
 * refuse: then both do, with the same text. */
START_TEST(every_type_is_equal)
{
    const struct every_variant variant = {9, 0, _i % 2 == 1};
    const int type = _i / 2 % EVERY_TYPES;
    const int front = _i < 2 * EVERY_TYPES ? 0 : ODD;

    for (int k = 0; k < 6; k++) {
        const struct uva_encode encode = {.format = format_of(k),
                                          .compression = k / 2};
        struct ArrowSchema root;
        struct ArrowDeviceArray batch;
        struct uva_error error;

        if (!write_type(type, &variant, &encode, front))
            continue;
        keep(false);
        error = f.got.outcome.error;
        reopen(front);
        keep(true);
        ck_assert_int_eq(f.got.outcome.error.code, error.code);
        ck_assert_str_eq(f.got.outcome.error.message, error.message);
        ck_assert_int_eq(count, error.code == 0 ? 2 : 0);
        make_batch(type, &variant, &root, &batch);
        if (count == 2)
            ck_assert(
                every_type_equal(&root, &arrays[0].array, &arrays[1].array));
        uva_array_release(&batch);
        uva_schema_release(&root);
        release_arrays();
    }
}
END_TEST

/* A large table in several batches, whose last file begins nowhere in
 * particular. */
START_TEST(batches_are_equal)
{
    ck_assert_int_eq(write(file, "front", ODD), ODD);
    (void)write_batches(format_of(_i));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(lseek(file, ODD, SEEK_SET), ODD);
        run(from_file(i == 1));
        check_complete();
    }
}
END_TEST

/* Compressed batches are extracted by workers, several at once. */
START_TEST(compressed_batches_are_read_in_parallel)
{
    const struct uva_write write = {
        .encode = {.format = format_of(_i), .compression = UVA_COMPRESSION_LZ4},
        .on_done = on_written};
    struct uva_stream *stream = fixture_blocking(&f);
    const int code = uva_stream_write_file(stream, file, &write, NULL);

    if (code == 0)
        loop_until(&f.loop, is_written, NULL);
    uva_stream_release(stream);
    if (code == ENOTSUP)
        return; /* built without the codec */
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    stream = from_file(_i / 2 == 1);
    ck_assert_int_eq(
        uva_stream_parallel(stream, &(struct uva_parallel){.workers = 3}), 0);
    run(stream);
    check_complete();
}
END_TEST

/* Arrays last, though the stream, its descriptors and the runtime are gone. */
START_TEST(arrays_outlive_all_else)
{
    const struct every_variant variant = {9, 0, true};
    const struct uva_encode encode = {.format = format_of(_i)};
    struct ArrowDeviceArray batch;
    struct ArrowSchema root;

    ck_assert(write_type(10, &variant, &encode, 0));
    keep(false);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    keep(true);
    ck_assert_int_eq(count, 2);
    fixture_close(&f);
    (void)close(file);
    file = -1;
    make_batch(10, &variant, &root, &batch);
    ck_assert(every_type_equal(&root, &arrays[0].array, &arrays[1].array));
    uva_array_release(&batch);
    uva_schema_release(&root);
}
END_TEST

/* What is written to the file is seen in the arrays of a mapped one alone. */
START_TEST(a_mapped_array_borrows_the_file)
{
    char bytes[1 << 16];
    const int64_t *numbers;
    const char *at;
    int64_t size;

    f.fake.batches = 2;
    (void)write_batches(format_of(_i));
    size = pread(file, bytes, sizeof(bytes), 0);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    keep(_i / 2 == 1);
    ck_assert_int_eq(count, 2);
    numbers = arrays[1].array.children[0]->buffers[1];
    at = memmem(bytes, (size_t)size, numbers, ROWS * sizeof(*numbers));
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(numbers[0], 10);
    ck_assert_int_eq(pwrite(file, "\1", 1, at - bytes), 1);
    ck_assert_int_eq(numbers[0], _i / 2 == 1 ? 1 : 10);
}
END_TEST

/* ---- cut ---------------------------------------------------------------- */

/* A file that is cut before it is opened fails alike in both ways. */
START_TEST(a_cut_fails_alike)
{
    const int64_t size = write_batches(format_of(_i));
    struct uva_error error;

    options.need_end_mark = true;
    for (int64_t cut = 0; cut < size; cut += size / 61 + 1) {
        ck_assert_int_eq(ftruncate(file, size - cut), 0);
        for (int i = 0; i < 2; i++) {
            reopen(0);
            run(from_file(i == 1));
            if (cut == 0) {
                check_complete();
                continue;
            }
            ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
            ck_assert_int_eq(f.got.outcome.error.code, EPROTO);
            if (i == 0)
                error = f.got.outcome.error;
            else
                ck_assert_str_eq(f.got.outcome.error.message, error.message);
        }
    }
}
END_TEST

/* Cuts the file once the second batch has come. */
static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    const int64_t size = lseek(file, 0, SEEK_END);

    (void)c;
    if (batch->ordinal == 1)
        ck_assert_int_eq(ftruncate(file, size / 2), 0);
}

/* A file that becomes shorter while it is read fails, before a page is looked
 * at that has gone: with windows of one, only a few of its many batches are
 * read when the second one comes. */
START_TEST(a_file_that_becomes_shorter_fails)
{
    f.fake.batches = 40;
    (void)write_batches(format_of(_i));
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    options.window.batches = 1;
    recording_init(&f.got);
    f.got.on_batch = on_batch;
    recording_consume(&f.got, from_file(true));
    recording_await_done(&f.got, &f.loop);
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "the file became shorter");
    ck_assert_int_lt(f.got.taken, 20);
}
END_TEST

/* ---- what is not mapped ------------------------------------------------- */

START_TEST(a_pipe_is_read)
{
    char bytes[1 << 16];
    int64_t size;
    int ends[2];

    (void)write_batches(format_of(_i));
    size = pread(file, bytes, sizeof(bytes), 0);
    ck_assert_int_lt(size, (int64_t)sizeof(bytes));
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], bytes, (size_t)size), size);
    (void)close(ends[1]);
    options.fd = ends[0];
    run(uva_stream_from_file(f.loop.runtime, NULL, &options));
    check_complete();
    (void)close(ends[0]);
}
END_TEST

/* A file with more bytes than there are addresses, nearly all of them in no
 * block of the disk: the stream at its begin is read. */
START_TEST(what_is_too_large_to_be_mapped_is_read)
{
    (void)write_batches(UVA_FORMAT_ARROW);
    ck_assert_int_eq(ftruncate(file, INT64_C(1) << 60), 0);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    run(from_file(true));
    check_complete();
}
END_TEST

START_TEST(an_empty_file_is_refused)
{
    run(from_file(true));
    recording_ended(&f.got, UVA_END_FAILED, EPROTO, "ends at byte 0");
}
END_TEST

/* ---- the descriptor ------------------------------------------------------ */

/* Two streams in one file, one after the other, and what follows. */
START_TEST(a_stream_is_left_at_its_end)
{
    int64_t first = write_batches(UVA_FORMAT_ARROW), second;
    char rest[8] = {0};

    second = write_batches(UVA_FORMAT_ARROW);
    ck_assert_int_eq(write(file, "behind", 6), 6);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    run(from_file(_i == 1));
    check_complete();
    ck_assert_int_eq(lseek(file, 0, SEEK_CUR), first);
    run(from_file(_i == 1));
    check_complete();
    ck_assert_int_eq(lseek(file, 0, SEEK_CUR), second);
    ck_assert_int_eq(read(file, rest, sizeof(rest)), 6);
    ck_assert_str_eq(rest, "behind");
}
END_TEST

START_TEST(a_file_stays_where_it_is)
{
    (void)write_batches(UVA_FORMAT_ARROW_FILE);
    ck_assert_int_eq(lseek(file, 0, SEEK_SET), 0);
    run(from_file(_i == 1));
    check_complete();
    ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 0);
}
END_TEST

/* ---- many buffers -------------------------------------------------------- */

/* Texts, each in a buffer of its own. */
enum { TEXTS = 30, TEXT_SIZE = 13 };

static const char text_bytes[] = "thirteen long";
static int32_t views[TEXTS][4];
static int64_t text_sizes[TEXTS];
static int32_t text_offsets[] = {0, 8, TEXT_SIZE};
static int8_t indices[TEXTS];

static void views_make(struct ArrowSchema *schema, struct ArrowArray *array)
{
    plain_schema(schema, "vu", "views", 0);
    plain_array(array, TEXTS, 3 + TEXTS, 0);
    for (int32_t i = 0; i < TEXTS; i++) {
        views[i][0] = TEXT_SIZE;
        memcpy(&views[i][1], text_bytes, 4);
        views[i][2] = i;
        text_sizes[i] = TEXT_SIZE;
        array->buffers[2 + i] = text_bytes;
    }
    array->buffers[1] = views;
    array->buffers[2 + TEXTS] = text_sizes;
}

/* A batch whose first column has more buffers than most arrays, in front of
 * numbers and a dictionary. */
static void many_make(struct ArrowSchema *root, struct ArrowDeviceArray *out)
{
    struct ArrowArray *array = &out->array, *values;

    plain_schema(root, "+s", "", 3);
    uva_array_clear(out);
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(array, TEXTS, 1, 3);
    views_make(root->children[0], array->children[0]);
    plain_schema(root->children[1], "i", "numbers", 0);
    plain_array(array->children[1], TEXTS, 2, 0);
    array->children[1]->buffers[1] = views;
    plain_schema(root->children[2], "c", "names", 0);
    plain_schema(plain_schema_dictionary(root->children[2]), "u", "", 0);
    plain_array(array->children[2], TEXTS, 2, 0);
    array->children[2]->buffers[1] = indices;
    values = plain_array_dictionary(array->children[2]);
    plain_array(values, 2, 3, 0);
    values->buffers[1] = text_offsets;
    values->buffers[2] = text_bytes;
}

static void many_write(void)
{
    struct ArrowDeviceArray batch;
    struct ArrowSchema root;
    struct uva_part part;

    many_make(&root, &batch);
    ck_assert_int_eq(uva_array_encode(&root, &batch, 1, NULL, &part, NULL), 0);
    write_part(&part);
    uva_schema_release(&root);
}

/* Each allocation fails once, too. */
START_TEST(many_buffers_are_read)
{
    struct ArrowDeviceArray batch;
    struct ArrowSchema root;
    bool failed = true;

    many_write();
    many_make(&root, &batch);
    for (long k = 1; failed; k++) {
        reopen(0);
        faulty_libc_fail(k);
        keep(_i == 1);
        failed = faulty_libc_stop();
        if (f.got.outcome.end == UVA_END_COMPLETE) {
            ck_assert_int_eq(count, 1);
            ck_assert(every_type_equal(&root, &arrays[0].array, &batch.array));
        } else {
            ck_assert(failed);
            ck_assert_int_eq(f.got.outcome.error.code, ENOMEM);
        }
        release_arrays();
    }
    uva_array_release(&batch);
    uva_schema_release(&root);
}
END_TEST

/* ---- memory ------------------------------------------------------------- */

/* Without memory for the mapping, the file is read. */
START_TEST(every_allocation_may_fail)
{
    bool failed = true;

    (void)write_batches(format_of(_i));
    for (long k = 1; failed; k++) {
        struct uva_stream *stream;
        struct uva_consumer consumer;
        struct uva_error error = {0};
        int code;

        reopen(0);
        recording_init(&f.got);
        consumer = recording_table(&f.got);
        faulty_libc_fail(k);
        stream = from_file(true);
        code = uva_stream_for_each(stream, &consumer, &error);
        uva_stream_release(stream);
        if (code == 0)
            loop_until(&f.loop, is_done, NULL);
        failed = faulty_libc_stop();
        if (code != 0)
            ck_assert_int_eq(code, ENOMEM);
        else if (failed && f.got.outcome.end == UVA_END_FAILED)
            ck_assert_int_eq(f.got.outcome.error.code, ENOMEM);
        else
            check_complete();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("read_mapped");
    TCase *all = suite_case(suite, "read_mapped", set_up, tear_down);

    suite_add_loops(all, 0, 4 * EVERY_TYPES, every_type_is_equal, NULL);
    suite_add_loops(all, 0, 4, compressed_batches_are_read_in_parallel,
                    a_mapped_array_borrows_the_file, NULL);
    suite_add_loops(all, 0, 2, arrays_outlive_all_else, batches_are_equal,
                    a_cut_fails_alike, a_file_that_becomes_shorter_fails,
                    a_pipe_is_read, a_stream_is_left_at_its_end,
                    a_file_stays_where_it_is, many_buffers_are_read,
                    every_allocation_may_fail, NULL);
    suite_add(all, an_empty_file_is_refused,
              what_is_too_large_to_be_mapped_is_read, NULL);
    return suite_run(suite);
}
