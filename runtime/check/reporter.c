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

#include "base/error.h"
#include "base/memory.h"
#include "check/breach_text.h"
#include "check/live_structs.h"
#include "check/transcript.h"
#include "protocol/clauses.h"

enum {
    REPORTER_CLAUSES = 256, /* at most, in the table of clauses */
    REPORTER_KINDS = 16,    /* of breaches of one clause */
    REPORTER_WORDS = REPORTER_CLAUSES * REPORTER_KINDS / 64
};

struct uva__reporter {
    struct uva__atomic64 stats;
    struct uva__atomic64 breaches; /* of ERROR or worse */
    struct uva__atomic64 delays;   /* random numbers used so far */
    struct uva_check options;      /* completed; its ctx is owned */
    size_t size;                   /* of this block, with the name at its end */
    struct uva__transcript transcript;
    struct uva__live_structs live_structs;
    struct uva__quarantine quarantine; /* blocks that late calls find */
    bool once;                         /* reports each kind of breach once */
    struct uva__atomic64
        reported[REPORTER_WORDS]; /* bits of the reported kinds */
};

/* ---- start -------------------------------------------------------------- */

static int reporter_adopt(const struct uva_check *options,
                          struct uva_check *out, struct uva_error *error)
{
    *out = options == NULL ? (struct uva_check){0} : *options;
    if (!uva__memory_is_clear(out->reserved, 4))
        return uva_error_set(error, EINVAL, "check: clear the options first");
    if (uva__memory_adopt(&out->allocator, &out->allocator) != 0)
        return uva_error_set(error, EINVAL,
                             "check: give both functions of the allocator");
    if (out->name == NULL)
        out->name = "";
    return 0;
}

static const struct uva__live_structs_ops REPORTER_OPS = {
    .acquire = uva__reporter_acquire, .release = uva__reporter_release};

int uva__reporter_new(const struct uva_check *options,
                      struct uva__reporter **out, struct uva_error *error)
{
    struct uva_check adopted;
    struct uva__reporter *reporter;
    int code = reporter_adopt(options, &adopted, error);
    size_t name_size;

    if (code != 0)
        return code;
    name_size = strlen(adopted.name) + 1;
    reporter =
        uva__memory_new(&adopted.allocator, sizeof(*reporter) + name_size);
    if (reporter == NULL)
        return uva_error_set(error, ENOMEM, "check: no memory");
    memcpy(reporter + 1, adopted.name, name_size);
    reporter->options = adopted;
    reporter->options.name = (const char *)(reporter + 1);
    reporter->size = sizeof(*reporter) + name_size;
    uva__atomic64_store(&reporter->stats, 1);
    uva__live_structs_init(&reporter->live_structs, reporter, &REPORTER_OPS,
                           &reporter->options.allocator);
    uva__quarantine_init(&reporter->quarantine, &reporter->options.allocator,
                         UVA__QUARANTINE_UNLIMITED);
    *out = reporter;
    return 0;
}

const struct uva_check *
uva__reporter_options(const struct uva__reporter *reporter)
{
    return &reporter->options;
}

struct uva__live_structs *
uva__reporter_live_structs(struct uva__reporter *reporter)
{
    return &reporter->live_structs;
}

struct uva__quarantine *uva__reporter_quarantine(struct uva__reporter *reporter)
{
    return &reporter->quarantine;
}

void uva__reporter_set_once(struct uva__reporter *reporter)
{
    reporter->once = true;
}

/* ---- reports ------------------------------------------------------------ */

void uva__reporter_note(struct uva__reporter *reporter, const char *format,
                        int64_t a, int64_t b)
{
    uva__transcript_note(&reporter->transcript, format, a, b);
}

/* Reports to the user's function, or to standard error. */
static void reporter_deliver(const struct uva__reporter *reporter,
                             const struct uva_breach *breach)
{
    if (reporter->options.report != NULL)
        reporter->options.report(reporter->options.ctx, breach);
    else if (reporter->options.json)
        uva__breach_text_json(breach, stderr);
    else
        uva__breach_text_plain(breach, stderr);
}

/* Whether a breach is to be reported: with `once`, only the first of its
 * clause, severity and party is. */
static bool reporter_admits(struct uva__reporter *reporter,
                            const struct uva_breach *breach)
{
    const struct uva__clause *clause = uva__clause_find(breach->clause);
    unsigned kind = (unsigned)breach->severity * 4 + (unsigned)breach->party;
    uint64_t bit;
    int count;

    if (!reporter->once)
        return true;
    kind += REPORTER_KINDS * (unsigned)(clause - uva__clauses(&count));
    assert(count <= REPORTER_CLAUSES);
    bit = UINT64_C(1) << kind % 64;
    return (uva__atomic64_or(&reporter->reported[kind / 64], bit) & bit) == 0;
}

