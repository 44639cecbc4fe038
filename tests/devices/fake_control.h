/* SPDX-License-Identifier: Apache-2.0 */
/* How tests drive a fake library: looked up in it by name, so that a real one,
 * which has none of these, is told from it. */
#ifndef UVA_TESTS_FAKE_CONTROL_H
#define UVA_TESTS_FAKE_CONTROL_H

enum fake_what {
    FAKE_EVENTS,    /* that are not destroyed */
    FAKE_STREAMS,   /* likewise */
    FAKE_BLOCKS,    /* of memory */
    FAKE_KEPT,      /* times that primary contexts are kept */
    FAKE_BREACHES,  /* calls from inside a callback */
    FAKE_CALLS,     /* of threads that are not excused */
    FAKE_CALLBACKS, /* that were made */
    FAKE_WHATS
};

struct fake_control {
    long (*fakegpu_count)(int what);
    /* calls of this thread neither count nor fail */
    void (*fakegpu_excuse)(int on);
    /* the `n`-th counted call from now on fails; 0: none */
    void (*fakegpu_fail)(long n, int code);
    /* all work fails from now on, with that; 0: all is well again */
    void (*fakegpu_poison)(int code);
};

#endif
