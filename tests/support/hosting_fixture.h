/* SPDX-License-Identifier: Apache-2.0 */
/* One runtime that the test opens in any way of hosting, a libuv loop for it, a
 * fake source, and a recording consumer. */
#ifndef UVA_SUPPORT_HOSTING_FIXTURE_H
#define UVA_SUPPORT_HOSTING_FIXTURE_H

#include <uv.h>

#include "support/fake_source.h"
#include "support/recording_consumer.h"
#include "uvarrow/runtime.h"

enum { HOSTING_BATCHES = 5 };

struct hosting_fixture {
    uv_loop_t loop;
    struct uva_runtime *rt; /* opened and closed by the test */
    struct fake_source fake;
    struct recording_consumer consumer;
    atomic_int closings; /* calls of hosting_on_closed() */
};

/* Makes the loop, the source and the consumer; closes the loop, on which no
 * handle may be left, and the source. */
void hosting_init(struct hosting_fixture *h);
void hosting_fini(struct hosting_fixture *h);

/* Counts that a runtime has closed; ctx is the fixture. */
void hosting_on_closed(void *ctx);

/* Opens the runtime embedded on the loop; closes it, and turns the loop until
 * that is done. */
void hosting_open_embedded(struct hosting_fixture *h);
void hosting_close_embedded(struct hosting_fixture *h);

/* Makes a stream of the source. The second form starts it and releases it. */
struct uva_stream *hosting_stream(struct hosting_fixture *h, bool on_loop);
void hosting_start_stream(struct hosting_fixture *h);

/* Starts a stream. Its first read ignores the interrupt and waits for the gate.
 */
void hosting_start_stuck(struct hosting_fixture *h);

/* Checks that the stream is complete, with all batches and rows. */
void hosting_completed(struct hosting_fixture *h);

/* Starts a thread. */
pthread_t hosting_thread(void *(*run)(void *), void *ctx);

#endif
