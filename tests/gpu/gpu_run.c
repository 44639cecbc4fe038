/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a GPU bundle on a machine that has only a driver, and writes a report:
 *
 *     run [1|2] [--out FOLDER] [--seconds N]
 *
 * It runs the programs that the file `plan` beside it lists for that part, or
 * for both, one after the other. Each has a time limit, and each part ends
 * within eight minutes (N: 450 seconds): programs for which the time does not
 * suffice are left out. The report and the output of each program are written
 * to FOLDER, the working folder unless it is named. The exit code is 1 if a
 * program has failed, or if no test has passed, and 2 if no program could be
 * run.
 *
 * Programs are started by uva_run_limited, which kills their remaining
 * processes. A program that hangs in the driver may not die even so; it is then
 * left. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/facts.h"
#include "gpu/plan.h"
#include "gpu/report.h"

enum { PART_SECONDS = 450, GRACE_SECONDS = 10, SKIPPED = 77, TIMED_OUT = 124 };

/* The wishes of the command line, and the places of files. */
struct wishes {
    const char *out;   /* folder of the report */
    char bundle[3000]; /* folder of this program */
    double seconds;    /* for each part */
    bool parts[PLAN_PARTS + 1];
};

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- in the child -------------------------------------------------------- */

/* Replaces this process by the program, with its time limit. */
static void program_exec(const struct wishes *wishes,
                         const struct program *program, double limit_s)
{
    char runner[4096], path[4096], limit[32];
    char *arguments[PLAN_FIELDS + 3] = {runner, "--clock", limit, path};
    const struct rlimit no_core = {0, 0};

    (void)snprintf(runner, sizeof(runner), "%s/bin/uva_run_limited",
                   wishes->bundle);
    (void)snprintf(path, sizeof(path), "%s/%s", wishes->bundle,
                   program->arguments[0]);
    (void)snprintf(limit, sizeof(limit), "%.1f", limit_s);
    for (int i = 1; program->arguments[i] != NULL; i++)
        arguments[i + 3] = program->arguments[i];
    for (int i = 0; program->environment[i] != NULL; i++)
        (void)putenv(program->environment[i]);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)execv(runner, arguments);
    (void)fprintf(stderr, "%s: %s\n", runner, strerror(errno));
    _exit(127);
}

/* ---- one program --------------------------------------------------------- */

/* Opens a new file for the program's output; -1: it cannot. */
static int log_open(const struct wishes *wishes, const struct program *program)
{
    char path[4096], name[256];

    (void)snprintf(name, sizeof(name), "%s", program->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '/' || *c == ' ')
            *c = '_';
    (void)snprintf(path, sizeof(path), "%s/log", wishes->out);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof(path), "%s/log/%s.txt", wishes->out, name);
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

/* Returns the content of the file, ended by a line feed; NULL: no memory. The
 * caller owns it. */
static char *log_text(int log)
{
    const off_t size = lseek(log, 0, SEEK_END);
    char *text = size < 0 ? NULL : calloc(1, (size_t)size + 2);
    ssize_t got;

    if (text == NULL)
        return NULL;
    got = pread(log, text, (size_t)size, 0);
    if (got < 0)
        got = 0;
    for (ssize_t i = 0; i < got; i++)
        if (text[i] == '\0')
            text[i] = '?';
    if (got > 0 && text[got - 1] != '\n')
        text[got] = '\n';
    return text;
}

static pid_t program_start(const struct wishes *wishes,
                           const struct program *program, double limit_s,
                           int log)
{
    const pid_t pid = fork();
    sigset_t none;

    if (pid != 0)
        return pid;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    program_exec(wishes, program, limit_s);
    return 0;
}

/* Waits until the program ends. Returns false if it lives on. */
static bool program_wait(pid_t pid, double seconds, int *status)
{
    const double end = now() + seconds;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    while (waitpid(pid, status, WNOHANG) == 0) {
        const double left = end - now();
        struct timespec most = {.tv_sec = (time_t)left};

        if (left <= 0)
            return false;
        most.tv_nsec = (long)(1e9 * (left - (double)most.tv_sec));
        (void)sigtimedwait(&set, NULL, &most);
    }
    return true;
}

/* A suite of Check that lacks the case on this driver has passed no test. */
static enum outcome outcome_of(int code, const char *output)
{
    switch (code) {
    case 0:
        return output != NULL && strstr(output, "%: Checks: 0,") != NULL
                   ? OUTCOME_SKIPPED
                   : OUTCOME_PASSED;
    case SKIPPED:
        return OUTCOME_SKIPPED;
    case TIMED_OUT:
        return OUTCOME_TIMED_OUT;
    default:
        return OUTCOME_FAILED;
    }
}

