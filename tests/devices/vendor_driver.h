/* SPDX-License-Identifier: Apache-2.0 */
/* What tests do with a GPU beside the library: the program's own part, by a
 * real driver or a fake one, CUDA's or HIP's. A call that fails ends the test.
 */
#ifndef UVA_TESTS_VENDOR_DRIVER_H
#define UVA_TESTS_VENDOR_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devices/fake_control.h"
#include "uvarrow/arrow_abi.h"

struct vendor_driver {
    const char *vendor; /* as in errors */
    const char *query;  /* the name of the call that asks after an event */
    const char *choose; /* and of the one that finds a device */
    const char *alloc;  /* and of the one that gives memory */
    int too_old;        /* the code for a driver that is */
    ArrowDeviceType device_type, host_type, managed_type; /* 0: has none */
    const char *variable;        /* of the environment: where the library is */
    const char *const *names;    /* of it otherwise; NULL ends them */
    bool calls_back;             /* events that last are waited for so */
    bool spares_captures;        /* it can be told to leave them alone */
    bool (*open)(void *library); /* false: no device */
    void (*enter)(void);         /* the first device is current */
    void (*leave)(void);
    /* makes the second device ready, or lets go of it; false: there is none */
    bool (*second)(bool on);
    void *(*stream_new)(void);
    void (*stream_free)(void *stream);
    void (*stream_drain)(void *stream);
    /* work behind this waits until *word >= value */
    void (*stream_gate)(void *stream, _Atomic uint32_t *word, uint32_t value);
    void (*stream_upload)(void *stream, void *target, const void *source,
                          size_t size);
    void *(*event_new)(void);
    void (*event_free)(void *event);
    void (*event_record)(void *event, void *stream);
    bool (*event_is_over)(void *event);
    void *(*device_alloc)(size_t size);
    void (*device_free)(void *memory);
    void *(*host_alloc)(size_t size);
    void (*host_free)(void *memory);
    void (*capture_begin)(void *stream);
    int (*capture_end)(void *stream);
};

/* Opens the library and, if it is a fake one, its control. False: there is
 * none, or no device. */
bool vendor_driver_open(const struct vendor_driver *driver,
                        struct fake_control *control);

/* A function of the open library, which must be there; `out` points to a
 * pointer to it. */
void vendor_driver_resolve(void *library, const char *name, void *out);

#endif
