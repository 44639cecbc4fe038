/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  load -> init -> database -> connection -> statement -> execute,
 *              all inside open; free_ctx undoes them in reverse.
 * What can fail: each step; the error names the step and gives the driver's
 *              message. Earlier objects stay for free_ctx, since an interrupt
 *              may be using them.
 * On cancel:   interrupt stops open between two steps, and asks the driver to
 *              cancel its current call; ADBC 1.0 drivers have no function for
 *              that.
 *
 * A driver's library is never unloaded: drivers with a runtime of their own
 * (Go, .NET) do not survive that. */
#include "driver.h"

#include <arrow-adbc/adbc.h>
#include <assert.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far open has got, which decides what interrupt may use. */
enum progress {
    PROGRESS_NOTHING = 0,
    PROGRESS_CONNECTED, /* `connection` may be cancelled */
    PROGRESS_EXECUTING  /* so may `statement` */
};

/* One query with all its objects. Open and get_next run on one worker, while
 * interrupt may run on another. Interrupt reads the two atomics and, depending
 * on `progress`, members written before `progress` was. */
struct session {
    const struct uva__options *options; /* borrows */
    void *library;                      /* never unloaded */
    AdbcDriverInitFunc init;            /* from the library */
    struct AdbcDriver driver;           /* owns what is set in the ones below */
    struct AdbcDatabase database;       /* owns, if it has private_data */
    struct AdbcConnection connection;   /* owns, if it has private_data */
    struct AdbcStatement statement;     /* owns, if it has private_data */
    struct ArrowArrayStream *out;       /* borrows, during open */
    atomic_bool interrupted;            /* the stream was cancelled */
    atomic_int progress;                /* an enum progress */
};

/* ---- errors ------------------------------------------------------------- */

/* Translates an ADBC status to an errno. */
static int errno_of(AdbcStatusCode status)
{
    switch (status) {
    case ADBC_STATUS_NOT_IMPLEMENTED:
        return ENOTSUP;
    case ADBC_STATUS_NOT_FOUND:
        return ENOENT;
    case ADBC_STATUS_INVALID_ARGUMENT:
        return EINVAL;
    case ADBC_STATUS_CANCELLED:
        return ECANCELED;
    case ADBC_STATUS_TIMEOUT:
        return ETIMEDOUT;
    case ADBC_STATUS_UNAUTHENTICATED:
    case ADBC_STATUS_UNAUTHORIZED:
        return EACCES;
    default:
        return EIO;
    }
}

static void adbc_error_release(struct AdbcError *said)
{
    if (said->release != NULL)
        said->release(said);
    *said = ADBC_ERROR_INIT;
}

/* Sets an error with the step that failed and the driver's reason. Releases
 * the driver's error. */
static int step_result(AdbcStatusCode status, struct AdbcError *said,
                       const char *what, struct uva_error *error)
{
    int code = 0;

    if (status != ADBC_STATUS_OK) {
        code = uva_error_set(error, errno_of(status), "%s: %s", what,
                             said->message == NULL ? "the driver gives no "
                                                     "reason"
                                                   : said->message);
        if (error != NULL && said->vendor_code != INT32_MIN)
            error->vendor_code = said->vendor_code;
    }
    adbc_error_release(said);
    return code;
}

/* ---- steps of open ------------------------------------------------------ */

static int session_load(struct session *s, struct uva_error *error)
{
    const char *path = s->options->driver;
    void *function;

    s->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (s->library == NULL) {
        const char *why = dlerror();
        return uva_error_set(error, ENOENT,
                             "cannot load the driver: %s; give the path of an "
                             "ADBC driver's shared library with --driver",
                             why == NULL ? path : why);
    }
    function = dlsym(s->library, s->options->entrypoint);
    if (function == NULL)
        return uva_error_set(error, EINVAL,
                             "'%s' is not an ADBC driver: it has no function "
                             "'%s' (if it has another name, give that with "
                             "--entrypoint)",
                             path, s->options->entrypoint);
    memcpy(&s->init, &function, sizeof(s->init));
    return 0;
}

/* Checks for the functions that every driver must have; the optional ones are
 * checked when they are used. */
