/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read by their path: they are opened by a worker, when the
 * stream starts. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"
#include "uvarrow/io.h"

enum { BATCHES = 3, ROWS = 5 };

static struct fixture f;
static struct uva_stream *stream;
static char folder[64], path[96];
static struct {
    bool is_done, is_written;
    int64_t rows;
    struct uva_error error;
} run;

static void set_up(void)
{
    memset(&run, 0, sizeof(run));
    fixture_open(&f, BATCHES);
    f.fake.rows = ROWS;
    strcpy(folder, "/tmp/uvarrow-paths-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/rows.arrow", folder);
}

static void tear_down(void)
{
    uva_stream_release(stream);
    stream = NULL;
    loop_settle(&f.loop);
    fixture_close(&f);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- writing and reading ------------------------------------------------- */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    run.rows += batch->data.array.length;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    run.is_done = true;
    run.error = outcome->error;
}

static void on_written(void *ctx, const struct uva_outcome *outcome,
                       int64_t bytes)
{
    (void)ctx;
    (void)bytes;
    run.is_written = true;
    ck_assert_int_eq(outcome->error.code, 0);
}

static bool is_written(void *ctx)
{
    (void)ctx;
    return run.is_written;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return run.is_done;
}

/* Writes the batches of the fixture to the file. */
static void write_file(int flags)
{
    const struct uva_write options = {.on_done = on_written};
    const int fd = open(path, flags | O_WRONLY | O_CLOEXEC, 0600);
    struct uva_stream *rows = fixture_blocking(&f);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(uva_stream_write_file(rows, fd, &options, NULL), 0);
    (void)close(fd);
    loop_until(&f.loop, is_written, NULL);
    uva_stream_release(rows);
}

static int start(void)
{
    return uva_stream_for_each(
        stream,
        &(struct uva_consumer){.on_batch = on_batch, .on_done = on_done},
        &run.error);
}

static void read_stream(struct uva_stream *made)
{
    stream = made;
    if (start() == 0)
        loop_until(&f.loop, is_done, NULL);
}

/* ---- paths --------------------------------------------------------------- */

START_TEST(a_path_is_read)
{
    char *copy = strdup(path);

    stream = uva_stream_from_file(f.loop.runtime, copy, NULL);
    memset(copy, 'x', strlen(copy));
    free(copy);
    write_file(O_CREAT | O_EXCL); /* it is opened at the start */
    read_stream(stream);
    ck_assert_msg(run.error.code == 0, "%s", run.error.message);
    ck_assert_int_eq(run.rows, BATCHES * ROWS);
}
END_TEST

START_TEST(a_path_that_cannot_be_opened_fails_the_stream)
{
    read_stream(uva_stream_from_file(f.loop.runtime, path, NULL));
    ck_assert(run.is_done);
    ck_assert_int_eq(run.error.code, ENOENT);
    ck_assert_msg(strstr(run.error.message, "cannot open") != NULL &&
                      strstr(run.error.message, path) != NULL,
                  "%s", run.error.message);
}
END_TEST

START_TEST(a_folder_is_no_file)
{
    read_stream(uva_stream_from_file(f.loop.runtime, folder, NULL));
    ck_assert_int_eq(run.error.code, EISDIR);
}
END_TEST

START_TEST(a_path_beside_a_descriptor_is_refused)
{
    read_stream(uva_stream_from_file(f.loop.runtime, path,
                                     &(struct uva_ipc_source){.fd = 1}));
    ck_assert(!run.is_done);
    ck_assert_int_eq(run.error.code, EINVAL);
    ck_assert_msg(strstr(run.error.message, "uva_ipc_source: fd is 1") != NULL,
                  "%s", run.error.message);
}
END_TEST

/* ---- a FIFO -------------------------------------------------------------- */

static bool is_still(void *ctx)
{
    long *turns = ctx;

    loop_nudge(&f.loop);
    return --*turns < 0;
}

START_TEST(a_cancel_ends_the_wait_for_a_writer)
{
    long turns = 200;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    stream = uva_stream_from_file(f.loop.runtime, path, NULL);
    ck_assert_int_eq(start(), 0);
    loop_until(&f.loop, is_still, &turns);
    ck_assert(!run.is_done);
    uva_stream_cancel(stream, ETIMEDOUT, "too slow");
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(run.error.code, ETIMEDOUT);
}
END_TEST

/* Opens the FIFO once it has a reader. */
static bool has_reader(void *ctx)
{
    int *fd = ctx;

    loop_nudge(&f.loop);
    *fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return *fd >= 0;
}

START_TEST(a_fifo_is_read)
{
    const struct uva_write options = {.on_done = on_written};
    struct uva_stream *rows = fixture_blocking(&f);
    int fd = -1;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    stream = uva_stream_from_file(f.loop.runtime, path, NULL);
    ck_assert_int_eq(start(), 0);
    loop_until(&f.loop, has_reader, &fd);
    (void)fcntl(fd, F_SETFL, 0);
    ck_assert_int_eq(uva_stream_write_file(rows, fd, &options, NULL), 0);
    (void)close(fd);
    loop_until(&f.loop, is_written, NULL);
    uva_stream_release(rows);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_msg(run.error.code == 0, "%s", run.error.message);
    ck_assert_int_eq(run.rows, BATCHES * ROWS);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

/* Without memory for one more thread, those there are do its work. */
START_TEST(a_path_without_memory_fails_the_stream)
{
    bool failed = true;
    int refused = 0;

    write_file(O_CREAT);
    loop_settle(&f.loop); /* the writer is gone */
    for (long k = 1; failed; k++) {
        run.is_done = false;
        run.rows = 0;
        run.error.code = 0;
        faulty_libc_fail(k);
        read_stream(uva_stream_from_file(f.loop.runtime, path, NULL));
        failed = faulty_libc_stop();
        ck_assert(run.error.code == 0 ? run.rows == BATCHES * ROWS
                                      : failed && run.error.code == ENOMEM);
        refused += run.error.code != 0;
        uva_stream_release(stream);
        stream = NULL;
    }
    ck_assert_int_gt(refused, BATCHES); /* each batch needs some, too */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("paths");
    TCase *all = suite_case(suite, "paths", set_up, tear_down);

    suite_add(all, a_path_is_read,
              a_path_that_cannot_be_opened_fails_the_stream,
              a_folder_is_no_file, a_path_beside_a_descriptor_is_refused,
              a_cancel_ends_the_wait_for_a_writer, a_fifo_is_read,
              a_path_without_memory_fails_the_stream, NULL);
    return suite_run(suite);
}
