/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of Python as stages: map and filter, which run on workers with the
 * GIL, and trace, which runs on the loop thread. Their exceptions are kept in
 * the tap, and end the stream. */
#include <errno.h>
#include <stdlib.h>

#include "core/core.h"

static int function_set_result(struct function *function, PyObject *capsule)
{
    struct ArrowSchema *result =
        checked_capsule(capsule, "arrow_schema", "schema");

    if (result == NULL || !checked_is_rows(result, "schema"))
        return -1;
    uva_schema_move(result, &function->result);
    return 0;
}

struct function *function_new_sized(size_t size, struct tap *tap,
                                    PyObject *callable, PyObject *schema)
{
    struct function *function = calloc(1, size);

    if (function == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    holder_add(&function->held, tap);
    function->held.objects[CALLABLE] = Py_NewRef(callable);
    if (schema != Py_None && function_set_result(function, schema) != 0) {
        PyObject *type, *value, *traceback;

        PyErr_Fetch(&type, &value, &traceback);
        function_free(function);
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    return function;
}

struct function *function_new(struct tap *tap, PyObject *callable,
                              PyObject *schema)
{
    return function_new_sized(sizeof(struct function), tap, callable, schema);
}

void function_free(void *ctx)
{
    struct function *function = ctx;

    uva_schema_release(&function->result);
    if (holder_drop(&function->held))
        free(function);
}

PyObject *function_batch(struct function *function, struct uva_batch *in)
{
    PyObject **given = &function->held.objects[GIVEN];

    if (*given == NULL)
        *given = schema_new(in->schema);
    return *given == NULL ? NULL
                          : batch_new((Schema *)*given, &in->data, in->ordinal);
}

/* Calls the function with the batch. It keeps a reference meanwhile, so that it
 * is no garbage, as long as it runs. */
static PyObject *function_call(struct function *function, PyObject *batch)
{
    PyObject *callable = Py_NewRef(function->held.objects[CALLABLE]);
    PyObject *result = PyObject_CallFunctionObjArgs(callable, batch, NULL);

    Py_DECREF(callable);
    return result;
}

/* ---- map ------------------------------------------------------------------
 */

static int map_call(struct function *function, struct uva_batch *in,
                    struct ArrowDeviceArray *out)
{
    const struct ArrowSchema *expected =
        uva_schema_is_live(&function->result) ? &function->result : in->schema;
    PyObject *batch = function_batch(function, in);
    PyObject *result = NULL;
    int code = -1;

    if (batch != NULL)
        result = function_call(function, batch);
    if (result != NULL)
        code = batch_export(result, function->held.tap->device,
                            "the result of the function of map()", expected,
                            NULL, out);
    Py_XDECREF(result);
    Py_XDECREF(batch);
    return code;
}

static int map_batch(void *ctx, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct function *function = ctx;
    struct gil gil;
    int code = 0;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    if (map_call(function, in, out) != 0)
        code = tap_fail(function->held.tap, error);
    gil_leave(&gil);
    return code;
}

int function_schema(void *ctx, const struct ArrowSchema *in,
                    struct ArrowSchema *out, struct uva_error *error)
{
    struct function *function = ctx;

    (void)error;
    return uva_schema_copy(
        uva_schema_is_live(&function->result) ? &function->result : in, out);
}

int stage_map(struct tap *tap, PyObject *callable, PyObject *schema,
              const struct uva_window *window)
{
    struct function *function = function_new(tap, callable, schema);

    if (function == NULL)
        return -1;
    (void)uva_stream_map(tap->stream,
                         &(struct uva_map){.batch = map_batch,
                                           .schema = function_schema,
                                           .free_ctx = function_free,
                                           .ctx = function});
    if (tap->device) /* the function may have queued work, with an event */
        (void)uva_stream_ready(tap->stream,
                               &(struct uva_ready){.window = *window});
    return 0;
}

/* ---- filter ---------------------------------------------------------------
 */

int batch_select_rows(Batch *batch, const uint8_t *bits,
                      struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArray shared;
    struct uva_error error = {0};
    int code;

    if (!batch_is_open(batch))
        return -1;
    if (uva_array_share(&batch->data, &shared) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS code =
        uva_array_select(&batch->schema->schema, &shared, bits, out, &error);
    Py_END_ALLOW_THREADS if (code != 0)
    {
        uva_array_release(&shared);
        (void)core_raise(code, error.message, NULL);
        return -1;
    }
    if (out->array.length > 0)
        return 1;
    uva_array_release(out);
    return 0;
}

/* Gives a batch as a whole. 1; -1 with an exception. */
static int filter_whole(Batch *batch, struct ArrowDeviceArray *out)
{
    if (!batch_is_open(batch))
        return -1;
    if (uva_array_share(&batch->data, out) == 0)
        return 1;
    PyErr_NoMemory();
    return -1;
}

int filter_apply(Batch *batch, PyObject *wanted, int64_t rows,
                 struct ArrowDeviceArray *out)
{
    static const char name[] = "the result of the function of filter()";
    uint8_t *bits = NULL;
    int result = mask_read(wanted, name, rows, &bits);

    if (result == 1) {
        result = batch_select_rows(batch, bits, out);
        free(bits);
        return result;
    }
    if (result == 0)
        result = checked_truth(wanted, name);
    return result == 1 ? filter_whole(batch, out) : result;
}

/* A filter gets the batch as an object that it may keep, so it is a transform,
 * which owns its input. Returns as filter_apply(). */
static int filter_call(struct function *function, struct uva_batch *in,
                       struct ArrowDeviceArray *out)
{
    const int64_t rows = in->data.array.length;
    PyObject *batch = function_batch(function, in);
    PyObject *wanted = NULL;
    int keep = -1;

    if (batch != NULL)
        wanted = function_call(function, batch);
    if (wanted != NULL)
        keep = filter_apply((Batch *)batch, wanted, rows, out);
    Py_XDECREF(wanted);
    Py_XDECREF(batch);
    return keep;
}

/* The two codes by which a transform does not fail */
static int filter_fail(struct function *function, struct uva_error *error)
{
    const int code = tap_fail(function->held.tap, error);

    return code == EINPROGRESS || code == ENOENT ? EIO : code;
}

static int filter_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                        void *emitter, struct uva_error *error)
{
    struct function *function = ctx;
    struct uva_batch out = {.metadata = in->metadata};
    struct gil gil;
    int keep, code = 0;

    if (!gil_enter(&gil))
        return uva_error_set(error, ECANCELED, "the interpreter is ending");
    keep = filter_call(function, in, &out.data);
    if (keep < 0)
        code = filter_fail(function, error);
    gil_leave(&gil);
    if (keep == 1)
        code = emit(emitter, &out);
    return keep == 1 && code == EAGAIN ? 0 : code; /* it was taken */
}

int stage_filter(struct tap *tap, PyObject *callable,
                 const struct uva_window *window)
{
    struct function *function = function_new(tap, callable, Py_None);

    if (function == NULL)
        return -1;
    (void)uva_stream_transform(
        tap->stream, &(struct uva_transform){.batch = filter_batch,
                                             .window = *window,
                                             .free_ctx = function_free,
                                             .ctx = function});
    return 0;
}

/* ---- trace ----------------------------------------------------------------
 */

/* Called inside a turn, which holds the GIL already. An exception cannot be
 * passed on; it is reported like an exception of a callback of the event loop.
 */
static void trace_event(void *ctx, const struct uva_trace_event *event)
{
    const bool requests = event->kind == UVA_TRACE_REQUEST;
    struct function *function = ctx;
    struct gil gil;
    PyObject *callable, *done;
    int code = 0;

    if (!gil_enter(&gil))
        return;
    if (event->kind == UVA_TRACE_CANCEL)
        code = ECANCELED;
    else if (event->kind == UVA_TRACE_END)
        code = (int)event->value;
    callable = Py_NewRef(function->held.objects[CALLABLE]);
    done = PyObject_CallFunction(callable, "sLid", event->name,
                                 requests ? (long long)event->value : 1LL, code,
                                 (double)event->at_ns / 1e9);
    if (done == NULL ||
        !checked_is_sync(done, "the result of the function of trace()"))
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(done);
    Py_DECREF(callable);
    gil_leave(&gil);
}

int stage_trace(struct tap *tap, PyObject *callable)
{
    struct function *function = function_new(tap, callable, Py_None);

    if (function == NULL)
        return -1;
    (void)uva_stream_inspect(tap->stream,
                             &(struct uva_trace){.event = trace_event,
                                                 .free_ctx = function_free,
                                                 .ctx = function});
    return 0;
}

/* ---- the end ------------------------------------------------------------- */

/* Called inside a turn, as trace_event(). */
static void watch_event(void *ctx, const struct uva_trace_event *event)
{
    struct function *function = ctx;
    PyObject *callable, *done;
    struct gil gil;

    if (event->kind != UVA_TRACE_END || !gil_enter(&gil))
        return;
    callable = Py_NewRef(function->held.objects[CALLABLE]);
    done = PyObject_CallFunctionObjArgs(callable, NULL);
    if (done == NULL)
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(done);
    Py_DECREF(callable);
    gil_leave(&gil);
}

int stage_watch_end(struct tap *tap, PyObject *callable)
{
    struct function *function = function_new(tap, callable, Py_None);

    if (function == NULL)
        return -1;
    (void)uva_stream_inspect(tap->stream,
                             &(struct uva_trace){.event = watch_event,
                                                 .free_ctx = function_free,
                                                 .ctx = function});
    return 0;
}
