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

void uva__sentinel_init(struct uva__probe *probe)
{
    probe->made = *probe->handler;
}

static void trace_add_locked(struct uva__probe *probe, char letter)
{
    if (probe->now.traced < UVA__PROBE_TRACE)
        probe->now.trace[probe->now.traced++] = letter;
}

/* ---- rules for every callback ------------------------------------------- */

static void judge_overlap_locked(struct uva__probe *probe, char letter)
{
    struct uva__trial *trial = probe->trial;

    if (probe->now.inside == 0)
        return;
    if (pthread_equal(probe->now.inside_thread, pthread_self()))
        uva__trial_breach(trial, "TH-08", "'%c' began inside another callback",
                          letter);
    if (letter == 'R')
        uva__trial_breach(trial, "TH-09",
                          "release before a callback had returned");
    if (letter == 'T' && probe->now.inside_task)
        uva__trial_breach(trial, "AH-15", "on_next_task runs twice at once");
    uva__trial_breach(trial, "TH-01", "'%c' overlaps another callback", letter);
}

/* Checks that no callback is made inside a call of ours. */
static void judge_stack_locked(struct uva__probe *probe, char letter)
{
    struct uva__trial *trial = probe->trial;

    for (int i = 0; i < UVA__PROBE_CALLS; i++) {
        if (!probe->now.calls[i].on ||
            !pthread_equal(probe->now.calls[i].thread, pthread_self()))
            continue;
        if (probe->now.calls[i].what == UVA__CALL_EXTRACT)
            uva__trial_breach(trial, "AT-23", "'%c' inside extract_data",
                              letter);
        else if (probe->now.calls[i].what == UVA__CALL_CANCEL && letter != 'E')
            uva__trial_breach(trial, "AP-13", "'%c' inside cancel", letter);
        else if (probe->now.calls[i].what == UVA__CALL_REQUEST &&
                 (letter != 'R' || !probe->now.cancelled))
            uva__trial_breach(trial, letter == 'R' ? "AP-05" : "AP-04",
                              "'%c' inside request", letter);
    }
}

static void judge_handler(struct uva__probe *probe,
                          const struct ArrowAsyncDeviceStreamHandler *self)
{
    const struct ArrowAsyncDeviceStreamHandler *made = &probe->made;
    struct uva__trial *trial = probe->trial;

    if (self != probe->handler)
        uva__trial_breach(trial, "AH-24",
                          "self is not the handler that was "
                          "handed over");
    if (self->private_data != made->private_data)
        uva__trial_breach(trial, "AH-25", "private_data was changed");
    if (self->on_schema != made->on_schema ||
        self->on_next_task != made->on_next_task ||
        self->on_error != made->on_error || self->release != made->release)
        uva__trial_breach(trial, "AH-26",
                          "a function of the handler was "
                          "changed");
}

/* The memory belongs to another object now, so its other members prove
 * nothing. */
static void judge_gone(struct uva__trial *trial, char letter)
{
    uva__trial_breach(trial, "LC-13", "the producer object changed before '%c'",
                      letter);
    uva__trial_breach(trial, "AP-22", "the producer object changed before '%c'",
                      letter);
}

/* Checks that the producer object is unchanged while it may be used. */
static void judge_producer(struct uva__probe *probe, char letter)
{
    const struct ArrowAsyncProducer *now = probe->producer;
    struct uva__trial *trial = probe->trial;

    if (now == NULL)
        return;
    if (now->request != probe->was.request ||
        now->cancel != probe->was.cancel ||
        now->private_data != probe->was.private_data) {
        judge_gone(trial, letter);
        return;
    }
    if (now->device_type != probe->was.device_type)
        uva__trial_breach(trial, "AP-01", "device_type changed to %d",
                          (int)now->device_type);
    if (now->additional_metadata != probe->was.additional_metadata)
        uva__trial_breach(trial, "AP-20", "additional_metadata moved");
    else if (probe->about != NULL &&
             memcmp(now->additional_metadata, probe->about,
                    probe->about_size) != 0) {
        uva__trial_breach(trial, "AP-19", "additional_metadata changed");
        uva__trial_breach(trial, "MD-11", "additional_metadata changed");
        uva__trial_breach(trial, "AP-20", "additional_metadata changed");
    }
}

/* ---- the order of callbacks --------------------------------------------- */

