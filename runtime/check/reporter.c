/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter: keeps the transcript, reports breaches, counts its references.
 * A report takes no lock: two threads may report at once. */
#include "check/reporter.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check/breach_text.h"
#include "protocol/clauses.h"
#include "check/live_structs.h"
#include "check/transcript.h"
#include "base/memory.h"
#include "base/error.h"

#define WITNESS_SLOW_CALL_MS    1000
#define WITNESS_SLOW_EXTRACT_MS 100

enum {
    WITNESS_CLAUSES = 256, /* at most, in the table of clauses */
    WITNESS_KINDS = 16,    /* of breaches of one clause */
    WITNESS_TOLD = WITNESS_CLAUSES * WITNESS_KINDS / 64
};

struct uva__witness {
    struct uva__word counts;
    struct uva__word breaches; /* of ERROR or worse */
    struct uva__word delays;   /* random numbers used so far */
    struct uva_check how;      /* completed; its ctx is owned */
    size_t size;               /* of this block, with the name at its end */
    struct uva__transcript transcript;
    struct uva__ledger ledger;
    struct uva__quarantine quarantine;   /* blocks that late calls find */
    bool once;                           /* reports each kind of breach once */
    struct uva__word told[WITNESS_TOLD]; /* bits of the reported kinds */
};

/* ---- start -------------------------------------------------------------- */

static int witness_adopt(const struct uva_check *how, struct uva_check *out,
                         struct uva_error *error)
{
    *out = how == NULL ? (struct uva_check){0} : *how;
    if (!uva__memory_is_clear(out->reserved, 4))
        return uva_error_set(error, EINVAL, "check: clear the options first");
    if (out->slow_call_ms < 0 || out->slow_extract_ms < 0)
        return uva_error_set(error, EINVAL, "check: a time is negative");
    if (uva__memory_adopt(&out->allocator, &out->allocator) != 0)
        return uva_error_set(error, EINVAL,
                             "check: give both functions of the allocator");
    if (out->name == NULL)
        out->name = "";
    if (out->slow_call_ms == 0)
        out->slow_call_ms = WITNESS_SLOW_CALL_MS;
    if (out->slow_extract_ms == 0)
        out->slow_extract_ms = WITNESS_SLOW_EXTRACT_MS;
    return 0;
}

static const struct uva__ledger_ops WITNESS_LEDGER_OPS = {
    .acquire = uva__witness_acquire, .release = uva__witness_release};

int uva__witness_new(const struct uva_check *how, struct uva__witness **out,
                     struct uva_error *error)
{
    struct uva_check adopted;
    struct uva__witness *witness;
    int code = witness_adopt(how, &adopted, error);
    size_t name_size;

    if (code != 0)
        return code;
    name_size = strlen(adopted.name) + 1;
    witness = uva__memory_new(&adopted.allocator, sizeof(*witness) + name_size);
    if (witness == NULL)
        return uva_error_set(error, ENOMEM, "check: no memory");
    memcpy(witness + 1, adopted.name, name_size);
    witness->how = adopted;
    witness->how.name = (const char *)(witness + 1);
    witness->size = sizeof(*witness) + name_size;
    uva__word_store(&witness->counts, 1);
    uva__ledger_init(&witness->ledger, witness, &WITNESS_LEDGER_OPS,
                     &witness->how.allocator);
    uva__quarantine_init(&witness->quarantine, &witness->how.allocator,
                         UVA__QUARANTINE_UNLIMITED);
    *out = witness;
    return 0;
}

const struct uva_check *uva__witness_how(const struct uva__witness *witness)
{
    return &witness->how;
}

struct uva__ledger *uva__witness_ledger(struct uva__witness *witness)
{
    return &witness->ledger;
}

struct uva__quarantine *uva__witness_quarantine(struct uva__witness *witness)
{
    return &witness->quarantine;
}

void uva__witness_once(struct uva__witness *witness)
{
    witness->once = true;
}

/* ---- reports ------------------------------------------------------------ */

void uva__witness_note(struct uva__witness *witness, const char *format,
                       int64_t a, int64_t b)
{
    uva__transcript_note(&witness->transcript, format, a, b);
}

/* Reports to the user's function, or to standard error. */
static void witness_tell(const struct uva__witness *witness,
                         const struct uva_breach *breach)
{
    if (witness->how.report != NULL)
        witness->how.report(witness->how.ctx, breach);
    else if (witness->how.json)
        uva__breach_line_json(breach, stderr);
    else
        uva__breach_line_plain(breach, stderr);
}

/* Whether a breach is to be reported: with `once`, only the first of its
 * clause, severity and party is. */
