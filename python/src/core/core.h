/* SPDX-License-Identifier: Apache-2.0 */
/* The common declarations of the Python module. Each of them is one object: the
 * host (a runtime on an event loop of Python), the tap (the part of a stream
 * that the library's callbacks reach), a source, the functions of stages, a
 * batch, a stream, a writer, a pool of connections, a chunk of bytes.
 *
 * The GIL protects these objects, also while a turn of the runtime runs: the
 * callbacks of a turn are therefore made with the GIL held. A worker takes it
 * by gil_enter(). The members that threads without the GIL use are atomic.
 *
 * The module keeps to the limited API of Python 3.11, so that one binary serves
 * all later versions. */
#ifndef UVARROW_PYTHON_CORE_H
#define UVARROW_PYTHON_CORE_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/uvarrow.h"

struct tap;

/* ---- the module (module.c, exit.c) --------------------------------------- */

extern PyObject *core_error_type; /* uvarrow.Error */

extern PyTypeObject *host_type;
extern PyTypeObject *schema_type;
extern PyTypeObject *batch_type;
extern PyTypeObject *column_type;
extern PyTypeObject *stream_type;
extern PyTypeObject *next_type;
extern PyTypeObject *writer_type;
extern PyTypeObject *pool_type;
extern PyTypeObject *chunk_type;
extern PyTypeObject *call_type;

extern PyType_Spec host_spec;
extern PyType_Spec schema_spec;
extern PyType_Spec batch_spec;
extern PyType_Spec column_spec;
extern PyType_Spec stream_spec;
extern PyType_Spec next_spec;
extern PyType_Spec writer_spec;
extern PyType_Spec pool_spec;
extern PyType_Spec chunk_spec;
extern PyType_Spec call_spec;

/* Allocates an object of `type`, with zeroes after its head. Gives it; NULL
 * with an exception. */
PyObject *core_alloc(PyTypeObject *type);

/* Frees the memory of an object after its content, and drops its type. */
void core_free(PyObject *self);

/* Makes a str of a foreign text, and replaces bytes that are not UTF-8. NULL
 * with an exception. */
PyObject *core_text(const char *text);

/* Raises uvarrow.Error with the code, the text (NULL: the code's text), and
 * metadata. Returns NULL. */
PyObject *core_raise(int code, const char *text, const char *metadata);

/* Raises the exception that the arguments of throw() give, or what is wrong
 * with them. */
void core_throw(PyObject *args);

/* A list of (key, value) pairs of bytes; `metadata` may be NULL. */
PyObject *core_metadata(const char *metadata);

/* The GIL on a thread of the library. gil_enter() returns false once the
 * interpreter ends, unless the thread has the GIL: then Python must not be
 * touched, on this thread, for ever, and objects that it would have dropped are
 * left alone. */
struct gil {
    PyThreadState *made; /* owns: made for this visit; NULL: there was one */
    PyGILState_STATE state;
};
bool gil_enter(struct gil *gil);
void gil_leave(struct gil *gil);

/* Around a foreign call that may take the GIL by itself: gil_enter() without
 * the GIL. Thread: any. */
bool inside_begin(void);
void inside_end(void);

/* Lends the GIL to other threads while a foreign call may block, if this thread
 * holds it. NULL: it did not. */
PyThreadState *gil_lend(void);
void gil_take_back(PyThreadState *state);

/* Counts sources that have been opened and are not released: their objects may
 * enter Python by themselves, so the exit of the interpreter waits for them.
 * A source that was never opened has no effect, and is not counted. Thread:
 * any. */
void live_add(int n);

/* The status of a process that was left while a source was stuck. */
enum { EXIT_STUCK = 70 };

/* wait_out(limit_ms) -> bool: waits until no thread is inside Python and no
 * source is open; then gil_enter() returns false from now on. False: something
 * still is. */
PyObject *exit_wait_out(PyObject *module, PyObject *limit_ms);

/* leave(limit_ms): has gil_enter() return false from now on, and ends the
 * process after that time, if it has not ended by itself. */
PyObject *exit_leave(PyObject *module, PyObject *limit_ms);

/* Counts the forks that led to this process: an object that was made with
 * another number belongs to the parent. */
unsigned fork_number(void);
int exit_init(void); /* -1 with an exception */

/* ---- objects that users give (checked.c) ----------------------------------
 *
 * `name` is the caller's name for it, such as "source": each error begins with
 * it. */

