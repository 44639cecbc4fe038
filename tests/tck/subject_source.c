/* SPDX-License-Identifier: Apache-2.0 */
/* Four sources, each with the plans it can follow. */
#include "tck/subject_source.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The progress of a plan. */
struct progress {
    struct subject_plan plan;
    int64_t next; /* ordinal of the next batch */
    char tag[64]; /* tag of the last batch */
    struct uva_pusher *pusher;
};

static struct progress *progress_new(const struct subject_plan *plan)
{
    struct progress *progress = calloc(1, sizeof(*progress));

    assert(progress != NULL);
    progress->plan = *plan;
    return progress;
}

static bool progress_fails(const struct progress *progress)
{
    return progress->plan.plan == UVA_SUBJECT_FAILS ||
           progress->plan.plan == UVA_SUBJECT_TAGGED_FAILS;
}

static bool progress_is_over(const struct progress *progress)
{
    return progress->plan.plan != UVA_SUBJECT_ENDLESS &&
           progress->next >= progress->plan.batches;
}

static void progress_pause(const struct progress *progress)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    if (progress->plan.plan == UVA_SUBJECT_SLOW)
        (void)nanosleep(&pause, NULL);
}

/* ---- a blocking stream -------------------------------------------------- */

static int blocking_schema(struct ArrowDeviceArrayStream *self,
                           struct ArrowSchema *out)
{
    struct progress *progress = self->private_data;

    if (progress->plan.plan == UVA_SUBJECT_FAILS_FIRST)
        return EIO;
    subject_schema(progress->plan.books, out);
    return 0;
}

static int blocking_next(struct ArrowDeviceArrayStream *self,
                         struct ArrowDeviceArray *out)
{
    struct progress *progress = self->private_data;

    progress_pause(progress);
    if (!progress_is_over(progress)) {
        subject_batch(progress->plan.books, progress->next++, out);
        return 0;
    }
    if (progress_fails(progress))
        return EIO;
    while (progress->plan.plan == UVA_SUBJECT_STUCK)
        (void)pause();
    memset(out, 0, sizeof(*out));
    return 0;
}

static const char *blocking_text(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return "the source failed";
}

static void blocking_release(struct ArrowDeviceArrayStream *self)
{
    free(self->private_data);
    self->release = NULL;
}

struct uva_stream *subject_from_device_stream(struct uva_runtime *runtime,
                                              const struct subject_plan *plan)
{
    struct ArrowDeviceArrayStream source = {
        .device_type = ARROW_DEVICE_CPU,
        .get_schema = blocking_schema,
        .get_next = blocking_next,
        .get_last_error = blocking_text,
        .release = blocking_release,
    };

    if (plan->plan > UVA_SUBJECT_FAILS_FIRST && plan->plan != UVA_SUBJECT_STUCK)
        return NULL;
    source.private_data = progress_new(plan);
    return uva_stream_from_device_stream(runtime, &source, NULL);
}

/* ---- tasks -------------------------------------------------------------- */

static int tasks_schema(void *ctx, struct ArrowSchema *out,
                        struct uva_error *error)
{
    struct progress *progress = ctx;

    if (progress->plan.plan == UVA_SUBJECT_FAILS_FIRST)
        return uva_error_set(error, EIO, "there is no schema");
    subject_schema(progress->plan.books, out);
    return 0;
}

/* An item is the ordinal plus one, because 0 is the end. */
static int tasks_next(void *ctx, void **item, const char **metadata,
                      struct uva_error *error)
{
    struct progress *progress = ctx;

    progress_pause(progress);
    if (progress_is_over(progress))
        return progress_fails(progress)
                   ? uva_error_set(error, EIO, "the source failed")
                   : 0;
    if (progress->plan.plan == UVA_SUBJECT_TAGGED)
        *metadata = subject_number(progress->tag, progress->next);
    *item = (void *)(uintptr_t)++progress->next;
    return 0;
}