static bool driver_is_whole(const struct AdbcDriver *driver)
{
    return driver->DatabaseNew != NULL && driver->DatabaseInit != NULL &&
           driver->DatabaseRelease != NULL && driver->ConnectionNew != NULL &&
           driver->ConnectionInit != NULL &&
           driver->ConnectionRelease != NULL && driver->StatementNew != NULL &&
           driver->StatementSetSqlQuery != NULL &&
           driver->StatementExecuteQuery != NULL &&
           driver->StatementRelease != NULL;
}

static int session_init(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    AdbcStatusCode status = s->init(ADBC_VERSION_1_1_0, &s->driver, &said);

    if (status == ADBC_STATUS_NOT_IMPLEMENTED) {
        adbc_error_release(&said);
        memset(&s->driver, 0, sizeof(s->driver));
        status = s->init(ADBC_VERSION_1_0_0, &s->driver, &said);
    }
    if (status == ADBC_STATUS_OK && !driver_is_whole(&s->driver))
        return uva_error_set(error, EPROTO,
                             "the driver '%s' lacks functions that every ADBC "
                             "driver has",
                             s->options->driver);
    return step_result(status, &said, "the driver does not start", error);
}

/* Makes one setting on the object that `place` names. */
static AdbcStatusCode session_set(struct session *s,
                                  enum uva__setting_place place,
                                  const char *key, const char *value,
                                  struct AdbcError *said)
{
    const struct AdbcDriver *driver = &s->driver;

    if (place == UVA__SETTING_DATABASE && driver->DatabaseSetOption != NULL)
        return driver->DatabaseSetOption(&s->database, key, value, said);
    if (place == UVA__SETTING_CONNECTION && driver->ConnectionSetOption != NULL)
        return driver->ConnectionSetOption(&s->connection, key, value, said);
    if (place == UVA__SETTING_STATEMENT && driver->StatementSetOption != NULL)
        return driver->StatementSetOption(&s->statement, key, value, said);
    return ADBC_STATUS_NOT_IMPLEMENTED;
}

static int session_set_all(struct session *s, enum uva__setting_place place,
                           const char *option, struct uva_error *error)
{
    int code = 0;
    size_t i;

    for (i = 0; i < s->options->n_settings && code == 0; i++) {
        const struct uva__setting *setting = &s->options->settings[i];
        struct AdbcError said = ADBC_ERROR_INIT;
        char what[128];

        if (setting->place != place)
            continue;
        (void)snprintf(what, sizeof(what), "the driver refuses %s %.60s",
                       option, setting->key);
        code = step_result(
            session_set(s, place, setting->key, setting->value, &said), &said,
            what, error);
    }
    return code;
}

static int session_set_uri(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;

    if (s->options->uri == NULL)
        return 0;
    return step_result(
        session_set(s, UVA__SETTING_DATABASE, "uri", s->options->uri, &said),
        &said, "the driver refuses --uri", error);
}

static int session_database(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    char what[256];
    int code;

    s->database.private_driver = &s->driver;
    code = step_result(s->driver.DatabaseNew(&s->database, &said), &said,
                       "the driver gives no database", error);
    if (code == 0)
        code = session_set_uri(s, error);
    if (code == 0)
        code = session_set_all(s, UVA__SETTING_DATABASE, "--option", error);
    (void)snprintf(what, sizeof(what),
                   "cannot open the database '%.200s' (see --uri)",
                   s->options->uri == NULL ? "" : s->options->uri);
    if (code == 0)
        code = step_result(s->driver.DatabaseInit(&s->database, &said), &said,
                           what, error);
    return code;
}

static int session_connection(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    char what[256];
    int code;

    s->connection.private_driver = &s->driver;
    code = step_result(s->driver.ConnectionNew(&s->connection, &said), &said,
                       "the driver gives no connection", error);
    if (code == 0)
        code = session_set_all(s, UVA__SETTING_CONNECTION,
                               "--connection-option", error);
    (void)snprintf(what, sizeof(what), "cannot connect to '%.200s' (see --uri)",
                   s->options->uri == NULL ? "" : s->options->uri);
    if (code == 0)
        code = step_result(
            s->driver.ConnectionInit(&s->connection, &s->database, &said),
            &said, what, error);
    if (code == 0)
        atomic_store(&s->progress, PROGRESS_CONNECTED);
    return code;
}

