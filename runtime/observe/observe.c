/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the steps of a producer: see observe/observe.h. Inspectors are called
 * by the dispatcher alone, and so never inside a call of the handler. */
#include "observe/observe.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stream/stream_impl.h"

/* ---- life --------------------------------------------------------------- */

int uva__observe_add(struct uva__producer *p, const struct uva_trace *trace,
                     struct uva_stream *stream)
{
    struct uva__inspector *i = uva__memory_new(&p->rt->allocator, sizeof(*i));
    struct uva__inspector **end = &p->loop->inspectors;

    if (i == NULL) {
        if (trace->free_ctx != NULL)
            trace->free_ctx(trace->ctx);
        return ENOMEM;
    }
    i->trace = *trace;
    i->stream = stream;
    while (*end != NULL)
        end = &(*end)->next;
    *end = i;
    p->observed |= UVA__OBSERVED_INSPECT;
    return 0;
}

void uva__observe_limit(struct uva__producer *p)
{
    for (struct uva__inspector *i = p->loop->inspectors; i != NULL; i = i->next)
        i->above_limit = true;
}

/* An event may come after the end of the stream, when the stages above it end;
 * so inspectors count the stream while they may be called. With a tee they do
 * not: the stream could not leave the tee while another branch goes on. */
void uva__observe_begin(struct uva__producer *p)
{
    for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
         i = i->next) {
        if (p->source->label->shared)
            continue;
        uva__wakeup_acquire(&i->stream->wakeup);
        i->held = true;
    }
}

/* No event follows the release. */
static void inspectors_let_go(struct uva__producer *p)
{
    for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
         i = i->next) {
        if (i->held)
            uva__wakeup_release(&i->stream->wakeup);
        i->held = false;
    }
}

void uva__observe_free(struct uva__producer *p)
{
    struct uva__inspector *i = p->loop->inspectors, *next;

    p->loop->inspectors = NULL;
    for (; i != NULL; i = next) {
        assert(!i->held); /* it has released its handler, or never begun */
        next = i->next;
        if (i->trace.free_ctx != NULL)
            i->trace.free_ctx(i->trace.ctx);
        uva__memory_free(&p->rt->allocator, i, sizeof(*i));
    }
}

/* ---- inspectors --------------------------------------------------------- */

static void inspector_call(const struct uva__producer *p,
                           struct uva__inspector *i, enum uva_trace_kind kind,
                           int64_t value)
{
    const int64_t now_ns = (int64_t)uva__clock_ns();
    struct uva_trace_event event = {
        .kind = kind,
        .name = uva__instant_name(kind),
        .ordinal = kind == UVA_TRACE_BATCH ? p->loop->ordinal : -1,
        .at_ns = now_ns,
        .end_ns = now_ns,
        .value = value,
    };

    if (i->ended)
        return;
    uva__point_fill(&p->source->meter->point, &event);
    i->ended = kind == UVA_TRACE_END;
    i->trace.event(i->trace.ctx, &event);
}

/* Stages above a limit are cancelled when the limit is reached. */
static void inspectors_end(struct uva__producer *p, int64_t code)
{
    const bool limited = code == 0 && p->loop->state.left == 0;

    for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
         i = i->next) {
        if (limited && i->above_limit && !i->ended) {
            inspector_call(p, i, UVA_TRACE_CANCEL, 0);
            inspector_call(p, i, UVA_TRACE_END, ECANCELED);
        } else {
            inspector_call(p, i, UVA_TRACE_END, code);
        }
    }
}

/* ---- steps -------------------------------------------------------------- */

/* The reports of a step: its name in the log, and whether a number follows; the
 * kind of its event, which inspectors get, and if it is `traced`, the runtime's
 * trace, too. */
static const struct {
    const char *log;
    bool numbered, traced;
    enum uva_trace_kind kind;
} steps[] = {
    [UVA__MOVE_OFFER_SCHEMA] = {"on_schema", .kind = UVA_TRACE_SCHEMA},
    [UVA__MOVE_OFFER_TASK] = {"on_next_task", .numbered = true,
                              .kind = UVA_TRACE_BATCH},
    [UVA__MOVE_OFFER_END] = {"on_next_task, the end", .kind = UVA_TRACE_END},
    [UVA__MOVE_OFFER_ERROR] = {"on_error", .kind = UVA_TRACE_END},
    [UVA__MOVE_RELEASE] = {"release", .kind = UVA_TRACE_END}, /* unless it has
                                                                 ended */
    [UVA__STEP_REQUEST] = {"request", true, true, UVA_TRACE_REQUEST},
    [UVA__STEP_CANCEL] = {"cancel", .traced = true, .kind = UVA_TRACE_CANCEL},
};

