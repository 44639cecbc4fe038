/* SPDX-License-Identifier: Apache-2.0 */
/* The common declarations of the addon. Each of them is one object: the host (a
 * runtime in an environment of Node.js), the native half of a stream, a batch,
 * a part of encoded bytes, a pool, a writer of bytes, a pusher of batches, the
 * function of a map.
 *
 * JavaScript holds each object as a napi_external, in a private field, and
 * frees it by a finalizer. The addon holds no object of JavaScript but for the
 * three functions of the host and the bytes of a write: it names an object by a
 * number, for which JavaScript looks in a Map.
 *
 * All objects belong to the thread of their environment. Two functions are
 * called elsewhere: post_call() and keeper_free().
 *
 * Each call of Node-API can fail, and while a worker is terminated each of them
 * does. A function that returns a napi_value returns NULL then, with an
 * exception if Node-API lets it throw one. JavaScript gets `undefined`, which
 * is therefore never a result. */
#ifndef UVARROW_NODE_ADDON_H
#define UVARROW_NODE_ADDON_H

#ifndef NAPI_VERSION
#define NAPI_VERSION 8
#endif
#include <node_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/adbc.h"
#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

struct watch;
struct post;

/* ---- values (value.c) ---------------------------------------------------- */

/* Whether a call of Node-API has succeeded; otherwise throws, unless an
 * exception is pending. */
bool value_ok(napi_env env, napi_status status);

/* Gives the first `count` arguments of a call; undefined where there is none.
 */
bool value_args(napi_env env, napi_callback_info info, size_t count,
                napi_value *out);

/* Gives the object of an external. False with an exception. */
bool value_object(napi_env env, napi_value value, void *out);

bool value_integer(napi_env env, napi_value value, int64_t *out);
bool value_boolean(napi_env env, napi_value value, bool *out);

/* Gives a text, to be freed; NULL for null and undefined. False with an
 * exception. */
bool value_text(napi_env env, napi_value value, char **out);

/* Gives the pairs of an array [key, value, key, value...], to be freed by
 * value_pairs_free(); NULL for null. False with an exception. */
bool value_pairs(napi_env env, napi_value value, struct uva_pair **out);
void value_pairs_free(struct uva_pair *pairs);

/* Makes an object of a block of metadata, which may be NULL. */
napi_value value_metadata(napi_env env, const char *block);

napi_value value_null(napi_env env);
napi_value value_number(napi_env env, double number);
napi_value value_truth(napi_env env, bool truth);

/* Makes an external, which takes `object`: `finalize` frees it, also if that
 * fails. */
napi_value value_external(napi_env env, void *object, napi_finalize finalize);

/* Makes an UvarrowError. */
napi_value value_error(napi_env env, int code, const char *text,
                       const char *metadata);

/* Throws one. Returns NULL. */
napi_value value_fail(napi_env env, int code, const char *text,
                      const char *metadata);
napi_value value_no_memory(napi_env env);

/* ---- the host (host.c) --------------------------------------------------- */

/* What JavaScript is told after a turn. */
enum news_kind {
    NEWS_READY,    /* a stream has a batch, its schema, or its end */
    NEWS_CALL,     /* a map has a batch for its function */
    NEWS_FREED,    /* what a number names is not needed any more */
    NEWS_WRITTEN,  /* the bytes given to a writer were written */
    NEWS_WRITABLE, /* a pusher has room */
    NEWS_CLOSED    /* the stream of a pusher has ended */
};

struct news {
    struct news *next; /* borrows */
    enum news_kind kind;
    int64_t id;
    bool is_queued;
    /* makes the third argument, or frees the news if `env` is NULL; NULL:
     * there is none */
    napi_value (*value)(napi_env env, struct news *news);
    /* JavaScript has not got the value. NULL: that does not matter */
    void (*lost)(struct news *news);
};

/* Places in the array of numbers through which calls give several results */
enum {
    NUMBER_ID,
    NUMBER_ROWS,
    NUMBER_ORDINAL,
    NUMBER_BYTES,
    NUMBER_KEEPER,
    NUMBERS
};

struct host {
    napi_env env;                /* NULL once the environment has ended */
    struct uva_runtime *runtime; /* counts */
    struct watch *watch;         /* owns; NULL: turns are posted */
    struct post *post;           /* owns; NULL: the descriptor is watched */
    napi_async_context context;
    napi_async_cleanup_hook_handle hook;
    napi_ref on_news, make_error, on_retry, numbers_kept;
    double *numbers;           /* the memory of numbers_kept */
    struct news *news, **last; /* for after the turn */
    struct writer *writers;    /* borrows each: handles on the runtime's loop */
    struct call *calls;        /* borrows each: given to JavaScript */
    int64_t last_id;
    int64_t batches, bytes; /* that JavaScript holds */
    int users;              /* the environment, and each object */
    bool is_closing;
    bool has_called; /* JavaScript, in a turn: its promises are to run */
};

