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
#include "tck/expected_data.h"
#include "tck/producer_rules.h"
#include "uvarrow/arrow.h"

/* ---- calls into the producer -------------------------------------------- */

void uva__recording_consumer_request(struct uva__recording_consumer *probe,
                                     int64_t n)
{
    const int slot = uva__producer_rules_call(probe, UVA__CALL_REQUEST, n);

    if (slot < 0)
        return; /* the stream is over. Clause: AP-24. */
    probe->producer->request(probe->producer, n);
    uva__producer_rules_back(probe, slot);
}

void uva__recording_consumer_cancel(struct uva__recording_consumer *probe)
{
    const int slot = uva__producer_rules_call(probe, UVA__CALL_CANCEL, 0);

    if (slot < 0)
        return;
    probe->producer->cancel(probe->producer);
    uva__producer_rules_back(probe, slot);
}

/* Checks the array of an extraction that returned 0. */
static void recording_consumer_receive(struct uva__recording_consumer *probe,
                                       int64_t ordinal,
                                       struct ArrowDeviceArray *array)
{
    struct uva__case_run *run = probe->run;
    struct uva__recording_consumer_task *task = &probe->tasks[ordinal];

    if (array->array.release == NULL ||
        uva__expected_data_is_filled(&array->array.release, sizeof(void *))) {
        uva__case_run_breach(run, "AT-05",
                             "extraction returned 0 and gave no live "
                             "array");
        return;
    }
    if (probe->schema.release != NULL)
        uva__checker_inspect(run, &probe->schema, array);
    if (!uva__expected_data_check_array(run, array, ordinal, "AT-15",
                                        "AT-17")) {
        uva__case_run_breach(run, "AH-30", "a batch does not fit the schema");
        array->array.release(&array->array);
    } else if (probe->manner.keep_arrays) {
        task->array = *array;
        task->live = true;
    } else {
        uva__expected_data_release_array(run, array, ordinal);
    }
}

/* Checks what a failed extraction left behind. */
static void
recording_consumer_receive_failure(struct uva__recording_consumer *probe,
                                   const struct ArrowDeviceArray *array)
{
    /* A checked run puts a trap there for a consumer that releases it
     * anyway. */
    if (!probe->run->checked && array->array.release != NULL &&
        !uva__expected_data_is_filled(&array->array.release, sizeof(void *)))
        uva__case_run_breach(
            probe->run, "AT-07",
            "a failed extraction left an array that looks live");
}

int uva__recording_consumer_extract(struct uva__recording_consumer *probe,
                                    int64_t ordinal, bool wanted)
{
    struct uva__recording_consumer_task *task = &probe->tasks[ordinal];
    struct ArrowDeviceArray array;
    struct ArrowAsyncTask copy = task->copy; /* any copy works (AT-12) */
    int64_t began_ms;
    int slot;

    task->taken = true;
    uva__expected_data_fill(&array, sizeof(array));
    slot = uva__producer_rules_call(probe, UVA__CALL_EXTRACT, ordinal);
    began_ms = uva__case_run_now_ms();
    task->code = copy.extract_data(&copy, wanted ? &array : NULL);
    if (uva__case_run_now_ms() - began_ms > 500)
        uva__case_run_breach(probe->run, "AT-09",
                             "an extraction took %" PRId64 " ms",
                             uva__case_run_now_ms() - began_ms);
    uva__producer_rules_back(probe, slot);
    if (wanted && task->code == 0)
        recording_consumer_receive(probe, ordinal, &array);
    else if (wanted)
        recording_consumer_receive_failure(probe, &array);
    else if (task->code != 0)
        uva__case_run_breach(probe->run, "AT-04",
                             "extraction to NULL returned %d", task->code);
    uva__producer_rules_extracted(probe, task->code);
    return task->code;
}

void uva__recording_consumer_release_array(
    struct uva__recording_consumer *probe, int64_t ordinal)
{
    struct uva__recording_consumer_task *task = &probe->tasks[ordinal];

    if (!task->live)
        return;
    task->live = false;
    uva__expected_data_release_array(probe->run, &task->array, ordinal);
}

/* ---- on another thread -------------------------------------------------- */

/* A call that another thread makes. */
struct job {
    struct uva__recording_consumer *probe;
    enum uva__recording_consumer_call what;
    int64_t n;
};

static void *job_run(void *ctx)
{
    struct job *job = ctx;

    if (job->what == UVA__CALL_REQUEST)
        uva__recording_consumer_request(job->probe, job->n);
    else if (job->what == UVA__CALL_CANCEL)
        uva__recording_consumer_cancel(job->probe);
    else
        (void)uva__recording_consumer_extract(job->probe, job->n, true);
    uva__producer_rules_count_job(job->probe, -1);
    free(job);
    return NULL;
}

