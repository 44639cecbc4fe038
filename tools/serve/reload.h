/* SPDX-License-Identifier: Apache-2.0 */
/* What SIGHUP loads again: the token, and the certificate with its key. Options
 * that are given in another way by now are named, as they need a restart.
 *
 * Happy path:  a signal -> the files are read, on a libuv thread -> on_loaded,
 *              which takes them. A signal before the server is ready is kept
 *              until it is; any number of them during a load are one more load
 *              after it, as the files may have changed since.
 * Failures:    of each file by itself: then it is not there to be taken.
 *              Without threads a load has no files, and that error. */
#ifndef UVA_SERVE_RELOAD_H
#define UVA_SERVE_RELOAD_H

#include <uv.h>

#include "settings.h"
#include "tls.h"

enum uva__reload_phase {
    UVA__RELOAD_EARLY = 0, /* the server is not ready */
    UVA__RELOAD_DUE,       /* the same, and a load follows */
    UVA__RELOAD_IDLE,      /* it waits for a signal */
    UVA__RELOAD_LOADING,   /* on another thread */
    UVA__RELOAD_AGAIN,     /* the same, and one more follows */
    UVA__RELOAD_OVER       /* the server ends */
};

/* The result of a load. */
struct uva__loaded {
    struct uva__access access;   /* owns the token; NULL: failed, or unused */
    struct uva__tls *tls;        /* owns; NULL: the same */
    char changed[1024];          /* names of options; "": none */
    struct uva_error of_token;   /* each with code 0: no error */
    struct uva_error of_tls;     /* the certificate's, or the key's */
    struct uva_error of_options; /* then none is named */
};

/* Zeroes, then the last three, and uva__reload_init(). */
struct uva__reload {
    uv_work_t work;                       /* reads the files */
    uv_loop_t *loop;                      /* borrows */
    const struct uva__settings *settings; /* borrows: which files */
    char **args;                          /* borrows: of the command */
    enum uva__reload_phase phase;         /* as above */
    struct uva__loaded loaded;            /* by the last load */
    void (*on_begin)(void *ctx);          /* a load begins */
    /* it has ended; takes from `loaded` what it wants. `is_last`: no load
     * follows at once */
    void (*on_loaded)(void *ctx, struct uva__loaded *loaded, bool is_last);
    void *ctx; /* borrows, for these */
};

/* Begins with a server that is not ready. Thread: loop, as all here. */
void uva__reload_init(struct uva__reload *reload, uv_loop_t *loop,
                      const struct uva__settings *settings, char **args);

/* Loads the files, now or later. */
void uva__reload_want(struct uva__reload *reload);

/* The server is ready: a load that waited for that begins. */
void uva__reload_ready(struct uva__reload *reload);

/* No callback follows; the loop may go on until a load is done. */
void uva__reload_end(struct uva__reload *reload);

#endif
