/* SPDX-License-Identifier: Apache-2.0 */
/* DuckDB as a subject of the test suite: the streams that its Python package
 * gives for queries play the blocking stream. They are DuckDB's own: it passes
 * each to pyarrow, of which a few lines of Python here play the one function
 * that takes it, so that Arrow C++ does not stand in between. Its ADBC driver
 * is not used because that gives batches of 2,048 rows. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/plain_stream.h"

/* Plays pyarrow: moves the stream to the address `target`. */
static const char PYARROW[] =
    "import ctypes, sys, types\n"
    "sys.path.insert(0, '" UVA_TEST_PACKAGES "')\n"
    "class RecordBatchReader:\n"
    "    @staticmethod\n"
    "    def _import_from_c(address):\n"
    "        size = 5 * ctypes.sizeof(ctypes.c_void_p)\n"
    "        ctypes.memmove(target, address, size)\n"
    "        ctypes.memset(address, 0, size)\n"
    "        return RecordBatchReader()\n"
    "pyarrow = types.ModuleType('pyarrow')\n"
    "pyarrow.lib = types.ModuleType('pyarrow.lib')\n"
    "pyarrow.lib.RecordBatchReader = RecordBatchReader\n"
    "sys.modules.update({'pyarrow': pyarrow, 'pyarrow.lib': pyarrow.lib})\n"
    "import duckdb\n";

/* Runs a query in batches of so many rows. */
static const char QUERY[] =
    "target = %" PRIuPTR "\n"
    "connection = duckdb.connect()\n"
    "connection.execute('SET threads = 1')\n"
    "connection.execute('SET enable_progress_bar = false')\n"
    "connection.sql(\"%s\").to_arrow_reader(%d)\n";

/* Functions of Python's library. */
static int (*is_initialized)(void);
static void (*initialize)(int signals);
static void *(*save_thread)(void);
static int (*take_lock)(void);
static void (*give_lock)(int state);
static int (*run)(const char *text, void *flags);

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* Counts from 0 to `rows`, and then fails if `fails`. */
static void write_query(char *text, size_t size, int64_t rows, bool fails)
{
    (void)snprintf(text, size, "SELECT i AS n FROM range(%" PRId64 ") r(i)%s",
                   rows,
                   fails ? " UNION ALL SELECT error('no more')::BIGINT FROM "
                           "range(1) r(i)"
                         : "");
}

static bool load_python(void)
{
    void *library = dlopen(UVA_TEST_LIBPYTHON, RTLD_LAZY | RTLD_GLOBAL);

    if (library == NULL)
        return false;
    *(void **)&is_initialized = dlsym(library, "Py_IsInitialized");
    *(void **)&initialize = dlsym(library, "Py_InitializeEx");
    *(void **)&save_thread = dlsym(library, "PyEval_SaveThread");
    *(void **)&take_lock = dlsym(library, "PyGILState_Ensure");
    *(void **)&give_lock = dlsym(library, "PyGILState_Release");
    *(void **)&run = dlsym(library, "PyRun_SimpleStringFlags");
    return is_initialized != NULL && initialize != NULL &&
           save_thread != NULL && take_lock != NULL && give_lock != NULL &&
           run != NULL;
}

/* Runs a script, and the other one before the first. Python's lock is free
 * afterwards: the stream is read without it. */
static bool run_python(const char *script)
{
    int state, code = 0;

    if (!load_python())
        return false;
    if (!is_initialized()) {
        initialize(0);
        code = run(PYARROW, NULL);
        (void)save_thread();
    }
    state = take_lock();
    if (code == 0)
        code = run(script, NULL);
    give_lock(state);
    return code == 0;
}

static int32_t open_query(const char *query, struct ArrowDeviceArrayStream *out)
{
    struct plain_stream *plain = calloc(1, sizeof(*plain));
    char script[sizeof(QUERY) + 300];

    if (plain == NULL)
        return ENOMEM;
    (void)snprintf(script, sizeof(script), QUERY, (uintptr_t)&plain->rows,
                   query, UVA_SUBJECT_ROWS);
    if (!run_python(script) || plain->rows.release == NULL)
        return EIO;
    plain_stream_give(plain, out);
    return 0;
}

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    const int64_t rows = batches * UVA_SUBJECT_ROWS;
    char query[200];

    (void)at;
    switch (plan) {
    case UVA_SUBJECT_WHOLE:
        write_query(query, sizeof(query), rows, false);
        break;
    case UVA_SUBJECT_ENDLESS:
        write_query(query, sizeof(query), INT64_MAX, false);
        break;
    case UVA_SUBJECT_FAILS:
        write_query(query, sizeof(query), rows, true);
        break;
    default:
        return UVA_SUBJECT_CANNOT;
    }
    return open_query(query, out);
}
