/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of the user as streams. The stream is made around an empty
 * execution, which gets the statement when no step can fail any more: so a
 * failure leaves the statement as it was. */
#include <stdlib.h>
#include <string.h>

#include "adbc/execution.h"
#include "uvarrow/adbc.h"
#include "uvarrow/arrow.h"

/* A statement, and the function that is called when it was released. */
struct given {
    struct uva__execution execution; /* first */
    void (*free_ctx)(void *ctx);     /* may be NULL */
    void *ctx;                       /* owns, through free_ctx */
};

static void given_free(struct uva__execution *execution)
{
    struct given *g = (struct given *)execution;

    if (g->free_ctx != NULL)
        g->free_ctx(g->ctx);
    free(g);
}

static const struct uva__execution_ops given_ops = {.name = "statement",
                                                    .free = given_free};

static const struct uva_adbc_source defaults;

static const char *given_fault(const struct AdbcStatement *statement,
                               const struct uva_adbc_source *options)
{
    const struct AdbcDriver *driver;

    for (size_t i = 0; i < 4; i++)
        if (options->reserved[i] != NULL)
            return "uva_adbc_source: reserved members must be NULL; clear the "
                   "struct before filling it in";
    if (statement == NULL || statement->private_driver == NULL)
        return "there is no statement, or its private_driver is not "
               "set";
    driver = statement->private_driver;
    if (driver->StatementExecuteQuery == NULL ||
        driver->StatementRelease == NULL)
        return "the driver of the statement lacks functions that "
               "every ADBC driver has";
    return NULL;
}

/* Makes the stream without the statement; gives `*out`, if it did not fail. */
static struct uva_stream *given_stream(struct uva_runtime *runtime,
                                       const struct AdbcStatement *statement,
                                       const struct uva_adbc_source *options,
                                       struct given **out)
{
    const char *fault = given_fault(statement, options);
    struct uva_stream *stream;
    struct given *g;

    if (fault != NULL)
        return uva__execution_fail(runtime, EINVAL, "from_adbc", fault);
    g = calloc(1, sizeof(*g));
    if (g == NULL)
        return uva__execution_fail(runtime, ENOMEM, "from_adbc",
                                   "no memory for the stream");
    g->execution.ops = &given_ops;
    stream =
        uva__execution_stream(&g->execution, runtime, &options->window, NULL);
    if (uva_stream_status(stream, NULL) == 0)
        *out = g; /* otherwise it was freed */
    return stream;
}

static void given_take(struct given *g, struct AdbcStatement *statement,
                       const struct uva_adbc_source *options)
{
    g->execution.statement = *statement;
    *statement = (struct AdbcStatement){0};
    g->free_ctx = options->free_ctx;
    g->ctx = options->ctx;
    atomic_store(&g->execution.may_cancel, UVA__MAY_CANCEL);
}

/* The stream failed: the statement is freed here. */
static void give_up(struct AdbcStatement *statement,
                    const struct uva_adbc_source *options)
{
    struct uva__execution e = {0};

    for (size_t i = 0; i < 4; i++)
        if (options->reserved[i] != NULL)
            return; /* its members cannot be trusted */
    if (given_fault(statement, &defaults) == NULL) {
        e.statement = *statement;
        *statement = (struct AdbcStatement){0};
        uva__execution_release(&e);
    }
    if (options->free_ctx != NULL)
        options->free_ctx(options->ctx);
}

struct uva_stream *uva_stream_from_adbc(struct uva_runtime *runtime,
                                        struct AdbcStatement *statement,
                                        const struct uva_adbc_source *options)
{
    const struct uva_adbc_source *o = options != NULL ? options : &defaults;
    struct given *g = NULL;
    struct uva_stream *stream = given_stream(runtime, statement, o, &g);

    if (g != NULL)
        given_take(g, statement, o);
    else
        give_up(statement, o);
    return stream;
}

int64_t uva_adbc_rows_changed(const struct uva_stream_info *info)
{
    char text[24] = "", *end;
    struct uva_pair pair;
    long long count;

    if (info == NULL ||
        uva_metadata_get(info->metadata, "adbc.rows_affected", &pair) != 0 ||
        pair.value_size >= sizeof(text))
        return -1;
    memcpy(text, pair.value, pair.value_size);
    count = strtoll(text, &end, 10);
    return end != text && *end == '\0' && count >= 0 ? count : -1;
}
