/* SPDX-License-Identifier: Apache-2.0 */
/* The other way: batches that the event loop pushes, as a blocking stream for a
 * thread. uvarrow.to_reader() pumps an asynchronous iterable into it.
 *
 * Happy path:  made -> the reader is taken -> (pushed; after EAGAIN, room is
 *              waited for)* -> closed.
 *
 * On cancel:   the reader is released: push() returns EPIPE. */
#include <errno.h>
#include <string.h>

#include "core/core.h"

typedef struct {
    PyObject_HEAD Host *host;  /* counts */
    struct tap *tap;           /* counts */
    struct uva_pusher *pusher; /* owns; NULL: closed */
    struct ArrowSchema schema; /* owns */
    unsigned forks;            /* fork_number() when it was made */
    char item[32];             /* the name of a batch in errors */
    struct tap *of; /* counts: of the Stream that reads it here; NULL: a thread
                       reads it */
} Writer;

static void writer_on_writable(void *ctx, struct uva_pusher *pusher)
{
    (void)pusher;
    tap_ready(ctx);
}

static void writer_on_closed(void *ctx, struct uva_pusher *pusher)
{
    struct tap *tap = ctx;

    (void)pusher;
    tap->is_closed = true;
    tap_ready(tap);
}

static void writer_free_ctx(void *tap)
{
    tap_release(tap);
}

/* Sets the schema of all batches, which is borrowed. Returns 0, an errno, or -1
 * with an exception, which begins with `name`. */
static int writer_set_schema(Writer *self, const struct ArrowSchema *schema,
                             const char *name)
{
    struct ArrowSchema copy = {0};
    int code;

    if (!checked_is_rows(schema, name))
        return -1;
    code = uva_schema_copy(schema, &copy);
    if (code == 0)
        code = uva_schema_copy(schema, &self->schema);
    if (code == 0)
        return uva_pusher_set_schema(self->pusher, &copy);
    uva_schema_release(&copy);
    return code;
}

static int writer_take_capsule(Writer *self, PyObject *capsule)
{
    const struct ArrowSchema *schema =
        checked_capsule(capsule, "arrow_schema", "schema");
    const int code =
        schema == NULL ? -1 : writer_set_schema(self, schema, "schema");

    if (code > 0)
        (void)core_raise(code, "the schema cannot be used", NULL);
    return code != 0 ? -1 : 0;
}

/* Writer(host, capsule of the schema, batches, bytes, name of the iterable);
 * None: the schema of the first batch */
