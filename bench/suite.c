/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of a bench program, the order of its runs, and its
 * output. */
#define _GNU_SOURCE
#include "suite.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batch.h"

enum { LEAST_BATCHES = 20 };

struct wishes {
    struct bench_how how; /* except the number of batches */
    double scale;
    const char *only;  /* a case or folder, or "" */
    bool one;          /* `only` is a case, and not the folder of others */
    const char *shape; /* of the batches, or NULL */
    int64_t batches;   /* number of batches, or 0 */
    int64_t passes;
    bool cold;
};

/* Handles an option without a value. */
static bool wishes_note(struct wishes *wishes, const char *option)
{
    bool *const flags[] = {&wishes->cold, &wishes->how.apart, &wishes->how.cpu};
    static const char *const names[] = {"--cold", "--apart", "--cpu"};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strcmp(option, names[i]) == 0)
            return *flags[i] = true;
    return false;
}

static void wishes_read(struct wishes *wishes, int argc, char **argv)
{
    *wishes = (struct wishes){.scale = 1, .only = "", .passes = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (wishes_note(wishes, argv[i]))
            continue;
        bench_check(value != NULL, argv[i]);
        if (strcmp(argv[i], "--scale") == 0)
            wishes->scale = strtod(value, NULL);
        else if (strcmp(argv[i], "--only") == 0)
            wishes->only = value;
        else if (strcmp(argv[i], "--shape") == 0)
            wishes->shape = value;
        else if (strcmp(argv[i], "--batches") == 0)
            wishes->batches = strtoll(value, NULL, 10);
        else if (strcmp(argv[i], "--passes") == 0)
            wishes->passes = strtoll(value, NULL, 10);
        else
            bench_check(false, argv[i]);
        i++;
    }
}

static int64_t batches_of(const struct bench_case *what,
                          const struct wishes *wishes)
{
    const double wide = (double)(batch_now.columns - 1) / 16;
    const int64_t scaled =
        (int64_t)((double)what->batches * wishes->scale / (1 + wide));

    if (wishes->batches > 0)
        return wishes->batches;
    return scaled > LEAST_BATCHES ? scaled : LEAST_BATCHES;
}

static void case_print(const struct bench_case *what,
                       const struct wishes *wishes, double each_ns)
{
    char name[128];

    (void)snprintf(name, sizeof(name), "%s%s%s", what->name,
                   wishes->shape != NULL ? "@" : "",
                   wishes->shape != NULL ? wishes->shape : "");
    bench_print(name, each_ns, "ns");
}

static void case_measure(const struct bench_case *what,
                         const struct wishes *wishes)
{
    struct bench_how how = wishes->how;
    double took;

    how.batches = batches_of(what, wishes) / 8 + 1;
    if (!wishes->cold && (what->flags & BENCH_PRINTS) == 0)
        (void)what->run(what, &how);
    how.batches = batches_of(what, wishes);
    took = what->run(what, &how);
    if ((what->flags & BENCH_PRINTS) == 0)
        case_print(what, wishes, took / (double)how.batches);
}

/* Returns whether `name` is `path` or lies below it. */
static bool is_under(const char *name, const char *path)
{
    const size_t length = strlen(path);

    return length == 0 || (strncmp(name, path, length) == 0 &&
                           (name[length] == '\0' || name[length] == '/'));
}

static bool is_wanted(const struct bench_case *what,
                      const struct wishes *wishes, int64_t pass)
{
    if ((what->flags & BENCH_APART) != 0 && !wishes->how.apart)
        return false;
    if ((what->flags & BENCH_PRINTS) != 0 &&
        (pass > 0 || wishes->shape != NULL))
        return false;
    return wishes->one ? strcmp(what->name, wishes->only) == 0
                       : is_under(what->name, wishes->only);
}

static bool has_case(const struct bench_case *cases, size_t count,
                     const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(cases[i].name, name) == 0)
            return true;
    return false;
}

int bench_main(int argc, char **argv, const struct bench_case *cases,
               size_t count)
{
    struct wishes wishes;

    wishes_read(&wishes, argc, argv);
    wishes.one = has_case(cases, count, wishes.only);
    (void)setenv("UVA_CHECK", "0", 1); /* a checker would be measured, too */
    batch_use(wishes.shape != NULL ? wishes.shape : "number");
    for (int64_t pass = 0; pass < wishes.passes; pass++)
        for (size_t i = 0; i < count; i++)
            if (is_wanted(&cases[i], &wishes, pass))
                case_measure(&cases[i], &wishes);
    return 0;
}

void bench_print(const char *name, double value, const char *unit)
{
    printf("%s\t%.6g\t%s\n", name, value, unit);
    (void)fflush(stdout);
}

void bench_print_shares(const char *name, const int64_t *shares, int64_t count)
{
    int64_t least = shares[0], most = shares[0];

    for (int64_t i = 1; i < count; i++) {
        least = shares[i] < least ? shares[i] : least;
        most = shares[i] > most ? shares[i] : most;
    }
    bench_print(name, least > 0 ? (double)most / (double)least : 1e9, "x");
}

void bench_check(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "bench: wrong: %s\n", what);
    abort();
}

void bench_stay_on(const struct bench_how *how, int core)
{
    cpu_set_t set;

    if (!how->apart)
        return;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

double bench_now_ns(const struct bench_how *how)
{
    struct timespec now;

    (void)clock_gettime(how->cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC,
                        &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
