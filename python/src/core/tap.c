/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a Python object that the library's callbacks reach: it is
 * counted, so that it outlives both the object and the stream.
 *
 * Something new (a batch, the schema, the end, a released source) puts the tap
 * on the list of its host; when the turn is over, the host calls the waiters of
 * all taps on the list. A waiter is an object of the event loop: a future, a
 * task. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

struct tap *tap_new(Host *host)
{
    struct tap *tap = calloc(1, sizeof(*tap));

    if (tap == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&tap->references, 1);
    atomic_init(&tap->sources, 0);
    tap->users = 1;
    tap->host = host;
    tap->below = host->taps;
    if (host->taps != NULL)
        host->taps->above = tap;
    host->taps = tap;
    tap->runtime = uva_runtime_acquire(host->runtime);
    return tap;
}

struct tap *tap_acquire(struct tap *tap)
{
    atomic_fetch_add(&tap->references, 1);
    return tap;
}

/* Objects of Python are dropped under the GIL; once the interpreter ends, they
 * are left alone. */
static void tap_drop_objects(struct tap *tap)
{
    struct gil gil;

    if ((tap->exception == NULL && tap->waiters == NULL) || !gil_enter(&gil))
        return;
    Py_CLEAR(tap->exception);
    Py_CLEAR(tap->waiters);
    gil_leave(&gil);
}

void tap_release(struct tap *tap)
{
    while (tap != NULL && atomic_fetch_sub(&tap->references, 1) == 1) {
        struct tap *const merged = tap->merged, *const origin = tap->origin;

        tap_drop_objects(tap);
        uva_runtime_release(tap->runtime);
        free(tap);
        tap_release(origin);
        tap = merged;
    }
}

void tap_begin(struct tap *tap)
{
    for (; tap != NULL; tap = tap->merged) {
        PyObject *begin = tap->begin, *done;

        tap->begin = NULL;
        done = begin == NULL ? NULL : PyObject_CallFunctionObjArgs(begin, NULL);
        if (begin != NULL && done == NULL)
            PyErr_WriteUnraisable(begin);
        Py_XDECREF(done);
        Py_XDECREF(begin);
        tap_begin(tap->origin);
    }
}

static void tap_put(struct tap *tap)
{
    if (tap->is_ready)
        return;
    tap->is_ready = true;
    tap->next = tap->host->ready;
    tap->host->ready = tap_acquire(tap);
}

/* A whole that has left its host has had its parts leave, too. */
void tap_ready(struct tap *tap)
{
    for (; tap != NULL && tap->host != NULL; tap = tap->whole)
        tap_put(tap);
}

void tap_ready_fn(void *tap)
{
    tap_ready(tap);
}

static void tap_ready_posted(void *ctx)
{
    tap_ready(ctx);
    tap_release(ctx);
}

void tap_post_ready(struct tap *tap)
{
    if (uva_runtime_post(tap->runtime, tap_ready_posted, tap_acquire(tap)) != 0)
        tap_release(tap); /* closed: its waiters have been called */
}

/* The errno of an OSError, otherwise EIO. */
static int exception_code(PyObject *exception)
{
    int code = EIO;

    if (PyErr_GivenExceptionMatches(exception, PyExc_OSError)) {
        PyObject *number = PyObject_GetAttrString(exception, "errno");

        if (number != NULL && PyLong_Check(number))
            code = (int)PyLong_AsLong(number);
        Py_XDECREF(number);
        PyErr_Clear();
    }
    return code > 0 ? code : EIO;
}

static void exception_text(PyObject *exception, char *text, size_t size)
{
    PyObject *name =
        PyObject_GetAttrString((PyObject *)Py_TYPE(exception), "__name__");
    PyObject *line =
        name == NULL ? NULL : PyUnicode_FromFormat("%U: %S", name, exception);
    const char *utf8 = NULL;
    Py_ssize_t whole = 0;

    if (line != NULL)
        utf8 = PyUnicode_AsUTF8AndSize(line, &whole);
    PyErr_Clear();
    if (utf8 != NULL && whole >= (Py_ssize_t)size) /* cut before a character */
        for (whole = (Py_ssize_t)size - 1; (utf8[whole] & 0xc0) == 0x80;)
            whole--;
    PyOS_snprintf(text, size, "%.*s", utf8 != NULL ? (int)whole : (int)size,
                  utf8 != NULL ? utf8 : "an exception");
    Py_XDECREF(line);
    Py_XDECREF(name);
}

int tap_fail(struct tap *tap, struct uva_error *error)
{
    PyObject *type, *value, *traceback;
    char text[sizeof(tap->text)];
    int code;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value == NULL)
        return uva_error_set(error, EIO, "no exception was set");
    if (traceback != NULL)
        (void)PyException_SetTraceback(value, traceback);
    exception_text(value, text, sizeof(text));
    code = uva_error_set(error, exception_code(value), "%s", text);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (tap->exception == NULL) { /* the first one ends the stream */
        tap->exception = value;
        /* a text that was cut at a character must be found in a longer text */
        memcpy(tap->text, text, sizeof(text));
    } else {
        Py_DECREF(value);
    }
    return code;
}

