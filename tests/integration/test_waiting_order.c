/* SPDX-License-Identifier: Apache-2.0 */
/* Which stream a worker serves next: a stream that a consumer waits for goes
 * before read-ahead, and read-ahead still has its turns. There is one worker of
 * each lane; the calls of sources that read ahead wait at a gate, so that the
 * order is known. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "exec/pool.h"
#include "loop/loop.h"
#include "support/check_suite.h"
#include "support/loop_fixture.h"
#include "support/recording_consumer.h"
#include "uvarrow/uvarrow.h"

enum { STREAMS = 24, WINDOW = 4, TURNS = 10 };

/* A source, perhaps with a map, and its consumer. */
struct reader {
    char name;
    int gated_from;    /* read-ahead: calls from this one on wait */
    atomic_int next;   /* calls of get_next */
    int batches;       /* how many it gives */
    atomic_int mapped; /* calls of the map */
    atomic_bool released;
    struct uva_stream *stream;
    struct recording_consumer got;
};

static struct loop_fixture loop;
static struct reader readers[STREAMS];
static int started;      /* of the readers */
static bool maps;        /* the maps wait at the gate, and not the sources */
static sem_t gate;       /* one post lets one call go on */
static sem_t entered;    /* posted by a call that waits there */
static atomic_bool over; /* no call waits any more */
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static char order[256]; /* the calls: "Ao" open, "A4" get_next, "Am" the map,
                           "Ax" release */

static void order_note(const struct reader *reader, char what)
{
    size_t size;

    pthread_mutex_lock(&order_lock);
    size = strlen(order);
    if (size + 4 < sizeof(order))
        (void)snprintf(order + size, sizeof(order) - size, "%s%c%c",
                       size == 0 ? "" : " ", reader->name, what);
    pthread_mutex_unlock(&order_lock);
}

static void order_clear(void)
{
    pthread_mutex_lock(&order_lock);
    order[0] = '\0';
    pthread_mutex_unlock(&order_lock);
}

static void order_begins(const char *expected)
{
    char begin[sizeof(order)] = "";

    pthread_mutex_lock(&order_lock);
    (void)snprintf(begin, sizeof(begin), "%.*s", (int)strlen(expected), order);
    pthread_mutex_unlock(&order_lock);
    ck_assert_str_eq(begin, expected);
}

