/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_retry(): a stage of which the inlet is opened again, with another
 * stream, after it has failed.
 *
 * Happy path:  task -> extracted, and kept in a slot -> taken, and counted as
 *              passed on -> the inlet fails, and is released -> the batches
 *              that are kept are taken -> a delay -> the user's function gives
 *              another stream -> the inlet begins again -> the end.
 *
 * Failures:    the last attempt, or an attempt that is not tried again: its
 *              failure is the stream's. A stream that cannot go on for the
 *              stream before it: EBUSY, EINVAL.
 *
 *     an attempt is open --fails--> its batches are taken --> its inlet is
 *        ^                               released --> DELAY (waits)
 *        |                                               |
 *        '------------- again() gives a stream ----------'
 *     final: no attempt follows, and the failure is the stream's
 *
 * On cancel:   passed to the producer above at once; a delay ends. A cancel of
 *              the stream of an attempt is a failure of that attempt. A drain
 *              ends a delay, with the failure before it. */
#include <assert.h>
#include <errno.h>

#include "base/sum.h"
#include "stage/stage.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

enum { TIMES = 3, DELAY_MS = 100, DELAY_MAX_MS = 10000 };

struct retry {
    struct uva__stage stage;  /* first */
    struct uva_retry options; /* owns its ctx; with its defaults */
    int64_t next_delay_ms;
    bool device_data; /* the first stream waits for events of devices */
    struct uva__first_schema first;
    struct uva__label *from; /* counts: of the stream of a later attempt */
    int64_t ordinal;         /* of the next batch */
    int64_t passed, rows;    /* passed on so far */
    int32_t attempt;         /* number of streams that were asked for */
    bool final;              /* a failure now is the stream's */
    bool waits;              /* for the timer of the stage */
    struct uva__open_object object; /* tracked during a delay */
};

static struct retry *retry_of(struct uva__stage *stage)
{
    return uva__container_of(stage, struct retry, stage);
}

static struct retry *retry_at(struct uva__source *source)
{
    return retry_of(uva__stage_of(source));
}

static const struct uva_allocator *allocator_of(const struct retry *r)
{
    return &r->stage.source.rt->allocator;
}

static void retry_wake(struct retry *r)
{
    assert(!r->stage.source.stopped);
    uva__producer_wake(r->stage.source.producer);
}

/* ---- calls from the producers above ------------------------------------- */

static int retry_schema(struct uva__stage *stage, struct ArrowSchema *schema,
                        struct uva_error *error)
{
    struct retry *r = retry_of(stage);
    const int code = uva__first_schema_take(
        &r->first, &stage->source, &stage->inlet, r->attempt, schema, error);

    r->final = code == EINVAL;
    return code;
}

/* ---- another attempt ---------------------------------------------------- */

/* Whether `stream` can go on for the stream that has failed. */
static int attempt_check(const struct retry *r, struct uva_stream *stream,
                         struct uva_error *error)
{
    const char *fault = NULL;
    int code = EINVAL;

    if (stream->rt != r->stage.source.rt)
        fault = "is of another runtime";
    else if ((code = uva__stream_building(stream)) != 0)
        fault = "was started, or is part of another stream";
    else if (r->device_data && !stream->device_data)
        fault = "waits for no events of devices, as the first one does";
    if (fault == NULL)
        return 0;
    return uva_error_set(error, code != 0 ? code : EINVAL,
                         "retry: the stream of attempt %d %s", (int)r->attempt,
                         fault);
}

static void attempt_open(struct retry *r, struct uva_stream *stream)
{
    uva__atomic64_exchange(&stream->state, UVA__STREAM_GIVEN);
    r->stage.in.requested = 0;
    r->first.typed = true; /* the stream was built with a device type */
    uva__label_release(r->from);
    r->from = uva__label_acquire(stream->label);
    uva__inlet_reopen(&r->stage.inlet, stream);
    uva__stage_start(&r->stage.source);
}

/* Why the stream cannot be opened, which is a failure of the attempt: it could
 * not be built, or was cancelled. */
