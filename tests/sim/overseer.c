/* SPDX-License-Identifier: Apache-2.0 */
/* One check in four; its memory is the arena's, so it is in the books too. */
#include "sim/overseer.h"

#include <string.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/check.h"

struct overseer {
    enum uva_party excused;
};

static bool is_hostile;

void overseer_begin(bool hostile)
{
    is_hostile = hostile;
}

/* The program's own cancel of a driven stream is an error to the handler, and
 * may be on its way when the handler cancels: that looks like a breach. And
 * without memory a task passes unwatched, so its failure is not known. */
static bool breach_may_be(const struct uva_breach *breach)
{
    return is_hostile || strcmp(breach->clause, "AP-16") == 0 ||
           (arena_has_failed() && strcmp(breach->clause, "AH-33") == 0);
}

static void told(void *ctx, const struct uva_breach *breach)
{
    const struct overseer *overseer = ctx;

    story_note("checker: %s, severity %d, party %d: %s", breach->clause,
               (int)breach->severity, (int)breach->party, breach->message);
    if (breach->severity < UVA_SEVERITY_ERROR ||
        breach->party == overseer->excused || breach_may_be(breach))
        return;
    sim_fail("checker: %s: %s", breach->clause, breach->message);
}

static struct uva_check check_draw(enum uva_party excused)
{
    struct overseer *overseer = arena_new(sizeof(*overseer), "an overseer");

    overseer->excused = excused;
    return (struct uva_check){.report = told,
                              .free_ctx = arena_free_ctx,
                              .ctx = overseer,
                              .deep = peers_chance(1, 2),
                              .allocator = arena_allocator()};
}

struct ArrowAsyncDeviceStreamHandler *
overseer_handler(struct ArrowAsyncDeviceStreamHandler *handler,
                 enum uva_party excused)
{
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct uva_check how;

    if (!peers_chance(1, 4))
        return handler;
    how = check_draw(excused);
    story_note("a check of a handler");
    if (uva_check_handler(handler, &how, &checked, NULL) == 0)
        return checked;
    arena_free(how.ctx);
    return handler;
}

void overseer_blocking(struct ArrowDeviceArrayStream *stream)
{
    struct uva_check how;

    if (!peers_chance(1, 4))
        return;
    how = check_draw(0);
    story_note("a check of a blocking stream");
    if (uva_check_blocking(stream, &how, NULL) != 0)
        arena_free(how.ctx);
}
