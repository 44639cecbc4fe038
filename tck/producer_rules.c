/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a producer, as its calls show them. A breach is reported under
 * the lock, because reporting only writes lines or ends the process. */
#include "tck/producer_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tck/expected_data.h"
#include "uvarrow/arrow.h"

void uva__producer_rules_init(struct uva__recording_consumer *consumer)
{
    consumer->made = *consumer->handler;
}

static void trace_add_locked(struct uva__recording_consumer *consumer,
                             char letter)
{
    if (consumer->now.traced < UVA__RECORDING_CONSUMER_TRACE)
        consumer->now.trace[consumer->now.traced++] = letter;
}

/* ---- rules for every callback ------------------------------------------- */

static void check_overlap_locked(struct uva__recording_consumer *consumer,
                                 char letter)
{
    struct uva__case_run *run = consumer->run;

    if (consumer->now.inside == 0)
        return;
    if (pthread_equal(consumer->now.inside_thread, pthread_self()))
        uva__case_run_breach(run, "TH-08", "'%c' began inside another callback",
                             letter);
    if (letter == 'R')
        uva__case_run_breach(run, "TH-09",
                             "release before a callback had returned");
    if (letter == 'T' && consumer->now.inside_task)
        uva__case_run_breach(run, "AH-15", "on_next_task runs twice at once");
    uva__case_run_breach(run, "TH-01", "'%c' overlaps another callback",
                         letter);
}

/* Checks that no callback is made inside our call. */
static void check_stack_locked(struct uva__recording_consumer *consumer,
                               char letter)
{
    struct uva__case_run *run = consumer->run;

    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++) {
        if (!consumer->now.calls[i].on ||
            !pthread_equal(consumer->now.calls[i].thread, pthread_self()))
            continue;
        if (consumer->now.calls[i].what == UVA__CALL_EXTRACT)
            uva__case_run_breach(run, "AT-23", "'%c' inside extract_data",
                                 letter);
        else if (consumer->now.calls[i].what == UVA__CALL_CANCEL &&
                 letter != 'E')
            uva__case_run_breach(run, "AP-13", "'%c' inside cancel", letter);
        else if (consumer->now.calls[i].what == UVA__CALL_REQUEST &&
                 (letter != 'R' || !consumer->now.cancelled))
            uva__case_run_breach(run, letter == 'R' ? "AP-05" : "AP-04",
                                 "'%c' inside request", letter);
    }
}

static void check_handler(struct uva__recording_consumer *consumer,
                          const struct ArrowAsyncDeviceStreamHandler *self)
{
    const struct ArrowAsyncDeviceStreamHandler *made = &consumer->made;
    struct uva__case_run *run = consumer->run;

    if (self != consumer->handler)
        uva__case_run_breach(run, "AH-24",
                             "self is not the handler that was "
                             "handed over");
    if (self->private_data != made->private_data)
        uva__case_run_breach(run, "AH-25", "private_data was changed");
    if (self->on_schema != made->on_schema ||
        self->on_next_task != made->on_next_task ||
        self->on_error != made->on_error || self->release != made->release)
        uva__case_run_breach(run, "AH-26",
                             "a function of the handler was "
                             "changed");
}

/* The memory belongs to another object now, so its other members prove
 * no breach. */
static void check_gone(struct uva__case_run *run, char letter)
{
    uva__case_run_breach(run, "LC-13",
                         "the producer object changed before '%c'", letter);
    uva__case_run_breach(run, "AP-22",
                         "the producer object changed before '%c'", letter);
}

/* Checks that the producer object is there and unchanged while it may be used.
 */
static void check_producer(struct uva__recording_consumer *consumer,
                           const struct ArrowAsyncDeviceStreamHandler *self,
                           char letter)
{
    const struct ArrowAsyncProducer *now = consumer->producer;
    struct uva__case_run *run = consumer->run;

    if (now == NULL)
        return;
    if (self->producer != now)
        uva__case_run_breach(
            run, "AH-29", "the handler has another producer in '%c'", letter);
    if (now->request != consumer->was.request ||
        now->cancel != consumer->was.cancel ||
        now->private_data != consumer->was.private_data) {
        check_gone(run, letter);
        return;
    }
    if (now->device_type != consumer->was.device_type)
        uva__case_run_breach(run, "AP-01", "device_type changed to %d",
                             (int)now->device_type);
    if (now->additional_metadata != consumer->was.additional_metadata)
        uva__case_run_breach(run, "AP-20", "additional_metadata moved");
    else if (consumer->about != NULL &&
             memcmp(now->additional_metadata, consumer->about,
                    consumer->about_size) != 0) {
        uva__case_run_breach(run, "AP-19", "additional_metadata changed");
        uva__case_run_breach(run, "MD-11", "additional_metadata changed");
        uva__case_run_breach(run, "AP-20", "additional_metadata changed");
    }
}

