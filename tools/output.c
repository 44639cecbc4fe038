/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  open -> (write -> written)* -> close -> on_closed. Pipes,
 *              terminals and sockets are libuv streams; a file is written by
 *              libuv's threads, one chunk at a time, at the file's own
 *              position.
 * Failures:    every write. The first failure is reported at once, possibly
 *              inside the call that caused it; all later chunks are discarded.
 * On close:    queued chunks are still written; then the handle is closed, then
 *              on_closed is called. */
#include "output.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop.h"

#define SINK_HIGH_BYTES ((size_t)4 << 20) /* full at this size */
#define SINK_LOW_BYTES  ((size_t)1 << 20) /* room again at this size */
#define SINK_FD_MIN     3                 /* above the three standard ones */

/* A chunk of bytes to write. */
struct uva__output_chunk {
    uv_write_t write;               /* for a stream */
    struct uva__output *output;     /* borrows */
    struct uva__output_chunk *next; /* for a file */
    struct uva_part part;           /* owns; zeroes: the bytes are a copy, which
                                               is after the buffers */
    size_t size;                    /* in bytes */
    int64_t rows;                   /* in it */
    unsigned count;                 /* number of buffers */
    uv_buf_t rest[];                /* file: the remaining bytes */
};

/* ---- open --------------------------------------------------------------- */

/* Saves the flags: libuv makes a pipe non-blocking, also for the programs that
 * share it. */
static void output_remember_flags(struct uva__output *output)
{
    output->fd_flags = fcntl(output->fd, F_GETFL);
}

static int output_open_handle(struct uva__output *output, uv_handle_type type)
{
    int code;

    switch (type) {
    case UV_TTY:
        output->kind = UVA__OUTPUT_TERMINAL;
        return uv_tty_init(output->loop, &output->to.tty, output->fd, 0);
    case UV_NAMED_PIPE:
        output_remember_flags(output);
        (void)uv_pipe_init(output->loop, &output->to.pipe, 0);
        code = uv_pipe_open(&output->to.pipe, output->fd);
        break;
    case UV_TCP:
        output_remember_flags(output);
        (void)uv_tcp_init(output->loop, &output->to.tcp);
        code = uv_tcp_open(&output->to.tcp, output->fd);
        break;
    case UV_FILE:
        output->kind = UVA__OUTPUT_FILE;
        return 0;
    default:
        return UV_ENOTSUP;
    }
    if (code != 0)
        uv_close(&output->to.handle, NULL);
    return code;
}

/* Returns a descriptor, or the negative code of libuv. */
static int descriptor_open(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    return fd < 0 ? -errno : fd;
}

static int descriptor_copy(int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, SINK_FD_MIN);

    return copy < 0 ? -errno : copy;
}

static void output_fail(struct uva__output *output, int code)
{
    if (output->code != 0)
        return;
    output->code = code;
    output->events.on_failed(output->events.ctx, code);
}

/* Runs when the pipe's last reader closes it, even if no bytes are written. */
static void output_on_watch(uv_poll_t *watch, int status, int events)
{
    (void)status;
    (void)events;
    (void)uv_poll_stop(watch);
    output_fail(watch->data, EPIPE);
}

/* A pipe signals when its last reader closes it; a socket signals only that its
 * peer will send no more. Without the watch, the next write fails. */
static void output_watch(struct uva__output *output)
{
    struct stat about;

    if (fstat(output->fd, &about) != 0 || !S_ISFIFO(about.st_mode))
        return;
    output->watch_fd = fcntl(output->fd, F_DUPFD_CLOEXEC, SINK_FD_MIN);
    if (output->watch_fd < 0)
        return;
    if (uv_poll_init(output->loop, &output->watch, output->watch_fd) != 0) {
        (void)close(output->watch_fd);
        return;
    }
    output->watch.data = output;
    output->watching = true;
    output->handles++;
    (void)uv_poll_start(&output->watch, UV_DISCONNECT, output_on_watch);
}

/* Takes `fd`, or its code. */
static int output_start(struct uva__output *output, int fd, const char *name,
                        struct uva_error *error)
{
    int code;

    output->fd_flags = -1;
    output->fd = fd;
    if (fd < 0)
        return uva_error_set(error, -fd, "cannot write to %s: %s", name,
                             uv_strerror(fd));
    code = output_open_handle(output, uv_guess_handle(fd));
    if (code != 0) {
        (void)close(fd);
        return uva_error_set(error, -code, "cannot write to %s: %s", name,
                             uv_strerror(code));
    }
    output->fs.data = output;
    if (output->kind == UVA__OUTPUT_FILE) {
        code = uva__loop_threads(output->loop, error);
        if (code != 0)
            (void)close(output->fd);
        return code;
    }
    output->to.handle.data = output;
    output->handles = 1;
    output_watch(output);
    return 0;
}

