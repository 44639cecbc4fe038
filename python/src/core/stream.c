/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as an asynchronous iterator. This type has the methods that must be
 * fast or call the library; uvarrow.Stream, which extends it in Python, waits:
 * it knows the event loops.
 *
 * Happy path:  opened -> (stages)* -> started by the first `__anext__` ->
 *              (a batch is taken; without one, _next() waits)* -> the end.
 *
 * `await stream.__anext__()` is an object of the type Next, which takes a batch
 * when it is awaited. Only if no batch is there, or if the loop has to run, it
 * yields to the loop, and takes one after that. A time-out therefore loses no
 * batch; and as the loop has run then as well, the next step takes one at once,
 * so that steps that are cancelled again and again still get on.
 *
 * On cancel:   the stream ends, and iteration with it. When the object is
 *              freed, its stream is cancelled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/core.h"

enum { RUN_BATCHES = 64, RUN_NS = 1000000 };

/* In so small a window, nearly each batch is announced by itself, so that a
 * turn instead of a wait saves a large part of the cost of the batch. In a
 * large one, batches are better waited for, as they come together then. */
enum { FEW_BATCHES = 8 };

static int64_t set_ns = -1; /* the time of the clock; -1: the real time */

static int64_t now_ns(void)
{
    struct timespec now;

    if (set_ns >= 0)
        return set_ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* _set_clock(ns): the time of the clock of all streams, for tests; -1: the real
 * time */
PyObject *stream_set_clock(PyObject *module, PyObject *ns)
{
    const long long value = PyLong_AsLongLong(ns);

    (void)module;
    if (value == -1 && PyErr_Occurred())
        return NULL;
    set_ns = value;
    Py_RETURN_NONE;
}

/* Whether there is a stream; otherwise raises. */
static bool stream_was_opened(const Stream *self)
{
    if (self->tap == NULL)
        PyErr_SetString(PyExc_RuntimeError,
                        "uvarrow: a stream is made by uvarrow.stream()");
    return self->tap != NULL;
}

/* Whether the stream can be built or read; otherwise raises. */
static bool stream_check(Stream *self)
{
    return stream_was_opened(self) && host_check(self->host);
}

/* ---- open ---------------------------------------------------------------- */

PyObject *stream_opened(Stream *self, struct uva_stream *stream)
{
    self->forks = fork_number();
    if (stream == NULL) {
        struct tap *tap = self->tap;

        self->tap = NULL;
        if (tap != NULL) /* NULL: it was not made */
            tap_close(tap, self->forks);
        return NULL;
    }
    self->tap->stream = stream;
    Py_RETURN_NONE;
}

/* _open(host, (object, opener, interrupt, batches, bytes, device), batches,
 * bytes) */
static PyObject *stream_open(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    PyObject *host, *how;
    long long bytes;
    int batches;

    if (self->tap != NULL ||
        !PyArg_ParseTuple(args, "O!O!iL", host_type, &host, &PyTuple_Type, &how,
                          &batches, &bytes))
        return self->tap != NULL ? core_raise(EBUSY, "opened twice", NULL)
                                 : NULL;
    if (!host_check((Host *)host))
        return NULL;
    self->host = (Host *)Py_NewRef((PyObject *)host);
    self->window.batches = batches;
    self->window.bytes = bytes;
    self->tap = tap_new(self->host);
    if (self->tap == NULL)
        return NULL;
    return stream_opened(self, source_open(self->host, self->tap, how));
}

/* Opens the result of `make` for the first argument. */
static PyObject *stream_make(Stream *self, PyObject *args, pool_stream_fn *make)
{
    struct uva_stream *stream;
    PyObject *how;
    long long bytes;
    int batches;
    Host *host;

    if (self->tap != NULL ||
        !PyArg_ParseTuple(args, "OiL", &how, &batches, &bytes))
        return self->tap != NULL ? core_raise(EBUSY, "opened twice", NULL)
                                 : NULL;
    self->window.batches = batches;
    self->window.bytes = bytes;
    stream = make(how, &host, &self->tap);
    if (self->tap != NULL)
        self->host = (Host *)Py_NewRef((PyObject *)host);
    return stream_opened(self, stream);
}

/* _query((host, pool, sql, parameters, options, table, update, by_name,
 * busy_ms, batch_bytes, batches, bytes), batches, bytes) */
static PyObject *stream_query(PyObject *object, PyObject *args)
{
    return stream_make((Stream *)object, args, pool_query);
}

/* _ending((host, session, commits), batches, bytes) */
static PyObject *stream_ending(PyObject *object, PyObject *args)
{
    return stream_make((Stream *)object, args, pool_ending);
}

/* _partitions((arguments of pool_parts()), batches, bytes) */
static PyObject *stream_partitions(PyObject *object, PyObject *args)
{
    return stream_make((Stream *)object, args, pool_parts);
}

/* _objects((host, pool, depth, catalog, schema, table, column, types, busy_ms,
 * batches, bytes), batches, bytes) */
static PyObject *stream_objects(PyObject *object, PyObject *args)
{
    return stream_make((Stream *)object, args, pool_objects);
}

/* _table_schema((host, pool, catalog, schema, table), batches, bytes) */
static PyObject *stream_table_schema(PyObject *object, PyObject *args)
{
    return stream_make((Stream *)object, args, pool_table_schema);
}

/* ---- start and take ------------------------------------------------------ */

static int stream_start(Stream *self)
{
    struct uva_error error = {0};
    int code;

    if (!stream_check(self))
        return -1;
    code = uva_stream_start_take(self->tap->stream, &self->window, tap_ready_fn,
                                 self->tap, &error);
    if (code != 0) {
        (void)core_raise(code, error.message, NULL);
        return -1;
    }
    self->started = true;
    self->since_ns = now_ns();
    tap_begin(self->tap);
    return 0;
}

/* Not part of stream_start(), as clearing an error costs more than this. */
static bool stream_is_started(const Stream *self)
{
    return self->started && self->forks == fork_number();
}

/* The stream has ended: raises why. A second time, and after the user's own
 * cancel, that is the end of an iteration. */
static PyObject *stream_end(Stream *self, const struct uva_outcome *outcome)
{
    const bool first = !self->ended;

    self->ended = self->over = true;
    if (first)
        self->complete = outcome->end == UVA_END_COMPLETE;
    if (first && !self->complete)
        return tap_raise(self->tap, outcome);
    PyErr_SetNone(PyExc_StopAsyncIteration);
    return NULL;
}

static PyObject *raise_closed(void)
{
    return core_raise(ECANCELED, "the stream was closed before its end", NULL);
}

/* After the end of an iteration: raises if the stream was closed, or has
 * failed, before it was read to its end. */
static PyObject *stream_check_end(PyObject *object, PyObject *unused)
{
    (void)unused;
    return ((Stream *)object)->complete ? Py_NewRef(Py_None) : raise_closed();
}

/* pause(): batches wait until resume(). */
static PyObject *stream_pause(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;

    (void)unused;
    if (!stream_was_opened(self))
        return NULL;
    self->paused = !self->over;
    Py_RETURN_NONE;
}

/* The pause is over: a task that waits for a batch looks again. */
static void stream_go_on(Stream *self)
{
    if (self->paused && self->tap != NULL && self->forks == fork_number())
        tap_post_ready(self->tap);
    self->paused = false;
}

static PyObject *stream_resume(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;

    (void)unused;
    if (!stream_was_opened(self))
        return NULL;
    stream_go_on(self);
    Py_RETURN_NONE;
}

/* Gives a Batch; None if no batch waits now; raises at the end. */
static PyObject *stream_take(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    struct uva_outcome outcome;
    struct uva_batch batch;
    int code;

    (void)unused;
    if (self->ended && !self->started) { /* closed before it was read */
        PyErr_SetNone(PyExc_StopAsyncIteration);
        return NULL;
    }
    if (!stream_is_started(self) && stream_start(self) != 0)
        return NULL;
    if (self->paused && self->host->open)
        Py_RETURN_NONE;
    code = uva_stream_take(self->tap->stream, &batch, &outcome);
    if (code == EAGAIN && self->window.batches <= FEW_BATCHES) {
        host_turn_now(self->host);
        code = uva_stream_take(self->tap->stream, &batch, &outcome);
    }
    if (code == EAGAIN)
        Py_RETURN_NONE;
    if (code == ENOENT)
        return stream_end(self, &outcome);
    if (code != 0)
        return core_raise(code, "this is not the thread of the stream", NULL);
    if (self->schema == NULL)
        self->schema = (Schema *)schema_new(batch.schema);
    if (self->schema == NULL) {
        uva_array_release(&batch.data);
        return NULL;
    }
    self->run++;
    return batch_new(self->schema, &batch.data, batch.ordinal);
}

/* Gives the Schema; None if it is not known now; raises if there is no schema.
 */
static PyObject *stream_peek(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    const struct uva_stream_info *info;
    struct uva_outcome outcome;
    int code;

    (void)unused;
    if (self->schema != NULL)
        return Py_NewRef((PyObject *)self->schema);
    if (self->ended && !self->started) /* closed before it was read */
        return raise_closed();
    if (!stream_is_started(self) && stream_start(self) != 0)
        return NULL;
    code = uva_stream_take(self->tap->stream, NULL, &outcome);
    info = uva_stream_get_info(self->tap->stream);
    if (info != NULL) {
        self->schema = (Schema *)schema_new(info->schema);
        return Py_XNewRef((PyObject *)self->schema);
    }
    if (code == EAGAIN)
        Py_RETURN_NONE;
    self->over |= code == ENOENT;
    if (code == ENOENT)
        return tap_raise(self->tap, &outcome);
    return core_raise(code, "this is not the thread of the stream", NULL);
}

/* Whether the loop should run before another batch is given. */
static bool stream_is_due(const Stream *self)
{
    return self->run >= RUN_BATCHES ||
           (self->run > 0 && now_ns() - self->since_ns >= RUN_NS);
}

static PyObject *stream_due(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(stream_is_due((Stream *)object));
}

/* The loop has run. */
static void stream_has_rested(Stream *self)
{
    self->run = 0;
    self->since_ns = now_ns();
}

static PyObject *stream_fresh(PyObject *object, PyObject *unused)
{
    (void)unused;
    stream_has_rested((Stream *)object);
    Py_RETURN_NONE;
}

static PyObject *stream_wait(PyObject *object, PyObject *waiter)
{
    Stream *self = (Stream *)object;

    return !stream_was_opened(self) || tap_wait(self->tap, waiter) != 0
               ? NULL
               : Py_NewRef(Py_None);
}

static PyObject *stream_unwait(PyObject *object, PyObject *waiter)
{
    Stream *self = (Stream *)object;

    return !stream_was_opened(self) || tap_unwait(self->tap, waiter) != 0
               ? NULL
               : Py_NewRef(Py_None);
}

/* _waiters() -> the number of waiters that are kept, for tests */
static PyObject *stream_waiters(PyObject *object, PyObject *unused)
{
    const Stream *self = (Stream *)object;
    Py_ssize_t n = 0;

    (void)unused;
    for (const struct tap *tap = self->tap; tap != NULL; tap = tap->merged)
        n += tap->waiters != NULL ? PyList_Size(tap->waiters) : 0;
    return PyLong_FromSsize_t(n);
}

/* The host of the stream; None before it is opened */
static PyObject *stream_get_host(PyObject *object, void *unused)
{
    Stream *self = (Stream *)object;

    (void)unused;
    return Py_NewRef(self->host != NULL ? (PyObject *)self->host : Py_None);
}

/* ---- end ----------------------------------------------------------------- */

static PyObject *stream_cancel(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    const char *reason = NULL;
    int code = 0;

    if (!PyArg_ParseTuple(args, "iz", &code, &reason))
        return NULL;
    if (self->tap != NULL && self->forks == fork_number())
        uva_stream_cancel(self->tap->stream, code, reason);
    stream_go_on(self);
    Py_RETURN_NONE;
}

/* _note(exception) -> (errno, text): keeps the exception that the stream raises
 * when it fails with that text. */
static PyObject *stream_note(PyObject *object, PyObject *exception)
{
    Stream *self = (Stream *)object;
    struct uva_error error = {0};

    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    if (self->tap == NULL)
        return NULL;
    (void)tap_fail(self->tap, &error);
    return Py_BuildValue("is", error.code, error.message);
}

/* Whether every Python source of the stream is freed, or other branches read
 * it. */
static bool stream_is_released(const Stream *self)
{
    for (const struct tap *tap = self->tap; tap != NULL; tap = tap->merged)
        if (tap->users <= 1 && atomic_load(&tap->sources) != 0)
            return false;
    return true;
}

/* close() -> bool: cancels; an error is not raised any more. True once the
 * stream has ended and its sources of Python are freed; false: the waiters are
 * called when that may be so. */
static PyObject *stream_close(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    int code;

    (void)unused;
    self->ended = self->over = true;
    stream_go_on(self);
    if (self->tap == NULL || self->forks != fork_number() || !self->host->open)
        Py_RETURN_TRUE;
    uva_stream_cancel(self->tap->stream, 0, "closed");
    if (self->started) {
        struct uva_batch batch;

        while ((code = uva_stream_take(self->tap->stream, &batch, NULL)) == 0)
            uva_array_release(&batch.data);
        if (code == EAGAIN)
            Py_RETURN_FALSE;
    } else if (!self->exported) {
        struct uva_stream *stream = self->tap->stream;

        if (self->tap->users == 1) /* no branch needs it */
            Py_CLEAR(self->tap->begin);
        self->tap->stream = NULL; /* a freed object may call this again */
        self->exported = true;
        uva_stream_release(stream); /* it frees its source */
    }
    return PyBool_FromLong(stream_is_released(self));
}

/* drop() -> bool: the object is going. Whether the stream was started and, as
 * far as it was read, has not ended: then it should have been closed.
 *
 * A stream that was started calls its functions until it has ended, which a
 * cycle makes garbage together with the object. From now on they are not shown
 * to the garbage collector, so that it leaves them as they are; the end of the
 * stream frees them. */
static PyObject *stream_drop(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    const bool running = self->started && !self->over;

    (void)unused;
    if (stream_is_started(self) && self->tap != NULL) {
        uva_stream_cancel(self->tap->stream, 0, "dropped");
        self->exported = true;
    }
    return PyBool_FromLong(running);
}

/* A function of a stage, or a source, may refer to the stream: such a cycle is
 * visible as long as the stream is read here, or nowhere, and not dropped. */
static int stream_traverse(PyObject *object, visitproc visit, void *arg)
{
    Stream *self = (Stream *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->host);
    return self->tap == NULL || self->exported
               ? 0
               : tap_traverse(self->tap, visit, arg);
}

static int stream_clear(PyObject *object)
{
    Stream *self = (Stream *)object;
    struct tap *tap = self->tap;

    self->tap = NULL;
    self->started = false;
    self->ended = self->over = true;
    if (tap != NULL)
        tap_close(tap, self->forks);
    Py_CLEAR(self->host);
    return 0;
}

static void stream_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    (void)stream_clear(object);
    Py_CLEAR(((Stream *)object)->schema);
    core_free(object);
}