/* ---- the order of callbacks --------------------------------------------- */

static void check_late_locked(struct uva__recording_consumer *consumer,
                              char letter)
{
    struct uva__case_run *run = consumer->run;

    if (consumer->now.releases > 0) {
        if (letter == 'R')
            uva__case_run_breach(run, "AH-21", "a second release");
        if (letter == 'E')
            uva__case_run_breach(run, "ER-11", "on_error after release");
        uva__case_run_breach(run, "AH-22", "'%c' after release", letter);
    }
    if (letter == 'R')
        return;
    if (consumer->now.errors > 0) {
        if (letter == 'E')
            uva__case_run_breach(run, "AH-32", "a second on_error");
        uva__case_run_breach(run, "AH-17", "'%c' after on_error", letter);
    }
    if (!consumer->now.refused)
        return;
    if (letter == 'E')
        uva__case_run_breach(run, "ER-04", "a refusal answered by on_error");
    uva__case_run_breach(run, consumer->now.tasks > 0 ? "AH-16" : "AH-08",
                         "'%c' after a refusal", letter);
}

static void check_task_locked(struct uva__recording_consumer *consumer)
{
    struct uva__case_run *run = consumer->run;

    if (consumer->now.schemas == 0)
        uva__case_run_breach(run, "AH-05", "a task before the schema");
    if (consumer->now.failed > 0 && consumer->manner.take == UVA__TAKE_INSIDE)
        uva__case_run_breach(run, "AT-08", "a task after a failed extraction");
    if (consumer->now.ends > 0)
        uva__case_run_breach(run, "AH-11", "a task after the end");
    if (consumer->now.tasks < consumer->now.demand)
        return;
    if (consumer->now.demand == 0)
        uva__case_run_breach(run, "AH-10", "a task before any request");
    uva__case_run_breach(run, "AP-06",
                         "task %" PRId64 " of %" PRId64 " requested",
                         consumer->now.tasks + 1, consumer->now.demand);
}

/* Returns whether an extraction may have failed: a running one may have done
 * so, and not returned here. */
static bool extraction_may_have_failed_locked(
    const struct uva__recording_consumer *consumer)
{
    bool may = consumer->now.failed > 0;

    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++)
        may |= consumer->now.calls[i].on &&
               consumer->now.calls[i].what == UVA__CALL_EXTRACT;
    return may;
}

static void check_error_locked(struct uva__recording_consumer *consumer,
                               int code)
{
    struct uva__case_run *run = consumer->run;

    if (consumer->now.schemas == 0 && consumer->handler->producer == NULL)
        uva__case_run_shortfall(run, "AH-03",
                                "on_error without a producer set");
    if (consumer->now.cancelled && !consumer->manner.may_fail)
        uva__case_run_breach(run, "AP-16", "a cancel was reported as an error");
    if (consumer->now.ends > 0 && !extraction_may_have_failed_locked(consumer))
        uva__case_run_breach(run, "AH-33",
                             "an error after the end, and no "
                             "extraction had failed");
    if (code == 0)
        uva__case_run_breach(run, "ER-06", "on_error with code 0");
}

static void check_release_locked(struct uva__recording_consumer *consumer)
{
    struct uva__case_run *run = consumer->run;

    if (consumer->now.schemas == 0 && consumer->now.errors == 0)
        uva__case_run_breach(run, "AH-05", "release and no call before it");
    else if (consumer->now.ends == 0 && consumer->now.errors == 0 &&
             !consumer->now.cancelled && !consumer->now.refused)
        uva__case_run_breach(run, "AH-12",
                             "release without an end, an error, a "
                             "cancel or a refusal");
}