static void await_entered(void)
{
    while ((maps ? sem_trywait(&entered) : sem_wait(&entered)) != 0)
        if (maps) /* extraction is granted by the loop */
            (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

static void gate_wait(void)
{
    if (atomic_load(&over))
        return;
    sem_post(&entered);
    while (sem_wait(&gate) != 0)
        ;
}

/* ---- sources ------------------------------------------------------------ */

static int reader_get_schema(struct ArrowArrayStream *self,
                             struct ArrowSchema *out)
{
    (void)self;
    batch_schema(out);
    return 0;
}

static int reader_get_next(struct ArrowArrayStream *self,
                           struct ArrowArray *out)
{
    struct reader *reader = self->private_data;
    const int number = reader->next;
    struct ArrowDeviceArray batch;

    if (!maps)
        order_note(reader, (char)('0' + number % 10));
    if (!maps && number >= reader->gated_from)
        gate_wait();
    batch_make(&batch, 1);
    if (number < reader->batches)
        *out = batch.array;
    else
        batch.array.release(&batch.array);
    reader->next = number + 1;
    loop_nudge(&loop);
    return 0;
}

static const char *reader_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void reader_release(struct ArrowArrayStream *self)
{
    struct reader *reader = self->private_data;

    order_note(reader, 'x');
    self->release = NULL;
    reader->released = true;
    loop_nudge(&loop);
}

static int reader_open(void *ctx, struct ArrowArrayStream *out,
                       struct uva_error *error)
{
    (void)error;
    order_note(ctx, 'o');
    *out = (struct ArrowArrayStream){.get_schema = reader_get_schema,
                                     .get_next = reader_get_next,
                                     .get_last_error = reader_get_last_error,
                                     .release = reader_release,
                                     .private_data = ctx};
    return 0;
}

static int reader_map(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct reader *reader = ctx;
    const int number = reader->mapped;

    (void)error;
    order_note(reader, 'm');
    if (number >= reader->gated_from)
        gate_wait();
    uva_array_move(&in->data, out);
    reader->mapped = number + 1;
    loop_nudge(&loop);
    return 0;
}

/* Makes the next stream. Of a stream that reads ahead, only the first calls do
 * not wait, and the consumer takes one batch so far. */
static struct reader *reader_make(char name, bool reads_ahead)
{
    const struct uva_window window = {.batches = WINDOW};
    struct reader *reader = &readers[started++];
    const struct uva_arrow_source options = {
        .open = reader_open, .ctx = reader, .window = window};

    memset(reader, 0, sizeof(*reader));
    reader->name = name;
    reader->gated_from = reads_ahead ? WINDOW : INT32_MAX;
    reader->batches = reads_ahead ? INT32_MAX : 1;
    recording_init(&reader->got);
    if (reads_ahead)
        reader->got.appetite = 1;
    reader->stream = uva_stream_from_arrow_stream(loop.runtime, NULL, &options);
    if (!maps)
        return reader;
    ck_assert_int_eq(
        uva_stream_map(reader->stream,
                       &(struct uva_map){.batch = reader_map, .ctx = reader}),
        0);
    ck_assert_int_eq(uva_stream_parallel(reader->stream,
                                         &(struct uva_parallel){
                                             .workers = 1, .window = window}),
                     0);
    return reader;
}

static struct reader *reader_start(char name, bool reads_ahead)
{
    struct reader *reader = reader_make(name, reads_ahead);

    recording_start(&reader->got, reader->stream);
    return reader;
}

static void loop_turns(void)
{
    for (int i = 0; i < TURNS; i++)
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
}

/* ---- the situation ------------------------------------------------------ */

static bool windows_are_full(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < started; i++)
        if ((maps ? readers[i].mapped : readers[i].next) < WINDOW ||
            readers[i].got.batches == 0)
            return false;
    return true;
}

static bool three_were_taken(void *ctx)
{
    return ((struct reader *)ctx)->got.taken >= 3;
}

/* Sources A, B... read ahead: each consumer has taken one batch, and then two
 * more. A's call waits at the gate, the other jobs in the lane.
 */
static void read_ahead(int n)
{
    for (int i = 0; i < n; i++)
        (void)reader_start((char)('A' + i), true);
    loop_until(&loop, windows_are_full, NULL);
    for (int i = 0; i < n; i++) {
        recording_feed(&readers[i].got, 2);
        loop_until(&loop, three_were_taken, &readers[i]);
        while (i == 0 && sem_trywait(&entered) != 0)
            (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
        loop_turns();
    }
    order_clear();
}

/* The call at the gate goes on; returns when the next one waits there. */
static void gate_pass(void)
{
    sem_post(&gate);
    await_entered();
}

static void set_up(void)
{
    struct uva_workers *workers;

    ck_assert_int_eq(
        uva_workers_new(&(struct uva_workers_options){.blocking_threads = 1,
                                                      .compute_threads = 1},
                        &workers, NULL),
        0);
    started = 0;
    maps = false;
    over = false;
    sem_init(&gate, 0, 0);
    sem_init(&entered, 0, 0);
    order_clear();
    loop_open_with(&loop, &(struct uva_runtime_options){.workers = workers});
    uva_workers_release(workers);
}

static void tear_down(void)
{
    over = true;
    for (int i = 0; i < STREAMS; i++)
        sem_post(&gate);
    for (int i = 0; i < started; i++) {
        uva_stream_cancel(readers[i].stream, 0, NULL);
        uva_stream_release(readers[i].stream);
        recording_await_done(&readers[i].got, &loop);
    }
    loop_close(&loop);
    sem_destroy(&gate);
    sem_destroy(&entered);
}

/* ---- tests -------------------------------------------------------------- */

static bool has_schema(void *ctx)
{
    return ((struct reader *)ctx)->got.schemas == 1;
}

START_TEST(a_new_stream_is_served_before_read_ahead)
{
    struct reader *query;

    read_ahead(4);
    query = reader_start('q', false);
    loop_turns();
    gate_pass();
    order_begins("qo B4");
    loop_until(&loop, has_schema, query);
    loop_turns();
    gate_pass();
    order_begins("qo B4 q0");
    for (int i = 0; i < STREAMS; i++)
        sem_post(&gate);
    recording_await_done(&query->got, &loop);
    ck_assert_int_eq(query->got.taken, 1);
}
END_TEST

START_TEST(read_ahead_still_has_its_turn)
{
    read_ahead(3);
    for (char name = 'a'; name <= 'l'; name++)
        (void)reader_start(name, false);
    loop_turns();
    gate_pass();
    order_begins("ao bo co do eo fo go ho B4");
    gate_pass();
    order_begins("ao bo co do eo fo go ho B4 io jo ko lo C4");
}
END_TEST

START_TEST(read_ahead_is_raised_when_its_consumer_has_nothing)
{
    read_ahead(4);
    recording_feed(&readers[2].got, 2);
    recording_await(&readers[2].got, &loop, 4);
    loop_turns();
    gate_pass();
    order_begins("C4");
}
END_TEST

static bool is_released(void *ctx)
{
    return ((struct reader *)ctx)->released;
}

START_TEST(a_cancelled_source_is_closed_before_read_ahead)
{
    read_ahead(4);
    uva_stream_cancel(readers[2].stream, 0, NULL);
    loop_turns();
    gate_pass();
    /* by a separate thread, or by the worker before it went to the gate */
    loop_until(&loop, is_released, &readers[2]);
}
END_TEST

static void order_by_priority(bool merged)
{
    static const char names[] = "ahbgce";

    read_ahead(2);
    for (int i = 0; names[i] != '\0'; i++) {
        struct reader *reader = reader_make(names[i], false);

        if (merged)
            ck_assert_int_eq(uva_stream_merge(reader->stream, NULL, 0, NULL),
                             0);
        ck_assert_int_eq(
            uva_stream_set_priority(reader->stream, names[i] > 'f'), 0);
        if (names[i] == 'a')
            ck_assert_int_eq(uva_stream_set_priority(reader->stream, -3), 0);
        recording_start(&reader->got, reader->stream);
        ck_assert_int_eq(uva_stream_set_priority(reader->stream, 1), EBUSY);
    }
    ck_assert_int_eq(uva_stream_set_priority(NULL, 1), EINVAL);
    loop_turns();
    gate_pass();
    order_begins("ho go bo co eo ao B4");
}

START_TEST(priorities_order_streams)
{
    order_by_priority(false);
}
END_TEST

START_TEST(priorities_order_what_streams_are_merged_of)
{
    order_by_priority(true);
}
END_TEST

static void maps_read_ahead(int n)
{
    maps = true;
    read_ahead(n);
}

START_TEST(a_new_stream_is_extracted_before_read_ahead)
{
    struct reader *query;

    maps_read_ahead(3);
    query = reader_start('q', false);
    loop_until(&loop, is_released, query);
    loop_turns();
    order_clear();
    gate_pass();
    order_begins("qm");
    recording_await_done(&query->got, &loop);
}
END_TEST

/* Whether a job that a consumer waits for is queued. */
static bool job_is_raised(void *ctx)
{
    const struct uva_workers *workers =
        uva__loop_rt(loop.runtime)->jobs.workers;

    (void)ctx;
    return uva__atomic64_load(&workers->foremost[UVA_LANE_COMPUTE]) >
           UVA__PLACES - UVA__PLACE_AHEAD;
}

START_TEST(extraction_is_raised_when_its_consumer_has_nothing)
{
    maps_read_ahead(3);
    recording_feed(&readers[2].got, 2);
    recording_await(&readers[2].got, &loop, 4);
    while (!job_is_raised(NULL))
        loop_turns();
    order_clear();
    gate_pass();
    order_begins("Cm");
}
END_TEST

int main(void)
{
    return suite_main(
        "waiting order", set_up, tear_down,
        suite_tests("sources", a_new_stream_is_served_before_read_ahead,
                    read_ahead_still_has_its_turn,
                    read_ahead_is_raised_when_its_consumer_has_nothing,
                    a_cancelled_source_is_closed_before_read_ahead,
                    priorities_order_streams,
                    priorities_order_what_streams_are_merged_of, NULL),
        suite_tests("extraction", a_new_stream_is_extracted_before_read_ahead,
                    extraction_is_raised_when_its_consumer_has_nothing, NULL),
        NULL);
}
