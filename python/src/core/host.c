/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on an event loop of Python, which watches its descriptor and calls
 * turn() when that is readable. A turn does not wait, so it keeps the GIL; the
 * notes of its callbacks are passed on after it, to the waiters: futures of
 * asyncio, or objects with wake(). */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/core.h"

/* Threads that all runtimes of the process share, so that the threads of one
 * event loop serve the next. */
static struct uva_workers *workers;
static unsigned workers_forks;
static int32_t workers_threads; /* that may block; 0: the library's default */

/* The options of runtimes that are made from now on. */
static struct {
    int64_t memory_bytes;
    enum uva_log_level log_level; /* 0: no log */
    int32_t threads;
    bool measure;
    bool check;
} chosen;

/* Workers with another number of threads take the place of the present ones,
 * which end with the runtimes that have them. */
static int workers_find(struct uva_error *error)
{
    const struct uva_workers_options options = {
        .name = "uvarrow", .blocking_threads = chosen.threads};
    struct uva_workers *fresh = NULL;
    int code;

    if (workers != NULL && workers_forks == fork_number() &&
        workers_threads == chosen.threads)
        return 0;
    code = uva_workers_new(&options, &fresh, error);
    if (code != 0)
        return code;
    if (workers_forks == fork_number())
        uva_workers_release(workers);
    workers = fresh;
    workers_forks = fork_number();
    workers_threads = chosen.threads;
    return 0;
}

/* _choose(memory_bytes, measure, check, threads, log_level) */
PyObject *host_choose(PyObject *module, PyObject *args)
{
    long long memory_bytes;
    int measure, check, threads, level;

    (void)module;
    if (!PyArg_ParseTuple(args, "Lppii", &memory_bytes, &measure, &check,
                          &threads, &level))
        return NULL;
    chosen.threads = threads;
    chosen.memory_bytes = memory_bytes;
    chosen.measure = measure != 0;
    chosen.check = check != 0;
    chosen.log_level = (enum uva_log_level)level;
    Py_RETURN_NONE;
}

static PyObject *host_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct uva_error error = {0};
    struct uva_runtime_options options = {.name = "python"};
    struct uva_runtime *runtime = NULL;
    int code;
    Host *self;

    (void)args;
    (void)kwargs;
    code = workers_find(&error);
    options.workers = workers;
    options.memory_bytes = chosen.memory_bytes;
    options.measure = chosen.measure;
    options.check = chosen.check;
    if (chosen.log_level != 0)
        options.log =
            (struct uva_log){.write = log_write, .level = chosen.log_level};
    if (code == 0)
        code = uva_runtime_open_turned(NULL, NULL, &options, &runtime, &error);
    if (code != 0)
        return core_raise(code, error.message, NULL);
    self = (Host *)core_alloc(type);
    if (self == NULL) {
        (void)uva_runtime_join(runtime, 0);
        return NULL;
    }
    self->runtime = uva_runtime_acquire(runtime);
    self->forks = fork_number();
    self->open = true;
    (void)uva_runtime_turn(runtime); /* from now on this is the loop thread */
    return (PyObject *)self;
}

bool host_check(Host *host)
{
    if (host->open && host->forks == fork_number())
        return true;
    PyErr_SetString(PyExc_RuntimeError,
                    host->open ? "uvarrow: this event loop belongs to the "
                                 "parent of this process"
                               : "uvarrow: the runtime of this event loop has "
                                 "closed");
    return false;
}

/* ---- waiters --------------------------------------------------------------
 */

/* Looked up once, as they are used for each wait. */
static PyObject *running_loop; /* asyncio.get_running_loop */
static PyObject *name_create_future, *name_blocking, *name_done,
    *name_set_result;

static int names_find(void)
{
    PyObject *asyncio;

    if (running_loop != NULL)
        return 0;
    name_create_future = PyUnicode_InternFromString("create_future");
    name_blocking = PyUnicode_InternFromString("_asyncio_future_blocking");
    name_done = PyUnicode_InternFromString("done");
    name_set_result = PyUnicode_InternFromString("set_result");
    asyncio = PyImport_ImportModule("asyncio");
    if (asyncio != NULL)
        running_loop = PyObject_GetAttrString(asyncio, "get_running_loop");
    Py_XDECREF(asyncio);
    return running_loop != NULL && name_set_result != NULL ? 0 : -1;
}

/* Does the same as `await future` before it yields: by the mark, a task knows
 * that it waits for the future. */
PyObject *host_future(const Host *host)
{
    PyObject *loop = NULL, *future = NULL;

    if (names_find() == 0)
        loop = PyObject_CallFunctionObjArgs(running_loop, NULL);
    if (loop != NULL && loop != host->loop)
        PyErr_SetString(PyExc_RuntimeError,
                        "uvarrow: this belongs to another event loop");
    else if (loop != NULL)
        future = PyObject_CallMethodObjArgs(loop, name_create_future, NULL);
    if (future != NULL && PyObject_SetAttr(future, name_blocking, Py_True) != 0)
        Py_CLEAR(future);
    Py_XDECREF(loop);
    return future;
}

