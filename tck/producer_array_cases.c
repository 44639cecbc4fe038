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
#include "tck/thread_barrier.h"
#include "tck/session.h"
#include "tck/expected_data.h"
#include "uvarrow/arrow.h"

enum { HELD = 64 };

/* Plays a stream of `batches`: to the end if tasks are kept, otherwise to
 * release. Returns false if the subject cannot. */
static bool arrays_play(struct uva__scene *scene, struct uva__trial *trial,
                        int64_t batches, enum uva__probe_take take)
{
    const struct uva__probe_manner manner = {.first = UVA__PROBE_ALL,
                                             .take = take,
                                             .keep_arrays = true,
                                             .keep_schema = true};

    if (!uva__scene_open(scene, trial, UVA_SUBJECT_WHOLE, batches, 0, &manner))
        return false;
    if (take == UVA__TAKE_LATER)
        uva__trial_await(trial, uva__probe_is_told, scene->probe, "the end");
    else
        uva__scene_await_release(scene);
    if (uva__probe_tasks(scene->probe) != batches)
        uva__trial_fail(trial, "%" PRId64 " of %" PRId64 " batches came",
                        uva__probe_tasks(scene->probe), batches);
    return true;
}

/* Takes an array from the recording consumer. */
static struct ArrowDeviceArray arrays_take(struct uva__scene *scene, int n)
{
    struct uva__probe_task *task = &scene->probe->tasks[n];

    if (!task->live)
        uva__trial_fail(scene->trial, "array %d is not there", n);
    task->live = false;
    return task->array;
}

/* ---- moved -------------------------------------------------------------- */

static void an_array_may_be_moved(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct ArrowDeviceArray first;
    struct ArrowDeviceArray *places =
        uva__trial_alloc(trial, 3 * sizeof(*places));

    if (!arrays_play(&scene, trial, 1, UVA__TAKE_INSIDE))
        return;
    first = arrays_take(&scene, 0);
    for (int i = 0; i < 3; i++) {
        struct ArrowDeviceArray *from = i == 0 ? &first : &places[i - 1];

        memcpy(&places[i], from, sizeof(*from));
        uva__specimen_fill(from, sizeof(*from));
        if (!uva__specimen_is(&places[i].array, 0))
            uva__trial_fail(trial, "%s: the values changed by a move",
                            trial->clause);
    }
    uva__specimen_release_array(trial, &places[2], 0);
    uva__scene_settle(&scene);
}

static void a_cpu_array_is_a_plain_array(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct ArrowDeviceArray device;
    struct ArrowArray plain;

    if (!arrays_play(&scene, trial, 1, UVA__TAKE_INSIDE))
        return;
    device = arrays_take(&scene, 0);
    if (uva_array_to_cpu(&device, &plain) != 0)
        uva__trial_fail(trial, "DA-07: it is not plain CPU memory");
    uva__specimen_fill(&device, sizeof(device));
    if (!uva__specimen_is(&plain, 0))
        uva__trial_fail(trial, "DA-07: other values");
    plain.release(&plain);
    if (plain.release != NULL)
        uva__trial_fail(trial, "DA-07: release left release set");
    uva__scene_settle(&scene);
}

/* Extracts to three places: the stack, the heap, and between other arrays. */
static void extraction_writes_anywhere(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct ArrowDeviceArray here;
    struct ArrowDeviceArray *row = uva__trial_alloc(trial, 4 * sizeof(*row));
    struct ArrowDeviceArray *places[] = {&here, &row[0], &row[2]};

    if (!arrays_play(&scene, trial, 3, UVA__TAKE_LATER))
        return;
    uva__specimen_fill(row, 4 * sizeof(*row));
    for (int i = 0; i < 3; i++) {
        struct uva__probe_task *task = &scene.probe->tasks[i];

        task->taken = true;
        if (uva_task_extract(&task->copy, places[i]) != 0 ||
            !uva__specimen_is(&places[i]->array, i))
            uva__trial_fail(trial, "DA-14: extraction to place %d failed", i);
    }
    if (!uva__specimen_is_filled(&row[1], sizeof(*row)) ||
        !uva__specimen_is_filled(&row[3], sizeof(*row)))
        uva__trial_fail(trial, "DA-14: it wrote beside the array");
    for (int i = 0; i < 3; i++)
        uva__specimen_release_array(trial, places[i], i);
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
}

static void a_child_may_be_moved_out(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct ArrowDeviceArray parent;
    struct ArrowArray n;
    int64_t value;

    if (!arrays_play(&scene, trial, 2, UVA__TAKE_INSIDE))
        return;
    parent = arrays_take(&scene, 1);
    n = *parent.array.children[0];
    parent.array.children[0]->release = NULL;
    parent.array.release(&parent.array);
    if (n.n_buffers != 2 || n.length != UVA_SUBJECT_ROWS)
        uva__trial_fail(trial,
                        "%s: the child changed when its parent was "
                        "released",
                        trial->clause);
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++) {
        memcpy(&value, (const int64_t *)n.buffers[1] + n.offset + row,
               sizeof(value));
        if (value != UVA_SUBJECT_ROWS + row)
            uva__trial_fail(trial, "%s: the values went with the parent",
                            trial->clause);
    }
    n.release(&n);
    if (n.release != NULL)
        uva__trial_fail(trial, "LC-07: the child's release left release set");
    uva__scene_settle(&scene);
    if (trial->subject.count != NULL &&
        trial->subject.count(UVA_SUBJECT_LIVE) != UVA_SUBJECT_CANNOT)
        uva__scene_check_live(trial);
}

