/* SPDX-License-Identifier: Apache-2.0 */
/* Where bytes go: standard output or a file, written in order and without ever
 * holding up the loop. What the bytes say is left to others. */
#ifndef UVA_TOOLS_SINK_H
#define UVA_TOOLS_SINK_H

#include <stdbool.h>
#include <uv.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* What a sink tells its user, on the loop thread. */
struct uva__sink_events {
    /* the sink was full and has room again */
    void (*on_room)(void *ctx);
    /* it takes no more: the reader has gone (EPIPE), the disk is full... Once,
     * maybe inside uva__sink_write(). From now on all is thrown away. */
    void (*on_failed)(void *ctx, int code);
    /* the last call, after uva__sink_close(): all is written, or lost after
     * on_failed, and no handle is left */
    void (*on_closed)(void *ctx);
    void *ctx; /* borrows, until on_closed */
};

struct uva__sink_chunk; /* some bytes on their way */

/* A place to write to. */
struct uva__sink {
    uv_loop_t *loop;                /* borrows, until on_closed */
    struct uva__sink_events events; /* whom to tell */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tty_t tty;
        uv_tcp_t tcp;
    } to;                          /* if it is not a file */
    uv_poll_t watch;               /* of a pipe: sees its reader go */
    int watch_fd;                  /* owns, if there is a watch */
    bool watching;                 /* there is a watch */
    int handles;                   /* that are not closed */
    uv_fs_t fs;                    /* if it is one: its write, or close */
    struct uva__sink_chunk *first; /* owns; of a file: being written */
    struct uva__sink_chunk *last;  /* of the list that begins with first */
    int fd;                        /* owns; by `to`, if it is not a file */
    int fd_flags;                  /* as found, to be left so; -1: unchanged */
    bool is_file;                  /* written by libuv's threads */
    bool is_tty;                   /* somebody watches */
    bool truncate;                 /* before the first write */
    bool full;                     /* on_room is owed */
    bool closing;                  /* uva__sink_close() was called */
    int code;                      /* why it failed, or 0 */
    int pending;                   /* chunks on their way */
    size_t pending_bytes;          /* in them */
};

/* Opens the file at `path`, or standard output if it is NULL. A file that is
 * there keeps what it holds until the first write. 0: to be ended by
 * uva__sink_close(). Otherwise an errno, and there is nothing to undo.
 * Thread: loop. */
UVA_MUST_CHECK int uva__sink_open(struct uva__sink *sink, uv_loop_t *loop,
                                  const char *path,
                                  const struct uva__sink_events *events,
                                  struct uva_error *error);

/* Writes `size` bytes at `data` behind what was written before. They are kept
 * by `owner`, which is taken; without one (NULL) they are copied. 0 or ENOMEM;
 * other failures come as on_failed. Thread: loop. */
UVA_MUST_CHECK int uva__sink_write(struct uva__sink *sink, const void *data,
                                   size_t size, struct ArrowDeviceArray *owner);

/* Whether enough is on its way. If so, on_room will come. Thread: loop. */
bool uva__sink_is_full(struct uva__sink *sink);

/* Closes the sink when all was written. Thread: loop. */
void uva__sink_close(struct uva__sink *sink);

/* Puts back what opening has changed of a standard output that other programs
 * share: for before _exit(). Thread: loop. */
void uva__sink_abandon(struct uva__sink *sink);

#endif
