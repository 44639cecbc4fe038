/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a stage: reports trace events, counts, and reads a meter for
 * uva_stream_get_stats(). */
#include "observe/label.h"

/* ---- events ------------------------------------------------------------- */

void uva__point_fill(const struct uva__point *point,
                     struct uva_trace_event *event)
{
    event->stage_name = uva__atomic_ptr_load(&point->name);
    event->stage = point->stage;
    event->stream = uva__label_text(point->label);
    event->stream_id = point->label->id;
}

static void point_send(const struct uva__point *point,
                       struct uva_trace_event *event)
{
    const struct uva_trace *trace = &point->rt->trace;

    uva__point_fill(point, event);
    trace->event(trace->ctx, event);
}

static void point_send_span(const struct uva__point *point,
                            enum uva_trace_kind kind, const char *name,
                            int64_t ordinal, uint64_t since_ns, uint64_t now_ns)
{
    if (uva__point_traces(point))
        point_send(point, &(struct uva_trace_event){.kind = kind,
                                                    .name = name,
                                                    .ordinal = ordinal,
                                                    .at_ns = (int64_t)since_ns,
                                                    .end_ns = (int64_t)now_ns});
}

void uva__point_span_end(const struct uva__point *point, const char *name,
                         int64_t ordinal, uint64_t since_ns)
{
    if (since_ns != 0)
        point_send_span(point, UVA_TRACE_SPAN, name, ordinal, since_ns,
                        uva__clock_ns());
}

uint64_t uva__span_end_timed(struct uva__meter *meter, const char *name,
                             int64_t ordinal, uint64_t since_ns)
{
    const uint64_t now_ns = uva__clock_ns();
    const int64_t took_ns = (int64_t)(now_ns - since_ns);

    if (meter->times != NULL) {
        uva__counter_add_shared(&meter->times->busy, took_ns);
        uva__counter_raise_shared(&meter->times->busy_max, took_ns);
    }
    point_send_span(&meter->point, UVA_TRACE_SPAN, name, ordinal, since_ns,
                    now_ns);
    return now_ns;
}

void uva__meter_wait(const struct uva__meter *meter, const char *name,
                     int64_t ordinal, uint64_t since_ns)
{
    if (since_ns != 0)
        point_send_span(&meter->point, UVA_TRACE_WAIT, name, ordinal, since_ns,
                        uva__clock_ns());
}

/* An event of this moment; `from` may be NULL. */
static void point_report(const struct uva__point *point,
                         enum uva_trace_kind kind, const char *name,
                         int64_t ordinal, int64_t value,
                         const struct uva__label *from)
{
    const int64_t now_ns =
        uva__point_traces(point) ? (int64_t)uva__clock_ns() : 0;

    if (now_ns != 0)
        point_send(point, &(struct uva_trace_event){
                              .kind = kind,
                              .name = name,
                              .ordinal = ordinal,
                              .at_ns = now_ns,
                              .end_ns = now_ns,
                              .value = value,
                              .from_id = from != NULL ? from->id : 0});
}

const char *uva__instant_name(enum uva_trace_kind kind)
{
    static const char *const names[] = {
        [UVA_TRACE_SCHEMA] = "schema", [UVA_TRACE_REQUEST] = "request",
        [UVA_TRACE_BATCH] = "batch",   [UVA_TRACE_RESUME] = "resume",
        [UVA_TRACE_CANCEL] = "cancel", [UVA_TRACE_WAKEUP] = "wake-up",
        [UVA_TRACE_END] = "end",       [UVA_TRACE_EXTRACTED] = "extracted",
    };

    return names[kind];
}

void uva__point_instant(const struct uva__point *point,
                        enum uva_trace_kind kind, int64_t value)
{
    point_report(point, kind, uva__instant_name(kind), -1, value, NULL);
}

void uva__meter_link(const struct uva__meter *meter, int64_t ordinal,
                     const struct uva__label *from, int64_t before)
{
    point_report(&meter->point, UVA_TRACE_LINK, "from", ordinal, before, from);
}

/* ---- counting ----------------------------------------------------------- */

void uva__meter_trace_held(const struct uva__meter *meter, int64_t batches,
                           int64_t bytes)
{
    point_report(&meter->point, UVA_TRACE_COUNTER, "batches", -1, batches,
                 NULL);
    point_report(&meter->point, UVA_TRACE_COUNTER, "bytes", -1, bytes, NULL);
}

void uva__meter_end(struct uva__meter *meter)
{
    uva__counter_set(&meter->loop.queued, 0);
    uva__counter_set(&meter->loop.queued_bytes, 0);
    uva__small_counter_set(&meter->over, 1);
}

/* Once the job is submitted, it may run and free these. */
void uva__meter_submit(struct uva__meter *meter, enum uva_lane lane,
                       struct uva__job *job, uint64_t *submitted_ns)
{
    *submitted_ns = uva__span_begin(meter->point.rt);
    uva__small_counter_add_shared(&meter->shared.jobs_waiting, 1);
    uva__lane_submit_counted(&meter->point.rt->jobs, lane, job,
                             &meter->shared.wakeups);
}

