/* SPDX-License-Identifier: Apache-2.0 */
/* Between the table of oneAPI, which is C, and the part of it that has to be
 * C++: libsycl throws. That part is a library of its own, libuvarrow-oneapi.so,
 * so that nothing else here needs a C++ runtime. It needs no header of SYCL: it
 * calls the functions of the libsycl that the program has loaded, whose names
 * say what they take. */
#ifndef UVA_DEVICES_ONEAPI_SHIM_H
#define UVA_DEVICES_ONEAPI_SHIM_H

#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Addresses of members of libsycl; to be called from C++ alone. */
struct uva__sycl {
    void *event_status;   /* event::get_info<command_execution_status>() */
    void *event_wait;     /* event::wait() */
    void *barrier;        /* queue::ext_oneapi_submit_barrier(); or NULL */
    void *barrier_behind; /* the same with a list of events; or NULL */
    void *exception_code; /* exception::code(); or NULL */
};

/* What the library gives, by the names of the members. Events are sycl::event
 * *, queues sycl::queue *. They return 0 or an errno, with what libsycl has
 * thrown in `error`. Thread: any. */
struct uva__oneapi {
    /* 0 complete; EAGAIN not yet; otherwise failed. */
    int (*uva_oneapi_query)(const struct uva__sycl *sycl, void *event,
                            struct uva_error *error);
    /* gives an event behind all that is queued. */
    int (*uva_oneapi_record)(const struct uva__sycl *sycl, void *queue,
                             void **event_out, struct uva_error *error);
    /* what is queued from now on waits for `event`. */
    int (*uva_oneapi_stream_wait)(const struct uva__sycl *sycl, void *queue,
                                  void *event, struct uva_error *error);
    /* takes an event that was recorded. */
    void (*uva_oneapi_event_free)(void *event);
};

#ifdef __cplusplus
}
#endif

#endif
