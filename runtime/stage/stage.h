/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of every stage: an inlet for the producer above it, and a
 * source for the producer below. It relays schema, metadata, end, error and
 * cancel; each stage decides about the tasks in between. Everything here runs
 * on the loop thread, unless its comment states otherwise. */
#ifndef UVA_STAGE_STAGE_H
#define UVA_STAGE_STAGE_H

#include "stream/inlet.h"
#include "stream/intake.h"
#include "stream/kept.h"
#include "stream/options.h"

struct uva__stage;

/* The arguments for a new stage. */
struct uva__stage_setup {
    struct uva_stream *stream;    /* that it is added to */
    const void *options;          /* checked; never NULL */
    struct uva__window window;    /* complete, if the options have one */
    struct uva__devices *devices; /* borrows; if it needs them */
    int needs;   /* bits UVA__STAGE_..., beside those of its kind */
    size_t more; /* bytes of its object beyond its size */
};

/* The needs of a stage, besides memory: at least one bit of the first two. */
enum {
    UVA__STAGE_CHEAP = 1,   /* workers extract, where that may be expensive */
    UVA__STAGE_WORKERS = 2, /* there are workers, on which it runs */
    UVA__STAGE_DEVICES = 4  /* there is a thread that waits for devices */
};

/* A kind of stage: a static table, of which uva__stage_add() makes one. */
struct uva__stage_kind {
    struct uva__options_kind options; /* by their name; NULL: it has none */
    size_t size;                      /* of its object, which begins with a
                                         struct uva__stage */
    size_t copy;                      /* where a copy of the options lies in it,
                                         which owns the ctx; 0: nowhere */
    int needs;                        /* bits UVA__STAGE_... */
    /* checks the options further: 0; a code with `error`. NULL: they are right
     */
    int (*check)(const struct uva__stage_setup *setup, struct uva_error *error);
    /* sets up the other members of the object, which are cleared. NULL: they
     * stay so. Takes the objects that it copies from the setup */
    void (*init)(struct uva__stage *stage,
                 const struct uva__stage_setup *setup);
    /* with a name, its own pull and take, and UVA__STAGE_RELAYS() */
    struct uva__source_ops source;
    /* as in struct uva__inlet_ops; NULL: the schema is passed on */
    int (*schema)(struct uva__stage *stage, struct ArrowSchema *schema,
                  struct uva_error *error);
    /* takes a task from above, in order */
    void (*task)(struct uva__stage *stage, struct ArrowAsyncTask *task,
                 const char *metadata);
    /* the stage was posted after its stop: threads have ended some work; NULL:
     * no thread works for it */
    void (*clear)(struct uva__stage *stage);
    /* frees what it owns, but for its memory, the ctx of its copy, and the
     * common part; any thread. NULL: it owns no more */
    void (*free)(struct uva__stage *stage,
                 const struct uva_allocator *allocator);
};

struct uva__stage {
    struct uva__source source;          /* first; counted by the inlet and by
                                           workers, too */
    struct uva__inlet inlet;            /* its failure follows the batches at
                                           hand */
    const struct uva__stage_kind *kind; /* static */
    struct uva__intake in;              /* the window of the options; without
                                           one, requests are passed on */
    struct uva__kept ready;             /* batches to be passed on */
    struct uva__timer timer;            /* runs the producer below, until the
                                           stop; or as the stage sets it up */
    ArrowDeviceType output_type;        /* of its batches; 0: unchanged */
};

/* Adds a stage to `stream`: checks the options (NULL: zeroes, unless they are
 * mandatory), adds what it needs, and makes it. Takes the ctx of the options,
 * also on failure, unless a reserved member is not NULL. Returns the first
 * error of the stream so far, or 0. Thread: builder. */
UVA_MUST_CHECK int uva__stage_add(struct uva_stream *stream,
                                  const struct uva__stage_kind *kind,
                                  const void *options);

/* The same with a setup that has checked options, and a stream that takes
 * stages. Thread: builder. */
