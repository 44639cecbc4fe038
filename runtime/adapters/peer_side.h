/* SPDX-License-Identifier: Apache-2.0 */
/* What adapters/inlet.c and the peer's side of it, the callbacks, have in
 * common. For no other file. */
#ifndef UVA_ADAPTERS_PEER_SIDE_H
#define UVA_ADAPTERS_PEER_SIDE_H

#include "adapters/inlet.h"

/* The callbacks, as a handler that has not been given away. */
void uva__peer_side_init(struct uva__inlet *inlet);

/* Counts a rule that the peer broke, and logs it; NULL: none. Thread: any. */
void uva__peer_side_report(struct uva__inlet *inlet, const char *clause);

/* Puts a failure into the news: the first one counts. Thread: any. */
void uva__peer_side_tell(struct uva__inlet *inlet, int code,
                         const struct uva_error *error, const char *metadata);

/* The same for a peer that let go without a word (ER-13). Thread: any. */
void uva__peer_side_tell_cut_off(struct uva__inlet *inlet);

/* Whether the peer is home by now, and the caller has to see to its farewell.
 * Thread: any. */
bool uva__inlet_is_home_locked(struct uva__inlet *inlet);

/* Notes that the peer releases inside an extraction of ours, which has to end
 * before it is home. Thread: the one that extracts. */
void uva__inlet_release_below(struct uva__inlet *inlet);

/* How many to request now, by the caller, who must; 0: none. And that he has.
 * Thread: any. */
int64_t uva__inlet_request_begin_locked(struct uva__inlet *inlet);
void uva__inlet_request_end_locked(struct uva__inlet *inlet);

/* In a terminal callback, after which nobody may be inside the peer's methods:
 * waits for those who are. Thread: the peer's. */
void uva__inlet_close_gate(struct uva__inlet *inlet);

#endif