/* A release must also mark the children as released. */
static void release_walks_to_children(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct ArrowDeviceArray array;
    struct ArrowArray *children[1];

    if (!arrays_play(&scene, trial, 1, UVA__TAKE_INSIDE))
        return;
    array = arrays_take(&scene, 0);
    children[0] = array.array.children[0];
    if (children[0]->release == NULL)
        uva__trial_fail(trial, "LC-05: the child has no release of its own");
    array.array.release(&array.array);
    uva__scene_settle(&scene);
    uva__scene_check_live(trial);
}

/* ---- orders and threads ------------------------------------------------- */

/* Releases four things, three arrays and the schema, after the stream is gone,
 * in permutation `n` (0 to 23). */
static void release_in_order(struct uva__trial *trial, int n)
{
    struct uva__scene *scene = uva__trial_alloc(trial, sizeof(*scene));
    int left[] = {0, 1, 2, 3};
    int count = 4;

    if (!arrays_play(scene, trial, 3, UVA__TAKE_INSIDE))
        return;
    for (int divisor = 6; count > 0; count--) {
        const int pick = n / divisor;
        const int thing = left[pick];

        if (thing == 3)
            scene->probe->schema.release(&scene->probe->schema);
        else
            uva__probe_let_go(scene->probe, thing);
        memmove(&left[pick], &left[pick + 1],
                (size_t)(count - pick - 1) * sizeof(*left));
        n %= divisor;
        divisor /= count > 1 ? count - 1 : 1;
        if (divisor == 0)
            divisor = 1;
    }
}

static void any_order_of_release(struct uva__trial *trial)
{
    for (int n = 0; n < 24; n++)
        release_in_order(trial, n);
}

/* State shared by the threads that extract. */
struct turns {
    struct uva__probe *probe;
    struct uva__word next;
};

/* Runs on each thread: extracts the next task until none is left. */
static void crowd_extracts(void *ctx)
{
    struct turns *turns = ctx;
    uint64_t turn;

    while ((turn = uva__word_add(&turns->next, 1)) < HELD)
        (void)uva__probe_extract(turns->probe, (int64_t)(turn * 37 % HELD),
                                 turn % 5 != 0);
}

static void extraction_in_any_order(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct turns turns = {0};

    if (!arrays_play(&scene, trial, HELD, UVA__TAKE_LATER))
        return;
    turns.probe = scene.probe;
    uva__crowd_run(trial, 8, crowd_extracts, &turns);
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
    if (scene.probe->now.failed > 0)
        uva__trial_fail(trial, "AT-11: an extraction failed");
}

static void crowd_releases(void *ctx)
{
    struct turns *turns = ctx;
    uint64_t turn;

    while ((turn = uva__word_add(&turns->next, 1)) < HELD)
        uva__probe_let_go(turns->probe, (int64_t)turn);
}

static void release_on_any_thread(struct uva__trial *trial)
{
    struct uva__scene scene;
    struct turns turns = {0};

    if (!arrays_play(&scene, trial, HELD, UVA__TAKE_INSIDE))
        return;
    turns.probe = scene.probe;
    uva__crowd_run(trial, 4, crowd_releases, &turns);
    uva__scene_settle(&scene);
}

static void deed_let_go(void *ctx)
{
    uva__probe_let_go(ctx, 0);
}

/* In the third task: releases the first array here, the second on another
 * thread. */
static void let_go_inside(struct uva__probe *probe, int64_t ordinal)
{
    if (ordinal == 2)
        uva__crowd_run(probe->trial, 1, deed_let_go, probe);
    else if (ordinal > 2)
        uva__probe_let_go(probe, ordinal - 2);
}

static void release_waits_for_no_callback(struct uva__trial *trial)
{
    const struct uva__probe_manner manner = {
        .first = 2, .each = 1, .keep_arrays = true, .on_task = let_go_inside};
    struct uva__scene scene;

    if (!uva__scene_open(&scene, trial, UVA_SUBJECT_WHOLE, 8, 0, &manner))
        return;
    uva__scene_await_release(&scene);
    uva__scene_settle(&scene);
}

/* ---- the table ---------------------------------------------------------- */

static const struct uva__tck_case CASES[] = {
    {"required_DA07_a_cpu_array_is_a_plain_array", a_cpu_array_is_a_plain_array,
     0, NULL},
    {"required_DA14_extraction_writes_wherever_it_is_told",
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

const struct uva__tck_table uva__producer_arrays = {CASES, sizeof(CASES) /
                                                               sizeof(*CASES)};
