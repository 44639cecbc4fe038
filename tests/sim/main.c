/* SPDX-License-Identifier: Apache-2.0 */
/* The command uvarrow-sim: runs schedules of the whole product in the
 * simulator.
 *
 *   uvarrow-sim --seed S [--trail]   one schedule, with its transcript; if it
 *                                    fails, with the engine's last steps, too
 *   uvarrow-sim [--first S] --schedules N
 *   uvarrow-sim [--first S] --seconds T | --forever
 *
 * Exit code 0: all passed; 1: one failed, and its seed is printed; 2: bad
 * usage. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "sim/engine.h"
#include "sim/scenario.h"

enum { SECONDS_MOST = 10 }; /* of the processor, for one schedule */

struct wishes {
    uint64_t first;
    uint64_t schedules; /* 0: no limit */
    double seconds;     /* 0: no limit */
    bool one;           /* --seed */
    bool trail;         /* --trail: print the last steps of the engine */
};

static volatile sig_atomic_t is_in_crash;
static uint64_t seed_now;

/* ---- arguments ---------------------------------------------------------- */

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: uvarrow-sim --seed S [--trail]\n"
                  "       uvarrow-sim [--first S] --schedules N\n"
                  "       uvarrow-sim [--first S] --seconds T | --forever\n");
    return 2;
}

static bool number_read(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

/* Reads one option and its value; returns false if it is invalid. */
static bool option_read(struct wishes *wishes, const char *name,
                        const char *value)
{
    uint64_t n;

    if (value == NULL || !number_read(value, &n))
        return false;
    if (strcmp(name, "--seed") == 0) {
        wishes->one = true;
        wishes->first = n;
    } else if (strcmp(name, "--first") == 0) {
        wishes->first = n;
    } else if (strcmp(name, "--schedules") == 0 && n > 0) {
        wishes->schedules = n;
    } else if (strcmp(name, "--seconds") == 0 && n > 0) {
        wishes->seconds = (double)n;
    } else {
        return false;
    }
    return true;
}

static bool wishes_read(struct wishes *wishes, int argc, char **argv)
{
    bool forever = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--forever") == 0)
            forever = true;
        else if (strcmp(argv[i], "--trail") == 0)
            wishes->trail = true;
        else if (option_read(wishes, argv[i], argv[i + 1]))
            i++;
        else
            return false;
    }
    return forever || wishes->one || wishes->schedules > 0 ||
           wishes->seconds > 0;
}

/* ---- crashes ------------------------------------------------------------ */

static void crash_print(const char *text)
{
    size_t length = strlen(text);

    while (length > 0) {
        const ssize_t n = write(STDERR_FILENO, text, length);

        if (n <= 0)
            return;
        text += n;
        length -= (size_t)n;
    }
}

/* Prints the seed: a wild pointer, a failed assertion or a loop that never ends
 * leaves no other trace. */
static void crashed(int number)
{
    char line[96];

    if (is_in_crash)
        _exit(1);
    is_in_crash = 1;
    if (number == SIGVTALRM)
        (void)snprintf(line, sizeof(line),
                       "seed %" PRIu64 ": a loop never ends\n", seed_now);
    else
        (void)snprintf(line, sizeof(line),
                       "seed %" PRIu64 ": crashed, signal %d\n", seed_now,
                       number);
    crash_print(line);
    _exit(1);
}

/* Uses a separate stack, because a fiber's stack may be the cause. */
static void crashes_watch(void)
{
    static char stack[64 * 1024];
    const stack_t spare = {.ss_sp = stack, .ss_size = sizeof(stack)};
    const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGVTALRM};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};

    (void)sigaltstack(&spare, NULL);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        (void)sigaction(signals[i], &action, NULL);
}

/* Limits the time that the processor spends on a schedule. The engine counts
 * steps, so it cannot see a loop in which no other fiber may run, such as a
 * walk along a list that is linked to itself. */
static void schedule_limit(void)
{
    const struct itimerval limit = {.it_value.tv_sec = SECONDS_MOST};

    (void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

/* ---- running ------------------------------------------------------------ */

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void progress(uint64_t done, double since)
{
    const double took = seconds_now() - since;

    (void)printf("%" PRIu64 " schedules, %.0f a second\n", done,
                 took > 0 ? (double)done / took : 0);
    (void)fflush(stdout);
}

/* Returns how many were run: fewer than requested if the last one failed. */
static int run(const struct wishes *wishes)
{
    const double since = seconds_now();
    double reported = since, now;
    const char *failure;
    uint64_t done = 0;

    for (;;) {
        seed_now = wishes->first + done;
        schedule_limit();
        failure = scenario_run(seed_now, wishes->one);
        done++;
        if (failure != NULL) {
            if (wishes->trail)
                sim_print_trail(stdout);
            (void)printf("seed %" PRIu64 ": %s\n", seed_now, failure);
            return 1;
        }
        now = seconds_now();
        if (wishes->one || done == wishes->schedules ||
            (wishes->seconds > 0 && now - since >= wishes->seconds))
            break;
        if (now - reported < 10)
            continue;
        reported = now;
        progress(done, since);
    }
    progress(done, since);
    return 0;
}

int main(int argc, char **argv)
{
    struct wishes wishes = {.first = 1};

    if (!wishes_read(&wishes, argc, argv))
        return usage();
    crashes_watch();
    return run(&wishes);
}
