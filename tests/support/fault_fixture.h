/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of device arrays that must fail, and another stream of the same
 * runtime that is half-way through at that moment and must complete. The
 * failure is checked in each place that reports it: code, text and metadata. */
#ifndef UVA_SUPPORT_FAULT_FIXTURE_H
#define UVA_SUPPORT_FAULT_FIXTURE_H

#include <limits.h>

#include "support/asking.h"
#include "support/fixture.h"

enum { FAULT_ARRAYS = 4, FAULT_ANY = INT_MAX };

/* The failure that the test expects. */
struct fault {
    int code;
    const char *vendor;
    int vendor_code;  /* 0: no code; FAULT_ANY: any but 0 */
    const char *call; /* the name of the failed call; NULL: not named */
};

/* The release of an array, which counts its calls. */
struct fault_release {
    void (*release)(struct ArrowArray *array);
    void *private_data;
    atomic_int count;
};

struct fault_fixture {
    struct fixture f; /* its stream must fail */
    struct ArrowDeviceArray arrays[FAULT_ARRAYS], others[2];
    struct fault_release releases[FAULT_ARRAYS];
    int count;                 /* the number of `arrays` */
    void (*revive)(void *ctx); /* completes the event of others[1]; or NULL */
    void *ctx;
    bool other_copies; /* the other stream is copied to the host */
    struct uva_stream *other;
    struct asking asking;  /* asks for its batches */
    int64_t other_batches; /* batches that the other stream has delivered */
    bool other_asked, other_done;
    struct uva_outcome other_outcome;
    char vendor[32], vendor_code[32], call[64]; /* in the metadata; or empty */
};

/* Opens the loop, and makes the other stream's arrays, which are on the host.
 */
void fault_open(struct fault_fixture *s);

/* Opens the library of a device type, so that loading it does not count towards
 * a time limit. */
void fault_load(struct fault_fixture *s, ArrowDeviceType device_type);

/* Adds an array to the stream that must fail. */
void fault_array(struct fault_fixture *s, ArrowDeviceType device_type,
                 int64_t device_id, void *sync_event);

/* Starts the other stream, takes its first batch, then makes the stream that
 * must fail. */
void fault_stream(struct fault_fixture *s);

/* Starts the stream, after the test has added its stages. */
void fault_start(struct fault_fixture *s);

/* Makes a stream that waits for its events, and starts it. */
void fault_ready(struct fault_fixture *s, const struct uva_ready *options);

/* Makes a stream that is copied to a target (NULL: the host), and starts it. */
void fault_transfer(struct fault_fixture *s,
                    const struct uva_transfer *options);

/* Turns the loop until the stream has ended, in whatever way. */
void fault_end(struct fault_fixture *s);

/* Releases the streams; the other one must have completed. */
void fault_release_all(struct fault_fixture *s);

/* Turns the loop until the stream has failed as expected and the other one is
 * complete, then releases both. */
void fault_expect(struct fault_fixture *s, const struct fault *fault);

/* Closes everything, and checks that each array was released once. */
void fault_close(struct fault_fixture *s);

#endif
