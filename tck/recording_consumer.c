/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the recording consumer.
 *
 * Happy path:  on_schema: checked, the schema copied and released, the first
 *              request made -> on_next_task: checked, the task copied and
 *              extracted, one more requested -> NULL -> release.
 * What can fail: the producer; that is a breach or the verdict.
 * On cancel:   it is called where the manner requires it; tasks that still
 *              arrive are extracted as before.
 *
 * The checks are in sentinel.h, which keeps the state under the lock. */
#define _GNU_SOURCE
#include "tck/recording_consumer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tck/checker.h"
#include "tck/producer_rules.h"
#include "tck/expected_data.h"
#include "uvarrow/arrow.h"

/* ---- calls into the producer -------------------------------------------- */

void uva__probe_request(struct uva__probe *probe, int64_t n)
{
    const int slot = uva__sentinel_call(probe, UVA__CALL_REQUEST, n);

    if (slot < 0)
        return; /* the stream is over. Clause: AP-24. */
    probe->producer->request(probe->producer, n);
    uva__sentinel_back(probe, slot);
}

void uva__probe_cancel(struct uva__probe *probe)
{
    const int slot = uva__sentinel_call(probe, UVA__CALL_CANCEL, 0);

    if (slot < 0)
        return;
    probe->producer->cancel(probe->producer);
    uva__sentinel_back(probe, slot);
}

/* Checks the array of an extraction that returned 0. */
static void probe_receive(struct uva__probe *probe, int64_t ordinal,
                          struct ArrowDeviceArray *array)
{
    struct uva__trial *trial = probe->trial;
    struct uva__probe_task *task = &probe->tasks[ordinal];

    if (array->array.release == NULL ||
        uva__specimen_is_filled(&array->array.release, sizeof(void *))) {
        uva__trial_breach(trial, "AT-05",
                          "extraction returned 0 and gave no live "
                          "array");
        return;
    }
    if (probe->schema.release != NULL)
        uva__checker_look(trial, &probe->schema, array);
    if (!uva__specimen_check_array(trial, array, ordinal, "AT-15", "AT-17")) {
        uva__trial_breach(trial, "AH-30", "a batch does not fit the schema");
        array->array.release(&array->array);
    } else if (probe->manner.keep_arrays) {
        task->array = *array;
        task->live = true;
    } else {
        uva__specimen_release_array(trial, array, ordinal);
    }
}

/* Checks what a failed extraction left behind. */
static void probe_receive_failure(struct uva__probe *probe,
                                  const struct ArrowDeviceArray *array)
{
    /* A checked run puts a trap there for a consumer that releases it
     * anyway. */
    if (!probe->trial->checked && array->array.release != NULL &&
        !uva__specimen_is_filled(&array->array.release, sizeof(void *)))
        uva__trial_breach(probe->trial, "AT-07",
                          "a failed extraction left an array that looks live");
}

int uva__probe_extract(struct uva__probe *probe, int64_t ordinal, bool wanted)
{
    struct uva__probe_task *task = &probe->tasks[ordinal];
    struct ArrowDeviceArray array;
    struct ArrowAsyncTask copy = task->copy; /* any copy works (AT-12) */
    int64_t began_ms;
    int slot;

    task->taken = true;
    uva__specimen_fill(&array, sizeof(array));
    slot = uva__sentinel_call(probe, UVA__CALL_EXTRACT, ordinal);
    began_ms = uva__trial_now_ms();
    task->code = copy.extract_data(&copy, wanted ? &array : NULL);
    if (uva__trial_now_ms() - began_ms > 500)
        uva__trial_breach(probe->trial, "AT-09",
                          "an extraction took %" PRId64 " ms",
                          uva__trial_now_ms() - began_ms);
    uva__sentinel_back(probe, slot);
    if (wanted && task->code == 0)
        probe_receive(probe, ordinal, &array);
    else if (wanted)
        probe_receive_failure(probe, &array);
    else if (task->code != 0)
        uva__trial_breach(probe->trial, "AT-04",
                          "extraction to NULL returned %d", task->code);
    uva__sentinel_extracted(probe, task->code);
    return task->code;
}

