/* SPDX-License-Identifier: Apache-2.0 */
/* The struct uva_stream: a chain of stages being built, then a run. Its holders
 * count it, and while it runs it counts itself. stream/producer.c moves the
 * batches; the sinks use them. */
#ifndef UVA_STREAM_STREAM_IMPL_H
#define UVA_STREAM_STREAM_IMPL_H

#include <stddef.h>

#include "stream/failure.h"
#include "stream/producer.h"

/* The consumer's end of a stream. The first member of each kind. */
struct uva__sink {
    const struct uva__sink_ops *ops; /* static */
};

/* A kind of sink: a static table. */
struct uva__sink_ops {
    const char *name; /* "for_each"... */
    size_t size;      /* of its object, which begins with the sink */
    bool shared;      /* two threads use it: it gets its own cache lines */
    /* Attaches its handler to stream->tail; on the loop. */
    void (*begin)(struct uva_stream *stream);
    /* Handles the posts of threads: a cancel, a pause, a resume, a drop; on the
     * loop, also after the end. */
    void (*on_wakeup)(struct uva_stream *stream);
    /* Frees its objects, without its memory; any thread. */
    void (*free)(struct uva_stream *stream);
    bool cancel_without_holder; /* the release of its last holder cancels it */
};

enum uva__stream_state {
    UVA__STREAM_BUILDING, /* stages may be added */
    UVA__STREAM_GIVEN,    /* an inlet of another stream draws on it */
    UVA__STREAM_STARTED,  /* runs; counts itself */
    UVA__STREAM_DONE      /* the outcome was reported */
};

/* The state of a cancel. */
enum uva__cancel_latch {
    UVA__CANCEL_LATCH_OPEN,
    UVA__CANCEL_LATCH_SETTING,
    UVA__CANCEL_LATCH_SET
};

/* Bytes after a stream: for its sink, if that is small. */
enum { UVA__STREAM_SINK_ROOM = 464 };

/* Notes the end of a stream. Part of its owner's object. */
struct uva__end_watch {
    struct uva__end_watch *next; /* borrows: another watch of the stream */
    /* the stream has ended, or was freed without a start; the last use of the
     * watch. `failure` is NULL if it is complete, was cancelled, or never ran.
     * Any thread */
    void (*ended)(struct uva__end_watch *watch,
                  const struct uva__failure *failure);
};

/* Follows its label, in one block, unless it has failed when it is made. */
struct uva_stream {
    struct uva__rt *rt; /* counts; NULL: a static stream that failed */
    struct uva__atomic64 holders; /* the user's */
    struct uva__atomic64 state;   /* enum uva__stream_state */
    struct uva__atomic64 latch;   /* enum uva__cancel_latch */
    struct uva__atomic64 pausing; /* enum uva__pausing */
    struct uva__atomic64 verdict; /* once done: 0 or the code of `result` */
    struct uva__wakeup wakeup; /* posted by all these; counted by holders, posts
                                  and the running stream */

    struct uva__atomic_ptr watches; /* borrows: the first uva__end_watch; the
                                       stream itself once it has ended */

    struct uva__failure sticky; /* the first error of building */
    struct uva__failure why;    /* of the cancel; guarded by the latch */
    struct uva__failure result; /* of the run; guarded by the verdict */
    struct uva__label *label;   /* counts: the name; NULL: it has failed */
    int32_t priority;           /* of its jobs; builder */
    bool device_data; /* batches may be ones the host cannot read; builder */
    struct uva__producer *tail; /* owns until begun, or given to an inlet; until
                                   released */
    struct uva__sink *sink;     /* owns, once made */

    struct {                            /* the loop thread's alone */
        struct uva__open_object object; /* linked while open */
        struct uva_stream_info info;    /* of the schema, once known */
        struct ArrowSchema schema;      /* owns */
        struct uva__metadata metadata;  /* owns: the producer's */
        bool begun;                     /* the sink has */
        bool keeps_loop;                /* keeps the loop alive */
        bool silent;                    /* dropped: no callback any more */
    } loop;
};

/* Makes a stream of the batches of `source`, and takes a reference to it; never
 * NULL. The caller holds the result. The source gets a copy of `name` (NULL: it
 * keeps that of its kind). Thread: any. */
struct uva_stream *uva__stream_new(struct uva__source *source,
                                   const char *name);

/* Makes a stream that has failed already. `runtime` may be NULL, and then
 * `error` is not used. Thread: any. */
