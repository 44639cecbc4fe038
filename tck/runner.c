/* SPDX-License-Identifier: Apache-2.0 */
/* A run of the suite.
 *
 * Happy path:  cases selected -> the subject loaded once, in a sandbox, to find
 *              its roles -> each case in its own sandbox, several at the
 *              same time -> results reported in order -> files written.
 * Failures:    the caller's options (EINVAL, ENOENT) and the system; never a
 *              case, which has a verdict.
 * On cancel:   there is no cancel; sandboxes end with the program.
 *
 * The subject is never loaded into this process, so every sandbox starts as
 * clean as the program is. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tck/entries.h"
#include "tck/sandbox.h"

enum {
    RUNNER_MOST = 600000,  /* upper limit of every number */
    RUNNER_JOBS = 16,      /* at most this many at the same time */
    RUNNER_LINES = 40,     /* lines of a transcript that are reported */
    RUNNER_OUTPUT = 4096,  /* bytes of the output that are reported */
    RUNNER_WAIT_MS = 5000, /* the defaults */
    RUNNER_QUIET_MS = 50
};

/* A run. */
struct runner {
    const struct uva_tck *what;
    char *file; /* owns: absolute path of the subject */
    int64_t wait_ms;
    int64_t quiet_ms;
    struct uva__tck_entries entries;
    size_t reported; /* entries already passed to on_result */
    int jobs;
    struct uva__sandbox sandboxes[RUNNER_JOBS];
    struct uva__tck_entry *busy[RUNNER_JOBS]; /* entry of each sandbox */
    struct uva__case_run_page *pages;         /* shared; one for each sandbox */
};

/* The program of a sandbox. */
struct process {
    struct runner *runner;
    const struct uva__tck_case *what; /* NULL: only load the subject */
    enum uva_tck_role role;
    struct uva__case_run_page *page;
};

/* ---- in the sandbox ----------------------------------------------------- */

/* Loads the subject and reports that by a verdict; `lines` holds its roles. */
static void process_inspect(void *ctx)
{
    const struct process *process = ctx;
    struct uva__subject subject;
    struct uva_error error;
    const int code = uva__subject_load(&subject, process->runner->file, &error);

    if (code != 0)
        (void)snprintf(process->page->message, UVA__CASE_RUN_MESSAGE, "%s",
                       error.message);
    else
        uva__atomic64_store(&process->page->lines,
                            uva__subject_roles(&subject));
    uva__atomic64_store(&process->page->state,
                        code != 0 ? UVA__CASE_RUN_BROKEN : UVA__CASE_RUN_HELD);
    _exit(0);
}

/* Runs a case. The case run is never freed, because threads of the subject may
 * still use it. */
static void process_run(void *ctx)
{
    const struct process *process = ctx;
    struct uva__case_run *run = calloc(1, sizeof(*run));
    struct uva_error error;

    if (run == NULL)
        _exit(1);
    run->page = process->page;
    run->what = process->what;
    run->role = process->role;
    run->wait_ms = process->runner->wait_ms;
    run->quiet_ms = process->runner->quiet_ms;
    run->began_ms = uva__case_run_now_ms();
    uva__cases_clause(run->what->name, run->clause);
    if (uva__subject_load(&run->subject, process->runner->file, &error) != 0)
        uva__case_run_fail(run, "%s", error.message);
    run->what->run(run);
    uva__case_run_hold(run);
}

/* ---- options ------------------------------------------------------------ */

static int runner_find(struct runner *runner, struct uva_error *error)
{
    if (runner->what->file == NULL)
        return uva_error_set(error, EINVAL, "no file was given");
    runner->file = realpath(runner->what->file, NULL);
    if (runner->file == NULL)
        return uva_error_set(error, errno, "%s: %s", runner->what->file,
                             strerror(errno));
    return 0;
}

/* Takes the number from the environment, or `usual`. */
static int number_read(const char *name, int64_t usual, int64_t *number,
                       struct uva_error *error)
{
    const char *text = getenv(name);
    char *end;

