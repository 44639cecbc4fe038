/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind a `struct uva_stream`: what is being built, then what runs,
 * counted by its holders and by itself while it runs. How batches flow is in
 * stream/producer.c; what becomes of them, in the consumers. */
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
    /* Looks at what threads may have left: a cancel, a resume, a drop, a wish
     * for a batch; on the loop, also after the end. */
    void (*visit)(struct uva_stream *stream);
    /* Frees it, with the stream; any thread. */
    void (*free)(struct uva_stream *stream);
    bool lonely; /* once its last holder has let go, nobody wants it */
};

enum uva__flow_stage {
    UVA__FLOW_BUILDING, /* stages may be added */
    UVA__FLOW_STARTED,  /* runs; counts itself */
    UVA__FLOW_DONE      /* the consumer has been told the outcome */
};

/* What a cancel left behind. */
enum uva__flow_latch { UVA__LATCH_OPEN, UVA__LATCH_SETTING, UVA__LATCH_SET };

struct uva_stream {
    struct uva__hub *hub;     /* counts; NULL: a static stream that failed */
    struct uva__word holders; /* the user's */
    struct uva__word stage;   /* enum uva__flow_stage */
    struct uva__word latch;   /* enum uva__flow_latch */
    struct uva__word resumed; /* 1: a resume that nobody has used yet */
    struct uva__word verdict; /* once done: 0 or the code of `result` */
    struct uva__node node;    /* posted by all of the above; counted by holders,
                                 posts, and the stream itself while it runs */

    struct uva__failure sticky; /* the first error of building */
    struct uva__failure why;    /* of the cancel; behind the latch */
    struct uva__failure result; /* of the run; behind the verdict */
    char *name;                 /* owns; or NULL */
    bool device_data; /* batches that the host cannot read are welcome; builder
                       */
    struct uva__producer *tail;     /* owns until begun; until released */
    struct uva__terminal *terminal; /* owns, once started */

    struct {                         /* the loop thread's alone */
        struct uva__tenant tenant;   /* what a close ends */
        struct uva_stream_info info; /* of the schema, once known */
        struct ArrowSchema schema;   /* owns */
        char *metadata;              /* owns: the producer's; or NULL */
        size_t metadata_size;        /* of that */
        bool begun;                  /* the terminal has */
        bool held;                   /* keeps the loop alive */
        bool silent;                 /* dropped: no callback any more */
    } loop;
};

/* Makes a stream that draws from `feed`, whose count it takes; never NULL. The
 * caller holds the result. Thread: any. */
struct uva_stream *uva__flow_new(struct uva__feed *feed);

/* Makes a stream that has failed already. `runtime` may be NULL, and then
 * `error` is not used. Thread: any. */
struct uva_stream *uva__flow_failed(struct uva_runtime *runtime,
                                    const struct uva_error *error);

/* Whether a stage may be added: 0, or the first error so far, which is EINVAL
 * for NULL and EBUSY after the start. Thread: builder. */
int uva__flow_building(const struct uva_stream *stream);

/* Remembers an error of building. Returns it. Thread: builder. */
int uva__flow_fail(struct uva_stream *stream, int code, const char *format, ...)
    UVA_PRINTF(3, 4);

/* Replaces what the stream draws from: the feed that `wrap` makes of its tail
 * so far, whose maker's count it takes on success. Returns 0, or ENOMEM, which
 * the stream remembers. Thread: builder. */
int uva__flow_wrap(struct uva_stream *stream,
                   struct uva__feed *(*wrap)(struct uva__producer *above,
                                             const void *how),
                   const void *how);

/* Whether the stream can be started now: 0; otherwise the code, with `error`.
 * Thread: builder. */
UVA_MUST_CHECK int uva__flow_may_start(const struct uva_stream *stream,
                                       struct uva_error *error);

/* Starts the stream with `terminal`, which it takes on success. 0; EBUSY,
 * ESHUTDOWN, or what uva__flow_may_start() said. Thread: builder. */
UVA_MUST_CHECK int uva__flow_start(struct uva_stream *stream,
                                   struct uva__terminal *terminal,
                                   struct uva_error *error);

/* Keeps what is known before the first batch: moves `schema` in, copies the
 * metadata. 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__flow_take_schema(struct uva_stream *stream,
                                         const struct ArrowAsyncProducer *from,
                                         struct ArrowSchema *schema);

/* Why it was cancelled; NULL while it was not. Thread: loop. */
const struct uva__failure *uva__flow_cancelled(const struct uva_stream *stream);

/* The consumer has been told all: the stream runs no more and holds nothing
 * open. It went well if `code` is 0; `error` is copied (NULL: only the code is
 * known). Gives up its count on itself, so that `stream` may be gone.
 * Thread: loop. */
void uva__flow_done(struct uva_stream *stream, int code,
                    const struct uva_error *error);

/* Lets the program end although the stream is not done (12.8, P7).
 * Thread: loop. */
void uva__flow_unhold(struct uva_stream *stream);

#endif