void uva__probe_let_go(struct uva__probe *probe, int64_t ordinal)
{
    struct uva__probe_task *task = &probe->tasks[ordinal];

    if (!task->live)
        return;
    task->live = false;
    uva__specimen_release_array(probe->trial, &task->array, ordinal);
}

/* ---- on another thread -------------------------------------------------- */

/* A call that another thread makes. */
struct errand {
    struct uva__probe *probe;
    enum uva__probe_call what;
    int64_t n;
};

static void *errand_run(void *ctx)
{
    struct errand *errand = ctx;

    if (errand->what == UVA__CALL_REQUEST)
        uva__probe_request(errand->probe, errand->n);
    else if (errand->what == UVA__CALL_CANCEL)
        uva__probe_cancel(errand->probe);
    else
        (void)uva__probe_extract(errand->probe, errand->n, true);
    uva__sentinel_errand(errand->probe, -1);
    free(errand);
    return NULL;
}

static void probe_send(struct uva__probe *probe, enum uva__probe_call what,
                       int64_t n)
{
    struct errand *errand = uva__trial_alloc(probe->trial, sizeof(*errand));

    *errand = (struct errand){.probe = probe, .what = what, .n = n};
    uva__sentinel_errand(probe, 1);
    uva__trial_thread(probe->trial, errand_run, errand);
}

/* ---- what a manner requires --------------------------------------------- */

static void probe_ask(struct uva__probe *probe, int64_t n)
{
    if (n == 0)
        return;
    if (probe->manner.ask_around)
        probe_send(probe, UVA__CALL_REQUEST, n);
    else
        uva__probe_request(probe, n);
}

static void probe_stop(struct uva__probe *probe)
{
    if (probe->manner.ask_around)
        probe_send(probe, UVA__CALL_CANCEL, 0);
    else
        uva__probe_cancel(probe);
}

static void probe_linger(const struct uva__probe *probe)
{
    const struct timespec time = {.tv_nsec = probe->manner.linger_ms * 1000000};

    if (probe->manner.linger_ms > 0)
        (void)nanosleep(&time, NULL);
}

/* Waits until calls of other threads are over, before the last callbacks
 * return. Clause: TH-10. */
static void probe_drain(struct uva__probe *probe)
{
    uva__trial_await(probe->trial, uva__sentinel_is_calm, probe,
                     "the return of a request or cancel");
}

