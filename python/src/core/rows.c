/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking streams and Python: an iterator over batches as such a stream, which
 * takes the GIL for each step; a stream that lends the GIL while it waits; a
 * stream that a driver may read while the interpreter ends; and a stream in a
 * capsule. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

/* ---- an iterator as a stream ----------------------------------------------
 */

struct rows {
    PyObject *iterator; /* owns */
    const char *name;   /* of an item, for errors */
    struct tap *tap;    /* counts: where exceptions are kept */
    struct given item;  /* owns: a stream, of which the batches come now */
    struct ArrowSchema schema;     /* owns: the schema of the first batch */
    struct ArrowDeviceArray first; /* owns: it was read for the schema */
    struct uva_error error;        /* of the last call */
    int device_type;               /* of all batches; -1: plain arrays */
};

static bool rows_on_device(const struct rows *rows)
{
    return rows->device_type > ARROW_DEVICE_CPU;
}

/* Takes the schema of a batch or of a stream, which is the first one, or must
 * be as that. -1 with an exception. */
static int rows_take_schema(struct rows *rows, struct ArrowSchema *schema)
{
    const bool is_first = !uva_schema_is_live(&rows->schema);
    int code = 0;

    if (is_first && checked_is_rows(schema, rows->name))
        uva_schema_move(schema, &rows->schema);
    else if (is_first || !batch_schema_fits(&rows->schema, schema, rows->name))
        code = -1;
    uva_schema_release(schema);
    return code;
}

/* Opens the stream of an item. 1; 0: no such method; -1 with an exception. */
static int rows_open_item(struct rows *rows, PyObject *object)
{
    static const char *const methods[] = {"__arrow_c_stream__",
                                          "__arrow_c_device_stream__"};
    bool device = rows_on_device(rows);
    PyObject *method = NULL, *capsule = NULL;
    int found = checked_method(object, methods[device], rows->name, &method);

    if (found == 0) {
        device = !device;
        found = checked_method(object, methods[device], rows->name, &method);
    }
    if (found > 0)
        capsule = PyObject_CallFunctionObjArgs(method, NULL);
    if (found > 0 && (capsule == NULL || given_take(&rows->item, capsule,
                                                    device, rows->name) != 0))
        found = -1;
    Py_XDECREF(capsule);
    Py_XDECREF(method);
    return found;
}

/* Takes the stream of an item: a table, a frame, a reader. 1; 0: no such
 * method; -1 with an exception. */
static int rows_take_stream(struct rows *rows, PyObject *object)
{
    const int found = rows_open_item(rows, object);
    struct ArrowSchema schema = {0};
    int code;

    if (found <= 0)
        return found;
    code = given_schema(&rows->item, &schema);
    code = code != 0 ? given_fail(&rows->item, code)
                     : rows_take_schema(rows, &schema);
    return code != 0 ? -1 : 1;
}

/* Takes the array of an item. -1 with an exception. */
static int rows_take_array(struct rows *rows, PyObject *object,
                           struct ArrowDeviceArray *out)
{
    struct ArrowSchema schema = {0};

    if (batch_export(object, rows_on_device(rows), rows->name, NULL, &schema,
                     out) != 0)
        return -1;
    if (rows_take_schema(rows, &schema) == 0)
        return 0;
    uva_array_release(out);
    return -1;
}

/* Takes the array of an item, which costs less than a stream of one batch, or
 * otherwise its stream. Some objects have both methods, and give an array only
 * if they are of one piece. -1 with an exception. */
static int rows_take_item(struct rows *rows, PyObject *object,
                          struct ArrowDeviceArray *out)
{
    PyObject *type, *value, *traceback;
    int found;

    if (rows_take_array(rows, object, out) == 0)
        return 0;
    PyErr_Fetch(&type, &value, &traceback); /* why it gives no array */
    found = rows_take_stream(rows, object);
    if (found == 0) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return found > 0 ? 0 : -1;
}

/* Reads the next batch of the stream that is an item, which is closed at its
 * end. */
static int rows_read_item(struct rows *rows, struct ArrowDeviceArray *out)
{
    int code = given_next(&rows->item, out);

    if (code != 0)
        code = given_fail(&rows->item, code);
    if (code != 0 || !uva_array_is_live(out))
        given_close(&rows->item);
    if (out->device_type == ARROW_DEVICE_CPU)
        out->sync_event = NULL; /* it has no meaning there (EV-04) */
    return code;
}