static void check_locked(struct uva__recording_consumer *consumer, char letter,
                         int code)
{
    switch (letter) {
    case 'S':
        if (consumer->now.schemas > 0 ||
            consumer->now.tasks + consumer->now.ends > 0)
            uva__case_run_breach(consumer->run, "AH-05",
                                 "on_schema is not the first, or not once");
        break;
    case 'T':
        check_task_locked(consumer);
        break;
    case 'N':
        if (consumer->now.schemas == 0)
            uva__case_run_breach(consumer->run, "AH-05",
                                 "NULL before the schema");
        if (consumer->now.ends > 0)
            uva__case_run_breach(consumer->run, "AH-11", "a second NULL");
        if (consumer->now.failed > 0 &&
            consumer->manner.take == UVA__TAKE_INSIDE)
            uva__case_run_breach(consumer->run, "AT-08",
                                 "NULL after a failed extraction");
        break;
    case 'E':
        check_error_locked(consumer, code);
        break;
    default:
        check_release_locked(consumer);
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

void uva__producer_rules_enter(struct uva__recording_consumer *consumer,
                               const struct ArrowAsyncDeviceStreamHandler *self,
                               char letter, int code)
{
    if (letter == 'E')
        uva__case_run_note(consumer->run, "E  on_error(%d)", code);
    else
        uva__case_run_note(consumer->run, "%c", letter);
    uva__lock_take(&consumer->lock);
    trace_add_locked(consumer, letter);
    check_overlap_locked(consumer, letter);
    check_stack_locked(consumer, letter);
    check_late_locked(consumer, letter);
    check_locked(consumer, letter, code);
    if (consumer->now.releases == 0) {
        check_handler(consumer, self);
        check_producer(consumer, self, letter);
    }
    consumer->now.schemas += letter == 'S';
    consumer->now.tasks += letter == 'T';
    consumer->now.ends += letter == 'N';
    consumer->now.errors += letter == 'E';
    consumer->now.releases += letter == 'R';
    consumer->now.inside++;
    consumer->now.inside_thread = pthread_self();
    consumer->now.inside_task = letter == 'T';
    uva__lock_drop(&consumer->lock);
    uva__case_run_changed(consumer->run);
}

void uva__producer_rules_leave(struct uva__recording_consumer *consumer,
                               bool refused)
{
    uva__lock_take(&consumer->lock);
    consumer->now.inside--;
    if (refused)
        trace_add_locked(consumer, 'X');
    consumer->now.refused |= refused;
    consumer->now.open |= consumer->now.schemas > 0;
    uva__lock_drop(&consumer->lock);
    if (refused)
        uva__case_run_note(consumer->run, "   refused");
    uva__case_run_changed(consumer->run);
}

void uva__producer_rules_set_producer(struct uva__recording_consumer *consumer,
                                      struct ArrowAsyncProducer *producer)
{
    struct uva__case_run *run = consumer->run;
    size_t size = 0;

    if (producer == NULL) {
        uva__case_run_breach(run, "LC-14", "producer is NULL in on_schema");
        uva__case_run_breach(run, "AH-03", "producer is NULL in on_schema");
        uva__case_run_fail(run, "AH-03: producer is NULL in on_schema");
    }
    if (producer->request == NULL || producer->cancel == NULL)
        uva__case_run_fail(run, "AB-17: request or cancel is NULL");
    if (producer->device_type != ARROW_DEVICE_CPU)
        uva__case_run_breach(run, "AP-01", "device_type is %d, not CPU (1)",
                             (int)producer->device_type);
    uva__producer_rules_tag(consumer, producer->additional_metadata, "AP-19");
    if (uva_metadata_size(producer->additional_metadata, &size) == 0 &&
        size > 0) {
        consumer->about = uva__case_run_alloc(run, size);
        memcpy(consumer->about, producer->additional_metadata, size);
        consumer->about_size = size;
    }
    consumer->was = *producer;
    consumer->producer = producer;
}

void uva__producer_rules_tag(struct uva__recording_consumer *consumer,
                             const char *metadata, const char *clause)
{
    uva__expected_data_check_metadata(consumer->run, metadata, clause,
                                      consumer->now.tag,
                                      &consumer->now.tag_size);
}

/* Returns whether `text` is UTF-8, judging by its lead and trail bytes only. */
static bool text_is_utf8(const char *text)
{
    while (*text != '\0') {
        const unsigned char lead = (unsigned char)*text++;
        int trail = lead < 0x80                   ? 0
                    : lead >= 0xC2 && lead < 0xE0 ? 1
                    : lead >= 0xE0 && lead < 0xF0 ? 2
                    : lead >= 0xF0 && lead < 0xF5 ? 3
                                                  : -1;

        if (trail < 0)
            return false;
        for (; trail > 0; trail--, text++)
            if (((unsigned char)*text & 0xC0) != 0x80)
                return false;
    }
    return true;
}

void uva__producer_rules_error(struct uva__recording_consumer *consumer,
                               int code, const char *message)
{
    consumer->now.error_code = code;
    if (message == NULL)
        return;
    if (!text_is_utf8(message))
        uva__case_run_breach(consumer->run, "ER-07",
                             "the message is not UTF-8");
    (void)snprintf(consumer->now.message, sizeof(consumer->now.message), "%s",
                   message);
    uva__case_run_note(consumer->run, "   \"%s\"", message);
}

/* ---- calls -------------------------------------------------------------- */

/* Returns the number of the call that is recorded. */
static int call_add_locked(struct uva__recording_consumer *consumer,
                           enum uva__recording_consumer_call what)
{
    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++) {
        if (consumer->now.calls[i].on)
            continue;
        consumer->now.calls[i].on = true;
        consumer->now.calls[i].thread = pthread_self();
        consumer->now.calls[i].what = what;
        return i;
    }
    uva__case_run_fail(consumer->run,
                       "more calls at the same time than counted");
}

int uva__producer_rules_call(struct uva__recording_consumer *consumer,
                             enum uva__recording_consumer_call what, int64_t n)
{
    int slot;

    uva__lock_take(&consumer->lock);
    if (what != UVA__CALL_EXTRACT &&
        consumer->now.ends + consumer->now.errors + consumer->now.releases >
            0) {
        uva__lock_drop(&consumer->lock);
        return -1;
    }
    if (what == UVA__CALL_REQUEST)
        uva__case_run_note(consumer->run, "   request(%" PRId64 ")", n);
    else if (what == UVA__CALL_CANCEL)
        uva__case_run_note(consumer->run, "   cancel()");
    consumer->now.running++;
    if (what == UVA__CALL_REQUEST && n > 0)
        consumer->now.demand =
            n > UVA__RECORDING_CONSUMER_ALL - consumer->now.demand
                ? UVA__RECORDING_CONSUMER_ALL
                : consumer->now.demand + n;
    if (what == UVA__CALL_CANCEL) {
        trace_add_locked(consumer, 'C');
        consumer->now.cancelled = true;
    }
    slot = call_add_locked(consumer, what);
    uva__lock_drop(&consumer->lock);
    return slot;
}

void uva__producer_rules_back(struct uva__recording_consumer *consumer,
                              int slot)
{
    uva__lock_take(&consumer->lock);
    consumer->now.running--;
    consumer->now.calls[slot].on = false;
    uva__lock_drop(&consumer->lock);
    uva__case_run_changed(consumer->run);
}

bool uva__producer_rules_is_idle(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool calm = true;

    uva__lock_take(&consumer->lock);
    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++)
        calm &= !consumer->now.calls[i].on ||
                consumer->now.calls[i].what == UVA__CALL_EXTRACT ||
                pthread_equal(consumer->now.calls[i].thread, pthread_self());
    uva__lock_drop(&consumer->lock);
    return calm;
}

void uva__producer_rules_extracted(struct uva__recording_consumer *consumer,
                                   int code)
{
    if (code != 0)
        uva__case_run_note(consumer->run, "   extract_data returned %d", code);
    uva__lock_take(&consumer->lock);
    if (code == 0)
        consumer->now.extracted++;
    else
        consumer->now.failed++;
    uva__lock_drop(&consumer->lock);
    uva__case_run_changed(consumer->run);
}

void uva__producer_rules_count_job(struct uva__recording_consumer *consumer,
                                   int more)
{
    uva__lock_take(&consumer->lock);
    consumer->now.running += more;
    uva__lock_drop(&consumer->lock);
    uva__case_run_changed(consumer->run);
}
