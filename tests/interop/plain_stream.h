/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of the C stream interface as a device stream, for the subjects of
 * libraries that give plain streams. The members that only a device stream and
 * its batches have are added; everything else passes through unchanged. */
#ifndef INTEROP_PLAIN_STREAM_H
#define INTEROP_PLAIN_STREAM_H

#include "uvarrow/tck.h"

/* A plain stream, with the objects that have to end after it. Lives as long as
 * its process. */
struct plain_stream {
    struct ArrowArrayStream rows; /* owns */
    void (*free_ctx)(void *ctx);  /* called after the release; may be NULL */
    void *ctx;                    /* owns */
};

/* Gives `plain`, in which the rows are set, as `out`. Borrows `plain`. */
void plain_stream_give(struct plain_stream *plain,
                       struct ArrowDeviceArrayStream *out);

#endif
