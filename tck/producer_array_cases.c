/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role producer about its data: arrays that are moved, taken
 * apart, released in any order and on any thread, and tasks that are extracted
 * in any order and on any thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tck/cases.h"
#include "tck/expected_data.h"
#include "tck/producer_session.h"
#include "tck/thread_barrier.h"
#include "uvarrow/arrow.h"

enum { HELD = 64 };

/* Plays a stream of `batches`: to the end if tasks are kept, otherwise to
 * release. Returns false if the subject cannot. */
static bool arrays_play(struct uva__producer_session *session,
                        struct uva__case_run *run, int64_t batches,
                        enum uva__recording_consumer_take take)
{
    const struct uva__recording_consumer_manner manner = {
        .first = UVA__RECORDING_CONSUMER_ALL,
        .take = take,
        .keep_arrays = true,
        .schema = UVA__SCHEMA_KEEP};

    if (!uva__producer_session_open(session, run, UVA_SUBJECT_WHOLE, batches, 0,
                                    &manner))
        return false;
    if (take == UVA__TAKE_LATER)
        uva__case_run_await(run, uva__recording_consumer_has_ended,
                            session->consumer, "the end");
    else
        uva__producer_session_await_release(session);
    if (uva__recording_consumer_tasks(session->consumer) != batches)
        uva__case_run_fail(run, "%" PRId64 " of %" PRId64 " batches came",
                           uva__recording_consumer_tasks(session->consumer),
                           batches);
    return true;
}

/* Takes an array from the recording consumer. */
static struct ArrowDeviceArray
arrays_take(struct uva__producer_session *session, int n)
{
    struct uva__recording_consumer_task *task = &session->consumer->tasks[n];

    if (!task->live)
        uva__case_run_fail(session->run, "array %d is not there", n);
    task->live = false;
    return task->array;
}

/* ---- moved -------------------------------------------------------------- */

static void an_array_may_be_moved(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct ArrowDeviceArray first;
    struct ArrowDeviceArray *places =
        uva__case_run_alloc(run, 3 * sizeof(*places));

    if (!arrays_play(&session, run, 1, UVA__TAKE_INSIDE))
        return;
    first = arrays_take(&session, 0);
    for (int i = 0; i < 3; i++) {
        struct ArrowDeviceArray *from = i == 0 ? &first : &places[i - 1];

        memcpy(&places[i], from, sizeof(*from));
        uva__expected_data_fill(from, sizeof(*from));
        if (!uva__expected_data_is(&places[i].array, 0))
            uva__case_run_fail(run, "%s: the values changed by a move",
                               run->clause);
    }
    uva__expected_data_release_array(run, &places[2], 0);
    uva__producer_session_settle(&session);
}

static void a_cpu_array_is_a_plain_array(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct ArrowDeviceArray device;
    struct ArrowArray plain;

    if (!arrays_play(&session, run, 1, UVA__TAKE_INSIDE))
        return;
    device = arrays_take(&session, 0);
    if (uva_array_to_cpu(&device, &plain) != 0)
        uva__case_run_fail(run, "DA-07: it is not plain CPU memory");
    uva__expected_data_fill(&device, sizeof(device));
    if (!uva__expected_data_is(&plain, 0))
        uva__case_run_fail(run, "DA-07: other values");
    plain.release(&plain);
    if (plain.release != NULL)
        uva__case_run_fail(run, "DA-07: release left release set");
    uva__producer_session_settle(&session);
}

