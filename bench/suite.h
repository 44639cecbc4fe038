/* SPDX-License-Identifier: Apache-2.0 */
/* What every program of the bench does with its cases: run each to warm up and
 * then for the record, and print one line for each figure,
 * `NAME <tab> VALUE <tab> UNIT`. Medians and ratios are formed by bench/run.py,
 * which starts the programs over and over. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a case is to be run. */
struct bench_how {
    int64_t batches; /* this many */
    bool apart;      /* loop and other threads each on a core of its own */
    bool cpu;        /* count the time that the process had a core, so that on
                        one core other programs do not disturb */
};

/* What is special about a case. */
enum bench_flag {
    BENCH_PRINTS =
        1,          /* run() says itself what it finds, and needs no warming */
    BENCH_APART = 2 /* makes sense only with threads apart */
};

/* One figure to take: the nanoseconds a batch takes. */
struct bench_case {
    const char *name; /* PROGRAM/WHAT/WHO, for example lane/64/ring */
    int64_t batches;  /* in one run at full length */
    /* runs it; returns the nanoseconds that all batches took together. Aborts
     * if a result is wrong. */
    double (*run)(const struct bench_case *self, const struct bench_how *how);
    int32_t window; /* for run() */
    int32_t more;   /* for run() */
    unsigned flags; /* enum bench_flag, or'ed */
};

/* The main() of a program: runs `cases` as the command line says,
 *   --scale F     F times as many batches
 *   --only PATH   only the case of that name, or those below it
 *   --batches N   so many, whatever the case says
 *   --passes N    all cases one after the other, N times; those that print by
 *                 themselves once
 *   --cold        no run to warm up
 *   --apart       threads on cores of their own
 *   --cpu         the time that the process had a core, not the clock's
 * Returns the exit status. */
int bench_main(int argc, char **argv, const struct bench_case *cases,
               size_t count);

/* Prints one figure. */
void bench_say(const char *name, double value, const char *unit);

/* Aborts the program, naming what is wrong, unless `holds`. */
void bench_check(bool holds, const char *what);

/* Binds the calling thread to core `core`, if `how` has threads apart and the
 * machine has such a core. */
void bench_stay_on(const struct bench_how *how, int core);

/* Nanoseconds of the clock that `how` wants. */
double bench_now_ns(const struct bench_how *how);

#ifdef __cplusplus
}
#endif

#endif