static void step_log(struct uva__producer *p, int step, int64_t n)
{
    const char *stream = uva__label_text(p->source->label);
    const char *name = p->source->name, *text = steps[step].log;
    const struct uva__failure *failure = uva__producer_failure(p);

    if (step == UVA__MOVE_OFFER_ERROR)
        uva__rt_log(p->rt, UVA_LOG_DEBUG, stream, NULL, "%s: %s %s: %s", name,
                    text, uva_error_name(failure->code),
                    uva__failure_message(failure));
    else if (steps[step].numbered)
        uva__rt_log(p->rt, UVA_LOG_DEBUG, stream, NULL, "%s: %s %lld", name,
                    text, (long long)n);
    else
        uva__rt_log(p->rt, UVA_LOG_DEBUG, stream, NULL, "%s: %s", name, text);
}

/* The value of the event of a step: how many batches were requested, or the
 * code of an end. */
static int64_t step_value(const struct uva__producer *p, int step, int64_t n)
{
    switch (step) {
    case UVA__STEP_REQUEST:
        return n;
    case UVA__MOVE_OFFER_ERROR:
        return uva__producer_failure(p)->code;
    case UVA__MOVE_RELEASE:
        return p->loop->refusal != 0 ? p->loop->refusal : ECANCELED;
    default:
        return 0;
    }
}

static void step_inspect(struct uva__producer *p, int step, int64_t value)
{
    const enum uva_trace_kind kind = steps[step].kind;

    if (kind == UVA_TRACE_END)
        inspectors_end(p, value);
    else if (kind != UVA_TRACE_REQUEST || value != 0)
        for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
             i = i->next)
            inspector_call(p, i, kind, value);
    if (step == UVA__MOVE_RELEASE)
        inspectors_let_go(p);
}

void uva__observe_step(struct uva__producer *p, int step, int64_t n)
{
    const int64_t value = step_value(p, step, n);

    if (p->observed & UVA__OBSERVED_LOG)
        step_log(p, step, n);
    if (steps[step].traced)
        uva__point_instant(&p->source->meter->point, steps[step].kind, value);
    if (p->observed & UVA__OBSERVED_INSPECT)
        step_inspect(p, step, value);
}

void uva__observe_demand(struct uva__producer *p, uint64_t word)
{
    const int64_t n = (word & UVA__DEMAND_UNBOUNDED)
                          ? INT64_MAX
                          : (int64_t)(word >> UVA__DEMAND_SHIFT);

    if (n != 0 || (word & UVA__DEMAND_BAD))
        uva__observe_step(p, UVA__STEP_REQUEST, n);
    if (!(word & UVA__DEMAND_CANCEL) || p->loop->cancel_seen)
        return;
    p->loop->cancel_seen = true;
    uva__observe_step(p, UVA__STEP_CANCEL, 1);
}

/* ---- tasks ---------------------------------------------------- */

void uva__observe_task(struct uva__producer *p, const struct uva__task *task)
{
    p->loop->ordinal = task->info.ordinal;
    uva__observe_step(p, UVA__MOVE_OFFER_TASK, uva__producer_offered(p) - 1);
    p->loop->call_ns = p->loop->hooks->foreign ? uva__span_begin(p->rt) : 0;
    /* a consumer that is busy inside the call keeps the next batches waiting */
    p->loop->since_ns = (p->observed & UVA__OBSERVED_MEASURE) &&
                                !uva__producer_state_wants(&p->loop->state) &&
                                p->loop->state.ready > 0
                            ? uva__clock_ns()
                            : 0;
}

void uva__observe_offered(struct uva__producer *p)
{
    uva__point_span_end(&p->source->label->consumer, "on_next_task",
                        p->loop->ordinal, p->loop->call_ns);
    if (p->loop->since_ns != 0)
        uva__counter_add(&p->source->meter->times->idle,
                         (int64_t)(uva__clock_ns() - p->loop->since_ns));
    p->loop->since_ns = 0;
}

/* ---- waiting ------------------------------------------------------------ */

void uva__observe_run_begin(struct uva__producer *p)
{
    const int64_t waited_ns = (int64_t)(uva__clock_ns() - p->loop->since_ns);
    struct uva__meter_times *times = p->source->meter->times;

    if (p->loop->waits == UVA__PRODUCER_STARVED)
        uva__counter_add(&times->starved, waited_ns);
    else if (p->loop->waits == UVA__PRODUCER_IDLE)
        uva__counter_add(&times->idle, waited_ns);
    p->loop->waits = UVA__PRODUCER_READY;
}

void uva__observe_run_end(struct uva__producer *p)
{
    const struct uva__producer_state *state = &p->loop->state;

    p->loop->since_ns = uva__clock_ns();
    if (state->phase >= UVA__PHASE_ENDED)
        return;
    if (uva__producer_state_wants(state) && state->ready == 0)
        p->loop->waits = UVA__PRODUCER_STARVED;
    else if (!uva__producer_state_wants(state) && state->ready > 0)
        p->loop->waits = UVA__PRODUCER_IDLE;
}