static void judge_late_locked(struct uva__probe *probe, char letter)
{
    struct uva__trial *trial = probe->trial;

    if (probe->now.releases > 0) {
        if (letter == 'R')
            uva__trial_breach(trial, "AH-21", "a second release");
        if (letter == 'E')
            uva__trial_breach(trial, "ER-11", "on_error behind release");
        uva__trial_breach(trial, "AH-22", "'%c' behind release", letter);
    }
    if (letter == 'R')
        return;
    if (probe->now.errors > 0) {
        if (letter == 'E')
            uva__trial_breach(trial, "AH-32", "a second on_error");
        uva__trial_breach(trial, "AH-17", "'%c' behind on_error", letter);
    }
    if (!probe->now.refused)
        return;
    if (letter == 'E')
        uva__trial_breach(trial, "ER-04", "a refusal answered by on_error");
    uva__trial_breach(trial, probe->now.tasks > 0 ? "AH-16" : "AH-08",
                      "'%c' behind a refusal", letter);
}

static void judge_task_locked(struct uva__probe *probe)
{
    struct uva__trial *trial = probe->trial;

    if (probe->now.schemas == 0)
        uva__trial_breach(trial, "AH-05", "a task before the schema");
    if (probe->now.failed > 0 && probe->manner.take == UVA__TAKE_INSIDE)
        uva__trial_breach(trial, "AT-08", "a task behind a failed extraction");
    if (probe->now.ends > 0)
        uva__trial_breach(trial, "AH-11", "a task behind the end");
    if (probe->now.tasks < probe->now.demand)
        return;
    if (probe->now.demand == 0)
        uva__trial_breach(trial, "AH-10", "a task before any request");
    uva__trial_breach(trial, "AP-06",
                      "task %" PRId64 " of %" PRId64 " requested",
                      probe->now.tasks + 1, probe->now.demand);
}

static void judge_error_locked(struct uva__probe *probe, int code)
{
    struct uva__trial *trial = probe->trial;

    if (probe->now.schemas == 0 && probe->handler->producer == NULL)
        uva__trial_breach(trial, "AH-03", "on_error without a producer set");
    if (probe->now.cancelled && !probe->manner.may_fail)
        uva__trial_breach(trial, "AP-16", "a cancel was reported as an error");
    if (probe->now.ends > 0 && probe->now.failed == 0)
        uva__trial_breach(trial, "AH-33",
                          "an error behind the end, and no "
                          "extraction had failed");
    if (code == 0)
        uva__trial_breach(trial, "ER-06", "on_error with code 0");
}

static void judge_release_locked(struct uva__probe *probe)
{
    struct uva__trial *trial = probe->trial;

    if (probe->now.schemas == 0 && probe->now.errors == 0)
        uva__trial_breach(trial, "AH-05", "release and nothing before it");
    else if (probe->now.ends == 0 && probe->now.errors == 0 &&
             !probe->now.cancelled && !probe->now.refused)
        uva__trial_breach(trial, "AH-12",
                          "release without an end, an error, a "
                          "cancel or a refusal");
}

