/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of device arrays that is to fail, and another one of the same
 * runtime that is half-way through meanwhile and has to come to its end. What
 * is said of the failure is looked at in all places: code, text, metadata. */
#ifndef UVA_SUPPORT_FAULT_SCENE_H
#define UVA_SUPPORT_FAULT_SCENE_H

#include <limits.h>

#include "support/fake_source.h"
#include "support/loop_rig.h"
#include "uvarrow/uvarrow.h"

enum { FAULT_ARRAYS = 4, FAULT_ANY = INT_MAX };

/* What is to be said. */
struct fault {
    int code;
    const char *vendor;
    int vendor_code;  /* 0: it gave none; FAULT_ANY: some */
    const char *call; /* NULL: none is named */
};

/* What an array's release becomes: one that counts. */
struct fault_release {
    void (*release)(struct ArrowArray *array);
    void *private_data;
    atomic_int count;
};

struct fault_scene {
    struct loop_rig rig;
    struct fake_source fake; /* of all arrays */
    struct ArrowDeviceArray arrays[FAULT_ARRAYS], others[2];
    struct fault_release releases[FAULT_ARRAYS];
    int count; /* of `arrays` */
    void (*revive)(
        void *ctx); /* has the event of others[1] complete; or NULL */
    void *ctx;
    bool other_copies; /* the other one is copied to the host */
    struct uva_stream *stream, *other;
    int64_t batches, other_batches; /* delivered */
    bool done, other_asked, other_done;
    struct uva_outcome outcome, other_outcome;
    char vendor[32], vendor_code[32], call[64]; /* in the metadata; or empty */
};

/* Opens the rig, and makes the arrays of the other stream, of the host. */
void fault_scene_open(struct fault_scene *s);

/* Opens the library of a type, so that it takes no part of a patience. */
void fault_scene_load(struct fault_scene *s, ArrowDeviceType device_type);

/* Adds an array to the stream that is to fail. */
void fault_scene_array(struct fault_scene *s, ArrowDeviceType device_type,
                       int64_t device_id, void *sync_event);

/* Starts the other stream, takes its first batch, then makes the stream. */
void fault_scene_stream(struct fault_scene *s);

/* Starts the stream, behind the test's stages. */
void fault_scene_start(struct fault_scene *s);

/* Makes a stream that waits for its events, and starts it. */
void fault_scene_ready(struct fault_scene *s, const struct uva_ready *how);

/* The same with copies to there; NULL: to the host. */
void fault_scene_transfer(struct fault_scene *s,
                          const struct uva_transfer *how);

/* Turns the loop until the stream has come to its end, whatever that is. */
void fault_scene_end(struct fault_scene *s);

/* Lets go of the streams; the other one is to come to its end. */
void fault_scene_let_go(struct fault_scene *s);

/* Turns the loop until the stream has failed as it should and the other one is
 * complete, and lets go of both. */
void fault_scene_expect(struct fault_scene *s, const struct fault *fault);

/* Closes all. Every array was released, once. */
void fault_scene_close(struct fault_scene *s);

#endif
