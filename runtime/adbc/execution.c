/* SPDX-License-Identifier: Apache-2.0 */
/* A statement as a blocking source.
 *
 * Happy path:  (prepare) -> execute -> get_schema, (get_next)* of the driver's
 *              stream -> (finish) -> release -> the statement is released ->
 *              free.
 *
 * Failures:    each call of the driver: its error is kept until it was
 *              reported, with its metadata.
 *
 * On cancel:   the driver's cancel, again and again until the call returns; and
 *              once more before the release of a result that it left. */
#include "adbc/execution.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adbc/fixed.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

/* ---- the driver's cancel ------------------------------------------------- */

/* NULL: no object of a driver was taken. */
static struct AdbcDriver *execution_driver(const struct uva__execution *e)
{
    return e->connection != NULL ? e->connection->private_driver
                                 : e->statement.private_driver;
}

/* Calls the driver's cancel, or the function that ends a call of a driver
 * without one. */
static void execution_cancel(struct uva__execution *e)
{
    struct AdbcDriver *driver = execution_driver(e);
    struct AdbcError error = uva__adbc_error(driver);
    AdbcStatusCode status = ADBC_STATUS_NOT_IMPLEMENTED;

    if (e->statement.private_driver != NULL && driver->StatementCancel != NULL)
        status = driver->StatementCancel(&e->statement, &error);
    uva__adbc_error_drop(&error);
    error = uva__adbc_error(driver);
    if (status != ADBC_STATUS_OK && e->connection != NULL &&
        driver->ConnectionCancel != NULL)
        status = driver->ConnectionCancel(e->connection, &error);
    uva__adbc_error_drop(&error);
    if (status != ADBC_STATUS_OK && e->interrupt.call != NULL)
        e->interrupt.call(e->interrupt.db);
}

/* Does so, if it may be called. */
static void execution_ask(struct uva__execution *e)
{
    int may = UVA__MAY_CANCEL;

    if (!atomic_compare_exchange_strong(&e->may_cancel, &may,
                                        UVA__MAY_CANCEL_RUNS))
        return;
    execution_cancel(e);
    atomic_store(&e->may_cancel, UVA__MAY_CANCEL);
}

/* ---- the driver's stream, with the driver's errors ---------------------- */

/* A stream of ADBC 1.1 knows more of its failure than a code and a text. */
static int result_explain(struct uva__execution *e, int code)
{
    const struct AdbcDriver *driver = execution_driver(e);
    AdbcStatusCode status = ADBC_STATUS_OK;
    const struct AdbcError *error = NULL;
    const char *text;

    if (driver->ErrorFromArrayStream != NULL)
        error = driver->ErrorFromArrayStream(&e->result, &status);
    if (error != NULL && status != ADBC_STATUS_OK)
        return uva__adbc_failure_copy(&e->failure, "the query fails", status,
                                      error, driver);
    text = e->result.get_last_error(&e->result);
    return uva__adbc_failure_set(
        &e->failure, code > 0 ? code : EIO, "the query fails: %s",
        text != NULL ? text : "the driver gives no reason");
}

/* A call has failed. */
static void execution_lose(struct uva__execution *e)
{
    if (e->failure.loss != UVA__LOSS_NONE && e->ops->lost != NULL)
        e->ops->lost(e);
}

/* A driver's report does not count if its input has failed. */
static int execution_check(struct uva__execution *e, int code)
{
    const int fault = e->ops->check != NULL ? e->ops->check(e) : 0;

    return fault != 0 ? fault : code;
}

/* The failure of a cancelled execution does not count. */
static int execution_finish(struct uva__execution *e)
{
    if (e->ops->finish == NULL)
        return 0;
    return atomic_load(&e->is_cancelled)
               ? uva__adbc_failure_set(&e->failure, ECANCELED, "cancelled")
               : e->ops->finish(e);
}

static int result_fail(struct uva__execution *e, int code)
{
    code = result_explain(e, code);
    execution_lose(e);
    return execution_check(e, code);
}