/* Raises TypeError: `name` must be `expected`. The exception that is set, if
 * one is, becomes its cause. */
void checked_refuse(PyObject *object, const char *name, const char *expected);

/* Looks a method up, and gives it to `out`. 1; 0: no such attribute; -1 with an
 * exception: TypeError if the attribute raises any exception. */
int checked_method(PyObject *object, const char *method, const char *name,
                   PyObject **out);

/* Whether a result need not be awaited; otherwise closes it, if it is a
 * coroutine, and raises TypeError. */
bool checked_is_sync(PyObject *result, const char *name);

/* Whether a result is true, if it is a bool, has a truth like numbers, or is a
 * Batch, which is true if it has rows. -1 with an exception: TypeError for
 * None, texts and containers. */
int checked_truth(PyObject *result, const char *name);

/* Gives the content of a capsule of Arrow's PyCapsule interface, which it
 * lends; NULL with an exception: TypeError if it is no such capsule, ValueError
 * if its content was moved out. */
void *checked_capsule(PyObject *object, const char *capsule, const char *name);
PyObject *core_capsule(PyObject *module, PyObject *args); /* as a function */
PyObject *core_sync(PyObject *module, PyObject *args); /* checked_is_sync() */

/* Whether the arguments of an export are right: a schema that is requested, to
 * which the data is not cast, and others that Arrow's document leaves to its
 * later versions, which are refused if they are not None. */
bool checked_requested(PyObject *args, PyObject *kwargs);

/* Whether a peer has filled in a schema, and each field of it; otherwise raises
 * ValueError. */
bool checked_schema(const struct ArrowSchema *schema, const char *name);

/* Whether a schema is filled in, and is a struct, for rows; otherwise raises
 * ValueError or TypeError. */
bool checked_is_rows(const struct ArrowSchema *schema, const char *name);

/* Gives the number that an integer is. False with an exception: TypeError if it
 * is no number, ValueError if it is out of range. */
bool checked_integer(PyObject *object, const char *name, long long *out);

/* Gives the text of a str, which lends it; NULL with an exception: TypeError if
 * it is no str, ValueError if it has a NUL character. */
const char *checked_text(PyObject *object, const char *name);

/* ---- the host: a runtime on an event loop of Python (host.c) ------------- */

typedef struct {
    PyObject_HEAD struct uva_runtime *runtime; /* counts: for late calls */
    struct tap *ready; /* counts each: those with something new */
    struct tap *taps;  /* borrows each: the host's */
    struct tap *drain; /* counts: of the tasks that wait for drain(); NULL */
    unsigned forks;    /* fork_number() when it was made */
    bool open;         /* the runtime has not closed */
    bool in_turn;      /* uva_runtime_turn() runs */
    const void *loop;  /* only compared: the loop of asyncio; NULL: trio */
} Host;

/* Whether the runtime of the host can be used; otherwise raises. */
bool host_check(Host *host);

/* Runs the due work of the runtime, and calls the waiters of taps with news.
 * Inside a turn, or once it has closed, it has no effect. Loop thread. */
void host_turn_now(Host *host);

/* Gives a future of the loop of asyncio, which must be running, ready to be
 * yielded to its task; NULL with an exception. */
PyObject *host_future(const Host *host);

PyObject *host_choose(PyObject *module, PyObject *args); /* options */

/* ---- the log (log.c) ----------------------------------------------------- */

/* Keeps a line for Python, without the GIL, as a function of struct uva_log.
 * Thread: any. */
void log_write(void *ctx, const struct uva_log_record *record);

/* Passes on the lines that were kept, to the function of log_set(). Under the
 * GIL, outside of calls into the library. */
void log_pass_on(void);

/* _set_log(function): called with level, message, stream, clause, seconds since
 * the epoch; stream and clause may be None */
PyObject *log_set(PyObject *module, PyObject *function);

/* ---- the tap: the part of a stream for callbacks (tap.c) ----------------- */

/* The Python objects of a source or of a function of a stage. The stream of the
 * tap owns these, so it shows them to the garbage collector. Under the GIL. */
enum { HOLDER_OBJECTS = 4 };
struct holder {
    struct tap *tap; /* counts */
    struct holder *next;
    PyObject *objects[HOLDER_OBJECTS]; /* owns; may be NULL */
};

