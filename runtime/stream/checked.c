/* SPDX-License-Identifier: Apache-2.0 */
/* Puts checks in; each counts the hub it logs to, for it may outlive all else:
 * an array that is released late is checked too. */
#include "stream/checked.h"

#include <stdio.h>
#include <string.h>

#include "check/breach_line.h"
#include "check/handler_check.h"
#include "stream/stock.h"
#include "uvarrow/check.h"

static enum uva_log_level level_of(enum uva_severity severity)
{
    static const enum uva_log_level levels[] = {UVA_LOG_INFO, UVA_LOG_WARN,
                                                UVA_LOG_ERROR, UVA_LOG_ERROR};

    return levels[severity];
}

/* A log takes single lines. */
static void log_transcript(struct uva__hub *hub,
                           const struct uva_breach *breach)
{
    const char *line = breach->transcript;
    int length;

    while (*line != '\0') {
        length = (int)strcspn(line, "\n");
        uva__hub_log(hub, level_of(breach->severity), breach->name,
                     breach->clause, "  after: %.*s", length, line);
        line += length + (line[length] == '\n');
    }
}

static void checked_report(void *ctx, const struct uva_breach *breach)
{
    struct uva__hub *hub = ctx;

    uva__word_add(&hub->counts.peer_breaches, 1);
    if (hub->log.write == NULL) {
        uva__breach_line_plain(breach, stderr);
        return;
    }
    uva__hub_log(hub, level_of(breach->severity), breach->name, breach->clause,
                 "%s", breach->message);
    log_transcript(hub, breach);
}

static void checked_free(void *ctx)
{
    uva__hub_release(ctx);
}

/* Counts the hub: free_ctx gives that back. */
static struct uva_check check_of(struct uva__hub *hub, const char *name)
{
    uva__hub_acquire(hub);
    return (struct uva_check){
        .report = checked_report,
        .free_ctx = checked_free,
        .ctx = hub,
        .name = name,
        .allocator = hub->allocator,
    };
}

static void checked_fail(struct uva__hub *hub, const char *name,
                         const struct uva_error *error)
{
    uva__hub_log(hub, UVA_LOG_WARN, name, NULL, "goes unchecked: %s",
                 error->message);
    uva__hub_release(hub);
}

struct ArrowAsyncDeviceStreamHandler *
uva__checked_hop(struct uva__hub *hub, const char *name,
                 struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct uva_error error = {0};
    struct uva_check how;

    if (!hub->checked)
        return handler;
    how = check_of(hub, name);
    if (uva__handler_check(uva__stock_yard(hub), handler, &how, &checked,
                           &error) == 0)
        return checked;
    checked_fail(hub, name, &error);
    return handler;
}

void uva__checked_stream(struct uva__hub *hub, const char *name,
                         struct ArrowDeviceArrayStream *stream)
{
    struct uva_error error = {0};
    struct uva_check how;

    if (!hub->checked)
        return;
    how = check_of(hub, name);
    if (uva_check_blocking(stream, &how, &error) != 0)
        checked_fail(hub, name, &error);
}
