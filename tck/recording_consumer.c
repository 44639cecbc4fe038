/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of the recording consumer.
 *
 * Happy path:  on_schema: checked, the schema copied and released, the first
 *              request made -> on_next_task: checked, the task copied and
 *              extracted, one more requested -> NULL -> release.
 * Failures: the producer; that is a breach or the verdict. On cancel: it is
 * called where the manner requires it; tasks that still
 *              arrive are extracted as before.
 *
 * The checks are in producer_rules.h, which keeps the state under the lock. */
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

void uva__recording_consumer_request(struct uva__recording_consumer *consumer,
                                     int64_t n)
{
    const int slot = uva__producer_rules_call(consumer, UVA__CALL_REQUEST, n);

    if (slot < 0)
        return; /* the stream is over. Clauses:  AP-24. */
    consumer->producer->request(consumer->producer, n);
    uva__producer_rules_back(consumer, slot);
}

void uva__recording_consumer_cancel(struct uva__recording_consumer *consumer)
{
    const int slot = uva__producer_rules_call(consumer, UVA__CALL_CANCEL, 0);

    if (slot < 0)
        return;
    consumer->producer->cancel(consumer->producer);
    uva__producer_rules_back(consumer, slot);
}

/* Checks the array of an extraction that returned 0. */
static void recording_consumer_receive(struct uva__recording_consumer *consumer,
                                       int64_t ordinal,
                                       struct ArrowDeviceArray *array)
{
    struct uva__case_run *run = consumer->run;
    struct uva__recording_consumer_task *task = &consumer->tasks[ordinal];

    if (array->array.release == NULL ||
        uva__expected_data_is_filled(&array->array.release, sizeof(void *))) {
        uva__case_run_breach(run, "AT-05",
                             "extraction returned 0 and gave no live "
                             "array");
        return;
    }
    if (consumer->schema.release != NULL)
        uva__checker_check_array(run, &consumer->schema, array);
    if (!uva__expected_data_check_array(run, array, ordinal, "AT-15",
                                        "AT-17")) {
        uva__case_run_breach(run, "AH-30", "a batch does not fit the schema");
        array->array.release(&array->array);
    } else if (consumer->manner.keep_arrays) {
        task->array = *array;
        task->live = true;
    } else {
        uva__expected_data_release_array(run, array, ordinal);
    }
}

/* Checks the output of a failed extraction. */
static void
recording_consumer_receive_failure(struct uva__recording_consumer *consumer,
                                   const struct ArrowDeviceArray *array)
{
    /* A checked run puts a trap there for a consumer that releases it
     * anyway. */
    if (!consumer->run->checked && array->array.release != NULL &&
        !uva__expected_data_is_filled(&array->array.release, sizeof(void *)))
        uva__case_run_breach(
            consumer->run, "AT-07",
            "a failed extraction left an array that looks live");
}

int uva__recording_consumer_extract(struct uva__recording_consumer *consumer,
                                    int64_t ordinal, bool wanted)
{
    struct uva__recording_consumer_task *task = &consumer->tasks[ordinal];
    struct ArrowDeviceArray array;
    struct ArrowAsyncTask copy =
        task->copy; /* any copy works. Clauses: AT-12. */
    int64_t began_ms;
    int slot;

    task->taken = true;
    uva__expected_data_fill(&array, sizeof(array));
    slot = uva__producer_rules_call(consumer, UVA__CALL_EXTRACT, ordinal);
    began_ms = uva__case_run_now_ms();
    task->code = copy.extract_data(&copy, wanted ? &array : NULL);
    if (uva__case_run_now_ms() - began_ms > 500)
        uva__case_run_breach(consumer->run, "AT-09",
                             "an extraction took %" PRId64 " ms",
                             uva__case_run_now_ms() - began_ms);
    if (task->code != 0) /* the producer may report it at once */
        uva__producer_rules_extracted(consumer, task->code);
    uva__producer_rules_back(consumer, slot);
    if (wanted && task->code == 0)
        recording_consumer_receive(consumer, ordinal, &array);
    else if (wanted)
        recording_consumer_receive_failure(consumer, &array);
    else if (task->code != 0)
        uva__case_run_breach(consumer->run, "AT-04",
                             "extraction to NULL returned %d", task->code);
    if (task->code == 0)
        uva__producer_rules_extracted(consumer, 0);
    return task->code;
}

void uva__recording_consumer_release_array(
    struct uva__recording_consumer *consumer, int64_t ordinal)
{
    struct uva__recording_consumer_task *task = &consumer->tasks[ordinal];

    if (!task->live)
        return;
    task->live = false;
    uva__expected_data_release_array(consumer->run, &task->array, ordinal);
}

/* ---- on another thread -------------------------------------------------- */

/* A call that another thread makes. */
struct job {
    struct uva__recording_consumer *consumer;
    enum uva__recording_consumer_call what;
    int64_t n;
};

