/* SPDX-License-Identifier: Apache-2.0 */
/* How threads of the library enter Python, and how all of them stay out of it
 * before the interpreter ends.
 *
 * CPython ends a thread that takes the GIL of a finished interpreter, which
 * aborts the process if C++ is on its stack. Therefore the exit handler waits
 * for the threads inside Python, and afterwards gil_enter() refuses. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "core/core.h"

static pthread_mutex_t exit_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t exit_changed = PTHREAD_COND_INITIALIZER;
static int live_count;   /* under exit_lock: see live_add() */
static int inside_count; /* under exit_lock: threads between enter and leave */
static bool is_leaving;  /* under exit_lock: no thread may enter any more */
static atomic_uint forks;

/* PyGILState_Check() is exported by every CPython and documented, but it is not
 * in the limited API, so it is looked up. */
static int (*gil_is_held)(void);

static void child_forked(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_init(&exit_lock, NULL);
    pthread_cond_init(&exit_changed, NULL);
    live_count = inside_count = 0; /* the threads are the parent's */
}

void exit_init(void)
{
    static bool is_done;

    if (is_done)
        return;
    is_done = true;
    *(void **)&gil_is_held = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    (void)pthread_atfork(NULL, NULL, child_forked);
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

bool gil_enter(PyGILState_STATE *state)
{
    bool may;

    pthread_mutex_lock(&exit_lock);
    may = !is_leaving;
    inside_count += may;
    pthread_mutex_unlock(&exit_lock);
    if (may)
        *state = PyGILState_Ensure();
    return may;
}

void gil_leave(PyGILState_STATE state)
{
    PyGILState_Release(state);
    pthread_mutex_lock(&exit_lock);
    inside_count--;
    pthread_cond_broadcast(&exit_changed);
    pthread_mutex_unlock(&exit_lock);
}

PyThreadState *gil_lend(void)
{
    return gil_is_held == NULL || gil_is_held() ? PyEval_SaveThread() : NULL;
}

void gil_take_back(PyThreadState *state)
{
    if (state != NULL)
        PyEval_RestoreThread(state);
}

/* Waits a little for a change, without the GIL. True when all are out. */
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
    pthread_mutex_unlock(&exit_lock);
    return all_out;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

PyObject *exit_leave(PyObject *module, PyObject *limit_ms)
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
    pthread_mutex_lock(&exit_lock);
    is_leaving = true;
    pthread_mutex_unlock(&exit_lock);
    return PyBool_FromLong(all_out);
}
