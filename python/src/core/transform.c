/* SPDX-License-Identifier: Apache-2.0 */
/* A function of Python that yields any number of batches for each one, as a
 * stage. Its iterator is kept while the window is full, and goes on when there
 * is room. It runs on a worker, with the GIL for each step.
 *
 * Happy path:  the function is called with a batch -> (a step of its iterator
 *              -> emitted)* -> the iterator ends -> the next batch; after the
 *              last one `finish` is called, and read in the same way.
 *
 * On cancel:   the iterator is closed when the stage is freed. */
#include <errno.h>

#include "core/core.h"

/* The two codes by which a transform does not fail */
static int transform_fail(struct function *function, struct uva_error *error)
{
    const int code = tap_fail(function->held.tap, error);

    return code == EINPROGRESS || code == ENOENT ? EIO : code;
}

/* Takes the iterator of a result. -1 with an exception. */
static int yields_take(struct function *function, PyObject *result,
                       const char *name)
{
    PyObject *iterator = NULL;

    if (result == NULL || !checked_is_sync(result, name))
        return -1;
    if (PyIter_Check(result) || PyList_Check(result) || PyTuple_Check(result))
        iterator = PyObject_GetIter(result);
    else
        checked_refuse(result, name,
                       "an iterator over batches, as of a function that "
                       "yields them");
    function->held.objects[YIELDS] = iterator;
    return iterator != NULL ? 0 : -1;
}

/* Calls the function with the batch. -1 with an exception. */
static int transform_begin(struct function *function, struct uva_batch *in)
{
    PyObject *batch = function_batch(function, in);
    PyObject *callable, *result;
    int code;

    if (batch == NULL)
        return -1;
    callable = Py_NewRef(function->held.objects[CALLABLE]);
    result = PyObject_CallFunctionObjArgs(callable, batch, NULL);
    Py_DECREF(callable);
    Py_DECREF(batch);
    code = yields_take(function, result,
                       "the result of the function of transform()");
    Py_XDECREF(result);
    return code;
}

/* Calls the function for the end. -1 with an exception. */
static int transform_end(struct function *function)
{
    PyObject *callable = Py_NewRef(function->held.objects[FINISH]);
    PyObject *result = PyObject_CallFunctionObjArgs(callable, NULL);
    const int code =
        yields_take(function, result, "the result of finish() of transform()");

    Py_DECREF(callable);
    Py_XDECREF(result);
    return code;
}

/* Gives the next batch. 1; 0: the iterator has ended; -1 with an exception. */
static int yields_next(struct function *function, const char *name,
                       struct ArrowDeviceArray *out)
{
    PyObject *iterator = Py_NewRef(function->held.objects[YIELDS]);
    PyObject *item = PyIter_Next(iterator);
    int code = PyErr_Occurred() ? -1 : 0;

    if (item != NULL)
        code = batch_export(item, function->held.tap->device, name,
                            &function->result, NULL, out) == 0
                   ? 1
                   : -1;
    Py_XDECREF(item);
    Py_DECREF(iterator);
    return code;
}

/* A step under the GIL: begins with `in` (NULL: with the end) if no iterator is
 * there. Returns as yields_next(), with an error in place of an exception. */
static int transform_step(struct function *function, struct uva_batch *in,
                          struct ArrowDeviceArray *out, int *code,
                          struct uva_error *error)
{
    PyObject **yields = &function->held.objects[YIELDS], *over;
    int got = 0;

    if (*yields == NULL)
        got = in != NULL ? transform_begin(function, in)
                         : transform_end(function);
    if (got == 0)
        got = yields_next(function,
                          in != NULL ? "a batch of the function of transform()"
                                     : "a batch of finish() of transform()",
                          out);
    if (got < 0)
        *code = transform_fail(function, error);
    if (got <= 0) {
        over = *yields;
        *yields = NULL;
        Py_XDECREF(over); /* a generator runs its `finally` */
    }
    return got;
}

static int transform_run(struct function *function, struct uva_batch *in,
                         uva_emit_fn *emit, void *emitter,
                         struct uva_error *error)
{
    int code = 0;

    while (code == 0) {
        struct uva_batch out = {0};
        struct gil gil;
        int got;

        if (!gil_enter(&gil))
            return uva_error_set(error, ECANCELED, "the interpreter is ending");
        got = transform_step(function, in, &out.data, &code, error);
        gil_leave(&gil);
        if (got <= 0)
            return code;
        out.metadata = in != NULL ? in->metadata : NULL;
        code = emit(emitter, &out);
    }
    return code == EAGAIN ? EINPROGRESS : code;
}

static int transform_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                           void *emitter, struct uva_error *error)
{
    return transform_run(ctx, in, emit, emitter, error);
}

static int transform_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                            struct uva_error *error)
{
    return transform_run(ctx, NULL, emit, emitter, error);
}

/* Keeps the schema, which the batches must have. */
static int transform_schema(void *ctx, const struct ArrowSchema *in,
                            struct ArrowSchema *out, struct uva_error *error)
{
    struct function *function = ctx;
    int code = 0;

    if (!uva_schema_is_live(&function->result))
        code = uva_schema_copy(in, &function->result);
    return code != 0 ? code : function_schema(ctx, in, out, error);
}

int stage_transform(struct tap *tap, PyObject *callable, PyObject *schema,
                    PyObject *finish, const struct uva_window *window)
{
    struct function *function = function_new(tap, callable, schema);

    if (function == NULL)
        return -1;
    if (finish != Py_None)
        function->held.objects[FINISH] = Py_NewRef(finish);
    (void)uva_stream_transform(
        tap->stream, &(struct uva_transform){
                         .batch = transform_batch,
                         .finish = finish == Py_None ? NULL : transform_finish,
                         .schema = transform_schema,
                         .window = *window,
                         .free_ctx = function_free,
                         .ctx = function});
    if (tap->device) /* the function may have queued work, with an event */
        (void)uva_stream_ready(tap->stream,
                               &(struct uva_ready){.window = *window});
    return 0;
}
