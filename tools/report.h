/* SPDX-License-Identifier: Apache-2.0 */
/* What the command says to its user, on standard error: one line for an error,
 * a line that is written over while it works, a summary at the end. */
#ifndef UVA_TOOLS_REPORT_H
#define UVA_TOOLS_REPORT_H

#include <stdint.h>

#include "uvarrow/base.h"

/* Exit codes of all sub-commands. */
enum uva__exit {
    UVA__EXIT_OK = 0,
    UVA__EXIT_FAILED = 1,   /* in the midst of the work */
    UVA__EXIT_USAGE = 2,    /* before it: something given was wrong */
    UVA__EXIT_SIGNAL = 128, /* plus the number of the signal */
};

/* What has been done so far. */
struct uva__tally {
    int64_t rows;      /* read */
    int64_t batches;   /* that they came in */
    int64_t bytes;     /* of CSV made of them */
    uint64_t begin_ns; /* by uv_hrtime() */
    uint64_t end_ns;   /* 0 while it goes on */
};

/* A number as text. */
struct uva__figure {
    char text[32]; /* ended by a NUL */
};

/* Writes a number that is not negative with commas: "336,776". Thread: any. */
struct uva__figure uva__report_figure(int64_t value);

/* Says on one line what went wrong. Returns `exit_code`. Thread: loop. */
int uva__report_error(const struct uva_error *error, int exit_code);

/* Writes the line of progress over the last one. Thread: loop. */
void uva__report_progress(const struct uva__tally *tally);

/* Wipes the line of progress. Thread: loop. */
void uva__report_wipe(void);

/* Says how it went: `ending` in a word, what was done, how long the stream held
 * up the loop at worst, and how late the heartbeat was, whatever held it.
 * Thread: loop. */
void uva__report_summary(const char *ending, const struct uva__tally *tally,
                         uint64_t late_max_ns, uint64_t hold_max_ns);

#endif