/* Reads the next batch, of the stream that is read or of the next item; `out`
 * is released at the end. -1 with an exception. */
static int rows_step(struct rows *rows, struct ArrowDeviceArray *out)
{
    PyObject *object;
    int code = 0;

    uva_array_clear(out);
    while (code == 0 && !uva_array_is_live(out)) {
        if (rows->item.is_open) {
            code = rows_read_item(rows, out);
            continue;
        }
        object = PyIter_Next(rows->iterator);
        if (object == NULL)
            return PyErr_Occurred() ? -1 : 0;
        code = rows_take_item(rows, object, out);
        Py_DECREF(object);
    }
    if (code != 0 ||
        batch_is_on(out, rows->device_type >= 0 ? rows->device_type
                                                : ARROW_DEVICE_CPU))
        return code;
    return -1;
}

/* An exception that is about threads gets a note about the option for that. */
static void rows_note_thread(void)
{
    static const char note[] =
        "uvarrow: the calls of a source are made by changing threads; "
        "stream(..., own_thread=True) has one thread make them all";
    PyObject *type, *value, *traceback, *text, *done = NULL;
    const char *utf8 = NULL;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    text = PyObject_Str(value);
    if (text != NULL)
        utf8 = PyUnicode_AsUTF8AndSize(text, NULL);
    if (utf8 != NULL && strstr(utf8, "thread") != NULL)
        done = PyObject_CallMethod(value, "add_note", "s", note);
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(text);
    PyErr_Restore(type, value, traceback);
}

/* Gives the next batch to `out`, which is released at the end. */
static int rows_next(struct rows *rows, struct ArrowDeviceArray *out)
{
    struct gil gil;
    int code = 0;

    uva_array_move(&rows->first, out);
    if (uva_array_is_live(out))
        return 0;
    if (!gil_enter(&gil))
        return uva_error_set(&rows->error, ECANCELED,
                             "the interpreter is ending");
    if (rows_step(rows, out) != 0) {
        if (!own_thread_is_here())
            rows_note_thread();
        code = tap_fail(rows->tap, &rows->error);
    }
    gil_leave(&gil);
    return code;
}

static const char *rows_last_error(const struct rows *rows)
{
    return rows->error.code != 0 ? rows->error.message : NULL;
}

static void rows_free(struct rows *rows)
{
    struct gil gil;

    uva_array_release(&rows->first);
    uva_schema_release(&rows->schema);
    if (gil_enter(&gil)) {
        given_close(&rows->item);
        Py_CLEAR(rows->iterator); /* a generator runs its `finally` */
        PyErr_Clear();
        gil_leave(&gil);
    }
    tap_release(rows->tap);
    free(rows);
}

int schema_of_nothing(struct ArrowSchema *out)
{
    static const struct ArrowSchema nothing = {.format = "+s", .name = ""};
    struct ArrowSchema live = nothing;

    live.release = (void (*)(struct ArrowSchema *))abort; /* never called */
    return uva_schema_copy(&live, out);
}

/* Reads the first batch, for the schema. NULL with an exception. */
static struct rows *rows_new(PyObject *iterator, const char *name,
                             struct tap *tap, int device_type)
{
    struct rows *rows = calloc(1, sizeof(*rows));

    if (rows == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    rows->iterator = Py_NewRef(iterator);
    rows->name = name;
    rows->tap = tap_acquire(tap);
    rows->device_type = device_type;
    if (rows_step(rows, &rows->first) != 0) {
        PyObject *type, *value, *traceback;

        PyErr_Fetch(&type, &value, &traceback); /* freeing clears it */
        rows_free(rows);
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    if (!uva_schema_is_live(&rows->schema) &&
        schema_of_nothing(&rows->schema) != 0) {
        rows_free(rows);
        PyErr_NoMemory();
        return NULL;
    }
    return rows;
}

/* ---- of plain arrays ------------------------------------------------------
 */

static int rows_get_schema(struct ArrowArrayStream *stream,
                           struct ArrowSchema *out)
{
    struct rows *rows = stream->private_data;

    return uva_schema_copy(&rows->schema, out);
}

static int rows_get_next(struct ArrowArrayStream *stream,
                         struct ArrowArray *out)
{
    struct ArrowDeviceArray data;
    const int code = rows_next(stream->private_data, &data);

    if (code == 0)
        *out = data.array;
    return code;
}

static const char *rows_get_last_error(struct ArrowArrayStream *stream)
{
    return rows_last_error(stream->private_data);
}

static void rows_release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
    rows_free(stream->private_data);
}

int rows_open(PyObject *iterator, const char *name, struct tap *tap,
              struct ArrowArrayStream *out)
{
    struct rows *rows = rows_new(iterator, name, tap, -1);