static int session_statement(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    int code;

    s->statement.private_driver = &s->driver;
    code = step_result(
        s->driver.StatementNew(&s->connection, &s->statement, &said), &said,
        "the driver gives no statement", error);
    if (code == 0)
        code = session_set_all(s, UVA__SETTING_STATEMENT, "--statement-option",
                               error);
    if (code == 0)
        code = step_result(s->driver.StatementSetSqlQuery(
                               &s->statement, s->options->sql, &said),
                           &said, "the driver refuses the query", error);
    if (code == 0)
        atomic_store(&s->progress, PROGRESS_EXECUTING);
    return code;
}

static int session_execute(struct session *s, struct uva_error *error)
{
    struct AdbcError said = ADBC_ERROR_INIT;
    int64_t rows = -1;
    int code;

    code = step_result(
        s->driver.StatementExecuteQuery(&s->statement, s->out, &rows, &said),
        &said, "the query fails", error);
    if (code == 0 && s->out->release == NULL)
        code = uva_error_set(error, EPROTO,
                             "the driver says the query is done, and gives no "
                             "result");
    return code;
}

static int session_open(void *ctx, struct ArrowArrayStream *out,
                        struct uva_error *error)
{
    static int (*const STEPS[])(struct session *, struct uva_error *) = {
        session_load,       session_init,      session_database,
        session_connection, session_statement, session_execute};
    struct session *s = ctx;
    int code = 0;
    size_t i;

    assert(s->library == NULL); /* opened once only */
    s->out = out;
    for (i = 0; i < sizeof(STEPS) / sizeof(*STEPS) && code == 0; i++)
        code = atomic_load(&s->interrupted)
                   ? uva_error_set(error, ECANCELED, "cancelled")
                   : STEPS[i](s, error);
    return code;
}

/* ---- the other calls ---------------------------------------------------- */

static void session_interrupt(void *ctx)
{
    struct session *s = ctx;
    struct AdbcError said = ADBC_ERROR_INIT;
    AdbcStatusCode status = ADBC_STATUS_NOT_IMPLEMENTED;
    int progress;

    atomic_store(&s->interrupted, true); /* first: open reads it after
                                            its steps */
    progress = atomic_load(&s->progress);
    if (progress >= PROGRESS_EXECUTING && s->driver.StatementCancel != NULL)
        status = s->driver.StatementCancel(&s->statement, &said);
    adbc_error_release(&said);
    if (status != ADBC_STATUS_OK && progress >= PROGRESS_CONNECTED &&
        s->driver.ConnectionCancel != NULL)
        (void)s->driver.ConnectionCancel(&s->connection, &said);
    adbc_error_release(&said);
}

/* Errors are ignored, because there is no caller to report them to. */
static void session_free(void *ctx)
{
    struct session *s = ctx;
    struct AdbcError said = ADBC_ERROR_INIT;

    if (s->statement.private_data != NULL)
        (void)s->driver.StatementRelease(&s->statement, &said);
    adbc_error_release(&said);
    if (s->connection.private_data != NULL)
        (void)s->driver.ConnectionRelease(&s->connection, &said);
    adbc_error_release(&said);
    if (s->database.private_data != NULL)
        (void)s->driver.DatabaseRelease(&s->database, &said);
    adbc_error_release(&said);
    if (s->driver.release != NULL)
        (void)s->driver.release(&s->driver, &said);
    adbc_error_release(&said);
    free(s);
}

int uva__driver_source(const struct uva__options *options,
                       struct uva_blocking_source *source)
{
    struct session *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return ENOMEM;
    s->options = options;
    atomic_init(&s->interrupted, false);
    atomic_init(&s->progress, PROGRESS_NOTHING);
    *source = (struct uva_blocking_source){.open = session_open,
                                           .interrupt = session_interrupt,
                                           .free_ctx = session_free,
                                           .ctx = s};
    return 0;
}
