/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_merge() and uva_stream_concat(): a source with an inlet for each
 * of several streams. The stream that the stage is added to is input 0.
 *
 * Happy path:  inputs are opened, as many at once as may run -> the first
 *              schema is passed on -> (request to an input, its task, which is
 *              extracted and queued at the input -> an input's turn: the
 *              producer below takes its oldest batch)* -> each inlet is
 *              released, and another input is opened -> the last one is over:
 *              the end. Inputs that hold batches wait for their turn in a
 *              queue, and so do inputs that want to request more: a batch costs
 *              as much whether there are two inputs or a thousand. concat opens
 *              inputs ahead, but requests only of one at a time, and needs that
 *              one alone.
 *
 * Casts:       with the option `cast`, input 0 is opened first. Its schema is
 *              the target of a map that each other input has, and these are
 *              opened then; never, if it does not come.
 *
 * Failures:    an input: the failure, with the input's name in front of its
 *              text, follows the queued batches, and the other inputs are
 *              cancelled; or, with keep_going, it follows the ends
 *              of the other inputs. A schema that differs: its input
 *              fails.
 *
 * On cancel:   passed to all inputs at once; queued batches are released. A
 *              cancel of an input's own stream is a failure of that input.
 *
 *     input    not opened --> inlet runs --> inlet_over, with batches --> empty
 *                  '--- skipped: a quit, or its stream was cancelled ------^
 */
#include <errno.h>

#include "base/unreachable.h"
#include "stage/cast.h"
#include "stage/stage.h"
#include "stream/maps.h"
#include "stream/options.h"
#include "stream/source_kind.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* The default window is divided among the streams, into this many parts at
 * most: each has at least 8 batches, and 1 MiB. */
enum { PARTS_MAX = 8, PARTS_MAX_BYTES = 32 };

struct merge;

struct input {
    struct uva__inlet inlet;        /* first */
    struct merge *merge;            /* borrows; counted while it runs */
    const struct uva__label *label; /* borrows: the merge's stream counts it */
    const char *name;               /* borrows: of the input, from its label; or
                                       NULL */
    struct uva__share share;        /* of the batches, in the input's account */
    struct uva__intake in;          /* with the window of each input */
    struct uva__kept kept;          /* batches, for the producer below */
    struct uva__link turn; /* in merge->turns, while it holds batches */
    struct uva__link want; /* in merge->wants, while `in_wants` */
    bool in_wants;         /* there is room to request more */
    bool inlet_over;       /* no more batches come from it; some may be held */
};

struct merge {
    struct uva__source source; /* first; counted by inputs that run, too */
    bool ordered;              /* one input after the other: concat */
    bool keep_going;           /* a failure waits for the other inputs */
    struct uva__cast_target
        *target;    /* counts: the schema of input 0; NULL: there is no cast */
    size_t at_once; /* inputs that run at one time */
    struct uva__first_schema first;
    struct uva__list turns;      /* inputs that hold batches */
    struct uva__list wants;      /* inputs that have room; not in concat */
    int64_t bytes;               /* in the batches of all inputs */
    size_t opened;               /* number of inputs that were opened, or
                                    skipped: the index of the next one */
    size_t over;                 /* number of inputs with inlet_over */
    size_t current;              /* ordered: the input to take from */
    bool demanded;               /* a batch has been requested */
    bool quit;                   /* all inputs were cancelled */
    int64_t ordinal;             /* of the next batch */
    struct uva__failure failure; /* the first of an input; code 0: no failure */
    size_t count;                /* of inputs */
    struct input inputs[];
};

static struct merge *merge_at(struct uva__source *source)
{
    return uva__container_of(source, struct merge, source);
}

static struct input *input_at(struct uva__inlet *inlet)
{
    return uva__container_of(inlet, struct input, inlet);
}

static const struct uva_allocator *allocator_of(const struct merge *m)
{
    return &m->source.rt->allocator;
}

/* ---- batches ------------------------------------------------------------ */

