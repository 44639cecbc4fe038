/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a simulated chain of streams: how many batches it has, which
 * faults it may have, and whether its last consumer received the right batches.
 * Also the transcript of a schedule that is replayed. */
#ifndef SIM_EXPECTATION_H
#define SIM_EXPECTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "uvarrow/stream.h"

/* Reasons for which a chain may end without success. */
enum expectation_excuse {
    EXCUSE_MEMORY = 1,    /* an allocation, or a thread, was refused */
    EXCUSE_SOURCE = 2,    /* the source fails */
    EXCUSE_MAP = 4,       /* a map or an extraction fails */
    EXCUSE_CANCEL = 8,    /* some fiber cancels */
    EXCUSE_REJECT = 16,   /* the consumer refuses a batch */
    EXCUSE_CLOSE = 32,    /* a runtime is closed early */
    EXCUSE_HOSTILE = 64,  /* a peer breaks the protocol */
    EXCUSE_ODD_END = 128, /* a peer ends in a way that is only tolerated */
    EXCUSE_EVENT = 256,   /* the event of a batch fails */
    EXCUSE_TIMEOUT = 512  /* a limit of time may pass */
};

/* How batches on a device must arrive at the end. */
enum expectation_wait {
    WAIT_NOT,    /* without a wait */
    WAIT_READY,  /* complete */
    WAIT_STREAM, /* the device's queue waits for them */
    WAIT_COPIED  /* complete, as copies */
};

enum { EXPECTATION_BATCHES = 64 };

/* One chain, from its source to its last consumer. */
struct expectation {
    int number;       /* number among the schedule's chains */
    int64_t total;    /* batches of the source */
    int64_t added;    /* batches of other streams, which number after those */
    int64_t fails_at; /* batches before the source fails; or INT64_MAX */
    int fail_code;    /* its error code */
    int64_t limit;    /* the smallest limit in the chain; or INT64_MAX */
    int64_t hops;     /* maps in the chain */
    int64_t keepers;  /* transforms that keep a batch, which a failure loses */
    bool unordered;   /* a stage delivers batches in any order */
    bool partial;     /* the end may come before all batches are seen */
    bool stalls;      /* it may wait until the peers are unblocked */
    bool held;        /* no batch comes before that, but the end may */
    bool joined;      /* batches are made of several: without events */
    bool teed;        /* a stream that was built so far has a tee */
    bool delays;      /* a stage waits for the clock */
    bool encoded;     /* its batches carry parts, of the format: */
    int format;       /* enum uva_format */
    bool part_begun, part_ended; /* the first part came, and the last one */
    bool overflows;   /* a cast cannot hold the first batch of the source */
    int64_t rate;     /* the most batches a second; 0: no limit */
    uint64_t made_ns; /* when it was made */
    bool foreign;   /* its batches are not ours, so their content is unknown */
    bool hostile;   /* its last consumer breaks rules */
    bool meddled;   /* some fiber cancels */
    bool device;    /* its batches are made on the simulated device */
    bool on_device; /* batches are on the device, as built so far */
    enum expectation_wait wait;    /* how they have waited there */
    struct uva_runtime *runtime;   /* runtime of the last stream; borrows */
    unsigned excuses;              /* enum expectation_excuse */
    int64_t seen;                  /* batches that arrived */
    int64_t next;                  /* the batch that must come next */
    bool over;                     /* the last consumer has received the end */
    void (*drop)(void *ctx);       /* drops the stream, on the loop; or NULL */
    void *drop_ctx;                /* borrows, while `drop` is set */
    bool has[EXPECTATION_BATCHES]; /* batches that arrived */
    bool bad[EXPECTATION_BATCHES]; /* batches with an event that fails or is
                                      late */
};

/* Switches the transcript on or off. */
void expectation_trace(bool aloud);

/* Adds a line to the transcript: the fiber and its action. Peers use plain
 * variables, so this first makes the fiber's earlier stores visible, as if it
 * stored those with release order. */
void expectation_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Whether the chain waits for its consumer, so that neither a batch nor the end
 * may come before the peers are unblocked. */
bool expectation_is_held(const struct expectation *expectation);

/* A schema arrived at the end: ends the schedule unless it is the chain's. */
void expectation_see_schema(const struct expectation *expectation,
                            const struct ArrowSchema *schema);

/* A batch arrived at the end: it must be the next one, and have passed all
 * maps. */
void expectation_take(struct expectation *expectation,
                      const struct ArrowDeviceArray *batch);

/* The end was reported: it must come once, with this reason. `code` as in
 * struct uva_outcome. */
void expectation_end(struct expectation *expectation, enum uva_end end,
                     int code);

/* The last of the batches that were held across a complete end has arrived:
 * every batch must have come. */
void expectation_end_held(struct expectation *expectation);

/* The chain did not start. */
void expectation_end_unstarted(struct expectation *expectation, int code);

/* The end of a blocking stream that was read: 0, or a code. */
void expectation_end_read(struct expectation *expectation, int code);

#endif
