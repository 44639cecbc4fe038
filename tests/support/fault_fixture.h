/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of device arrays that is to fail, and another one of the same
 * runtime that is half-way through meanwhile and has to be completed. The
 * failure is checked wherever it is reported: code, text, metadata. */
#ifndef UVA_SUPPORT_FAULT_FIXTURE_H
#define UVA_SUPPORT_FAULT_FIXTURE_H

#include <limits.h>

#include "support/fixture.h"

enum { FAULT_ARRAYS = 4, FAULT_ANY = INT_MAX };

/* The report that is expected. */
struct fault {
    int code;
    const char *vendor;
    int vendor_code;  /* 0: none; FAULT_ANY: any but 0 */
    const char *call; /* the failed call; NULL: none is named */
};

/* The release of an array, with a count of its calls. */
struct fault_release {
    void (*release)(struct ArrowArray *array);
    void *private_data;
    atomic_int count;
};

struct fault_fixture {
    struct fixture f; /* its source gives all arrays, its stream is to fail */
    struct ArrowDeviceArray arrays[FAULT_ARRAYS], others[2];
    struct fault_release releases[FAULT_ARRAYS];
    int count; /* of `arrays` */
    void (*revive)(
        void *ctx); /* has the event of others[1] complete; or NULL */
    void *ctx;
    bool other_copies; /* the other one is copied to the host */
    struct uva_stream *other;
    int64_t other_batches; /* delivered */
    bool other_asked, other_done;
    struct uva_outcome other_outcome;
    char vendor[32], vendor_code[32], call[64]; /* in the metadata; or empty */
};

/* Opens the loop, and makes the arrays of the other stream, of the host. */
void fault_open(struct fault_fixture *s);

/* Opens the library of a type, so that loading it takes no part of a timeout.
 */
void fault_load(struct fault_fixture *s, ArrowDeviceType device_type);

/* Adds an array to the stream that is to fail. */
void fault_array(struct fault_fixture *s, ArrowDeviceType device_type,
                 int64_t device_id, void *sync_event);

/* Starts the other stream, takes its first batch, then makes the stream. */
void fault_stream(struct fault_fixture *s);

/* Starts the stream, behind the stages that the test has added. */
void fault_start(struct fault_fixture *s);

/* Makes a stream that waits for its events, and starts it. */
void fault_ready(struct fault_fixture *s, const struct uva_ready *options);

/* Makes a stream that is copied to there (NULL: to the host), and starts it. */
void fault_transfer(struct fault_fixture *s,
                    const struct uva_transfer *options);

/* Turns the loop until the stream has ended, however it ends. */
void fault_end(struct fault_fixture *s);

/* Releases the streams; the other one must be completed. */
void fault_let_go(struct fault_fixture *s);

/* Turns the loop until the stream has failed as expected and the other one is
 * complete, and releases both. */
void fault_expect(struct fault_fixture *s, const struct fault *fault);

/* Closes all. Every array was released, once. */
void fault_close(struct fault_fixture *s);

#endif