/* How many batches may be requested of an input: while the budget of the
 * runtime is full, one if it holds no batch. */
static int64_t input_room(const struct input *input, int64_t demand)
{
    const struct uva__intake *in = &input->in;
    const int64_t used = in->held + in->requested;
    int64_t room;

    if (!uva__inlet_is_open(&input->inlet))
        return 0;
    if (!uva__share_is_free(&input->share))
        return used == 0;
    room = uva__window_room(&in->window, demand, used);
    return room == 0 ? 0 : uva__intake_fit(in, room, in->requested, INT64_MAX);
}

static void input_want(struct input *input)
{
    struct merge *m = input->merge;

    if (m->ordered || input->in_wants)
        return;
    input->in_wants = true;
    uva__list_push(&m->wants, &input->want);
}

/* Takes the oldest batch of the input that has its turn, which then goes after
 * the other inputs; `from` is that input. NULL: no input holds any. */
static struct uva__task *turn_pop(struct merge *m, struct input **from)
{
    struct uva__link *turn = uva__list_pop(&m->turns);
    struct uva__task *task;
    struct input *input;

    if (turn == NULL)
        return NULL;
    *from = input = uva__container_of(turn, struct input, turn);
    task = uva__kept_pop(&input->kept);
    if (input->kept.count > 0)
        uva__list_push(&m->turns, turn);
    uva__intake_leave(&input->in, task->info.bytes);
    uva__share_hold(&input->share, input->in.held, input->in.bytes);
    m->bytes -= task->info.bytes;
    m->source.ready--;
    if (input_room(input, 1) > 0)
        input_want(input);
    return task;
}

/* ---- life --------------------------------------------------------------- */

static void merge_free(struct uva__source *source,
                       const struct uva_allocator *allocator)
{
    struct merge *m = merge_at(source);

    for (size_t i = 0; i < m->count; i++) {
        uva__share_close(&m->inputs[i].share);
        uva__inlet_fini(&m->inputs[i].inlet);
    }
    uva__failure_fini(&m->failure, allocator);
    uva_schema_release(&m->first.schema);
    uva__cast_target_release(m->target);
}

/* Has its failure be that of the merge, with its name in the text. */
static void input_fail(struct input *input)
{
    struct merge *m = input->merge;

    uva__failure_move(&input->inlet.failure, &m->failure, allocator_of(m));
    uva__failure_name(&m->failure, allocator_of(m), input->name);
}

static void input_over(struct input *input)
{
    struct merge *m = input->merge;

    input->inlet_over = true;
    m->over++;
    if (!m->ordered && m->failure.code == 0)
        input_fail(input);
}

/* Gives up an input that was not opened. */
static void input_skip(struct input *input)
{
    uva__inlet_close(&input->inlet);
    input_over(input);
}

/* Cancels all inputs, once; no further input is opened. */
static void inputs_quit(struct merge *m)
{
    if (m->quit)
        return;
    m->quit = true;
    for (size_t i = 0; i < m->opened; i++)
        uva__inlet_quit(&m->inputs[i].inlet);
    while (m->opened < m->count)
        input_skip(&m->inputs[m->opened++]);
}

/* ---- calls from the producers above ------------------------------------- */

static int input_schema(struct uva__inlet *inlet, struct ArrowSchema *schema,
                        struct uva_error *error)
{
    struct input *input = input_at(inlet);
    struct merge *m = input->merge;
    int code = 0;

    if (m->target != NULL && !m->source.schema_known)
        code = uva__cast_target_set(m->target, schema);
    if (code == 0)
        code = uva__first_schema_take(&m->first, &m->source, inlet,
                                      input - m->inputs, schema, error);
    if (code == 0)
        input_want(input);
    return code;
}