struct uva_stream *uva__stream_failed(struct uva_runtime *runtime,
                                      const struct uva_error *error);

/* Makes a stream that has failed for the reason why `stream`, to which no stage
 * can be added, cannot. Thread: builder. */
struct uva_stream *uva__stream_failed_like(const struct uva_stream *stream);

/* The name of the stream, as long as it lives; may be NULL. Thread: any. */
static inline const char *uva__stream_name(const struct uva_stream *stream)
{
    return uva__label_text(stream->label);
}

/* Puts the name in front of the text of an error that is about to be given to
 * the user; stored errors do not have it. No effect without a name, if the name
 * is that of an input of a merge, and on NULL. Thread: any. */
void uva__stream_name_error(const struct uva_stream *stream,
                            struct uva_error *error);

/* Whether a stage may be added: 0, or the first error so far, which is EINVAL
 * for NULL and EBUSY after the start. Thread: builder. */
int uva__stream_building(const struct uva_stream *stream);

/* Keeps the first error of building. Returns it. Thread: builder. */
int uva__stream_fail(struct uva_stream *stream, int code, const char *format,
                     ...) UVA_PRINTF(3, 4);

/* Adds a stage: the stream's batches now come from the source that `wrap` makes
 * of the tail so far; on success `wrap` takes the maker's reference to that
 * tail. Returns 0, or ENOMEM, which the stream keeps. Thread: builder. */
int uva__stream_wrap(struct uva_stream *stream,
                     struct uva__source *(*wrap)(struct uva__producer *above,
                                                 const void *options),
                     const void *options);

/* Whether the stream can be started now: 0; otherwise the code, with `error`.
 * Thread: builder. */
UVA_MUST_CHECK int uva__stream_may_start(const struct uva_stream *stream,
                                         struct uva_error *error);

/* Makes the sink of a stream that may start, in cleared memory.
 * uva__stream_start() follows, or uva__stream_discard_sink(). 0; ENOMEM, or
 * the code of uva__stream_may_start(). Thread: builder. */
UVA_MUST_CHECK int uva__stream_make_sink(struct uva_stream *stream,
                                         const struct uva__sink_ops *ops,
                                         struct uva_error *error);

/* Frees the sink of a stream that does not run. Thread: any. */
void uva__stream_discard_sink(struct uva_stream *stream);

/* Starts the stream with its sink, which it discards on failure. 0; EBUSY,
 * ESHUTDOWN, or the code of uva__stream_may_start(). Thread: builder. */
UVA_MUST_CHECK int uva__stream_start(struct uva_stream *stream,
                                     struct uva_error *error);

/* Keeps the facts known before the first batch: moves `schema` in, copies the
 * metadata. 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int
uva__stream_take_schema(struct uva_stream *stream,
                        const struct ArrowAsyncProducer *from,
                        struct ArrowSchema *schema);

/* A stream that is GIVEN runs from now on: until the inlet clears its `tail`, a
 * cancel aborts that. Thread: loop. */
void uva__stream_open_given(struct uva_stream *stream);

/* Keeps the result of a stream, for uva_stream_status(); once. `code` and
 * `error` as for uva__stream_done(). Thread: any. */
void uva__stream_settle(struct uva_stream *stream, int code,
                        const struct uva_error *error);

/* Has `watch` (borrows, until it is called) note the end of the stream. False
 * if it has ended: then `watch` is not called. Thread: any that holds a
 * reference. */
UVA_MUST_CHECK bool uva__stream_watch_end(struct uva_stream *stream,
                                          struct uva__end_watch *watch);

/* The failure of a stream that has ended, as uva__end_watch gets it.
 * Thread: any that holds a reference. */
const struct uva__failure *uva__stream_failure(const struct uva_stream *stream);

/* Whether it was cancelled or dropped, or is just being cancelled. Thread: any
 * that keeps it. */
static inline bool uva__stream_is_cancelling(const struct uva_stream *stream)
{
    return uva__atomic64_load(&stream->latch) != UVA__CANCEL_LATCH_OPEN;
}

/* The reason of its cancel; NULL while it is not cancelled. Thread: loop. */
const struct uva__failure *
uva__stream_cancelled(const struct uva_stream *stream);

/* The consumer has reported the outcome: the stream runs no more and holds
 * no object open. `code` is 0 for success; `error` is copied (NULL: only the
 * code is known). Releases its reference to itself, so `stream` may be gone.
 * Thread: loop. */
void uva__stream_done(struct uva_stream *stream, int code,
                      const struct uva_error *error);

#endif
