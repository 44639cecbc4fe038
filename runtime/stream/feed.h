/* SPDX-License-Identifier: Apache-2.0 */
/* What a producer draws batches from: a source of the user's, or a stage with
 * another producer above it. A feed states facts; the producer decides what its
 * handler is told, and when. Everything here runs on the loop thread, unless it
 * says otherwise. */
#ifndef UVA_STREAM_FEED_H
#define UVA_STREAM_FEED_H

#include "stream/failure.h"
#include "stream/task.h"
#include "uv/hub.h"

struct uva__feed;

/* What each kind of feed does. All functions are mandatory. */
struct uva__feed_ops {
    const char *name; /* "from_blocking"... in texts and logs */
    /* Begins, once, before all other calls but leave. */
    void (*start)(struct uva__feed *feed);
    /* Brings the facts up to date, and fetches more as far as `demand` (the
     * batches asked for and not told) and the feed's own window allow. */
    void (*pull)(struct uva__feed *feed, int64_t demand);
    /* Gives the next batch in a filled slot, with its ordinal, while `ready`
     * says that there is one, and counts that down. NULL: no memory. */
    struct uva__task *(*take)(struct uva__feed *feed);
    /* Nothing more is wanted, once: discards what is ready and quietens what
     * is above. The producer is not told anything any more. */
    void (*stop)(struct uva__feed *feed);
    /* The producer is gone and all its tasks are settled: gives up its count.
     * Without a start if there was none. Any thread. */
    void (*leave)(struct uva__feed *feed);
};

/* Part of every feed: the facts, and whom to tell by posting. */
struct uva__feed {
    const struct uva__feed_ops *ops; /* static */
    struct uva__hub *hub;            /* counts, until leave */
    struct uva__producer *producer;  /* borrows, until stop */
    ArrowDeviceType device_type;     /* of what comes; known at the schema */
    bool dear;   /* extraction may take long: not for the loop thread */
    bool lazy;   /* extraction may fail: data is made only then (G-17) */
    bool prompt; /* pull itself makes the batches, whenever it is called */

    struct ArrowSchema schema;   /* owns, until the producer moves it out */
    bool schema_known;           /* it has come */
    char *metadata;              /* owns: the producer's (AP-19), or NULL */
    size_t metadata_size;        /* of that, in bytes */
    int64_t ready;               /* batches that take() would give */
    bool ended;                  /* no batch comes after those */
    struct uva__failure failure; /* comes after those; code 0: none */
};

/* Sets up the common part; the feed counts the hub. */
void uva__feed_init(struct uva__feed *feed, const struct uva__feed_ops *ops,
                    struct uva__hub *hub);

/* Frees what the common part owns, and gives the hub back. Thread: any. */
void uva__feed_fini(struct uva__feed *feed);

#endif
