/* SPDX-License-Identifier: Apache-2.0 */
/* Checks one hop in four. The checker allocates from the arena, so leaks of it
 * are found, too. */
#include "sim/monitor.h"

#include <string.h>

#include "protocol/clauses.h"
#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/check.h"

struct monitor {
    enum uva_party excused;
};

static bool is_hostile;
static bool is_excused[UVA_PARTY_EITHER + 1];

void monitor_begin(bool hostile)
{
    is_hostile = hostile;
    memset(is_excused, 0, sizeof(is_excused));
}

void monitor_excuse(enum uva_party party)
{
    is_excused[party] = true;
}

/* Returns whether the clause may be broken here. Without memory, a task passes
 * unchecked, so its failure is not known. */
static bool breach_may_be(const char *clause)
{
    return is_hostile || (arena_has_failed() && strcmp(clause, "AH-33") == 0);
}

static void report_breach(void *ctx, const struct uva_breach *breach)
{
    const struct monitor *monitor = ctx;

    expectation_note("checker: %s, severity %d, party %d: %s", breach->clause,
                     (int)breach->severity, (int)breach->party,
                     breach->message);
    if (breach->severity < UVA_SEVERITY_ERROR ||
        breach->party == monitor->excused || breach_may_be(breach->clause))
        return;
    sim_fail("checker: %s: %s", breach->clause, breach->message);
}

static void log_write(void *ctx, const struct uva_log_record *record)
{
    const struct uva__clause *clause;

    (void)ctx;
    expectation_note("log: %d, %s: %s", (int)record->level,
                     record->clause != NULL ? record->clause : "",
                     record->message);
    if (record->clause == NULL || record->level != UVA_LOG_ERROR)
        return;
    clause = uva__clause_find(record->clause);
    if (clause == NULL ||
        !(is_excused[clause->party] || breach_may_be(clause->id)))
        sim_fail("log: %s: %s", record->clause, record->message);
}

struct uva_log monitor_log(void)
{
    return (struct uva_log){.write = log_write};
}

static struct uva_check check_draw(enum uva_party excused)
{
    struct monitor *monitor = arena_new(sizeof(*monitor), "a monitor");

    monitor->excused = excused;
    return (struct uva_check){.report = report_breach,
                              .free_ctx = arena_free_ctx,
                              .ctx = monitor,
                              .deep = peers_chance(1, 2),
                              .allocator = arena_allocator()};
}

struct ArrowAsyncDeviceStreamHandler *
monitor_handler(struct ArrowAsyncDeviceStreamHandler *handler,
                enum uva_party excused)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct uva_check options;

    if (!peers_chance(1, 4))
        return handler;
    options = check_draw(excused);
    expectation_note("a check of a handler");
    if (uva_check_handler(handler, &options, &checked, NULL) == 0)
        return checked;
    arena_free(options.ctx);
    return handler;
}

void monitor_blocking(struct ArrowDeviceArrayStream *stream)
{
    struct uva_check options;

    if (!peers_chance(1, 4))
        return;
    options = check_draw(0);
    expectation_note("a check of a blocking stream");
    if (uva_check_device_stream(stream, &options, NULL) != 0)
        arena_free(options.ctx);
}