/* The host of an environment; NULL with an exception. */
struct host *host_of(napi_env env);

struct host *host_acquire(struct host *host);
void host_release(struct host *host);

int64_t host_new_id(struct host *host);

/* Drops an exception that a call of JavaScript in a turn has left. */
void host_drop_exception(struct host *host);

/* Has JavaScript told after the turn; once, if it is waiting to be told. */
void host_note(struct host *host, struct news *news);
void host_forget(struct host *host, struct news *news);

/* Runs the due work of the runtime, and tells JavaScript the news. */
void host_turn(struct host *host);

/* Counts bytes that JavaScript keeps alive and V8 does not know of. */
void host_tell_bytes(struct host *host, int64_t bytes);

/* start(mode, onNews, makeError, onRetry): opens the runtime of this
 * environment. Gives the array of numbers. */
napi_value host_start(napi_env env, napi_callback_info info);

/* keepAlive(whether the process goes on until there are news) */
napi_value host_keep_alive(napi_env env, napi_callback_info info);

/* ---- the two ways of being turned (watch.c, post.c) ---------------------- */

/* Watches the descriptor by the libuv of the executable. Gives NULL with an
 * exception. */
struct watch *watch_new(struct host *host);
void watch_keep_alive(struct watch *watch, bool keeps);

/* Stops, before the descriptor is closed. */
void watch_stop(struct watch *watch);

/* Frees it, later, and calls `done`. Not from a turn. */
void watch_free(struct watch *watch, uva_call_fn *done, void *ctx);

/* Has the loop of the environment call host_turn(). Gives NULL with an
 * exception. */
struct post *post_new(napi_env env, struct host *host);
void post_keep_alive(napi_env env, struct post *post, bool keeps);
void post_free(struct post *post);
void post_call(void *post); /* Thread: any */

/* ---- streams (stream.c) -------------------------------------------------- */

/* The native half of a Stream. */
struct rows {
    struct host *host;         /* counts */
    struct uva_stream *stream; /* counts; NULL once it is dropped */
    struct shape *shape;       /* counts; NULL: the schema is not known */
    struct uva_window window;
    struct news news;
    bool is_started;
    bool is_over;   /* its end was reported */
    bool is_mapped; /* batches lie in memory that nobody may write to */
};

/* Takes the stream. Gives an external, and its number in `numbers`. */
napi_value rows_new(napi_env env, struct uva_stream *stream,
                    const struct uva_window *window);

/* The stream of an external; NULL with an exception if it is dropped. */
struct rows *rows_of(napi_env env, napi_value value);

/* Takes the next batch. 0; EAGAIN; ENOENT: the end; -1 with an exception. */
int rows_take(napi_env env, struct rows *rows, struct uva_batch *batch);

/* Throws the error that a stage has returned. Gives true for 0. */
napi_value rows_staged(napi_env env, struct rows *rows, int code);

napi_value rows_take_batch(napi_env env, napi_callback_info info);
napi_value rows_take_part(napi_env env, napi_callback_info info);
napi_value rows_info(napi_env env, napi_callback_info info);
napi_value rows_cancel(napi_env env, napi_callback_info info);
napi_value rows_drop(napi_env env, napi_callback_info info);
napi_value rows_changed(napi_env env, napi_callback_info info);

/* ---- schemas (schema.c) -------------------------------------------------- */

/* A copy of a stream's schema, which its batches need when it has gone. */
struct shape {
    struct ArrowSchema schema;
    int users;
};

struct shape *shape_new(const struct ArrowSchema *schema); /* NULL: no memory */
struct shape *shape_acquire(struct shape *shape);
void shape_release(struct shape *shape);

/* Makes a Field. */
napi_value schema_value(napi_env env, const struct ArrowSchema *schema);

/* Gives the schema that a Field describes. False with an exception. */
bool schema_read(napi_env env, napi_value field, struct ArrowSchema *out);

/* ---- batches (batch.c, data.c, select.c) --------------------------------- */

/* A batch that JavaScript holds. */
struct held {
    struct ArrowDeviceArray data;
    struct host *host;   /* counts */
    struct shape *shape; /* counts */
    int64_t bytes;       /* that V8 was told */
    int users;           /* its external, and each of its ArrayBuffers */
    int borrows;         /* of `data`: by these, unless it is closed */
    bool is_closed;
    bool is_mapped;
};

/* Takes the data of `batch`. Gives an external. */
napi_value held_new(napi_env env, struct rows *rows, struct uva_batch *batch);

/* One more ArrayBuffer borrows the data; held_release() ends that. */
void held_lend(struct held *held);
void held_release(struct held *held);

/* V8 counts the bytes itself from now on. */
void held_untell(struct held *held);

