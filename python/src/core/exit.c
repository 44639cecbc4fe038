/* SPDX-License-Identifier: Apache-2.0 */
/* How threads of the library enter Python, and how they stay out of it before
 * the interpreter ends.
 *
 * CPython ends a thread that takes the GIL of a finished interpreter, which
 * aborts the process if C++ is on its stack. Therefore the exit handler waits
 * for the threads inside Python and for opened sources, which may enter Python
 * by themselves, and afterwards gil_enter() refuses. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"

static pthread_mutex_t exit_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t exit_changed = PTHREAD_COND_INITIALIZER;
static int live_count;   /* under exit_lock: see live_add() */
static int inside_count; /* under exit_lock: threads between enter and leave */
static bool is_leaving;  /* under exit_lock: no thread may enter any more */
static atomic_uint forks;
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static PyInterpreterState *interpreter; /* the main one */

/* The thread state that has the GIL, or NULL. Every CPython has a function for
 * that, which is not in the limited API, so it is looked up.
 * PyGILState_Check() would not do: it is always true once the process has had a
 * sub-interpreter. */
static PyThreadState *(*current_state)(void);

static void fork_prepare(void)
{
    pthread_mutex_lock(&state_lock);
}

static void parent_forked(void)
{
    pthread_mutex_unlock(&state_lock);
}

static void child_forked(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_init(&state_lock, NULL);
    pthread_mutex_init(&exit_lock, NULL);
    pthread_cond_init(&exit_changed, NULL);
    live_count = inside_count = 0; /* the threads are the parent's */
}

int exit_init(void)
{
    static bool is_done;

    if (is_done)
        return 0;
    *(void **)&current_state =
        dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (current_state == NULL) /* its name before 3.13 */
        *(void **)&current_state =
            dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    if (current_state == NULL) {
        PyErr_SetString(PyExc_ImportError,
                        "uvarrow does not know this version of Python");
        return -1;
    }
    is_done = true;
    interpreter = PyInterpreterState_Get();
    (void)pthread_atfork(fork_prepare, parent_forked, child_forked);
    return 0;
}

unsigned fork_number(void)
{
    return atomic_load(&forks);
}

void live_add(int n)
{
    pthread_mutex_lock(&exit_lock);
    live_count += n;
    pthread_cond_broadcast(&exit_changed);
    pthread_mutex_unlock(&exit_lock);
}

/* A new thread state is made and deleted outside of the GIL, under a lock of
 * CPython's, which a child process would find locked for ever if another thread
 * had it at the fork. So both are done under a lock that a fork takes first. */
static PyThreadState *state_new(void)
{
    PyThreadState *state;

    pthread_mutex_lock(&state_lock);
    state = PyThreadState_New(interpreter);
    pthread_mutex_unlock(&state_lock);
    return state;
}

static void state_delete(PyThreadState *state)
{
    pthread_mutex_lock(&state_lock);
    PyThreadState_Delete(state);
    pthread_mutex_unlock(&state_lock);
}

/* Whether this thread has the GIL. */
static bool gil_is_held(void)
{
    PyThreadState *own = PyGILState_GetThisThreadState();

    return own != NULL && own == current_state();
}

/* A thread that has the GIL is inside Python already, and may go on there: so
 * objects that a finished interpreter frees are dropped, too. */
bool inside_begin(void)
{
    const bool is_inside = gil_is_held();
    bool may;

    pthread_mutex_lock(&exit_lock);
    may = !is_leaving || is_inside;
    inside_count += may;
    pthread_mutex_unlock(&exit_lock);
    return may;
}

void inside_end(void)
{
    pthread_mutex_lock(&exit_lock);
    inside_count--;
    pthread_cond_broadcast(&exit_changed);
    pthread_mutex_unlock(&exit_lock);
}

bool gil_enter(struct gil *gil)
{
    gil->made = NULL;
    if (!inside_begin())
        return false;
    if (PyGILState_GetThisThreadState() != NULL) {
        gil->state = PyGILState_Ensure();
        return true;
    }
    gil->made = state_new();
    if (gil->made == NULL) { /* out of memory */
        inside_end();
        return false;
    }
    PyEval_RestoreThread(gil->made);
    return true;
}

void gil_leave(struct gil *gil)
{
    if (gil->made == NULL) {
        PyGILState_Release(gil->state);
    } else {
        PyThreadState_Clear(gil->made);
        (void)PyEval_SaveThread();
        state_delete(gil->made);
    }
    inside_end();
}

PyThreadState *gil_lend(void)
{
    return gil_is_held() ? PyEval_SaveThread() : NULL;
}

void gil_take_back(PyThreadState *state)
{
    if (state != NULL)
        PyEval_RestoreThread(state);
}

/* Waits a little for a change, without the GIL. True when all are out: then
 * no thread may enter any more. */
static bool exit_wait(long ms)
{
    struct timespec until;
    bool all_out;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&exit_lock);
    if (live_count > 0 || inside_count > 0)
        (void)pthread_cond_timedwait(&exit_changed, &exit_lock, &until);
    all_out = live_count <= 0 && inside_count <= 0;
    is_leaving |= all_out;
    pthread_mutex_unlock(&exit_lock);
    return all_out;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

PyObject *exit_wait_out(PyObject *module, PyObject *limit_ms)
{
    const double until = now_ms() + PyFloat_AsDouble(limit_ms);
    bool all_out = false;

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    do {
        Py_BEGIN_ALLOW_THREADS all_out = exit_wait(50);
        Py_END_ALLOW_THREADS if (PyErr_CheckSignals() != 0) return NULL;
    } while (!all_out && now_ms() < until);
    return PyBool_FromLong(all_out);
}

static void *end_late(void *ctx)
{
    const intptr_t ms = (intptr_t)ctx;
    struct timespec left = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    _exit(EXIT_STUCK);
}

/* At least 0, also for values that are no number, and at most 24 days */
static intptr_t whole_ms(double ms)
{
    return ms > 0 ? (intptr_t)(ms < INT32_MAX ? ms : INT32_MAX) : 0;
}

PyObject *exit_leave(PyObject *module, PyObject *limit_ms)
{
    const intptr_t ms = whole_ms(PyFloat_AsDouble(limit_ms));
    pthread_t thread;

    (void)module;
    if (PyErr_Occurred())
        return NULL;
    pthread_mutex_lock(&exit_lock);
    is_leaving = true;
    pthread_mutex_unlock(&exit_lock);
    if (pthread_create(&thread, NULL, end_late, (void *)ms) != 0)
        _exit(EXIT_STUCK);
    (void)pthread_detach(thread);
    Py_RETURN_NONE;
}
