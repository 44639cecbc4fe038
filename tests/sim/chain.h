/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of streams: a source, stages, and now and then a way out of one stream
 * and into the next, of the same runtime or another one, up to six in all. */
#ifndef SIM_CHAIN_H
#define SIM_CHAIN_H

#include "sim/story.h"
#include "uvarrow/stream.h"

enum { CHAIN_STREAMS = 6 };

/* One chain. Holds each of its streams, until let go of. */
struct chain {
    struct story story;
    struct uva_stream *streams[CHAIN_STREAMS];
    int used;
    struct uva_runtime *last; /* of the last stream; borrows */
};

/* Builds a chain on some of the runtimes and starts it. The story is over if it
 * does not start. `devices`: with stages that wait for the device, or copy. */
void chain_build(struct chain *chain, struct uva_runtime *const *runtimes,
                 int runtimes_used, bool devices);

/* Lets go of its streams. */
void chain_release(struct chain *chain);

#endif
