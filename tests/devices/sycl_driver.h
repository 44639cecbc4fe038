/* SPDX-License-Identifier: Apache-2.0 */
/* The source of SYCL events in tests: a real libsycl, or a double of it. */
#ifndef UVA_DEVICES_SYCL_DRIVER_H
#define UVA_DEVICES_SYCL_DRIVER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sycl_driver {
    bool real;
    void *queue; /* borrows: a sycl::queue, out of order */
    /* Returns a pending sycl::event. */
    void *(*event_new)(void);
    /* Completes the event, or makes it fail. Any thread. */
    void (*event_end)(void *event, bool failed);
    /* Takes the event, which must be complete or failed. */
    void (*event_free)(void *event);
    /* Makes work that is queued from now on wait for the event. */
    void (*queue_block)(void *event);
    /* Completes the work that the tested code has in flight. Returns how many
     * events exist apart from event_new()'s; negative: unknown. */
    int (*events_live)(void);
};

/* The double exports a table of this type under this name. */
#define FAKE_SYCL_DRIVER "fake_sycl_driver"

/* Opens a real libsycl: dpctl's C interface and an OpenCL device. Returns false
 * without one. */
bool dpctl_driver_open(struct sycl_driver *out);

#ifdef __cplusplus
}
#endif

#endif
