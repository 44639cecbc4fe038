/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_write_file(): the destination is a file, to which a blocking
 * worker writes. The descriptor is a copy, so that the caller may close its own
 * at any time after the end.
 *
 * Happy path:  ops -> all that wait are one burst -> written by a worker ->
 *              reported on the loop thread -> the next burst.
 *
 * What can fail: a write, with which all ops after it fail; a thread for the
 *              worker.
 *
 * On cancel:   `is_stopped` is set, and a wait for a pipe or socket is woken by
 *              `wake`, which stays readable. Writes to regular files return by
 *              themselves.
 * On close:    the guard is a stream that runs as long as writes are wanted. So
 *              a drain and the grace of a close wait for them, too; when it is
 *              cancelled, so are they, and the end is reported. A worker that
 *              returns after the loop has gone frees the writer. */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/writer.h"
#include "uvarrow/runtime.h"
#include "uvarrow/sources.h"

enum { VECTORS = 1024 }; /* the system's limit for one writev() */

/* What the descriptor is open on. */
enum file_kind {
    FILE_REGULAR, /* or a disk: a write returns by itself */
    FILE_SOCKET,  /* a write can be made without a wait */
    FILE_WAITED   /* a pipe, or a device */
};

struct file_writer {
    struct uva__writer writer;   /* first */
    struct uva_runtime *runtime; /* counts */
    struct uva_stream *guard;    /* counts; NULL: stopped */
    struct uva_pusher *end;      /* owns: ends the guard */
    enum file_kind kind;
    int fd;      /* owns */
    int wake[2]; /* owns: a pipe, readable once stopped; -1, -1: of a regular
                    file */
    atomic_bool is_stopped;      /* no more of the burst need be written */
    struct uva__write_op *first; /* owns: ops that wait for the burst */
    struct uva__write_op **last; /* where the next one is put */
    struct uva__write_op *burst; /* owns: being written; NULL: no worker runs */
    size_t written; /* the worker's: ops of the burst that were written */
    int code;       /* the worker's: why the others were not */
};

/* ---- the worker --------------------------------------------------------- */

/* Leaves the written bytes out of an op. */
static void file_advance(struct uva__write_op *op, size_t size)
{
    unsigned done = 0;

    while (done < op->count && size >= op->buffers[done].len)
        size -= op->buffers[done++].len;
    op->count -= done;
    for (unsigned i = 0; i < op->count; i++)
        op->buffers[i] = op->buffers[i + done];
    if (op->count > 0) {
        op->buffers[0].base += size;
        op->buffers[0].len -= size;
    }
}

/* Waits until a write does not block. Returns 0; ECANCELED once stopped; EINTR.
 */
static int file_wait(const struct file_writer *w)
{
    struct pollfd fds[] = {{.fd = w->fd, .events = POLLOUT},
                           {.fd = w->wake[0], .events = POLLIN}};

    if (poll(fds, 2, -1) < 0)
        return errno;
    return fds[1].revents != 0 ? ECANCELED : 0;
}

/* Writes some bytes, without a wait: to a pipe as many as it takes once poll()
 * has said that it is writable. */
static ssize_t file_put(const struct file_writer *w,
                        const struct uva__write_op *op)
{
    struct iovec *buffers = (struct iovec *)(void *)(uintptr_t)op->buffers;
    const size_t count = op->count < VECTORS ? op->count : VECTORS;
    const struct msghdr message = {.msg_iov = buffers, .msg_iovlen = count};
    const size_t size = buffers->iov_len;

    static_assert(sizeof(uv_buf_t) == sizeof(struct iovec), "libuv's promise");
    if (w->kind == FILE_REGULAR)
        return writev(w->fd, buffers, (int)count);
    if (w->kind == FILE_SOCKET)
        return sendmsg(w->fd, &message, MSG_DONTWAIT);
    return write(w->fd, buffers->iov_base, size < PIPE_BUF ? size : PIPE_BUF);
}

/* Writes an op. A descriptor that does not block may lack room after a wait,
 * too, if others write to the same pipe. */
static int file_write_op(struct file_writer *w, struct uva__write_op *op)
{
    bool waits = w->kind == FILE_WAITED;
    int code = 0;

    while (op->count > 0 && code == 0) {
        ssize_t size = 0;

        code = waits ? file_wait(w) : 0;
        if (code == 0 && atomic_load(&w->is_stopped))
            code = ECANCELED;
        if (code == 0) {
            size = file_put(w, op);
            code = size < 0 ? errno : size == 0 ? EIO : 0;
        }
        waits = w->kind == FILE_WAITED || code == EAGAIN;
        if (code == EINTR || code == EAGAIN)
            code = 0;
        if (size > 0)
            file_advance(op, (size_t)size);
    }
    return code;
}

static void file_work(void *ctx)
{
    struct file_writer *w = ctx;

    for (struct uva__write_op *op = w->burst; op != NULL; op = op->next) {
        w->code = file_write_op(w, op);
        if (w->code != 0)
            return;
        w->written++;
    }
}

/* ---- bursts ------------------------------------------------------------- */

static void file_on_worked(void *ctx);

/* Begins a burst of the ops that wait. On failure they are left. */
static int file_begin(struct file_writer *w)
{
    int code;

    if (w->writer.is_unwanted)
        return ECANCELED;
    w->burst = w->first;
    w->written = 0;
    w->code = 0;
    code = uva_runtime_run(w->runtime, UVA_LANE_BLOCKING, file_work,
                           file_on_worked, w);
    if (code != 0) {
        w->burst = NULL;
        return code;
    }
    (void)uva__writer_acquire(&w->writer);
    w->first = NULL;
    w->last = &w->first;
    return 0;
}

