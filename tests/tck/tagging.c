/* SPDX-License-Identifier: Apache-2.0 */
/* Passes every call on, with other metadata. */
#include "tck/tagging.h"

#include <assert.h>
#include <stdlib.h>

#include "tck/subject_data.h"

struct tagging {
    struct ArrowAsyncDeviceStreamHandler front;
    struct ArrowAsyncDeviceStreamHandler *behind;
    struct ArrowAsyncProducer object; /* producer of the inner handler */
    char about[64];
    bool wrong;
    int64_t next; /* ordinal of the next task */
};

static void request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct tagging *own = self->private_data;

    own->front.producer->request(own->front.producer, n);
}

static void cancel(struct ArrowAsyncProducer *self)
{
    struct tagging *own = self->private_data;

    own->front.producer->cancel(own->front.producer);
}

static void show_producer(struct tagging *own)
{
    if (own->front.producer == NULL || own->behind->producer != NULL)
        return;
    own->object = (struct ArrowAsyncProducer){
        .device_type = own->front.producer->device_type,
        .request = request,
        .cancel = cancel,
        .additional_metadata = subject_tag(own->about, "about", 5),
        .private_data = own};
    own->behind->producer = &own->object;
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *schema)
{
    struct tagging *own = self->private_data;

    show_producer(own);
    return own->behind->on_schema(own->behind, schema);
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    struct tagging *own = self->private_data;
    char tag[64];

    (void)metadata;
    return own->behind->on_next_task(
        own->behind, task,
        task == NULL ? NULL : subject_number(tag, own->next++ + own->wrong));
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    struct tagging *own = self->private_data;
    char tag[64];

    (void)metadata;
    show_producer(own);
    own->behind->on_error(own->behind, code, message,
                          subject_tag(tag, "a\0b\0c", own->wrong ? 1 : 5));
}

static void release(struct ArrowAsyncDeviceStreamHandler *self)
{
    struct tagging *own = self->private_data;

    own->behind->release(own->behind);
    free(own);
}

struct ArrowAsyncDeviceStreamHandler *
tagging_front(struct ArrowAsyncDeviceStreamHandler *behind, bool wrong)
{
    struct tagging *own = calloc(1, sizeof(*own));

    assert(own != NULL);
    own->behind = behind;
    own->wrong = wrong;
    own->front =
        (struct ArrowAsyncDeviceStreamHandler){.on_schema = on_schema,
                                               .on_next_task = on_next_task,
                                               .on_error = on_error,
                                               .release = release,
                                               .private_data = own};
    return &own->front;
}
