/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the double of libsycl for a test: how its events fail. */
#ifndef UVA_DEVICES_FAKE_SYCL_H
#define UVA_DEVICES_FAKE_SYCL_H

/* Which exception is thrown, and by which call. */
enum fake_sycl_fault {
    FAKE_SYCL_WAIT,    /* by the wait for a failed event: always */
    FAKE_SYCL_STATUS,  /* by each query of an event's status */
    FAKE_SYCL_BARRIER, /* by each submission of a barrier */
    FAKE_SYCL_MEMORY,  /* std::bad_alloc, by each wait */
    FAKE_SYCL_OTHER,   /* another std::exception, by each wait */
    FAKE_SYCL_INT      /* an int, by each wait */
};

#define FAKE_SYCL_BREAK "fake_sycl_break"
typedef void fake_sycl_break_fn(enum fake_sycl_fault fault);

#endif
