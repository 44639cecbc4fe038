/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each call that can be made, and a table from which a byte
 * chooses. Valid calls are more frequent than invalid ones, or few scripts
 * would get far. */
#include <errno.h>
#include <string.h>

#include "fuzz/script.h"
#include "support/native.h"
#include "uvarrow/arrow.h"

/* A task that it has offered. */
struct script_item {
    struct script_producer *producer; /* borrows */
    int64_t ordinal;
    int kind; /* an enum script_kind */
};

enum script_kind {
    SCRIPT_SOUND,        /* gives a batch */
    SCRIPT_FAILING,      /* returns an error, and leaves garbage in `out` */
    SCRIPT_EMPTY,        /* returns 0 without a result */
    SCRIPT_CROOKED,      /* gives an array that does not fit the schema */
    SCRIPT_OTHER_DEVICE, /* gives an array on another device */
    SCRIPT_KINDS
};

/* ---- calls made to it --------------------------------------------------- */

/* Returns whether it may make calls itself. */
static bool frame_enter(struct script_producer *p)
{
    const bool plays = p->host.enter(p->host.ctx);

    atomic_fetch_add(&p->frames, 1);
    return plays;
}

/* `outlives`: the call may come after the release. */
static bool frame_begin_late(struct script_producer *p, bool outlives)
{
    const bool plays = frame_enter(p);

    FUZZ_RULE((!p->gone || outlives) && !p->freed);
    return plays;
}

static bool frame_begin(struct script_producer *p)
{
    return frame_begin_late(p, false);
}

/* After its last callback, no member of its object may be used. */
static void producer_rest(struct script_producer *p)
{
    p->gone = p->released;
    if (p->ended) {
        free(p->object);
        p->object = NULL;
    }
}

/* Calls that play come one after the other. Others overlap with these, and
 * leave it to the next step to find that they are over. */
static void frame_end(struct script_producer *p, bool plays)
{
    if (atomic_fetch_sub(&p->frames, 1) == 1 && plays && p->calls == 0)
        producer_rest(p);
    p->host.leave(p->host.ctx);
}

static void producer_play(struct script_producer *p, int steps)
{
    while (steps-- > 0 && script_producer_step(p))
        ;
}

/* Returns the number of steps and resets it, so they are made once. */
static int producer_use(int *steps)
{
    const int n = *steps;

    *steps = 0;
    return n;
}

static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct script_producer *p = self->private_data;
    const bool plays = frame_begin(p);

    fuzz_trace("producer", "is asked for", n);
    FUZZ_RULE(self == p->object);
    FUZZ_RULE(n > 0);                                          /* AP-08 */
    FUZZ_RULE(!plays || !p->ended);                            /* AP-24 */
    FUZZ_RULE(!plays || p->calls == 0 || ++p->requested == 1); /* */
    p->open += n;
    FUZZ_RULE(p->open <= p->window + p->unrequested); /* see task_count() */
    if (plays)
        producer_play(p, producer_use(&p->on_request));
    frame_end(p, plays);
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    struct script_producer *p = self->private_data;
    const bool plays = frame_begin(p);

    FUZZ_RULE(self == p->object);
    fuzz_trace("producer", "is cancelled", p->cancels);
    FUZZ_RULE(atomic_fetch_add(&p->cancels, 1) == 0); /* AP-11 */
    FUZZ_RULE(!plays || !p->ended);                   /* AP-24 */
    if (plays)
        producer_play(p, producer_use(&p->on_cancel));
    frame_end(p, plays);
}

static int producer_start(void *ctx,
                          struct ArrowAsyncDeviceStreamHandler *handler,
                          struct uva_error *error)
{
    struct script_producer *p = ctx;
    const bool plays = frame_begin(p);

    FUZZ_RULE(++p->starts == 1);
    p->handler = handler;
    p->release = handler->release;
    if (plays)
        producer_play(p, p->steps_in_start);
    if (p->start_code != 0) {
        (void)uva_error_set(error, p->start_code, "the script says no");
        if (!p->touched) /* else the source still owns it (G-55) */
            p->released = p->ended = true;
    }
    frame_end(p, plays);
    return p->start_code;
}

static void producer_free(void *ctx)
{
    struct script_producer *p = ctx;

    (void)p->host.enter(p->host.ctx);
    fuzz_trace("producer", "is freed", p->frames);
    FUZZ_RULE(!p->freed && p->frames == 0);
    p->freed = true;
    p->host.leave(p->host.ctx);
}

struct uva_async_source script_producer_source(struct script_producer *p)
{
    return (struct uva_async_source){
        .start = producer_start, .free_ctx = producer_free, .ctx = p};
}

/* ---- calls it makes ----------------------------------------------------- */

/* Begins a call of the handler. Returns a value to restore afterwards. */
static int call_begin(struct script_producer *p)
{
    const int requested = p->requested;

    FUZZ_RULE(!p->gone);
    p->touched = true;
    p->calls++;
    p->requested = 0;
    return requested;
}