static int attempt_status(struct uva_stream *stream, struct uva_error *error)
{
    const struct uva__failure *why;
    int code = uva_stream_status(stream, error);

    if (code == 0 && uva__stage_make_cheap(stream, NULL) != 0)
        code = uva_stream_status(stream, error);
    if (code != 0)
        return code;
    why = uva__stream_cancelled(stream);
    return why != NULL ? uva__failure_get(why, error) : 0;
}

/* Takes the reference on `stream`. A stream that has failed before is no
 * misuse: its error is the failure of this attempt. */
static void attempt_begin(struct retry *r, struct uva_stream *stream)
{
    struct uva__failure *failure = &r->stage.inlet.failure;
    struct uva_error error = {0};
    int code = 0;

    if (stream->rt != NULL && stream->sticky.code == 0)
        code = attempt_check(r, stream, &error);
    r->final = code != 0;
    if (code == 0)
        code = attempt_status(stream, &error);
    if (code == 0) {
        attempt_open(r, stream);
        return;
    }
    uva__label_release(r->from); /* its text has its name */
    r->from = NULL;
    uva__failure_fini(failure, allocator_of(r));
    uva__failure_set(failure, allocator_of(r), code, &error, NULL);
    uva_stream_release(stream);
    retry_wake(r);
}

/* ---- the delay ---------------------------------------------------------- */

static void delay_end(struct retry *r)
{
    if (!r->waits)
        return;
    r->waits = false;
    uva__meter_block(r->stage.source.meter, UVA_WAITING_NONE);
    uva__timer_stop(r->stage.source.rt, &r->stage.timer);
    uva__loop_untrack(r->stage.source.rt, &r->object);
}

/* The abort of the stream stops this source, which ends the delay. */
static void delay_abort(struct uva__open_object *object)
{
    (void)object;
}

/* A drain has begun. The object must not be untracked at once. */
static void delay_drain(struct uva__open_object *object)
{
    struct retry *r = uva__container_of(object, struct retry, object);

    r->final = true;
    retry_wake(r);
}

static void delay_over(struct uva__timer *timer)
{
    struct retry *r = uva__container_of(timer, struct retry, stage.timer);
    struct uva_outcome failed = {
        .end = UVA_END_FAILED, .batches = r->passed, .rows = r->rows};
    struct uva_stream *stream;

    delay_end(r);
    if (!uva__rt_takes_streams(r->stage.source.rt)) {
        r->final = true;
        retry_wake(r);
        return;
    }
    r->attempt += r->attempt < INT32_MAX;
    failed.metadata = uva__failure_metadata(&r->stage.inlet.failure);
    (void)uva__failure_get(&r->stage.inlet.failure, &failed.error);
    stream = r->options.again(r->options.ctx, &failed, r->attempt, r->passed,
                              r->rows);
    r->final = stream == NULL;
    if (stream != NULL)
        attempt_begin(r, stream);
    else
        retry_wake(r);
}

static int64_t delay_next_ms(struct retry *r)
{
    const int64_t ms = r->next_delay_ms, most = r->options.delay_max_ms;

    r->next_delay_ms = ms > most / 2 ? most : ms * 2;
    return ms < most ? ms : most;
}

static void delay_begin(struct retry *r)
{
    r->waits = true;
    uva__meter_block(r->stage.source.meter, UVA_WAITING_TIME);
    uva__loop_track(r->stage.source.rt, &r->object);
    uva__timer_start(r->stage.source.rt, &r->stage.timer, delay_next_ms(r));
}

/* ---- as a source -------------------------------------------------------- */

static bool retry_may_go_on(const struct retry *r)
{
    const struct uva_retry *options = &r->options;

    return !r->final && (options->times < 0 || r->attempt < options->times) &&
           (options->resume || r->passed == 0) &&
           uva__rt_takes_streams(r->stage.source.rt);
}

