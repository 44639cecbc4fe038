/* SPDX-License-Identifier: Apache-2.0 */
/* A coroutine function of Python as a stage: map and filter. Each batch is a
 * call, which is itself the coroutine of a task of the event loop, so that the
 * function finds its own task there, and may wait for whatever the loop offers.
 *
 * Happy path:  begun, inside a turn: a task is made -> the task runs: the
 *              function is called, and its coroutine is sent on -> it returns:
 *              the result is given.
 *
 * Failures: an exception is kept in the tap, and ends the stream; the task ends
 *           well. One that is no Exception goes on to the loop, too.
 *
 * On cancel:   the task is cancelled. The stream does not wait for it: a call
 *              keeps itself, and the function of the stage, until its end. */
#include <errno.h>
#include <stdlib.h>

#include "core/core.h"

struct later {
    struct function function; /* FINISH: makes a task of a call */
    struct call_object *open; /* borrows each: calls without a result */
    bool filters;
};

typedef struct call_object {
    PyObject_HEAD struct later *later; /* borrows, while `reply` is there */
    struct uva_reply *reply;           /* owns; NULL: the result was given */
    PyObject *batch;                   /* owns; NULL: given */
    PyObject *inner; /* owns: the coroutine of the function; may be NULL */
    PyObject *task;  /* owns: an object with cancel(); may be NULL */
    int64_t rows;    /* of the batch when it came */
    struct call_object *above, *below; /* in later->open */
} Call;

PyTypeObject *call_type;

/* ---- the result ---------------------------------------------------------- */

/* The call is over. Drops what it holds, and the reference to itself. */
static void call_close(Call *self)
{
    if (self->above != NULL)
        self->above->below = self->below;
    else
        self->later->open = self->below;
    if (self->below != NULL)
        self->below->above = self->above;
    self->reply = NULL;
    Py_CLEAR(self->batch);
    Py_CLEAR(self->task);
    Py_DECREF((PyObject *)self);
}

static const char *call_name(const Call *self)
{
    return self->later->filters ? "filter()" : "map()";
}

/* Describes a cancel, or the end of the process, in words: the consumer has not
 * been cancelled. */
static void describe_end(const Call *self, struct uva_error *error)
{
    PyObject *type, *value, *traceback, *name;

    PyErr_Fetch(&type, &value, &traceback);
    name = PyObject_GetAttrString(type, "__name__");
    (void)uva_error_set(
        error, ECANCELED, "the function of %s was ended by %s", call_name(self),
        name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : "an exception");
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* Gives the error of the exception that is set, and clears it. */
static void call_fail(Call *self)
{
    struct uva_error error = {0};
    struct uva_reply *reply = self->reply;

    if (PyErr_ExceptionMatches(PyExc_Exception))
        (void)tap_fail(self->later->function.held.tap, &error);
    else
        describe_end(self, &error);
    call_close(self);
    uva_reply_give(reply, NULL, &error);
}

/* Makes the data of a result. 1; 0: no batch; -1 with an exception. */
static int call_export(Call *self, PyObject *result,
                       struct ArrowDeviceArray *out)
{
    struct function *function = &self->later->function;
    const struct ArrowSchema *expected = &function->result;

    if (self->later->filters)
        return filter_apply((Batch *)self->batch, result, self->rows, out);
    if (!uva_schema_is_live(expected))
        expected = &((Schema *)function->held.objects[GIVEN])->schema;
    return batch_export(result, function->held.tap->device,
                        "the result of the function of map()", expected, NULL,
                        out) == 0
               ? 1
               : -1;
}

static void call_give(Call *self, PyObject *result)
{
    struct ArrowDeviceArray out;
    struct uva_reply *reply = self->reply;
    const int got = call_export(self, result, &out);

    if (got < 0) {
        call_fail(self);
        return;
    }
    call_close(self);
    uva_reply_give(reply, got > 0 ? &out : NULL, NULL);
}

/* ---- the coroutine of the task ------------------------------------------- */

/* Calls the function: gives the iterator of its awaitable; NULL with an
 * exception. */
static PyObject *call_begin(Call *self)
{
    PyObject *callable =
        Py_NewRef(self->later->function.held.objects[CALLABLE]);
    PyObject *result =
        PyObject_CallFunctionObjArgs(callable, self->batch, NULL);
    PyObject *iterator = NULL;
    unaryfunc await_of;
    char name[64];

    Py_DECREF(callable);
    if (result == NULL || PyType_GetSlot(Py_TYPE(result), Py_am_send) != NULL)
        return result; /* a coroutine */
    await_of = (unaryfunc)PyType_GetSlot(Py_TYPE(result), Py_am_await);
    if (await_of != NULL)
        iterator = await_of(result);
    else {
        PyOS_snprintf(name, sizeof(name), "the result of the function of %s",
                      call_name(self));
        checked_refuse(result, name, "awaitable, as concurrency is given");
    }
    Py_DECREF(result);
    return iterator;
}

/* The coroutine has returned, or raised: gives the result. An exception that is
 * no Exception, such as a cancel, is the task's as well. */
static PySendResult call_end(Call *self, PySendResult how, PyObject **result)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;

    Py_CLEAR(self->inner);
    if (how == PYGEN_RETURN) {
        if (self->reply != NULL)
            call_give(self, *result);
        Py_DECREF(*result);
    } else {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            PyErr_Fetch(&type, &value, &traceback);
            PyErr_NormalizeException(&type, &value, &traceback);
            PyErr_Restore(Py_NewRef(type), Py_XNewRef(value),
                          Py_XNewRef(traceback));
        }
        if (self->reply != NULL)
            call_fail(self);
        PyErr_Clear();
    }
    *result = NULL;
    if (type != NULL) {
        PyErr_Restore(type, value, traceback);
        return PYGEN_ERROR;
    }
    *result = Py_NewRef(Py_None);
    return PYGEN_RETURN;
}

