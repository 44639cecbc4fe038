/* SPDX-License-Identifier: Apache-2.0 */
/* The last calls through a check: any thread adds one at little cost, and they
 * are formatted only for a report. */
#ifndef UVA_CHECK_TRANSCRIPT_H
#define UVA_CHECK_TRANSCRIPT_H

#include <stddef.h>

#include "base/atomic.h"

#define UVA__TRANSCRIPT_NOTES   32  /* calls that are kept */
#define UVA__TRANSCRIPT_LINE    120 /* bytes of one line, at most */
#define UVA__TRANSCRIPT_SIZE    (UVA__TRANSCRIPT_NOTES * UVA__TRANSCRIPT_LINE)
#define UVA__TRANSCRIPT_THREADS 64 /* threads with a number of their own */

/* One call. */
struct uva__note {
    struct uva__atomic64 stamp; /* its number, from 1; 0 while it is written */
    struct uva__atomic_ptr format; /* borrows: static */
    struct uva__atomic64 a, b;     /* for the format */
    struct uva__atomic64 thread;   /* the calling thread */
};

/* All zeroes is an empty one. */
struct uva__transcript {
    struct uva__atomic64 next; /* calls so far */
    struct uva__note notes[UVA__TRANSCRIPT_NOTES];
    struct {
        struct uva__lock lock;
        uint64_t known[UVA__TRANSCRIPT_THREADS]; /* in the order of their first
                                                    call */
        int count;
    } threads;
};

/* Adds a call. `format` is static, with at most two conversions, both PRId64.
 * Thread: any. */
void uva__transcript_note(struct uva__transcript *transcript,
                          const char *format, int64_t a, int64_t b);

/* Writes the last calls that are complete, one a line, the newest last, each as
 * "thread 2: request(8)". Thread: any. */
void uva__transcript_write(struct uva__transcript *transcript,
                           char text[UVA__TRANSCRIPT_SIZE]);

#endif
