/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own use of a GPU in tests, through a real driver or a fake one,
 * for CUDA or HIP. A call that fails ends the test. */
#ifndef UVA_TESTS_VENDOR_DRIVER_H
#define UVA_TESTS_VENDOR_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/gpu_abi.h"
#include "devices/fake_control.h"
#include "uvarrow/arrow_abi.h"

struct vendor_driver {
    const char *vendor; /* vendor's name in errors */
    const char *query;  /* name of the function that queries an event */
    const char *choose; /* name of the function that finds a device */
    const char *alloc;  /* name of the function that allocates memory */
    int too_old;        /* code of a driver that is too old */
    ArrowDeviceType device_type, host_type, managed_type; /* 0: not supported */
    const char *variable;     /* environment variable with the library's path */
    const char *const *names; /* default names of the library, ended by NULL */
    bool peers; /* copies from device to device need not go through the host */
    bool pools; /* memory is allocated and freed in the order of a stream */
    bool calls_back;      /* lasting events are waited for by callback */
    bool spares_captures; /* it can leave other threads' captures alone */
    bool (*open)(void *library); /* false: no device */
    void (*enter)(void);         /* makes the first device current */
    void (*leave)(void);
    /* Makes the second device ready, or releases it; false: there is no second
     * one. */
    bool (*second)(bool on);
    /* Work queued after this waits until *word >= value. */
    void (*stream_gate)(void *stream, _Atomic uint32_t *word, uint32_t value);
    void (*stream_upload)(void *stream, void *target, const void *source,
                          size_t size);
    bool (*event_is_over)(void *event);
    void *(*device_alloc)(size_t size);
    void (*device_free)(void *memory);
    void (*capture_begin)(void *stream);
    int (*capture_end)(void *stream);
};

/* Opens the library and, if it is a fake one, its control functions. Returns
 * false if there is no library or no device. */
bool vendor_driver_open(const struct vendor_driver *driver,
                        struct fake_control *control);

/* Returns whether a fake library behaves so, by a word of UVA_FAKE_MODE
 * (fake_gpu.h). */
bool vendor_driver_is(const char *mode);

/* Finds functions of the open library, which must exist. `out` points to a
 * pointer to the function. The last entry has no name. */
struct vendor_function {
    const char *name;
    void *out;
};

void vendor_driver_resolve(void *library,
                           const struct vendor_function *functions);

/* ---- calls that the vendors have in common ------------------------------ */

extern struct uva__gpu_calls vendor_calls; /* found by vendor_driver.open */

void vendor_must(int code);

/* Gives a stream as every driver knows it: older versions of HIP have no handle
 * 1 for the legacy default stream. The functions below do so by themselves. */
void *vendor_stream_known(void *stream);
void *vendor_stream_new(void);
void vendor_stream_free(void *stream);
void vendor_stream_drain(void *stream);
void *vendor_event_new(void);
void vendor_event_free(void *event);
void vendor_event_record(void *event, void *stream);
void *vendor_host_alloc(size_t size);
void vendor_host_free(void *memory);

#endif
