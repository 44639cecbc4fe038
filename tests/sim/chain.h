/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of streams: a source, stages, and sometimes a link from one stream
 * into another, of the same or another runtime, up to six streams in all. */
#ifndef SIM_CHAIN_H
#define SIM_CHAIN_H

#include "sim/expectation.h"
#include "uvarrow/stream.h"

enum { CHAIN_STREAMS = 6 };

/* One chain. Holds a reference to each of its streams until it is released. */
struct chain {
    struct expectation expectation;
    struct uva_stream *streams[CHAIN_STREAMS];
    int used;
    struct uva_runtime *last; /* runtime of the last stream; borrows */
    struct uva_group *group;  /* owns: its streams of that runtime; or NULL */
    int asked, reported;      /* on_done of the group: asked for, called */
};

/* Builds a chain on some of the runtimes and starts it. If it does not start,
 * the scenario is over. `devices`: with stages that wait for the device or
 * copy. */
void chain_build(struct chain *chain, struct uva_runtime *const *runtimes,
                 int runtimes_used, bool devices);

/* Cancels all streams of its group, if it has one. */
bool chain_cancel_group(struct chain *chain, int code, const char *reason);

/* Releases its streams, and its group. */
void chain_release(struct chain *chain);

#endif
