/* SPDX-License-Identifier: Apache-2.0 */
/* The origin of a producer's batches: a user's source, or a stage with another
 * producer above it. A source states facts; the producer decides when it calls
 * its handler with them. Everything here runs on the loop thread, unless its
 * comment states otherwise. */
#ifndef UVA_STREAM_SOURCE_H
#define UVA_STREAM_SOURCE_H

#include "loop/rt.h"
#include "observe/label.h"
#include "stream/budget.h"
#include "stream/failure.h"
#include "stream/outline.h"
#include "stream/task.h"

struct uva__source;

/* The functions of a kind of source. A function that may be NULL states so. */
struct uva__source_ops {
    const char *name;   /* "async"... */
    uint8_t extraction; /* enum uva__extraction: of its batches */
    bool sized;         /* it measures its batches */
    /* Begins, once, before all other calls but leave. NULL: pull does. */
    void (*start)(struct uva__source *source);
    /* Brings the facts up to date, and fetches more as far as `demand` (the
     * batches requested and not offered) and the source's own window allow.
     * NULL: only take changes them. */
    void (*pull)(struct uva__source *source, int64_t demand);
    /* Gives the next batch in a filled slot, with its ordinal, while `ready` is
     * positive, and counts that down. NULL: no memory. */
    struct uva__task *(*take)(struct uva__source *source);
    /* Stops it, once, with `stopped` set: discards the batches that are ready,
     * and cancels the source or the producer above. It wakes its producer no
     * more, except by uva__producer_end_stop(), once for each step of the stop
     * that it has counted in `stopping`. */
    void (*stop)(struct uva__source *source);
    /* The producer has ended and all its tasks are settled: releases the
     * producer's reference. Possibly without a start. Any thread. NULL: it has
     * no other work than that, and is counted. */
    void (*leave)(struct uva__source *source);
    /* Frees what the object owns, but for the common part and its memory, which
     * are freed afterwards. Any thread. NULL: it owns no more. */
    void (*free)(struct uva__source *source,
                 const struct uva_allocator *allocator);
    /* It was posted: also before its start and after its stop. Its producer
     * runs afterwards, if it is in use. May release references. NULL: there is
     * no other work. */
    void (*posted)(struct uva__source *source);
    /* Its batches are needed from now on, after its producer began ahead: it
     * has the producers above it know. Once, after its start, and not after its
     * stop. NULL: it takes no turn, and no source above it does. */
    void (*need)(struct uva__source *source);
    /* Gives the source above a stage that has started, from which its next
     * batch has to come; NULL: it does not. No function: the user's source. */
    const struct uva__source *(*above)(const struct uva__source *source);
    /* the name of the stream to which that source belongs, if it is not this
     * one; may be NULL, and give NULL. Thread: loop */
    const char *(*part)(const struct uva__source *source);
    /* Gives how long calls of the user's source have taken so far, with a call
     * that runs at `now_ns`, and whether one does. No function: it is not
     * measured. */
    uint64_t (*busy_ns)(const struct uva__source *source, uint64_t now_ns,
                        bool *is_busy);
    bool pulls_inline; /* pull itself makes the batches, whenever it is called
                        */
    bool direct; /* pull and take may be called between two turns: they call no
                    user code; after the start a wake-up comes for the schema,
                    and after a pull for the next batch, or for the end */
};

/* The work of the extraction of a batch. Clauses: G-17. */
enum uva__extraction {
    UVA__EXTRACTION_MOVES,    /* the data is there */
    UVA__EXTRACTION_MAKES,    /* it makes the data, and may fail */
    UVA__EXTRACTION_EXPENSIVE /* that may take long: not on the loop thread */
};