void uva__meter_run_begin(struct uva__meter *meter, uint64_t submitted_ns)
{
    uva__small_counter_add_shared(&meter->shared.jobs_waiting, -1);
    uva__small_counter_add_shared(&meter->shared.jobs_running, 1);
    if (submitted_ns == 0)
        return;
    if (meter->times != NULL)
        uva__counter_add_shared(&meter->times->worker_wait,
                                (int64_t)(uva__clock_ns() - submitted_ns));
    uva__meter_wait(meter, "worker", -1, submitted_ns);
}

void uva__meter_note_wakeup(struct uva__meter *meter)
{
    uva__counter_add_shared(&meter->shared.wakeups, 1);
    uva__point_instant(&meter->point, UVA_TRACE_WAKEUP, 0);
}

/* ---- reading ------------------------------------------------------------ */

static int64_t counter_sum(const struct uva__counter *a,
                           const struct uva__counter *b)
{
    return (int64_t)((uint64_t)uva__counter_get(a) +
                     (uint64_t)uva__counter_get(b));
}

/* The extraction that runs a map is part of a later stage. */
static enum uva_waiting map_waits_for(const struct uva__meter *meter,
                                      const struct uva_stage_stats *stats)
{
    const struct uva__meter *behind = uva__atomic_ptr_load(&meter->next);

    if (stats->batches == uva__counter_get(&meter->source->loop.batches))
        return stats->requested > stats->batches ? UVA_WAITING_SOURCE
                                                 : UVA_WAITING_CONSUMER;
    for (; behind != NULL; behind = uva__atomic_ptr_load(&behind->next))
        if (behind->source == NULL)
            break;
    if (behind != NULL &&
        uva__small_counter_get(&behind->shared.jobs_running) == 0 &&
        uva__small_counter_get(&behind->shared.jobs_waiting) > 0)
        return UVA_WAITING_WORKER;
    return UVA_WAITING_NONE;
}

static enum uva_waiting meter_waits_for(const struct uva__meter *meter,
                                        const struct uva_stage_stats *stats)
{
    const struct uva__meter *counts =
        meter->source != NULL ? meter->source : meter;
    const int32_t blocked = uva__small_counter_get(&meter->loop.blocked);

    if (uva__small_counter_get(&counts->over) != 0)
        return UVA_WAITING_OVER;
    if (uva__small_counter_get(&meter->loop.inside) != 0 ||
        uva__small_counter_get(&meter->shared.jobs_running) > 0)
        return UVA_WAITING_NONE;
    if (meter->source != NULL)
        return map_waits_for(meter, stats);
    if (uva__small_counter_get(&meter->shared.jobs_waiting) > 0)
        return UVA_WAITING_WORKER;
    if (blocked != UVA_WAITING_NONE)
        return (enum uva_waiting)blocked;
    return stats->requested > stats->batches &&
                   uva__small_counter_get(&meter->loop.paused) == 0
               ? UVA_WAITING_SOURCE
               : UVA_WAITING_CONSUMER;
}

static void meter_read_times(const struct uva__meter_times *times,
                             struct uva_stage_stats *out)
{
    out->busy_ns = uva__counter_get(&times->busy);
    out->busy_max_ns = uva__counter_get(&times->busy_max);
    out->starved_ns = uva__counter_get(&times->starved);
    out->idle_ns = uva__counter_get(&times->idle);
    out->worker_wait_ns = uva__counter_get(&times->worker_wait);
}

/* Reads the numbers that a map shares with the other maps of its producer. */
static void meter_read_map(const struct uva__meter *meter,
                           struct uva_stage_stats *out)
{
    const struct uva__meter *first = uva__atomic_ptr_load(&meter->source->next);

    out->requested = uva__counter_get(&meter->source->loop.requested);
    out->batches = counter_sum(&first->loop.batches, &first->shared.batches);
}

void uva__meter_read(const struct uva__meter *meter,
                     struct uva_stage_stats *out)
{
    const struct uva__meter_loop *loop = &meter->loop;
    const struct uva__meter_shared *shared = &meter->shared;

    *out = (struct uva_stage_stats){
        .name = uva__atomic_ptr_load(&meter->point.name),
        .requested = uva__counter_get(&loop->requested),
        .batches = counter_sum(&loop->batches, &shared->batches),
        .rows = counter_sum(&loop->rows, &shared->rows),
        .bytes = uva__small_counter_get(&meter->sized) != 0
                     ? counter_sum(&loop->bytes, &shared->bytes)
                     : -1,
        .rows_expected = uva__counter_get(&shared->rows_expected),
        .bytes_expected = uva__counter_get(&shared->bytes_expected),
        .dropped = uva__counter_get(&loop->dropped),
        .queued = uva__counter_get(&loop->queued),
        .queued_bytes = uva__counter_get(&loop->queued_bytes),
        .queued_max = uva__counter_get(&loop->queued_max),
        .queued_bytes_max = uva__counter_get(&loop->queued_bytes_max),
        .wakeups = uva__counter_get(&shared->wakeups),
    };
    if (meter->source != NULL)
        meter_read_map(meter, out);
    if (meter->times != NULL)
        meter_read_times(meter->times, out);
    out->waiting = meter_waits_for(meter, out);
}