static void recording_consumer_send(struct uva__recording_consumer *probe,
                                    enum uva__recording_consumer_call what,
                                    int64_t n)
{
    struct job *job = uva__case_run_alloc(probe->run, sizeof(*job));

    *job = (struct job){.probe = probe, .what = what, .n = n};
    uva__producer_rules_count_job(probe, 1);
    uva__case_run_thread(probe->run, job_run, job);
}

/* ---- what a manner requires --------------------------------------------- */

static void recording_consumer_ask(struct uva__recording_consumer *probe,
                                   int64_t n)
{
    if (n == 0)
        return;
    if (probe->manner.ask_around)
        recording_consumer_send(probe, UVA__CALL_REQUEST, n);
    else
        uva__recording_consumer_request(probe, n);
}

static void recording_consumer_stop(struct uva__recording_consumer *probe)
{
    if (probe->manner.ask_around)
        recording_consumer_send(probe, UVA__CALL_CANCEL, 0);
    else
        uva__recording_consumer_cancel(probe);
}

static void
recording_consumer_linger(const struct uva__recording_consumer *probe)
{
    const struct timespec time = {.tv_nsec = probe->manner.linger_ms * 1000000};

    if (probe->manner.linger_ms > 0)
        (void)nanosleep(&time, NULL);
}

/* Waits until calls of other threads are over, before the last callbacks
 * return. Clause: TH-10. */
static void recording_consumer_drain(struct uva__recording_consumer *probe)
{
    uva__case_run_await(probe->run, uva__producer_rules_is_calm, probe,
                        "the return of a request or cancel");
}

static void recording_consumer_take(struct uva__recording_consumer *probe,
                                    int64_t ordinal)
{
    switch (probe->manner.take) {
    case UVA__TAKE_INSIDE:
        (void)uva__recording_consumer_extract(probe, ordinal, true);
        break;
    case UVA__TAKE_NOTHING:
        (void)uva__recording_consumer_extract(probe, ordinal, false);
        break;
    case UVA__TAKE_ELSEWHERE:
        recording_consumer_send(probe, UVA__CALL_EXTRACT, ordinal);
        break;
    case UVA__TAKE_LATER:
        break;
    }
}

/* ---- callbacks ---------------------------------------------------------- */

static struct uva__recording_consumer *
recording_consumer_of(struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

/* Checks the schema and keeps, copies or leaves it as the manner requires. */
static void
recording_consumer_read_schema(struct uva__recording_consumer *probe,
                               struct ArrowSchema *schema)
{
    uva__expected_data_check_schema(probe->run, schema, "AH-30");
    if (probe->manner.keep_schema) {
        uva_schema_move(schema, &probe->schema);
        return;
    }
    if (uva_schema_copy(schema, &probe->schema) != 0)
        uva__case_run_fail(probe->run, "the schema cannot be copied");
    if (probe->manner.leave_schema)
        return;
    schema->release(schema);
    if (schema->release != NULL)
        uva__case_run_breach(probe->run, "LC-07",
                             "release left a schema's release set");
}

static int
recording_consumer_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct uva__recording_consumer *probe = recording_consumer_of(self);
    int code = 0;

    uva__producer_rules_enter(probe, self, 'S', 0);
    uva__producer_rules_first_see(probe, self->producer);
    if (schema == NULL || schema->release == NULL)
        uva__case_run_breach(probe->run, "AH-07", "the schema is %s",
                             schema == NULL ? "NULL" : "released");
    else
        recording_consumer_read_schema(probe, schema);
    recording_consumer_linger(probe);
    if (probe->manner.cancel_at == UVA__RECORDING_CONSUMER_IN_SCHEMA)
        recording_consumer_stop(probe);
    if (probe->manner.refuse_at == UVA__RECORDING_CONSUMER_IN_SCHEMA)
        code = EINVAL;
    else
        recording_consumer_ask(probe, probe->manner.first);
    uva__producer_rules_leave(probe, code != 0);
    return code;
}

