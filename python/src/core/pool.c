/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of connections to a database on one event loop. Its queries run
 * without Python: the driver is called by workers, and needs no GIL. */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "uvarrow/adbc.h"

/* Gives the pairs of a list of keys and values, to be freed, which borrow from
 * it; NULL with an exception. */
static struct uva_pair *pairs_of(PyObject *list, const char *name)
{
    const Py_ssize_t n = PyList_Size(list);
    struct uva_pair *pairs =
        n < 0 ? NULL : calloc((size_t)n / 2 + 1, sizeof(*pairs));

    if (pairs == NULL) {
        if (n >= 0)
            PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i + 1 < n; i += 2) {
        pairs[i / 2].key = checked_text(PyList_GetItem(list, i), name);
        if (pairs[i / 2].key != NULL)
            pairs[i / 2].value =
                checked_text(PyList_GetItem(list, i + 1), name);
        if (pairs[i / 2].value == NULL) {
            free(pairs);
            return NULL;
        }
    }
    return pairs;
}

static int pool_make(Pool *self, PyObject *args)
{
    struct uva_adbc_pool_options options = {0};
    PyObject *host, *of_database, *of_connection;
    struct uva_error error = {0};
    struct uva_pair *pairs = NULL, *more = NULL;
    long long wait_ms, batch_bytes;
    int code = -1, keeps_session;

    if (!PyArg_ParseTuple(
            args, "O!zzO!O!iiLiiiiLp", host_type, &host, &options.driver,
            &options.entrypoint, &PyList_Type, &of_database, &PyList_Type,
            &of_connection, &options.connections, &options.idle_ms, &wait_ms,
            &options.max_age_ms, &options.connect_ms, &options.lock_ms,
            &options.stuck_connections, &batch_bytes, &keeps_session) ||
        !host_check((Host *)host))
        return -1;
    self->forks = fork_number();
    options.wait_ms = wait_ms;
    options.batch_bytes = batch_bytes;
    options.keeps_session = keeps_session != 0;
    pairs = pairs_of(of_database, "options");
    more = pairs == NULL ? NULL : pairs_of(of_connection, "connection_options");
    if (more != NULL) {
        options.options = pairs;
        options.connection_options = more;
        code = uva_adbc_pool_new(((Host *)host)->runtime, &options, &self->pool,
                                 &error);
        if (code != 0)
            (void)core_raise(code, error.message, NULL);
    }
    free(pairs);
    free(more);
    return code;
}

/* Pool(host, driver, entrypoint, options, options of connections, connections,
 * idle_ms, wait_ms, max_age_ms, connect_ms, lock_ms, stuck_connections,
 * batch_bytes, keeps_session)
 */
static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Pool *self = (Pool *)core_alloc(type);

    (void)kwargs;
    if (self != NULL && pool_make(self, args) != 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Releasing a pool of a closed runtime may close connections, which blocks. */
static void pool_drop(Pool *self)
{
    struct uva_adbc_pool *pool = self->pool;

    self->pool = NULL;
    if (pool == NULL || self->forks != fork_number())
        return;
    Py_BEGIN_ALLOW_THREADS uva_adbc_pool_release(pool);
    Py_END_ALLOW_THREADS
}

static PyObject *pool_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    pool_drop((Pool *)object);
    Py_RETURN_NONE;
}

/* Counts of now, by names that are documented in Python. */
static PyObject *pool_stats(PyObject *object, PyObject *unused)
{
    const Pool *self = (const Pool *)object;
    struct uva_adbc_pool_stats now;

    (void)unused;
    uva_adbc_pool_get_stats(self->forks == fork_number() ? self->pool : NULL,
                            &now);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L,s:L}", "used", (long long)now.connections_used,
        "idle", (long long)now.connections_idle, "stuck",
        (long long)now.connections_stuck, "waiting",
        (long long)now.queries_waiting, "connections",
        (long long)now.connections_max, "queries", (long long)now.queries);
}

/* session(autocommit, options) -> Pool */
static PyObject *pool_session(PyObject *object, PyObject *args)
{
    const Pool *self = (const Pool *)object;
    struct uva_adbc_session options = {0};
    struct uva_error error = {0};
    PyObject *list;
    struct uva_pair *pairs;
    Pool *made;
    int autocommit, code;

    if (!PyArg_ParseTuple(args, "pO!", &autocommit, &PyList_Type, &list))
        return NULL;
    made = (Pool *)core_alloc(pool_type);
    pairs = made != NULL ? pairs_of(list, "options") : NULL;
    if (pairs == NULL) {
        Py_XDECREF((PyObject *)made);
        return NULL;
    }
    options.autocommit = autocommit != 0;
    options.options = pairs;
    made->forks = self->forks;
    code = uva_adbc_pool_session(self->pool, &options, &made->pool, &error);
    free(pairs);
    if (code == 0)
        return (PyObject *)made;
    Py_DECREF((PyObject *)made);
    return core_raise(code, error.message, NULL);
}

