/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for a consumer, as its calls show them. A breach is reported under
 * the lock, because reporting only writes lines or ends the process. */
#include "tck/consumer_rules.h"

#include <inttypes.h>

#include "tck/checker.h"

void uva__consumer_rules_set_handler(
    struct uva__scripted_producer *producer,
    struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva__case_run *run = producer->run;

    if (handler == NULL)
        uva__case_run_fail(run, "uva_subject_consume() gave no handler");
    if (handler->on_schema == NULL || handler->on_next_task == NULL ||
        handler->on_error == NULL || handler->release == NULL) {
        uva__case_run_breach(run, "AB-17", "a function of the handler is NULL");
        uva__case_run_fail(run, "AH-02: a function of the handler is NULL");
    }
    producer->handler = uva__checker_front(run, UVA_PARTY_CONSUMER, handler);
    producer->handler->producer = &producer->object;
}

/* ---- callbacks ---------------------------------------------------------- */

static void stage_reach_locked(struct uva__scripted_producer *producer,
                               enum uva__script_stage stage)
{
    if (producer->now.stage < stage)
        producer->now.stage = stage;
}

/* Whether the callback runs on this thread. */
static bool is_inside_locked(const struct uva__scripted_producer *producer)
{
    return producer->now.callback != UVA__SCRIPT_QUIET &&
           pthread_equal(producer->now.thread, pthread_self());
}

void uva__consumer_rules_enter(struct uva__scripted_producer *producer,
                               char letter)
{
    uva__case_run_note(producer->run, "%c", letter);
    uva__lock_take(&producer->lock);
    stage_reach_locked(producer, UVA__SCRIPT_MET);
    producer->now.callback = letter == 'E' || letter == 'R'
                                 ? UVA__SCRIPT_CALLS_LAST
                                 : UVA__SCRIPT_CALLS;
    producer->now.thread = pthread_self();
    uva__lock_drop(&producer->lock);
}

void uva__consumer_rules_leave(struct uva__scripted_producer *producer,
                               char letter, int code)
{
    struct uva__case_run *run = producer->run;

    uva__lock_take(&producer->lock);
    producer->now.callback = UVA__SCRIPT_QUIET;
    if (letter == 'N' || letter == 'E' || letter == 'R') {
        if (producer->now.inside > 0)
            uva__case_run_breach(
                run, "TH-10", "a request or cancel runs on after '%c'", letter);
        stage_reach_locked(producer, UVA__SCRIPT_ENDED);
    }
    /* A call on another thread may begin before the consumer sees the release,
     * if it returns first. */
    if (letter == 'R')
        stage_reach_locked(producer, UVA__SCRIPT_RELEASED);
    producer->now.refused |= code != 0;
    uva__lock_drop(&producer->lock);
    if (code != 0)
        uva__case_run_note(run, "   refused: %d", code);
    if (code < 0 || code > 4095)
        uva__case_run_breach(run, "AH-09", "a callback returned %d", code);
}

/* ---- calls -------------------------------------------------------------- */

static void check_call_locked(struct uva__scripted_producer *producer,
                              const struct ArrowAsyncProducer *self,
                              const char *what)
{
    struct uva__case_run *run = producer->run;

    if (self != &producer->object)
        uva__case_run_breach(run, "AP-23", "%s on a copy of the producer",
                             what);
    if (self->private_data != producer)
        uva__case_run_breach(run, "AP-21",
                             "the producer's private_data was "
                             "changed");
    if (producer->now.stage == UVA__SCRIPT_UNMET)
        uva__case_run_breach(run, "AH-04", "%s before on_schema", what);
    if (producer->now.callback == UVA__SCRIPT_CALLS_LAST &&
        is_inside_locked(producer)) {
        uva__case_run_breach(run, "AH-19", "%s inside on_error or release",
                             what);
        uva__case_run_breach(run, "AP-24", "%s inside on_error or release",
                             what);
    } else if (producer->now.stage == UVA__SCRIPT_RELEASED) {
        uva__case_run_breach(run, "AP-24", "%s after release", what);
    } else if (producer->now.stage == UVA__SCRIPT_ENDED) {
        uva__case_run_breach(run, "TH-10", "%s after the end", what);
    }
}

bool uva__consumer_rules_request(struct uva__scripted_producer *producer,
                                 const struct ArrowAsyncProducer *self,
                                 int64_t n)
{
    bool inside;

    uva__case_run_note(producer->run, "   request(%" PRId64 ")", n);
    uva__lock_take(&producer->lock);
    check_call_locked(producer, self, "request");
    if (n <= 0)
        uva__case_run_breach(producer->run, "AP-08", "request(%" PRId64 ")", n);
    else if (n > INT64_MAX - producer->now.demand)
        producer->now.demand = INT64_MAX;
    else
        producer->now.demand += n;
    if (n > 0)
        producer->now.requested = n > INT64_MAX - producer->now.requested
                                      ? INT64_MAX
                                      : producer->now.requested + n;
    producer->now.inside++;
    inside = is_inside_locked(producer);
    uva__lock_drop(&producer->lock);
    return inside;
}