static void call_end(struct script_producer *p, int requested)
{
    p->requested = requested;
    if (--p->calls == 0 && atomic_load(&p->frames) == 0)
        producer_rest(p);
}

/* Gives a block of one pair, an invalid one, or NULL. */
static const char *script_metadata(struct script_producer *p)
{
    static const char sound[] =
        NATIVE("\1") NATIVE("\3") "key" NATIVE("\5") "value";
    static const char negative[] = NATIVE("\1") "\377\377\377\377";
    static const char huge[] =
        NATIVE("\1") NATIVE_INT32("\377", "\377", "\377", "\177");
    static const char empty[] = "\0\0\0\0";
    const char *const blocks[] = {NULL, sound, negative, huge, empty};

    return blocks[fuzz_below(&p->in, 5)];
}

static void step_schema(struct script_producer *p)
{
    struct ArrowSchema schema;
    const int requested = call_begin(p);
    int code;

    fake_source_schema(&p->data, &schema);
    p->handler->producer = p->object;
    code = p->handler->on_schema(p->handler, &schema);
    FUZZ_RULE(schema.release == NULL); /* the handler has moved it */
    p->schema_taken = p->schema_taken || code == 0;
    call_end(p, requested);
}

/* Passes an invalid schema, or one from an invalid producer. */
static void step_bad_schema(struct script_producer *p)
{
    struct ArrowSchema schema;
    struct ArrowSchema *given = &schema;
    const int way = fuzz_below(&p->in, 6), requested = call_begin(p);

    fake_source_schema(&p->data, &schema);
    p->handler->producer = way == 0 ? NULL : p->object;
    if (way == 1 && p->object != NULL)
        p->object->additional_metadata = script_metadata(p);
    if (way == 2 && p->object != NULL)
        p->object->device_type = fuzz_below(&p->in, 20);
    if (way == 3)
        schema.n_children = fuzz_strange(&p->in) | INT64_MIN;
    if (way == 4)
        schema.format = NULL;
    if (way == 5)
        given = NULL;
    if (p->handler->on_schema(p->handler, given) == 0)
        p->schema_taken = true;
    if (way == 3 || way == 4)
        FUZZ_RULE(schema.release == NULL);
    else if (schema.release != NULL)
        schema.release(&schema);
    call_end(p, requested);
}

static int extract_made(struct script_producer *p,
                        const struct script_item *item,
                        struct ArrowDeviceArray *out)
{
    if (item->kind == SCRIPT_FAILING)
        out->array.release = (void (*)(struct ArrowArray *))abort; /* AT-22 */
    if (item->kind == SCRIPT_FAILING)
        return 1 + fuzz_below(&p->in, 120);
    if (item->kind == SCRIPT_EMPTY)
        return 0; /* */
    fake_source_batch(&p->data, item->ordinal, out);
    if (item->kind == SCRIPT_CROOKED)
        out->array.length = out->array.offset =
            fuzz_strange(&p->in) | INT64_MIN;
    if (item->kind == SCRIPT_OTHER_DEVICE)
        out->device_type = fuzz_below(&p->in, 20);
    return 0;
}

/* The object that this thread offers, as long as the handler's callback runs;
 * or NULL. */
static _Thread_local const struct script_item *offered;

/* A task that is offered after the release, or after free_ctx, is the handler's
 * to extract, at once, in the producer's own call. */
static bool is_being_offered(const struct script_item *item)
{
    return item == offered;
}

static int item_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct script_item *item = self->private_data;
    struct script_producer *p = item->producer;
    const bool plays = is_being_offered(item)
                           ? frame_enter(p)
                           : frame_begin_late(p, p->tasks_outlive);
    int code = 0;

    fuzz_trace("producer", "must extract", item->ordinal);

    if (plays)
        producer_play(p, producer_use(&p->on_extract));
    if (out != NULL)
        code = extract_made(p, item, out);
    free(item);
    atomic_fetch_sub(&p->items, 1);
    frame_end(p, plays);
    return code;
}

/* A task that was not requested may still match a request in flight. */
static void task_count(struct script_producer *p)
{
    if (p->open > 0) /* only this thread makes it smaller */
        p->open--;
    else
        p->unrequested++;
}

static void producer_offer(struct script_producer *p, int kind,
                           const char *metadata)
{
    struct ArrowAsyncTask task = {.extract_data = item_extract};
    struct script_item *item = malloc(sizeof(*item));
    const struct script_item *before = offered;
    const int requested = call_begin(p);

    FUZZ_RULE(item != NULL);
    *item = (struct script_item){p, p->ordinal++, kind};
    task.private_data = item;
    atomic_fetch_add(&p->items, 1);
    p->offered += !p->ended;
    task_count(p);
    offered = item;
    FUZZ_RULE(p->handler->on_next_task(p->handler, &task, metadata) == 0);
    offered = before;
    memset(&task, 0x5a, sizeof(task)); /* AT-13 */
    call_end(p, requested);
}

static void step_task(struct script_producer *p)
{
    producer_offer(p, SCRIPT_SOUND, NULL);
}