static void reporter_breach(struct uva__reporter *reporter,
                            struct uva_breach *breach, const char *format,
                            va_list args)
{
    char message[512], calls[UVA__TRANSCRIPT_SIZE];

    if (!reporter_admits(reporter, breach))
        return;
    (void)vsnprintf(message, sizeof(message), format, args);
    for (char *at = message; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    uva__transcript_write(&reporter->transcript, calls);
    breach->name = reporter->options.name;
    breach->message = message;
    breach->transcript = calls;
    if (breach->severity >= UVA_SEVERITY_ERROR)
        uva__atomic64_add(&reporter->breaches, 1);
    reporter_deliver(reporter, breach);
}

void uva__reporter_breach(struct uva__reporter *reporter, const char *id,
                          enum uva_party party, const char *format, ...)
{
    const struct uva__clause *clause = uva__clause_find(id);
    struct uva_breach breach = {.clause = id};
    va_list args;

    assert(clause != NULL);
    breach.severity = clause->severity;
    breach.party = party != 0 ? party : clause->party;
    va_start(args, format);
    reporter_breach(reporter, &breach, format, args);
    va_end(args);
}

void uva__reporter_breach_as(struct uva__reporter *reporter, const char *id,
                             enum uva_severity severity, const char *format,
                             ...)
{
    const struct uva__clause *clause = uva__clause_find(id);
    struct uva_breach breach = {.clause = id, .severity = severity};
    va_list args;

    assert(clause != NULL);
    breach.party = clause->party;
    va_start(args, format);
    reporter_breach(reporter, &breach, format, args);
    va_end(args);
}

int64_t uva__reporter_settle(struct uva__reporter *reporter)
{
    struct uva__live_structs_leftovers left;
    char others[64] = "";

    uva__live_structs_count_leftovers(&reporter->live_structs, &left);
    if (left.roots > 1)
        (void)snprintf(others, sizeof(others), ", and %" PRId64 " more",
                       left.roots - 1);
    if (left.roots > 0)
        uva__reporter_breach_as(
            reporter, "LC-02", UVA_SEVERITY_ERROR,
            "%s %" PRId64 " was never released%s",
            left.first->kind == UVA__LIVE_STRUCT_SCHEMA ? "schema" : "array",
            left.first->ordinal, others);
    return left.structs;
}

int64_t uva__reporter_count(const struct uva__reporter *reporter)
{
    return (int64_t)uva__atomic64_load(&reporter->breaches);
}

/* ---- delays ------------------------------------------------------------- */

/* Returns the `n`-th number of the sequence of `seed`. */
static uint64_t reporter_random(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + (n + 1) * UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

void uva__reporter_perturb(struct uva__reporter *reporter)
{
    struct timespec pause = {0};
    uint64_t random;

    if (reporter->options.perturb_seed == 0)
        return;
    random = reporter_random(reporter->options.perturb_seed,
                             uva__atomic64_add(&reporter->delays, 1));
    if (random % 8 == 0) {
        pause.tv_nsec = (long)(random >> 8 & 0x7FFF); /* up to 33 us */
        (void)nanosleep(&pause, NULL);
        return;
    }
    for (random = random % 8; random > 4; random--)
        (void)sched_yield();
}

/* ---- end ---------------------------------------------------------------- */

struct uva__reporter *uva__reporter_acquire(struct uva__reporter *reporter)
{
    const uint64_t stats = uva__atomic64_add(&reporter->stats, 1);

    assert(stats > 0);
    (void)stats;
    return reporter;
}

static void reporter_free(struct uva__reporter *reporter)
{
    const struct uva_allocator allocator = reporter->options.allocator;

    uva__quarantine_close(&reporter->quarantine);
    uva__live_structs_fini(&reporter->live_structs);
    uva__memory_free(&allocator, reporter, reporter->size);
}

void uva__reporter_free_unused(struct uva__reporter *reporter)
{
    assert(uva__atomic64_load(&reporter->stats) == 1);
    reporter_free(reporter);
}

void uva__reporter_release(struct uva__reporter *reporter)
{
    void (*free_ctx)(void *ctx) = reporter->options.free_ctx;
    void *ctx = reporter->options.ctx;

    assert(uva__atomic64_load(&reporter->stats) > 0);
    if (uva__atomic64_sub(&reporter->stats, 1) != 1)
        return;
    reporter_free(reporter);
    if (free_ctx != NULL)
        free_ctx(ctx);
}
