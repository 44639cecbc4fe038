/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulated chain of streams is to do: how many batches it has, what
 * may go wrong in it, and whether what its last consumer saw agrees. And the
 * transcript of a schedule that is replayed. */
#ifndef SIM_STORY_H
#define SIM_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/stream.h"

/* What may end a chain otherwise than well. */
enum story_excuse {
    EXCUSE_MEMORY = 1,    /* an allocation, or a thread, was refused */
    EXCUSE_SOURCE = 2,    /* the source fails */
    EXCUSE_MAP = 4,       /* so does a map, or an extraction */
    EXCUSE_CANCEL = 8,    /* somebody cancels */
    EXCUSE_REJECT = 16,   /* the consumer refuses a batch */
    EXCUSE_CLOSE = 32,    /* a runtime is closed early */
    EXCUSE_HOSTILE = 64,  /* a peer breaks the protocol */
    EXCUSE_ODD_END = 128, /* a peer ends in another way than it should */
    EXCUSE_EVENT = 256,   /* the event of a batch fails */
    EXCUSE_TIMEOUT = 512  /* the patience with one may come to its end */
};

/* How batches on a device arrive at the end. */
enum story_wait {
    WAIT_NOT,    /* as they were made */
    WAIT_READY,  /* complete */
    WAIT_STREAM, /* the device's queue waits for them */
    WAIT_COPIED  /* complete, and not those that were made */
};

enum { STORY_BATCHES = 64 };

/* One chain, from its source to its last consumer. */
struct story {
    int number;           /* among the schedule's chains */
    int64_t total;        /* batches that the source has */
    int64_t fails_at;     /* of these, before it fails; or INT64_MAX */
    int fail_code;        /* with that */
    int64_t limit;        /* the smallest limit on the way; or INT64_MAX */
    int64_t hops;         /* maps on the way */
    bool unordered;       /* a stage gives batches as they come */
    bool partial;         /* its last consumer does not take all, or takes some
                             behind the end */
    bool stalls;          /* it may wait until the gate is opened */
    bool foreign;         /* its batches are not ours, so not known */
    bool hostile;         /* its last consumer breaks rules */
    bool meddled;         /* somebody cancels */
    bool device;          /* its batches are made on the simulated device */
    bool on_device;       /* likewise, where it is built by now, or arrives */
    enum story_wait wait; /* the same */
    struct uva_runtime *runtime; /* of the last stream; borrows */
    unsigned excuses;            /* enum story_excuse */
    int64_t seen;                /* batches that arrived */
    int64_t next;                /* the one that should be next */
    bool over;                   /* the last consumer has heard the end */
    void (*drop)(void *ctx); /* has it drop the stream, on the loop; or NULL */
    void *drop_ctx;          /* borrows, while there is `drop` */
    bool has[STORY_BATCHES]; /* which arrived */
    bool bad[STORY_BATCHES]; /* whose events fail, or are late */
};

/* Has the transcript written, or not. */
void story_tell(bool aloud);

/* A line of the transcript: the fiber and what it does. The words of peers are
 * plain, so what the fiber stored before is seen before them, as if they were
 * stored with release order. */
void story_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A schema arrived at the end: ends the schedule unless it is the chain's. */
void story_see_schema(const struct story *story,
                      const struct ArrowSchema *schema);

/* A batch arrived at the end: the next one, through all maps. */
void story_take(struct story *story, const struct ArrowDeviceArray *batch);

/* The end was told, once: as it must be. `code` as in struct uva_outcome. */
void story_end(struct story *story, enum uva_end end, int code);

/* The chain did not start. */
void story_end_unstarted(struct story *story, int code);

/* The end of a blocking stream that was read: 0, or a code. */
void story_end_read(struct story *story, int code);

#endif
