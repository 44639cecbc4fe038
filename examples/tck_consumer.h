/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of tck_handler.c: it adds up the rows that it receives. */
#ifndef EXAMPLES_TCK_CONSUMER_H
#define EXAMPLES_TCK_CONSUMER_H

#include <semaphore.h>
#include <stdatomic.h>

#include "uvarrow/tck.h"
#include "uvarrow/uvarrow.h"

struct consumer {
    bool cancels; /* at batch `k` */
    int64_t k;
    struct ArrowAsyncDeviceStreamHandler *handler; /* set by its start */
    sem_t has_handler;
    atomic_bool is_over; /* `outcome` is complete */
    struct uva_subject_outcome outcome;
};

/* Starts it, and waits for its handler. Returns 0 or a code. */
int consumer_start(struct consumer *c);

#endif