static PyObject *writer_new(PyTypeObject *type, PyObject *args,
                            PyObject *kwargs)
{
    struct uva_push_source how = {.on_writable = writer_on_writable,
                                  .on_closed = writer_on_closed,
                                  .free_ctx = writer_free_ctx};
    PyObject *host, *schema;
    const char *name;
    long long bytes;
    Writer *self;

    (void)kwargs;
    if (!PyArg_ParseTuple(args, "O!OiLs", host_type, &host, &schema,
                          &how.window.batches, &bytes, &name) ||
        !host_check((Host *)host))
        return NULL;
    self = (Writer *)core_alloc(type);
    if (self == NULL)
        return NULL;
    how.window.bytes = bytes;
    self->host = (Host *)Py_NewRef((PyObject *)host);
    self->forks = fork_number();
    PyOS_snprintf(self->item, sizeof(self->item), "an item of %s", name);
    self->tap = tap_new(self->host);
    if (self->tap != NULL) {
        how.ctx = tap_acquire(self->tap);
        self->tap->stream =
            uva_stream_from_pusher(self->host->runtime, &how, &self->pusher);
        if (schema == Py_None || writer_take_capsule(self, schema) == 0)
            return (PyObject *)self;
    }
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* The Stream need not wait for this writer any more. */
static void writer_leave(Writer *self)
{
    struct tap *of = self->of;

    self->of = NULL;
    if (of == NULL)
        return;
    atomic_fetch_sub(&of->sources, 1);
    if (self->forks == fork_number())
        tap_post_ready(of);
    tap_release(of);
}

/* _push(host, name of the iterable, batches, bytes) -> the Writer of this
 * stream */
PyObject *stream_push(PyObject *object, PyObject *args)
{
    struct uva_push_source how = {.on_writable = writer_on_writable,
                                  .on_closed = writer_on_closed,
                                  .free_ctx = writer_free_ctx};
    Stream *self = (Stream *)object;
    PyObject *host, *result;
    const char *name;
    long long bytes;
    Writer *writer;

    if (self->tap != NULL ||
        !PyArg_ParseTuple(args, "O!siL", host_type, &host, &name,
                          &how.window.batches, &bytes))
        return self->tap != NULL ? core_raise(EBUSY, "opened twice", NULL)
                                 : NULL;
    if (!host_check((Host *)host))
        return NULL;
    how.window.bytes = bytes;
    self->window = how.window;
    self->host = (Host *)Py_NewRef((PyObject *)host);
    self->tap = tap_new(self->host);
    writer = self->tap == NULL ? NULL : (Writer *)core_alloc(writer_type);
    if (writer == NULL)
        return NULL;
    writer->host = (Host *)Py_NewRef((PyObject *)host);
    writer->forks = fork_number();
    PyOS_snprintf(writer->item, sizeof(writer->item), "an item of %s", name);
    writer->tap = tap_new(writer->host);
    if (writer->tap == NULL) {
        Py_DECREF((PyObject *)writer);
        return NULL;
    }
    how.ctx = tap_acquire(writer->tap);
    writer->of = tap_acquire(self->tap);
    atomic_fetch_add(&self->tap->sources, 1);
    result = stream_opened(self, uva_stream_from_pusher(self->host->runtime,
                                                        &how, &writer->pusher));
    Py_XDECREF(result);
    return (PyObject *)writer;
}

/* note(exception) -> (errno, text): keeps the exception that the Stream raises
 * when it fails with that text */
static PyObject *writer_note(PyObject *object, PyObject *exception)
{
    Writer *self = (Writer *)object;
    struct uva_error error = {0};

    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    if (self->of == NULL)
        return NULL;
    (void)tap_fail(self->of, &error);
    return Py_BuildValue("is", error.code, error.message);
}

/* reader(batches, bytes): the capsule; once */
static PyObject *writer_reader(PyObject *object, PyObject *args)
{
    Writer *self = (Writer *)object;
    struct ArrowArrayStream out;

    if (!host_check(self->host) ||
        stream_block(self->tap->stream, args, &out) != 0)
        return NULL;
    return polite_wrap(&out, uva_schema_is_live(&self->schema) ? &self->schema
                                                               : NULL) != 0
               ? NULL
               : stream_capsule(&out);
}

/* Exports a batch to `out`, and sets the schema by the first one. Returns 0, an
 * errno, or -1 with an exception. */
static int writer_take(Writer *self, PyObject *batch,
                       struct ArrowDeviceArray *out)
{
    const bool is_first = !uva_schema_is_live(&self->schema);
    struct ArrowSchema schema = {0};
    int code;

    if (batch_export(batch, false, self->item, is_first ? NULL : &self->schema,
                     is_first ? &schema : NULL, out) != 0)
        return -1;
    if (!is_first)
        return 0;
    code = writer_set_schema(self, &schema, self->item);
    uva_schema_release(&schema);
    if (code != 0)
        uva_array_release(out);
    return code;
}

/* push(batch) -> errno: 0; EAGAIN: it was pushed, and the waiters are called
 * when there is room for more; EPIPE: no reader any more */
static PyObject *writer_push(PyObject *object, PyObject *batch)
{
    Writer *self = (Writer *)object;
    struct ArrowDeviceArray data;
    int code;

    if (self->forks != fork_number() || self->pusher == NULL)
        return PyLong_FromLong(EPIPE);
    code = writer_take(self, batch, &data);
    if (code < 0)
        return NULL;
    if (code == 0)
        code = uva_pusher_push(self->pusher, &data, NULL, 0);
    return PyLong_FromLong(code);
}

/* An iterable without an item has no columns. */
static void writer_set_nothing(Writer *self)
{
    struct ArrowSchema nothing;
    int code = EPIPE;

    if (self->pusher != NULL && schema_of_nothing(&nothing) == 0)
        code = uva_pusher_set_schema(self->pusher, &nothing);
    (void)code; /* the close reports that it has no schema */
}

static PyObject *writer_close(PyObject *object, PyObject *args)
{
    Writer *self = (Writer *)object;
    struct uva_error error = {0};
    const char *text = NULL;
    int code = 0;

    if (!PyArg_ParseTuple(args, "iz", &code, &text))
        return NULL;
    if (code != 0)
        (void)uva_error_set(&error, code, "%s", text != NULL ? text : "");
    else if (self->of != NULL && !uva_schema_is_live(&self->schema))
        writer_set_nothing(self);
    if (self->pusher != NULL && self->forks == fork_number())
        uva_pusher_close(self->pusher, code != 0 ? &error : NULL, NULL);
    self->pusher = NULL;
    writer_leave(self);
    Py_RETURN_NONE;
}

static PyObject *writer_wait(PyObject *object, PyObject *waiter)
{
    return tap_wait(((Writer *)object)->tap, waiter) != 0 ? NULL
                                                          : Py_NewRef(Py_None);
}

static PyObject *writer_unwait(PyObject *object, PyObject *waiter)
{
    return tap_unwait(((Writer *)object)->tap, waiter) != 0
               ? NULL
               : Py_NewRef(Py_None);
}

/* Whether there is no reader any more; the waiters are called then. */
static PyObject *writer_is_closed(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((Writer *)object)->tap->is_closed);
}

static void writer_dealloc(PyObject *object)
{
    Writer *self = (Writer *)object;
    struct uva_error error = {0};

    if (self->pusher != NULL && self->forks == fork_number()) {
        (void)uva_error_set(&error, ECANCELED, "its writer was dropped");
        uva_pusher_close(self->pusher, &error, NULL);
    }
    writer_leave(self);
    if (self->tap != NULL)
        tap_close(self->tap, self->forks);
    uva_schema_release(&self->schema);
    Py_CLEAR(self->host);
    core_free(object);
}

static PyMethodDef writer_methods[] = {
    {"reader", writer_reader, METH_VARARGS, NULL},
    {"push", writer_push, METH_O, NULL},
    {"note", writer_note, METH_O, NULL},
    {"close", writer_close, METH_VARARGS, NULL},
    {"is_closed", writer_is_closed, METH_NOARGS, NULL},
    {"_wait", writer_wait, METH_O, NULL},
    {"_unwait", writer_unwait, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot writer_slots[] = {{Py_tp_new, writer_new},
                                     {Py_tp_dealloc, writer_dealloc},
                                     {Py_tp_methods, writer_methods},
                                     {0, NULL}};

PyType_Spec writer_spec = {.name = "uvarrow._core.Writer",
                           .basicsize = sizeof(Writer),
                           .flags = Py_TPFLAGS_DEFAULT,
                           .slots = writer_slots};
