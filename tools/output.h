/* SPDX-License-Identifier: Apache-2.0 */
/* A destination for bytes: standard output or a file, written in order and
 * without ever blocking the loop. It does not interpret the bytes. */
#ifndef UVA_TOOLS_SINK_H
#define UVA_TOOLS_SINK_H

#include <stdbool.h>
#include <uv.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* Callbacks of a sink, on the loop thread. */
struct uva__sink_events {
    /* The sink was full and has room again. */
    void (*on_room)(void *ctx);
    /* The sink has failed: the reader has closed it (EPIPE), the disk is
     * full... Called once, possibly inside uva__sink_write(). Everything queued
     * and written later is discarded. */
    void (*on_failed)(void *ctx, int code);
    /* The last call, after uva__sink_close(): everything has been written, or
     * discarded after on_failed, and no handle is open. */
    void (*on_closed)(void *ctx);
    void *ctx; /* borrows, until on_closed */
};

struct uva__sink_chunk; /* a chunk of bytes to write */

/* A destination. */
struct uva__sink {
    uv_loop_t *loop;                /* borrows, until on_closed */
    struct uva__sink_events events; /* callbacks of the user */
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
    struct uva__sink_chunk *first; /* owns; file: the chunk being written */
    struct uva__sink_chunk *last;  /* last of the list that starts at first */
    int fd;               /* owns; libuv does, through `to`, unless a file */
    int fd_flags;         /* flags to restore; -1: unchanged */
    bool is_file;         /* written by libuv's threads */
    bool is_tty;          /* it is a terminal */
    bool truncate;        /* before the first write */
    bool full;            /* on_room is due */
    bool closing;         /* uva__sink_close() was called */
    int code;             /* the errno it failed with, or 0 */
    int pending;          /* chunks not written so far */
    size_t pending_bytes; /* their bytes */
};

/* Opens the file at `path`, or standard output if it is NULL. An existing file
 * keeps its content until the first write. Returns 0: close it by
 * uva__sink_close(). Otherwise an errno, and there is nothing to undo. Thread:
 * loop. */
UVA_MUST_CHECK int uva__sink_open(struct uva__sink *sink, uv_loop_t *loop,
                                  const char *path,
                                  const struct uva__sink_events *events,
                                  struct uva_error *error);

/* Appends `size` bytes at `data`. They belong to `owner`, which is taken; if it
 * is NULL, they are copied. Returns 0 or ENOMEM; other failures are reported by
 * on_failed. Thread: loop. */
UVA_MUST_CHECK int uva__sink_write(struct uva__sink *sink, const void *data,
                                   size_t size, struct ArrowDeviceArray *owner);

/* Returns whether enough bytes are queued. If so, on_room will be called.
 * Thread: loop. */
bool uva__sink_is_full(struct uva__sink *sink);

/* Closes the sink once all has been written. Thread: loop. */
void uva__sink_close(struct uva__sink *sink);

/* Restores the flags of a standard output that other programs share; for use
 * before _exit(). Thread: loop. */
void uva__sink_abandon(struct uva__sink *sink);

#endif