struct tap {
    atomic_int references;
    atomic_int sources;          /* sources of Python that are not freed */
    struct uva_runtime *runtime; /* counts */
    struct uva_stream *stream;   /* counts; NULL in a tap without one */
    Host *host;       /* borrows; NULL when the object that owns it is gone */
    struct tap *next; /* the next one in host->ready */
    struct tap *above, *below; /* in host->taps */
    struct tap *merged; /* counts: of a stream merged into this one; a list */
    struct tap *whole;  /* borrows, while it has a host: of the stream that this
                           one is merged into; NULL */
    struct tap *origin; /* counts: of the stream from which this branches off */
    struct holder *holders; /* not freed */
    PyObject *waiters;      /* owns: a list; NULL */
    PyObject *begin; /* owns: called when the stream is started; NULL: it was */
    PyObject *exception; /* owns: raised by a function of this stream; NULL */
    char text[256];      /* the text that the library was given instead */
    char name[64];       /* of the stream before others were merged into it */
    int branches;        /* taps that have this one as their origin */
    int users;           /* streams that may still start it */
    bool is_ready;       /* in host->ready */
    bool is_closed;      /* of a writer: no reader any more */
    bool is_part;        /* merged into another one, which has the host */
    bool device;         /* a source has data on a device */
};

/* Makes a tap with one reference. NULL with an exception. */
struct tap *tap_new(Host *host);
struct tap *tap_acquire(struct tap *tap); /* Thread: any */
void tap_release(struct tap *tap);        /* Thread: any */

/* A stream of the tap is started: calls `begin` of the tap, of taps merged into
 * it, and of their origins. */
void tap_begin(struct tap *tap);

/* Has the waiters of the tap called when the turn is over. Loop thread. */
void tap_ready(struct tap *tap);
void tap_ready_fn(void *tap); /* as uva_call_fn */

/* Has tap_ready() called on the loop thread. Thread: any, without the GIL. */
void tap_post_ready(struct tap *tap);

/* Keeps the exception that is set, and clears it. Describes it in `error`.
 * Returns its errno, or EIO. */
int tap_fail(struct tap *tap, struct uva_error *error);

/* Keeps the exception that is set, and clears it: it is the failure of the
 * stream, with whatever text that ends. */
void tap_fail_with(struct tap *tap);

/* Raises the failure of a stream: the exception itself, if it is Python's,
 * otherwise uvarrow.Error. Returns NULL. */
PyObject *tap_raise(struct tap *tap, const struct uva_outcome *outcome);

/* Has the waiter called when the tap, or one merged into it, has something new:
 * each tap of these passes its news on. -1 with an exception. */
int tap_wait(struct tap *tap, PyObject *waiter);
int tap_unwait(struct tap *tap, PyObject *waiter);

/* Takes a reference of the tap and references to `objects`. */
void holder_add(struct holder *holder, struct tap *tap);

/* Drops the objects and the tap, on any thread. False if the interpreter has
 * ended: then the holder must stay where it is. */
bool holder_drop(struct holder *holder);

/* Shows the objects that the holders of a tap, and of taps merged into it, own.
 */
int tap_traverse(const struct tap *tap, visitproc visit, void *arg);

/* The object is going: drops the stream on the loop thread, and the tap. */
void tap_close(struct tap *tap, unsigned forks);

/* ---- schemas and batches (schema.c, batch.c) ----------------------------- */

typedef struct {
    PyObject_HEAD struct ArrowSchema schema; /* owns */
    PyObject *pyarrow; /* owns: the pyarrow.Schema; NULL: not made */
} Schema;

/* Gives an object with a copy of `schema`; NULL with an exception. */
PyObject *schema_new(const struct ArrowSchema *schema);

/* Whether arrays of one schema fit the other; names and nullability count at
 * every level but the root. */
bool schema_equals(const struct ArrowSchema *a, const struct ArrowSchema *b);

/* A capsule with a copy, named as the protocol asks. */
PyObject *schema_capsule(const struct ArrowSchema *schema);

/* The pyarrow.Schema, borrowed; NULL with an exception. */
PyObject *schema_pyarrow(Schema *schema);

typedef struct {
    PyObject_HEAD Schema *schema; /* counts */
    struct ArrowDeviceArray data; /* owns */
    int64_t ordinal;
} Batch;

/* Whether rows of a batch are null, besides the values in its columns, or that
 * is not known. */
bool batch_has_null_rows(const struct ArrowDeviceArray *batch);

/* Whether a batch was not closed; otherwise raises. */
bool batch_is_open(const Batch *batch);

/* Shares the rows of a batch; its columns have these rows alone, unless some
 * may be null. -1 with an exception. */
