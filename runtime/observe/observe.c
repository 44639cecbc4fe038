/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the steps of a producer: see observe/observe.h. Inspectors are called
 * by the dispatcher alone, and so never inside a call of the handler. */
#include "observe/observe.h"

#include <errno.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stream/stream_impl.h"

/* ---- life --------------------------------------------------------------- */

int uva__observe_add(struct uva__producer *p, const struct uva_inspect *options,
                     struct uva_stream *stream)
{
    struct uva__inspector *i = uva__memory_new(&p->rt->allocator, sizeof(*i));
    struct uva__inspector **end = &p->loop->inspectors;

    if (i == NULL) {
        if (options->free_ctx != NULL)
            options->free_ctx(options->ctx);
        return ENOMEM;
    }
    i->options = *options;
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
        if (p->source->label->shared) {
            i->stream = NULL;
            continue;
        }
        uva__wakeup_acquire(&i->stream->wakeup);
        i->held = true;
    }
}

/* No event follows. */
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

    inspectors_let_go(p);
    p->loop->inspectors = NULL;
    for (; i != NULL; i = next) {
        next = i->next;
        if (i->options.free_ctx != NULL)
            i->options.free_ctx(i->options.ctx);
        uva__memory_free(&p->rt->allocator, i, sizeof(*i));
    }
}

/* ---- inspectors --------------------------------------------------------- */

static void inspector_call(struct uva__inspector *i, enum uva_event_kind kind,
                           int code, int64_t count)
{
    const struct uva_event event = {
        .kind = kind,
        .code = code,
        .count = count,
        .time_ns = (int64_t)uva__clock_ns(),
        .stream = i->stream,
    };

    if (i->ended)
        return;
    i->ended = kind == UVA_EVENT_END;
    i->options.event(i->options.ctx, &event);
}

/* Stages above a limit are cancelled when the limit is reached. */
static void inspectors_end(struct uva__producer *p, int code)
{
    const bool limited = code == 0 && p->loop->state.left == 0;

    for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
         i = i->next) {
        if (limited && i->above_limit && !i->ended) {
            inspector_call(i, UVA_EVENT_CANCEL, ECANCELED, 1);
            inspector_call(i, UVA_EVENT_END, ECANCELED, 1);
        } else {
            inspector_call(i, UVA_EVENT_END, code, 1);
        }
    }
}

/* ---- steps -------------------------------------------------------------- */

/* The reports of a step: its name in the log, and whether a number follows; its
 * event in the trace; its event for inspectors, with a code. */
static const struct {
    const char *log;
    bool numbered;
    const char *trace; /* NULL: it has no event */
    enum uva_event_kind kind;
    int code;
} steps[] = {
    [UVA__MOVE_OFFER_SCHEMA] = {"on_schema", .kind = UVA_EVENT_SCHEMA},
    [UVA__MOVE_OFFER_TASK] = {"on_next_task", true, .kind = UVA_EVENT_BATCH},
    [UVA__MOVE_OFFER_END] = {"on_next_task, the end", .kind = UVA_EVENT_END},
    [UVA__MOVE_OFFER_ERROR] = {"on_error", .kind = UVA_EVENT_END},
    [UVA__MOVE_RELEASE] = {"release", .kind = UVA_EVENT_END,
                           .code = ECANCELED}, /* unless it has ended */
    [UVA__STEP_REQUEST] = {"request", true, "request", UVA_EVENT_REQUEST, 0},
    [UVA__STEP_CANCEL] = {"cancel", false, "cancel", UVA_EVENT_CANCEL,
                          ECANCELED},
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

static void step_inspect(struct uva__producer *p, int step, int64_t n)
{
    const int64_t count = step == UVA__STEP_REQUEST ? n : 1;
    int code = steps[step].code;

    if (step == UVA__MOVE_OFFER_ERROR)
        code = uva__producer_failure(p)->code;
    else if (step == UVA__MOVE_RELEASE && p->loop->refusal != 0)
        code = p->loop->refusal;
    if (steps[step].kind == UVA_EVENT_END)
        inspectors_end(p, code);
    else if (count != 0)
        for (struct uva__inspector *i = p->loop->inspectors; i != NULL;
             i = i->next)
            inspector_call(i, steps[step].kind, code, count);
    if (step == UVA__MOVE_RELEASE)
        inspectors_let_go(p);
}

void uva__observe_step(struct uva__producer *p, int step, int64_t n)
{
    if (p->observed & UVA__OBSERVED_LOG)
        step_log(p, step, n);
    if (steps[step].trace != NULL)
        uva__point_instant(&p->source->meter->point, steps[step].trace, n);
    if (p->observed & UVA__OBSERVED_INSPECT)
        step_inspect(p, step, n);
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
    uva__observe_step(p, UVA__MOVE_OFFER_TASK, uva__producer_offered(p) - 1);
    p->loop->ordinal = task->info.ordinal;
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
