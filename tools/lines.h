/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that turns batches into lines of CSV on a worker, so that the loop
 * thread has only to write bytes. How CSV looks is left to csv.h.
 *
 * What comes out is Arrow still. Each batch is one row of two columns: the
 * text of all its lines (large binary), and how many rows it was (int64). The
 * column of text has the header line for its name. */
#ifndef UVA_TOOLS_LINES_H
#define UVA_TOOLS_LINES_H

#include "uvarrow/operators.h"

/* What a batch that came out of the stage says. Borrows from the batch. */
struct uva__lines {
    const char *data; /* whole lines, with their line ends */
    size_t size;      /* in bytes */
    int64_t rows;     /* of the batch that went in */
};

/* Gives `map`, for uva_stream_map(), which takes what is in it. 0; ENOMEM.
 * Thread: any. */
UVA_MUST_CHECK int uva__lines_map(struct uva_map *map);

/* Reads a batch that came out of the stage. Thread: any. */
struct uva__lines uva__lines_read(const struct ArrowArray *array);

/* The header line, with its line end; "" if there are no columns. Borrows from
 * the schema that came out of the stage. Thread: any. */
const char *uva__lines_header(const struct ArrowSchema *schema);

#endif