static void *job_run(void *ctx)
{
    struct job *job = ctx;

    if (job->what == UVA__CALL_REQUEST)
        uva__recording_consumer_request(job->consumer, job->n);
    else if (job->what == UVA__CALL_CANCEL)
        uva__recording_consumer_cancel(job->consumer);
    else
        (void)uva__recording_consumer_extract(job->consumer, job->n, true);
    uva__producer_rules_count_job(job->consumer, -1);
    free(job);
    return NULL;
}

static void recording_consumer_send(struct uva__recording_consumer *consumer,
                                    enum uva__recording_consumer_call what,
                                    int64_t n)
{
    struct job *job = uva__case_run_alloc(consumer->run, sizeof(*job));

    *job = (struct job){.consumer = consumer, .what = what, .n = n};
    uva__producer_rules_count_job(consumer, 1);
    uva__case_run_thread(consumer->run, job_run, job);
}

/* ---- the duties of a manner --------------------------------------------- */

static void
recording_consumer_count_request(struct uva__recording_consumer *consumer,
                                 int64_t n)
{
    if (n == 0)
        return;
    if (consumer->manner.request_by_thread)
        recording_consumer_send(consumer, UVA__CALL_REQUEST, n);
    else
        uva__recording_consumer_request(consumer, n);
}

static void recording_consumer_stop(struct uva__recording_consumer *consumer)
{
    if (consumer->manner.request_by_thread)
        recording_consumer_send(consumer, UVA__CALL_CANCEL, 0);
    else
        uva__recording_consumer_cancel(consumer);
}

static void
recording_consumer_linger(const struct uva__recording_consumer *consumer)
{
    const struct timespec time = {.tv_nsec =
                                      consumer->manner.linger_ms * 1000000};

    if (consumer->manner.linger_ms > 0)
        (void)nanosleep(&time, NULL);
}

/* Waits until calls of other threads are over, before the last callbacks
 * return. Clauses:  TH-10. */
static void recording_consumer_drain(struct uva__recording_consumer *consumer)
{
    uva__case_run_await(consumer->run, uva__producer_rules_is_idle, consumer,
                        "the return of a request or cancel");
}

static void recording_consumer_take(struct uva__recording_consumer *consumer,
                                    int64_t ordinal)
{
    switch (consumer->manner.take) {
    case UVA__TAKE_INSIDE:
        (void)uva__recording_consumer_extract(consumer, ordinal, true);
        break;
    case UVA__TAKE_NOTHING:
        (void)uva__recording_consumer_extract(consumer, ordinal, false);
        break;
    case UVA__TAKE_ELSEWHERE:
        recording_consumer_send(consumer, UVA__CALL_EXTRACT, ordinal);
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
recording_consumer_read_schema(struct uva__recording_consumer *consumer,
                               struct ArrowSchema *schema)
{
    uva__expected_data_check_schema(consumer->run, schema, "AH-30");
    if (consumer->manner.schema == UVA__SCHEMA_KEEP) {
        uva_schema_move(schema, &consumer->schema);
        return;
    }
    if (uva_schema_copy(schema, &consumer->schema) != 0)
        uva__case_run_fail(consumer->run, "the schema cannot be copied");
    if (consumer->manner.schema == UVA__SCHEMA_LEAVE)
        return;
    schema->release(schema);
    if (schema->release != NULL)
        uva__case_run_breach(consumer->run, "LC-07",
                             "release left a schema's release set");
}

static int
recording_consumer_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct uva__recording_consumer *consumer = recording_consumer_of(self);
    int code = 0;

    uva__producer_rules_enter(consumer, self, 'S', 0);
    uva__producer_rules_set_producer(consumer, self->producer);
    if (schema == NULL || schema->release == NULL)
        uva__case_run_breach(consumer->run, "AH-07", "the schema is %s",
                             schema == NULL ? "NULL" : "released");
    else
        recording_consumer_read_schema(consumer, schema);
    recording_consumer_linger(consumer);
    if (consumer->manner.cancel_at == UVA__RECORDING_CONSUMER_IN_SCHEMA)
        recording_consumer_stop(consumer);
    if (consumer->manner.refuse_at == UVA__RECORDING_CONSUMER_IN_SCHEMA)
        code = EINVAL;
    else
        recording_consumer_count_request(consumer, consumer->manner.first);
    if (consumer->manner.on_schema != NULL)
        consumer->manner.on_schema(consumer);
    uva__producer_rules_leave(consumer, code != 0);
    return code;
}

/* Handles a task that has arrived; returns the callback's return code. */
static int recording_consumer_get_task(struct uva__recording_consumer *consumer,
                                       struct ArrowAsyncTask *task,
                                       int64_t ordinal)
{
    const struct uva__recording_consumer_manner *manner = &consumer->manner;

    if (task->extract_data == NULL) {
        uva__case_run_breach(consumer->run, "AB-17", "extract_data is NULL");
        uva__case_run_breach(consumer->run, "AT-01", "extract_data is NULL");
        return 0;
    }
    consumer->tasks[ordinal].copy = *task;
    if (manner->on_task != NULL)
        manner->on_task(consumer, ordinal);
    if (manner->refuse_at == ordinal + 1) {
        if (manner->refuse_taken)
            (void)uva__recording_consumer_extract(consumer, ordinal, true);
        consumer->tasks[ordinal].taken =
            true; /* handed back. Clauses: LC-18. */
        return EINVAL;
    }
    recording_consumer_take(consumer, ordinal);
    if (manner->scribble)
        uva__expected_data_fill(task, sizeof(*task));
    if (manner->cancel_at == ordinal + 1)
        recording_consumer_stop(consumer);
    if (ordinal < UVA__RECORDING_CONSUMER_TASKS / 2)
        recording_consumer_count_request(consumer, manner->each);
    return 0;
}

static int
recording_consumer_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct uva__recording_consumer *consumer = recording_consumer_of(self);
    const int64_t ordinal = uva__recording_consumer_tasks(consumer);
    int code = 0;

    uva__producer_rules_enter(consumer, self, task != NULL ? 'T' : 'N', 0);
    uva__producer_rules_tag(consumer, metadata, "AH-13");
    if (task != NULL && ordinal >= UVA__RECORDING_CONSUMER_TASKS)
        uva__case_run_fail(consumer->run, "more tasks than can be counted");
    recording_consumer_linger(consumer);
    if (task != NULL)
        code = recording_consumer_get_task(consumer, task, ordinal);
    else
        recording_consumer_drain(consumer);
    uva__producer_rules_leave(consumer, code != 0);
    return code;
}