/* The script waits for a cancel that fails, so that no other callback can
 * begin beside the on_error that is decided here. */
bool uva__consumer_rules_cancel(struct uva__scripted_producer *producer,
                                const struct ArrowAsyncProducer *self)
{
    bool fails;

    uva__case_run_note(producer->run, "   cancel()");
    uva__lock_take(&producer->lock);
    check_call_locked(producer, self, "cancel");
    producer->now.inside++;
    fails = producer->now.cancel == UVA__SCRIPT_CANCEL_FAILS &&
            producer->now.callback == UVA__SCRIPT_QUIET;
    if (fails) {
        producer->now.cancel = UVA__SCRIPT_CANCEL_FAILED;
        producer->now.callback = UVA__SCRIPT_CALLS;
        producer->now.thread = pthread_self();
    }
    uva__lock_drop(&producer->lock);
    return fails;
}

void uva__consumer_rules_count_cancel(struct uva__scripted_producer *producer)
{
    uva__lock_take(&producer->lock);
    producer->now.cancels++;
    uva__lock_drop(&producer->lock);
    uva__case_run_changed(producer->run);
}

void uva__consumer_rules_back(struct uva__scripted_producer *producer)
{
    uva__lock_take(&producer->lock);
    producer->now.inside--;
    uva__lock_drop(&producer->lock);
}

/* ---- waits -------------------------------------------------------------- */

static bool consumer_rules_has_demand(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;
    bool has;

    uva__lock_take(&producer->lock);
    has = producer->now.demand > 0;
    uva__lock_drop(&producer->lock);
    return has;
}

bool uva__consumer_rules_may_offer(struct uva__scripted_producer *producer,
                                   bool now)
{
    if (now && !consumer_rules_has_demand(producer))
        return false;
    uva__case_run_await(producer->run, consumer_rules_has_demand, producer,
                        "a request");
    uva__lock_take(&producer->lock);
    if (producer->now.demand < INT64_MAX)
        producer->now.demand--;
    uva__lock_drop(&producer->lock);
    return true;
}

static bool consumer_rules_has_decided(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;
    bool has;

    uva__lock_take(&producer->lock);
    has = producer->now.demand > 0 || producer->now.refused ||
          producer->now.cancels > 0;
    uva__lock_drop(&producer->lock);
    return has;
}

bool uva__consumer_rules_goes_on(struct uva__scripted_producer *producer)
{
    bool goes_on;

    uva__case_run_await(producer->run, consumer_rules_has_decided, producer,
                        "a request, a refusal or a cancel");
    uva__lock_take(&producer->lock);
    goes_on = !producer->now.refused && producer->now.cancels == 0;
    uva__lock_drop(&producer->lock);
    return goes_on;
}

void uva__consumer_rules_listen(struct uva__scripted_producer *producer)
{
    if (!uva__case_run_quiet(producer->run, consumer_rules_has_demand,
                             producer))
        uva__case_run_fail(producer->run,
                           "%s: %" PRId64 " batches requested in all",
                           producer->run->clause, producer->now.requested);
}

bool uva__consumer_rules_is_cancelled(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;
    bool is;

    uva__lock_take(&producer->lock);
    is = producer->now.cancels > 0;
    uva__lock_drop(&producer->lock);
    return is;
}

void uva__consumer_rules_fail_cancel(struct uva__scripted_producer *producer)
{
    uva__lock_take(&producer->lock);
    producer->now.cancel = UVA__SCRIPT_CANCEL_FAILS;
    uva__lock_drop(&producer->lock);
}

static bool consumer_rules_is_calm(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;
    bool is;

    uva__lock_take(&producer->lock);
    is = producer->now.callback == UVA__SCRIPT_QUIET;
    uva__lock_drop(&producer->lock);
    return is;
}

bool uva__consumer_rules_has_failed_cancel(
    struct uva__scripted_producer *producer)
{
    bool has;

    uva__case_run_await(producer->run, uva__consumer_rules_is_cancelled,
                        producer, "a cancel");
    uva__lock_take(&producer->lock);
    has = producer->now.cancel == UVA__SCRIPT_CANCEL_FAILED;
    if (!has)
        producer->now.cancel = UVA__SCRIPT_CANCEL_COUNTS;
    uva__lock_drop(&producer->lock);
    if (has)
        uva__case_run_await(producer->run, consumer_rules_is_calm, producer,
                            "the return of on_error");
    return has;
}
