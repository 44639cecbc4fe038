/* SPDX-License-Identifier: Apache-2.0 */
/* An addon as one is written without uvarrow: the batches of an
 * ArrowArrayStream on the thread of JavaScript, or each by a promise and
 * napi_create_async_work(), in the pool of libuv. Batches are released at once,
 * as the figures are of the way to them. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAPI_VERSION 8
#include <node_api.h>

#include "uvarrow/adbc_abi.h"

/* A read of one batch, from the promise on */
struct step {
    struct ArrowArrayStream *stream; /* borrows */
    napi_async_work work;
    napi_deferred promise;
    double rows; /* -1: the end, -2: a failure */
};

static double stream_step(struct ArrowArrayStream *stream)
{
    struct ArrowArray array = {0};
    double rows = -1;

    if (stream->get_next(stream, &array) != 0)
        return -2;
    if (array.release != NULL) {
        rows = (double)array.length;
        array.release(&array);
    }
    return rows;
}

static struct ArrowArrayStream *stream_of(napi_env env, napi_callback_info info)
{
    napi_value arg = NULL;
    uint64_t address = 0;
    bool is_exact = false;
    size_t count = 1;

    (void)napi_get_cb_info(env, info, &count, &arg, NULL, NULL);
    (void)napi_get_value_bigint_uint64(env, arg, &address, &is_exact);
    return (struct ArrowArrayStream *)(uintptr_t)address;
}

static napi_value number(napi_env env, double value)
{
    napi_value out = NULL;

    (void)napi_create_double(env, value, &out);
    return out;
}

/* next(address) -> rows; -1: the end */
static napi_value beside_next(napi_env env, napi_callback_info info)
{
    return number(env, stream_step(stream_of(env, info)));
}

static void step_execute(napi_env env, void *data)
{
    struct step *step = data;

    (void)env;
    step->rows = stream_step(step->stream);
}

static void step_complete(napi_env env, napi_status status, void *data)
{
    struct step *step = data;

    (void)status;
    (void)napi_resolve_deferred(env, step->promise, number(env, step->rows));
    (void)napi_delete_async_work(env, step->work);
    free(step);
}

/* nextLater(address) -> a promise of that */
static napi_value beside_next_later(napi_env env, napi_callback_info info)
{
    struct step *step = calloc(1, sizeof(*step));
    napi_value out = NULL, name = NULL;

    step->stream = stream_of(env, info);
    (void)napi_create_promise(env, &step->promise, &out);
    (void)napi_create_string_utf8(env, "next", NAPI_AUTO_LENGTH, &name);
    (void)napi_create_async_work(env, NULL, name, step_execute, step_complete,
                                 step, &step->work);
    (void)napi_queue_async_work(env, step->work);
    return out;
}

/* ---- a query of an ADBC driver ---------------------------------------------
 */

struct query {
    const char *library, *entry, *option, *place, *sql;
    struct AdbcDriver driver;
    struct AdbcDatabase database;
    struct AdbcConnection connection;
    struct AdbcStatement statement;
};

static bool query_load(struct query *q, struct AdbcError *error)
{
    void *library = dlopen(q->library, RTLD_NOW);
    AdbcDriverInitFunc init = NULL;

    if (library != NULL)
        *(void **)&init = dlsym(library, q->entry);
    return init != NULL && init(ADBC_VERSION_1_1_0, &q->driver, error) == 0;
}

static bool query_connect(struct query *q, struct AdbcError *error)
{
    const struct AdbcDriver *driver = &q->driver;

    q->database.private_driver = &q->driver;
    q->connection.private_driver = &q->driver;
    return driver->DatabaseNew(&q->database, error) == 0 &&
           driver->DatabaseSetOption(&q->database, q->option, q->place,
                                     error) == 0 &&
           driver->DatabaseInit(&q->database, error) == 0 &&
           driver->ConnectionNew(&q->connection, error) == 0 &&
           driver->ConnectionInit(&q->connection, &q->database, error) == 0;
}

static bool query_execute(struct query *q, struct ArrowArrayStream *out,
                          struct AdbcError *error)
{
    const struct AdbcDriver *driver = &q->driver;

    q->statement.private_driver = &q->driver;
    return driver->StatementNew(&q->connection, &q->statement, error) == 0 &&
           driver->StatementSetSqlQuery(&q->statement, q->sql, error) == 0 &&
           driver->StatementExecuteQuery(&q->statement, out, NULL, error) == 0;
}

static char *text(napi_env env, napi_value value)
{
    size_t size = 0;
    char *out;

    (void)napi_get_value_string_utf8(env, value, NULL, 0, &size);
    out = malloc(size + 1);
    (void)napi_get_value_string_utf8(env, value, out, size + 1, &size);
    return out;
}

/* query(library, entry point, name of the option of its place, place, SQL) ->
 * the address of its stream. The rest lives as long as the process. */
static napi_value beside_query(napi_env env, napi_callback_info info)
{
    struct ArrowArrayStream *stream = calloc(1, sizeof(*stream));
    struct query *q = calloc(1, sizeof(*q));
    const char **const places[] = {&q->library, &q->entry, &q->option,
                                   &q->place, &q->sql};
    struct AdbcError error = {0};
    napi_value args[5], out = NULL;
    size_t count = 5;

    (void)napi_get_cb_info(env, info, &count, args, NULL, NULL);
    for (int i = 0; i < 5; i++)
        *places[i] = text(env, args[i]);
    if (!query_load(q, &error) || !query_connect(q, &error) ||
        !query_execute(q, stream, &error))
        (void)napi_throw_error(env, NULL,
                               error.message == NULL ? "the driver has failed"
                                                     : error.message);
    (void)napi_create_bigint_uint64(env, (uint64_t)(uintptr_t)stream, &out);
    return out;
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int32_t node_api_module_get_api_version_v1(void);
EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback function;
    } all[] = {{"next", beside_next},
               {"nextLater", beside_next_later},
               {"query", beside_query}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        napi_value function = NULL;

        (void)napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH,
                                   all[i].function, NULL, &function);
        (void)napi_set_named_property(env, exports, all[i].name, function);
    }
    return exports;
}