static void input_task(struct uva__inlet *inlet, struct ArrowAsyncTask *task,
                       const char *metadata)
{
    struct input *input = input_at(inlet);
    struct merge *m = input->merge;
    struct uva__task *slot = uva__kept_take_in(inlet, m->source.producer, task,
                                               metadata, UVA__KEPT_BATCH);

    uva__intake_come(&input->in);
    if (slot == NULL)
        return;
    if (input->kept.count == 0)
        uva__list_push(&m->turns, &input->turn);
    uva__kept_push(&input->kept, slot);
    uva__intake_put(&input->in, slot->info.bytes);
    uva__share_hold(&input->share, input->in.held, input->in.bytes);
    m->bytes += slot->info.bytes;
    m->source.ready++;
}

static void input_news(struct uva__inlet *inlet)
{
    const struct uva__source *source = &input_at(inlet)->merge->source;

    if (!source->stopped)
        uva__producer_wake(source->producer);
}

static void input_released(struct uva__inlet *inlet)
{
    struct input *input = input_at(inlet);

    input_over(input);
    uva__source_release(&input->merge->source);
}

static const struct uva__inlet_ops inlet_ops = {input_schema, input_task,
                                                input_news, input_released};

/* ---- opening inputs ----------------------------------------------------- */

/* Whether the input may have to give batches before others can. */
static bool input_is_needed(const struct input *input)
{
    const struct merge *m = input->merge;

    return !m->ordered || input == &m->inputs[m->current];
}

static void input_open(struct input *input)
{
    struct merge *m = input->merge;

    if (uva__inlet_is_cancelled(&input->inlet)) {
        input_skip(input);
        return;
    }
    uva__source_acquire(&m->source); /* the inlet's */
    uva__inlet_begin(&input->inlet, m->source.producer,
                     !input_is_needed(input));
}

/* concat opens inputs ahead only once the schema is known, which is therefore
 * the first input's. */
static bool merge_may_open(const struct merge *m)
{
    if (m->opened == m->count || (m->failure.code != 0 && !m->keep_going))
        return false;
    if (m->target != NULL && m->opened > 0 && !m->source.schema_known)
        return false;
    if (!m->ordered)
        return m->opened - m->over < m->at_once;
    return m->opened <= m->current ||
           (m->source.schema_known && m->opened - m->current < m->at_once);
}

/* ---- as a source -------------------------------------------------------- */

static void merge_need(struct uva__source *source)
{
    const struct merge *m = merge_at(source);

    for (size_t i = 0; i < m->opened; i++)
        if (input_is_needed(&m->inputs[i]))
            uva__inlet_need(&m->inputs[i].inlet);
}

/* concat: goes on to the next input once one was passed on to its end. A
 * failure counts when its input's turn has come. */
static void merge_advance(struct merge *m)
{
    struct input *input;

    while (m->ordered && m->current < m->opened) {
        input = &m->inputs[m->current];
        if (!input->inlet_over)
            return;
        input_fail(input);
        if (m->failure.code != 0 || input->in.held > 0)
            return;
        m->current++;
        if (m->current < m->opened && !m->source.producer->loop->ahead)
            uva__inlet_need(&m->inputs[m->current].inlet);
    }
}

static void merge_conclude(struct merge *m)
{
    struct uva__source *source = &m->source;
    const bool all_over = (m->ordered ? m->current : m->over) == m->count;

    if (source->failure.code != 0 || source->ended)
        return;
    if (m->failure.code == 0) {
        source->ended = all_over;
    } else if (all_over || !m->keep_going) {
        uva__failure_move(&m->failure, &source->failure, allocator_of(m));
        inputs_quit(m);
    }
}

static void input_request(struct input *input, int64_t demand)
{
    uva__inlet_request_for(&input->inlet, &input->in,
                           input_room(input, demand));
}

/* Requests of the inputs that have room. Without demand below, an input with a
 * window of one batch has room only for a later demand: it keeps its place in
 * the list, and the inputs after it, too. */
static void merge_request(struct merge *m, int64_t demand)
{
    struct uva__link *want;
    struct input *input;

    m->demanded = m->demanded || demand > 0;
    if (!m->demanded)
        return;
    if (m->ordered && m->current < m->opened)
        input_request(&m->inputs[m->current], demand);
    while ((want = m->wants.head) != NULL) {
        input = uva__container_of(want, struct input, want);
        if (input_room(input, demand) == 0 && input_room(input, 1) != 0)
            return;
        (void)uva__list_pop(&m->wants);
        input->in_wants = false;
        input_request(input, demand);
    }
}

