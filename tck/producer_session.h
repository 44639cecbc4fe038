/* SPDX-License-Identifier: Apache-2.0 */
/* A run of one producer of the subject with a recording consumer, from its
 * start until it has released the handler. */
#ifndef UVA_TCK_PRODUCER_SESSION_H
#define UVA_TCK_PRODUCER_SESSION_H

#include "tck/recording_consumer.h"

/* A producer and its recording consumer. Lives as long as its process. */
struct uva__producer_session {
    struct uva__case_run *run;
    struct uva__recording_consumer *consumer;
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t at;
    struct uva__atomic64 answered; /* uva_subject_produce() has returned ... */
    int code;                      /* ... this code */
};

/* Makes a recording consumer and starts a producer on it, on a separate thread.
 * Returns false if the subject cannot. Thread: any. */
bool uva__producer_session_open(
    struct uva__producer_session *session, struct uva__case_run *run,
    enum uva_subject_plan plan, int64_t batches, int64_t at,
    const struct uva__recording_consumer_manner *manner);

/* Waits for the schema. Thread: any. */
void uva__producer_session_await_schema(struct uva__producer_session *session);

/* Waits until `n` tasks have arrived. Thread: any. */
void uva__producer_session_await_tasks(struct uva__producer_session *session,
                                       int64_t n);

/* Waits until the producer seems to be idle: its callbacks have returned, and
 * no other comes. Thread: any. */
void uva__producer_session_await_idle(struct uva__producer_session *session);

/* Waits for release, and until other threads have finished their calls. Thread:
 * any. */
void uva__producer_session_await_release(struct uva__producer_session *session);

/* Extracts tasks and releases arrays that were kept. Thread: any. */
void uva__producer_session_settle(struct uva__producer_session *session);

/* Cancels, waits for release, then settles. Thread: any. */
void uva__producer_session_stop(struct uva__producer_session *session);

/* Waits for a while; returns false if another callback came. Thread: any. */
bool uva__producer_session_stays_idle(struct uva__producer_session *session);

/* Fails the case unless all objects of the subject are freed soon; skips it if
 * the subject does not count. Thread: any. */
void uva__producer_session_check_live(struct uva__case_run *run);

#endif