/* Reports the ops of a list: `written` of them were written. */
static void file_report(struct uva__write_op *op, size_t written, int code)
{
    while (op != NULL) {
        struct uva__write_op *next = op->next;

        uva__writer_written(op, written > 0 ? 0 : code);
        written -= written > 0;
        op = next;
    }
}

/* On the loop thread; on the worker if the loop has gone. An op of the next
 * burst may come meanwhile, and waits. */
static void file_on_worked(void *ctx)
{
    struct file_writer *w = ctx;
    int code = w->code;

    file_report(w->burst, w->written, code);
    w->burst = NULL;
    if (code == 0 && w->first != NULL)
        code = file_begin(w);
    if (code != 0) {
        struct uva__write_op *rest = w->first;

        w->first = NULL;
        w->last = &w->first;
        file_report(rest, 0, code);
    }
    uva__writer_release(&w->writer);
}

static int file_write(struct uva__writer *writer, struct uva__write_op *op)
{
    struct file_writer *w = (struct file_writer *)writer;
    struct uva__write_op **place = w->last;
    int code;

    *place = op;
    w->last = &op->next;
    code = w->burst == NULL ? file_begin(w) : 0;
    if (code != 0) { /* it is alone */
        *place = NULL;
        w->last = place;
    }
    return code;
}

/* ---- the end ------------------------------------------------------------ */

static void file_stop(struct uva__writer *writer)
{
    struct file_writer *w = (struct file_writer *)writer;

    if (writer->is_unwanted && !atomic_exchange(&w->is_stopped, true) &&
        w->wake[1] >= 0)
        (void)!write(w->wake[1], "", 1); /* once, as a full pipe blocks */
    uva_pusher_close(w->end, NULL, NULL);
    uva_stream_drop(w->guard);
    w->end = NULL;
    w->guard = NULL;
}

static void file_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static void file_free(struct uva__writer *writer)
{
    struct file_writer *w = (struct file_writer *)writer;

    uva_pusher_close(w->end, NULL, NULL);
    uva_stream_drop(w->guard);
    file_close(w->wake[0]);
    file_close(w->wake[1]);
    file_close(w->fd);
    uva_runtime_release(w->runtime);
    free(w);
}

static const struct uva__writer_ops file_ops = {
    .write = file_write,
    .stop = file_stop,
    .free = file_free,
};

/* ---- the guard ---------------------------------------------------------- */

/* The runtime is closing, or the deadline of a drain is over. */
static void guard_on_end(void *ctx, const struct uva_stream_info *info,
                         struct ArrowDeviceArray *batches, size_t count,
                         const struct uva_outcome *outcome)
{
    (void)info;
    (void)batches;
    (void)count;
    uva__writer_give_up(ctx, &outcome->error);
}

static int guard_start(struct file_writer *w, struct uva_error *error)
{
    w->guard = uva_stream_from_pusher(w->runtime, NULL, &w->end);
    (void)uva_stream_set_name(w->guard, "write_file");
    return uva_stream_collect(w->guard, 0, guard_on_end, w, error);
}

/* ---- the start ---------------------------------------------------------- */

/* What the descriptor is open on. */
static enum file_kind file_ask(int fd)
{
    struct stat status = {0};

    (void)fstat(fd, &status);
    if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode))
        return FILE_REGULAR;
    return S_ISSOCK(status.st_mode) ? FILE_SOCKET : FILE_WAITED;
}

static int file_refuse(int code, int fd, const char *what,
                       struct uva_error *error)
{
    return uva_error_set(error, code, "uva_stream_write_file: %s %d: %s", what,
                         fd, uv_strerror(-code));
}

/* Copies the descriptor, and makes what ends a wait for it. */
static int file_open(struct file_writer *w, int fd, struct uva_error *error)
{
    w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (w->fd < 0)
        return file_refuse(errno, fd, "fd", error);
    w->kind = file_ask(w->fd);
    if (w->kind == FILE_REGULAR)
        return 0;
    if (pipe(w->wake) != 0)
        return file_refuse(errno, fd, "a pipe for fd", error);
    for (int i = 0; i < 2; i++)
        (void)fcntl(w->wake[i], F_SETFD, FD_CLOEXEC);
    return 0;
}

/* Checks the thread: a stream that could not be made has no runtime, and its
 * start returns why. */
static int file_check(const struct uva_runtime *runtime,
                      const struct uva_write *options, struct uva_error *error)
{
    int code;

    if (options == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_stream_write_file: no options");
    code = uva__writer_check(options, error);
    if (code != 0)
        return code;
    if (runtime != NULL && !uva_runtime_on_loop(runtime))
        return uva_error_set(error, EPERM,
                             "uva_stream_write_file: not on the loop thread");
    return 0;
}

int uva_stream_write_file(struct uva_stream *stream, int fd,
                          const struct uva_write *options,
                          struct uva_error *error)
{
    struct uva_runtime *runtime = uva_stream_get_runtime(stream);
    struct file_writer *w;
    int code = file_check(runtime, options, error);

    if (code != 0)
        return code;
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    w->writer.ops = &file_ops;
    w->runtime = uva_runtime_acquire(runtime);
    w->fd = w->wake[0] = w->wake[1] = -1;
    w->last = &w->first;
    atomic_init(&w->is_stopped, false);
    code = file_open(w, fd, error);
    if (code == 0 && runtime != NULL)
        code = guard_start(w, error);
    if (code != 0) {
        file_free(&w->writer);
        return code;
    }
    return uva__writer_start(&w->writer, stream, options, error);
}