int uva__output_open(struct uva__output *output, uv_loop_t *loop,
                     const char *path, const struct uva__output_events *events,
                     struct uva_error *error)
{
    if (path == NULL)
        return uva__output_open_fd(output, loop, STDOUT_FILENO,
                                   "standard output", events, error);
    *output =
        (struct uva__output){.loop = loop, .events = *events, .truncate = true};
    return output_start(output, descriptor_open(path), path, error);
}

int uva__output_open_fd(struct uva__output *output, uv_loop_t *loop, int fd,
                        const char *name,
                        const struct uva__output_events *events,
                        struct uva_error *error)
{
    *output = (struct uva__output){.loop = loop, .events = *events};
    return output_start(output, descriptor_copy(fd), name, error);
}

/* ---- write -------------------------------------------------------------- */

static void output_pump(struct uva__output *output);
static void output_settle(struct uva__output *output);

/* Drops a chunk that was written or has failed. */
static void chunk_end(struct uva__output_chunk *chunk, int code)
{
    struct uva__output *output = chunk->output;

    assert(output->pending > 0 && output->pending_bytes >= chunk->size);
    output->pending--;
    output->pending_bytes -= chunk->size;
    if (code >= 0) {
        output->written.bytes += (int64_t)chunk->size;
        output->written.rows += chunk->rows;
        output->written.batches += chunk->rows > 0;
    }
    uva_part_release(&chunk->part);
    free(chunk);
    if (code < 0)
        output_fail(output, -code);
    output_settle(output);
}

static void chunk_written(uv_write_t *write, int code)
{
    chunk_end((struct uva__output_chunk *)write, code);
}

/* Leaves the written bytes out of a chunk; returns whether that is all. */
static bool chunk_advance(struct uva__output_chunk *chunk, size_t size)
{
    unsigned done = 0, i;

    while (done < chunk->count && size >= chunk->rest[done].len)
        size -= chunk->rest[done++].len;
    chunk->count -= done;
    for (i = 0; i < chunk->count; i++)
        chunk->rest[i] = chunk->rest[i + done];
    if (chunk->count == 0)
        return true;
    chunk->rest[0].base += size;
    chunk->rest[0].len -= size;
    return false;
}

/* A write may be short. */
static void chunk_file_written(uv_fs_t *fs)
{
    struct uva__output *output = fs->data;
    struct uva__output_chunk *chunk = output->first;
    const ssize_t result = fs->result;

    assert(chunk != NULL && output->kind == UVA__OUTPUT_FILE);
    uv_fs_req_cleanup(fs);
    if (result >= 0 && !chunk_advance(chunk, (size_t)result)) {
        output_pump(output);
        return;
    }
    output->first = chunk->next;
    chunk_end(chunk, result < 0 ? (int)result : 0);
    output_pump(output);
}

/* Writes the next chunk of a file; discards the chunks of a file that has
 * failed. */
static void output_pump(struct uva__output *output)
{
    struct uva__output_chunk *chunk;
    int code;

    while ((chunk = output->first) != NULL) {
        code = output->code != 0
                   ? UV_ECANCELED
                   : uv_fs_write(output->loop, &output->fs, output->fd,
                                 chunk->rest, chunk->count, -1,
                                 chunk_file_written);
        if (code == 0)
            return;
        output->first = chunk->next;
        chunk_end(chunk, code);
    }
}

/* Truncating a device fails, which is harmless. */
static void output_truncated(uv_fs_t *fs)
{
    struct uva__output *output = fs->data;
    const ssize_t result = fs->result;

    uv_fs_req_cleanup(fs);
    if (result < 0 && result != UV_EINVAL)
        output_fail(output, (int)-result);
    output_pump(output);
}

static void output_send(struct uva__output *output,
                        struct uva__output_chunk *chunk)
{
    int code = UV_ECANCELED;

    if (output->kind != UVA__OUTPUT_FILE) {
        if (output->code == 0)
            code = uv_write(&chunk->write, &output->to.stream, chunk->rest,
                            chunk->count, chunk_written);
        if (code != 0)
            chunk_end(chunk, code);
        return;
    }
    if (output->first != NULL) {
        output->last->next = chunk;
        output->last = chunk;
        return;
    }
    output->first = output->last = chunk;
    if (!output->truncate)
        output_pump(output);
    else if (uv_fs_ftruncate(output->loop, &output->fs, output->fd, 0,
                             output_truncated) != 0)
        abort(); /* cannot fail: libuv only queues it */
    output->truncate = false;
}

