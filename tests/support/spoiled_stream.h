/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream with a check in front of it, which a test lets do this or
 * that wrong; and calls of a reader. A chunk is a struct of one int64 column.
 * Thread: one at a time. */
#ifndef UVA_SUPPORT_SPOILED_STREAM_H
#define UVA_SUPPORT_SPOILED_STREAM_H

#include "check/reporter.h"
#include "support/breach_log.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow_abi.h"

struct spoiled_stream {
    struct breach_log log;
    struct faulty_allocator memory;
    struct uva__reporter
        *reporter; /* counted, so that late calls are told of */
    struct ArrowDeviceArrayStream stream;
    /* the stream behind: what it does */
    int chunks;       /* still to come */
    int code;         /* of the next call, if not 0 */
    const char *text; /* of the last error */
    void (*spoil_schema)(struct ArrowSchema *schema);
    void (*spoil_chunk)(struct ArrowDeviceArray *chunk);
    void (*inside)(struct spoiled_stream *scene); /* called in get_next, once */
    bool unmarked;                                /* release does not mark it */
    ArrowDeviceType turns_to; /* its device_type after get_next; 0: none */
    /* and what happened to it */
    int calls, releases;
};

/* Prepares a stream of so many chunks in `stream`, unchecked. */
void spoiled_stream_init(struct spoiled_stream *scene, int chunks);

/* Options that tell the log, with memory of its own. */
struct uva_check spoiled_stream_options(struct spoiled_stream *scene);

/* Puts the check around the stream; `_open` does both. */
void spoiled_stream_check(struct spoiled_stream *scene);
void spoiled_stream_open(struct spoiled_stream *scene, int chunks);

/* Releases the stream, if it is live, and checks that nothing more was told and
 * nothing is left. */
void spoiled_stream_close(struct spoiled_stream *scene);

/* Gives one of its chunks. */
void spoiled_stream_chunk(struct ArrowDeviceArray *out);

/* Call the checked stream, and release what comes; get_next: ENODATA at the
 * end. */
int spoiled_stream_get_schema(struct spoiled_stream *scene);
int spoiled_stream_get_next(struct spoiled_stream *scene);
const char *spoiled_stream_get_last_error(struct spoiled_stream *scene);

#endif