static void program_run(const struct wishes *wishes,
                        const struct program *program, double limit_s,
                        struct result *result)
{
    const double begun = now();
    const int log = log_open(wishes, program);
    int status = 0;
    bool lives;
    pid_t pid;

    result->outcome = OUTCOME_FAILED;
    result->code = 127;
    if (log < 0) {
        perror(wishes->out);
        return;
    }
    pid = program_start(wishes, program, limit_s, log);
    lives = pid > 0 && !program_wait(pid, limit_s + GRACE_SECONDS, &status);
    result->seconds = now() - begun;
    result->output = log_text(log);
    if (lives) {
        result->outcome = OUTCOME_STUCK;
    } else if (pid > 0) {
        result->code =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        result->outcome = outcome_of(result->code, result->output);
    }
    (void)close(log);
}

/* ---- all programs ------------------------------------------------------- */

/* Returns false if the report cannot be written. */
static bool part_run(const struct wishes *wishes, struct report *report,
                     int part)
{
    const double end = now() + wishes->seconds;

    for (int i = 0; i < report->plan->count; i++) {
        const struct program *program = &report->plan->programs[i];
        struct result *result = &report->results[i];
        const double left = end - now();

        if (program->part != part)
            continue;
        if (left < 1)
            result->outcome = OUTCOME_NO_TIME;
        else
            program_run(wishes, program,
                        left < program->limit_s ? left : program->limit_s,
                        result);
        (void)printf("%-12s %7.2f s  %s\n",
                     report_outcome_name(result->outcome), result->seconds,
                     program->name);
        (void)fflush(stdout);
        if (!report_write(report, wishes->out))
            return false;
    }
    return true;
}

/* Reads the first line of the file `about`. */
static void about_read(const struct wishes *wishes, char *about, size_t size)
{
    char path[4096];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/about", wishes->bundle);
    (void)snprintf(about, size, "of unknown origin");
    file = fopen(path, "r");
    if (file == NULL)
        return;
    if (fgets(about, (int)size, file) != NULL)
        about[strcspn(about, "\n")] = '\0';
    (void)fclose(file);
}

static int bundle_run(const struct wishes *wishes, const struct plan *plan)
{
    static struct report report;
    const time_t today = time(NULL);
    char about[256], began[32];
    bool written = true;

    about_read(wishes, about, sizeof(about));
    (void)strftime(began, sizeof(began), "%Y-%m-%dT%H:%M:%SZ", gmtime(&today));
    report.plan = plan;
    report.about = about;
    report.began = began;
    memcpy(report.parts, wishes->parts, sizeof(report.parts));
    for (int part = 1; part <= PLAN_PARTS && written; part++)
        if (wishes->parts[part])
            written = part_run(wishes, &report, part);
    for (int i = 0; i < plan->count; i++)
        free(report.results[i].output);
    if (!written)
        return 2;
    return report_has_failed(&report) ? 1 : 0;
}

/* ---- the command line ---------------------------------------------------- */

static bool wishes_read(struct wishes *wishes, int count, char **arguments)
{
    const char *slash = strrchr(arguments[0], '/');
    const size_t length = slash == NULL ? 0 : (size_t)(slash - arguments[0]);

    *wishes = (struct wishes){.out = ".", .seconds = PART_SECONDS};
    if (length >= sizeof(wishes->bundle))
        return false;
    (void)snprintf(wishes->bundle, sizeof(wishes->bundle), "%.*s",
                   slash == NULL ? 1 : (int)length,
                   slash == NULL ? "." : arguments[0]);
    for (int i = 1; i < count; i++) {
        const char *word = arguments[i];

        if (strcmp(word, "--out") == 0 && i + 1 < count)
            wishes->out = arguments[++i];
        else if (strcmp(word, "--seconds") == 0 && i + 1 < count)
            wishes->seconds = atof(arguments[++i]);
        else if (strcmp(word, "1") == 0 || strcmp(word, "2") == 0)
            wishes->parts[word[0] - '0'] = true;
        else
            return false;
    }
    if (!wishes->parts[1] && !wishes->parts[2])
        wishes->parts[1] = wishes->parts[2] = true;
    return true;
}

int main(int count, char **arguments)
{
    static struct plan plan;
    struct wishes wishes;
    char path[4096];
    sigset_t set;
    int code = 2;

    if (count == 2 && strcmp(arguments[1], "--facts") == 0)
        return facts_print();
    if (!wishes_read(&wishes, count, arguments)) {
        (void)fprintf(stderr,
                      "usage: run [1|2] [--out FOLDER] [--seconds N]\n");
        return 2;
    }
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)mkdir(wishes.out, 0777);
    (void)snprintf(path, sizeof(path), "%s/plan", wishes.bundle);
    if (plan_read(&plan, path))
        code = bundle_run(&wishes, &plan);
    plan_free(&plan);
    return code;
}
