/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream with a check in front of it, where a test makes the stream
 * break one rule or another; and calls of a reader. A chunk is a struct of one
 * int64 column. Thread: one at a time. */
#ifndef UVA_SUPPORT_SPOILED_STREAM_H
#define UVA_SUPPORT_SPOILED_STREAM_H

#include "check/reporter.h"
#include "support/breach_log.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow_abi.h"

struct spoiled_stream {
    struct breach_log log;
    struct faulty_allocator memory;
    struct uva__reporter *reporter; /* counts: late calls are reported, too */
    struct ArrowDeviceArrayStream stream;
    /* the plan of the checked stream */
    int chunks;       /* chunks left */
    int code;         /* code of the next call, if not 0 */
    const char *text; /* text of the last error */
    void (*spoil_schema)(struct ArrowSchema *schema);
    void (*spoil_chunk)(struct ArrowDeviceArray *chunk);
    void (*inside)(
        struct spoiled_stream *spoiled); /* called once, in get_next */
    bool unmarked;            /* release does not mark the stream as released */
    ArrowDeviceType turns_to; /* its device_type after get_next; 0: unchanged */
    /* its record */
    int calls, releases;
};

/* Prepares a stream of `chunks` chunks in `stream`, without a check. */
void spoiled_stream_init(struct spoiled_stream *spoiled, int chunks);

/* Returns options of a check that reports to the log, with its own memory. */
struct uva_check spoiled_stream_options(struct spoiled_stream *spoiled);

/* Puts the check around the stream; `_open` also prepares it. */
void spoiled_stream_check(struct spoiled_stream *spoiled);
void spoiled_stream_open(struct spoiled_stream *spoiled, int chunks);

/* Releases the stream, if it is live, and checks that no further breach was
 * reported and no object is left. */
void spoiled_stream_close(struct spoiled_stream *spoiled);

/* Gives one chunk. */
void spoiled_stream_chunk(struct ArrowDeviceArray *out);

/* Call the checked stream, and release its results. get_next returns ENODATA at
 * the end. */
int spoiled_stream_get_schema(struct spoiled_stream *spoiled);
int spoiled_stream_get_next(struct spoiled_stream *spoiled);
const char *spoiled_stream_get_last_error(struct spoiled_stream *spoiled);

#endif