/* ---- stages -------------------------------------------------------------- */

PyObject *stream_built(Stream *self)
{
    struct uva_error error = {0};
    const int code = uva_stream_status(self->tap->stream, &error);

    return code != 0 ? core_raise(code, error.message, NULL)
                     : Py_NewRef(Py_None);
}

bool stream_can_build(Stream *self)
{
    if (!stream_check(self))
        return false;
    if (!self->started && !self->exported)
        return true;
    (void)core_raise(EBUSY, "the stream has been started or closed", NULL);
    return false;
}

static PyObject *stream_map(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    PyObject *function, *schema;

    if (!PyArg_ParseTuple(args, "OO", &function, &schema) ||
        !stream_can_build(self) ||
        stage_map(self->tap, function, schema, &self->window) != 0)
        return NULL;
    return stream_built(self);
}

static PyObject *stream_filter(PyObject *object, PyObject *function)
{
    Stream *self = (Stream *)object;

    if (!stream_can_build(self) ||
        stage_filter(self->tap, function, &self->window) != 0)
        return NULL;
    return stream_built(self);
}

/* _cast(capsule of a schema) */
static PyObject *stream_cast(PyObject *object, PyObject *capsule)
{
    Stream *self = (Stream *)object;
    struct ArrowSchema *schema;

    if (!stream_can_build(self))
        return NULL;
    schema = checked_capsule(capsule, "arrow_schema", "schema");
    if (schema == NULL || !checked_is_rows(schema, "schema"))
        return NULL;
    (void)uva_stream_cast(self->tap->stream, schema);
    return stream_built(self);
}

