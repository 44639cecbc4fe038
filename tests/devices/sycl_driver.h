/* SPDX-License-Identifier: Apache-2.0 */
/* Where tests have SYCL events from: a real libsycl, or a double of it. */
#ifndef UVA_DEVICES_SYCL_DRIVER_H
#define UVA_DEVICES_SYCL_DRIVER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sycl_driver {
    bool real;
    void *queue; /* borrows: a sycl::queue, out of order */
    /* gives a sycl::event that is pending */
    void *(*event_new)(void);
    /* it comes to its end; failed, if so. Any thread */
    void (*event_end)(void *event, bool failed);
    /* takes it; it has come to its end */
    void (*event_free)(void *event);
    /* what is queued from now on waits for it */
    void (*queue_block)(void *event);
    /* takes what the tested code has in flight to its end: gives how many
     * events are live but for those of event_new(); less than 0: it cannot tell
     */
    int (*events_live)(void);
};

/* A table of this type is what the double has under this name. */
#define FAKE_SYCL_DRIVER "fake_sycl_driver"

/* Looks for a real one: dpctl's C interface and a device of OpenCL. False:
 * there is none. */
bool dpctl_driver_open(struct sycl_driver *out);

#ifdef __cplusplus
}
#endif

#endif
