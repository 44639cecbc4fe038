/* SPDX-License-Identifier: Apache-2.0 */
/* How long the library waits for threads and peers that may never come back.
 * Each wait has its row here; when a limit has passed, the stuck call is left
 * alone, and its memory stays until it comes back. A limit has to be long
 * enough for code that is merely slow, on a loaded machine too, and short
 * enough for a program that wants to end.
 *
 * Rows with equal values are separate nevertheless: they bound waits of
 * different threads for different things. */
#ifndef UVA_BASE_TIME_LIMITS_H
#define UVA_BASE_TIME_LIMITS_H

enum {
    /* A runtime that closes waits so long for jobs of its worker threads, and
     * for extractions of other threads, that still use the user's objects; for
     * a handler's callback that runs on a worker; and for the driver call that
     * makes the consumer's device stream wait. The loop goes on meanwhile. A
     * second is acceptable to the user of a program that ends, and far more
     * than a job needs that has seen the cancel. The default of the option
     * close_limit_ms. */
    UVA__LIMIT_CLOSE_MS = 1000,

    /* The last owner of worker threads waits so long for threads that are
     * inside a job; sleeping threads leave at once. Blocks the caller. As long
     * as UVA__LIMIT_CLOSE_MS: a job that outlives the close is likely stuck. */
    UVA__LIMIT_WORKERS_MS = 1000,

    /* A thread is written off when the job that it is in was given up so
     * long ago, as its stream was cancelled or its source is being released,
     * and other jobs wait for a thread. Most calls that were cancelled return
     * within this time and cost no thread; for the jobs that wait it is too
     * short to notice. */
    UVA__LIMIT_GIVEN_UP_MS = 10,

    /* When the system creates no thread, or a thread may be written off soon,
     * the loop of each runtime with jobs that wait tries again after this time.
     * As long as UVA__LIMIT_GIVEN_UP_MS. */
    UVA__LIMIT_RETRY_MS = 10,

    /* While jobs wait for a blocking thread, and all are inside calls of which
     * none has returned for so long, one more thread is started, if the program
     * has not set their number. Shorter than UVA__LIMIT_RETRY_MS, after which
     * the lane is looked at again. */
    UVA__LIMIT_STANDS_MS = 5,

    /* If none has returned for so long, that is logged. Calls that wait for
     * rows often take longer than a tenth of a second; a person notices a
     * second. */
    UVA__LIMIT_STANDS_LONG_MS = 1000,

    /* While discards wait, one more thread runs them each time that this limit
     * has passed: the threads before it are in discards that take long. */
    UVA__LIMIT_DISCARD_MS = 10,

    /* The end of the devices waits so long for their two threads together,
     * which may be inside a call of a vendor's driver. Blocks the caller. A
     * driver answers within milliseconds, or hangs. */
    UVA__LIMIT_DEVICE_THREAD_MS = 1000,

    /* The end of the process waits so long for calls of drivers that threads of
     * the library are inside; no new one begins. Blocks the thread that exits.
     * As long as UVA__LIMIT_DEVICE_THREAD_MS, for the same reason. */
    UVA__LIMIT_EXIT_MS = 1000,

    /* When a foreign producer releases its handler, the release callback waits
     * so long for calls of that producer's request() and cancel() that other
     * threads are still inside; then it reports that they do not return
     * promptly. Longer than a second, as the wait is on the producer's own
     * thread and holds up no other work. Clauses: AP-28. */
    UVA__LIMIT_FOREIGN_CALLS_MS = 5000,

    /* A producer that has delivered the end waits so long for offered tasks
     * until they are extracted or dropped, as an extraction may still fail and
     * is then reported; after that it releases the handler. So long because a
     * consumer may rightly keep a task for a while; limited because a consumer
     * may forget a task. */
    UVA__LIMIT_DRAIN_MS = 30000
};

#endif