/* Whether input 0 is over, and has left no schema to cast the others to. */
static bool merge_lacks_target(const struct merge *m)
{
    return m->target != NULL && !m->source.schema_known &&
           m->inputs[0].inlet_over;
}

static void merge_pull(struct uva__source *source, int64_t demand)
{
    struct merge *m = merge_at(source);

    merge_advance(m);
    if (merge_lacks_target(m))
        inputs_quit(m);
    while (merge_may_open(m)) {
        input_open(&m->inputs[m->opened++]);
        merge_advance(m); /* its stream may have been cancelled */
    }
    merge_conclude(m);
    uva__meter_hold(source->meter, source->ready, m->bytes);
    merge_request(m, demand);
}

static struct uva__task *merge_take(struct uva__source *source)
{
    struct merge *m = merge_at(source);
    struct input *from;
    struct uva__task *task = turn_pop(m, &from);

    uva__meter_link(source->meter, m->ordinal, from->label, task->info.ordinal);
    task->info.ordinal = m->ordinal++;
    return task;
}

/* Among several inputs, the first running one stands for all; NULL: there is
 * none. */
static const struct input *merge_awaited(const struct uva__source *source)
{
    const struct merge *m = uva__container_of(source, struct merge, source);
    size_t i = 0;

    while (i < m->opened && m->inputs[i].inlet_over)
        i++;
    return i < m->opened ? &m->inputs[i] : NULL;
}

static const struct uva__source *merge_above(const struct uva__source *source)
{
    const struct input *input = merge_awaited(source);

    return input != NULL ? uva__inlet_source(&input->inlet) : NULL;
}

static const char *merge_part(const struct uva__source *source)
{
    const struct input *input = merge_awaited(source);

    return input != NULL ? input->name : NULL;
}

static void merge_stop(struct uva__source *source)
{
    struct merge *m = merge_at(source);
    struct uva__task *task;
    struct input *from;

    inputs_quit(m);
    for (size_t i = 0; i < m->count; i++)
        uva__inlet_await(&m->inputs[i].inlet, source);
    while ((task = turn_pop(m, &from)) != NULL)
        uva__producer_drop_task(source->producer, task);
}

/* Possibly without a start: then no input was opened. */
static void merge_leave(struct uva__source *source)
{
    struct merge *m = merge_at(source);

    inputs_quit(m);
    uva__source_release(source);
}

/* ---- making one --------------------------------------------------------- */

static const struct uva__source_ops merge_ops = {
    .name = "merge",
    .pull = merge_pull,
    .take = merge_take,
    .stop = merge_stop,
    .leave = merge_leave,
    .free = merge_free,
    .need = merge_need,
    .above = merge_above,
    .part = merge_part,
};

/* The arguments of merge_make(). */
struct setup {
    const char *name;                 /* static */
    bool ordered;                     /* concat */
    struct uva_stream *const *others; /* takes their references ... */
    size_t count;
    bool *taken; /* ... and notes that here */
    struct uva__window window;
    size_t at_once;
    bool keep_going;
    struct uva__cast_target *target; /* borrows; NULL: no cast */
};

static void input_init(struct input *input, struct merge *m,
                       const struct uva__window *window,
                       struct uva__producer *above, struct uva_stream *stream)
{
    uva__inlet_init(&input->inlet, &inlet_ops, above);
    input->inlet.stream = stream;
    input->merge = m;
    uva__intake_init(&input->in, window);
    uva__share_join(&input->share, &above->source->share);
    input->label = above->source->label;
    input->name = uva__label_whole(input->label);
    m->source.sized =
        m->source.sized && above->source->sized && above->maps == NULL;
    m->source.uses_stream =
        m->source.uses_stream || uva__source_uses_stream(above->source);
}

