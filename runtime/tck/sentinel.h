/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe thinks of its producer: each callback is judged as it begins, by
 * all that came before. Calls nothing foreign. */
#ifndef UVA_TCK_SENTINEL_H
#define UVA_TCK_SENTINEL_H

#include "tck/probe.h"

/* Remembers what the handler looks like. Thread: any. */
void uva__sentinel_init(struct uva__probe *probe);

/* A callback begins: `letter` as in the trace; `code` of an error. It ends,
 * perhaps with a refusal. Thread: any. */
void uva__sentinel_enter(struct uva__probe *probe,
                         const struct ArrowAsyncDeviceStreamHandler *self,
                         char letter, int code);
void uva__sentinel_leave(struct uva__probe *probe, bool refused);

/* The producer object is seen for the first time. Thread: any. */
void uva__sentinel_meet(struct uva__probe *probe,
                        struct ArrowAsyncProducer *producer);

/* What came with a callback. `clause` is about this place. Thread: any. */
void uva__sentinel_tag(struct uva__probe *probe, const char *metadata,
                       const char *clause);
void uva__sentinel_hear(struct uva__probe *probe, int code,
                        const char *message);

/* A call into the producer begins, with `n` of it; gives a number by which it
 * is said to be over. Negative: the stream has ended, and it must not be made;
 * extractions always may. Thread: any. */
int uva__sentinel_call(struct uva__probe *probe, enum uva__probe_call what,
                       int64_t n);
void uva__sentinel_back(struct uva__probe *probe, int slot);

/* Whether no other thread is in a request or cancel; `ctx` is a probe. For
 * waits. Thread: any. */
bool uva__sentinel_is_calm(void *ctx);

/* An extraction returned `code`. Thread: any. */
void uva__sentinel_extracted(struct uva__probe *probe, int code);

/* One errand more (1) or less (-1). Thread: any. */
void uva__sentinel_errand(struct uva__probe *probe, int more);

#endif
