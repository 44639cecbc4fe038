/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  new -> calls enter and leave -> release: the maker's reference
 *              is dropped -> the last task is extracted: idle.
 *
 * Failures: memory. Then less is checked, without further effect.
 *
 * A release during other callbacks would free the consumer while they run: it
 * is reported, and made when they have returned.
 *
 * Late calls find the stream as long as a reference is held: with `keep`, until
 * conclude; in a quarantine, for a while longer. Otherwise they are as safe as
 * the two sides are without a check: a quarantine for the whole process would
 * be the library's only global state, and hold blocks of allocators that are
 * gone. */
#include "check/checked_stream.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "check/checker_host.h"
#include "check/live_structs.h"
#include "check/tagged_pointer.h"
#include "uvarrow/arrow.h"

enum {
    SLOW_CALL_MS = 1000, /* the usual limits of time */
    SLOW_EXTRACT_MS = 100,
    FINE_BELOW_MS = 50,
    TEXT_SIZE = 160
};

/* ---- reports ------------------------------------------------------------ */

/* Writes the text of a breach with its number. */
static void checked_describe(const char *breach, int64_t number,
                             char text[TEXT_SIZE])
{
    const char *mark = strchr(breach, '#');

    if (mark == NULL)
        (void)snprintf(text, TEXT_SIZE, "%s", breach);
    else
        (void)snprintf(text, TEXT_SIZE, "%.*s%lld%s", (int)(mark - breach),
                       breach, (long long)number, mark + 1);
}

/* The party that breaks a clause which binds both; 0: the clause's own. */
static enum uva_party checked_party(enum uva__rule rule)
{
    switch (rule) {
    case UVA__RULE_AB_17:
    case UVA__RULE_AB_19:
    case UVA__RULE_ER_05:
        return UVA_PARTY_PRODUCER;
    default:
        return (enum uva_party)0;
    }
}

void uva__checked_report_findings(struct uva__checked *c,
                                  const struct uva__findings *findings)
{
    char text[TEXT_SIZE];

    for (int i = 0; i < findings->count; i++) {
        const enum uva__rule rule = findings->all[i].rule;
        const struct uva__clause *clause = uva__clause_of(rule);

        checked_describe(clause->breach, findings->all[i].number, text);
        if (rule == UVA__RULE_AH_03_EARLY || rule == UVA__RULE_AH_05_ALONE)
            uva__reporter_breach_as(c->reporter, clause->id, clause->severity,
                                    "%s", text);
        else
            uva__reporter_breach(c->reporter, clause->id, checked_party(rule),
                                 "%s", text);
    }
}

void uva__checked_report(struct uva__checked *c, enum uva__rule rule,
                         int64_t number)
{
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    uva__checker_state_find(&c->locked.protocol, &findings, rule, number);
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
}

/* ---- a call ------------------------------------------------------------- */

struct uva__call_context
uva__checked_enter_locked(struct uva__checked *c,
                          struct uva__active_call *active_call)
{
    struct uva__call_context context;

    active_call->thread = uva__thread_self();
    context =
        uva__active_calls_context(&c->locked.active_calls, active_call->thread);
    active_call->inside = context.callback != UVA__CALL_NONE;
    if (active_call->call == UVA__CALL_REQUEST &&
        context.within != UVA__CALL_NONE &&
        uva__call_is_callback(context.within)) {
        uva__active_calls_join(context.innermost, active_call);
        return context;
    }
    uva__active_calls_enter(&c->locked.active_calls, active_call);
    c->locked.refs++;
    return context;
}

void uva__checked_release_now(struct uva__checked *c)
{
    struct uva__active_call active_call = {.call = UVA__CALL_RELEASE};
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    (void)uva__checked_enter_locked(c, &active_call);
    uva__lock_drop(&c->lock);
    c->real->release(c->real);
    uva__lock_take(&c->lock);
    uva__checker_state_end(
        &c->locked.protocol, UVA__CALL_RELEASE, 0,
        uva__active_calls_calls_beside(&c->locked.active_calls, &active_call),
        &findings);
    c->locked.refs -= c->keep ? 0 : 1; /* the maker's */
    uva__checked_leave_unlock(c, &active_call, &findings);
}