/* Sets a future, which may be done: cancelled. -1 with an exception. */
static int future_wake(PyObject *future)
{
    PyObject *answer = NULL;
    int is_done = -1;

    if (names_find() == 0)
        answer = PyObject_CallMethodObjArgs(future, name_done, NULL);
    if (answer != NULL)
        is_done = PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (is_done != 0)
        return is_done > 0 ? 0 : -1;
    answer = PyObject_CallMethodObjArgs(future, name_set_result, Py_None, NULL);
    Py_XDECREF(answer);
    return answer != NULL ? 0 : -1;
}

static int waiter_wake(const Host *self, PyObject *waiter)
{
    PyObject *answer;

    if (self->loop != NULL)
        return future_wake(waiter);
    answer = PyObject_CallMethod(waiter, "wake", NULL);
    Py_XDECREF(answer);
    return answer != NULL ? 0 : -1;
}

/* Calls the waiters of one tap. */
static void host_wake_tap(Host *self, struct tap *tap)
{
    PyObject *waiters = tap->waiters;
    const Py_ssize_t n = waiters == NULL ? 0 : PyList_Size(waiters);

    tap->waiters = NULL;
    for (Py_ssize_t i = 0; i < n; i++)
        if (waiter_wake(self, PyList_GetItem(waiters, i)) != 0)
            PyErr_WriteUnraisable((PyObject *)self);
    Py_XDECREF(waiters);
}

static void host_wake(Host *self)
{
    while (self->ready != NULL) {
        struct tap *tap = self->ready;

        self->ready = tap->next;
        tap->is_ready = false;
        host_wake_tap(self, tap);
        tap_release(tap);
    }
}

/* ---- turns ----------------------------------------------------------------
 */

static void host_turn_once(Host *self)
{
    self->in_turn = true;
    self->open = uva_runtime_turn(self->runtime) != UVA_TURN_CLOSED;
    self->in_turn = false;
    log_pass_on();
}

void host_turn_now(Host *self)
{
    if (!self->open || self->in_turn || self->forks != fork_number() ||
        !uva_runtime_on_loop(self->runtime))
        return;
    Py_INCREF((PyObject *)self);
    host_turn_once(self);
    host_wake(self);
    Py_DECREF((PyObject *)self);
}

/* turn(*anything): the loop keeps the arguments, for as long as it watches. */
static PyObject *host_turn(PyObject *object, PyObject *args)
{
    Host *self = (Host *)object;

    (void)args;
    host_turn_now(self);
    return PyBool_FromLong(self->open);
}

/* _set_loop(loop): of asyncio, which makes the waiters: futures */
static PyObject *host_set_loop(PyObject *object, PyObject *loop)
{
    ((Host *)object)->loop = loop;
    Py_RETURN_NONE;
}

/* Whether this is the thread on which the loop has run first */
static PyObject *host_is_here(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(uva_runtime_on_loop(((Host *)object)->runtime));
}

static PyObject *host_fileno(PyObject *object, PyObject *unused)
{
    Host *self = (Host *)object;

    (void)unused;
    return PyLong_FromLong(self->open ? uva_runtime_fd(self->runtime) : -1);
}

/* Closes the runtime, and turns it until that has happened: at most a second,
 * if a foreign call does not return. On another thread than the loop's, it only
 * begins, and the loop does the rest; unless the loop `is_gone`, or does not
 * turn: then this is the loop thread from now on. */
static void host_close(Host *self, bool is_gone)
{
    if (!self->open || self->forks != fork_number())
        return;
    (void)uva_runtime_close(self->runtime, 0, NULL, NULL);
    while (self->open && !self->in_turn &&
           (is_gone || uva_runtime_on_loop(self->runtime))) {
        host_turn_once(self);
        if (self->open) {
            Py_BEGIN_ALLOW_THREADS struct pollfd poller = {
                .fd = uva_runtime_fd(self->runtime), .events = POLLIN};

            (void)poll(&poller, 1, 2000);
            Py_END_ALLOW_THREADS
        }
    }
}

/* finish(is_gone): closes the runtime, and wakes all waiters. */
static PyObject *host_finish(PyObject *object, PyObject *is_gone)
{
    Host *self = (Host *)object;

    Py_INCREF(object);
    host_close(self, is_gone == Py_True);
    if (uva_runtime_on_loop(self->runtime)) /* the waiters are the loop's */
        host_wake(self);
    Py_DECREF(object);
    Py_RETURN_NONE;
}