/* _watch(begin, end or None): functions that are called when the stream is
 * started, and when its source has ended */
static PyObject *stream_watch(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    PyObject *begin, *end;

    if (!PyArg_ParseTuple(args, "OO", &begin, &end) || !stream_can_build(self))
        return NULL;
    self->tap->begin = Py_NewRef(begin);
    if (end != Py_None && stage_watch_end(self->tap, end) != 0)
        return NULL;
    return stream_built(self);
}

static PyObject *stream_trace(PyObject *object, PyObject *function)
{
    Stream *self = (Stream *)object;

    if (!stream_can_build(self) || stage_trace(self->tap, function) != 0)
        return NULL;
    return stream_built(self);
}

/* _limit(rows) */
static PyObject *stream_limit(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    long long rows;

    if (!PyArg_ParseTuple(args, "L", &rows) || !stream_can_build(self))
        return NULL;
    (void)uva_stream_limit_rows(self->tap->stream, rows);
    return stream_built(self);
}

static PyObject *stream_without_offsets(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;

    (void)unused;
    if (!stream_can_build(self))
        return NULL;
    (void)uva_stream_without_offsets(self->tap->stream);
    return stream_built(self);
}

static PyObject *stream_rebatch(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    long long rows, bytes, wait_ms, window_bytes;
    struct uva_window window = {0};

    if (!PyArg_ParseTuple(args, "LLLiL", &rows, &bytes, &wait_ms,
                          &window.batches, &window_bytes) ||
        !stream_can_build(self))
        return NULL;
    window.bytes = window_bytes;
    (void)uva_stream_rebatch(self->tap->stream,
                             &(struct uva_rebatch){.rows = rows,
                                                   .bytes = bytes,
                                                   .wait_ms = wait_ms,
                                                   .window = window});
    return stream_built(self);
}

