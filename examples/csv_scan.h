/* SPDX-License-Identifier: Apache-2.0 */
/* A producer in two halves: one column of a CSV file. One half reads the next
 * piece of the file, in order. The other half, which is expensive, turns its
 * text into numbers, and may run on several threads at once. The functions have
 * the shape of the hooks in struct uva_task_source, and do not depend on a
 * loop. */
#ifndef EXAMPLES_CSV_SCAN_H
#define EXAMPLES_CSV_SCAN_H

#include "uvarrow/uvarrow.h"

struct csv_scan;

/* Stores the arguments; the file is not opened. Borrows the texts. Returns NULL
 * when out of memory, which csv_scan_schema() then reports. */
struct csv_scan *csv_scan_new(const char *path, const char *column);

/* Opens the file and finds the column in its first line. */
int csv_scan_schema(void *scan, struct ArrowSchema *out,
                    struct uva_error *error);

/* Gives a piece of whole lines, or no piece at the end. */
int csv_scan_next(void *scan, void **piece, const char **metadata,
                  struct uva_error *error);

/* Converts a piece into numbers, and frees it; a field that is not a number
 * becomes NaN.
 * Thread: any, several at once. */
int csv_scan_extract(void *scan, void *piece, struct ArrowDeviceArray *out,
                     struct uva_error *error);

void csv_scan_free(void *scan);

#endif