/* Drops all waiters: the loop has closed, and makes no more calls. */
static void host_forget(Host *self)
{
    struct tap *tap;

    while ((tap = self->ready) != NULL) {
        self->ready = tap->next;
        tap->is_ready = false;
        tap_release(tap);
    }
    for (tap = self->taps; tap != NULL;) {
        PyObject *waiters = tap->waiters;

        tap->waiters = NULL;
        tap = tap->below;
        if (waiters != NULL) { /* a dropped object may end any tap */
            Py_DECREF(waiters);
            tap = self->taps;
        }
    }
}

/* As finish(), but no waiter is woken. */
static PyObject *host_abandon(PyObject *object, PyObject *is_gone)
{
    Host *self = (Host *)object;

    Py_INCREF(object);
    host_close(self, is_gone == Py_True);
    if (uva_runtime_on_loop(self->runtime))
        host_forget(self);
    Py_DECREF(object);
    Py_RETURN_NONE;
}

/* stats() -> the members of uvarrow.RuntimeStats */
static PyObject *host_stats(PyObject *object, PyObject *unused)
{
    Host *self = (Host *)object;
    struct uva_runtime_stats s;

    (void)unused;
    uva_runtime_get_stats(self->runtime, &s);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d,s:d}",
        "streams_open", (long long)s.streams_open, "streams_held",
        (long long)s.streams_held, "threads_compute",
        (long long)s.threads_compute, "threads_blocking",
        (long long)s.threads_blocking, "threads_stuck",
        (long long)s.threads_stuck, "calls_stuck", (long long)s.calls_stuck,
        "peer_breaches", (long long)s.peer_breaches, "late_calls",
        (long long)s.late_calls, "turns", (long long)s.turns, "memory_held",
        (long long)s.memory_held, "memory_excess", (long long)s.memory_excess,
        "tasks_revoked", (long long)s.tasks_revoked, "hold_max",
        (double)s.hold_max_ns / 1e9, "hold_max_cpu",
        (double)s.hold_max_cpu_ns / 1e9);
}

/* ---- drain ---------------------------------------------------------------
 */

/* All streams have ended. */
static void host_drained(void *ctx)
{
    struct tap *tap = ctx;

    tap->is_closed = true;
    tap_ready(tap);
    tap_release(tap);
}

/* drain(ms) -> bool: has new streams fail; whether all others have ended. The
 * waiters are called when that is so. */
static PyObject *host_drain(PyObject *object, PyObject *args)
{
    Host *self = (Host *)object;
    long long ms;
    int code;

    if (!PyArg_ParseTuple(args, "L", &ms) || !host_check(self))
        return NULL;
    if (self->drain == NULL && (self->drain = tap_new(self)) == NULL)
        return NULL;
    code = uva_runtime_drain(self->runtime, ms, host_drained,
                             tap_acquire(self->drain));
    if (code != 0)
        tap_release(self->drain);
    if (code != 0 && code != EALREADY && code != ESHUTDOWN)
        return core_raise(code, NULL, NULL);
    return PyBool_FromLong(self->drain->is_closed);
}

static PyObject *host_wait_drain(PyObject *object, PyObject *waiter)
{
    Host *self = (Host *)object;

    return tap_wait(self->drain, waiter) != 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *host_unwait_drain(PyObject *object, PyObject *waiter)
{
    Host *self = (Host *)object;

    return tap_unwait(self->drain, waiter) != 0 ? NULL : Py_NewRef(Py_None);
}

/* No one else turns the runtime any more, whichever thread this is. */
static void host_dealloc(PyObject *object)
{
    Host *self = (Host *)object;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    host_close(self, true);
    host_forget(self);
    if (self->drain != NULL)
        tap_close(self->drain, self->forks);
    PyErr_Restore(type, value, traceback);
    if (self->forks == fork_number())
        uva_runtime_release(self->runtime);
    core_free(object);
}

static PyMethodDef host_methods[] = {
    {"turn", host_turn, METH_VARARGS, NULL},
    {"_set_loop", host_set_loop, METH_O, NULL},
    {"is_here", host_is_here, METH_NOARGS, NULL},
    {"fileno", host_fileno, METH_NOARGS, NULL},
    {"finish", host_finish, METH_O, NULL},
    {"abandon", host_abandon, METH_O, NULL},
    {"stats", host_stats, METH_NOARGS, NULL},
    {"drain", host_drain, METH_VARARGS, NULL},
    {"_wait", host_wait_drain, METH_O, NULL},
    {"_unwait", host_unwait_drain, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot host_slots[] = {{Py_tp_new, host_new},
                                   {Py_tp_dealloc, host_dealloc},
                                   {Py_tp_methods, host_methods},
                                   {0, NULL}};

PyType_Spec host_spec = {.name = "uvarrow._core.Host",
                         .basicsize = sizeof(Host),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                         .slots = host_slots};
