/* SPDX-License-Identifier: Apache-2.0 */
/* One array of a soft device, on a loop and without a stream, with the results
 * of its waits and the warnings logged about it. */
#ifndef UVA_SUPPORT_ARRAY_FIXTURE_H
#define UVA_SUPPORT_ARRAY_FIXTURE_H

#include "support/fixture.h"
#include "support/soft_copies.h"

struct array_fixture {
    struct fixture f;
    struct ArrowDeviceArray array; /* its event is the device's first */
    int wanted;          /* results that the test awaits; 1 at first */
    atomic_int warnings; /* warnings logged, of EV-17 */
    char warning[200];   /* the text of the last warning */
};

/* Opens a runtime with a soft device, and makes an array of it. */
void array_open(struct array_fixture *s, enum soft_mode mode);

/* Closes the runtime and checks that no object is left; no array may outlive
 * the runtime. Without effect where it is not open. */
void array_close(struct array_fixture *s);

/* Calls uva_array_wait() on the array, with a callback that has the fixture as
 * its ctx. */
int array_wait(struct array_fixture *s, int64_t timeout_ms);
uva_array_wait_fn array_on_answer;

/* Turns the loop until all results that the test awaits have arrived, and
 * returns the code of the last one. */
int array_outcome(struct array_fixture *s);

#endif
