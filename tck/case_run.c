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

void uva__trial_clause(const char *name, char clause[8])
{
    const char *id = strchr(name, '_') + 1;
    const size_t size = strcspn(id, "_");

    (void)snprintf(clause, 8, "%.2s-%.*s", id, (int)size - 2, id + 2);
}

int64_t uva__trial_now_ms(void)
{
    return (int64_t)(uva__clock_ns() / 1000000);
}

void uva__trial_clean(char *text)
{
    for (; *text != '\0'; text++)
        if ((*text < ' ' && *text != '\n') || *text > '~')
            *text = '?';
}

/* ---- lines -------------------------------------------------------------- */

/* Returns a short number for the thread. */
static unsigned trial_thread_number(void)
{
    return (unsigned)(((uintptr_t)(void *)pthread_self() >> 12) & 0xfff);
}

static void trial_write(struct uva__trial *trial, char *text)
{
    struct uva__trial_page *page = trial->page;
    uint64_t n;

    uva__trial_clean(text);
    uva__lock_take(&trial->writing);
    n = uva__word_load(&page->lines);
    (void)snprintf(page->line[n % UVA__TRIAL_LINES], UVA__TRIAL_LINE,
                   "%5" PRId64 " ms  %03x  %.130s",
                   uva__trial_now_ms() - trial->began_ms, trial_thread_number(),
                   text);
    uva__word_store(&page->lines, n + 1);
    uva__lock_drop(&trial->writing);
}

void uva__trial_note(struct uva__trial *trial, const char *format, ...)
{
    char text[UVA__TRIAL_LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trial_write(trial, text);
}

/* ---- verdicts ----------------------------------------------------------- */

static noreturn void trial_end(struct uva__trial *trial,
                               enum uva__trial_state state, const char *text)
{
    uint64_t was = UVA__TRIAL_RUNS;

    if (!uva__word_cas(&trial->page->state, &was, UVA__TRIAL_SPEAKS))
        for (;;)
            (void)pause();
    (void)snprintf(trial->page->message, UVA__TRIAL_MESSAGE, "%s", text);
    uva__trial_clean(trial->page->message);
    uva__word_store(&trial->page->state, state);
    _exit(0);
}

void uva__trial_fail(struct uva__trial *trial, const char *format, ...)
{
    char text[UVA__TRIAL_MESSAGE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trial_end(trial, UVA__TRIAL_BROKEN, text);
}

void uva__trial_skip(struct uva__trial *trial, const char *format, ...)
{
    char text[UVA__TRIAL_MESSAGE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trial_end(trial, UVA__TRIAL_SKIPPED, text);
}

void uva__trial_hold(struct uva__trial *trial)
{
    if (uva__word_load(&trial->played) == 0 &&
        uva__word_load(&trial->skipped) > 0)
        trial_end(trial, UVA__TRIAL_SKIPPED,
                  "the subject cannot follow the plan that this needs");
    trial_end(trial, UVA__TRIAL_HELD, "");
}

void uva__trial_breach(struct uva__trial *trial, const char *clause,
                       const char *format, ...)
{
    char text[UVA__TRIAL_LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (strcmp(trial->clause, clause) == 0)
        uva__trial_fail(trial, "%s: %s", clause, text);
    uva__trial_note(trial, "!! %s broken: %s", clause, text);
}

/* ---- waits -------------------------------------------------------------- */

/* Waits until `fn` returns true or the clock reaches `limit_ms`. It also polls
 * from time to time, for changes without a wake-up. */
static bool trial_until(struct uva__trial *trial, uva__trial_fn *fn, void *ctx,
                        int64_t limit_ms)
{
    for (;;) {
        const uint32_t seen = uva__signal_now(&trial->changed);
        const int64_t left_ms = limit_ms - uva__trial_now_ms();

        if (fn(ctx))
            return true;
        if (left_ms <= 0)
            return false;
        (void)uva__signal_wait(&trial->changed, seen,
                               left_ms < 5 ? left_ms : 5);
    }
}

bool uva__trial_soon(struct uva__trial *trial, uva__trial_fn *fn, void *ctx)
{
    return trial_until(trial, fn, ctx, uva__trial_now_ms() + trial->wait_ms);
}

void uva__trial_await(struct uva__trial *trial, uva__trial_fn *fn, void *ctx,
                      const char *what)
{
    if (!uva__trial_soon(trial, fn, ctx))
        uva__trial_fail(trial, "%s did not come within %" PRId64 " ms", what,
                        trial->wait_ms);
}

bool uva__trial_quiet(struct uva__trial *trial, uva__trial_fn *fn, void *ctx)
{
    return !trial_until(trial, fn, ctx, uva__trial_now_ms() + trial->quiet_ms);
}

void uva__trial_changed(struct uva__trial *trial)
{
    uva__signal_raise(&trial->changed);
}

/* ---- resources ---------------------------------------------------------- */

void uva__trial_thread(struct uva__trial *trial, void *(*fn)(void *), void *ctx)
{
    pthread_t thread;
    const int code = pthread_create(&thread, NULL, fn, ctx);

    if (code != 0)
        uva__trial_fail(trial, "no thread to be had: %s", strerror(code));
    (void)pthread_detach(thread);
}

void *uva__trial_alloc(struct uva__trial *trial, size_t size)
{
    void *block = calloc(1, size);

    if (block == NULL)
        uva__trial_fail(trial, "out of memory");
    return block;
}

bool uva__trial_can(struct uva__trial *trial, int code, bool always,
                    const char *what)
{
    if (code == UVA_SUBJECT_CANNOT && !always) {
        uva__trial_note(trial, "%s: the subject cannot", what);
        (void)uva__word_add(&trial->skipped, 1);
        return false;
    }
    if (code == UVA_SUBJECT_CANNOT)
        uva__trial_fail(trial,
                        "%s returned -1, UVA_SUBJECT_CANNOT, for what every "
                        "subject can",
                        what);
    if (code != 0)
        uva__trial_fail(trial, "%s returned %d (%s)", what, code,
                        uva_error_name(code));
    (void)uva__word_add(&trial->played, 1);
    return true;
}
