/* SPDX-License-Identifier: Apache-2.0 */
/* One array of a soft device, on a loop and without a stream, and what is
 * answered and logged about it. */
#ifndef UVA_SUPPORT_ARRAY_FIXTURE_H
#define UVA_SUPPORT_ARRAY_FIXTURE_H

#include "support/fixture.h"
#include "support/soft_copies.h"

struct array_fixture {
    struct fixture f;
    struct ArrowDeviceArray array; /* its event is the device's first */
    int wanted;                    /* answers that are awaited; 1 at first */
    atomic_int warnings;           /* logged, of EV-17 */
    char warning[200];             /* the last one */
};

/* Opens a runtime with a soft device, and makes an array of it. */
void array_open(struct array_fixture *s, enum soft_mode mode);

/* Closes it; nothing may be left, and no array outlives the runtime. Without
 * effect where it is not open. */
void array_close(struct array_fixture *s);

/* uva_array_wait() on the array, and the callback for it, whose ctx is the
 * fixture. */
int array_wait(struct array_fixture *s, int64_t timeout_ms);
uva_array_wait_fn array_on_answer;

/* Turns the loop until all answers that are wanted have come, and returns the
 * code of the last one. */
int array_outcome(struct array_fixture *s);

#endif
