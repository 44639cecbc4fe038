/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of every program of the bench: it runs each case once to warm
 * up and once to measure, and prints a line for each figure, `NAME <tab> VALUE
 * <tab> UNIT`. bench/run.py starts the programs repeatedly and computes medians
 * and ratios. */
#ifndef BENCH_SUITE_H
#define BENCH_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How to run a case. */
struct bench_how {
    int64_t batches; /* number of batches */
    bool apart;      /* loop and other threads each have a core of their own */
    bool cpu;        /* measure CPU time: other programs may share a core */
};

/* Special properties of a case. */
enum bench_flag {
    BENCH_PRINTS = 1, /* run() prints its own figures, and needs no warm-up */
    BENCH_APART = 2   /* only makes sense with threads apart */
};

/* One figure: the nanoseconds for a batch. */
struct bench_case {
    const char *name; /* PROGRAM/WHAT/HOW, for example lane/64/ring */
    int64_t batches;  /* batches in one run at full length */
    /* Runs the case; returns the nanoseconds for all batches together. Aborts
     * if a result is wrong. */
    double (*run)(const struct bench_case *self, const struct bench_how *how);
    int32_t window; /* parameter of run() */
    int32_t more;   /* parameter of run() */
    unsigned flags; /* values of enum bench_flag */
};

/* The main() of a program: runs `cases` as the command line requires,
 *   --scale F     F times as many batches
 *   --only PATH   only the case of that name; if there is none, those below it
 *   --shape NAME  batches of that shape (batch.h); the names of the figures end
 * in
 *                 @NAME, and there are fewer of wide batches
 *   --batches N   N batches in every case
 *   --passes N    all cases one after the other, N times; cases that print
 *                 their own figures once
 *   --cold        no run to warm up
 *   --apart       threads on cores of their own
 *   --cpu         measure CPU time instead of the clock
 * Returns the exit status. */
int bench_main(int argc, char **argv, const struct bench_case *cases,
               size_t count);

/* Prints one figure. */
void bench_print(const char *name, double value, const char *unit);

/* Prints how many times the smallest of `count` shares the largest is. */
void bench_print_shares(const char *name, const int64_t *shares, int64_t count);

/* Aborts the program with a message that names `what`, unless `holds`. */
void bench_check(bool holds, const char *what);

/* Binds the calling thread to core `core`, if `how` wants threads apart and the
 * machine has such a core. */
void bench_stay_on(const struct bench_how *how, int core);

/* Returns the time in nanoseconds, by the clock that `how` requires. */
double bench_now_ns(const struct bench_how *how);

#ifdef __cplusplus
}
#endif

#endif
