/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of all arrays are one constant. */
#include "support/check_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/plain_tree.h"

static const int32_t VALUES[4] = {1, 2, 3, 4};

/* ---- reports ------------------------------------------------------------ */

static void scene_report(void *ctx, const struct uva_breach *breach)
{
    static const char *const parties[] = {"", "producer", "consumer", "either"};
    static const char *const severities[] = {"note", "warning", "error",
                                             "fatal"};
    struct check_scene *s = ctx;
    size_t used;

    (void)pthread_mutex_lock(&s->lock);
    used = strlen(s->story);
    (void)snprintf(s->story + used, sizeof(s->story) - used, "%s%s %s %s",
                   used == 0 ? "" : "\n", breach->clause,
                   parties[breach->party], severities[breach->severity]);
    (void)snprintf(s->message, sizeof(s->message), "%s", breach->message);
    (void)snprintf(s->transcript, sizeof(s->transcript), "%s",
                   breach->transcript);
    s->reports++;
    (void)pthread_mutex_unlock(&s->lock);
}

static void scene_freed(void *ctx)
{
    struct check_scene *s = ctx;

    atomic_fetch_add(&s->freed, 1);
}

const char *check_scene_story(struct check_scene *s)
{
    static char story[CHECK_SCENE_STORY];

    (void)pthread_mutex_lock(&s->lock);
    memcpy(story, s->story, sizeof(story));
    s->story[0] = '\0';
    (void)pthread_mutex_unlock(&s->lock);
    return story;
}

/* ---- the consumer ------------------------------------------------------- */

static struct check_scene *
scene_of(const struct ArrowAsyncDeviceStreamHandler *self)
{
    return self->private_data;
}

int check_scene_take_schema(struct check_scene *s, struct ArrowSchema *schema)
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

int check_scene_take_task(struct check_scene *s, struct ArrowAsyncTask *task)
{
    struct ArrowDeviceArray array;

    (void)s;
    if (uva_task_extract(task, &array) == 0)
        uva_array_release(&array);
    return 0;
}

static int scene_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                           struct ArrowSchema *schema)
{
    struct check_scene *s = scene_of(self);

    return s->on_schema != NULL ? s->on_schema(s, schema)
                                : check_scene_take_schema(s, schema);
}

static int scene_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                              struct ArrowAsyncTask *task, const char *metadata)
{
    struct check_scene *s = scene_of(self);

    s->metadata = metadata;
    if (task == NULL)
        return s->on_end != NULL ? s->on_end(s) : 0;
    return s->on_task != NULL ? s->on_task(s, task)
                              : check_scene_take_task(s, task);
}

static void scene_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                           const char *message, const char *metadata)
{
    struct check_scene *s = scene_of(self);

    if (s->on_error != NULL)
        s->on_error(s, code, message, metadata);
}

static void scene_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct check_scene *s = scene_of(self);

    if (s->on_release != NULL)
        s->on_release(s);
    atomic_fetch_add(&s->released, 1);
    self->release = NULL;
}

/* ---- the producer ------------------------------------------------------- */

static void scene_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct check_scene *s = self->private_data;

    atomic_fetch_add(&s->requested, n);
    if (s->on_request != NULL)
        s->on_request(s, n);
}

static void scene_cancel(struct ArrowAsyncProducer *self)
{
    struct check_scene *s = self->private_data;

    atomic_fetch_add(&s->cancels, 1);
    if (s->on_cancel != NULL)
        s->on_cancel(s);
}

int check_scene_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct check_scene_task *task = self->private_data;

    if (out == NULL) {
        atomic_fetch_add(&task->scene->discarded, 1);
        return task->code;
    }
    atomic_fetch_add(&task->scene->extracted, 1);
    if (task->code == 0 ? !task->empty : task->full)
        check_scene_fill_array(out);
    if (task->scene->on_extract != NULL)
        task->scene->on_extract(task->scene, out);
    return task->code;
}

void check_scene_fill_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "+s", "", 1);
    plain_schema(schema->children[0], "i", "n", 0);
}

void check_scene_fill_array(struct ArrowDeviceArray *array)
{
    memset(array, 0, sizeof(*array));
    plain_array(&array->array, 4, 1, 1);
    plain_array(array->array.children[0], 4, 2, 0);
    array->array.children[0]->buffers[1] = VALUES;
    array->device_id = -1;
    array->device_type = ARROW_DEVICE_CPU;
}

int check_scene_schema(struct check_scene *s)
{
    struct ArrowSchema schema;
    int code;

    check_scene_fill_schema(&schema);
    code = s->out->on_schema(s->out, &schema);
    uva_schema_release(&schema);
    return code;
}

int check_scene_task(struct check_scene *s)
{
    const int i = atomic_fetch_add(&s->offered, 1);
    struct ArrowAsyncTask task = {check_scene_extract, &s->tasks[i]};

    s->tasks[i].scene = s;
    return s->out->on_next_task(s->out, &task, NULL);
}

int check_scene_end(struct check_scene *s)
{
    return s->out->on_next_task(s->out, NULL, NULL);
}

void check_scene_error(struct check_scene *s, int code, const char *message)
{
    s->out->on_error(s->out, code, message, NULL);
}

void check_scene_release(struct check_scene *s)
{
    s->out->release(s->out);
}

/* ---- the scene ---------------------------------------------------------- */

int check_scene_live(void)
{
    return plain_live();
}

bool check_scene_try(struct check_scene *s, const struct uva_check *options)
{
    memset(s, 0, sizeof(*s));
    (void)pthread_mutex_init(&s->lock, NULL);
    if (options != NULL)
        s->options = *options;
    s->options.report = scene_report;
    s->options.free_ctx = scene_freed;
    s->options.ctx = s;
    s->options.keep = true;
    s->inner = (struct ArrowAsyncDeviceStreamHandler){scene_on_schema,
                                                      scene_on_next_task,
                                                      scene_on_error,
                                                      scene_release,
                                                      NULL,
                                                      s};
    s->producer = (struct ArrowAsyncProducer){ARROW_DEVICE_CPU, scene_request,
                                              scene_cancel, NULL, s};
    if (uva_check_handler(&s->inner, &s->options, &s->out, NULL) != 0)
        return false;
    s->out->producer = &s->producer;
    return true;
}

void check_scene_init(struct check_scene *s, const struct uva_check *options)
{
    if (!check_scene_try(s, options))
        abort();
}

int64_t check_scene_conclude(struct check_scene *s)
{
    const int64_t breaches = uva_check_conclude(s->out);

    s->out = NULL;
    return breaches;
}

void check_scene_fini(struct check_scene *s)
{
    if (s->out != NULL)
        (void)check_scene_conclude(s);
    uva_schema_release(&s->schema);
    (void)pthread_mutex_destroy(&s->lock);
}
