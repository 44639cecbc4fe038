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

void uva__producer_rules_init(struct uva__recording_consumer *probe)
{
    probe->made = *probe->handler;
}

static void trace_add_locked(struct uva__recording_consumer *probe, char letter)
{
    if (probe->now.traced < UVA__RECORDING_CONSUMER_TRACE)
        probe->now.trace[probe->now.traced++] = letter;
}

/* ---- rules for every callback ------------------------------------------- */

static void check_overlap_locked(struct uva__recording_consumer *probe,
                                 char letter)
{
    struct uva__case_run *run = probe->run;

    if (probe->now.inside == 0)
        return;
    if (pthread_equal(probe->now.inside_thread, pthread_self()))
        uva__case_run_breach(run, "TH-08", "'%c' began inside another callback",
                             letter);
    if (letter == 'R')
        uva__case_run_breach(run, "TH-09",
                             "release before a callback had returned");
    if (letter == 'T' && probe->now.inside_task)
        uva__case_run_breach(run, "AH-15", "on_next_task runs twice at once");
    uva__case_run_breach(run, "TH-01", "'%c' overlaps another callback",
                         letter);
}

/* Checks that no callback is made inside a call of ours. */
static void check_stack_locked(struct uva__recording_consumer *probe,
                               char letter)
{
    struct uva__case_run *run = probe->run;

    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++) {
        if (!probe->now.calls[i].on ||
            !pthread_equal(probe->now.calls[i].thread, pthread_self()))
            continue;
        if (probe->now.calls[i].what == UVA__CALL_EXTRACT)
            uva__case_run_breach(run, "AT-23", "'%c' inside extract_data",
                                 letter);
        else if (probe->now.calls[i].what == UVA__CALL_CANCEL && letter != 'E')
            uva__case_run_breach(run, "AP-13", "'%c' inside cancel", letter);
        else if (probe->now.calls[i].what == UVA__CALL_REQUEST &&
                 (letter != 'R' || !probe->now.cancelled))
            uva__case_run_breach(run, letter == 'R' ? "AP-05" : "AP-04",
                                 "'%c' inside request", letter);
    }
}