/* A failure counts when the batches before it were passed on. */
static void retry_conclude(struct retry *r)
{
    const struct uva__inlet *inlet = &r->stage.inlet;

    if (inlet->failure.code == 0 || r->stage.source.ready > 0) {
        r->stage.source.ended = inlet->state == UVA__INLET_ENDED;
        return;
    }
    if (inlet->above != NULL) /* its release follows, and wakes this */
        return;
    if (r->waits && !r->final)
        return;
    if (!r->waits && retry_may_go_on(r)) {
        delay_begin(r);
        return;
    }
    delay_end(r);
    uva__failure_name(&r->stage.inlet.failure, allocator_of(r),
                      uva__label_whole(r->from));
    uva__inlet_conclude(&r->stage.inlet, &r->stage.source);
}

static void retry_pull(struct uva__source *source, int64_t demand)
{
    struct retry *r = retry_at(source);

    uva__intake_account(&r->stage.in, source);
    if (source->failure.code != 0)
        return;
    retry_conclude(r);
    uva__stage_request(&r->stage, demand, INT64_MAX);
}

static struct uva__task *retry_take(struct uva__source *source)
{
    struct retry *r = retry_at(source);
    struct uva__task *task = uva__stage_take(source);

    uva__meter_link(source->meter, r->ordinal,
                    r->from != NULL ? r->from : source->label,
                    task->info.ordinal);
    task->info.ordinal = r->ordinal++;
    r->passed++;
    r->rows = uva__sum(r->rows, task->array.array.length);
    return task;
}

static void retry_stop(struct uva__source *source)
{
    delay_end(retry_at(source));
    uva__stage_stop(source);
}

/* ---- life --------------------------------------------------------------- */

static void retry_init(struct uva__stage *stage,
                       const struct uva__stage_setup *setup)
{
    struct retry *r = retry_of(stage);

    if (r->options.times == 0)
        r->options.times = TIMES;
    if (r->options.delay_max_ms == 0)
        r->options.delay_max_ms = DELAY_MAX_MS;
    if (r->options.delay_ms == 0)
        r->options.delay_ms = DELAY_MS;
    r->next_delay_ms = r->options.delay_ms;
    r->first.who = "attempt";
    r->device_data = setup->stream->device_data;
    stage->timer.fire = delay_over;
    r->object.abort = delay_abort;
    r->object.drain = delay_drain;
}

static void retry_free(struct uva__stage *stage,
                       const struct uva_allocator *allocator)
{
    struct retry *r = retry_of(stage);

    (void)allocator;
    assert(!r->waits);
    uva_schema_release(&r->first.schema);
    uva__label_release(r->from);
}

static int retry_check(const struct uva__stage_setup *setup,
                       struct uva_error *error)
{
    const struct uva_retry *options = setup->options;

    return options->delay_max_ms == 0 ||
                   options->delay_ms <= options->delay_max_ms
               ? 0
               : uva_error_set(error, EINVAL,
                               "uva_retry: delay_ms must not be larger than "
                               "delay_max_ms");
}

int uva_stream_retry(struct uva_stream *stream, const struct uva_retry *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_retry, times, -1, INT32_MAX),
        UVA__LIMIT(uva_retry, delay_ms, 0, INT64_MAX),
        UVA__LIMIT(uva_retry, delay_max_ms, 0, INT64_MAX),
        {0}};
    static const struct uva__stage_kind kind = {
        .options = {UVA__OPTIONS(uva_retry), UVA__OPTIONS_CTX(uva_retry),
                    UVA__OPTIONS_NEED(uva_retry, again), .limits = limits},
        .size = sizeof(struct retry),
        .copy = offsetof(struct retry, options),
        .needs = UVA__STAGE_CHEAP,
        .check = retry_check,
        .init = retry_init,
        .source = {UVA__STAGE_RELAYS(retry_stop), .name = "retry",
                   .pull = retry_pull, .take = retry_take},
        .schema = retry_schema,
        .task = uva__stage_keep,
        .free = retry_free,
    };

    return uva__stage_add(stream, &kind, options);
}