static void probe_take(struct uva__probe *probe, int64_t ordinal)
{
    switch (probe->manner.take) {
    case UVA__TAKE_INSIDE:
        (void)uva__probe_extract(probe, ordinal, true);
        break;
    case UVA__TAKE_NOTHING:
        (void)uva__probe_extract(probe, ordinal, false);
        break;
    case UVA__TAKE_ELSEWHERE:
        probe_send(probe, UVA__CALL_EXTRACT, ordinal);
        break;
    case UVA__TAKE_LATER:
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

static struct uva__probe *probe_of(struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

/* Checks the schema and keeps, copies or leaves it as the manner requires. */
static void probe_read_schema(struct uva__probe *probe,
                              struct ArrowSchema *schema)
{
    uva__specimen_check_schema(probe->trial, schema, "AH-30");
    if (probe->manner.keep_schema) {
        uva_schema_move(schema, &probe->schema);
        return;
    }
    if (uva_schema_copy(schema, &probe->schema) != 0)
        uva__trial_fail(probe->trial, "the schema cannot be copied");
    if (probe->manner.leave_schema)
        return;
    schema->release(schema);
    if (schema->release != NULL)
        uva__trial_breach(probe->trial, "LC-07",
                          "release left a schema's release set");
}

static int probe_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    struct uva__probe *probe = probe_of(self);
    int code = 0;

    uva__sentinel_enter(probe, self, 'S', 0);
    uva__sentinel_meet(probe, self->producer);
    if (schema == NULL || schema->release == NULL)
        uva__trial_breach(probe->trial, "AH-07", "the schema is %s",
                          schema == NULL ? "NULL" : "released");
    else
        probe_read_schema(probe, schema);
    probe_linger(probe);
    if (probe->manner.cancel_at == UVA__PROBE_IN_SCHEMA)
        probe_stop(probe);
    if (probe->manner.refuse_at == UVA__PROBE_IN_SCHEMA)
        code = EINVAL;
    else
        probe_ask(probe, probe->manner.first);
    uva__sentinel_leave(probe, code != 0);
    return code;
}

/* Handles a task that has arrived; returns the callback's return code. */
static int probe_get_task(struct uva__probe *probe, struct ArrowAsyncTask *task,
                          int64_t ordinal)
{
    const struct uva__probe_manner *manner = &probe->manner;

    if (task->extract_data == NULL) {
        uva__trial_breach(probe->trial, "AB-17", "extract_data is NULL");
        uva__trial_breach(probe->trial, "AT-01", "extract_data is NULL");
        return 0;
    }
    probe->tasks[ordinal].copy = *task;
    if (manner->on_task != NULL)
        manner->on_task(probe, ordinal);
    if (manner->refuse_at == ordinal + 1) {
        if (manner->refuse_taken)
            (void)uva__probe_extract(probe, ordinal, true);
        probe->tasks[ordinal].taken = true; /* handed back: LC-18 */
        return EINVAL;
    }
    probe_take(probe, ordinal);
    if (manner->scribble)
        uva__specimen_fill(task, sizeof(*task));
    if (manner->cancel_at == ordinal + 1)
        probe_stop(probe);
    probe_ask(probe, manner->each);
    return 0;
}

static int probe_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct uva__probe *probe = probe_of(self);
    const int64_t ordinal = uva__probe_tasks(probe);
    int code = 0;

    uva__sentinel_enter(probe, self, task != NULL ? 'T' : 'N', 0);
    uva__sentinel_tag(probe, metadata, "AH-13");
    if (task != NULL && ordinal >= UVA__PROBE_TASKS)
        uva__trial_fail(probe->trial, "more tasks than can be counted");
    probe_linger(probe);
    if (task != NULL)
        code = probe_get_task(probe, task, ordinal);
    else
        probe_drain(probe);
    uva__sentinel_leave(probe, code != 0);
    return code;
}

static void probe_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    struct uva__probe *probe = probe_of(self);

    uva__sentinel_enter(probe, self, 'E', code);
    uva__sentinel_hear(probe, code, message);
    uva__sentinel_tag(probe, metadata, "ER-08");
    probe_linger(probe);
    probe_drain(probe);
    uva__sentinel_leave(probe, false);
}

static void probe_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__probe *probe = probe_of(self);

    uva__sentinel_enter(probe, self, 'R', 0);
    probe_linger(probe);
    probe_drain(probe);
    if (probe->manner.vanish)
        (void)munmap(self, (size_t)sysconf(_SC_PAGESIZE));
    uva__sentinel_leave(probe, false);
}

/* ---- making one and querying it ----------------------------------------- */

struct uva__probe *uva__probe_new(struct uva__trial *trial,
                                  const struct uva__probe_manner *manner)
{
    struct uva__probe *probe = uva__trial_alloc(trial, sizeof(*probe));
    void *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        uva__trial_fail(trial, "out of memory");
    probe->trial = trial;
    probe->manner = *manner;
    probe->now.tag_size = -1;
    probe->tasks =
        uva__trial_alloc(trial, UVA__PROBE_TASKS * sizeof(*probe->tasks));
    probe->handler = page;
    *probe->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = probe_on_schema,
        .on_next_task = probe_on_next_task,
        .on_error = probe_on_error,
        .release = probe_release,
        .private_data = probe};
    uva__sentinel_init(probe);
    return probe;
}

bool uva__probe_is_released(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.releases > 0 && probe->now.inside == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__probe_is_told(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.releases + probe->now.errors + probe->now.ends > 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__probe_has_schema(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool has;

    uva__lock_take(&probe->lock);
    has = probe->now.open;
    uva__lock_drop(&probe->lock);
    return has;
}

bool uva__probe_is_back(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.inside == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__probe_is_settled(void *ctx)
{
    struct uva__probe *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.running == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

int64_t uva__probe_tasks(struct uva__probe *probe)
{
    int64_t tasks;

    uva__lock_take(&probe->lock);
    tasks = probe->now.tasks;
    uva__lock_drop(&probe->lock);
    return tasks;
}

void uva__probe_trace(struct uva__probe *probe, char *to)
{
    uva__lock_take(&probe->lock);
    memcpy(to, probe->now.trace, sizeof(probe->now.trace));
    uva__lock_drop(&probe->lock);
}
