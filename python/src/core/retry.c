/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that is opened again after a failure, by a function of Python, which
 * is called on the loop thread and gives another Stream. */
#include <errno.h>

#include "core/core.h"

/* The exception of a failure, as a task would get it. */
static PyObject *failure_of(struct tap *tap, const struct uva_outcome *failed)
{
    PyObject *type, *value, *traceback;

    (void)tap_raise(tap, failed);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Takes the stream of the function's result, which becomes a part of this one;
 * NULL: None, or with an exception. */
static struct uva_stream *again_take(struct tap *tap, PyObject *result)
{
    static const char name[] = "the result of the function of retry()";
    Stream *other = (Stream *)result;

    if (result == Py_None)
        return NULL;
    if (!PyObject_TypeCheck(result, stream_type)) {
        if (!checked_is_sync(result, name))
            return NULL;
        checked_refuse(result, name, "a Stream or None");
        return NULL;
    }
    if (!stream_can_build(other))
        return NULL;
    stream_join(tap, other);
    tap_begin(other->tap);
    return uva_stream_acquire(other->tap->stream);
}

/* Calls the function. An exception of it is the end of the stream. */
static struct uva_stream *again_open(void *ctx,
                                     const struct uva_outcome *failed,
                                     int32_t attempt, int64_t passed,
                                     int64_t rows)
{
    struct function *function = ctx;
    struct tap *tap = function->held.tap;
    struct uva_stream *stream = NULL;
    PyObject *failure, *result = NULL;
    struct gil gil;

    if (!gil_enter(&gil))
        return NULL;
    failure = failure_of(tap, failed);
    if (failure != NULL)
        result = PyObject_CallFunction(function->held.objects[CALLABLE], "OiLL",
                                       failure, (int)attempt, (long long)passed,
                                       (long long)rows);
    if (result != NULL)
        stream = again_take(tap, result);
    if (result == Py_None && failure != NULL) /* given up: it is raised */
        PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
    if (stream == NULL)
        tap_fail_with(tap);
    Py_XDECREF(result);
    Py_XDECREF(failure);
    gil_leave(&gil);
    return stream;
}

/* _retry(function, times, delay_ms, delay_max_ms, resume) */
PyObject *stream_retry(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct uva_retry options = {.again = again_open, .free_ctx = function_free};
    struct function *function;
    PyObject *callable;
    long long delay_ms, delay_max_ms;
    int resume;

    if (!PyArg_ParseTuple(args, "OiLLp", &callable, &options.times, &delay_ms,
                          &delay_max_ms, &resume) ||
        !stream_can_build(self))
        return NULL;
    function = function_new(self->tap, callable, Py_None);
    if (function == NULL)
        return NULL;
    options.ctx = function;
    options.delay_ms = delay_ms;
    options.delay_max_ms = delay_max_ms;
    options.resume = resume != 0;
    (void)uva_stream_retry(self->tap->stream, &options);
    return stream_built(self);
}
