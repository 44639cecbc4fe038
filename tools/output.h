/* SPDX-License-Identifier: Apache-2.0 */
/* A destination for bytes: standard output or a file, written in order and
 * without ever blocking the loop. It does not interpret the bytes. */
#ifndef UVA_TOOLS_SINK_H
#define UVA_TOOLS_SINK_H

#include <stdbool.h>
#include <uv.h>

#include "uvarrow/base.h"
#include "uvarrow/io.h"

/* Callbacks of a sink, on the loop thread. */
struct uva__output_events {
    /* The sink was full and has room again. */
    void (*on_writable)(void *ctx);
    /* The sink has failed: the reader has closed it (EPIPE), the disk is
     * full... Called once, possibly inside uva__output_write(). Everything
     * queued and written later is discarded. */
    void (*on_failed)(void *ctx, int code);
    /* The last call, after uva__output_close(): everything has been written, or
     * discarded after on_failed, and no handle is open. */
    void (*on_closed)(void *ctx);
    void *ctx; /* borrows, until on_closed */
};

struct uva__output_chunk; /* a chunk of bytes to write */

/* The chunks that the system has taken whole. */
struct uva__output_written {
    int64_t bytes;   /* of all chunks */
    int64_t rows;    /* of batches */
    int64_t batches; /* number of these */
};

enum uva__output_kind {
    UVA__OUTPUT_PIPE = 0, /* or a socket */
    UVA__OUTPUT_TERMINAL,
    UVA__OUTPUT_FILE /* written by libuv's threads */
};

enum uva__output_state {
    UVA__OUTPUT_OPEN = 0,
    UVA__OUTPUT_CLOSING, /* once all is written */
    UVA__OUTPUT_CUT      /* its handles are closing, although it was not */
};

/* A destination. */
struct uva__output {
    uv_loop_t *loop;                  /* borrows, until on_closed */
    struct uva__output_events events; /* callbacks of the user */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tty_t tty;
        uv_tcp_t tcp;
    } to;            /* unless it is a file */
    uv_poll_t watch; /* pipe: notices that its reader has closed it */
    int watch_fd;    /* owns, if `watching` */
    bool watching;   /* `watch` is in use */
    int handles;     /* handles that are open */
    uv_fs_t fs;      /* file: the current write or close */
    struct uva__output_chunk *first; /* owns; file: the chunk being written */
    struct uva__output_chunk *last;  /* last of the list that starts at first */
    int fd;       /* owns; libuv does, through `to`, unless a file */
    int fd_flags; /* flags to restore; -1: unchanged */
    enum uva__output_kind kind;
    enum uva__output_state state;
    bool truncate;                      /* before the first write */
    bool full;                          /* on_writable is due */
    int code;                           /* the errno it failed with, or 0 */
    int pending;                        /* chunks not written so far */
    size_t pending_bytes;               /* their bytes */
    struct uva__output_written written; /* so far */
};

/* Opens the file at `path`, or standard output if it is NULL. An existing file
 * keeps its content until the first write. Returns 0: close it by
 * uva__output_close(). Otherwise an errno, and the caller has no clean-up to
 * do.
 * Thread: loop. */
UVA_MUST_CHECK int uva__output_open(struct uva__output *output, uv_loop_t *loop,
                                    const char *path,
                                    const struct uva__output_events *events,
                                    struct uva_error *error);

/* Opens a copy of the descriptor `fd` instead, which `name` is in texts.
 * Otherwise as uva__output_open(). */
UVA_MUST_CHECK int uva__output_open_fd(struct uva__output *output,
                                       uv_loop_t *loop, int fd,
                                       const char *name,
                                       const struct uva__output_events *events,
                                       struct uva_error *error);

/* Appends a copy of `size` bytes at `data`. Returns 0 or ENOMEM; other failures
 * are reported by on_failed. Thread: loop. */
UVA_MUST_CHECK int uva__output_write(struct uva__output *output,
                                     const void *data, size_t size);

/* The same, of `rows` rows. Thread: loop. */
UVA_MUST_CHECK int uva__output_write_rows(struct uva__output *output,
                                          const void *data, size_t size,
                                          int64_t rows);

/* Appends a part, which it takes in every case. Returns as uva__output_write().
 * Thread: loop. */
UVA_MUST_CHECK int uva__output_write_part(struct uva__output *output,
                                          struct uva_part *part);

/* Returns whether enough bytes are queued. If so, on_writable will be called.
 * Thread: loop. */
bool uva__output_is_full(struct uva__output *output);

/* Has a file that has failed try again with later writes.
 * Thread: loop. */
void uva__output_resume(struct uva__output *output);

/* Closes the sink once all has been written. Thread: loop. */
void uva__output_close(struct uva__output *output);

/* Ends the wait of that, for a reader that stands still: unwritten bytes are
 * discarded, and on_failed is called with ECANCELED. Without effect before
 * uva__output_close(), and for files, as their writes end. Thread: loop. */
void uva__output_cut(struct uva__output *output);

#endif
