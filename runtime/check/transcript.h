/* SPDX-License-Identifier: Apache-2.0 */
/* The last calls that were seen: noted in passing, from any thread, and put
 * into words only when somebody asks. */
#ifndef UVA_CHECK_TRANSCRIPT_H
#define UVA_CHECK_TRANSCRIPT_H

#include <stddef.h>

#include "core/sync.h"

#define UVA__TRANSCRIPT_NOTES   32  /* that are kept */
#define UVA__TRANSCRIPT_LINE    120 /* bytes of one in words, at most */
#define UVA__TRANSCRIPT_SIZE    (UVA__TRANSCRIPT_NOTES * UVA__TRANSCRIPT_LINE)
#define UVA__TRANSCRIPT_THREADS 64 /* that are told apart */

/* One call. */
struct uva__note {
    struct uva__word stamp;    /* its number, from 1; 0 while it is written */
    struct uva__shared format; /* borrows: static */
    struct uva__word a, b;     /* for the format */
    struct uva__word thread;   /* who called */
};

/* All zeroes is an empty one. */
struct uva__transcript {
    struct uva__word next; /* notes so far */
    struct uva__note notes[UVA__TRANSCRIPT_NOTES];
    struct {
        struct uva__lock lock;
        uint64_t known[UVA__TRANSCRIPT_THREADS]; /* in the order of meeting */
        int count;
    } threads;
};

/* Adds a call. `format` is static, with at most two conversions, both PRId64.
 * Thread: any. */
void uva__transcript_note(struct uva__transcript *transcript,
                          const char *format, int64_t a, int64_t b);

/* Writes what is known of the last calls, one a line, the newest last, each as
 * "thread 2: request(8)". Thread: any. */
void uva__transcript_write(struct uva__transcript *transcript,
                           char text[UVA__TRANSCRIPT_SIZE]);

#endif
