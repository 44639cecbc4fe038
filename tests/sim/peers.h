/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of simulated streams: sources that wait, fail, get stuck and are
 * interrupted; pushers; foreign producers and handlers; readers. Each draws
 * its manners from the schedule, and ends the schedule as failed when it is
 * used in a way that the interfaces forbid. */
#ifndef SIM_PEERS_H
#define SIM_PEERS_H

#include "sim/story.h"
#include "uvarrow/uvarrow.h"

/* ---- for all ------------------------------------------------------------ */

/* Begins anew. `slow`: now and then something takes its time. `alone`: only
 * consumers that keep the loop alive by themselves. */
void peers_begin(bool slow, bool alone);
bool peers_are_slow(void);
bool peers_are_alone(void);

/* Lets those go on that are stuck for good. */
void peers_open_gate(void);
bool peers_gate_is_open(void);

/* True `a` times in `b`. */
bool peers_chance(uint64_t a, uint64_t b);

/* Takes a while: some steps, or now and then, in a slow schedule, some
 * milliseconds. */
void peers_dawdle(void);

/* Starts a fiber. */
void peers_spawn(const char *name, void (*body)(void *arg), void *arg);

/* A window, small as a rule. */
struct uva_window peers_window(void);

/* ---- sources ------------------------------------------------------------ */

/* Makes a stream with a source of some kind, by the story. */
struct uva_stream *peers_source(struct uva_runtime *runtime,
                                struct story *story);

/* The kinds. */
struct uva_stream *blocking_peer_stream(struct uva_runtime *runtime,
                                        struct story *story);
struct uva_stream *task_peer_stream(struct uva_runtime *runtime,
                                    struct story *story);
struct uva_stream *pusher_peer_stream(struct uva_runtime *runtime,
                                      struct story *story);
struct uva_stream *producer_peer_stream(struct uva_runtime *runtime,
                                        struct story *story);

/* ---- consumers ---------------------------------------------------------- */

/* Starts `stream` on a consumer of some kind, which sees to the end of the
 * story; takes the stream. If it does not start, the story is over. */
void peers_consume(struct uva_stream *stream, struct story *story);

/* The kinds. 0: started, `stream` was taken, and the end will be told. */
int callback_peer_start(struct uva_stream *stream, struct story *story);
int awaiting_peer_start(struct uva_stream *stream, struct story *story);
int handler_peer_start(struct uva_stream *stream, struct story *story);
int reader_peer_start(struct uva_stream *stream, struct story *story);

#endif