static void pool_dealloc(PyObject *object)
{
    pool_drop((Pool *)object);
    if (((Pool *)object)->end != NULL)
        tap_close(((Pool *)object)->end, ((Pool *)object)->forks);
    core_free(object);
}

/* Takes the parameters: a capsule, or an object and its opener, which workers
 * call. -1 with an exception. */
static int parameters_take(struct given *given, PyObject *object,
                           const char *item, struct tap *tap)
{
    PyObject *source, *opener;

    if (!PyTuple_Check(object))
        return given_take(given, object, false, "parameters");
    return PyArg_ParseTuple(object, "OO", &source, &opener)
               ? source_defer(tap, source, opener, item, &given->plain)
               : -1;
}

/* args: host, pool, sql, parameters (a capsule, or an object and its opener),
 * options, table, result (rows, changes, partitions), by_name, busy_ms,
 * batch_bytes, batches, bytes; sql, parameters and table may be None */
struct uva_stream *pool_query(PyObject *args, Host **host, struct tap **tap)
{
    struct uva_adbc_query query = {0};
    struct given parameters = {0};
    struct uva_stream *stream = NULL;
    PyObject *owner, *pool, *rows, *options;
    struct uva_pair *pairs;
    int result, by_name;
    long long bytes, busy_ms, batch_bytes;
    Pool *self;

    if (!PyArg_ParseTuple(args, "O!O!zOO!zipLLiL", host_type, &owner, pool_type,
                          &pool, &query.sql, &rows, &PyList_Type, &options,
                          &query.ingest_table, &result, &by_name, &busy_ms,
                          &batch_bytes, &query.window.batches, &bytes))
        return NULL;
    self = (Pool *)pool;
    query.result = (enum uva_adbc_result)result;
    query.by_name = by_name != 0;
    query.busy_ms = busy_ms;
    query.batch_bytes = batch_bytes;
    query.window.bytes = bytes;
    *host = (Host *)owner;
    if (!host_check(*host) || (*tap = tap_new(*host)) == NULL)
        return NULL;
    pairs = pairs_of(options, "options");
    if (pairs == NULL)
        return NULL;
    query.options = pairs;
    if (self->pool == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "uvarrow: the pool is closed");
    } else if (rows == Py_None) {
        stream = uva_stream_from_query(self->pool, &query);
    } else if (parameters_take(&parameters, rows,
                               query.ingest_table != NULL
                                   ? "an item of data"
                                   : "an item of parameters",
                               *tap) == 0 &&
               guarded_wrap(&parameters.plain) == 0) {
        query.parameters = &parameters.plain;
        stream = uva_stream_from_query(self->pool, &query);
    }
    free(pairs);
    return stream;
}

/* args: host, session, whether it commits */
struct uva_stream *pool_ending(PyObject *args, Host **host, struct tap **tap)
{
    PyObject *owner, *pool;
    Pool *self;
    int commits;

    if (!PyArg_ParseTuple(args, "O!O!p", host_type, &owner, pool_type, &pool,
                          &commits))
        return NULL;
    self = (Pool *)pool;
    *host = (Host *)owner;
    if (!host_check(*host) || (*tap = tap_new(*host)) == NULL)
        return NULL;
    return commits ? uva_stream_from_commit(self->pool)
                   : uva_stream_from_rollback(self->pool);
}

static PyMethodDef pool_methods[] = {
    {"close", pool_close, METH_NOARGS, NULL},
    {"close_and_tell", pool_close_and_tell, METH_O, NULL},
    {"is_closed", pool_is_closed, METH_NOARGS, NULL},
    {"_wait", pool_wait, METH_O, NULL},
    {"_unwait", pool_unwait, METH_O, NULL},
    {"session", pool_session, METH_VARARGS, NULL},
    {"stats", pool_stats, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot pool_slots[] = {{Py_tp_new, pool_new},
                                   {Py_tp_dealloc, pool_dealloc},
                                   {Py_tp_methods, pool_methods},
                                   {0, NULL}};

PyType_Spec pool_spec = {.name = "uvarrow._core.Pool",
                         .basicsize = sizeof(Pool),
                         .flags = Py_TPFLAGS_DEFAULT,
                         .slots = pool_slots};
