/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_write_file(): the destination is a file, to which threads of
 * libuv's write one op after the other. The descriptor is a copy, so that the
 * caller may close its own at any time after the end. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/loop_threads.h"
#include "io/writer.h"
#include "uvarrow/runtime.h"

struct file_writer {
    struct uva__writer writer;   /* first */
    uv_loop_t *loop;             /* borrows */
    int fd;                      /* owns */
    struct uva__write_op *first; /* owns: the op that is being written */
    struct uva__write_op **last; /* where the next one is put */
};

static int file_begin(struct file_writer *w);

/* Takes the first op from the queue. */
static struct uva__write_op *file_take(struct file_writer *w)
{
    struct uva__write_op *op = w->first;

    w->first = op->next;
    if (w->first == NULL)
        w->last = &w->first;
    return op;
}

/* Fails all ops. The writer lives as long as there is one. */
static void file_fail(struct file_writer *w, int code)
{
    while (w->first != NULL) {
        const bool is_last = w->first->next == NULL;

        uva__writer_written(file_take(w), code);
        if (is_last)
            return;
    }
}

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

static void file_on_written(uv_fs_t *request)
{
    struct uva__write_op *op = request->data;
    struct file_writer *w = (struct file_writer *)op->writer;
    const ssize_t result = request->result;
    int code = 0;

    uv_fs_req_cleanup(request);
    if (result <= 0) {
        file_fail(w, result < 0 ? (int)-result : EIO);
        return;
    }
    file_advance(op, (size_t)result);
    if (op->count == 0 && op->next == NULL) {
        uva__writer_written(file_take(w), 0); /* may free the writer */
        return;
    }
    if (op->count == 0)
        uva__writer_written(file_take(w), 0);
    code = file_begin(w);
    if (code != 0)
        file_fail(w, code);
}

/* Begins to write the first op, unless it is not wanted any more: each may wait
 * for the reader of a pipe. */
static int file_begin(struct file_writer *w)
{
    struct uva__write_op *op = w->first;

    if (w->writer.is_unwanted)
        return ECANCELED;
    op->request.file.data = op;
    return -uv_fs_write(w->loop, &op->request.file, w->fd, op->buffers,
                        op->count, -1, file_on_written);
}

static int file_write(struct uva__writer *writer, struct uva__write_op *op)
{
    struct file_writer *w = (struct file_writer *)writer;
    const bool is_idle = w->first == NULL;
    int code;

    *w->last = op;
    w->last = &op->next;
    code = is_idle ? file_begin(w) : 0;
    if (code != 0)
        (void)file_take(w);
    return code;
}

static void file_free(struct uva__writer *writer)
{
    struct file_writer *w = (struct file_writer *)writer;

    (void)close(w->fd);
    free(w);
}

static const struct uva__writer_ops file_ops = {
    .write = file_write,
    .free = file_free,
};

int uva_stream_write_file(struct uva_stream *stream, int fd,
                          const struct uva_write *options,
                          struct uva_error *error)
{
    struct uva_runtime *runtime = uva_stream_get_runtime(stream);
    struct file_writer *w;
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
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    w->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (w->fd < 0) {
        code = uva_error_set(error, errno, "uva_stream_write_file: fd %d: %s",
                             fd, uv_strerror(-errno));
        free(w);
        return code;
    }
    w->writer.ops = &file_ops;
    w->loop = runtime == NULL ? NULL : uva_runtime_loop(runtime);
    w->last = &w->first;
    code = w->loop == NULL ? 0 : uva__loop_threads_start(w->loop);
    if (code != 0) {
        file_free(&w->writer);
        return uva_error_set(error, code,
                             "uva_stream_write_file: libuv's threads: %s",
                             uv_strerror(-code));
    }
    return uva__writer_start(&w->writer, stream, options, error);
}
