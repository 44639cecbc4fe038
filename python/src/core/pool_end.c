/* SPDX-License-Identifier: Apache-2.0 */
/* The close of a pool, for tasks that wait until its databases are closed:
 *
 * close_and_tell() -> a worker closes them -> the tap has news -> is_closed()
 */
#include "adbc/closed.h"
#include "core/core.h"

/* On any thread. */
static void end_reached(void *ctx)
{
    struct tap *tap = ctx;

    atomic_fetch_sub(&tap->sources, 1);
    tap_post_ready(tap);
    tap_release(tap);
}

/* close_and_tell(host): closes it; the waiters are called when it is closed. */
PyObject *pool_close_and_tell(PyObject *object, PyObject *host)
{
    Pool *self = (Pool *)object;

    if (self->pool != NULL && self->end == NULL &&
        self->forks == fork_number() && host_check((Host *)host)) {
        self->end = tap_new((Host *)host);
        if (self->end == NULL)
            return NULL;
        atomic_fetch_add(&self->end->sources, 1);
        uva__adbc_pool_on_closed(self->pool, end_reached,
                                 tap_acquire(self->end));
    }
    return PyErr_Occurred() ? NULL : PyObject_CallMethod(object, "close", NULL);
}

/* is_closed() -> bool: false while a task may wait for it. */
PyObject *pool_is_closed(PyObject *object, PyObject *unused)
{
    const Pool *self = (const Pool *)object;

    (void)unused;
    return PyBool_FromLong(self->end == NULL ||
                           atomic_load(&self->end->sources) == 0);
}

PyObject *pool_wait(PyObject *object, PyObject *waiter)
{
    return tap_wait(((Pool *)object)->end, waiter) != 0 ? NULL
                                                        : Py_NewRef(Py_None);
}

PyObject *pool_unwait(PyObject *object, PyObject *waiter)
{
    return tap_unwait(((Pool *)object)->end, waiter) != 0 ? NULL
                                                          : Py_NewRef(Py_None);
}
