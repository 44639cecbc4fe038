/* SPDX-License-Identifier: Apache-2.0 */
/* Streams without batches that are built of several sources, of which only some
 * may be open at one time: by permits for the sources of the runtime, or by its
 * pool of connections. Each source is open until it was read to its end, so a
 * stream that takes a place out of order holds up a chain for ever. */
#ifndef SIM_LIMITED_PEER_H
#define SIM_LIMITED_PEER_H

#include "sim/expectation.h"
#include "uvarrow/uvarrow.h"

/* Makes such a stream, for the chain. */
struct uva_stream *limited_stream(struct uva_runtime *runtime,
                                  struct expectation *expectation);

#endif
