/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections, as the files pool*.c share it: pool.c makes and ends
 * it, pool_take.c gives connections to queries, pool_keeper.c closes them,
 * pool_database.c opens the databases that they are to. */
#ifndef UVA_ADBC_POOL_H
#define UVA_ADBC_POOL_H

#include <uv.h>

#include "adbc/handle.h"
#include "adbc/places.h"

enum { UNKNOWN_TYPES = 8 }; /* that are remembered */

/* The text of a query that gets no connection. */
#define FULL "the pool is full: %d connections are used"

#define MS      UINT64_C(1000000)
#define LONG_NS (3600000 * MS) /* for a wait that an event ends */

/* A type that a database did not know, and when it was first asked for it. */
struct unknown {
    char type[40];
    uint64_t asked_ns;
};

struct uva_adbc_pool {
    const struct uva__handle_ops *ops; /* static, first: see adbc/handle.h */
    struct uva_runtime *runtime;       /* counts */
    struct uva_permits *permits;       /* counts: one for each connection */
    char *driver_name;                 /* owns */
    char *entrypoint;                  /* owns; NULL: guessed */
    char **options;                    /* owns: of the database */
    char **connection_options;         /* owns */
    int64_t connect_ms, wait_ms;
    int64_t batch_bytes;   /* of queries without their own */
    int32_t lock_ms;       /* of connections; 0: as the driver has it */
    bool is_read_only;     /* queries are read-only: see adbc/read_only.h */
    bool keeps_session;    /* connections are not reset */
    atomic_long refs;      /* the user, streams, and jobs */
    atomic_long holds;     /* of the memory: all `refs`, and a release */
    atomic_bool is_closed; /* released by the user */
    uv_thread_t keeper;    /* if there is one; joined by the release */
    uv_pid_t process;      /* that made it */
    void (*on_closed)(
        void *ctx); /* set before the release; NULL: no callback */
    void *closed_ctx;

    uv_mutex_t lock;
    uv_cond_t changed; /* a member below has */
    uv_cond_t wakes;   /* the keeper */
    struct {
        struct uva__places places;
        struct uva__database *databases; /* owns: the last one opened first */
        const struct uva__known *known;  /* static: of all databases */
        struct unknown unknown[UNKNOWN_TYPES]; /* types */
        uint64_t keeper_due_ns;                /* when the keeper looks again */
        int64_t queries;  /* that got a connection, so far */
        int64_t waiting;  /* queries, for a connection */
        int32_t permits;  /* that there are */
        bool is_resizing; /* a thread changes the permits */
        bool has_keeper;
    } locked;
};

/* ---- pool_keeper.c ------------------------------------------------------- */

/* Has the permits follow the places. Without the lock: it wakes the loop, which
 * may be a call of the program. */
void uva__pool_permits_follow(struct uva_adbc_pool *pool);

/* Closes a connection: its place is free, and so is its database if it was
 * retired. Without the lock, on a worker. */
void uva__pool_drop(struct uva_adbc_pool *pool,
                    struct uva__connection *connection);

/* The connection has another state, of which the keeper is told. */
void uva__pool_move_locked(struct uva__connection *connection,
                           enum uva__connection_state state);

/* Has workers close all idle connections: they are dead, or of no use. */
void uva__pool_idle_close(struct uva_adbc_pool *pool);
void uva__pool_idle_close_locked(struct uva_adbc_pool *pool);

/* Starts the keeper before a state needs it. False: there is none. */
bool uva__pool_keeper_ensure_locked(struct uva_adbc_pool *pool);

/* Ends the keeper, with the release of the pool. */
void uva__pool_keeper_stop(struct uva_adbc_pool *pool);

/* ---- pool_database.c ----------------------------------------------------- */

/* Waits until a member under the lock has changed, or until then. */
void uva__pool_wait_locked(struct uva_adbc_pool *pool, uint64_t until_ns);

/* Gives the connection a database that is not in a call, and is from now on. 0;
 * ENOMEM; ECANCELED if the connection was written off. */
int uva__pool_database_enter_locked(struct uva_adbc_pool *pool,
                                    struct uva__connection *connection);

/* The call of the connection has returned. */
void uva__pool_database_leave_locked(struct uva__database *database);

/* No connect uses it any more, except a running one. */
void uva__pool_database_retire_locked(struct uva__database *database);

/* Closes a database that is in no list. */
void uva__pool_database_drop(struct uva__database *database);

/* Closes retired databases without connections. */
void uva__pool_databases_sweep(struct uva_adbc_pool *pool);

/* Retires all databases; with a type (may be NULL) only if an open one could
 * not know it, and returns whether. */
bool uva__pool_databases_retire_locked(struct uva_adbc_pool *pool,
                                       const char *type);

/* ---- pool_take.c, as in struct uva__handle_ops
 * ---------------------------- */

void uva__pool_need(struct uva_adbc_pool *pool, uint64_t *needed_ns);
void uva__pool_unneed(struct uva_adbc_pool *pool, uint64_t *needed_ns);
int uva__pool_take(struct uva_adbc_pool *pool, enum uva__sql sql,
                   const atomic_bool *is_cancelled, uint64_t needed_ns,
                   struct uva__connection **out,
                   struct uva__adbc_failure *failure);
void uva__pool_cancel(struct uva_adbc_pool *pool,
                      struct uva__connection *const *at);
bool uva__pool_autocommits(const struct uva_adbc_pool *pool);
bool uva__pool_must_reset(const struct uva_adbc_pool *pool,
                          const struct uva__connection *connection,
                          const char *text);
void uva__pool_put(struct uva_adbc_pool *pool, struct uva__connection **at,
                   const struct uva__used *used);

#endif