static struct uva__source *merge_make(struct uva__producer *above,
                                      const void *given)
{
    const struct setup *setup = given;
    struct uva_stream *const *others = setup->others;
    const size_t count = setup->count + 1;
    struct uva__source *source =
        uva__source_new(&merge_ops, above->rt,
                        sizeof(struct merge) + count * sizeof(struct input));
    struct merge *m;

    if (source == NULL)
        return NULL;
    m = merge_at(source);
    m->source.name = setup->name;
    m->source.label = uva__label_acquire(above->source->label);
    uva__share_join(&m->source.share, &above->source->share);
    m->first.who = "input";
    m->ordered = setup->ordered;
    m->keep_going = setup->keep_going;
    m->target = uva__cast_target_acquire(setup->target);
    m->at_once = setup->at_once;
    m->count = count;
    m->source.device_type = above->abi.device_type;
    m->source.sized = true; /* unless one input is not */
    input_init(&m->inputs[0], m, &setup->window, above, NULL);
    for (size_t i = 0; i < setup->count; i++)
        input_init(&m->inputs[i + 1], m, &setup->window, others[i]->tail,
                   others[i]);
    *setup->taken = true;
    return &m->source;
}

static int other_check(struct uva_stream *stream, const struct setup *setup,
                       size_t i)
{
    const char *name = setup->name;
    struct uva_stream *other = setup->others[i];
    struct uva_error error = {0};
    int code;

    if (other == NULL)
        return uva__stream_fail(stream, EINVAL, "%s: others[%zu] is NULL", name,
                                i);
    code = uva_stream_status(other, &error);
    if (code != 0)
        return uva__stream_fail(stream, code, "%s: others[%zu]: %s", name, i,
                                error.message);
    if (other->rt != stream->rt || other == stream)
        return uva__stream_fail(stream, EINVAL,
                                "%s: others[%zu] is %s; streams of one runtime "
                                "are needed, each of them once",
                                name, i,
                                other == stream ? "the stream itself"
                                                : "of another runtime");
    code = uva__stream_building(other);
    return code == 0 ? 0
                     : uva__stream_fail(stream, code,
                                        "%s: others[%zu] was started, or is "
                                        "part of another stream",
                                        name, i);
}

/* Has the stream cast its batches, on workers. */
static int other_cast(struct uva_stream *stream, const struct setup *setup,
                      size_t i)
{
    struct uva_map map;
    int code = uva__cast_map(setup->target, &map);

    if (code == 0)
        code = uva__maps_add(setup->others[i]->tail, &map);
    return code == 0 ? 0
                     : uva__stream_fail(stream, code, "no memory for a cast");
}

/* Marks the stream as given, so that it cannot be used otherwise from now on.
 */
static int other_take(struct uva_stream *stream, const struct setup *setup,
                      size_t i)
{
    struct uva_stream *other = setup->others[i];
    struct uva_error error = {0};
    int code = other_check(stream, setup, i);

    if (code == 0 && setup->target != NULL)
        code = other_cast(stream, setup, i);
    if (code != 0)
        return code;
    code = uva__stage_make_cheap(other, &setup->window);
    if (code != 0) {
        (void)uva_stream_status(other, &error);
        return uva__stream_fail(stream, code, "%s", error.message);
    }
    stream->device_data = stream->device_data && other->device_data;
    uva__atomic64_exchange(&other->state, UVA__STREAM_GIVEN);
    return 0;
}

/* Adds the stage, unless `code` is not 0. Takes the references on `others` in
 * any case. */