static void judge_locked(struct uva__probe *probe, char letter, int code)
{
    switch (letter) {
    case 'S':
        if (probe->now.schemas > 0 || probe->now.tasks + probe->now.ends > 0)
            uva__trial_breach(probe->trial, "AH-05",
                              "on_schema is not the first, or not once");
        break;
    case 'T':
        judge_task_locked(probe);
        break;
    case 'N':
        if (probe->now.schemas == 0)
            uva__trial_breach(probe->trial, "AH-05", "NULL before the schema");
        if (probe->now.ends > 0)
            uva__trial_breach(probe->trial, "AH-11", "a second NULL");
        break;
    case 'E':
        judge_error_locked(probe, code);
        break;
    default:
        judge_release_locked(probe);
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

void uva__sentinel_enter(struct uva__probe *probe,
                         const struct ArrowAsyncDeviceStreamHandler *self,
                         char letter, int code)
{
    if (letter == 'E')
        uva__trial_note(probe->trial, "E  on_error(%d)", code);
    else
        uva__trial_note(probe->trial, "%c", letter);
    uva__lock_take(&probe->lock);
    trace_add_locked(probe, letter);
    judge_overlap_locked(probe, letter);
    judge_stack_locked(probe, letter);
    judge_late_locked(probe, letter);
    judge_locked(probe, letter, code);
    if (probe->now.releases == 0) {
        judge_handler(probe, self);
        judge_producer(probe, letter);
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
    uva__trial_changed(probe->trial);
}

void uva__sentinel_leave(struct uva__probe *probe, bool refused)
{
    uva__lock_take(&probe->lock);
    probe->now.inside--;
    if (refused)
        trace_add_locked(probe, 'X');
    probe->now.refused |= refused;
    probe->now.open |= probe->now.schemas > 0;
    uva__lock_drop(&probe->lock);
    if (refused)
        uva__trial_note(probe->trial, "   refused");
    uva__trial_changed(probe->trial);
}

void uva__sentinel_meet(struct uva__probe *probe,
                        struct ArrowAsyncProducer *producer)
{
    struct uva__trial *trial = probe->trial;
    size_t size = 0;

    if (producer == NULL) {
        uva__trial_breach(trial, "LC-14", "producer is NULL in on_schema");
        uva__trial_breach(trial, "AH-03", "producer is NULL in on_schema");
        uva__trial_fail(trial, "AH-03: producer is NULL in on_schema");
    }
    if (producer->request == NULL || producer->cancel == NULL)
        uva__trial_fail(trial, "AB-17: request or cancel is NULL");
    if (producer->device_type != ARROW_DEVICE_CPU)
        uva__trial_breach(trial, "AP-01", "device_type is %d, not CPU (1)",
                          (int)producer->device_type);
    uva__sentinel_tag(probe, producer->additional_metadata, "AP-19");
    if (uva_metadata_size(producer->additional_metadata, &size) == 0 &&
        size > 0) {
        probe->about = uva__trial_alloc(trial, size);
        memcpy(probe->about, producer->additional_metadata, size);
        probe->about_size = size;
    }
    probe->was = *producer;
    probe->producer = producer;
}

void uva__sentinel_tag(struct uva__probe *probe, const char *metadata,
                       const char *clause)
{
    uva__specimen_check_metadata(probe->trial, metadata, clause, probe->now.tag,
                                 &probe->now.tag_size);
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

void uva__sentinel_hear(struct uva__probe *probe, int code, const char *message)
{
    probe->now.error_code = code;
    if (message == NULL)
        return;
    if (!text_is_utf8(message))
        uva__trial_breach(probe->trial, "ER-07", "the message is not UTF-8");
    (void)snprintf(probe->now.message, sizeof(probe->now.message), "%s",
                   message);
    uva__trial_note(probe->trial, "   \"%s\"", message);
}

/* ---- calls -------------------------------------------------------------- */

/* Returns the number of the call that is recorded. */
static int call_add_locked(struct uva__probe *probe, enum uva__probe_call what)
{
    for (int i = 0; i < UVA__PROBE_CALLS; i++) {
        if (probe->now.calls[i].on)
            continue;
        probe->now.calls[i].on = true;
        probe->now.calls[i].thread = pthread_self();
        probe->now.calls[i].what = what;
        return i;
    }
    uva__trial_fail(probe->trial, "more calls at the same time than counted");
}

int uva__sentinel_call(struct uva__probe *probe, enum uva__probe_call what,
                       int64_t n)
{
    int slot;

    uva__lock_take(&probe->lock);
    if (what != UVA__CALL_EXTRACT &&
        probe->now.ends + probe->now.errors + probe->now.releases > 0) {
        uva__lock_drop(&probe->lock);
        return -1;
    }
    if (what == UVA__CALL_REQUEST)
        uva__trial_note(probe->trial, "   request(%" PRId64 ")", n);
    else if (what == UVA__CALL_CANCEL)
        uva__trial_note(probe->trial, "   cancel()");
    probe->now.running++;
    if (what == UVA__CALL_REQUEST && n > 0)
        probe->now.demand = n > UVA__PROBE_ALL - probe->now.demand
                                ? UVA__PROBE_ALL
                                : probe->now.demand + n;
    if (what == UVA__CALL_CANCEL) {
        trace_add_locked(probe, 'C');
        probe->now.cancelled = true;
    }
    slot = call_add_locked(probe, what);
    uva__lock_drop(&probe->lock);
    return slot;
}

void uva__sentinel_back(struct uva__probe *probe, int slot)
{
    uva__lock_take(&probe->lock);
    probe->now.running--;
    probe->now.calls[slot].on = false;
    uva__lock_drop(&probe->lock);
    uva__trial_changed(probe->trial);
}

bool uva__sentinel_is_calm(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool calm = true;

    uva__lock_take(&probe->lock);
    for (int i = 0; i < UVA__PROBE_CALLS; i++)
        calm &= !probe->now.calls[i].on ||
                probe->now.calls[i].what == UVA__CALL_EXTRACT ||
                pthread_equal(probe->now.calls[i].thread, pthread_self());
    uva__lock_drop(&probe->lock);
    return calm;
}

void uva__sentinel_extracted(struct uva__probe *probe, int code)
{
    if (code != 0)
        uva__trial_note(probe->trial, "   extract_data returned %d", code);
    uva__lock_take(&probe->lock);
    if (code == 0)
        probe->now.extracted++;
    else
        probe->now.failed++;
    uva__lock_drop(&probe->lock);
    uva__trial_changed(probe->trial);
}

void uva__sentinel_errand(struct uva__probe *probe, int more)
{
    uva__lock_take(&probe->lock);
    probe->now.running += more;
    uva__lock_drop(&probe->lock);
    uva__trial_changed(probe->trial);
}