static bool witness_admits(struct uva__witness *witness,
                           const struct uva_breach *breach)
{
    const struct uva__clause *clause = uva__clause_find(breach->clause);
    unsigned kind = (unsigned)breach->severity * 4 + (unsigned)breach->party;
    uint64_t bit;
    int count;

    if (!witness->once)
        return true;
    kind += WITNESS_KINDS * (unsigned)(clause - uva__clauses(&count));
    assert(count <= WITNESS_CLAUSES);
    bit = UINT64_C(1) << kind % 64;
    return (uva__word_or(&witness->told[kind / 64], bit) & bit) == 0;
}

static void witness_breach(struct uva__witness *witness,
                           struct uva_breach *breach, const char *format,
                           va_list args)
{
    char message[512], calls[UVA__TRANSCRIPT_SIZE];

    if (!witness_admits(witness, breach))
        return;
    (void)vsnprintf(message, sizeof(message), format, args);
    for (char *at = message; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    uva__transcript_write(&witness->transcript, calls);
    breach->name = witness->how.name;
    breach->message = message;
    breach->transcript = calls;
    if (breach->severity >= UVA_SEVERITY_ERROR)
        uva__word_add(&witness->breaches, 1);
    witness_tell(witness, breach);
}

void uva__witness_breach(struct uva__witness *witness, const char *id,
                         enum uva_party party, const char *format, ...)
{
    const struct uva__clause *clause = uva__clause_find(id);
    struct uva_breach breach = {.clause = id};
    va_list args;

    assert(clause != NULL);
    breach.severity = clause->severity;
    breach.party = party != 0 ? party : clause->party;
    va_start(args, format);
    witness_breach(witness, &breach, format, args);
    va_end(args);
}

void uva__witness_breach_as(struct uva__witness *witness, const char *id,
                            enum uva_severity severity, const char *format, ...)
{
    const struct uva__clause *clause = uva__clause_find(id);
    struct uva_breach breach = {.clause = id, .severity = severity};
    va_list args;

    assert(clause != NULL);
    breach.party = clause->party;
    va_start(args, format);
    witness_breach(witness, &breach, format, args);
    va_end(args);
}

int64_t uva__witness_settle(struct uva__witness *witness)
{
    struct uva__ledger_leftovers left;
    char others[64] = "";

    uva__ledger_count_leftovers(&witness->ledger, &left);
    if (left.roots > 1)
        (void)snprintf(others, sizeof(others), ", and %" PRId64 " more",
                       left.roots - 1);
    if (left.roots > 0)
        uva__witness_breach_as(witness, "LC-02", UVA_SEVERITY_ERROR,
                               "%s %" PRId64 " was never released%s",
                               left.first->kind == UVA__LEDGER_SCHEMA ? "schema"
                                                                      : "array",
                               left.first->ordinal, others);
    return left.structs;
}

int64_t uva__witness_count(const struct uva__witness *witness)
{
    return (int64_t)uva__word_load(&witness->breaches);
}

/* ---- delays ------------------------------------------------------------- */

/* Returns the `n`-th number of the sequence of `seed`. */
static uint64_t witness_random(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + (n + 1) * UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

void uva__witness_perturb(struct uva__witness *witness)
{
    struct timespec pause = {0};
    uint64_t random;

    if (witness->how.perturb_seed == 0)
        return;
    random = witness_random(witness->how.perturb_seed,
                            uva__word_add(&witness->delays, 1));
    if (random % 8 == 0) {
        pause.tv_nsec = (long)(random >> 8 & 0x7FFF); /* up to 33 us */
        (void)nanosleep(&pause, NULL);
        return;
    }
    for (random = random % 8; random > 4; random--)
        (void)sched_yield();
}

/* ---- end ---------------------------------------------------------------- */

struct uva__witness *uva__witness_acquire(struct uva__witness *witness)
{
    const uint64_t counts = uva__word_add(&witness->counts, 1);

    assert(counts > 0);
    (void)counts;
    return witness;
}

static void witness_free(struct uva__witness *witness)
{
    const struct uva_allocator allocator = witness->how.allocator;

    uva__quarantine_close(&witness->quarantine);
    uva__ledger_fini(&witness->ledger);
    uva__memory_free(&allocator, witness, witness->size);
}

void uva__witness_undo(struct uva__witness *witness)
{
    assert(uva__word_load(&witness->counts) == 1);
    witness_free(witness);
}

void uva__witness_release(struct uva__witness *witness)
{
    void (*free_ctx)(void *ctx) = witness->how.free_ctx;
    void *ctx = witness->how.ctx;

    assert(uva__word_load(&witness->counts) > 0);
    if (uva__word_sub(&witness->counts, 1) != 1)
        return;
    witness_free(witness);
    if (free_ctx != NULL)
        free_ctx(ctx);
}
