/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the table of oneAPI, which is C, and the part of it
 * that has to be C++, since libsycl throws. That part is a separate library,
 * libuvarrow-oneapi.so, so that no other part needs a C++ runtime. It needs no
 * header of SYCL: it calls the functions of the libsycl that the program has
 * loaded. Their mangled names contain the types of their arguments. */
#ifndef UVA_DEVICE_ONEAPI_SHIM_H
#define UVA_DEVICE_ONEAPI_SHIM_H

#include "uvarrow/base.h"

#define UVA__SYCL_VENDOR "sycl" /* in errors */

#ifdef __cplusplus
extern "C" {
#endif

/* Addresses of member functions of libsycl; to be called from C++ only. */
struct uva__sycl {
    void *event_status;   /* event::get_info<command_execution_status>() */
    void *event_wait;     /* event::wait() */
    void *barrier;        /* queue::ext_oneapi_submit_barrier(); or NULL */
    void *barrier_behind; /* that function with a list of events; or NULL */
    void *exception_code; /* exception::code(); or NULL */
};

/* The functions of the library, by their names. Events are sycl::event *,
 * queues sycl::queue *. They return 0 or an errno, with the exception of
 * libsycl in `error`. Thread: any. */
struct uva__oneapi {
    /* 0 complete; EAGAIN pending; otherwise failed. */
    int (*uva_oneapi_query)(const struct uva__sycl *sycl, void *event,
                            struct uva_error *error);
    /* gives an event that completes after all queued work. */
    int (*uva_oneapi_record)(const struct uva__sycl *sycl, void *queue,
                             void **event_out, struct uva_error *error);
    /* makes all work queued from now on wait for `event`. */
    int (*uva_oneapi_stream_wait)(const struct uva__sycl *sycl, void *queue,
                                  void *event, struct uva_error *error);
    /* frees an event that was recorded. */
    void (*uva_oneapi_event_free)(void *event);
};

#ifdef __cplusplus
}
#endif

#endif
