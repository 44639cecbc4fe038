/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  new -> calls enter and leave -> release: the maker's reference
 *              is dropped -> the last task is extracted: idle.
 *
 * What can fail: memory. Then less is checked, and nothing else changes.
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

#include "check/thread_util.h"
#include "check/live_structs.h"
#include "check/token.h"
#include "base/memory.h"
#include "base/thread.h"
#include "uvarrow/arrow.h"

enum { FINE_BELOW_MS = 50, TEXT_SIZE = 160 };

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

void uva__checked_tell_all(struct uva__checked *c,
                           const struct uva__findings *findings)
{
    char text[TEXT_SIZE];

    for (int i = 0; i < findings->count; i++) {
        const enum uva__rule rule = findings->all[i].rule;
        const struct uva__clause *clause = uva__clause_of(rule);

        checked_describe(clause->breach, findings->all[i].number, text);
        if (rule == UVA__RULE_AH_03_EARLY || rule == UVA__RULE_AH_05_ALONE)
            uva__witness_breach_as(c->witness, clause->id, clause->severity,
                                   "%s", text);
        else
            uva__witness_breach(c->witness, clause->id, checked_party(rule),
                                "%s", text);
    }
}

void uva__checked_report(struct uva__checked *c, enum uva__rule rule,
                         int64_t number)
{
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    uva__protocol_find(&c->locked.protocol, &findings, rule, number);
    uva__lock_drop(&c->lock);
    uva__checked_tell(c, &findings);
}

/* ---- a call ------------------------------------------------------------- */

struct uva__place uva__checked_enter_locked(struct uva__checked *c,
                                            struct uva__epoch *epoch)
{
    struct uva__place place;

    epoch->thread = uva__thread_self();
    place = uva__epochs_place(&c->locked.epochs, epoch->thread);
    epoch->inside = place.callback != UVA__CALL_NONE;
    if (epoch->call == UVA__CALL_REQUEST && place.within != UVA__CALL_NONE &&
        uva__call_is_callback(place.within)) {
        uva__epochs_join(place.innermost, epoch);
        return place;
    }
    uva__epochs_enter(&c->locked.epochs, epoch);
    c->locked.refs++;
    return place;
}

void uva__checked_release_now(struct uva__checked *c)
{
    struct uva__epoch epoch = {.call = UVA__CALL_RELEASE};
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    (void)uva__checked_enter_locked(c, &epoch);
    uva__lock_drop(&c->lock);
    c->real->release(c->real);
    uva__lock_take(&c->lock);
    uva__protocol_end(&c->locked.protocol, UVA__CALL_RELEASE, 0,
                      uva__epochs_calls_beside(&c->locked.epochs, &epoch),
                      &findings);
    c->locked.refs -= c->keep ? 0 : 1; /* the maker's */
    uva__checked_leave_unlock(c, &epoch, &findings);
}

void uva__checked_leave_unlock(struct uva__checked *c, struct uva__epoch *epoch,
                               const struct uva__findings *findings)
{
    bool due;

    uva__epochs_leave(&c->locked.epochs, epoch);
    due = c->locked.release_due &&
          !uva__epochs_hold_release(&c->locked.epochs, c->locked.releaser);
    c->locked.release_due = c->locked.release_due && !due;
    if (due || findings->count > 0) {
        uva__lock_drop(&c->lock);
        uva__checked_tell(c, findings);
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

    if (uva__word_peek(&c->chance) == 0)
        return false;
    x = uva__word_add(&c->chance, step) + step;
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

static void checked_configure(struct uva__checked *c,
                              void (*on_idle)(struct uva__checked *c))
{
    const struct uva_check *how = uva__witness_how(c->witness);

    c->allocator = how->allocator;
    c->slow_call_ms = how->slow_call_ms;
    c->slow_extract_ms = how->slow_extract_ms;
    c->keep = how->keep;
    c->fine_clock = how->slow_call_ms < FINE_BELOW_MS ||
                    how->slow_extract_ms < FINE_BELOW_MS;
    uva__word_store(&c->chance, how->perturb_seed);
    uva__quarantine_init(&c->copies, &c->allocator, UVA__QUARANTINE_UNLIMITED);
    c->on_idle = on_idle;
    c->locked.refs = 1;
}

int uva__checked_new(const struct uva_check *how,
                     void (*on_idle)(struct uva__checked *c),
                     struct uva__checked **out, struct uva_error *error)
{
    struct uva__witness *witness;
    struct uva__checked *c;
    int code = uva__witness_new(how, &witness, error);

    if (code != 0)
        return code;
    c = uva__memory_new_aligned(&uva__witness_how(witness)->allocator,
                                sizeof(*c), UVA__TOKEN_ALIGN);
    if (c == NULL) {
        uva__witness_undo(witness);
        return uva_error_set(error, ENOMEM, "no memory for a check");
    }
    c->witness = witness;
    uva__witness_once(witness);
    uva__ledger_hold(uva__witness_ledger(witness));
    uva__witness_release(witness); /* to which the ledger has a reference now */
    checked_configure(c, on_idle);
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
    struct uva__witness *witness = c->witness;
    struct uva__quarantine *quarantine = c->quarantine;

    uva__quarantine_close(&c->copies);
    uva_schema_release(&c->schema);
    uva__memory_free(&allocator, c, sizeof(*c));
    uva__ledger_unhold(uva__witness_ledger(witness));
    if (quarantine != NULL)
        uva__quarantine_release(quarantine);
}
