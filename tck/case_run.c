/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, transcript lines and waits. A thread that loses the race for the
 * verdict sleeps until the winner has ended the process. */
#include "tck/case_run.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tck/cases.h"

/* After a wait that failed, the next ones last wait_ms >> (failed waits *
 * SHORTER), but at least TURNS turns of TURN_MS. */
enum { TURNS = 40, TURN_MS = 5, SHORTER = 2 };

int64_t uva__case_run_now_ms(void)
{
    return (int64_t)(uva__clock_ns() / 1000000);
}

void uva__case_run_clean(char *text)
{
    for (; *text != '\0'; text++)
        if ((*text < ' ' && *text != '\n') || *text > '~')
            *text = '?';
}

/* ---- lines -------------------------------------------------------------- */

/* Returns a short number for the thread. */
static unsigned case_run_thread_number(void)
{
    return (unsigned)(((uintptr_t)(void *)pthread_self() >> 12) & 0xfff);
}

static void case_run_write(struct uva__case_run *run, char *text)
{
    struct uva__case_run_page *page = run->page;
    uint64_t n;

    uva__case_run_clean(text);
    uva__lock_take(&run->writing);
    n = uva__atomic64_load(&page->lines);
    (void)snprintf(page->line[n % UVA__CASE_RUN_LINES], UVA__CASE_RUN_LINE,
                   "%5" PRId64 " ms  %03x  %.130s",
                   uva__case_run_now_ms() - run->began_ms,
                   case_run_thread_number(), text);
    uva__atomic64_store(&page->lines, n + 1);
    uva__lock_drop(&run->writing);
}

