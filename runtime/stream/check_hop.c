/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a protocol check in front of each handler. A check holds a reference to
 * the label of its stream, and so to the rt, as it may outlive both: an array
 * that is released late is checked too.
 *
 * On close:    finished checks leave their quarantine. */
#include "stream/check_hop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "check/breach_text.h"
#include "check/checked_task.h"
#include "check/handler_check.h"
#include "uvarrow/check.h"

enum { QUARANTINE = 256 }; /* finished checks, kept for late calls */

struct checks {
    struct uva__rt_data data;           /* first: how the rt frees it */
    struct uva__quarantine *quarantine; /* owns: of finished checks */
};

/* ---- the quarantine ----------------------------------------------------- */

static void checks_free(struct uva__rt *rt, struct uva__rt_data *data)
{
    struct checks *checks = uva__container_of(data, struct checks, data);

    uva__quarantine_close(checks->quarantine);
    uva__quarantine_release(checks->quarantine);
    uva__memory_free(&rt->allocator, checks, sizeof(*checks));
}

static void checks_detach(struct uva__rt *rt, struct uva__rt_data *data)
{
    (void)rt;
    uva__quarantine_close(
        uva__container_of(data, struct checks, data)->quarantine);
}

static struct uva__rt_data *checks_new(struct uva__rt *rt)
{
    struct checks *checks = uva__memory_new(&rt->allocator, sizeof(*checks));

    if (checks == NULL)
        return NULL;
    checks->data.free = checks_free;
    checks->data.detach = checks_detach;
    if (uva__handler_check_quarantine(&rt->allocator, QUARANTINE,
                                      &checks->quarantine) == 0)
        return &checks->data;
    uva__memory_free(&rt->allocator, checks, sizeof(*checks));
    return NULL;
}

int uva__check_hop_ensure(struct uva__rt *rt)
{
    return !rt->checked ||
                   uva__rt_get_data(rt, UVA__RT_DATA_CHECKS, checks_new) != NULL
               ? 0
               : ENOMEM;
}

static struct uva__quarantine *quarantine_of(const struct uva__rt *rt)
{
    return uva__container_of(
               uva__atomic_ptr_load(&rt->data[UVA__RT_DATA_CHECKS]),
               struct checks, data)
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
static void log_transcript(const struct uva__label *label,
                           const struct uva_breach *breach)
{
    const char *line = breach->transcript;
    int length;

    while (*line != '\0') {
        length = (int)strcspn(line, "\n");
        uva__rt_log(label->rt, level_of(breach->severity),
                    uva__label_text(label), breach->clause, "  after: %.*s",
                    length, line);
        line += length + (line[length] == '\n');
    }
}

static void checked_report(void *ctx, const struct uva_breach *breach)
{
    const struct uva__label *label = ctx;
    struct uva__rt *rt = label->rt;

    uva__atomic64_add(&rt->stats.peer_breaches, 1);
    if (rt->log.write == NULL) {
        uva__breach_text_plain(breach, stderr);
        return;
    }
    if (!uva__rt_try_acquire(rt))
        return; /* the host has been promised that no call comes */
    uva__rt_log(rt, level_of(breach->severity), uva__label_text(label),
                breach->clause, "%s: %s", breach->name, breach->message);
    log_transcript(label, breach);
    uva__rt_release(rt);
}

static void checked_free(void *ctx)
{
    uva__label_release(ctx);
}

/* Takes a reference to the label, which free_ctx releases. */
static struct uva_check check_of(struct uva__label *label, const char *name)
{
    return (struct uva_check){
        .report = checked_report,
        .free_ctx = checked_free,
        .ctx = uva__label_acquire(label),
        .name = name,
        .allocator = label->rt->allocator,
    };
}

static void checked_fail(struct uva__label *label, const char *name,
                         const struct uva_error *error)
{
    uva__rt_log(label->rt, UVA_LOG_WARN, uva__label_text(label), NULL,
                "%s: goes unchecked: %s", name, error->message);
    uva__label_release(label);
}

/* ---- hops --------------------------------------------------------------- */

struct ArrowAsyncDeviceStreamHandler *
uva__check_hop_handler(struct uva__label *label, const char *name,
                       struct ArrowAsyncDeviceStreamHandler *handler,
                       bool printed_layout)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct uva_error error;
    struct uva_check options;

    if (!label->rt->checked)
        return handler;
    uva__error_begin(&error);
    options = check_of(label, name);
    options.printed_layout = printed_layout;
    if (uva__handler_check(quarantine_of(label->rt), handler, &options,
                           &checked, &error) == 0)
        return checked;
    checked_fail(label, name, &error);
    return handler;
}

void uva__check_hop_stream(struct uva__label *label, const char *name,
                           struct ArrowDeviceArrayStream *stream)
{
    struct uva_error error;
    struct uva_check options;

    if (!label->rt->checked)
        return;
    uva__error_begin(&error);
    options = check_of(label, name);
    if (uva_check_device_stream(stream, &options, &error) != 0)
        checked_fail(label, name, &error);
}

const struct ArrowAsyncTask *
uva__check_hop_unwrap(const struct ArrowAsyncTask *task)
{
    return uva__checked_task_behind(task);
}
