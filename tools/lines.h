/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that turns batches into lines of text on workers, so that the loop
 * thread only writes bytes, and knows how many rows they are.
 *
 * The output is Arrow data, too. Each batch becomes one row of two columns: the
 * text of all its lines (large binary), and its number of rows (int64). The
 * name of the text column is the header line. */
#ifndef UVA_TOOLS_LINES_H
#define UVA_TOOLS_LINES_H

#include "uvarrow/io.h"
#include "uvarrow/stages.h"

/* The content of an output batch. Borrows from the batch. */
struct uva__lines {
    const char *data; /* whole lines, with their line ends */
    size_t size;      /* in bytes */
    int64_t rows;     /* rows of the input batch */
};

/* Gives `map` for uva_stream_map(), which takes its content. `options` name a
 * format of text; its strings stay valid until the map's free_ctx. Returns 0 or
 * ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__lines_map(const struct uva_write *options,
                                  struct uva_map *map);

/* Reads an output batch. Thread: any. */
struct uva__lines uva__lines_read(const struct ArrowArray *array);

/* Takes the text out of an output batch, which then has none. Thread: any, one
 * at a time. */
struct uva_encoder_part uva__lines_take(struct ArrowArray *array);

/* Returns the header line, with its line end; "" if there are no columns.
 * Borrows from the output schema. Thread: any. */
const char *uva__lines_header(const struct ArrowSchema *schema);

#endif