void uva__case_run_note(struct uva__case_run *run, const char *format, ...)
{
    char text[UVA__CASE_RUN_LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    case_run_write(run, text);
}

void uva__case_run_page_join(struct uva__case_run_page *page, uint64_t end,
                             char *to, size_t size)
{
    const uint64_t lines = uva__atomic64_load(&page->lines);
    const uint64_t most = (size - 1) / UVA__CASE_RUN_LINE;
    uint64_t n = end > most ? end - most : 0;
    size_t used = 0;

    if (lines > UVA__CASE_RUN_LINES && n < lines - UVA__CASE_RUN_LINES)
        n = lines - UVA__CASE_RUN_LINES;
    to[0] = '\0';
    for (; n < end && n < lines; n++) {
        char *line = page->line[n % UVA__CASE_RUN_LINES];

        line[UVA__CASE_RUN_LINE - 1] = '\0';
        used += (size_t)snprintf(to + used, size - used, "%s%s",
                                 used > 0 ? "\n" : "", line);
    }
}

/* ---- verdicts ----------------------------------------------------------- */

static noreturn void case_run_end(struct uva__case_run *run,
                                  enum uva__case_run_state state,
                                  const char *text)
{
    uint64_t was = UVA__CASE_RUN_RUNS;

    if (!uva__atomic64_cas(&run->page->state, &was, UVA__CASE_RUN_CLAIMED))
        for (;;)
            (void)pause();
    (void)snprintf(run->page->message, UVA__CASE_RUN_MESSAGE, "%s", text);
    uva__case_run_clean(run->page->message);
    uva__atomic64_store(&run->page->state, state);
    _exit(0);
}

void uva__case_run_fail(struct uva__case_run *run, const char *format, ...)
{
    char text[UVA__CASE_RUN_MESSAGE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    case_run_end(run, UVA__CASE_RUN_BROKEN, text);
}

void uva__case_run_skip(struct uva__case_run *run, const char *format, ...)
{
    char text[UVA__CASE_RUN_MESSAGE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    case_run_end(run, UVA__CASE_RUN_SKIPPED, text);
}

void uva__case_run_hold(struct uva__case_run *run)
{
    if (uva__atomic64_load(&run->played) == 0 &&
        uva__atomic64_load(&run->skipped) > 0)
        case_run_end(run, UVA__CASE_RUN_SKIPPED,
                     "the subject cannot follow the plan that this needs");
    case_run_end(run, UVA__CASE_RUN_HELD, "");
}

/* Returns the record of a clause, a new one for its first breach. If there are
 * too many clauses, the last one stands for all further ones. */
static struct uva__case_run_breach *
case_run_breach_locked(struct uva__case_run_page *page, const char *clause)
{
    const uint64_t count = uva__atomic64_load(&page->breached);
    uint64_t n;

    for (n = 0; n < count; n++)
        if (strcmp(page->breaches[n].clause, clause) == 0)
            return &page->breaches[n];
    if (n == UVA__CASE_RUN_BREACHES)
        return &page->breaches[n - 1];
    (void)snprintf(page->breaches[n].clause, sizeof(page->breaches[n].clause),
                   "%s", clause);
    uva__atomic64_store(&page->breached, n + 1);
    return &page->breaches[n];
}

/* Whether a breach decides the case: a recommendation does not fail a required
 * case. */
static bool case_run_decides(const struct uva__case_run *run,
                             const char *clause, bool required)
{
    return strcmp(run->clause, clause) == 0 &&
           (required || strncmp(run->what->name, "required_", 9) != 0);
}

static void case_run_count_breach(struct uva__case_run *run, const char *clause,
                                  bool required, const char *text)
{
    struct uva__case_run_breach *breach;

    if (case_run_decides(run, clause, required))
        uva__case_run_fail(run, "%s: %s", clause, text);
    uva__case_run_note(run, "!! %s broken: %s", clause, text);
    uva__lock_take(&run->writing);
    breach = case_run_breach_locked(run->page, clause);
    if (breach->count++ == 0) {
        (void)snprintf(breach->text, sizeof(breach->text), "%s", text);
        uva__case_run_clean(breach->text);
        uva__case_run_page_join(run->page,
                                uva__atomic64_load(&run->page->lines),
                                breach->transcript, sizeof(breach->transcript));
    }
    breach->required |= required;
    uva__lock_drop(&run->writing);
}

void uva__case_run_breach(struct uva__case_run *run, const char *clause,
                          const char *format, ...)
{
    char text[UVA__CASE_RUN_LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    case_run_count_breach(
        run, clause,
        uva__cases_level(run->role, clause) != UVA__CASES_RECOMMENDED, text);
}

void uva__case_run_shortfall(struct uva__case_run *run, const char *clause,
                             const char *format, ...)
{
    char text[UVA__CASE_RUN_LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    case_run_count_breach(run, clause, false, text);
}

/* ---- waits -------------------------------------------------------------- */

/* Waits until `fn` returns true or the clock reaches `limit_ms`. It also polls
 * from time to time, for changes without a wake-up. */
static bool case_run_until(struct uva__case_run *run, uva__case_run_fn *fn,
                           void *ctx, int64_t limit_ms)
{
    for (;;) {
        const uint32_t seen = uva__futex_now(&run->changed);
        const int64_t left_ms = limit_ms - uva__case_run_now_ms();

        if (fn(ctx))
            return true;
        if (left_ms <= 0)
            return false;
        (void)uva__futex_wait(&run->changed, seen, left_ms < 5 ? left_ms : 5);
    }
}

/* Waits for some turns of this thread instead of a time, because a busy machine
 * makes the subject's threads and this one late alike. */
static bool case_run_turns(struct uva__case_run *run, uva__case_run_fn *fn,
                           void *ctx)
{
    bool met = fn(ctx);

    for (int turn = 0; turn < TURNS && !met; turn++)
        met = case_run_until(run, fn, ctx, uva__case_run_now_ms() + TURN_MS);
    return met;
}

/* The turns are for a machine that was stopped for longer than the limit. */
bool uva__case_run_soon(struct uva__case_run *run, uva__case_run_fn *fn,
                        void *ctx)
{
    return case_run_until(run, fn, ctx,
                          uva__case_run_now_ms() + run->wait_ms) ||
           case_run_turns(run, fn, ctx);
}

bool uva__case_run_soon_again(struct uva__case_run *run, uva__case_run_fn *fn,
                              void *ctx)
{
    const int64_t limit_ms = run->wait_ms >> run->failed_waits * SHORTER;
    const bool met =
        (limit_ms > TURNS * TURN_MS &&
         case_run_until(run, fn, ctx, uva__case_run_now_ms() + limit_ms)) ||
        case_run_turns(run, fn, ctx);

    run->failed_waits += !met && run->failed_waits < 15;
    return met;
}

void uva__case_run_await(struct uva__case_run *run, uva__case_run_fn *fn,
                         void *ctx, const char *what)
{
    if (!uva__case_run_soon(run, fn, ctx))
        uva__case_run_fail(run, "%s did not come within %" PRId64 " ms", what,
                           run->wait_ms);
}

bool uva__case_run_quiet(struct uva__case_run *run, uva__case_run_fn *fn,
                         void *ctx)
{
    return !case_run_until(run, fn, ctx,
                           uva__case_run_now_ms() + run->quiet_ms);
}

void uva__case_run_changed(struct uva__case_run *run)
{
    uva__futex_raise(&run->changed);
}

/* ---- resources ---------------------------------------------------------- */

void uva__case_run_thread(struct uva__case_run *run, void *(*fn)(void *),
                          void *ctx)
{
    pthread_t thread;
    const int code = pthread_create(&thread, NULL, fn, ctx);

    if (code != 0)
        uva__case_run_fail(run, "no thread to be had: %s", strerror(code));
    (void)pthread_detach(thread);
}

void *uva__case_run_alloc(struct uva__case_run *run, size_t size)
{
    void *block = calloc(1, size);

    if (block == NULL)
        uva__case_run_fail(run, "out of memory");
    return block;
}

bool uva__case_run_can(struct uva__case_run *run, int code, bool always,
                       const char *what)
{
    if (code == UVA_SUBJECT_CANNOT && !always) {
        uva__case_run_note(run, "%s: the subject cannot", what);
        (void)uva__atomic64_add(&run->skipped, 1);
        return false;
    }
    if (code == UVA_SUBJECT_CANNOT)
        uva__case_run_fail(run,
                           "%s returned -1, UVA_SUBJECT_CANNOT, for a plan "
                           "that every subject can",
                           what);
    if (code != 0)
        uva__case_run_fail(run, "%s returned %d (%s)", what, code,
                           uva_error_name(code));
    (void)uva__atomic64_add(&run->played, 1);
    return true;
}