static int result_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    struct uva__execution *e = self->private_data;
    const int code = e->result.get_schema(&e->result, out);

    if (code != 0)
        return result_fail(e, code);
    if (out->n_children == 0)
        e->rows = 0; /* it changes rows, and has none */
    if (e->ops->look != NULL)
        e->ops->look(e, out);
    return 0;
}

static int result_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct uva__execution *e = self->private_data;
    int code = e->result.get_next(&e->result, out);

    if (code != 0)
        return result_fail(e, code);
    if (out->release != NULL)
        return 0;
    code = execution_check(e, 0);
    if (code == 0)
        code = execution_finish(e);
    e->is_complete = code == 0;
    return code;
}

static const char *result_get_last_error(struct ArrowArrayStream *self)
{
    struct uva__execution *e = self->private_data;

    return e->failure.error.message;
}

void uva__execution_release(struct uva__execution *e)
{
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error;

    if (driver == NULL)
        return;
    error = uva__adbc_error(driver);
    (void)driver->StatementRelease(&e->statement, &error); /* not reported */
    uva__adbc_error_drop(&error);
    e->statement = (struct AdbcStatement){0};
}

/* Whether the driver may work on for a result, whose release then waits for
 * that work: after a cancel, which it may have forgotten because it came before
 * the execute; and where a driver reads ahead on threads, also without one. */
static bool execution_may_go_on(const struct uva__execution *e)
{
    return !e->is_complete && e->failure.error.code == 0 &&
           (e->reads_ahead || atomic_load(&e->is_cancelled));
}

static void result_release(struct ArrowArrayStream *self)
{
    struct uva__execution *e = self->private_data;

    if (execution_may_go_on(e))
        execution_ask(e);
    e->result.release(&e->result);
    e->result.release = NULL;
    self->release = NULL;
    uva__execution_release(e);
    if (e->ops->settle != NULL)
        e->ops->settle(e);
}

/* ---- hooks of the source ------------------------------------------------ */

void uva__execution_describe(struct uva__execution *e, const char *key,
                             const char *value)
{
    const struct uva_pair pair[] = {{.key = key, .value = value}, {0}};
    size_t size = sizeof(e->described);

    e->is_described = uva_metadata_encode(pair, e->described, &size) == 0;
}

static void execution_count(struct uva__execution *e, int64_t rows)
{
    char number[24];

    if (rows < 0)
        return;
    (void)snprintf(number, sizeof(number), "%lld", (long long)rows);
    uva__execution_describe(e, "adbc.rows_affected", number);
}

int uva__statement_run(struct uva__execution *e, int64_t *rows)
{
    struct AdbcDriver *driver = e->statement.private_driver;
    struct AdbcError error = uva__adbc_error(driver);
    const AdbcStatusCode status = driver->StatementExecuteQuery(
        &e->statement, e->is_update ? NULL : &e->result, rows, &error);

    e->rows = *rows;
    return uva__adbc_failure_take(&e->failure, "the query fails", status,
                                  &error, driver);
}

/* A result that cannot be read, or does not count, is released at once. */
static int result_check(struct uva__execution *e)
{
    int code = 0;

    if (e->result.release == NULL)
        uva__fixed_nothing(&e->result);
    if (e->result.get_schema == NULL || e->result.get_next == NULL ||
        e->result.get_last_error == NULL)
        code = uva__adbc_failure_set(&e->failure, EPROTO,
                                     "the driver gives a result that lacks "
                                     "functions");
    code = execution_check(e, code);
    if (code == 0)
        return 0;
    e->result.release(&e->result);
    e->result.release = NULL;
    return code;
}