/* The batch of an external; NULL with an exception if it is closed. */
struct held *held_of(napi_env env, napi_value value);

/* Gives a second array on the data. False with an exception. */
bool held_share(napi_env env, struct held *held, struct ArrowDeviceArray *out);

napi_value batch_close(napi_env env, napi_callback_info info);
napi_value batch_schema(napi_env env, napi_callback_info info);
napi_value batch_encode(napi_env env, napi_callback_info info);
napi_value batch_data(napi_env env, napi_callback_info info);

napi_value select_columns(napi_env env, napi_callback_info info);
napi_value select_rows(napi_env env, napi_callback_info info);

/* detach(ArrayBuffer): frees the memory that it borrows now */
napi_value data_detach(napi_env env, napi_callback_info info);

/* ---- encoded bytes (part.c) ---------------------------------------------- */

/* Makes an array of Buffers of a part, which it takes. Buffers of fewer than
 * `copy_below` bytes are copied together. */
napi_value part_value(napi_env env, struct host *host, struct uva_part *part,
                      int64_t copy_below);

/* How batches are encoded, of the arguments format, compression, delimiter,
 * whether CSV has a line of names, crlf, text of nulls. */
enum { ENCODE_ARGS = 6 };
struct encode {
    struct uva_encode options;
    char *null_text; /* owns */
};
bool encode_read(napi_env env, const napi_value *args, struct encode *out);
void encode_free(struct encode *how);

/* Makes one Uint8Array, a copy, of a part, which it borrows. */
napi_value part_copy(napi_env env, const struct uva_part *part);

/* ---- sources (source.c, writer.c, pusher.c, pool.c) ---------------------- */

/* Has JavaScript told when the library does not need a ctx any more, by any
 * thread: ctx and free_ctx of a source. */
struct keeper *keeper_new(napi_env env, struct host *host);
int64_t keeper_id(const struct keeper *keeper);
void keeper_free(void *keeper); /* Thread: any */

bool source_window(napi_env env, const napi_value *args,
                   struct uva_window *out);
napi_value source_file(napi_env env, napi_callback_info info);
napi_value source_pointer(napi_env env, napi_callback_info info);

/* Closes the handles of all writers of the host, before its runtime. */
void writer_close_all(struct host *host);
napi_value writer_open(napi_env env, napi_callback_info info);
napi_value writer_stream(napi_env env, napi_callback_info info);
napi_value writer_write(napi_env env, napi_callback_info info);
napi_value writer_end(napi_env env, napi_callback_info info);

napi_value pusher_open(napi_env env, napi_callback_info info);
napi_value pusher_stream(napi_env env, napi_callback_info info);
napi_value pusher_push(napi_env env, napi_callback_info info);
napi_value pusher_close(napi_env env, napi_callback_info info);

napi_value pool_open(napi_env env, napi_callback_info info);
napi_value pool_close(napi_env env, napi_callback_info info);
napi_value pool_session(napi_env env, napi_callback_info info);
napi_value pool_query(napi_env env, napi_callback_info info);
napi_value pool_ingest(napi_env env, napi_callback_info info);
napi_value pool_end(napi_env env, napi_callback_info info);
napi_value pool_objects(napi_env env, napi_callback_info info);
napi_value pool_stats(napi_env env, napi_callback_info info);

/* Gives the parameters of a query, to be freed; NULL for none. False with an
 * exception. */
bool params_read(napi_env env, napi_value list, struct uva_value **out);
void params_free(struct uva_value *values);

/* ---- stages (stage.c, map.c, retry.c)
 * --------------------------------------------- */

napi_value stage_limit(napi_env env, napi_callback_info info);
napi_value stage_rebatch(napi_env env, napi_callback_info info);
napi_value stage_timeout(napi_env env, napi_callback_info info);
napi_value stage_throttle(napi_env env, napi_callback_info info);
napi_value stage_parallel(napi_env env, napi_callback_info info);
napi_value stage_cast(napi_env env, napi_callback_info info);
napi_value stage_name(napi_env env, napi_callback_info info);
napi_value stage_merge(napi_env env, napi_callback_info info);
napi_value stage_tee(napi_env env, napi_callback_info info);
napi_value stage_encode(napi_env env, napi_callback_info info);
napi_value stage_map(napi_env env, napi_callback_info info);
napi_value stage_retry(napi_env env, napi_callback_info info);
napi_value map_give(napi_env env, napi_callback_info info);

/* Gives an error to all calls whose functions have not returned. */
void map_end_all(struct host *host);

/* ---- numbers (stats.c) --------------------------------------------------- */

napi_value stats_runtime(napi_env env, napi_callback_info info);
napi_value stats_stream(napi_env env, napi_callback_info info);
napi_value stats_pool_value(napi_env env,
                            const struct uva_adbc_pool_stats *stats);

#endif