static int merge_add(struct uva_stream *stream, const struct setup *given,
                     int code)
{
    bool taken = false;
    struct setup setup = *given;
    size_t i;

    setup.taken = &taken;
    if (code == 0 && setup.others == NULL && setup.count > 0)
        code =
            uva__stream_fail(stream, EINVAL, "%s: others is NULL, count is %zu",
                             setup.name, setup.count);
    if (code == 0)
        code = uva__stage_make_cheap(stream, &setup.window);
    for (i = 0; code == 0 && i < setup.count; i++)
        code = other_take(stream, &setup, i);
    if (code == 0)
        code = uva__stream_wrap(stream, merge_make, &setup);
    for (i = setup.count; code == 0 && i-- > 0;) /* the last one is first */
        uva__label_join(stream->tail->source->meter, setup.others[i]->label);
    if (code == 0)
        uva__label_part(stream->label, stream->tail->source->meter);
    for (i = 0; !taken && setup.others != NULL && i < setup.count; i++)
        uva_stream_release(setup.others[i]);
    return code;
}

/* Divides the defaults of a window among the streams: a thousand times 32 MiB
 * would be too much, and batches that wait in long queues leave the processor's
 * caches. */
static void merge_divide_window(const struct uva_window *given, size_t streams,
                                struct uva__window *out)
{
    struct uva_window share = *given;

    if (streams == 1)
        return;
    if (given->batches == 0)
        share.batches = streams < PARTS_MAX ? out->batches / (int32_t)streams
                                            : out->batches / PARTS_MAX;
    if (given->bytes == 0)
        share.bytes = streams < PARTS_MAX_BYTES ? out->bytes / (int64_t)streams
                                                : out->bytes / PARTS_MAX_BYTES;
    if (uva__window_complete(&share, out) != 0)
        UVA__UNREACHABLE("it was checked");
}

static const struct uva__option_limit merge_limits[] = {
    UVA__LIMIT(uva_merge, open_at_once, 0, INT32_MAX), {0}};

static const struct uva__options_kind merge_kind = {
    UVA__OPTIONS(uva_merge), UVA__OPTIONS_WINDOW(uva_merge),
    .limits = merge_limits};

/* Adds the stage, with a target for its casts, if they are wanted. */
static int merge_add_casting(struct uva_stream *stream, struct setup *setup,
                             bool cast, int code)
{
    if (code == 0 && cast) {
        setup->target = uva__cast_target_new(stream->rt);
        if (setup->target == NULL)
            code = uva__stream_fail(stream, ENOMEM, "no memory for a cast");
    }
    code = merge_add(stream, setup, code);
    uva__cast_target_release(setup->target);
    return code;
}

int uva_stream_merge(struct uva_stream *stream,
                     struct uva_stream *const *others, size_t count,
                     const struct uva_merge *options)
{
    struct setup setup = {.name = "merge", .others = others, .count = count};
    int code = uva__options_accept(&merge_kind, stream, options, &setup.window);

    options = uva__options_or_zeroes(options);
    if (code == 0)
        merge_divide_window(&options->window, count + 1, &setup.window);
    setup.keep_going = options->keep_going;
    setup.at_once =
        options->open_at_once > 0 ? (size_t)options->open_at_once : SIZE_MAX;
    return merge_add_casting(stream, &setup, options->cast, code);
}

/* Options that a merge has, but not a concatenation. */
static int concat_check(struct uva_stream *stream,
                        const struct uva_merge *options)
{
    const struct uva_window *window = &options->window;

    if (options->keep_going)
        return uva__stream_fail(stream, EINVAL,
                                "concat: keep_going is for merges");
    if (window->batches != 0 || window->bytes != 0)
        return uva__stream_fail(stream, EINVAL, "concat: window is for merges");
    return 0;
}

int uva_stream_concat(struct uva_stream *stream,
                      struct uva_stream *const *others, size_t count,
                      const struct uva_merge *options)
{
    struct setup setup = {
        .name = "concat", .ordered = true, .others = others, .count = count};
    struct uva__window window;
    int code = uva__options_accept(&merge_kind, stream, options, &window);

    options = uva__options_or_zeroes(options);
    if (code == 0)
        code = concat_check(stream, options);
    if (uva__window_follow(&(struct uva_window){0}, &setup.window) != 0)
        UVA__UNREACHABLE("the default window is valid");
    setup.at_once =
        options->open_at_once > 0 ? (size_t)options->open_at_once : 1;
    return merge_add_casting(stream, &setup, options->cast, code);
}