/* Handles a task that has arrived; returns the callback's return code. */
static int recording_consumer_get_task(struct uva__recording_consumer *probe,
                                       struct ArrowAsyncTask *task,
                                       int64_t ordinal)
{
    const struct uva__recording_consumer_manner *manner = &probe->manner;

    if (task->extract_data == NULL) {
        uva__case_run_breach(probe->run, "AB-17", "extract_data is NULL");
        uva__case_run_breach(probe->run, "AT-01", "extract_data is NULL");
        return 0;
    }
    probe->tasks[ordinal].copy = *task;
    if (manner->on_task != NULL)
        manner->on_task(probe, ordinal);
    if (manner->refuse_at == ordinal + 1) {
        if (manner->refuse_taken)
            (void)uva__recording_consumer_extract(probe, ordinal, true);
        probe->tasks[ordinal].taken = true; /* handed back: LC-18 */
        return EINVAL;
    }
    recording_consumer_take(probe, ordinal);
    if (manner->scribble)
        uva__expected_data_fill(task, sizeof(*task));
    if (manner->cancel_at == ordinal + 1)
        recording_consumer_stop(probe);
    recording_consumer_ask(probe, manner->each);
    return 0;
}

static int
recording_consumer_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct uva__recording_consumer *probe = recording_consumer_of(self);
    const int64_t ordinal = uva__recording_consumer_tasks(probe);
    int code = 0;

    uva__producer_rules_enter(probe, self, task != NULL ? 'T' : 'N', 0);
    uva__producer_rules_tag(probe, metadata, "AH-13");
    if (task != NULL && ordinal >= UVA__RECORDING_CONSUMER_TASKS)
        uva__case_run_fail(probe->run, "more tasks than can be counted");
    recording_consumer_linger(probe);
    if (task != NULL)
        code = recording_consumer_get_task(probe, task, ordinal);
    else
        recording_consumer_drain(probe);
    uva__producer_rules_leave(probe, code != 0);
    return code;
}

static void
recording_consumer_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                            int code, const char *message, const char *metadata)
{
    struct uva__recording_consumer *probe = recording_consumer_of(self);

    uva__producer_rules_enter(probe, self, 'E', code);
    uva__producer_rules_error(probe, code, message);
    uva__producer_rules_tag(probe, metadata, "ER-08");
    recording_consumer_linger(probe);
    recording_consumer_drain(probe);
    uva__producer_rules_leave(probe, false);
}

static void
recording_consumer_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__recording_consumer *probe = recording_consumer_of(self);

    uva__producer_rules_enter(probe, self, 'R', 0);
    recording_consumer_linger(probe);
    recording_consumer_drain(probe);
    if (probe->manner.vanish)
        (void)munmap(self, (size_t)sysconf(_SC_PAGESIZE));
    uva__producer_rules_leave(probe, false);
}

/* ---- making one and querying it ----------------------------------------- */

struct uva__recording_consumer *
uva__recording_consumer_new(struct uva__case_run *run,
                            const struct uva__recording_consumer_manner *manner)
{
    struct uva__recording_consumer *probe =
        uva__case_run_alloc(run, sizeof(*probe));
    void *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        uva__case_run_fail(run, "out of memory");
    probe->run = run;
    probe->manner = *manner;
    probe->now.tag_size = -1;
    probe->tasks = uva__case_run_alloc(run, UVA__RECORDING_CONSUMER_TASKS *
                                                sizeof(*probe->tasks));
    probe->handler = page;
    *probe->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = recording_consumer_on_schema,
        .on_next_task = recording_consumer_on_next_task,
        .on_error = recording_consumer_on_error,
        .release = recording_consumer_release,
        .private_data = probe};
    uva__producer_rules_init(probe);
    return probe;
}

bool uva__recording_consumer_is_released(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.releases > 0 && probe->now.inside == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__recording_consumer_has_ended(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.releases + probe->now.errors + probe->now.ends > 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__recording_consumer_has_schema(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool has;

    uva__lock_take(&probe->lock);
    has = probe->now.open;
    uva__lock_drop(&probe->lock);
    return has;
}

bool uva__recording_consumer_is_back(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.inside == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

bool uva__recording_consumer_is_settled(void *ctx)
{
    struct uva__recording_consumer *probe = ctx;
    bool is;

    uva__lock_take(&probe->lock);
    is = probe->now.running == 0;
    uva__lock_drop(&probe->lock);
    return is;
}

int64_t uva__recording_consumer_tasks(struct uva__recording_consumer *probe)
{
    int64_t tasks;

    uva__lock_take(&probe->lock);
    tasks = probe->now.tasks;
    uva__lock_drop(&probe->lock);
    return tasks;
}

void uva__recording_consumer_trace(struct uva__recording_consumer *probe,
                                   char *to)
{
    uva__lock_take(&probe->lock);
    memcpy(to, probe->now.trace, sizeof(probe->now.trace));
    uva__lock_drop(&probe->lock);
}
