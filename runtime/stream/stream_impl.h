/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a `struct uva_stream`: a chain being built, then a run, counted
 * by its holders and by itself while it runs. stream/producer.c moves the
 * batches; the consumers use them. */
#ifndef UVA_STREAM_FLOW_H
#define UVA_STREAM_FLOW_H

#include "stream/failure.h"
#include "stream/producer.h"

/* The consumer's end of a stream. The first member of each kind. */
struct uva__terminal {
    const struct uva__terminal_ops *ops; /* static */
};

struct uva__terminal_ops {
    const char *name; /* "for_each"... */
    /* Attaches its handler to stream->tail; on the loop. */
    void (*begin)(struct uva_stream *stream);
    /* Handles what threads have posted: a cancel, a resume, a drop, a request
     * for a batch; on the loop, also after the end. */
    void (*visit)(struct uva_stream *stream);
    /* Frees it, with the stream; any thread. */
    void (*free)(struct uva_stream *stream);
    bool lonely; /* the release of its last holder cancels it */
};

enum uva__flow_stage {
    UVA__FLOW_BUILDING, /* stages may be added */
    UVA__FLOW_STARTED,  /* runs; counts itself */
    UVA__FLOW_DONE      /* the outcome was reported */
};

/* The state of a cancel. */
enum uva__flow_latch { UVA__LATCH_OPEN, UVA__LATCH_SETTING, UVA__LATCH_SET };

struct uva_stream {
    struct uva__hub *hub;     /* counts; NULL: a static stream that failed */
    struct uva__word holders; /* the user's */
    struct uva__word stage;   /* enum uva__flow_stage */
    struct uva__word latch;   /* enum uva__flow_latch */
    struct uva__word resumed; /* 1: a resume that is not used up */
    struct uva__word verdict; /* once done: 0 or the code of `result` */
    struct uva__node node;    /* posted by all of the above; counted by holders,
                                 posts, and the stream itself while it runs */

    struct uva__failure sticky; /* the first error of building */
    struct uva__failure why;    /* of the cancel; behind the latch */
    struct uva__failure result; /* of the run; behind the verdict */
    char *name;                 /* owns; or NULL */
    bool device_data; /* batches may be ones the host cannot read; builder */
    struct uva__producer *tail;     /* owns until begun; until released */
    struct uva__terminal *terminal; /* owns, once started */

    struct {                         /* the loop thread's alone */
        struct uva__tenant tenant;   /* linked while open */
        struct uva_stream_info info; /* of the schema, once known */
        struct ArrowSchema schema;   /* owns */
        char *metadata;              /* owns: the producer's; or NULL */
        size_t metadata_size;        /* of the metadata */
        bool begun;                  /* the terminal has */
        bool held;                   /* keeps the loop alive */
        bool silent;                 /* dropped: no callback any more */
    } loop;
};

/* Makes a stream of the batches of `feed`, whose reference it takes; never
 * NULL. The caller holds the result. Thread: any. */
struct uva_stream *uva__flow_new(struct uva__feed *feed);

/* Makes a stream that has failed already. `runtime` may be NULL, and then
 * `error` is not used. Thread: any. */
struct uva_stream *uva__flow_failed(struct uva_runtime *runtime,
                                    const struct uva_error *error);

/* Whether a stage may be added: 0, or the first error so far, which is EINVAL
 * for NULL and EBUSY after the start. Thread: builder. */
int uva__flow_building(const struct uva_stream *stream);

/* Keeps the first error of building. Returns it. Thread: builder. */
int uva__flow_fail(struct uva_stream *stream, int code, const char *format, ...)
    UVA_PRINTF(3, 4);

/* Adds a stage: the stream's batches now come from the feed that `wrap` makes
 * of its tail so far, whose maker's reference it takes on success. Returns 0,
 * or ENOMEM, which the stream keeps. Thread: builder. */
int uva__flow_wrap(struct uva_stream *stream,
                   struct uva__feed *(*wrap)(struct uva__producer *above,
                                             const void *how),
                   const void *how);

/* Whether the stream can be started now: 0; otherwise the code, with `error`.
 * Thread: builder. */
UVA_MUST_CHECK int uva__flow_may_start(const struct uva_stream *stream,
                                       struct uva_error *error);

/* Starts the stream with `terminal`, which it takes on success. 0; EBUSY,
 * ESHUTDOWN, or what uva__flow_may_start() returns. Thread: builder. */
UVA_MUST_CHECK int uva__flow_start(struct uva_stream *stream,
                                   struct uva__terminal *terminal,
                                   struct uva_error *error);

/* Keeps the facts known before the first batch: moves `schema` in, copies the
 * metadata. 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__flow_take_schema(struct uva_stream *stream,
                                         const struct ArrowAsyncProducer *from,
                                         struct ArrowSchema *schema);

/* The reason of its cancel; NULL while it is not cancelled. Thread: loop. */
const struct uva__failure *uva__flow_cancelled(const struct uva_stream *stream);

/* The consumer has reported the outcome: the stream runs no more and holds
 * nothing open. `code` is 0 for success; `error` is copied (NULL: only the code
 * is known). Releases its reference to itself, so `stream` may be gone.
 * Thread: loop. */
void uva__flow_done(struct uva_stream *stream, int code,
                    const struct uva_error *error);

/* Keeps the loop alive no longer, although the stream is not done: a program
 * may end while only others may still extract. Thread: loop. */
void uva__flow_unhold(struct uva_stream *stream);

#endif
