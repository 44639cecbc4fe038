/* SPDX-License-Identifier: Apache-2.0 */
/* What never comes is a test that never ends. */
#define _GNU_SOURCE
#include "support/blocking_scene.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

void blocking_scene_await(atomic_long *count, long value)
{
    while (atomic_load(count) != value)
        (void)sched_yield();
}

struct uva__task_ring *
blocking_scene_outlet(const struct ArrowArrayStream *stream)
{
    return stream->private_data;
}

void blocking_scene_await_sleeper(const struct ArrowArrayStream *stream)
{
    const struct uva__task_ring *o = blocking_scene_outlet(stream);

    while (uva__atomic64_load(&o->parker.sleeping) == 0)
        (void)sched_yield();
}

void blocking_scene_await_news(const struct ArrowArrayStream *stream,
                               uint64_t events)
{
    while (
        !(uva__atomic64_load(&blocking_scene_outlet(stream)->events) & events))
        (void)sched_yield();
}

/* ---- a runtime with a thread of its own --------------------------------- */

void blocking_scene_open(struct blocking_scene *scene,
                         struct uva_workers *workers, int64_t batches)
{
    struct uva_runtime_options options = {.workers = workers};

    memset(scene, 0, sizeof(*scene));
    fake_source_init(&scene->fake, batches);
    faulty_allocator_init(&scene->memory, 0);
    options.allocator = faulty_allocator_table(&scene->memory);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &scene->runtime, NULL),
                     0);
}

void blocking_scene_plain(struct blocking_scene *scene)
{
    struct uva_blocking_source how = fake_source_how(&scene->fake);
    struct ArrowArrayStream source;

    how.window.batches = 1;
    fake_source_plain(&scene->fake, &source);
    scene->sources++;
    scene->stream = uva_stream_from_blocking_cpu(scene->runtime, &source, &how);
}

void blocking_scene_tasks(struct blocking_scene *scene)
{
    struct uva_task_source source = fake_source_tasks(&scene->fake);

    source.window.batches = 1;
    scene->stream = uva_stream_from_tasks(scene->runtime, &source);
}

void blocking_scene_start(struct blocking_scene *scene, int32_t window)
{
    const struct uva_window whole = {.batches = window};

    ck_assert_int_eq(
        uva_stream_to_blocking_cpu(scene->stream, &whole, &scene->out, NULL),
        0);
}

void blocking_scene_end_runtime(struct blocking_scene *scene)
{
    ck_assert_int_eq(uva_runtime_close(scene->runtime, 0, NULL, NULL), 0);
    ck_assert_int_eq(uva_runtime_join(scene->runtime), 0);
    scene->runtime = NULL;
}

/* Workers may go home a moment after the runtime has closed. */
void blocking_scene_close(struct blocking_scene *scene)
{
    const long freed = scene->stream != NULL;

    if (scene->out.release != NULL)
        scene->out.release(&scene->out);
    uva_stream_release(scene->stream);
    if (scene->runtime != NULL)
        ck_assert_int_eq(uva_runtime_join(scene->runtime), 0);
    while (faulty_allocator_live(&scene->memory) != 0)
        (void)sched_yield();
    ck_assert_int_eq(atomic_load(&scene->fake.released), scene->sources);
    ck_assert_int_eq(atomic_load(&scene->fake.freed), freed);
    fake_source_fini(&scene->fake);
}

/* ---- reading ------------------------------------------------------------ */

static void check_batch(const struct ArrowArray *array, int64_t ordinal)
{
    const int64_t *values = array->children[0]->buffers[1];
    int64_t i;

    for (i = 0; i < array->length; i++)
        ck_assert_int_eq(values[i], ordinal * 10 + i);
}

int64_t blocking_scene_read(struct ArrowArrayStream *stream, int64_t first,
                            int64_t most, int *code)
{
    struct ArrowArray array;
    int64_t n;
    int last = 0;

    for (n = 0; n < most; n++) {
        memset(&array, 0xA5, sizeof(array));
        last = stream->get_next(stream, &array);
        if (last != 0 || array.release == NULL)
            break;
        check_batch(&array, first + n);
        array.release(&array);
    }
    if (code != NULL)
        *code = last;
    else
        ck_assert_int_eq(last, 0);
    return n;
}

static void *reader_run(void *ctx)
{
    struct blocking_reader *reader = ctx;
    const char *text;

    reader->batches =
        blocking_scene_read(reader->stream, 0, INT64_MAX, &reader->code);
    text = reader->stream->get_last_error(reader->stream);
    (void)snprintf(reader->text, sizeof(reader->text), "%s",
                   text != NULL ? text : "");
    return NULL;
}

void blocking_reader_start(struct blocking_reader *reader,
                           struct ArrowArrayStream *stream)
{
    *reader = (struct blocking_reader){.stream = stream};
    ck_assert_int_eq(pthread_create(&reader->thread, NULL, reader_run, reader),
                     0);
}

void blocking_reader_join(struct blocking_reader *reader)
{
    ck_assert_int_eq(pthread_join(reader->thread, NULL), 0);
}