static int execution_run(struct uva__execution *e)
{
    int64_t rows = -1;
    int code;

    if (atomic_load(&e->is_cancelled))
        return uva__adbc_failure_set(&e->failure, ECANCELED, "cancelled");
    code = e->ops->run != NULL ? e->ops->run(e, &rows)
                               : uva__statement_run(e, &rows);
    if (code != 0) {
        e->result.release = NULL;
        return execution_check(e, code);
    }
    code = result_check(e);
    if (code != 0)
        return code;
    execution_count(e, rows);
    return 0;
}

static int execution_begin(struct uva__execution *e)
{
    int code = e->ops->prepare != NULL ? e->ops->prepare(e) : 0;

    if (code == 0)
        code = execution_run(e);
    if (code != 0)
        execution_lose(e);
    return code;
}

static int execution_open(void *ctx, struct ArrowArrayStream *out,
                          struct uva_error *error)
{
    struct uva__execution *e = ctx;
    int code = execution_begin(e);

    if (code != 0 && e->ops->retry != NULL && e->ops->retry(e))
        code = execution_begin(e);
    if (code != 0) {
        *error = e->failure.error;
        return code;
    }
    *out = (struct ArrowArrayStream){.get_schema = result_get_schema,
                                     .get_next = result_get_next,
                                     .get_last_error = result_get_last_error,
                                     .release = result_release,
                                     .private_data = e};
    return 0;
}

static void execution_needed(void *ctx)
{
    struct uva__execution *e = ctx;

    if (e->ops->needed != NULL)
        e->ops->needed(e);
}

bool uva__execution_withdraw(struct uva__execution *e)
{
    int may = UVA__MAY_CANCEL;

    return atomic_compare_exchange_strong(&e->may_cancel, &may,
                                          UVA__MAY_CANCEL_NOT);
}

static void execution_interrupt(void *ctx)
{
    struct uva__execution *e = ctx;

    atomic_store(&e->is_cancelled, true); /* first: read after each step */
    if (e->ops->interrupt != NULL)
        e->ops->interrupt(e);
    execution_ask(e);
}

static const char *execution_metadata(void *ctx, int code)
{
    struct uva__execution *e = ctx;

    if (code != 0)
        return e->failure.metadata;
    return e->is_described ? e->described : NULL;
}

static void execution_expect(void *ctx, int64_t *rows, int64_t *bytes)
{
    const struct uva__execution *e = ctx;

    (void)bytes;
    *rows = e->rows;
}

static void execution_free(void *ctx)
{
    struct uva__execution *e = ctx;

    uva__execution_release(e);
    e->has_failed = e->failure.error.code != 0;
    uva__adbc_failure_fini(&e->failure);
    e->ops->free(e);
}

/* ---- making one --------------------------------------------------------- */

struct uva_stream *uva__execution_stream(struct uva__execution *e,
                                         struct uva_runtime *runtime,
                                         const struct uva_window *window,
                                         struct uva_permits *permits)
{
    atomic_init(&e->may_cancel, UVA__MAY_CANCEL_NOT);
    atomic_init(&e->is_cancelled, false);
    return uva_stream_from_arrow_stream(
        runtime, NULL,
        &(struct uva_arrow_source){.open = execution_open,
                                   .interrupt = execution_interrupt,
                                   .metadata = execution_metadata,
                                   .expect = execution_expect,
                                   .free_ctx = execution_free,
                                   .frees_late = e->ops->settle != NULL,
                                   .ctx = e,
                                   .name = e->ops->name,
                                   .permits = permits,
                                   .needed = execution_needed,
                                   .busy_ms = e->busy_ms,
                                   .window = *window});
}

struct uva_stream *uva__execution_fail(struct uva_runtime *runtime, int code,
                                       const char *what, const char *text)
{
    struct uva_error error = {0};

    (void)uva_error_set(&error, code, "%s: %s", what, text);
    return uva_stream_from_error(runtime, &error);
}

void uva__worker_call(struct uva_runtime *runtime, void (*run)(void *ctx),
                      void *ctx)
{
    if (uva_runtime_run(runtime, UVA_LANE_BLOCKING, run, NULL, ctx) != 0)
        run(ctx);
}