static void check_handler(struct uva__recording_consumer *probe,
                          const struct ArrowAsyncDeviceStreamHandler *self)
{
    const struct ArrowAsyncDeviceStreamHandler *made = &probe->made;
    struct uva__case_run *run = probe->run;

    if (self != probe->handler)
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
 * nothing. */
static void check_gone(struct uva__case_run *run, char letter)
{
    uva__case_run_breach(run, "LC-13",
                         "the producer object changed before '%c'", letter);
    uva__case_run_breach(run, "AP-22",
                         "the producer object changed before '%c'", letter);
}

/* Checks that the producer object is unchanged while it may be used. */
static void check_producer(struct uva__recording_consumer *probe, char letter)
{
    const struct ArrowAsyncProducer *now = probe->producer;
    struct uva__case_run *run = probe->run;

    if (now == NULL)
        return;
    if (now->request != probe->was.request ||
        now->cancel != probe->was.cancel ||
        now->private_data != probe->was.private_data) {
        check_gone(run, letter);
        return;
    }
    if (now->device_type != probe->was.device_type)
        uva__case_run_breach(run, "AP-01", "device_type changed to %d",
                             (int)now->device_type);
    if (now->additional_metadata != probe->was.additional_metadata)
        uva__case_run_breach(run, "AP-20", "additional_metadata moved");
    else if (probe->about != NULL &&
             memcmp(now->additional_metadata, probe->about,
                    probe->about_size) != 0) {
        uva__case_run_breach(run, "AP-19", "additional_metadata changed");
        uva__case_run_breach(run, "MD-11", "additional_metadata changed");
        uva__case_run_breach(run, "AP-20", "additional_metadata changed");
    }
}

/* ---- the order of callbacks --------------------------------------------- */

static void check_late_locked(struct uva__recording_consumer *probe,
                              char letter)
{
    struct uva__case_run *run = probe->run;

    if (probe->now.releases > 0) {
        if (letter == 'R')
            uva__case_run_breach(run, "AH-21", "a second release");
        if (letter == 'E')
            uva__case_run_breach(run, "ER-11", "on_error behind release");
        uva__case_run_breach(run, "AH-22", "'%c' behind release", letter);
    }
    if (letter == 'R')
        return;
    if (probe->now.errors > 0) {
        if (letter == 'E')
            uva__case_run_breach(run, "AH-32", "a second on_error");
        uva__case_run_breach(run, "AH-17", "'%c' behind on_error", letter);
    }
    if (!probe->now.refused)
        return;
    if (letter == 'E')
        uva__case_run_breach(run, "ER-04", "a refusal answered by on_error");
    uva__case_run_breach(run, probe->now.tasks > 0 ? "AH-16" : "AH-08",
                         "'%c' behind a refusal", letter);
}

static void check_task_locked(struct uva__recording_consumer *probe)
{
    struct uva__case_run *run = probe->run;

    if (probe->now.schemas == 0)
        uva__case_run_breach(run, "AH-05", "a task before the schema");
    if (probe->now.failed > 0 && probe->manner.take == UVA__TAKE_INSIDE)
        uva__case_run_breach(run, "AT-08", "a task behind a failed extraction");
    if (probe->now.ends > 0)
        uva__case_run_breach(run, "AH-11", "a task behind the end");
    if (probe->now.tasks < probe->now.demand)
        return;
    if (probe->now.demand == 0)
        uva__case_run_breach(run, "AH-10", "a task before any request");
    uva__case_run_breach(run, "AP-06",
                         "task %" PRId64 " of %" PRId64 " requested",
                         probe->now.tasks + 1, probe->now.demand);
}

static void check_error_locked(struct uva__recording_consumer *probe, int code)
{
    struct uva__case_run *run = probe->run;

    if (probe->now.schemas == 0 && probe->handler->producer == NULL)
        uva__case_run_breach(run, "AH-03", "on_error without a producer set");
    if (probe->now.cancelled && !probe->manner.may_fail)
        uva__case_run_breach(run, "AP-16", "a cancel was reported as an error");
    if (probe->now.ends > 0 && probe->now.failed == 0)
        uva__case_run_breach(run, "AH-33",
                             "an error behind the end, and no "
                             "extraction had failed");
    if (code == 0)
        uva__case_run_breach(run, "ER-06", "on_error with code 0");
}

static void check_release_locked(struct uva__recording_consumer *probe)
{
    struct uva__case_run *run = probe->run;

    if (probe->now.schemas == 0 && probe->now.errors == 0)
        uva__case_run_breach(run, "AH-05", "release and nothing before it");
    else if (probe->now.ends == 0 && probe->now.errors == 0 &&
             !probe->now.cancelled && !probe->now.refused)
        uva__case_run_breach(run, "AH-12",
                             "release without an end, an error, a "
                             "cancel or a refusal");
}

static void check_locked(struct uva__recording_consumer *probe, char letter,
                         int code)
{
    switch (letter) {
    case 'S':
        if (probe->now.schemas > 0 || probe->now.tasks + probe->now.ends > 0)
            uva__case_run_breach(probe->run, "AH-05",
                                 "on_schema is not the first, or not once");
        break;
    case 'T':
        check_task_locked(probe);
        break;
    case 'N':
        if (probe->now.schemas == 0)
            uva__case_run_breach(probe->run, "AH-05", "NULL before the schema");
        if (probe->now.ends > 0)
            uva__case_run_breach(probe->run, "AH-11", "a second NULL");
        break;
    case 'E':
        check_error_locked(probe, code);
        break;
    default:
        check_release_locked(probe);
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

void uva__producer_rules_enter(struct uva__recording_consumer *probe,
                               const struct ArrowAsyncDeviceStreamHandler *self,
                               char letter, int code)
{
    if (letter == 'E')
        uva__case_run_note(probe->run, "E  on_error(%d)", code);
    else
        uva__case_run_note(probe->run, "%c", letter);
    uva__lock_take(&probe->lock);
    trace_add_locked(probe, letter);
    check_overlap_locked(probe, letter);
    check_stack_locked(probe, letter);
    check_late_locked(probe, letter);
    check_locked(probe, letter, code);
    if (probe->now.releases == 0) {
        check_handler(probe, self);
        check_producer(probe, letter);
    }
    probe->now.schemas += letter == 'S';
    probe->now.tasks += letter == 'T';
    probe->now.ends += letter == 'N';
    probe->now.errors += letter == 'E';
    probe->now.releases += letter == 'R';
    probe->now.inside++;
    probe->now.inside_thread = pthread_self();
    probe->now.inside_task = letter == 'T';
    uva__lock_drop(&probe->lock);
    uva__case_run_changed(probe->run);
}

void uva__producer_rules_leave(struct uva__recording_consumer *probe,
                               bool refused)
{
    uva__lock_take(&probe->lock);
    probe->now.inside--;
    if (refused)
        trace_add_locked(probe, 'X');
    probe->now.refused |= refused;
    probe->now.open |= probe->now.schemas > 0;
    uva__lock_drop(&probe->lock);
    if (refused)
        uva__case_run_note(probe->run, "   refused");
    uva__case_run_changed(probe->run);
}

void uva__producer_rules_first_see(struct uva__recording_consumer *probe,
                                   struct ArrowAsyncProducer *producer)
{
    struct uva__case_run *run = probe->run;
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
    uva__producer_rules_tag(probe, producer->additional_metadata, "AP-19");
    if (uva_metadata_size(producer->additional_metadata, &size) == 0 &&
        size > 0) {
        probe->about = uva__case_run_alloc(run, size);
        memcpy(probe->about, producer->additional_metadata, size);
        probe->about_size = size;
    }
    probe->was = *producer;
    probe->producer = producer;
}

void uva__producer_rules_tag(struct uva__recording_consumer *probe,
                             const char *metadata, const char *clause)
{
    uva__expected_data_check_metadata(probe->run, metadata, clause,
                                      probe->now.tag, &probe->now.tag_size);
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

void uva__producer_rules_error(struct uva__recording_consumer *probe, int code,
                               const char *message)
{
    probe->now.error_code = code;
    if (message == NULL)
        return;
    if (!text_is_utf8(message))
        uva__case_run_breach(probe->run, "ER-07", "the message is not UTF-8");
    (void)snprintf(probe->now.message, sizeof(probe->now.message), "%s",
                   message);
    uva__case_run_note(probe->run, "   \"%s\"", message);
}

/* ---- calls -------------------------------------------------------------- */

/* Returns the number of the call that is recorded. */
static int call_add_locked(struct uva__recording_consumer *probe,
                           enum uva__recording_consumer_call what)
{
    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++) {
        if (probe->now.calls[i].on)
            continue;
        probe->now.calls[i].on = true;
        probe->now.calls[i].thread = pthread_self();
        probe->now.calls[i].what = what;
        return i;
    }
    uva__case_run_fail(probe->run, "more calls at the same time than counted");
}

int uva__producer_rules_call(struct uva__recording_consumer *probe,
                             enum uva__recording_consumer_call what, int64_t n)
{
    int slot;

    uva__lock_take(&probe->lock);
    if (what != UVA__CALL_EXTRACT &&
        probe->now.ends + probe->now.errors + probe->now.releases > 0) {
        uva__lock_drop(&probe->lock);
        return -1;
    }
    if (what == UVA__CALL_REQUEST)
        uva__case_run_note(probe->run, "   request(%" PRId64 ")", n);
    else if (what == UVA__CALL_CANCEL)
        uva__case_run_note(probe->run, "   cancel()");
    probe->now.running++;
    if (what == UVA__CALL_REQUEST && n > 0)
        probe->now.demand = n > UVA__RECORDING_CONSUMER_ALL - probe->now.demand
                                ? UVA__RECORDING_CONSUMER_ALL
                                : probe->now.demand + n;
    if (what == UVA__CALL_CANCEL) {
        trace_add_locked(probe, 'C');
        probe->now.cancelled = true;
    }
    slot = call_add_locked(probe, what);
    uva__lock_drop(&probe->lock);
    return slot;
}

void uva__producer_rules_back(struct uva__recording_consumer *probe, int slot)
{
    uva__lock_take(&probe->lock);
    probe->now.running--;
    probe->now.calls[slot].on = false;
    uva__lock_drop(&probe->lock);
    uva__case_run_changed(probe->run);
}

bool uva__producer_rules_is_calm(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool calm = true;

    uva__lock_take(&probe->lock);
    for (int i = 0; i < UVA__RECORDING_CONSUMER_CALLS; i++)
        calm &= !probe->now.calls[i].on ||
                probe->now.calls[i].what == UVA__CALL_EXTRACT ||
                pthread_equal(probe->now.calls[i].thread, pthread_self());
    uva__lock_drop(&probe->lock);
    return calm;
}

void uva__producer_rules_extracted(struct uva__recording_consumer *probe,
                                   int code)
{
    if (code != 0)
        uva__case_run_note(probe->run, "   extract_data returned %d", code);
    uva__lock_take(&probe->lock);
    if (code == 0)
        probe->now.extracted++;
    else
        probe->now.failed++;
    uva__lock_drop(&probe->lock);
    uva__case_run_changed(probe->run);
}

void uva__producer_rules_count_job(struct uva__recording_consumer *probe,
                                   int more)
{
    uva__lock_take(&probe->lock);
    probe->now.running += more;
    uva__lock_drop(&probe->lock);
    uva__case_run_changed(probe->run);
}
