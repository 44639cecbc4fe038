/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress on standard error, which is written over while work goes
 * on: the time, how much came, how fast, and what it waits for. */
#ifndef UVA_TOOLS_PROGRESS_H
#define UVA_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "report.h"
#include "uvarrow/stream.h"

/* The line. `tally` and `source` are set by its owner. */
struct uva__progress {
    const struct uva__tally *tally; /* borrows */
    const char *source;             /* borrows: "the database" */
    int64_t rows;                   /* when it was last shown */
    bool is_shown;
};

/* Adds up what the sources among the stages of a stream will give, and have
 * read, as far as each of them knows. Thread: loop. */
void uva__progress_expect(struct uva__tally *tally,
                          const struct uva_stage_stats *stages, size_t count);

/* Writes the line as text of at most `columns` - 1 columns, as a longer one
 * could not be written over; 0: unknown, as 80. `waiting` is that of the
 * source. Thread: loop. */
void uva__progress_text(struct uva__progress *progress,
                        enum uva_waiting waiting, bool output_is_full,
                        int columns, char *out, size_t size);

/* Shows the line of uva__progress_text(). Thread: loop. */
void uva__progress_show(struct uva__progress *progress,
                        enum uva_waiting waiting, bool output_is_full);

/* Erases it, if it is shown. Thread: loop. */
void uva__progress_wipe(struct uva__progress *progress);

#endif