    if (rows == NULL)
        return -1;
    *out = (struct ArrowArrayStream){.get_schema = rows_get_schema,
                                     .get_next = rows_get_next,
                                     .get_last_error = rows_get_last_error,
                                     .release = rows_release,
                                     .private_data = rows};
    return 0;
}

/* ---- of arrays on a device ------------------------------------------------
 */

static int device_rows_get_schema(struct ArrowDeviceArrayStream *stream,
                                  struct ArrowSchema *out)
{
    struct rows *rows = stream->private_data;

    return uva_schema_copy(&rows->schema, out);
}

static int device_rows_get_next(struct ArrowDeviceArrayStream *stream,
                                struct ArrowDeviceArray *out)
{
    return rows_next(stream->private_data, out);
}

static const char *
device_rows_get_last_error(struct ArrowDeviceArrayStream *stream)
{
    return rows_last_error(stream->private_data);
}

static void device_rows_release(struct ArrowDeviceArrayStream *stream)
{
    stream->release = NULL;
    rows_free(stream->private_data);
}

int rows_open_device(PyObject *iterator, const char *name, struct tap *tap,
                     int device_type, struct ArrowDeviceArrayStream *out)
{
    struct rows *rows = rows_new(iterator, name, tap, device_type);

    if (rows == NULL)
        return -1;
    *out = (struct ArrowDeviceArrayStream){.device_type = device_type,
                                           .get_schema = device_rows_get_schema,
                                           .get_next = device_rows_get_next,
                                           .get_last_error =
                                               device_rows_get_last_error,
                                           .release = device_rows_release,
                                           .private_data = rows};
    return 0;
}

/* ---- a stream that lends the GIL ------------------------------------------
 */

/* Some consumers (polars) call get_next with the GIL held, which the producer
 * may need. */
struct polite {
    struct ArrowArrayStream inner; /* owns */
    struct ArrowSchema schema;     /* owns; released: the inner stream's */
};

static int polite_get_schema(struct ArrowArrayStream *stream,
                             struct ArrowSchema *out)
{
    struct polite *polite = stream->private_data;
    PyThreadState *lent;
    int code;

    if (uva_schema_is_live(&polite->schema))
        return uva_schema_copy(&polite->schema, out);
    lent = gil_lend();
    code = polite->inner.get_schema(&polite->inner, out);
    gil_take_back(lent);
    return code;
}

static int polite_get_next(struct ArrowArrayStream *stream,
                           struct ArrowArray *out)
{
    struct polite *polite = stream->private_data;
    PyThreadState *lent = gil_lend();
    const int code = polite->inner.get_next(&polite->inner, out);

    gil_take_back(lent);
    return code;
}

static const char *polite_get_last_error(struct ArrowArrayStream *stream)
{
    struct polite *polite = stream->private_data;

    return polite->inner.get_last_error(&polite->inner);
}

static void polite_release(struct ArrowArrayStream *stream)
{
    struct polite *polite = stream->private_data;
    PyThreadState *lent = gil_lend();

    polite->inner.release(&polite->inner);
    uva_schema_release(&polite->schema);
    free(polite);
    stream->release = NULL;
    gil_take_back(lent);
}

int polite_wrap(struct ArrowArrayStream *stream,
                const struct ArrowSchema *schema)
{
    struct polite *polite = calloc(1, sizeof(*polite));

    if (polite == NULL ||
        (schema != NULL && uva_schema_copy(schema, &polite->schema) != 0)) {
        free(polite);
        stream->release(stream);
        PyErr_NoMemory();
        return -1;
    }
    polite->inner = *stream;
    *stream = (struct ArrowArrayStream){.get_schema = polite_get_schema,
                                        .get_next = polite_get_next,
                                        .get_last_error = polite_get_last_error,
                                        .release = polite_release,
                                        .private_data = polite};
    return 0;
}

/* ---- a stream for a driver ------------------------------------------------
 */

/* Gives the inner stream in place of a polite one, which wraps only streams of
 * the library: they need no GIL, and the library can cancel them while they
 * wait. False for any other stream. */
static bool polite_unwrap(struct ArrowArrayStream *stream)
{
    struct polite *polite = stream->private_data;

    if (stream->release != polite_release)
        return false;
    *stream = polite->inner;
    uva_schema_release(&polite->schema);
    free(polite);
    return true;
}

/* Its inner stream takes the GIL where it likes. */
struct guarded {
    struct ArrowArrayStream inner; /* owns */
    bool is_refused;               /* the interpreter ends */
};

static int guarded_get_schema(struct ArrowArrayStream *stream,
                              struct ArrowSchema *out)
{
    struct guarded *guarded = stream->private_data;
    int code;

