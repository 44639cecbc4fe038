/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of all arrays are one constant. */
#include "support/check_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/plain_tree.h"

static const int32_t VALUES[4] = {1, 2, 3, 4};

/* ---- reports ------------------------------------------------------------ */

static void fixture_report(void *ctx, const struct uva_breach *breach)
{
    static const char *const parties[] = {"", "producer", "consumer", "either"};
    static const char *const severities[] = {"note", "warning", "error",
                                             "fatal"};
    struct check_fixture *s = ctx;
    size_t used;

    (void)pthread_mutex_lock(&s->lock);
    used = strlen(s->breaches);
    (void)snprintf(s->breaches + used, sizeof(s->breaches) - used, "%s%s %s %s",
                   used == 0 ? "" : "\n", breach->clause,
                   parties[breach->party], severities[breach->severity]);
    (void)snprintf(s->message, sizeof(s->message), "%s", breach->message);
    (void)snprintf(s->transcript, sizeof(s->transcript), "%s",
                   breach->transcript);
    s->reports++;
    (void)pthread_mutex_unlock(&s->lock);
}

static void fixture_freed(void *ctx)
{
    struct check_fixture *s = ctx;

    atomic_fetch_add(&s->freed, 1);
}

const char *check_fixture_breaches(struct check_fixture *s)
{
    static char breaches[CHECK_FIXTURE_BREACHES];

    (void)pthread_mutex_lock(&s->lock);
    memcpy(breaches, s->breaches, sizeof(breaches));
    s->breaches[0] = '\0';
    (void)pthread_mutex_unlock(&s->lock);
    return breaches;
}

/* ---- the consumer ------------------------------------------------------- */

static struct check_fixture *
fixture_of(const struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

int check_fixture_take_schema(struct check_fixture *s,
                              struct ArrowSchema *schema)
{
    if (schema == NULL || schema->release == NULL)
        return EINVAL;
    uva_schema_release(&s->schema);
    uva_schema_move(schema, &s->schema);
    s->peer = s->inner.producer;
    if (s->peer == NULL)
        return EINVAL;
    s->peer->request(s->peer, 100);
    return 0;
}

int check_fixture_take_task(struct check_fixture *s,
                            struct ArrowAsyncTask *task)
{
    struct ArrowDeviceArray array;

    (void)s;
    if (uva_task_extract(task, &array) == 0)
        uva_array_release(&array);
    return 0;
}

static int fixture_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowSchema *schema)
{
    struct check_fixture *s = fixture_of(self);

    return s->on_schema != NULL ? s->on_schema(s, schema)
                                : check_fixture_take_schema(s, schema);
}

static int fixture_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                                struct ArrowAsyncTask *task,
                                const char *metadata)
{
    struct check_fixture *s = fixture_of(self);

    s->metadata = metadata;
    if (task == NULL)
        return s->on_end != NULL ? s->on_end(s) : 0;
    return s->on_task != NULL ? s->on_task(s, task)
                              : check_fixture_take_task(s, task);
}

static void fixture_on_error(struct ArrowAsyncDeviceStreamHandler *self,
                             int code, const char *message,
                             const char *metadata)
{
    struct check_fixture *s = fixture_of(self);

    if (s->on_error != NULL)
        s->on_error(s, code, message, metadata);
}

static void fixture_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct check_fixture *s = fixture_of(self);

    if (s->on_release != NULL)
        s->on_release(s);
    atomic_fetch_add(&s->released, 1);
    self->release = NULL;
}

/* ---- the producer ------------------------------------------------------- */

static void fixture_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct check_fixture *s = self->private_data;

    atomic_fetch_add(&s->requested, n);
    if (s->on_request != NULL)
        s->on_request(s, n);
}

static void fixture_cancel(struct ArrowAsyncProducer *self)
{
    struct check_fixture *s = self->private_data;

    atomic_fetch_add(&s->cancels, 1);
    if (s->on_cancel != NULL)
        s->on_cancel(s);
}

