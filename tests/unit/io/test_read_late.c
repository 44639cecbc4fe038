/* SPDX-License-Identifier: Apache-2.0 */
/* A read of a file that returns after its runtime has closed and was freed. The
 * call of the system waits in this program, for as long as the test wants. */
#define _GNU_SOURCE
#include <check.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#include "support/check_suite.h"
#include "support/fake_source.h"
#include "support/faulty_allocator.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"
#include "uvarrow/runtime.h"

enum { END_MARK = 8 };

static uv_loop_t loop;
static struct uva_runtime *runtime; /* NULL: closed, and freed */
static struct faulty_allocator memory;
static struct fake_source fake; /* of the batch in the file */
static struct recording_consumer got;
static sem_t entered, returns, quiet;
static atomic_bool waits; /* the next read at the end of the file does */

ssize_t __real_preadv(int fd, const struct iovec *to, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *to, int count, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *to, int count, off_t offset)
{
    const ssize_t size = __real_preadv(fd, to, count, offset);

    if (size == 0 && atomic_exchange(&waits, false)) {
        (void)sem_post(&entered);
        (void)sem_wait(&returns);
    }
    return size;
}

static void on_quiet(void *ctx)
{
    (void)ctx;
    (void)sem_post(&quiet);
}

static void set_up(void)
{
    struct uva_runtime_options options = {.close_limit_ms = 1,
                                          .on_quiet = on_quiet};

    (void)sem_init(&entered, 0, 0);
    (void)sem_init(&returns, 0, 0);
    (void)sem_init(&quiet, 0, 0);
    atomic_store(&waits, true);
    faulty_allocator_init(&memory, 0);
    options.allocator = faulty_allocator_table(&memory);
    fake_source_init(&fake, 1);
    recording_init(&got);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uva_runtime_open(&loop, &options, &runtime, NULL), 0);
}

static void tear_down(void)
{
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    fake_source_fini(&fake);
}

/* Opens a file with a batch, and without the marker of the end. */
static int file_new(void)
{
    const struct uva_encode how = {.format = UVA_FORMAT_ARROW};
    const int fd = memfd_create("test", MFD_CLOEXEC);
    struct ArrowDeviceArray batch;
    struct ArrowSchema schema;
    struct uva_part part;

    fake_source_schema(&fake, &schema);
    fake_source_batch(&fake, 0, &batch);
    ck_assert_int_eq(uva_array_encode(&schema, &batch, 1, &how, &part, NULL),
                     0);
    for (size_t i = 0; i < part.count; i++)
        ck_assert_int_eq(write(fd, part.buffers[i].base, part.buffers[i].len),
                         (ssize_t)part.buffers[i].len);
    ck_assert_int_eq(ftruncate(fd, part.bytes - END_MARK), 0);
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    uva_part_release(&part);
    uva_schema_release(&schema);
    return fd;
}

static void on_closed(void *ctx)
{
    (void)ctx;
    runtime = NULL;
}

/* It would log that rows may be missing. */
START_TEST(a_read_may_return_after_its_runtime_was_freed)
{
    const int fd = file_new();

    recording_consume(&got,
                      uva_stream_from_file(runtime, NULL,
                                           &(struct uva_ipc_source){.fd = fd}));
    (void)close(fd); /* the stream has a copy */
    while (sem_trywait(&entered) != 0)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(uva_runtime_close(runtime, 0, on_closed, NULL), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_ptr_null(runtime);
    ck_assert_int_eq(got.outcome.end, UVA_END_CANCELLED);
    (void)sem_post(&returns);
    (void)sem_wait(&quiet);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("read late");
    TCase *all = suite_case(suite, "read", set_up, tear_down);

    suite_add(all, a_read_may_return_after_its_runtime_was_freed, NULL);
    return suite_run(suite);
}
