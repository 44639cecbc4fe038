/* SPDX-License-Identifier: Apache-2.0 */
/* Turns trace events into the JSON of Chrome's trace event format, in its form
 * of an array. It opens no file: the text collects in a buffer. */
#ifndef UVA_OBSERVE_TRACE_JSON_H
#define UVA_OBSERVE_TRACE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "observe/trace_ring.h"

enum {
    UVA__TRACE_JSON_ROOM = 1 << 16,   /* size of the buffer */
    UVA__TRACE_JSON_RECORD = 1 << 12, /* more than the text of one event */
    UVA__TRACE_JSON_THREADS = 1 << 10,
    UVA__TRACE_JSON_FLOWS = 1 << 13,
    UVA__TRACE_JSON_STREAMS = 1 << 8,
    /* a stream's number in its runtime; above are the runtimes before that */
    UVA__TRACE_JSON_ID_BITS = 40
};

/* The last span of a batch that was written: the next arrow begins there. */
struct uva__trace_flow {
    uint64_t id;        /* number of the flow; 0: the entry is free */
    uint64_t stream_id; /* the batch: its stream, */
    int64_t ordinal;    /* its number, */
    int64_t at_ns;      /* when the span began */
    int32_t segment;    /* and the stages between which it has that number */
    int32_t thread;     /* the span's */
    bool ended;         /* at the consumer */
};

/* The stages of a stream that number batches anew. */
struct uva__trace_numbering {
    uint64_t stream_id;
    uint64_t stages; /* one bit for each, from 0 */
};

/* The facts about the events so far. The tables are caches of fixed size: an
 * entry that is pushed out costs a second name of a thread, or an arrow. */
struct uva__trace_json {
    int64_t origin_ns; /* the time that is written as 0 */
    int64_t pid;       /* of this process */
    uint64_t n_flows, n_waits;
    struct {
        int32_t thread; /* the thread of the last event */
        uint32_t size;  /* 0: no event so far */
        char text[64];  /* its number, the process's, and `ts` */
    } place;
    int32_t threads[UVA__TRACE_JSON_THREADS]; /* with a name in the text */
    struct uva__trace_flow flows[UVA__TRACE_JSON_FLOWS];
    struct uva__trace_numbering numberings[UVA__TRACE_JSON_STREAMS];
    size_t size; /* of the text */
    char text[UVA__TRACE_JSON_ROOM];
};

/* Begins the text of an array with the name of the process. `json` is all
 * zeroes but for `origin_ns` and `pid`. Thread: the writer, as below. */
void uva__trace_json_begin(struct uva__trace_json *json);

/* Appends one event, and its additions: the thread's name, an arrow. The text
 * begins with a comma. There must be room for UVA__TRACE_JSON_RECORD bytes. */
void uva__trace_json_put(struct uva__trace_json *json,
                         const struct uva__trace_record *record);

/* Appends a mark that `count` events were lost before `at_ns`. */
void uva__trace_json_put_lost(struct uva__trace_json *json, uint64_t count,
                              int64_t at_ns);

/* Whether there may be no room for one more event. */
static inline bool uva__trace_json_is_full(const struct uva__trace_json *json)
{
    return json->size > UVA__TRACE_JSON_ROOM - UVA__TRACE_JSON_RECORD;
}

#endif