int batch_share(Batch *batch, struct ArrowDeviceArray *out);

/* As batch_share(), for the host: -1 with an exception for data on a device. */
int batch_share_cpu(Batch *batch, struct ArrowArray *out);

/* Methods of a batch for other libraries, and as text (frames.c) */
PyObject *batch_c_stream(PyObject *batch, PyObject *args, PyObject *kwargs);
PyObject *batch_select(PyObject *batch, PyObject *mask);
PyObject *batch_repr(PyObject *batch);
PyObject *batch_repr_html(PyObject *batch, PyObject *unused);
PyObject *batch_to_pandas(PyObject *batch, PyObject *unused);
PyObject *batch_to_polars(PyObject *batch, PyObject *unused);
PyObject *batch_num_columns(PyObject *batch, void *unused);
PyObject *batch_column_names(PyObject *batch, void *unused);

/* csv(Batch, rows): the first rows as the bytes of CSV. */
PyObject *batch_csv(PyObject *module, PyObject *args);

/* Takes `data`, also on failure. */
PyObject *batch_new(Schema *schema, struct ArrowDeviceArray *data,
                    int64_t ordinal);

/* Exports a Batch, or an object with __arrow_c_array__, to `out`; if `device`,
 * with __arrow_c_device_array__, and the data may be anywhere. An object with
 * only one of the two is asked for that. `expected` may be NULL; otherwise the
 * object must have that schema. `schema` may be NULL; otherwise it gets the
 * object's. -1 with an exception, which begins with `name`. */
int batch_export(PyObject *object, bool device, const char *name,
                 const struct ArrowSchema *expected, struct ArrowSchema *schema,
                 struct ArrowDeviceArray *out);

/* Whether data of the schema `of` may be passed on where another one is
 * expected, which may be NULL; otherwise raises. */
bool batch_schema_fits(const struct ArrowSchema *expected,
                       const struct ArrowSchema *of, const char *name);

/* Whether the array is on such a device; otherwise releases it and raises. */
bool batch_is_on(struct ArrowDeviceArray *array, int device_type);

/* Gives the column `i`, which exists, with a share of the data; NULL with an
 * exception (column.c). */
PyObject *column_new(Batch *batch, int64_t i);

/* from_dlpack(capsule, name) -> Batch: takes the tensor. */
PyObject *column_from_dlpack(PyObject *module, PyObject *args);

/* ---- a stream that an object has given (given.c) ------------------------- */

struct given {
    struct ArrowArrayStream plain;        /* owns */
    struct ArrowDeviceArrayStream device; /* owns */
    bool is_device;                       /* which of the two is used */
    bool is_open;
};

/* Moves a stream out of a capsule. -1 with an exception. */
int given_take(struct given *given, PyObject *capsule, bool device,
               const char *name);

/* As get_schema() and get_next(), without an exception. */
int given_schema(struct given *given, struct ArrowSchema *out);
int given_next(struct given *given, struct ArrowDeviceArray *out);

/* Raises the exception for a code of these. Returns -1. */
int given_fail(struct given *given, int code);

/* Releases the stream, if there is one; keeps the exception that is set. */
void given_close(struct given *given);

/* ---- objects of other objects (made.c) ----------------------------------- */

PyObject *made_batch(PyObject *module, PyObject *args);
PyObject *made_schema(PyObject *module, PyObject *capsule);

/* ---- a thread for one source (own_thread.c) ------------------------------ */

typedef void own_fn(void *ctx);

/* Whether this thread makes all calls of its source. */
bool own_thread_is_here(void);

/* Has `open` make a stream on a thread that is made for it, and gives it to
 * `out` as a stream whose calls are all made there, also the release, after
 * which `end` is called: so it is if `open` fails. `ctx` is for both. Returns
 * the code of `open`; EAGAIN without a thread. Thread: any, without the GIL. */
int owned_open(int (*open)(void *ctx, struct ArrowArrayStream *out,
                           struct uva_error *error),
               own_fn *end, void *ctx, struct ArrowArrayStream *out,
               struct uva_error *error);

/* ---- sources (source.c, rows.c) ------------------------------------------ */

/* Makes a stream of an object of Python, which is opened on a worker by
 * `opener`. NULL with an exception. */
struct uva_stream *source_open(Host *host, struct tap *tap, PyObject *args);

/* Makes a blocking stream of such an object, opened by the first call of it.
 * `item` is borrowed: the name of an iterable in errors. -1 with an exception.
 */
