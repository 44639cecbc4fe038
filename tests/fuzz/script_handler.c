/* SPDX-License-Identifier: Apache-2.0 */
/* Each callback is checked against the earlier ones, then makes as many steps
 * as the next byte decides. Steps outside of callbacks are calls from any
 * thread. */
#include <errno.h>
#include <string.h>

#include "fuzz/script.h"
#include "uvarrow/arrow.h"

static struct script_handler *
handler_of(struct ArrowAsyncDeviceStreamHandler *handler)
{
    return handler->private_data;
}

/* ---- calls it makes ----------------------------------------------------- */

static void handler_request(struct script_handler *h, int64_t n)
{
    if (h->producer == NULL || h->deaf)
        return;
    if (!h->cancelled && h->ends + h->errors + h->releases == 0) {
        h->bad = h->bad || n < 1;
        h->requested = n < 1 || n > INT64_MAX - h->requested ? INT64_MAX
                                                             : h->requested + n;
    }
    h->producer->request(h->producer, n);
}

static void step_request(struct script_handler *h)
{
    handler_request(h, 1 + fuzz_below(&h->in, 4));
}

static void step_bad_request(struct script_handler *h)
{
    handler_request(h, fuzz_strange(&h->in));
}

static void step_cancel(struct script_handler *h)
{
    if (h->producer == NULL || h->deaf)
        return;
    h->cancelled = true;
    h->producer->cancel(h->producer);
}

/* Returns the oldest task that is not extracted; or an extracted one, which
 * must do no harm (AT-03). Another thread may still extract a refused one until
 * the producer has it back. */
static int handler_choose(struct script_handler *h, bool spent)
{
    for (int i = 0; i < h->task_count; i++)
        if (h->spent[i] == spent && h->declined != i)
            return i;
    return -1;
}

static void step_extract(struct script_handler *h)
{
    const int i = handler_choose(h, false);
    struct ArrowDeviceArray array;

    if (i < 0)
        return;
    h->spent[i] = true;
    memset(&array, 0x5a, sizeof(array));
    if (h->tasks[i].extract_data(&h->tasks[i], &array) != 0) {
        FUZZ_RULE(array.array.release == NULL);
        return;
    }
    FUZZ_RULE(array.array.release != NULL && !h->deaf);
    uva_array_release(&h->kept);
    uva_array_move(&array, &h->kept);
}

static void step_discard(struct script_handler *h)
{
    const int i = handler_choose(h, false);

    if (i < 0)
        return;
    h->spent[i] = true;
    (void)h->tasks[i].extract_data(&h->tasks[i], NULL);
}

static void step_extract_again(struct script_handler *h)
{
    const int i = handler_choose(h, true);
    struct ArrowDeviceArray array;

    if (i < 0 || h->deaf)
        return;
    memset(&array, 0, sizeof(array));
    FUZZ_RULE(h->tasks[i].extract_data(&h->tasks[i], &array) != 0);
    FUZZ_RULE(array.array.release == NULL);
}

static void step_answer(struct script_handler *h)
{
    h->answer = 1 + fuzz_below(&h->in, 120);
}

static void step_pause(struct script_handler *h)
{
    if (h->calls == 0)
        h->host.pause(h->host.ctx);
}

static void step_meddle(struct script_handler *h)
{
    const int way = fuzz_byte(&h->in);

    if (h->calls == 0)
        h->host.meddle(h->host.ctx, way);
}

static const struct {
    void (*run)(struct script_handler *);
    const char *name;
} STEPS[] = {
    {step_request, "request"}, {step_request, "request"},
    {step_pause, "pause"},     {step_extract, "extract"},
    {step_discard, "discard"}, {step_extract_again, "extract again"},
    {step_cancel, "cancel"},   {step_bad_request, "bad request"},
    {step_answer, "answer"},   {step_meddle, "meddle"},
};

bool script_handler_step(struct script_handler *h)
{
    const int count = (int)(sizeof(STEPS) / sizeof(STEPS[0]));
    int step;

    if (h->in.size == 0)
        return false;
    step = fuzz_byte(&h->in) % count;
    fuzz_trace("handler", STEPS[step].name, h->calls);
    STEPS[step].run(h);
    return true;
}

/* ---- calls made to it --------------------------------------------------- */

