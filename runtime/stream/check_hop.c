/* SPDX-License-Identifier: Apache-2.0 */
/* Puts checks in. Each counts the hub that it logs to, for it may outlive the
 * streams: an array that is released late is checked too.
 *
 * On close:    checks that are over leave their quarantine. */
#include "stream/check_hop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/breach_text.h"
#include "check/checked_task.h"
#include "check/handler_check.h"
#include "base/memory.h"
#include "uvarrow/check.h"

enum { QUARANTINE = 256 }; /* checks that are over, kept for late calls */

struct checks {
    struct uva__annex annex;            /* first: how the hub frees it */
    struct uva__quarantine *quarantine; /* owns: of finished checks */
};

/* ---- the quarantine ----------------------------------------------------- */

static void checks_free(struct uva__hub *hub, struct uva__annex *annex)
{
    struct checks *checks = uva__container_of(annex, struct checks, annex);

    uva__quarantine_close(checks->quarantine);
    uva__quarantine_release(checks->quarantine);
    uva__memory_free(&hub->allocator, checks, sizeof(*checks));
}

static void checks_detach(struct uva__hub *hub, struct uva__annex *annex)
{
    (void)hub;
    uva__quarantine_close(
        uva__container_of(annex, struct checks, annex)->quarantine);
}

static struct uva__annex *checks_new(struct uva__hub *hub)
{
    struct checks *checks = uva__memory_new(&hub->allocator, sizeof(*checks));

    if (checks == NULL)
        return NULL;
    checks->annex.free = checks_free;
    checks->annex.detach = checks_detach;
    if (uva__handler_check_quarantine(&hub->allocator, QUARANTINE,
                                      &checks->quarantine) == 0)
        return &checks->annex;
    uva__memory_free(&hub->allocator, checks, sizeof(*checks));
    return NULL;
}

int uva__checked_ensure(struct uva__hub *hub)
{
    return !hub->checked ||
                   uva__hub_annex(hub, UVA__ANNEX_CHECKS, checks_new) != NULL
               ? 0
               : ENOMEM;
}

static struct uva__quarantine *quarantine_of(const struct uva__hub *hub)
{
    return uva__container_of(uva__shared_load(&hub->annex[UVA__ANNEX_CHECKS]),
                             struct checks, annex)
        ->quarantine;
}

/* ---- reports ------------------------------------------------------------ */

static enum uva_log_level level_of(enum uva_severity severity)
{
    static const enum uva_log_level levels[] = {UVA_LOG_INFO, UVA_LOG_WARN,
                                                UVA_LOG_ERROR, UVA_LOG_ERROR};

    return levels[severity];
}

/* Writes one line of the log for each line of the transcript. */
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

/* Counts the hub: free_ctx releases it. */
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

/* ---- hops --------------------------------------------------------------- */

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
    if (uva__handler_check(quarantine_of(hub), handler, &how, &checked,
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

const struct ArrowAsyncTask *
uva__checked_unwrap(const struct ArrowAsyncTask *task)
{
    return uva__checked_task_behind(task);
}