void uva__checked_leave_unlock(struct uva__checked *c,
                               struct uva__active_call *active_call,
                               const struct uva__findings *findings)
{
    bool due;

    uva__active_calls_leave(&c->locked.active_calls, active_call);
    due = c->locked.release_due &&
          !uva__active_calls_hold_release(&c->locked.active_calls,
                                          c->locked.releaser);
    c->locked.release_due = c->locked.release_due && !due;
    if (due || findings->count > 0) {
        uva__lock_drop(&c->lock);
        uva__checked_report_all(c, findings);
        if (due)
            uva__checked_release_now(c);
        uva__lock_take(&c->lock);
    }
    uva__checked_drop_unlock(c);
}

/* ---- helpers ------------------------------------------------------------ */

bool uva__checked_chance(struct uva__checked *c, uint64_t odds)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x;

    if (uva__atomic64_peek(&c->chance) == 0)
        return false;
    x = uva__atomic64_add(&c->chance, step) + step;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % odds == 0;
}

int uva__checked_metadata(const char *block, size_t *size,
                          struct uva__findings *seen)
{
    int32_t pairs;
    int code;

    *size = 0;
    if (block == NULL)
        return 0;
    code = uva_metadata_size(block, size);
    memcpy(&pairs, block, sizeof(pairs));
    if (code == EINVAL)
        uva__findings_add(seen, UVA__RULE_MD_05, 0);
    else if (code != 0)
        uva__findings_add(seen, UVA__RULE_MD_09, 0);
    else if (pairs == 0)
        uva__findings_add(seen, UVA__RULE_MD_02, 0);
    return code;
}

/* ---- life --------------------------------------------------------------- */

static struct uva__check_times
times_complete(const struct uva__check_times *times)
{
    struct uva__check_times out =
        times != NULL ? *times : (struct uva__check_times){0};

    if (out.slow_call_ms == 0)
        out.slow_call_ms = SLOW_CALL_MS;
    if (out.slow_extract_ms == 0)
        out.slow_extract_ms = SLOW_EXTRACT_MS;
    return out;
}

static void checked_configure(struct uva__checked *c,
                              const struct uva__check_times *times,
                              void (*on_idle)(struct uva__checked *c))
{
    const struct uva_check *options = uva__reporter_options(c->reporter);

    c->allocator = options->allocator;
    c->times = times_complete(times);
    c->keep = options->keep;
    c->printed_layout = options->printed_layout;
    c->fine_clock = c->times.slow_call_ms < FINE_BELOW_MS ||
                    c->times.slow_extract_ms < FINE_BELOW_MS;
    uva__atomic64_store(&c->chance, options->perturb_seed);
    uva__quarantine_init(&c->copies, &c->allocator, UVA__QUARANTINE_UNLIMITED);
    c->on_idle = on_idle;
    c->locked.refs = 1;
}

int uva__checked_new(const struct uva_check *options,
                     const struct uva__check_times *times,
                     void (*on_idle)(struct uva__checked *c),
                     struct uva__checked **out, struct uva_error *error)
{
    struct uva__reporter *reporter;
    struct uva__checked *c;
    int code = uva__reporter_new(options, &reporter, error);

    if (code != 0)
        return code;
    c = uva__memory_new_aligned(&uva__reporter_options(reporter)->allocator,
                                sizeof(*c), UVA__TAGGED_POINTER_ALIGN);
    if (c == NULL) {
        uva__reporter_free_unused(reporter);
        return uva_error_set(error, ENOMEM, "no memory for a check");
    }
    c->reporter = reporter;
    uva__reporter_set_once(reporter);
    uva__live_structs_hold(uva__reporter_live_structs(reporter));
    uva__reporter_release(
        reporter); /* to which the live structs have a reference now */
    checked_configure(c, times, on_idle);
    *out = c;
    return 0;
}

void uva__checked_drop_unlock(struct uva__checked *c)
{
    const bool last = --c->locked.refs == 0 && !c->locked.idle;

    c->locked.idle |= last;
    uva__lock_drop(&c->lock);
    if (last)
        c->on_idle(c);
}

bool uva__checked_expire(struct uva__checked *c)
{
    bool empty;

    uva__lock_take(&c->lock);
    c->locked.idle = false;
    empty = c->locked.refs == 0;
    uva__lock_drop(&c->lock);
    return empty;
}

void uva__checked_free(struct uva__checked *c)
{
    const struct uva_allocator allocator = c->allocator;
    struct uva__reporter *reporter = c->reporter;
    struct uva__quarantine *quarantine = c->quarantine;

    uva__quarantine_close(&c->copies);
    uva_schema_release(&c->schema);
    uva__memory_free(&allocator, c, sizeof(*c));
    uva__live_structs_unhold(uva__reporter_live_structs(reporter));
    if (quarantine != NULL)
        uva__quarantine_release(quarantine);
}