int source_defer(struct tap *tap, PyObject *object, PyObject *opener,
                 const char *item, struct ArrowArrayStream *out);

/* Makes a blocking stream of an iterator over objects with __arrow_c_array__;
 * the second form, of an iterator over objects with __arrow_c_device_array__,
 * all on such a device. `name`, which is borrowed, is the name of an item.
 * Takes no reference. -1 with an exception. */
int rows_open(PyObject *iterator, const char *name, struct tap *tap,
              struct ArrowArrayStream *out);
int rows_open_device(PyObject *iterator, const char *name, struct tap *tap,
                     int device_type, struct ArrowDeviceArrayStream *out);

/* The schema of a source that has no batch: no columns. */
int schema_of_nothing(struct ArrowSchema *out);

/* Wraps `stream` in place, so that the GIL is lent while it waits. `schema`, if
 * it is not NULL, is copied and given without waiting. -1 with an exception;
 * then the stream is released. */
int polite_wrap(struct ArrowArrayStream *stream,
                const struct ArrowSchema *schema);

/* Wraps `stream` in place for a driver, which reads it on a worker: it may be
 * Python's, so it fails once the interpreter ends. -1 with an exception; then
 * the stream is released. */
int guarded_wrap(struct ArrowArrayStream *stream);

/* Makes `stream` a blocking one, with the window that `args` are: batches and
 * bytes. -1 with an exception. */
int stream_block(struct uva_stream *stream, PyObject *args,
                 struct ArrowArrayStream *out);

/* Starts `stream` for a thread that reads device arrays: gives a capsule with a
 * blocking stream, which lends the GIL while it waits; NULL with an exception
 * (device_stream.c). */
PyObject *device_stream_capsule(struct uva_stream *stream,
                                const struct uva_window *window);

/* Gives a capsule that owns `stream`, which is taken, also on failure. */
PyObject *stream_capsule(struct ArrowArrayStream *stream);

/* stream_schema(capsule): the Schema of the stream in a capsule, which keeps
 * it. Waits for it, and lends the GIL meanwhile if the stream does. */
PyObject *stream_capsule_schema(PyObject *module, PyObject *capsule);

/* ---- chunks (encoder.c) ----------------------------------------------------
 */

/* _encode(format, compression, delimiter, header, crlf, text of nulls or None,
 * as stored): adds the stage that encodes. */
PyObject *stream_encode(PyObject *object, PyObject *args);

/* chunks(Batch, before): the list of chunks of the part that the batch carries,
 * which is taken. `before` is None, or bytes that stand before its lines, which
 * become items of an array of JSON. */
PyObject *chunks_take(PyObject *module, PyObject *args);

/* Batch.ipc(). */
PyObject *batch_ipc(PyObject *batch, PyObject *args, PyObject *kwargs);

/* ---- masks (mask.c) ------------------------------------------------------ */

/* Reads a mask of `rows` rows: gives the bits, to be freed by free(). 1; 0: the
 * object is no array and no buffer; -1 with an exception. */
int mask_read(PyObject *object, const char *name, int64_t rows, uint8_t **bits);

/* ---- stages (stage.c) ---------------------------------------------------- */

/* A function of Python. */
struct function {
    struct holder held;
    struct ArrowSchema result; /* owns: of its results; released: the schema of
                                  its input */
};

/* The objects that it holds */
enum {
    CALLABLE,
    GIVEN,  /* the Schema of its input; may be NULL */
    FINISH, /* of a transform: called at the end; may be NULL. Of a coroutine
               function: makes a task */
    YIELDS  /* of a transform: gives the batches that are due; may be NULL */
};

/* Makes one, with its schema (a capsule or None). NULL with an exception. */
struct function *function_new(struct tap *tap, PyObject *callable,
                              PyObject *schema);
struct function *function_new_sized(size_t size, struct tap *tap,
                                    PyObject *callable, PyObject *schema);
void function_free(void *function); /* any thread */

/* A Batch of the data, which is moved out of `in`; NULL with an exception. */
PyObject *function_batch(struct function *function, struct uva_batch *in);

/* The schema of the results, as a function of a stage. */
int function_schema(void *function, const struct ArrowSchema *in,
                    struct ArrowSchema *out, struct uva_error *error);

/* Selects rows of a batch by bits. 1; 0: no row was selected; -1 with an
 * exception. */
int batch_select_rows(Batch *batch, const uint8_t *bits,
                      struct ArrowDeviceArray *out);