static PySendResult call_send(PyObject *object, PyObject *value,
                              PyObject **result)
{
    Call *self = (Call *)object;
    PySendResult how = PYGEN_ERROR;

    *result = NULL;
    if (self->reply == NULL && self->inner == NULL) { /* given up before */
        *result = Py_NewRef(Py_None);
        return PYGEN_RETURN;
    }
    Py_INCREF(object);
    if (self->inner == NULL)
        self->inner = call_begin(self);
    if (self->inner != NULL) {
        PyObject *inner = Py_NewRef(self->inner);

        how = PyIter_Send(inner, value, result);
        Py_DECREF(inner);
    }
    if (how != PYGEN_NEXT)
        how = call_end(self, how, result);
    Py_DECREF(object);
    return how;
}

/* As the methods of an iterator and of a coroutine have it */
static PyObject *call_result(PySendResult how, PyObject *result)
{
    PyObject *stop;

    if (how != PYGEN_RETURN)
        return result;
    stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, result, NULL);
    Py_DECREF(result);
    if (stop != NULL)
        PyErr_SetObject(PyExc_StopIteration, stop);
    Py_XDECREF(stop);
    return NULL;
}

static PyObject *call_send_method(PyObject *object, PyObject *value)
{
    PyObject *result = NULL;
    const PySendResult how = call_send(object, value, &result);

    return call_result(how, result);
}

static PyObject *call_iternext(PyObject *object)
{
    return call_send_method(object, Py_None);
}

/* The value that a StopIteration has, which is cleared; NULL: it is another
 * exception, which is kept. */
static PyObject *stop_value(void)
{
    PyObject *type, *value, *traceback, *result;

    if (!PyErr_ExceptionMatches(PyExc_StopIteration))
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    result = PyObject_GetAttrString(value, "value");
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return result;
}

/* Throws into the coroutine, if it has begun. */
static PySendResult call_throw_in(Call *self, PyObject *args, PyObject **result)
{
    *result = NULL;
    if (self->inner != NULL) {
        PyObject *method = PyObject_GetAttrString(self->inner, "throw");

        if (method != NULL)
            *result = PyObject_CallObject(method, args);
        Py_XDECREF(method);
        if (*result != NULL)
            return PYGEN_NEXT;
        *result = stop_value();
        return *result != NULL ? PYGEN_RETURN : PYGEN_ERROR;
    }
    core_throw(args);
    return PYGEN_ERROR;
}

static PyObject *call_throw(PyObject *object, PyObject *args)
{
    Call *self = (Call *)object;
    PyObject *result;
    PySendResult how;

    Py_INCREF(object);
    how = call_throw_in(self, args, &result);
    if (how != PYGEN_NEXT)
        how = call_end(self, how, &result);
    Py_DECREF(object);
    return call_result(how, result);
}

/* The task goes without having run to its end. */
static PyObject *call_close_method(PyObject *object, PyObject *unused)
{
    Call *self = (Call *)object;
    PyObject *inner = self->inner, *done = NULL;

    (void)unused;
    self->inner = NULL;
    Py_INCREF(object);
    if (inner != NULL)
        done = PyObject_CallMethod(inner, "close", NULL);
    if (self->reply != NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "the task was closed");
        call_fail(self);
    }
    Py_XDECREF(done);
    Py_XDECREF(inner);
    Py_DECREF(object);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static void call_dealloc(PyObject *object)
{
    Call *self = (Call *)object;

    Py_CLEAR(self->inner);
    core_free(object);
}

