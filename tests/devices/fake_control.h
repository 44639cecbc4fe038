/* SPDX-License-Identifier: Apache-2.0 */
/* How tests control a fake library. The functions are looked up by name. A real
 * library is recognised by the lack of these functions. */
#ifndef UVA_TESTS_FAKE_CONTROL_H
#define UVA_TESTS_FAKE_CONTROL_H

enum fake_what {
    FAKE_EVENTS,      /* events not destroyed */
    FAKE_STREAMS,     /* streams not destroyed */
    FAKE_BLOCKS,      /* blocks of memory not freed */
    FAKE_KEPT,        /* references to primary contexts */
    FAKE_BREACHES,    /* calls made inside a callback; uses of memory before its
                         allocation; memory that is freed twice */
    FAKE_CALLS,       /* calls of threads that are not excused */
    FAKE_CALLBACKS,   /* callbacks made */
    FAKE_ARMED,       /* callbacks queued and not made */
    FAKE_QUEUED,      /* operations that streams have not run, destroyed streams
                         included */
    FAKE_PEER_COPIES, /* copies queued from a device to another one */
    FAKE_HELD,        /* calls that fakegpu_hold() makes wait now */
    FAKE_DRAINING,    /* threads that wait for a stream */
    FAKE_REFUSED,     /* calls that fakegpu_refuse() has made fail */
    FAKE_WHATS
};

/* Calls that may wait for the device, by their documents. */
enum fake_hold {
    FAKE_HOLD_FREE = 1,
    FAKE_HOLD_ALLOC = 2,
    FAKE_HOLD_UPLOAD = 4, /* from memory that is not pinned */
    FAKE_HOLD_CREATE = 8  /* of a stream */
};

/* Calls that the library makes before it queues a callback. */
enum fake_refuse {
    FAKE_REFUSE_ENTER = 8, /* makes a context current */
    FAKE_REFUSE_WAIT = 16  /* makes a stream wait for an event */
};

struct fake_control {
    long (*fakegpu_count)(int what);
    /* Calls of this thread are not counted, and do not fail. */
    void (*fakegpu_excuse)(int on);
    /* Makes the `n`-th counted call from now on fail; 0: no failure. */
    void (*fakegpu_fail)(long n, int code);
    /* Makes all work fail with that code from now on; 0: ends that. */
    void (*fakegpu_poison)(int code);
    /* Makes these calls of threads that are not excused wait, until they are
     * not held any more. */
    void (*fakegpu_hold)(int calls);
    /* Makes these calls of threads that are not excused fail, until they are
     * not refused any more. */
    void (*fakegpu_refuse)(int calls);
};

#endif