static PyObject *stream_timeout(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    long long open_ms, first_ms, between_ms, total_ms;

    if (!PyArg_ParseTuple(args, "LLLL", &open_ms, &first_ms, &between_ms,
                          &total_ms) ||
        !stream_can_build(self))
        return NULL;
    (void)uva_stream_timeout(self->tap->stream,
                             &(struct uva_timeout){.open_ms = open_ms,
                                                   .first_ms = first_ms,
                                                   .between_ms = between_ms,
                                                   .total_ms = total_ms});
    return stream_built(self);
}

/* _throttle(batches, bytes), both of a second */
static PyObject *stream_throttle(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    long long batches, bytes;

    if (!PyArg_ParseTuple(args, "LL", &batches, &bytes) ||
        !stream_can_build(self))
        return NULL;
    (void)uva_stream_throttle(
        self->tap->stream,
        &(struct uva_throttle){.batches_per_s = batches, .bytes_per_s = bytes});
    return stream_built(self);
}

/* _set_priority(number) */
static PyObject *stream_set_priority(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    int priority;

    if (!PyArg_ParseTuple(args, "i", &priority) || !stream_can_build(self))
        return NULL;
    (void)uva_stream_set_priority(self->tap->stream, priority);
    return stream_built(self);
}

/* _later(function, schema or None, makes a task, at once, unordered, filters)
 */
