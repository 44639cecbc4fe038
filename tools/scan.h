/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the events in the text of a trace: JSON in either form of Chrome's
 * trace event format, an array of events or an object with such an array as
 * "traceEvents". It checks that the text is JSON, and not the meaning of the
 * events. */
#ifndef UVA_TOOLS_SCAN_H
#define UVA_TOOLS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvarrow/base.h"

/* The events of a trace. */
struct uva__scan {
    const char *begin; /* borrows: the text between the brackets */
    size_t size;       /* up to the end of the last complete event */
    int64_t events;    /* how many there are */
    bool cut;          /* the text ends before its closing bracket */
};

/* Scans `size` bytes at `text`, which are borrowed as long as `out` is used.
 * The format allows the closing bracket to be missing, as in the file of a
 * program that was killed; an event that is not complete is left out then.
 * Returns 0; EINVAL with an error that names the line. Thread: any. */
UVA_MUST_CHECK int uva__scan_trace(const char *text, size_t size,
                                   struct uva__scan *out,
                                   struct uva_error *error);

#endif