static PyMethodDef call_methods[] = {
    {"send", call_send_method, METH_O, NULL},
    {"throw", call_throw, METH_VARARGS, NULL},
    {"close", call_close_method, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot call_slots[] = {{Py_tp_dealloc, call_dealloc},
                                   {Py_tp_methods, call_methods},
                                   {Py_tp_iter, PyObject_SelfIter},
                                   {Py_tp_iternext, call_iternext},
                                   {Py_am_await, PyObject_SelfIter},
                                   {Py_am_send, call_send},
                                   {0, NULL}};

PyType_Spec call_spec = {.name = "uvarrow._core.Call",
                         .basicsize = sizeof(Call),
                         .flags = Py_TPFLAGS_DEFAULT |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = call_slots};

/* ---- the stage ----------------------------------------------------------- */

/* Makes the call, which has a reference to itself. NULL with an exception. */
static Call *call_new(struct later *later, struct uva_batch *in,
                      struct uva_reply *reply)
{
    const int64_t rows = in->data.array.length;
    PyObject *batch = function_batch(&later->function, in);
    Call *self = batch == NULL ? NULL : (Call *)core_alloc(call_type);

    if (self == NULL) {
        Py_XDECREF(batch);
        return NULL;
    }
    self->later = later;
    self->reply = reply;
    self->batch = batch;
    self->rows = rows;
    self->below = later->open;
    if (later->open != NULL)
        later->open->above = self;
    later->open = self;
    return self;
}

static int later_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct later *later = ctx;
    struct tap *tap = later->function.held.tap;
    PyObject *task = NULL;
    struct gil gil;
    Call *call;
    int code = 0;

    if (!gil_enter(&gil))
        return ECANCELED;
    call = call_new(later, in, reply);
    if (call != NULL) {
        Py_INCREF((PyObject *)call);
        task = PyObject_CallFunctionObjArgs(
            later->function.held.objects[FINISH], call, NULL);
        if (call->reply == NULL) /* the task has run at once */
            Py_XDECREF(task);
        else
            call->task = task;
    }
    if (call == NULL || (task == NULL && call->reply != NULL)) {
        tap_fail_with(tap);
        code = EIO;
        if (call != NULL)
            call_close(call);
    } else if (task == NULL) {
        PyErr_WriteUnraisable(later->function.held.objects[CALLABLE]);
    }
    Py_XDECREF((PyObject *)call);
    gil_leave(&gil);
    return code;
}

/* The task is cancelled; if it cannot be, as the loop is gone, the call is
 * given up. */
static void later_cancel(void *ctx, struct uva_reply *reply)
{
    struct later *later = ctx;
    PyObject *done = NULL;
    struct gil gil;
    Call *call;

    if (!gil_enter(&gil))
        return;
    for (call = later->open; call != NULL && call->reply != reply;)
        call = call->below;
    if (call != NULL && call->task != NULL) {
        Py_INCREF((PyObject *)call);
        done = PyObject_CallMethod(call->task, "cancel", NULL);
        if (done == NULL && call->reply != NULL)
            call_fail(call);
        PyErr_Clear();
        Py_XDECREF(done);
        Py_DECREF((PyObject *)call);
    }
    gil_leave(&gil);
}

/* A whole `later` begins with its function. */
int stage_later(struct tap *tap, PyObject *args,
                const struct uva_window *window)
{
    struct uva_async_map how = {.begin = later_begin,
                                .cancel = later_cancel,
                                .schema = function_schema,
                                .free_ctx = function_free,
                                .window = *window};
    PyObject *callable, *schema, *start;
    struct function *function;
    struct later *later;
    int unordered, filters;

    if (!PyArg_ParseTuple(args, "OOOipp", &callable, &schema, &start,
                          &how.at_once, &unordered, &filters))
        return -1;
    function = function_new_sized(sizeof(struct later), tap, callable, schema);
    if (function == NULL)
        return -1;
    later = (struct later *)function;
    later->filters = filters != 0;
    function->held.objects[FINISH] = Py_NewRef(start);
    how.ctx = later;
    how.unordered = unordered != 0;
    if (how.window.batches < how.at_once)
        how.window.batches = how.at_once;
    (void)uva_stream_map_async(tap->stream, &how);
    if (tap->device) /* the function may have queued work, with an event */
        (void)uva_stream_ready(tap->stream,
                               &(struct uva_ready){.window = *window});
    return 0;
}
