/* SPDX-License-Identifier: Apache-2.0 */
/* What a test may do to the double of libsycl besides: how its events fail. */
#ifndef UVA_DEVICES_FAKE_SYCL_H
#define UVA_DEVICES_FAKE_SYCL_H

/* What is thrown, and from where. */
enum fake_sycl_fault {
    FAKE_SYCL_WAIT,    /* by the wait for an event that has failed: always */
    FAKE_SYCL_STATUS,  /* by each question after the status of an event */
    FAKE_SYCL_BARRIER, /* by each barrier */
    FAKE_SYCL_MEMORY,  /* std::bad_alloc, by each wait */
    FAKE_SYCL_OTHER,   /* another std::exception, by each wait */
    FAKE_SYCL_INT      /* what is none, by each wait */
};

#define FAKE_SYCL_BREAK "fake_sycl_break"
typedef void fake_sycl_break_fn(enum fake_sycl_fault fault);

#endif