static void
recording_consumer_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                            int code, const char *message, const char *metadata)
{
    struct uva__recording_consumer *consumer = recording_consumer_of(self);

    uva__producer_rules_enter(consumer, self, 'E', code);
    uva__producer_rules_error(consumer, code, message);
    uva__producer_rules_tag(consumer, metadata, "ER-08");
    recording_consumer_linger(consumer);
    if (consumer->manner.on_error != NULL)
        consumer->manner.on_error(consumer);
    recording_consumer_drain(consumer);
    uva__producer_rules_leave(consumer, false);
}

static void
recording_consumer_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct uva__recording_consumer *consumer = recording_consumer_of(self);

    uva__producer_rules_enter(consumer, self, 'R', 0);
    recording_consumer_linger(consumer);
    recording_consumer_drain(consumer);
    if (consumer->manner.vanish)
        (void)munmap(self, (size_t)sysconf(_SC_PAGESIZE));
    uva__producer_rules_leave(consumer, false);
}

/* ---- making one and querying it ----------------------------------------- */

struct uva__recording_consumer *
uva__recording_consumer_new(struct uva__case_run *run,
                            const struct uva__recording_consumer_manner *manner)
{
    struct uva__recording_consumer *consumer =
        uva__case_run_alloc(run, sizeof(*consumer));
    void *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        uva__case_run_fail(run, "out of memory");
    consumer->run = run;
    consumer->manner = *manner;
    consumer->now.tag_size = -1;
    consumer->tasks = uva__case_run_alloc(run, UVA__RECORDING_CONSUMER_TASKS *
                                                   sizeof(*consumer->tasks));
    consumer->handler = page;
    *consumer->handler = (struct ArrowAsyncDeviceStreamHandler){
        .on_schema = recording_consumer_on_schema,
        .on_next_task = recording_consumer_on_next_task,
        .on_error = recording_consumer_on_error,
        .release = recording_consumer_release,
        .private_data = consumer};
    uva__producer_rules_init(consumer);
    return consumer;
}

bool uva__recording_consumer_is_released(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool is;

    uva__lock_take(&consumer->lock);
    is = consumer->now.releases > 0 && consumer->now.inside == 0;
    uva__lock_drop(&consumer->lock);
    return is;
}

bool uva__recording_consumer_has_ended(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool is;

    uva__lock_take(&consumer->lock);
    is = consumer->now.releases + consumer->now.errors + consumer->now.ends > 0;
    uva__lock_drop(&consumer->lock);
    return is;
}

bool uva__recording_consumer_has_schema(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool has;

    uva__lock_take(&consumer->lock);
    has = consumer->now.open;
    uva__lock_drop(&consumer->lock);
    return has;
}

bool uva__recording_consumer_is_idle(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool is;

    uva__lock_take(&consumer->lock);
    is = consumer->now.inside == 0;
    uva__lock_drop(&consumer->lock);
    return is;
}

bool uva__recording_consumer_is_settled(void *ctx)
{
    struct uva__recording_consumer *consumer = ctx;
    bool is;

    uva__lock_take(&consumer->lock);
    is = consumer->now.running == 0;
    uva__lock_drop(&consumer->lock);
    return is;
}

int64_t uva__recording_consumer_tasks(struct uva__recording_consumer *consumer)
{
    int64_t tasks;

    uva__lock_take(&consumer->lock);
    tasks = consumer->now.tasks;
    uva__lock_drop(&consumer->lock);
    return tasks;
}

void uva__recording_consumer_trace(struct uva__recording_consumer *consumer,
                                   char *to)
{
    uva__lock_take(&consumer->lock);
    memcpy(to, consumer->now.trace, sizeof(consumer->now.trace));
    uva__lock_drop(&consumer->lock);
}
