/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the user on standard error: an error, a note, a summary at the
 * end. */
#ifndef UVA_TOOLS_REPORT_H
#define UVA_TOOLS_REPORT_H

#include <stdint.h>

#include "uvarrow/base.h"

/* Exit codes of all sub-commands. */
enum uva__exit {
    UVA__EXIT_OK = 0,
    UVA__EXIT_FAILED = 1,   /* during the work */
    UVA__EXIT_USAGE = 2,    /* before the work: invalid input */
    UVA__EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* The work so far. */
struct uva__tally {
    int64_t rows;           /* rows read */
    int64_t affected;       /* rows that the query changed; -1: unknown */
    int64_t batches;        /* batches read */
    int64_t bytes;          /* bytes written */
    int64_t rows_expected;  /* that the source will give in all; 0: unknown */
    int64_t bytes_expected; /* that it will read; 0: unknown */
    int64_t bytes_read;     /* of these */
    uint64_t begin_ns;      /* by uv_hrtime() */
    uint64_t end_ns;        /* 0 while it runs */
};

/* A number as text. */
struct uva__figure {
    char text[32]; /* ended by a NUL */
};

/* Writes a number that is not negative with commas: "336,776". Thread: any. */
struct uva__figure uva__report_figure(int64_t value);

/* Prints an error, with the lines of its message as they are. Returns
 * `exit_code`. Thread: loop. */
int uva__report_error(const struct uva_error *error, int exit_code);

/* Returns the seconds so far, or in all, and never 0. Thread: loop. */
double uva__report_seconds(const struct uva__tally *tally);

/* Prints a note, which begins where a progress line may be. Thread: any. */
void uva__report_note(const char *text, bool over_progress);

/* Prints a summary: `ending` in a word, and the amounts. Thread: loop. */
void uva__report_summary(const char *ending, const struct uva__tally *tally);

/* Prints the longest time that the stream held the loop, and the longest delay
 * of the heartbeat, whatever caused it. Thread: loop. */
void uva__report_loop(uint64_t late_max_ns, uint64_t hold_max_ns);

#endif
