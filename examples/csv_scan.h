/* SPDX-License-Identifier: Apache-2.0 */
/* A producer in two halves: one column of a CSV file. Reading the next piece of
 * the file, in order, is one half; turning its text into numbers is the dear
 * one, and may be done by several threads at once. The functions have the shape
 * of the hooks in struct uva_task_source, and know nothing of loops. */
#ifndef EXAMPLES_CSV_SCAN_H
#define EXAMPLES_CSV_SCAN_H

#include "uvarrow/uvarrow.h"

struct csv_scan;

/* Remembers what to read; the file is not opened yet. Borrows the texts. NULL
 * when out of memory, which csv_scan_schema() will report. */
struct csv_scan *csv_scan_new(const char *path, const char *column);

/* Opens the file and looks for the column in its first line. */
int csv_scan_schema(void *scan, struct ArrowSchema *out,
                    struct uva_error *error);

/* Gives a piece of whole lines, or none at the end. */
int csv_scan_next(void *scan, void **piece, const char **metadata,
                  struct uva_error *error);

/* Makes numbers of a piece, and frees it; what is no number becomes NaN.
 * Thread: any, several at once. */
int csv_scan_extract(void *scan, void *piece, struct ArrowDeviceArray *out,
                     struct uva_error *error);

void csv_scan_free(void *scan);

#endif
