/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  open -> (write -> written)* -> close -> on_closed. Pipes,
 *              terminals and sockets are libuv streams; a file is written by
 *              libuv's threads, one chunk at a time, at the file's own
 *              position.
 * What can fail: every write. The first failure is reported at once, possibly
 *              inside the call that caused it; all later chunks are discarded.
 * On close:    queued chunks are still written; then the handle is closed, then
 *              on_closed is called. */
#include "sink.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "uvarrow/arrow.h"

#define SINK_HIGH_BYTES ((size_t)4 << 20) /* full at this size */
#define SINK_LOW_BYTES  ((size_t)1 << 20) /* room again at this size */
#define SINK_FD_MIN     3                 /* above the three standard ones */

/* A chunk of bytes to write. */
struct uva__sink_chunk {
    uv_write_t write;              /* for a stream */
    struct uva__sink *sink;        /* borrows */
    struct uva__sink_chunk *next;  /* for a file */
    struct ArrowDeviceArray owner; /* owns, if live; else `copy` is used */
    uv_buf_t rest;                 /* file: the part not written so far */
    size_t size;                   /* in bytes */
    char copy[];                   /* used if there is no owner */
};

/* ---- open --------------------------------------------------------------- */

/* Saves the flags: libuv makes a pipe non-blocking, also for the programs that
 * share it. */
static void sink_remember_flags(struct uva__sink *sink)
{
    sink->fd_flags = fcntl(sink->fd, F_GETFL);
}

static int sink_open_handle(struct uva__sink *sink, uv_handle_type type)
{
    int code;

    switch (type) {
    case UV_TTY:
        sink->is_tty = true;
        return uv_tty_init(sink->loop, &sink->to.tty, sink->fd, 0);
    case UV_NAMED_PIPE:
        sink_remember_flags(sink);
        (void)uv_pipe_init(sink->loop, &sink->to.pipe, 0);
        code = uv_pipe_open(&sink->to.pipe, sink->fd);
        break;
    case UV_TCP:
        sink_remember_flags(sink);
        (void)uv_tcp_init(sink->loop, &sink->to.tcp);
        code = uv_tcp_open(&sink->to.tcp, sink->fd);
        break;
    case UV_FILE:
        sink->is_file = true;
        return 0;
    default:
        return UV_ENOTSUP;
    }
    if (code != 0)
        uv_close(&sink->to.handle, NULL);
    return code;
}

static int sink_open_fd(struct uva__sink *sink, const char *path)
{
    int fd;

    if (path == NULL) {
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, SINK_FD_MIN);
        return fd < 0 ? -errno : fd;
    }
    sink->truncate = true;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

static void sink_fail(struct uva__sink *sink, int code)
{
    if (sink->code != 0)
        return;
    sink->code = code;
    sink->events.on_failed(sink->events.ctx, code);
}

/* Runs when the pipe's last reader closes it, even if nothing is written. */
static void sink_on_watch(uv_poll_t *watch, int status, int events)
{
    (void)status;
    (void)events;
    (void)uv_poll_stop(watch);
    sink_fail(watch->data, EPIPE);
}

/* A pipe signals when its last reader closes it; a socket signals only that its
 * peer will send no more. Without the watch, the next write fails. */
static void sink_watch(struct uva__sink *sink)
{
    struct stat about;

    if (fstat(sink->fd, &about) != 0 || !S_ISFIFO(about.st_mode))
        return;
    sink->watch_fd = fcntl(sink->fd, F_DUPFD_CLOEXEC, SINK_FD_MIN);
    if (sink->watch_fd < 0)
        return;
    if (uv_poll_init(sink->loop, &sink->watch, sink->watch_fd) != 0) {
        (void)close(sink->watch_fd);
        return;
    }
    sink->watch.data = sink;
    sink->watching = true;
    sink->handles++;
    (void)uv_poll_start(&sink->watch, UV_DISCONNECT, sink_on_watch);
}

int uva__sink_open(struct uva__sink *sink, uv_loop_t *loop, const char *path,
                   const struct uva__sink_events *events,
                   struct uva_error *error)
{
    const char *name = path == NULL ? "standard output" : path;
    int code;

    memset(sink, 0, sizeof(*sink));
    sink->loop = loop;
    sink->events = *events;
    sink->fd_flags = -1;
    sink->fd = sink_open_fd(sink, path);
    if (sink->fd < 0)
        return uva_error_set(error, -sink->fd, "cannot write to %s: %s", name,
                             uv_strerror(sink->fd));
    code = sink_open_handle(sink, uv_guess_handle(sink->fd));
    if (code != 0) {
        (void)close(sink->fd);
        return uva_error_set(error, -code, "cannot write to %s: %s", name,
                             uv_strerror(code));
    }
    sink->fs.data = sink;
    if (sink->is_file)
        return 0;
    sink->to.handle.data = sink;
    sink->handles = 1;
    sink_watch(sink);
    return 0;
}

/* ---- write -------------------------------------------------------------- */

static void sink_pump(struct uva__sink *sink);
static void sink_settle(struct uva__sink *sink);

/* Drops a chunk that was written or has failed. */
static void chunk_end(struct uva__sink_chunk *chunk, int code)
{
    struct uva__sink *sink = chunk->sink;

    assert(sink->pending > 0 && sink->pending_bytes >= chunk->size);
    sink->pending--;
    sink->pending_bytes -= chunk->size;
    uva_array_release(&chunk->owner);
    free(chunk);
    if (code < 0)
        sink_fail(sink, -code);
    sink_settle(sink);
}