/* Part of every source: the facts, and the producer to wake. */
struct uva__source {
    const struct uva__source_ops *ops; /* static */
    const char *name;                  /* static: of `ops`, or of the stage that
                                          they work for; or kept by the label.
                                          In errors, logs and reports */
    struct uva__rt *rt;                /* counts, until leave */
    struct uva__label *label;          /* counts; NULL: of no stream */
    struct uva__meter *meter;          /* borrows: the label's */
    struct uva__producer *producer;    /* borrows, until stop */
    ArrowDeviceType device_type;       /* of the batches; known at the schema */
    uint32_t stopping; /* steps of its stop that have not ended: the producer
                          waits for them */

    struct ArrowSchema schema;     /* owns, until the producer moves it out */
    struct uva__outline *outline;  /* counts: of that schema, also once it was
                                      moved; NULL: not needed so far */
    struct uva__metadata metadata; /* owns: the producer's */
    struct uva__wakeup wakeup;     /* of a counted source: posted when its facts
                                      change; counts the producer, posts, and
                                      other users */
    size_t size;                   /* of the object around a counted source; 0:
                                      its `free` frees the whole object */
    int64_t ready;                 /* batches that take() would give */
    uint8_t extraction;            /* enum uva__extraction: of its batches */
    bool sized;                    /* its batches come with their sizes */
    bool schema_known;             /* it has arrived */
    bool started;                  /* its producer draws from it */
    bool stopped;                  /* no more batches are wanted */
    bool ended;       /* no batch follows the batches that are ready */
    bool uses_stream; /* it uses the consumer's device stream */
    struct uva__failure failure; /* follows them, too; code 0: no failure */
    struct uva__share share;     /* of the batches in its window */
};

/* Sets up the common part, which holds a reference to the rt; for an object
 * that counts its users itself. stream/source_kind.h makes the others. */
void uva__source_init(struct uva__source *source,
                      const struct uva__source_ops *ops, struct uva__rt *rt);

/* Keeps the facts known before the first batch: moves `schema` in, copies the
 * metadata of the producer that it comes from. 0; ENOMEM, and no argument was
 * taken. Thread: loop. */
UVA_MUST_CHECK int
uva__source_take_schema(struct uva__source *source,
                        const struct ArrowAsyncProducer *from,
                        struct ArrowSchema *schema);

/* Makes sure that there is an outline of the schema, which is known and was not
 * moved. 0, or an errno of uva__outline_acquire(). Thread: loop. */
UVA_MUST_CHECK int uva__source_outline(struct uva__source *source);

/* States the source's bytes, for the budget of the runtime and the statistics.
 * Thread: loop. */
static inline void uva__source_hold(struct uva__source *source, int64_t batches,
                                    int64_t bytes)
{
    uva__share_hold(&source->share, batches, bytes);
    uva__meter_hold(source->meter, batches, bytes);
}

/* Counts the users of a counted source; the last release frees it. Thread: any.
 */
static inline void uva__source_acquire(struct uva__source *source)
{
    uva__wakeup_acquire(&source->wakeup);
}

static inline void uva__source_release(struct uva__source *source)
{
    uva__wakeup_release(&source->wakeup);
}

/* Releases the reference of its producer. Thread: any. */
static inline void uva__source_leave(struct uva__source *source)
{
    if (source->ops->leave != NULL)
        source->ops->leave(source);
    else
        uva__source_release(source);
}

/* Frees the memory of the common part, and releases the rt. Thread: any. */
void uva__source_fini(struct uva__source *source);

/* Returns whether the source, or a started one above it, uses the consumer's
 * device stream. Thread: loop. */
bool uva__source_uses_stream(const struct uva__source *source);

/* The wait of a source that has started and gives no batch: as its meter shows
 * it, or the meter of the source above it, for which it waits. As a fact, and
 * in the words of an error; sets `*name` to the name of the source that does
 * wait, and `*part` to the name of its stream, if that is an input of a merge.
 * Thread: loop. */
enum uva_waiting uva__source_waiting(const struct uva__source *source,
                                     const char **name, const char **part);
const char *uva__waiting_text(enum uva_waiting waiting);

#endif
