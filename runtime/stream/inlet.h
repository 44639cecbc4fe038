/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream end of anything: the handler that faces the producer above, and
 * how far the two have come. A stage is an inlet and a source, merge has an
 * inlet for each stream, tee has one and several sources, retry opens its inlet
 * again, and a consumer is an inlet at the end of a stream.
 *
 * An inlet goes IDLE -> RUNNING -> ENDED; or to RELEASED, from RUNNING after a
 * failure, through QUIT after a cancel, and from IDLE if it is never begun. Its
 * owner requests batches, and quits; its calls for the owner are in struct
 * uva__inlet_ops.
 *
 * Everything here runs on the loop thread, unless its comment states otherwise.
 */
#ifndef UVA_STREAM_INLET_H
#define UVA_STREAM_INLET_H

#include "stream/intake.h"
#include "stream/producer.h"

struct uva__inlet;
struct uva_stream;

/* The functions of the owner of an inlet. A static table. */
struct uva__inlet_ops {
    /* moves the schema out, or reads it: a schema that stays there is released.
     * A code refuses it, and becomes the failure of the inlet, with `error`,
     * unless it has failed already */
    int (*schema)(struct uva__inlet *inlet, struct ArrowSchema *schema,
                  struct uva_error *error);
    /* takes a task, in order, and never after a quit */
    void (*task)(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* something has changed: the schema or a task has come, the end, a failure,
     * or the release. It wakes the producers below */
    void (*news)(struct uva__inlet *inlet);
    /* the handler was released: the last call, which releases the reference
     * that the owner has counted for it */
    void (*released)(struct uva__inlet *inlet);
};

enum uva__inlet_state {
    UVA__INLET_IDLE,    /* the producer above does not drive it so far */
    UVA__INLET_RUNNING, /* it does */
    UVA__INLET_ENDED,   /* all batches have come, and the end */
    UVA__INLET_QUIT, /* the producer was cancelled, and sends no more tasks */
    UVA__INLET_RELEASED /* it has released the handler without an end:
                           `failure` has the reason */
};

struct uva__inlet {
    struct ArrowAsyncDeviceStreamHandler handler; /* for the producer above */
    const struct uva__inlet_ops *ops;             /* static */
    struct uva__rt *rt;                           /* borrows: the owner's */
    struct uva__producer *above;  /* owns while IDLE; NULL: it is released */
    struct uva_stream *stream;    /* a user reference, until the release: the
                                     stream that was given for it, and has its
                                     end reported; NULL: the owner's */
    struct uva__source *stopping; /* the source of which the stop waits for the
                                     release; or NULL */
    enum uva__inlet_state state;
    bool known;                  /* the owner has taken the schema */
    struct uva__failure failure; /* why not all batches come; code 0: no
                                    failure */
};

/* Sets up an inlet in cleared memory, or a RELEASED one; takes `above`.
 * Thread: builder. */
void uva__inlet_init(struct uva__inlet *inlet, const struct uva__inlet_ops *ops,
                     struct uva__producer *above);

/* Frees its memory. Thread: any. */
void uva__inlet_fini(struct uva__inlet *inlet);

/* Has the producer above drive the handler, as a part of the chain that the
 * producer `below` drives, whose priority it gets; ahead of need if `below`
 * does, or with `ahead`. */
void uva__inlet_begin(struct uva__inlet *inlet,
                      const struct uva__producer *below, bool ahead);

/* The same at the end of a stream, with the hooks of a consumer (may be NULL).
 */
void uva__inlet_begin_last(struct uva__inlet *inlet,
                           const struct uva__producer_hooks *hooks, void *ctx);

/* Ends an inlet that is IDLE, for its failure or ECANCELED. It does not call
 * the owner's functions. Thread: loop; any, without a stream. */
void uva__inlet_close(struct uva__inlet *inlet);

/* Whether the stream that was given was cancelled before it begins: that is the
 * failure of the inlet then. */
bool uva__inlet_is_cancelled(struct uva__inlet *inlet);

/* Makes an inlet that is RELEASED an idle one again, without a failure: takes
 * the tail of `stream`, which is GIVEN, and the reference to it. */
void uva__inlet_reopen(struct uva__inlet *inlet, struct uva_stream *stream);

/* Whether batches may be requested, and will come. */
static inline bool uva__inlet_is_open(const struct uva__inlet *inlet)
{
    return inlet->known && inlet->state == UVA__INLET_RUNNING &&
           inlet->failure.code == 0;
}

/* Requests `n` more batches, 1 or more, unless no more come. */
static inline void uva__inlet_request(struct uva__inlet *inlet, int64_t n)
{
    struct ArrowAsyncProducer *producer = inlet->handler.producer;

    if (inlet->state == UVA__INLET_RUNNING && inlet->failure.code == 0)
        producer->request(producer, n);
}

/* Requests `n` more batches for an intake, which counts them; or 0. */
static inline void uva__inlet_request_for(struct uva__inlet *inlet,
                                          struct uva__intake *intake, int64_t n)
{
    intake->requested += n;
    if (n > 0)
        uva__inlet_request(inlet, n);
}

/* Cancels the producer above, unless it has released the handler. After the end
 * it may still wait for tasks, and does not any more. */
void uva__inlet_quit(struct uva__inlet *inlet);

/* There was no memory for a batch: fails, and quits. */
void uva__inlet_lose(struct uva__inlet *inlet);

/* The stop of `source` waits for the release of an inlet that was quit, if a
 * source above uses a device stream of the consumer: driver calls may be in
 * flight. */
void uva__inlet_await(struct uva__inlet *inlet, struct uva__source *source);

/* An extraction has failed with `code`: the reason becomes the failure of
 * `source` once it is known. That is the failure of the inlet, or the code
 * alone without one, or if that failure only states that the producer released
 * the handler without an end: then the extraction had failed before.
 * Clauses: ER-12, ER-13. */
void uva__inlet_fail_extraction(struct uva__inlet *inlet, int code,
                                struct uva__source *source);

/* All batches that came were passed on: has the end, or the failure, follow
 * them in `source`. No effect on an inlet that has ended or failed, or before.
 */
void uva__inlet_conclude(struct uva__inlet *inlet, struct uva__source *source);

/* The outline of the schema that the owner takes, with a count for the caller.
 * NULL: the producer above has none. */
static inline struct uva__outline *
uva__inlet_outline(const struct uva__inlet *inlet)
{
    const struct uva__producer *above = inlet->above;

    return uva__outline_share(above->maps == NULL ? above->source->outline
                                                  : above->output);
}

/* For uva__source_ops.need: its batches are needed from now on. */
static inline void uva__inlet_need(const struct uva__inlet *inlet)
{
    if (inlet->above != NULL)
        uva__producer_need(inlet->above);
}

/* For uva__source_ops.above: the source above; NULL: it is released. */
static inline const struct uva__source *
uva__inlet_source(const struct uva__inlet *inlet)
{
    return inlet->above != NULL ? inlet->above->source : NULL;
}

#endif