static void step_tagged_task(struct script_producer *p)
{
    producer_offer(p, SCRIPT_SOUND, script_metadata(p));
}

static void step_bad_task(struct script_producer *p)
{
    producer_offer(p, fuzz_below(&p->in, SCRIPT_KINDS), NULL);
}

static void step_hollow_task(struct script_producer *p)
{
    struct ArrowAsyncTask task = {.private_data = p};
    const int requested = call_begin(p);

    task_count(p);
    (void)p->handler->on_next_task(p->handler, &task, NULL);
    call_end(p, requested);
}

static void step_end(struct script_producer *p)
{
    const int requested = call_begin(p);

    p->complete = true;
    p->ended = true;
    p->host.wait(p->host.ctx, true);
    (void)p->handler->on_next_task(p->handler, NULL, NULL);
    p->host.wait(p->host.ctx, false);
    call_end(p, requested);
}

static void step_error(struct script_producer *p)
{
    const int64_t code = fuzz_strange(&p->in);
    const char *text = fuzz_below(&p->in, 4) == 0 ? NULL : "the script fails";
    const char *metadata = script_metadata(p);
    const int requested = call_begin(p);

    p->ended = true;
    p->host.wait(p->host.ctx, true);
    p->handler->on_error(p->handler, (int)code, text, metadata);
    p->host.wait(p->host.ctx, false);
    call_end(p, requested);
}

static void step_release(struct script_producer *p)
{
    const int requested = call_begin(p);

    p->ended = p->released = true;
    p->host.wait(p->host.ctx, true);
    p->release(p->handler);
    p->host.wait(p->host.ctx, false);
    call_end(p, requested);
}

/* ---- other steps -------------------------------------------------------- */

/* Continues with a copy, and overwrites the original (AH-24, Q-07). */
static void step_copy(struct script_producer *p)
{
    if (p->handler == &p->copy || p->calls > 0)
        return;
    p->copy = *p->handler;
    p->handler = &p->copy;
}

static void step_pause(struct script_producer *p)
{
    if (p->frames == 0 && p->calls == 0)
        p->host.pause(p->host.ctx);
}

static void step_meddle(struct script_producer *p)
{
    const int way = fuzz_byte(&p->in);

    if (p->frames == 0 && p->calls == 0)
        p->host.meddle(p->host.ctx, way);
}

static void step_on_request(struct script_producer *p)
{
    p->on_request = 1 + fuzz_below(&p->in, 4);
}

static void step_on_cancel(struct script_producer *p)
{
    p->on_cancel = 1 + fuzz_below(&p->in, 4);
}

static void step_on_extract(struct script_producer *p)
{
    p->on_extract = 1 + fuzz_below(&p->in, 4);
}

static const struct {
    void (*run)(struct script_producer *);
    const char *name;
} STEPS[] = {
    {step_schema, "schema"},
    {step_task, "task"},
    {step_task, "task"},
    {step_task, "task"},
    {step_pause, "pause"},
    {step_pause, "pause"},
    {step_end, "end"},
    {step_release, "release"},
    {step_error, "error"},
    {step_bad_schema, "bad schema"},
    {step_tagged_task, "tagged task"},
    {step_bad_task, "bad task"},
    {step_bad_task, "bad task"},
    {step_hollow_task, "hollow task"},
    {step_copy, "copy"},
    {step_meddle, "meddle"},
    {step_on_request, "on request"},
    {step_on_cancel, "on cancel"},
    {step_on_extract, "on extract"},
};

/* ---- setup and end ------------------------------------------------------ */

void script_producer_init(struct script_producer *p, struct fuzz_input in,
                          const struct script_host *host)
{
    memset(p, 0, sizeof(*p));
    p->in = in;
    p->host = *host;
    fake_source_init(&p->data, 0);
    p->data.rows = 2;
    p->window = INT64_MAX;
    p->object = calloc(1, sizeof(*p->object));
    FUZZ_RULE(p->object != NULL);
    p->object->device_type = ARROW_DEVICE_CPU;
    p->object->request = producer_request;
    p->object->cancel = producer_cancel;
    p->object->private_data = p;
}

bool script_producer_step(struct script_producer *p)
{
    const int count = (int)(sizeof(STEPS) / sizeof(STEPS[0]));
    int step;

    if (p->in.size == 0 || p->handler == NULL || p->gone || p->frames > 20 ||
        p->calls > 20)
        return false;
    step = fuzz_byte(&p->in) % count;
    fuzz_trace("producer", STEPS[step].name, p->frames);
    STEPS[step].run(p);
    return true;
}

void script_producer_finish(struct script_producer *p)
{
    p->in.size = 0;
    if (p->handler != NULL && !p->released)
        step_release(p);
}

void script_producer_fini(struct script_producer *p)
{
    FUZZ_RULE(p->freed && p->frames == 0 && p->calls == 0);
    FUZZ_RULE(p->items == 0);
    FUZZ_RULE(atomic_load(&p->data.live) == 0);
    free(p->object);
    fake_source_fini(&p->data);
}