int check_fixture_extract(struct ArrowAsyncTask *self,
                          struct ArrowDeviceArray *out)
{
    struct check_fixture_task *task = self->private_data;

    if (out == NULL) {
        atomic_fetch_add(&task->fixture->discarded, 1);
        return task->code;
    }
    atomic_fetch_add(&task->fixture->extracted, 1);
    if (task->code == 0 && !task->empty)
        check_fixture_fill_array(out);
    if (task->fixture->on_extract != NULL)
        task->fixture->on_extract(task->fixture, out);
    return task->code;
}

void check_fixture_fill_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "+s", "", 1);
    plain_schema(schema->children[0], "i", "n", 0);
}

void check_fixture_fill_array(struct ArrowDeviceArray *array)
{
    memset(array, 0, sizeof(*array));
    plain_array(&array->array, 4, 1, 1);
    plain_array(array->array.children[0], 4, 2, 0);
    array->array.children[0]->buffers[1] = VALUES;
    array->device_id = -1;
    array->device_type = ARROW_DEVICE_CPU;
}

int check_fixture_schema(struct check_fixture *s)
{
    struct ArrowSchema schema;
    int code;

    check_fixture_fill_schema(&schema);
    code = s->out->on_schema(s->out, &schema);
    uva_schema_release(&schema);
    return code;
}

int check_fixture_task(struct check_fixture *s)
{
    const int i = atomic_fetch_add(&s->offered, 1);
    struct ArrowAsyncTask task = {check_fixture_extract, &s->tasks[i]};

    s->tasks[i].fixture = s;
    return s->out->on_next_task(s->out, &task, NULL);
}

int check_fixture_end(struct check_fixture *s)
{
    return s->out->on_next_task(s->out, NULL, NULL);
}

void check_fixture_error(struct check_fixture *s, int code, const char *message)
{
    s->out->on_error(s->out, code, message, NULL);
}

void check_fixture_release(struct check_fixture *s)
{
    s->out->release(s->out);
}

/* ---- the fixture -------------------------------------------------------- */

int check_fixture_live(void)
{
    return plain_live();
}

static bool fixture_begin(struct check_fixture *s,
                          const struct uva_check *options,
                          const struct uva__check_times *times)
{
    memset(s, 0, sizeof(*s));
    (void)pthread_mutex_init(&s->lock, NULL);
    if (options != NULL)
        s->options = *options;
    s->options.report = fixture_report;
    s->options.free_ctx = fixture_freed;
    s->options.ctx = s;
    s->options.keep = true;
    s->inner = (struct ArrowAsyncDeviceStreamHandler){fixture_on_schema,
                                                      fixture_on_next_task,
                                                      fixture_on_error,
                                                      fixture_release,
                                                      NULL,
                                                      s};
    s->producer = (struct ArrowAsyncProducer){ARROW_DEVICE_CPU, fixture_request,
                                              fixture_cancel, NULL, s};
    if (uva__handler_check_within(times, &s->inner, &s->options, &s->out,
                                  NULL) != 0)
        return false;
    s->out->producer = &s->producer;
    return true;
}

bool check_fixture_try(struct check_fixture *s, const struct uva_check *options)
{
    return fixture_begin(s, options, NULL);
}

void check_fixture_init_within(struct check_fixture *s,
                               const struct uva__check_times *times)
{
    if (!fixture_begin(s, NULL, times))
        abort();
}

void check_fixture_init(struct check_fixture *s,
                        const struct uva_check *options)
{
    if (!check_fixture_try(s, options))
        abort();
}

int64_t check_fixture_conclude(struct check_fixture *s)
{
    const int64_t breaches = uva_check_conclude(s->out);

    s->out = NULL;
    return breaches;
}

void check_fixture_fini(struct check_fixture *s)
{
    if (s->out != NULL)
        (void)check_fixture_conclude(s);
    uva_schema_release(&s->schema);
    (void)pthread_mutex_destroy(&s->lock);
}