static void chunk_written(uv_write_t *write, int code)
{
    chunk_end((struct uva__sink_chunk *)write, code);
}

/* A write may be short. */
static void chunk_file_written(uv_fs_t *fs)
{
    struct uva__sink *sink = fs->data;
    struct uva__sink_chunk *chunk = sink->first;
    const ssize_t result = fs->result;

    assert(chunk != NULL && sink->is_file);
    uv_fs_req_cleanup(fs);
    if (result >= 0 && (size_t)result < chunk->rest.len) {
        chunk->rest.base += result;
        chunk->rest.len -= (size_t)result;
        sink_pump(sink);
        return;
    }
    sink->first = chunk->next;
    chunk_end(chunk, result < 0 ? (int)result : 0);
    sink_pump(sink);
}

/* Writes the next chunk of a file; discards the chunks of a file that has
 * failed. */
static void sink_pump(struct uva__sink *sink)
{
    struct uva__sink_chunk *chunk;
    int code;

    while ((chunk = sink->first) != NULL) {
        code = sink->code != 0
                   ? UV_ECANCELED
                   : uv_fs_write(sink->loop, &sink->fs, sink->fd, &chunk->rest,
                                 1, -1, chunk_file_written);
        if (code == 0)
            return;
        sink->first = chunk->next;
        chunk_end(chunk, code);
    }
}

/* Truncating a device fails, which is harmless. */
static void sink_truncated(uv_fs_t *fs)
{
    struct uva__sink *sink = fs->data;
    const ssize_t result = fs->result;

    uv_fs_req_cleanup(fs);
    if (result < 0 && result != UV_EINVAL)
        sink_fail(sink, (int)-result);
    sink_pump(sink);
}

static void sink_send(struct uva__sink *sink, struct uva__sink_chunk *chunk)
{
    const uv_buf_t buffer = chunk->rest;
    int code = UV_ECANCELED;

    if (!sink->is_file) {
        if (sink->code == 0)
            code = uv_write(&chunk->write, &sink->to.stream, &buffer, 1,
                            chunk_written);
        if (code != 0)
            chunk_end(chunk, code);
        return;
    }
    if (sink->first != NULL) {
        sink->last->next = chunk;
        sink->last = chunk;
        return;
    }
    sink->first = sink->last = chunk;
    if (!sink->truncate)
        sink_pump(sink);
    else if (uv_fs_ftruncate(sink->loop, &sink->fs, sink->fd, 0,
                             sink_truncated) != 0)
        abort(); /* cannot fail: libuv only queues it */
    sink->truncate = false;
}

int uva__sink_write(struct uva__sink *sink, const void *data, size_t size,
                    struct ArrowDeviceArray *owner)
{
    struct uva__sink_chunk *chunk =
        calloc(1, sizeof(*chunk) + (owner == NULL ? size : 0));

    assert(!sink->closing);
    if (chunk == NULL)
        return ENOMEM;
    chunk->sink = sink;
    chunk->size = size;
    chunk->rest.base = owner == NULL ? chunk->copy : (char *)data;
    chunk->rest.len = size;
    if (owner != NULL)
        uva_array_move(owner, &chunk->owner);
    else if (size > 0)
        memcpy(chunk->copy, data, size);
    sink->pending++;
    sink->pending_bytes += size;
    sink_send(sink, chunk);
    return 0;
}

bool uva__sink_is_full(struct uva__sink *sink)
{
    sink->full = sink->pending_bytes >= SINK_HIGH_BYTES;
    return sink->full;
}

/* ---- close -------------------------------------------------------------- */

static void sink_handle_closed(uv_handle_t *handle)
{
    struct uva__sink *sink = handle->data;

    assert(sink->handles > 0 && sink->pending == 0);
    sink->handles--;
    if (sink->handles == 0)
        sink->events.on_closed(sink->events.ctx);
}

static void sink_file_closed(uv_fs_t *fs)
{
    struct uva__sink *sink = fs->data;

    if (fs->result < 0)
        sink_fail(sink, (int)-fs->result);
    uv_fs_req_cleanup(fs);
    sink->events.on_closed(sink->events.ctx);
}

/* libuv writes to a terminal through another descriptor, so close both. */
static void sink_close_handles(struct uva__sink *sink)
{
    uv_os_fd_t used = sink->fd;

    (void)uv_fileno(&sink->to.handle, &used);
    uv_close(&sink->to.handle, sink_handle_closed);
    if (used != sink->fd)
        (void)close(sink->fd);
    if (!sink->watching)
        return;
    uv_close((uv_handle_t *)&sink->watch, sink_handle_closed);
    (void)close(sink->watch_fd);
}

/* Checks, now that fewer bytes are queued, for a room callback or a close that
 * is due. */
static void sink_settle(struct uva__sink *sink)
{
    if (sink->full && sink->pending_bytes <= SINK_LOW_BYTES) {
        sink->full = false;
        sink->events.on_room(sink->events.ctx);
    }
    if (!sink->closing || sink->pending > 0)
        return;
    uva__sink_abandon(sink);
    if (!sink->is_file)
        sink_close_handles(sink);
    else if (uv_fs_close(sink->loop, &sink->fs, sink->fd, sink_file_closed) !=
             0)
        abort(); /* cannot fail: libuv only queues it */
}

void uva__sink_close(struct uva__sink *sink)
{
    assert(!sink->closing);
    sink->closing = true;
    sink_settle(sink);
}

void uva__sink_abandon(struct uva__sink *sink)
{
    if (sink->fd_flags >= 0)
        (void)fcntl(sink->fd, F_SETFL, sink->fd_flags);
    sink->fd_flags = -1;
}
