/* SPDX-License-Identifier: Apache-2.0 */
/* Waits have no limit of their own: a call that never returns hangs the test,
 * which Check then ends. */
#define _GNU_SOURCE
#include "support/blocking_fixture.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

void blocking_await(atomic_long *count, long value)
{
    while (atomic_load(count) != value)
        (void)sched_yield();
}

struct uva__task_ring *blocking_task_ring(const struct ArrowArrayStream *stream)
{
    return stream->private_data;
}

void blocking_await_sleeper(const struct ArrowArrayStream *stream)
{
    const struct uva__task_ring *o = blocking_task_ring(stream);

    while (uva__atomic64_load(&o->parker.sleeping) == 0)
        (void)sched_yield();
}

void blocking_await_event(const struct ArrowArrayStream *stream,
                          uint64_t events)
{
    while (!(uva__atomic64_load(&blocking_task_ring(stream)->events) & events))
        (void)sched_yield();
}

/* ---- a runtime with its own thread -------------------------------------- */

void blocking_open(struct blocking_fixture *b, struct uva_workers *workers,
                   int64_t batches)
{
    struct uva_runtime_options options = {.workers = workers};

    memset(b, 0, sizeof(*b));
    b->open = true;
    fake_source_init(&b->fake, batches);
    faulty_allocator_init(&b->memory, 0);
    options.allocator = faulty_allocator_table(&b->memory);
    ck_assert_int_eq(uva_runtime_open(NULL, &options, &b->runtime, NULL), 0);
}

void blocking_plain(struct blocking_fixture *b)
{
    struct uva_arrow_source options = fake_source_options(&b->fake);
    struct ArrowArrayStream source;

    options.window.batches = 1;
    fake_source_plain(&b->fake, &source);
    b->sources++;
    b->stream = uva_stream_from_arrow_stream(b->runtime, &source, &options);
}

void blocking_tasks(struct blocking_fixture *b)
{
    struct uva_task_source source = fake_source_tasks(&b->fake);

    source.window.batches = 1;
    b->stream = uva_stream_from_tasks(b->runtime, &source);
}

void blocking_start(struct blocking_fixture *b, int32_t window)
{
    const struct uva_window whole = {.batches = window};

    ck_assert_int_eq(
        uva_stream_to_arrow_stream(b->stream, &whole, &b->out, NULL), 0);
}

void blocking_start_plain(struct blocking_fixture *b, int32_t window)
{
    blocking_plain(b);
    blocking_start(b, window);
}

void blocking_start_tasks(struct blocking_fixture *b, int32_t window)
{
    blocking_tasks(b);
    blocking_start(b, window);
}

void blocking_run(struct blocking_fixture *b, int64_t batches, int32_t window)
{
    blocking_open(b, NULL, batches);
    blocking_start_plain(b, window);
}

void blocking_end_runtime(struct blocking_fixture *b)
{
    ck_assert_int_eq(uva_runtime_close(b->runtime, 0, NULL, NULL), 0);
    ck_assert_int_eq(uva_runtime_join(b->runtime, UVA_FOREVER), 0);
    b->runtime = NULL;
}

/* Worker threads may return a moment after the runtime has closed. */
void blocking_close(struct blocking_fixture *b)
{
    const long freed = b->stream != NULL;

    if (!b->open)
        return;
    b->open = false;
    if (b->out.release != NULL)
        b->out.release(&b->out);
    uva_stream_release(b->stream);
    if (b->runtime != NULL)
        ck_assert_int_eq(uva_runtime_join(b->runtime, UVA_FOREVER), 0);
    while (faulty_allocator_live(&b->memory) != 0)
        (void)sched_yield();
    ck_assert_int_eq(atomic_load(&b->fake.released), b->sources);
    ck_assert_int_eq(atomic_load(&b->fake.freed), freed);
    fake_source_fini(&b->fake);
}

/* ---- reading ------------------------------------------------------------ */

static void check_batch(const struct ArrowArray *array, int64_t ordinal)
{
    const int64_t *values = array->children[0]->buffers[1];
    int64_t i;

    for (i = 0; i < array->length; i++)
        ck_assert_int_eq(values[i], ordinal * 10 + i);
}

int64_t blocking_read(struct ArrowArrayStream *stream, int64_t first,
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
        blocking_read(reader->stream, 0, INT64_MAX, &reader->code);
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