/* Makes a chunk with room for buffers, and for bytes after them. */
static struct uva__output_chunk *chunk_new(struct uva__output *output,
                                           size_t count, size_t bytes)
{
    struct uva__output_chunk *chunk =
        calloc(1, sizeof(*chunk) + count * sizeof(*chunk->rest) + bytes);

    assert(output->state == UVA__OUTPUT_OPEN);
    if (chunk == NULL)
        return NULL;
    chunk->output = output;
    chunk->count = (unsigned)count;
    return chunk;
}

/* Queues a chunk, which it takes. */
static void chunk_queue(struct uva__output_chunk *chunk)
{
    struct uva__output *output = chunk->output;

    output->pending++;
    output->pending_bytes += chunk->size;
    output_send(output, chunk);
}

int uva__output_write(struct uva__output *output, const void *data, size_t size)
{
    return uva__output_write_rows(output, data, size, 0);
}

int uva__output_write_rows(struct uva__output *output, const void *data,
                           size_t size, int64_t rows)
{
    struct uva__output_chunk *chunk = chunk_new(output, 1, size);

    if (chunk == NULL)
        return ENOMEM;
    chunk->size = size;
    chunk->rows = rows;
    chunk->rest[0] = uv_buf_init((char *)&chunk->rest[1], (unsigned)size);
    if (size > 0)
        memcpy(chunk->rest[0].base, data, size);
    chunk_queue(chunk);
    return 0;
}

int uva__output_write_part(struct uva__output *output, struct uva_part *part)
{
    struct uva__output_chunk *chunk;

    chunk = chunk_new(output, part->count, 0);
    if (chunk == NULL) {
        uva_part_release(part);
        return ENOMEM;
    }
    chunk->size = (size_t)part->bytes;
    chunk->rows = part->rows;
    memcpy(chunk->rest, part->buffers, part->count * sizeof(*part->buffers));
    chunk->part = *part;
    *part = (struct uva_part){0};
    chunk_queue(chunk);
    return 0;
}

bool uva__output_is_full(struct uva__output *output)
{
    output->full = output->pending_bytes >= SINK_HIGH_BYTES;
    return output->full;
}

void uva__output_resume(struct uva__output *output)
{
    if (output->kind == UVA__OUTPUT_FILE && output->state == UVA__OUTPUT_OPEN &&
        output->first == NULL)
        output->code = 0;
}

/* ---- close -------------------------------------------------------------- */

static void output_handle_closed(uv_handle_t *handle)
{
    struct uva__output *output = handle->data;

    assert(output->handles > 0);
    output->handles--;
    if (output->handles > 0)
        return;
    assert(output->pending == 0);
    output->events.on_closed(output->events.ctx);
}

static void output_file_closed(uv_fs_t *fs)
{
    struct uva__output *output = fs->data;

    if (fs->result < 0)
        output_fail(output, (int)-fs->result);
    uv_fs_req_cleanup(fs);
    output->events.on_closed(output->events.ctx);
}

/* Restores the flags that other programs share. */
static void output_restore_flags(struct uva__output *output)
{
    if (output->fd_flags >= 0)
        (void)fcntl(output->fd, F_SETFL, output->fd_flags);
    output->fd_flags = -1;
}

/* libuv writes to a terminal through another descriptor, so close both. */
static void output_close_handles(struct uva__output *output)
{
    uv_os_fd_t used = output->fd;

    (void)uv_fileno(&output->to.handle, &used);
    uv_close(&output->to.handle, output_handle_closed);
    if (used != output->fd)
        (void)close(output->fd);
    if (!output->watching)
        return;
    uv_close((uv_handle_t *)&output->watch, output_handle_closed);
    (void)close(output->watch_fd);
}

/* Checks, now that fewer bytes are queued, for a room callback or a close that
 * is due. */
static void output_settle(struct uva__output *output)
{
    if (output->full && output->pending_bytes <= SINK_LOW_BYTES) {
        output->full = false;
        output->events.on_writable(output->events.ctx);
    }
    if (output->state != UVA__OUTPUT_CLOSING || output->pending > 0)
        return;
    output_restore_flags(output);
    if (output->kind != UVA__OUTPUT_FILE)
        output_close_handles(output);
    else if (uv_fs_close(output->loop, &output->fs, output->fd,
                         output_file_closed) != 0)
        abort(); /* cannot fail: libuv only queues it */
}

void uva__output_close(struct uva__output *output)
{
    assert(output->state == UVA__OUTPUT_OPEN);
    output->state = UVA__OUTPUT_CLOSING;
    output_settle(output);
}

/* libuv cancels the writes of a stream that is closed. */
void uva__output_cut(struct uva__output *output)
{
    if (output->state != UVA__OUTPUT_CLOSING ||
        output->kind == UVA__OUTPUT_FILE || output->pending == 0)
        return;
    output->state = UVA__OUTPUT_CUT;
    output_restore_flags(output);
    output_close_handles(output);
}