UVA_MUST_CHECK int uva__stage_make(const struct uva__stage_kind *kind,
                                   struct uva__stage_setup *setup);

/* Has workers extract the batches of `stream`, if that may be expensive: stages
 * extract on the loop thread, where no call may take long. `window` is
 * complete: see stream/window.h; NULL: it follows the requests. Returns the
 * first error of the stream so far, or 0. Thread: builder. */
UVA_MUST_CHECK int uva__stage_make_cheap(struct uva_stream *stream,
                                         const struct uva__window *window);

/* Returns the stage that a source is part of. */
struct uva__stage *uva__stage_of(struct uva__source *source);

/* Counts references; the last release frees the stage. Thread: any. */
void uva__stage_acquire(struct uva__stage *stage);
void uva__stage_release(struct uva__stage *stage);

/* The functions of uva__source_ops that relay. */

/* Begins the inlet. */
void uva__stage_start(struct uva__source *source);

/* Stops the inlet and the timer, and discards the batches that are ready. */
void uva__stage_stop(struct uva__source *source);

/* Releases the reference of the source. */
void uva__stage_leave(struct uva__source *source);

/* Calls uva__stage_kind.clear, after the stop. */
void uva__stage_posted(struct uva__source *source);

/* Calls uva__stage_kind.free, and frees the common part. */
void uva__stage_free(struct uva__source *source,
                     const struct uva_allocator *allocator);

/* Passes on that batches are needed. */
void uva__stage_need(struct uva__source *source);

/* Gives the source above, until the inlet is released. */
const struct uva__source *uva__stage_above(const struct uva__source *source);

/* Members of the source_ops of a stage, with its stop. */
#define UVA__STAGE_RELAYS(own_stop)                                            \
    .start = uva__stage_start, .stop = (own_stop), .leave = uva__stage_leave,  \
    .free = uva__stage_free, .posted = uva__stage_posted,                      \
    .need = uva__stage_need, .above = uva__stage_above

/* The schema that several streams have in common, inputs or attempts. */
struct uva__first_schema {
    struct ArrowSchema schema; /* owns: a copy of the schema passed on */
    const char *who;           /* static: "input"... */
    bool typed;                /* the device type of the source is known */
};

/* Has `source` pass the schema on that `inlet` takes, if it is the first, and
 * compares each later schema with it: EINVAL, if it or the device type differs,
 * with an `error` that names the `number` of the stream. ENOMEM. */
int uva__first_schema_take(struct uva__first_schema *first,
                           struct uva__source *source,
                           const struct uva__inlet *inlet, int64_t number,
                           struct ArrowSchema *schema, struct uva_error *error);

/* Passes the schema of the inlet on; for uva__stage_kind.schema.
 * 0 or ENOMEM. */
int uva__stage_pass_schema(struct uva__stage *stage,
                           struct ArrowSchema *schema);

/* Extracts a task that has come, and gives its batch in a slot, which is not
 * counted as held so far. NULL: no batch has come, as for uva__kept_take_in().
 */
struct uva__task *uva__stage_extract(struct uva__stage *stage,
                                     struct ArrowAsyncTask *task,
                                     const char *metadata);

/* The same, and makes the batch ready; for uva__stage_kind.task of a stage that
 * passes batches on as they come. */
void uva__stage_keep(struct uva__stage *stage, struct ArrowAsyncTask *task,
                     const char *metadata);

/* Requests above as far as the window allows for `demand`, once the schema is
 * known, unless the source has failed; `first` as for uva__intake_room(). */
void uva__stage_request(struct uva__stage *stage, int64_t demand,
                        int64_t first);

/* For uva__source_ops.pull: states what is held, has the end follow once all
 * batches are ready, and requests. */
void uva__stage_pull(struct uva__source *source, int64_t demand);

/* For uva__source_ops.take: gives the oldest batch that is ready. */
struct uva__task *uva__stage_take(struct uva__source *source);

#endif
