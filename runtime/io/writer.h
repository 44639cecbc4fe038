/* SPDX-License-Identifier: Apache-2.0 */
/* What writing to a socket and to a file have in common: the consumer of the
 * encoded stream, back-pressure, and the one report of the end. How bytes get
 * there is up to socket_writer.c and file_writer.c. */
#ifndef UVA_IO_WRITER_H
#define UVA_IO_WRITER_H

#include <uv.h>

#include "uvarrow/io.h"
#include "uvarrow/stream.h"

struct uva__writer;
struct uva__write_op;

/* The destination. All are called on the loop thread. */
struct uva__writer_ops {
    /* takes `op` and begins to write it, after those before it. 0, and
     * uva__writer_written() follows, later; or an errno, and nothing was
     * taken. */
    int (*write)(struct uva__writer *writer, struct uva__write_op *op);
    /* the end was reported, or the stream was dropped, and each op was written
     * or is not wanted: writes under way should return soon. May be called
     * again. NULL: no effect */
    void (*stop)(struct uva__writer *writer);
    /* frees the writer, which nothing uses any more */
    void (*free)(struct uva__writer *writer);
};

/* A part that is written, or waits for that. */
struct uva__write_op {
    struct uva__writer *writer; /* counts */
    uv_write_t request;         /* of a socket */
    struct uva__write_op *next; /* of a file: the op after it */
    struct uva_part part;       /* owns; zeroes: the last chunk */
    int64_t bytes;              /* of all buffers */
    char head[24];              /* of a chunk */
    unsigned count;             /* number of buffers */
    uv_buf_t buffers[];         /* borrow from the part and the head */
};

/* A stream that is being written; the first member of each kind. */
struct uva__writer {
    const struct uva__writer_ops *ops; /* static */
    struct uva_write options;          /* with defaults */
    struct uva_stream *stream;         /* counts, until the end is reported */
    int users;      /* the consumer, each op, and a file's job: the last one
                       frees */
    int in_flight;  /* ops that are not written */
    int64_t queued; /* bytes of these */
    int64_t bytes;  /* written */
    struct uva_stream_info info; /* borrows from the stream */
    bool has_begun;              /* on_begin was called */
    bool is_paused;              /* no batch is wanted */
    bool has_ended;              /* COMPLETE, and not reported */
    bool is_unwanted;     /* cancelled or dropped: ops that were not begun need
                             not be written */
    struct uva_error why; /* of a write that failed; code 0: none */
    int64_t batches;      /* taken to be written */
    int64_t rows;         /* in them */
};

/* Checks `options`, which must not be NULL. 0; EINVAL or ENOTSUP, with a text.
 * Thread: any. */
UVA_MUST_CHECK int uva__writer_check(const struct uva_write *options,
                                     struct uva_error *error);

/* Starts the stream with `writer`, which is cleared but for its ops: takes it,
 * also on failure. Returns as uva_stream_for_each(). Thread: loop. */
UVA_MUST_CHECK int uva__writer_start(struct uva__writer *writer,
                                     struct uva_stream *stream,
                                     const struct uva_write *options,
                                     struct uva_error *error);

/* Reports that an op was written (`code` 0) or was not, and takes it.
 * Thread: loop; any, once the end was reported and the loop has gone. */
void uva__writer_written(struct uva__write_op *op, int code);

/* Gives up, as the runtime is ending: reports CANCELLED with `error`, unless
 * the end was reported, and stops. Thread: loop. */
void uva__writer_give_up(struct uva__writer *writer,
                         const struct uva_error *error);

/* One more user, and one fewer. Thread: as uva__writer_written(). */
struct uva__writer *uva__writer_acquire(struct uva__writer *writer);
void uva__writer_release(struct uva__writer *writer);

#endif