/* Returns whether only release may follow (AH-08, AH-16, AH-17). */
static bool handler_is_closed(const struct script_handler *h)
{
    return h->refused || h->errors > 0;
}

static void handler_begin(struct script_handler *h, const char *what, int64_t n)
{
    fuzz_trace("handler", what, n);
    h->plays = h->host.enter(h->host.ctx);
    FUZZ_RULE(++h->calls == 1 && h->releases == 0);
}

/* Makes a few steps, as the next byte decides. Returns the code to return. */
static int handler_end(struct script_handler *h)
{
    const int answer = h->answer;
    int steps = h->plays ? fuzz_byte(&h->in) % 8 : 0;

    for (; steps > 4; steps--)
        (void)script_handler_step(h);
    h->answer = 0;
    h->calls--;
    h->host.leave(h->host.ctx);
    return answer;
}

static int handler_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct script_handler *h = handler_of(self);
    int answer;

    handler_begin(h, "is told the schema", 0);
    FUZZ_RULE(++h->schemas == 1 && h->ends == 0 && !handler_is_closed(h));
    FUZZ_RULE(schema->release != NULL && self->producer != NULL);
    h->producer = self->producer;
    if (fuzz_byte(&h->in) < 128) /* else the producer keeps it (G-43) */
        uva_schema_release(schema);
    answer = handler_end(h);
    h->refused = answer != 0;
    return answer;
}

static int handler_on_task(struct script_handler *h,
                           const struct ArrowAsyncTask *task)
{
    const int i = h->task_count;
    int answer;

    FUZZ_RULE(h->schemas == 1 && h->ends == 0);
    FUZZ_RULE(++h->came <= h->requested);
    FUZZ_RULE(task->extract_data != NULL && i < SCRIPT_TASKS);
    h->tasks[i] = *task;
    h->task_count++;
    answer = handler_end(h);
    if (answer == 0)
        return 0;
    h->spent[i] = true; /* the producer gets it back (LC-18) */
    h->declined = i;
    h->refused = true;
    return answer;
}

static int handler_on_next(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowAsyncTask *task, const char *metadata)
{
    struct script_handler *h = handler_of(self);
    size_t size;

    handler_begin(h, "is told", task != NULL);
    FUZZ_RULE(!handler_is_closed(h));
    FUZZ_RULE(metadata == NULL || uva_metadata_size(metadata, &size) == 0);
    if (task != NULL)
        return handler_on_task(h, task);
    FUZZ_RULE(h->schemas == 1 && ++h->ends == 1);
    return handler_end(h); /* the code is ignored (G-41) */
}

static void handler_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    struct script_handler *h = handler_of(self);
    size_t size;

    handler_begin(h, "is told an error", code);
    FUZZ_RULE(!handler_is_closed(h) && ++h->errors == 1);
    FUZZ_RULE(code > 0 && message != NULL && message[0] != '\0');
    FUZZ_RULE(metadata == NULL || uva_metadata_size(metadata, &size) == 0);
    (void)handler_end(h);
}

static void handler_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct script_handler *h = handler_of(self);

    handler_begin(h, "is released", 0);
    FUZZ_RULE(++h->releases == 1);
    FUZZ_RULE(h->ends == 1 || h->errors == 1 || h->refused || h->cancelled);
    self->release = NULL;
    (void)handler_end(h);
}

/* ---- setup and end ------------------------------------------------------ */

void script_handler_init(struct script_handler *h, struct fuzz_input in,
                         const struct script_host *host)
{
    memset(h, 0, sizeof(*h));
    h->in = in;
    h->host = *host;
    h->declined = -1;
    h->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = handler_on_schema,
        .on_next_task = handler_on_next,
        .on_error = handler_on_error,
        .release = handler_release,
        .private_data = h,
    };
}

void script_handler_finish(struct script_handler *h)
{
    h->in.size = 0;
    while (handler_choose(h, false) >= 0)
        step_extract(h);
    uva_array_release(&h->kept);
}

void script_handler_forget(struct script_handler *h)
{
    h->task_count = 0;
}

void script_handler_fini(struct script_handler *h, bool accepted)
{
    FUZZ_RULE(h->releases == accepted && h->calls == 0);
    FUZZ_RULE(accepted || h->schemas + h->ends + h->errors == 0);
    FUZZ_RULE((h->handler.release == NULL) == accepted);
}