/* Does what the function of a filter wants with a batch that had `rows` rows: a
 * mask selects some of them. 1: keep `out`; 0; -1 with an exception. */
int filter_apply(Batch *batch, PyObject *wanted, int64_t rows,
                 struct ArrowDeviceArray *out);

int stage_map(struct tap *tap, PyObject *function, PyObject *schema,
              const struct uva_window *window);
int stage_filter(struct tap *tap, PyObject *function,
                 const struct uva_window *window);
int stage_trace(struct tap *tap, PyObject *function);

/* Has a function called on the loop thread when the stage above has ended. */
int stage_watch_end(struct tap *tap, PyObject *function);

/* A coroutine function. `args`: the function, a schema or None, a function that
 * makes a task of a coroutine, the most calls at one time, whether results may
 * come in any order, whether it filters (later.c). */
int stage_later(struct tap *tap, PyObject *args,
                const struct uva_window *window);

/* A function that yields; `finish`, or None, is called at the end
 * (transform.c). */
int stage_transform(struct tap *tap, PyObject *function, PyObject *schema,
                    PyObject *finish, const struct uva_window *window);

/* ---- streams (stream.c) -------------------------------------------------- */

typedef struct {
    PyObject_HEAD Host *host; /* counts */
    struct tap *tap;          /* counts; NULL before it is opened */
    Schema *schema;           /* counts; NULL: not known */
    int64_t since_ns;         /* when the loop ran last, as far as is known */
    unsigned forks;           /* fork_number() when it was made */
    int run;                  /* batches given since then */
    struct uva_window window; /* of the batches that wait for the consumer */
    bool started;             /* it is read here */
    bool ended;               /* iteration has ended */
    bool complete;            /* it has, after the last batch of the source */
    bool over;                /* the stream has, or it is closed */
    bool exported;            /* it is read elsewhere, or closed */
    bool paused;              /* no batch is given until it is resumed */
} Stream;

/* Whether a stage can be added; otherwise raises. */
bool stream_can_build(Stream *self);

/* Ends a call that builds: None, or raises the first error of the stream. */
PyObject *stream_built(Stream *self);

/* Takes the stream of an object that has a tap: None; NULL with an exception.
 */
PyObject *stream_opened(Stream *self, struct uva_stream *stream);

/* Makes `other` a part of a stream with that tap. */
void stream_join(struct tap *tap, Stream *other);

/* Sources of bytes (bytes.c), and batches that are pushed (writer.c) */
PyObject *stream_file(PyObject *object, PyObject *args);
PyObject *stream_push(PyObject *object, PyObject *args);

/* Several streams (together.c), and one that is opened again (retry.c). */
PyObject *stream_merge(PyObject *object, PyObject *args);
PyObject *stream_concat(PyObject *object, PyObject *args);
PyObject *stream_tee(PyObject *object, PyObject *args);
PyObject *stream_retry(PyObject *object, PyObject *args);

PyObject *stream_set_clock(PyObject *module, PyObject *ns); /* for tests */

/* ---- databases (pool.c, catalog.c) --------------------------------------- */

struct uva_adbc_pool;

typedef struct {
    PyObject_HEAD struct uva_adbc_pool *pool; /* counts; NULL: closed */
    unsigned forks;  /* fork_number() when it was made */
    struct tap *end; /* counts: of tasks that wait for its close; NULL: none */
} Pool;

/* Make a stream of a query, and of a commit or a roll-back, with a tap, to
 * which they give a reference. Lend the host. NULL with an exception; then
 * there may be a tap, too. */
typedef struct uva_stream *pool_stream_fn(PyObject *args, Host **host,
                                          struct tap **tap);
pool_stream_fn pool_query, pool_ending, pool_objects, pool_table_schema,
    pool_parts;

/* Whether a stream can be made of the pool: then there is a tap; otherwise
 * raises. */
bool pool_begin(PyObject *owner, PyObject *pool, Host **host, struct tap **tap);

/* partitions(Batch): the list of the partitions in it, as bytes. */
PyObject *pool_partitions(PyObject *module, PyObject *batch);

/* Methods of a pool that wait for its close (pool_end.c). */
PyObject *pool_close_and_tell(PyObject *object, PyObject *host);
PyObject *pool_is_closed(PyObject *object, PyObject *unused);
PyObject *pool_wait(PyObject *object, PyObject *waiter);
PyObject *pool_unwait(PyObject *object, PyObject *waiter);

#endif