/* Extracts to three places: the stack, the heap, and between other arrays. */
static void extraction_writes_anywhere(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct ArrowDeviceArray here;
    struct ArrowDeviceArray *row = uva__case_run_alloc(run, 4 * sizeof(*row));
    struct ArrowDeviceArray *places[] = {&here, &row[0], &row[2]};

    if (!arrays_play(&session, run, 3, UVA__TAKE_LATER))
        return;
    uva__expected_data_fill(row, 4 * sizeof(*row));
    for (int i = 0; i < 3; i++) {
        struct uva__recording_consumer_task *task = &session.consumer->tasks[i];

        task->taken = true;
        if (uva_task_extract(&task->copy, places[i]) != 0 ||
            !uva__expected_data_is(&places[i]->array, i))
            uva__case_run_fail(run, "DA-14: extraction to place %d failed", i);
    }
    if (!uva__expected_data_is_filled(&row[1], sizeof(*row)) ||
        !uva__expected_data_is_filled(&row[3], sizeof(*row)))
        uva__case_run_fail(run, "DA-14: it wrote beside the array");
    for (int i = 0; i < 3; i++)
        uva__expected_data_release_array(run, places[i], i);
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

/* Overwrites freed memory, which often keeps its values: takes some blocks of
 * each size for good. */
static void overwrite_freed(void)
{
    for (size_t size = 16; size <= 1024; size += 16)
        for (int i = 0; i < 8; i++) {
            void *block = malloc(size);

            if (block != NULL)
                uva__expected_data_fill(block, size);
        }
}

static void a_child_may_be_moved_out(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct ArrowDeviceArray parent;
    struct ArrowArray n;
    int64_t value;

    if (!arrays_play(&session, run, 2, UVA__TAKE_INSIDE))
        return;
    parent = arrays_take(&session, 1);
    n = *parent.array.children[0];
    parent.array.children[0]->release = NULL;
    parent.array.release(&parent.array);
    overwrite_freed();
    if (n.n_buffers != 2 || n.length != UVA_SUBJECT_ROWS)
        uva__case_run_fail(run,
                           "%s: the child changed when its parent was "
                           "released",
                           run->clause);
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++) {
        memcpy(&value, (const int64_t *)n.buffers[1] + n.offset + row,
               sizeof(value));
        if (value != UVA_SUBJECT_ROWS + row)
            uva__case_run_fail(run, "%s: the values went with the parent",
                               run->clause);
    }
    n.release(&n);
    if (n.release != NULL)
        uva__case_run_fail(run, "LC-07: the child's release left release set");
    uva__producer_session_settle(&session);
    if (run->subject.count != NULL &&
        run->subject.count(UVA_SUBJECT_LIVE) != UVA_SUBJECT_CANNOT)
        uva__producer_session_check_live(run);
}

/* A release must also mark the children as released. */
static void release_walks_to_children(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct ArrowDeviceArray array;
    struct ArrowArray *children[1];

    if (!arrays_play(&session, run, 1, UVA__TAKE_INSIDE))
        return;
    array = arrays_take(&session, 0);
    children[0] = array.array.children[0];
    if (children[0]->release == NULL)
        uva__case_run_fail(run, "LC-05: the child has no release");
    array.array.release(&array.array);
    uva__producer_session_settle(&session);
    uva__producer_session_check_live(run);
}

/* ---- orders and threads ------------------------------------------------- */

/* Releases four things, three arrays and the schema, after the stream is gone,
 * in permutation `n` (0 to 23). */
static void release_in_order(struct uva__case_run *run, int n)
{
    struct uva__producer_session *session =
        uva__case_run_alloc(run, sizeof(*session));
    int left[] = {0, 1, 2, 3};
    int count = 4;

    if (!arrays_play(session, run, 3, UVA__TAKE_INSIDE))
        return;
    for (int divisor = 6; count > 0; count--) {
        const int pick = n / divisor;
        const int thing = left[pick];

        if (thing == 3)
            session->consumer->schema.release(&session->consumer->schema);
        else
            uva__recording_consumer_release_array(session->consumer, thing);
        memmove(&left[pick], &left[pick + 1],
                (size_t)(count - pick - 1) * sizeof(*left));
        n %= divisor;
        divisor /= count > 1 ? count - 1 : 1;
        if (divisor == 0)
            divisor = 1;
    }
}

static void any_order_of_release(struct uva__case_run *run)
{
    for (int n = 0; n < 24; n++)
        release_in_order(run, n);
}