    *number = usual;
    if (text == NULL)
        return 0;
    *number = strtol(text, &end, 10);
    if (*text != '\0' && *end == '\0' && *number >= 1 && *number <= RUNNER_MOST)
        return 0;
    return uva_error_set(error, EINVAL, "%s=%s: not a number from 1 to %d",
                         name, text, RUNNER_MOST);
}

static int runner_read(struct runner *runner, struct uva_error *error)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t jobs = 1;
    int code =
        number_read("UVA_TCK_WAIT_MS", RUNNER_WAIT_MS, &runner->wait_ms, error);

    if (code == 0)
        code = number_read("UVA_TCK_QUIET_MS", RUNNER_QUIET_MS,
                           &runner->quiet_ms, error);
    if (code == 0)
        code = number_read("UVA_TCK_JOBS", processors > 0 ? processors : 1,
                           &jobs, error);
    runner->jobs = jobs > RUNNER_JOBS ? RUNNER_JOBS : (int)jobs;
    return code;
}

static int runner_settle(struct runner *runner, struct uva_error *error)
{
    const struct uva_tck *what = runner->what;
    int code;

    for (size_t i = 0; i < sizeof(what->reserved) / sizeof(void *); i++)
        if (what->reserved[i] != NULL)
            return uva_error_set(error, EINVAL, "reserved is not zero");
    code = runner_read(runner, error);
    if (code != 0)
        return code;
    runner->pages =
        mmap(NULL, RUNNER_JOBS * sizeof(*runner->pages), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (runner->pages == MAP_FAILED) {
        runner->pages = NULL;
        return uva_error_set(error, errno, "no memory to be shared");
    }
    return 0;
}

/* Returns why the subject could not be loaded, or 0. */
static int runner_check_inspect(struct runner *runner, const char *output,
                                struct uva_error *error)
{
    const struct uva__sandbox *sandbox = &runner->sandboxes[0];
    const struct uva__case_run_page *page = &runner->pages[0];

    if (sandbox->end == UVA__SANDBOX_CRASHED)
        return uva_error_set(error, EINVAL,
                             "%s crashes when it is loaded: %s%s%s",
                             runner->file, strsignal(sandbox->code),
                             output[0] != '\0' ? "; it printed: " : "", output);
    if (sandbox->end == UVA__SANDBOX_HUNG)
        return uva_error_set(error, EINVAL, "%s does not come back when loaded",
                             runner->file);
    switch (uva__atomic64_load(&page->state)) {
    case UVA__CASE_RUN_HELD:
        return 0;
    case UVA__CASE_RUN_BROKEN:
        return uva_error_set(error, EINVAL, "%s", page->message);
    default:
        return uva_error_set(error, EINVAL,
                             "%s ends the process when it is loaded: exit %d",
                             runner->file, sandbox->code);
    }
}

/* Finds out in a sandbox whether this is a subject; gives its roles. */
static int runner_inspect(struct runner *runner, unsigned *roles,
                          struct uva_error *error)
{
    struct process process = {.runner = runner, .page = &runner->pages[0]};
    char output[512] = "";
    int code = uva__sandbox_open(&runner->sandboxes[0], process_inspect,
                                 &process, runner->wait_ms * 2);

    if (code != 0)
        return uva_error_set(error, code, "no process to be had");
    (void)uva__sandbox_wait(runner->sandboxes, 1);
    uva__sandbox_fini(&runner->sandboxes[0], output, sizeof(output));
    code = runner_check_inspect(runner, output, error);
    *roles = (unsigned)uva__atomic64_load(&runner->pages[0].lines);
    if (code == 0 && (runner->what->roles & ~*roles) != 0)
        return uva_error_set(error, EINVAL,
                             "%s does not play that role: functions of it are "
                             "not exported; see uvarrow/tck.h",
                             runner->file);
    return code;
}

/* ---- one case ----------------------------------------------------------- */

static int runner_start(struct runner *runner, int slot,
                        struct uva__tck_entry *entry)
{
    struct process process = {.runner = runner,
                              .what = entry->what,
                              .role = entry->result.role,
                              .page = &runner->pages[slot]};

    memset(process.page, 0, sizeof(*process.page));
    runner->busy[slot] = entry;
    return uva__sandbox_open(&runner->sandboxes[slot], process_run, &process,
                             runner->wait_ms * 4 + runner->quiet_ms * 40);
}

/* Returns whether the process ended before its case had a verdict, by a signal
 * or by an exit of its own, which is how sanitizers end it. */
static bool runner_crashed(const struct uva__sandbox *sandbox,
                           struct uva__case_run_page *page)
{
    return sandbox->end != UVA__SANDBOX_HUNG &&
           uva__atomic64_load(&page->state) < UVA__CASE_RUN_HELD;
}

/* Derives the verdict from the sandbox's end and the page. */
static enum uva_tck_verdict runner_check(const struct uva__sandbox *sandbox,
                                         struct uva__case_run_page *page)
{
    const uint64_t state = uva__atomic64_load(&page->state);
    char *message = page->message;

    message[UVA__CASE_RUN_MESSAGE - 1] = '\0';
    if (state >= UVA__CASE_RUN_HELD)
        return (enum uva_tck_verdict)(state - UVA__CASE_RUN_HELD);
    if (sandbox->end == UVA__SANDBOX_CRASHED)
        (void)snprintf(message, UVA__CASE_RUN_MESSAGE, "it crashed: %s",
                       strsignal(sandbox->code));
    else if (sandbox->end == UVA__SANDBOX_HUNG)
        (void)snprintf(message, UVA__CASE_RUN_MESSAGE,
                       "it hung: no verdict after %" PRId64 " ms",
                       sandbox->took_ms);
    else
        (void)snprintf(message, UVA__CASE_RUN_MESSAGE,
                       "it ended the process: exit %d", sandbox->code);
    return UVA_TCK_BROKEN;
}

static int runner_finish(struct runner *runner, int slot,
                         struct uva_error *error)
{
    struct uva__case_run_page *page = &runner->pages[slot];
    struct uva__tck_entry *entry = runner->busy[slot];
    char output[RUNNER_OUTPUT] = "";
    char transcript[RUNNER_LINES * (UVA__CASE_RUN_LINE + 1)];
    enum uva_tck_verdict verdict;

    entry->result.took_ms = runner->sandboxes[slot].took_ms;
    if (runner_crashed(&runner->sandboxes[slot], page))
        entry->result.required = true; /* whatever the case decides */
    verdict = runner_check(&runner->sandboxes[slot], page);
    uva__sandbox_fini(&runner->sandboxes[slot], output, sizeof(output));
    uva__case_run_page_join(page, uva__atomic64_load(&page->lines), transcript,
                            sizeof(transcript));
    uva__entry_finish(entry, verdict, page->message, transcript, output);
    return uva__entry_breached(entry, page, error);
}

/* ---- all processes ------------------------------------------------------ */

static void runner_notify(struct runner *runner)
{
    for (; runner->reported < runner->entries.count; runner->reported++) {
        const struct uva__tck_entry *entry =
            &runner->entries.all[runner->reported];

        if (!entry->over)
            return;
        if (runner->what->on_result != NULL)
            runner->what->on_result(runner->what->ctx, &entry->result);
    }
}

/* Returns the next case that needs a sandbox; finishes the cases before it that
 * need no sandbox. */
static struct uva__tck_entry *runner_next(struct runner *runner, size_t *at)
{
    while (*at < runner->entries.count) {
        struct uva__tck_entry *entry = &runner->entries.all[(*at)++];

        if (entry->what->run != NULL)
            return entry;
        uva__entry_finish(entry, UVA_TCK_SKIPPED, entry->what->reason, NULL,
                          NULL);
    }
    return NULL;
}

/* Starts the next case in the sandbox, if there is one. */
static int runner_fill(struct runner *runner, int slot, size_t *at,
                       struct uva_error *error)
{
    struct uva__tck_entry *entry = runner_next(runner, at);
    const int code = entry != NULL ? runner_start(runner, slot, entry) : 0;

    if (code != 0)
        return uva_error_set(error, code, "no process to be had");
    runner_notify(runner);
    return 0;
}

static int runner_play(struct runner *runner, struct uva_error *error)
{
    size_t at = 0;
    int code = 0;
    int slot;

    for (slot = 0; slot < runner->jobs && code == 0; slot++)
        code = runner_fill(runner, slot, &at, error);
    while (code == 0) {
        slot = uva__sandbox_wait(runner->sandboxes, runner->jobs);
        if (slot < 0)
            break;
        code = runner_finish(runner, slot, error);
        if (code == 0)
            code = runner_fill(runner, slot, &at, error);
    }
    if (code != 0)
        return code;
    code = uva__entries_add_breaches(&runner->entries, error);
    if (code == 0)
        runner_notify(runner);
    return code;
}

static int runner_write(struct runner *runner, struct uva_error *error)
{
    const struct uva_tck *what = runner->what;
    int code = 0;

    if (what->tap != NULL)
        code = uva__entries_write_tap(&runner->entries, what->tap);
    if (code != 0)
        return uva_error_set(error, code, "%s: %s", what->tap, strerror(code));
    if (what->junit != NULL)
        code = uva__entries_write_junit(&runner->entries, what->junit);
    if (code != 0)
        return uva_error_set(error, code, "%s: %s", what->junit,
                             strerror(code));
    return 0;
}

static void runner_count(const struct runner *runner,
                         struct uva_tck_tally *tally)
{
    *tally = (struct uva_tck_tally){0};
    for (size_t i = 0; i < runner->entries.count; i++) {
        const struct uva_tck_result *result = &runner->entries.all[i].result;

        if (result->verdict == UVA_TCK_HELD)
            tally->held++;
        else if (result->verdict == UVA_TCK_SKIPPED)
            tally->skipped++;
        else if (result->required)
            tally->required_broken++;
        else
            tally->recommended_broken++;
    }
}

static void runner_fini(struct runner *runner)
{
    char nothing[1];

    for (int i = 0; i < RUNNER_JOBS; i++)
        uva__sandbox_fini(&runner->sandboxes[i], nothing, sizeof(nothing));
    if (runner->pages != NULL)
        (void)munmap(runner->pages, RUNNER_JOBS * sizeof(*runner->pages));
    uva__entries_fini(&runner->entries);
    free(runner->file);
}

int uva_tck_run(const struct uva_tck *options, struct uva_tck_tally *tally,
                struct uva_error *error)
{
    struct runner runner = {.what = options};
    unsigned roles = 0;
    int code = runner_find(&runner, error);

    if (code == 0)
        code = runner_settle(&runner, error);
    if (code == 0)
        code = runner_inspect(&runner, &roles, error);
    if (code == 0)
        code = uva__entries_init(&runner.entries,
                                 options->roles != 0 ? options->roles : roles,
                                 options->filter, error);
    if (code == 0)
        code = runner_play(&runner, error);
    if (code == 0) {
        runner_count(&runner, tally);
        code = runner_write(&runner, error);
    }
    runner_fini(&runner);
    return code;
}

int uva_tck_list(const struct uva_tck *options, struct uva_error *error)
{
    struct uva__tck_entries entries;
    const int code =
        uva__entries_init(&entries, options->roles != 0 ? options->roles : ~0U,
                          options->filter, error);

    if (code != 0)
        return code;
    for (size_t i = 0; i < entries.count; i++) {
        uva__entry_finish(&entries.all[i], UVA_TCK_SKIPPED,
                          entries.all[i].what->reason, NULL, NULL);
        if (options->on_result != NULL)
            options->on_result(options->ctx, &entries.all[i].result);
    }
    uva__entries_fini(&entries);
    return 0;
}