static int tasks_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                         struct uva_error *error)
{
    struct progress *progress = ctx;
    const int64_t ordinal = (int64_t)(uintptr_t)item - 1;

    if (progress->plan.plan == UVA_SUBJECT_TASK_FAILS &&
        ordinal == progress->plan.at)
        return uva_error_set(error, EIO, "this task fails");
    if (out != NULL)
        subject_batch(progress->plan.books, ordinal, out);
    return 0;
}

struct uva_stream *subject_from_tasks(struct uva_runtime *runtime,
                                      const struct subject_plan *plan)
{
    if (plan->plan == UVA_SUBJECT_CANCEL_FAILS ||
        plan->plan == UVA_SUBJECT_TAGGED_FAILS ||
        plan->plan == UVA_SUBJECT_STUCK)
        return NULL;
    return uva_stream_from_tasks(
        runtime, &(struct uva_task_source){.schema = tasks_schema,
                                           .next = tasks_next,
                                           .extract = tasks_extract,
                                           .free_ctx = free,
                                           .ctx = progress_new(plan)});
}

/* ---- arrays ------------------------------------------------------------- */

struct uva_stream *subject_from_arrays(struct uva_runtime *runtime,
                                       const struct subject_plan *plan)
{
    struct uva_stream *stream;
    struct ArrowSchema schema;
    struct ArrowDeviceArray *arrays;

    if (plan->plan != UVA_SUBJECT_WHOLE)
        return NULL;
    arrays = calloc((size_t)plan->batches + 1, sizeof(*arrays));
    assert(arrays != NULL);
    subject_schema(plan->books, &schema);
    for (int64_t i = 0; i < plan->batches; i++)
        subject_batch(plan->books, i, &arrays[i]);
    stream =
        uva_stream_from_arrays(runtime, &schema, arrays, (size_t)plan->batches);
    free(arrays);
    return stream;
}

/* ---- a pushing thread --------------------------------------------------- */

static void pusher_end(struct progress *progress)
{
    struct uva_error error;
    char tag[64];

    (void)uva_error_set(&error, EIO, "the source failed");
    uva_pusher_close(progress->pusher,
                     progress_fails(progress) ||
                             progress->plan.plan == UVA_SUBJECT_FAILS_FIRST
                         ? &error
                         : NULL,
                     progress->plan.plan == UVA_SUBJECT_TAGGED_FAILS
                         ? subject_tag(tag, "a\0b\0c", 5)
                         : NULL);
    free(progress);
}

static void pusher_push(struct progress *progress)
{
    struct ArrowDeviceArray array;
    int code = 0;

    while (code == 0 && !progress_is_over(progress)) {
        progress_pause(progress);
        subject_batch(progress->plan.books, progress->next, &array);
        code =
            uva_pusher_push(progress->pusher, &array,
                            progress->plan.plan == UVA_SUBJECT_TAGGED
                                ? subject_number(progress->tag, progress->next)
                                : NULL,
                            UVA_FOREVER);
        progress->next++;
    }
}

static void *pusher_run(void *ctx)
{
    struct progress *progress = ctx;
    struct ArrowSchema schema;

    if (progress->plan.plan != UVA_SUBJECT_FAILS_FIRST) {
        subject_schema(progress->plan.books, &schema);
        if (uva_pusher_set_schema(progress->pusher, &schema) == 0)
            pusher_push(progress);
    }
    pusher_end(progress);
    return NULL;
}

struct uva_stream *subject_from_pusher(struct uva_runtime *runtime,
                                       const struct subject_plan *plan)
{
    struct progress *progress;
    struct uva_stream *stream;
    pthread_t thread;

    if (plan->plan == UVA_SUBJECT_TASK_FAILS ||
        plan->plan == UVA_SUBJECT_CANCEL_FAILS ||
        plan->plan == UVA_SUBJECT_STUCK)
        return NULL;
    progress = progress_new(plan);
    stream = uva_stream_from_pusher(runtime, NULL, &progress->pusher);
    if (pthread_create(&thread, NULL, pusher_run, progress) != 0)
        abort();
    (void)pthread_detach(thread);
    return stream;
}