    guarded->is_refused = !inside_begin();
    if (guarded->is_refused)
        return ECANCELED;
    code = guarded->inner.get_schema(&guarded->inner, out);
    inside_end();
    return code;
}

static int guarded_get_next(struct ArrowArrayStream *stream,
                            struct ArrowArray *out)
{
    struct guarded *guarded = stream->private_data;
    int code;

    guarded->is_refused = !inside_begin();
    if (guarded->is_refused)
        return ECANCELED;
    code = guarded->inner.get_next(&guarded->inner, out);
    inside_end();
    return code;
}

static const char *guarded_get_last_error(struct ArrowArrayStream *stream)
{
    struct guarded *guarded = stream->private_data;

    return guarded->is_refused ? "the interpreter is ending"
                               : guarded->inner.get_last_error(&guarded->inner);
}

static void guarded_release(struct ArrowArrayStream *stream)
{
    struct guarded *guarded = stream->private_data;

    stream->release = NULL;
    if (!inside_begin())
        return; /* it stays where it is */
    guarded->inner.release(&guarded->inner);
    inside_end();
    free(guarded);
}

int guarded_wrap(struct ArrowArrayStream *stream)
{
    struct guarded *guarded;

    if (polite_unwrap(stream))
        return 0;
    guarded = calloc(1, sizeof(*guarded));
    if (guarded == NULL) {
        stream->release(stream);
        PyErr_NoMemory();
        return -1;
    }
    guarded->inner = *stream;
    *stream =
        (struct ArrowArrayStream){.get_schema = guarded_get_schema,
                                  .get_next = guarded_get_next,
                                  .get_last_error = guarded_get_last_error,
                                  .release = guarded_release,
                                  .private_data = guarded};
    return 0;
}

/* ---- a stream in a capsule ------------------------------------------------
 */

static void stream_capsule_drop(PyObject *capsule)
{
    struct ArrowArrayStream *stream =
        PyCapsule_GetPointer(capsule, "arrow_array_stream");

    if (stream != NULL && stream->release != NULL)
        stream->release(stream);
    free(stream);
}

PyObject *stream_capsule(struct ArrowArrayStream *stream)
{
    struct ArrowArrayStream *owned = malloc(sizeof(*owned));
    PyObject *capsule = NULL;

    if (owned != NULL) {
        *owned = *stream;
        capsule =
            PyCapsule_New(owned, "arrow_array_stream", stream_capsule_drop);
    } else {
        PyErr_NoMemory();
    }
    if (capsule == NULL) {
        free(owned);
        stream->release(stream);
    }
    return capsule;
}

static PyObject *schema_of(int code, const char *text,
                           struct ArrowSchema *schema)
{
    PyObject *result;

    if (code != 0)
        return core_raise(code, text, NULL);
    result = checked_schema(schema, "capsule") ? schema_new(schema) : NULL;
    uva_schema_release(schema);
    return result;
}

static PyObject *plain_schema(struct ArrowArrayStream *stream)
{
    struct ArrowSchema schema = {.release = NULL};
    const int code = stream->get_schema(stream, &schema);

    return schema_of(code, code != 0 ? stream->get_last_error(stream) : NULL,
                     &schema);
}

static PyObject *device_schema(struct ArrowDeviceArrayStream *stream)
{
    struct ArrowSchema schema = {.release = NULL};
    const int code = stream->get_schema(stream, &schema);

    return schema_of(code, code != 0 ? stream->get_last_error(stream) : NULL,
                     &schema);
}

PyObject *stream_capsule_schema(PyObject *module, PyObject *capsule)
{
    static const char plain[] = "arrow_array_stream",
                      device[] = "arrow_device_array_stream";
    const bool is_device = PyCapsule_IsValid(capsule, device);
    void *stream =
        checked_capsule(capsule, is_device ? device : plain, "capsule");

    (void)module;
    if (stream == NULL)
        return NULL;
    return is_device ? device_schema(stream) : plain_schema(stream);
}