static PyObject *stream_later(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;

    if (!stream_can_build(self) ||
        stage_later(self->tap, args, &self->window) != 0)
        return NULL;
    return stream_built(self);
}

/* _transform(function, schema or None, finish or None) */
static PyObject *stream_transform(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    PyObject *function, *schema, *finish;

    if (!PyArg_ParseTuple(args, "OOO", &function, &schema, &finish) ||
        !stream_can_build(self) ||
        stage_transform(self->tap, function, schema, finish, &self->window) !=
            0)
        return NULL;
    return stream_built(self);
}

static PyObject *stream_parallel(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct uva_window window = {0};
    int workers, unordered;
    long long bytes;

    if (!PyArg_ParseTuple(args, "ipiL", &workers, &unordered, &window.batches,
                          &bytes) ||
        !stream_can_build(self))
        return NULL;
    window.bytes = bytes;
    (void)uva_stream_parallel(
        self->tap->stream, &(struct uva_parallel){.workers = workers,
                                                  .unordered = unordered != 0,
                                                  .window = window});
    return stream_built(self);
}

static PyObject *stream_set_name(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    const char *name;

    if (!PyArg_ParseTuple(args, "s", &name) || !stream_can_build(self))
        return NULL;
    (void)uva_stream_set_name(self->tap->stream, name);
    if (self->tap->merged == NULL)
        (void)PyOS_snprintf(self->tap->name, sizeof(self->tap->name), "%s",
                            name);
    return stream_built(self);
}

/* ---- looking on, and the other way --------------------------------------- */

static const char *waiting_name(enum uva_waiting waiting)
{
    static const char *const names[] = {
        [UVA_WAITING_NONE] = "",
        [UVA_WAITING_SOURCE] = "source",
        [UVA_WAITING_CONSUMER] = "consumer",
        [UVA_WAITING_WORKER] = "worker",
        [UVA_WAITING_DEVICE] = "device",
        [UVA_WAITING_MEMORY] = "memory",
        [UVA_WAITING_PERMIT] = "permit",
        [UVA_WAITING_TIME] = "time",
        [UVA_WAITING_OVER] = "over",
    };

    return names[waiting];
}

/* A row of the statistics, with the members of uvarrow.StageStats. */
static PyObject *stats_row(const struct uva_stage_stats *s)
{
    return Py_BuildValue(
        "(ssLLLLiLLLLLLLdddddLs)", s->name, waiting_name(s->waiting),
        (long long)s->batches, (long long)s->rows, (long long)s->queued,
        (long long)s->dropped, (int)s->next, (long long)s->rows_expected,
        (long long)s->bytes_expected, (long long)s->requested,
        (long long)s->bytes, (long long)s->queued_bytes,
        (long long)s->queued_max, (long long)s->queued_bytes_max,
        (double)s->busy_ns / 1e9, (double)s->busy_max_ns / 1e9,
        (double)s->starved_ns / 1e9, (double)s->idle_ns / 1e9,
        (double)s->worker_wait_ns / 1e9, (long long)s->wakeups,
        s->stream != NULL ? s->stream : "");
}