void tap_fail_with(struct tap *tap)
{
    struct uva_error ignored;

    Py_CLEAR(tap->exception);
    (void)tap_fail(tap, &ignored);
    tap->text[0] = '\0'; /* whatever the text of the stream's failure is */
}

/* The tap that keeps the exception with this text: this one, one merged into
 * it, or the tap of the stream that a branch was taken from. NULL: none. */
static struct tap *tap_of_failure(struct tap *tap, const char *text)
{
    for (; tap != NULL; tap = tap->merged) {
        struct tap *found = tap;

        if (tap->exception == NULL || strstr(text, tap->text) == NULL)
            found = tap_of_failure(tap->origin, text);
        if (found != NULL)
            return found;
    }
    return NULL;
}

/* An exception keeps its own text: which of several streams has raised it is in
 * a note. */
static void tap_note(const struct tap *tap)
{
    PyObject *done = NULL, *text;

    if (tap->name[0] == '\0')
        return;
    text = PyUnicode_FromFormat("uvarrow: in the stream '%s'", tap->name);
    if (text != NULL)
        done = PyObject_CallMethod(tap->exception, "add_note", "O", text);
    PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(text);
}

PyObject *tap_raise(struct tap *tap, const struct uva_outcome *outcome)
{
    struct tap *t = tap_of_failure(tap, outcome->error.message);

    if (t == NULL)
        return core_raise(outcome->error.code, outcome->error.message,
                          outcome->metadata);
    if (tap->merged != NULL)
        tap_note(t);
    PyErr_SetObject((PyObject *)Py_TYPE(t->exception), t->exception);
    if (t->branches > 0)
        t->branches--; /* the other ones raise it, too */
    else
        Py_CLEAR(t->exception); /* its traceback may refer to the stream */
    return NULL;
}

static int waiters_add(struct tap *tap, PyObject *waiter)
{
    if (tap->waiters == NULL)
        tap->waiters = PyList_New(0);
    return tap->waiters == NULL ? -1 : PyList_Append(tap->waiters, waiter);
}

static int waiters_remove(struct tap *tap, PyObject *waiter)
{
    const Py_ssize_t n = tap->waiters == NULL ? 0 : PyList_Size(tap->waiters);

    for (Py_ssize_t i = 0; i < n; i++)
        if (PyList_GetItem(tap->waiters, i) == waiter)
            return PyList_SetSlice(tap->waiters, i, i + 1, NULL);
    return 0;
}

int tap_wait(struct tap *tap, PyObject *waiter)
{
    return waiters_add(tap, waiter);
}

int tap_unwait(struct tap *tap, PyObject *waiter)
{
    return waiters_remove(tap, waiter);
}

/* ---- holders --------------------------------------------------------------
 */

void holder_add(struct holder *holder, struct tap *tap)
{
    holder->tap = tap_acquire(tap);
    holder->next = tap->holders;
    tap->holders = holder;
}

bool holder_drop(struct holder *holder)
{
    struct holder **at = &holder->tap->holders;
    struct gil gil;

    if (!gil_enter(&gil))
        return false;
    while (*at != holder)
        at = &(*at)->next;
    *at = holder->next;
    for (int i = 0; i < HOLDER_OBJECTS; i++)
        Py_CLEAR(holder->objects[i]);
    gil_leave(&gil);
    tap_release(holder->tap);
    return true;
}

int tap_traverse(const struct tap *tap, visitproc visit, void *arg)
{
    for (; tap != NULL; tap = tap->merged) {
        Py_VISIT(tap->exception);
        Py_VISIT(tap->begin);
        for (const struct holder *h = tap->holders; h != NULL; h = h->next)
            for (int i = 0; i < HOLDER_OBJECTS; i++)
                Py_VISIT(h->objects[i]);
    }
    return 0;
}

/* ---- the end --------------------------------------------------------------
 */

static void tap_leave_host(struct tap *tap)
{
    if (tap->host == NULL)
        return;
    if (tap->above != NULL)
        tap->above->below = tap->below;
    else
        tap->host->taps = tap->below;
    if (tap->below != NULL)
        tap->below->above = tap->above;
    tap->host = NULL;
}

/* One stream less may start it. What `begin` refers to may count this tap. */
static void tap_less(struct tap *tap)
{
    if (tap != NULL && --tap->users == 0)
        Py_CLEAR(tap->begin);
}

static void tap_drop_stream(void *ctx)
{
    struct tap *tap = ctx;

    uva_stream_release(tap->stream);
    tap_release(tap);
}

/* The ready function is not called once the stream was released on the loop
 * thread, so it is released there. */
void tap_close(struct tap *tap, unsigned made_with_forks)
{
    if (!tap->is_part)
        for (struct tap *t = tap; t != NULL; t = t->merged) {
            tap_leave_host(t);
            tap_less(t);
            tap_less(t->origin);
        }
    if (made_with_forks != fork_number())
        return; /* these objects are the parent's */
    if (uva_runtime_on_loop(tap->runtime) ||
        uva_runtime_post(tap->runtime, tap_drop_stream, tap) != 0)
        tap_drop_stream(tap);
}
