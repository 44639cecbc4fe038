/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of simulated streams: sources that wait, fail, get stuck and are
 * interrupted; pushers; foreign producers and handlers; readers. Each draws its
 * behaviour from the schedule, and ends the schedule as failed if it is used in
 * a way that the interfaces forbid. */
#ifndef SIM_PEERS_H
#define SIM_PEERS_H

#include "sim/expectation.h"
#include "uvarrow/uvarrow.h"

/* ---- for all peers ------------------------------------------------------ */

/* Starts a new schedule. `slow`: some operations take time. `alone`: only
 * consumers that keep the loop alive by themselves. */
void peers_begin(bool slow, bool alone);
bool peers_are_slow(void);
bool peers_are_alone(void);

/* Lets peers continue that are stuck for good. */
void peers_unblock(void);
bool peers_are_unblocked(void);

/* Peers may make late calls, as no runtime is closed before they have made
 * them. A peer that will do so is counted until then. */
void peers_allow_late_calls(void);
bool peers_may_call_late(void);
void peers_late_begin(void);
void peers_late_end(void);
bool peers_have_called_late(void *arg);

/* Returns true `a` times in `b`. */
bool peers_chance(uint64_t a, uint64_t b);

/* Takes some time: a few steps or, in a slow schedule, sometimes
 * milliseconds. */
void peers_dawdle(void);

/* Starts a fiber. */
void peers_spawn(const char *name, void (*body)(void *arg), void *arg);

/* Draws a window, usually a small one. */
struct uva_window peers_window(void);

/* Draws a limit in milliseconds; 0, twice in three times. */
int64_t peers_limit(void);

/* ---- sources ------------------------------------------------------------ */

/* Makes a stream with some kind of source, as the scenario requires. */
struct uva_stream *peers_source(struct uva_runtime *runtime,
                                struct expectation *expectation);

/* The kinds of sources. */
struct uva_stream *blocking_peer_stream(struct uva_runtime *runtime,
                                        struct expectation *expectation);
struct uva_stream *task_peer_stream(struct uva_runtime *runtime,
                                    struct expectation *expectation);
struct uva_stream *pusher_peer_stream(struct uva_runtime *runtime,
                                      struct expectation *expectation);
struct uva_stream *producer_peer_stream(struct uva_runtime *runtime,
                                        struct expectation *expectation);

/* Starts `n` sources that get stuck until the peers are unblocked, and has them
 * cancelled soon. */
void squatters_start(struct uva_runtime *runtime, int n);

/* ---- consumers ---------------------------------------------------------- */

/* Starts `stream` on some kind of consumer, which will end the scenario; takes
 * the stream. If it does not start, the scenario is over. */
void peers_consume(struct uva_stream *stream, struct expectation *expectation);

/* The kinds of consumers. 0: started, `stream` was taken, and the end will be
 * reported. */
int callback_peer_start(struct uva_stream *stream,
                        struct expectation *expectation);
int taking_peer_start(struct uva_stream *stream,
                      struct expectation *expectation);
int handler_peer_start(struct uva_stream *stream,
                       struct expectation *expectation);
int reader_peer_start(struct uva_stream *stream,
                      struct expectation *expectation);

#endif