/* The statistics of `count` stages. */
static PyObject *stats_list(const struct uva_stage_stats *stages, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = stats_row(&stages[i]);

        if (row == NULL || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* _state(): in words */
static PyObject *stream_state(PyObject *object, PyObject *unused)
{
    const Stream *self = (Stream *)object;
    const char *state = "not started";

    (void)unused;
    if (self->tap == NULL)
        state = "not opened";
    else if (self->tap->is_part)
        state = "part of another stream";
    else if (self->complete)
        state = "complete";
    else if (self->over)
        state = "ended";
    else if (self->paused)
        state = "paused";
    else if (self->started)
        state = "running";
    else if (self->exported)
        state = "read by a reader";
    return core_text(state);
}

/* _stats() -> a list with a tuple for each stage */
static PyObject *stream_stats(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    struct uva_stage_stats *stages;
    size_t count = 0, room;
    PyObject *list;

    (void)unused;
    if (self->tap == NULL || self->tap->stream == NULL ||
        uva_stream_get_stats(self->tap->stream, NULL, &count) != 0)
        return PyList_New(0);
    room = count;
    stages = calloc(room + 1, sizeof(*stages));
    if (stages == NULL)
        return PyErr_NoMemory();
    if (uva_stream_get_stats(self->tap->stream, stages, &count) != 0)
        count = 0;
    list = stats_list(stages, count < room ? count : room);
    free(stages);
    return list;
}

/* The metadata of the stream's producer, as (key, value) pairs of bytes. */
static PyObject *stream_metadata(PyObject *object, PyObject *unused)
{
    Stream *self = (Stream *)object;
    const struct uva_stream_info *info = NULL;

    (void)unused;
    if (self->started)
        info = uva_stream_get_info(self->tap->stream);
    return core_metadata(info != NULL ? info->metadata : NULL);
}

int stream_block(struct uva_stream *stream, PyObject *args,
                 struct ArrowArrayStream *out)
{
    struct uva_window window = {0};
    struct uva_error error = {0};
    long long bytes;
    int code;

    if (!PyArg_ParseTuple(args, "iL", &window.batches, &bytes))
        return -1;
    window.bytes = bytes;
    code = uva_stream_to_arrow_stream(stream, &window, out, &error);
    if (code != 0)
        (void)core_raise(code, error.message, NULL);
    return code != 0 ? -1 : 0;
}

/* _reader(batches, bytes): a capsule with a blocking stream, for a thread */
static PyObject *stream_reader(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct ArrowArrayStream out;

    if (!stream_can_build(self) ||
        stream_block(self->tap->stream, args, &out) != 0)
        return NULL;
    self->exported = true;
    tap_begin(self->tap);
    return polite_wrap(&out, NULL) != 0 ? NULL : stream_capsule(&out);
}

/* _device_reader(batches, bytes): as _reader(), of device arrays */
static PyObject *stream_device_reader(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct uva_window window = {0};
    PyObject *capsule;
    long long bytes;

    if (!PyArg_ParseTuple(args, "iL", &window.batches, &bytes) ||
        !stream_can_build(self))
        return NULL;
    window.bytes = bytes;
    capsule = device_stream_capsule(self->tap->stream, &window);
    self->exported |= capsule != NULL;
    tap_begin(self->tap);
    return capsule;
}

/* ---- await --------------------------------------------------------------- */

/* On asyncio it yields a future itself, and None to let the loop run; for other
 * loops, the coroutine _next() does that. */
typedef struct {
    PyObject_HEAD Stream *stream; /* counts */
    PyObject *future;             /* owns: the yielded future; may be NULL */
    PyObject *inner;              /* owns: the coroutine _next(); may be NULL */
    bool rests;                   /* it has yielded None */
} Next;

/* The last freed ones, for the next steps: making one anew is a large part of
 * the cost of a step. They hold no references, not even to their type. */
enum { MOST_SPARES = 8 };
static Next *spares[MOST_SPARES];
static int n_spares;

static Next *next_new(void)
{
    Next *self;

    if (n_spares == 0)
        return (Next *)core_alloc(next_type);
    self = spares[--n_spares];
    (void)PyObject_Init((PyObject *)self, next_type);
    PyObject_GC_Track(self);
    return self;
}

static void next_free(Next *self)
{
    if (n_spares == MOST_SPARES) {
        core_free((PyObject *)self);
        return;
    }
    self->rests = false;
    spares[n_spares++] = self;
    Py_DECREF((PyObject *)next_type);
}

static PyObject *stream_anext(PyObject *object)
{
    Next *next = next_new();

    if (next != NULL)
        next->stream = (Stream *)Py_NewRef(object);
    return (PyObject *)next;
}

/* The wait is over, whatever ended it. */
static void next_unwait(Next *self)
{
    if (self->future == NULL)
        return;
    if (self->stream->tap != NULL &&
        tap_unwait(self->stream->tap, self->future) != 0)
        PyErr_WriteUnraisable((PyObject *)self->stream);
    Py_CLEAR(self->future);
}

/* The task has run again: so has the loop. */
static void next_resume(Next *self)
{
    if (self->future == NULL && !self->rests)
        return;
    self->rests = false;
    next_unwait(self);
    stream_has_rested(self->stream);
}

/* Gives the value for the task of asyncio: None if the loop only has to run. */
static PyObject *next_yield(Next *self, bool is_due)
{
    PyObject *future;

    if (is_due) {
        self->rests = true;
        return Py_NewRef(Py_None);
    }
    future = host_future(self->stream->host);
    if (future == NULL || tap_wait(self->stream->tap, future) != 0) {
        Py_XDECREF(future);
        return NULL;
    }
    self->future = future;
    return Py_NewRef(future);
}

/* Gives the batch; or, while it waits, the yielded value; or raises. */
static PySendResult next_send(PyObject *object, PyObject *value,
                              PyObject **result)
{
    Next *self = (Next *)object;
    Stream *stream = self->stream;
    bool is_due;

    if (self->inner != NULL)
        return PyIter_Send(self->inner, value, result);
    next_resume(self);
    is_due = stream_is_due(stream);
    if (!is_due) {
        *result = stream_take((PyObject *)stream, NULL);
        if (*result != Py_None)
            return *result == NULL ? PYGEN_ERROR : PYGEN_RETURN;
        Py_DECREF(*result);
    }
    if (stream->host != NULL && stream->host->loop != NULL) {
        *result = next_yield(self, is_due);
        return *result == NULL ? PYGEN_ERROR : PYGEN_NEXT;
    }
    self->inner = PyObject_CallMethod((PyObject *)stream, "_next", NULL);
    *result = NULL;
    return self->inner == NULL ? PYGEN_ERROR
                               : PyIter_Send(self->inner, value, result);
}

/* For callers that use the methods of an iterator. */
static PyObject *next_step(PyObject *object, PyObject *value)
{
    PyObject *result = NULL;
    PyObject *stop;

    switch (next_send(object, value, &result)) {
    case PYGEN_RETURN:
        stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, result, NULL);
        Py_DECREF(result);
        if (stop != NULL)
            PyErr_SetObject(PyExc_StopIteration, stop);
        Py_XDECREF(stop);
        return NULL;
    case PYGEN_NEXT:
        return result;
    default:
        return NULL;
    }
}

static PyObject *next_iternext(PyObject *object)
{
    return next_step(object, Py_None);
}

static PyObject *next_throw(PyObject *object, PyObject *args)
{
    Next *self = (Next *)object;
    PyObject *method, *result;

    if (self->inner != NULL) {
        method = PyObject_GetAttrString(self->inner, "throw");
        result = method == NULL ? NULL : PyObject_CallObject(method, args);
        Py_XDECREF(method);
        return result;
    }
    next_resume(self); /* a step that is cancelled has rested, too */
    core_throw(args);
    return NULL;
}

static PyObject *next_close(PyObject *object, PyObject *unused)
{
    Next *self = (Next *)object;

    (void)unused;
    next_unwait(self);
    if (self->inner == NULL)
        Py_RETURN_NONE;
    return PyObject_CallMethod(self->inner, "close", NULL);
}

static int next_traverse(PyObject *object, visitproc visit, void *arg)
{
    Next *self = (Next *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->stream);
    Py_VISIT(self->future);
    Py_VISIT(self->inner);
    return 0;
}

static void next_dealloc(PyObject *object)
{
    Next *self = (Next *)object;

    PyObject_GC_UnTrack(object);
    next_unwait(self);
    Py_CLEAR(self->inner);
    Py_CLEAR(self->stream);
    next_free(self);
}

static PyMethodDef next_methods[] = {{"send", next_step, METH_O, NULL},
                                     {"throw", next_throw, METH_VARARGS, NULL},
                                     {"close", next_close, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};

static PyType_Slot next_slots[] = {
    {Py_tp_dealloc, next_dealloc},   {Py_tp_traverse, next_traverse},
    {Py_tp_methods, next_methods},   {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, next_iternext}, {Py_am_await, PyObject_SelfIter},
    {Py_am_send, next_send},         {0, NULL}};

PyType_Spec next_spec = {.name = "uvarrow._core.Next",
                         .basicsize = sizeof(Next),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = next_slots};

/* ---- the type ------------------------------------------------------------ */

static PyObject *stream_new(PyTypeObject *type, PyObject *args,
                            PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return core_alloc(type);
}

static PyMethodDef stream_methods[] = {
    {"_open", stream_open, METH_VARARGS, NULL},
    {"_query", stream_query, METH_VARARGS, NULL},
    {"_ending", stream_ending, METH_VARARGS, NULL},
    {"_partitions", stream_partitions, METH_VARARGS, NULL},
    {"_objects", stream_objects, METH_VARARGS, NULL},
    {"_table_schema", stream_table_schema, METH_VARARGS, NULL},
    {"_take", stream_take, METH_NOARGS, NULL},
    {"_check_end", stream_check_end, METH_NOARGS, NULL},
    {"_peek", stream_peek, METH_NOARGS, NULL},
    {"_due", stream_due, METH_NOARGS, NULL},
    {"_fresh", stream_fresh, METH_NOARGS, NULL},
    {"_wait", stream_wait, METH_O, NULL},
    {"_unwait", stream_unwait, METH_O, NULL},
    {"_cancel", stream_cancel, METH_VARARGS, NULL},
    {"_note", stream_note, METH_O, NULL},
    {"_close", stream_close, METH_NOARGS, NULL},
    {"_drop", stream_drop, METH_NOARGS, NULL},
    {"_map", stream_map, METH_VARARGS, NULL},
    {"_filter", stream_filter, METH_O, NULL},
    {"_cast", stream_cast, METH_O, NULL},
    {"_trace", stream_trace, METH_O, NULL},
    {"_watch", stream_watch, METH_VARARGS, NULL},
    {"_file", stream_file, METH_VARARGS, NULL},
    {"_push", stream_push, METH_VARARGS, NULL},
    {"_limit", stream_limit, METH_VARARGS, NULL},
    {"_encode", stream_encode, METH_VARARGS, NULL},
    {"_without_offsets", stream_without_offsets, METH_NOARGS, NULL},
    {"_rebatch", stream_rebatch, METH_VARARGS, NULL},
    {"_timeout", stream_timeout, METH_VARARGS, NULL},
    {"_parallel", stream_parallel, METH_VARARGS, NULL},
    {"_merge", stream_merge, METH_VARARGS, NULL},
    {"_waiters", stream_waiters, METH_NOARGS, NULL},
    {"_concat", stream_concat, METH_VARARGS, NULL},
    {"_tee", stream_tee, METH_VARARGS, NULL},
    {"_retry", stream_retry, METH_VARARGS, NULL},
    {"_throttle", stream_throttle, METH_VARARGS, NULL},
    {"_later", stream_later, METH_VARARGS, NULL},
    {"_transform", stream_transform, METH_VARARGS, NULL},
    {"_set_priority", stream_set_priority, METH_VARARGS, NULL},
    {"pause", stream_pause, METH_NOARGS,
     PyDoc_STR("pause($self)\n--\n\nHolds the batches back: until resume(), "
               "no step of an iteration gives one, whichever task waits for "
               "it. The source reads ahead until its windows are full. "
               "cancel() and aclose() end the pause.")},
    {"resume", stream_resume, METH_NOARGS,
     PyDoc_STR("resume($self)\n--\n\nGoes on after pause(); has no effect on "
               "a stream that is not paused.")},
    {"_set_name", stream_set_name, METH_VARARGS, NULL},
    {"_state", stream_state, METH_NOARGS, NULL},
    {"_stats", stream_stats, METH_NOARGS, NULL},
    {"_metadata", stream_metadata, METH_NOARGS, NULL},
    {"_reader", stream_reader, METH_VARARGS, NULL},
    {"_device_reader", stream_device_reader, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyGetSetDef stream_getset[] = {
    {"_host", stream_get_host, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot stream_slots[] = {{Py_tp_new, stream_new},
                                     {Py_tp_dealloc, stream_dealloc},
                                     {Py_tp_traverse, stream_traverse},
                                     {Py_tp_clear, stream_clear},
                                     {Py_tp_methods, stream_methods},
                                     {Py_tp_getset, stream_getset},
                                     {Py_am_aiter, PyObject_SelfIter},
                                     {Py_am_anext, stream_anext},
                                     {0, NULL}};

PyType_Spec stream_spec = {.name = "uvarrow._core.Stream",
                           .basicsize = sizeof(Stream),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                    Py_TPFLAGS_HAVE_GC,
                           .slots = stream_slots};