/* State shared by the threads that extract. */
struct turns {
    struct uva__recording_consumer *consumer;
    struct uva__atomic64 next;
};

/* Runs on each thread: extracts the next task until all are extracted. */
static void thread_barrier_extracts(void *ctx)
{
    struct turns *turns = ctx;
    uint64_t turn;

    while ((turn = uva__atomic64_add(&turns->next, 1)) < HELD)
        (void)uva__recording_consumer_extract(
            turns->consumer, (int64_t)(turn * 37 % HELD), turn % 5 != 0);
}

static void extraction_in_any_order(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct turns turns = {0};

    if (!arrays_play(&session, run, HELD, UVA__TAKE_LATER))
        return;
    turns.consumer = session.consumer;
    uva__thread_barrier_run(run, 8, thread_barrier_extracts, &turns);
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
    if (session.consumer->now.failed > 0)
        uva__case_run_fail(run, "AT-11: an extraction failed");
}

static void thread_barrier_releases(void *ctx)
{
    struct turns *turns = ctx;
    uint64_t turn;

    while ((turn = uva__atomic64_add(&turns->next, 1)) < HELD)
        uva__recording_consumer_release_array(turns->consumer, (int64_t)turn);
}

static void release_on_any_thread(struct uva__case_run *run)
{
    struct uva__producer_session session;
    struct turns turns = {0};

    if (!arrays_play(&session, run, HELD, UVA__TAKE_INSIDE))
        return;
    turns.consumer = session.consumer;
    uva__thread_barrier_run(run, 4, thread_barrier_releases, &turns);
    uva__producer_session_settle(&session);
}

static void action_release(void *ctx)
{
    uva__recording_consumer_release_array(ctx, 0);
}

/* In the third task: releases the first array here, the second on another
 * thread. */
static void release_inside(struct uva__recording_consumer *consumer,
                           int64_t ordinal)
{
    if (ordinal == 2)
        uva__thread_barrier_run(consumer->run, 1, action_release, consumer);
    else if (ordinal > 2)
        uva__recording_consumer_release_array(consumer, ordinal - 2);
}

static void release_waits_for_no_callback(struct uva__case_run *run)
{
    const struct uva__recording_consumer_manner manner = {
        .first = 2, .each = 1, .keep_arrays = true, .on_task = release_inside};
    struct uva__producer_session session;

    if (!uva__producer_session_open(&session, run, UVA_SUBJECT_WHOLE, 8, 0,
                                    &manner))
        return;
    uva__producer_session_await_release(&session);
    uva__producer_session_settle(&session);
}

/* ---- the table ---------------------------------------------------------- */

static const struct uva__tck_case CASES[] = {
    {"required_DA07_a_cpu_array_is_a_plain_array", a_cpu_array_is_a_plain_array,
     0, NULL},
    {"required_DA14_extraction_writes_to_any_address",
     extraction_writes_anywhere, 0, NULL},
    {"required_DA17_an_array_may_be_moved", an_array_may_be_moved, 0, NULL},
    {"required_LC08_release_works_wherever_the_struct_lies",
     an_array_may_be_moved, 0, NULL},
    {"required_LC05_release_releases_the_children", release_walks_to_children,
     0, NULL},
    {"required_LC10_a_child_may_be_moved_out", a_child_may_be_moved_out, 0,
     NULL},
    {"required_LC12_arrays_and_schema_are_released_in_any_order",
     any_order_of_release, 0, NULL},
    {"required_AT11_tasks_are_extracted_in_any_order_by_many_threads",
     extraction_in_any_order, 0, NULL},
    {"required_TH07_arrays_are_released_on_any_thread", release_on_any_thread,
     0, NULL},
    {"required_LC24_release_of_an_array_waits_for_no_callback",
     release_waits_for_no_callback, 0, NULL},
};

const struct uva__tck_table uva__producer_array_cases = {
    CASES, sizeof(CASES) / sizeof(*CASES)};
