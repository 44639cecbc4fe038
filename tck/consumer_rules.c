/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a consumer, as its calls show them. A breach is reported under
 * the lock, because reporting only writes lines or ends the process. */
#include "tck/consumer_rules.h"

#include <inttypes.h>

#include "tck/checker.h"

void uva__warden_meet(struct uva__feeder *feeder,
                      struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__trial *trial = feeder->trial;

    if (handler == NULL)
        uva__trial_fail(trial, "uva_subject_consume() gave no handler");
    if (handler->on_schema == NULL || handler->on_next_task == NULL ||
        handler->on_error == NULL || handler->release == NULL) {
        uva__trial_breach(trial, "AB-17", "a function of the handler is NULL");
        uva__trial_fail(trial, "AH-02: a function of the handler is NULL");
    }
    feeder->handler = uva__checker_front(trial, UVA_PARTY_CONSUMER, handler);
    feeder->handler->producer = &feeder->object;
}

/* ---- callbacks ---------------------------------------------------------- */

void uva__warden_enter(struct uva__feeder *feeder, char letter)
{
    uva__trial_note(feeder->trial, "%c", letter);
    uva__lock_take(&feeder->lock);
    feeder->now.met = true;
    feeder->now.calling = true;
    feeder->now.calling_thread = pthread_self();
    if (letter == 'E' || letter == 'R') {
        feeder->now.final = true;
        feeder->now.final_thread = pthread_self();
    }
    feeder->now.released |= letter == 'R';
    uva__lock_drop(&feeder->lock);
}

void uva__warden_leave(struct uva__feeder *feeder, char letter, int code)
{
    struct uva__trial *trial = feeder->trial;

    uva__lock_take(&feeder->lock);
    feeder->now.calling = false;
    feeder->now.final = false;
    if (letter == 'N' || letter == 'E' || letter == 'R') {
        if (feeder->now.inside > 0)
            uva__trial_breach(trial, "TH-10",
                              "a request or cancel runs on behind '%c'",
                              letter);
        feeder->now.ended = true;
    }
    feeder->now.refused |= code != 0;
    uva__lock_drop(&feeder->lock);
    if (code != 0)
        uva__trial_note(trial, "   refused: %d", code);
    if (code < 0 || code > 4095)
        uva__trial_breach(trial, "AH-09", "a callback returned %d", code);
}

/* ---- calls -------------------------------------------------------------- */

static void judge_call_locked(struct uva__feeder *feeder,
                              const struct ArrowAsyncProducer *self,
                              const char *what)
{
    struct uva__trial *trial = feeder->trial;

    if (self != &feeder->object)
        uva__trial_breach(trial, "AP-23", "%s on a copy of the producer", what);
    if (self->private_data != feeder)
        uva__trial_breach(trial, "AP-21",
                          "the producer's private_data was "
                          "changed");
    if (!feeder->now.met)
        uva__trial_breach(trial, "AH-04", "%s before on_schema", what);
    if (feeder->now.final &&
        pthread_equal(feeder->now.final_thread, pthread_self())) {
        uva__trial_breach(trial, "AH-19", "%s inside on_error or release",
                          what);
        uva__trial_breach(trial, "AP-24", "%s inside on_error or release",
                          what);
    } else if (feeder->now.released) {
        uva__trial_breach(trial, "AP-24", "%s behind release", what);
    } else if (feeder->now.ended) {
        uva__trial_breach(trial, "TH-10", "%s behind the end", what);
    }
}

bool uva__warden_request(struct uva__feeder *feeder,
                         const struct ArrowAsyncProducer *self, int64_t n)
{
    bool inside;

    uva__trial_note(feeder->trial, "   request(%" PRId64 ")", n);
    uva__lock_take(&feeder->lock);
    judge_call_locked(feeder, self, "request");
    if (n <= 0)
        uva__trial_breach(feeder->trial, "AP-08", "request(%" PRId64 ")", n);
    else if (n > INT64_MAX - feeder->now.demand)
        feeder->now.demand = INT64_MAX;
    else
        feeder->now.demand += n;
    if (n > 0)
        feeder->now.requested = n > INT64_MAX - feeder->now.requested
                                    ? INT64_MAX
                                    : feeder->now.requested + n;
    feeder->now.inside++;
    inside = feeder->now.calling &&
             pthread_equal(feeder->now.calling_thread, pthread_self());
    uva__lock_drop(&feeder->lock);
    return inside;
}

void uva__warden_cancel(struct uva__feeder *feeder,
                        const struct ArrowAsyncProducer *self)
{
    uva__trial_note(feeder->trial, "   cancel()");
    uva__lock_take(&feeder->lock);
    judge_call_locked(feeder, self, "cancel");
    feeder->now.cancels++;
    feeder->now.inside++;
    uva__lock_drop(&feeder->lock);
}

void uva__warden_back(struct uva__feeder *feeder)
{
    uva__lock_take(&feeder->lock);
    feeder->now.inside--;
    uva__lock_drop(&feeder->lock);
}

/* ---- waits -------------------------------------------------------------- */

static bool warden_has_demand(void *ctx)
{
    struct uva__feeder *feeder = ctx;
    bool has;

    uva__lock_take(&feeder->lock);
    has = feeder->now.demand > 0;
    uva__lock_drop(&feeder->lock);
    return has;
}

bool uva__warden_may_offer(struct uva__feeder *feeder, bool now)
{
    if (now && !warden_has_demand(feeder))
        return false;
    uva__trial_await(feeder->trial, warden_has_demand, feeder, "a request");
    uva__lock_take(&feeder->lock);
    if (feeder->now.demand < INT64_MAX)
        feeder->now.demand--;
    uva__lock_drop(&feeder->lock);
    return true;
}

void uva__warden_listen(struct uva__feeder *feeder)
{
    if (!uva__trial_quiet(feeder->trial, warden_has_demand, feeder))
        uva__trial_fail(feeder->trial,
                        "%s: %" PRId64 " batches requested in all",
                        feeder->trial->clause, feeder->now.requested);
}

bool uva__warden_is_cancelled(void *ctx)
{
    struct uva__feeder *feeder = ctx;
    bool is;

    uva__lock_take(&feeder->lock);
    is = feeder->now.cancels > 0;
    uva__lock_drop(&feeder->lock);
    return is;
}
