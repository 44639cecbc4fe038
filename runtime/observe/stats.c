/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_get_stats(): reads the meters of a stream and of the streams that
 * its stages take in. */
#include <errno.h>

#include "stream/stream_impl.h"

/* Where stages are written. */
struct list {
    struct uva_stage_stats *stages; /* borrows */
    size_t room;                    /* of these */
    size_t count;                   /* of stages, also of those beyond that */
};

static void list_add(struct list *list, const struct uva__meter *meter)
{
    const size_t at = list->count++;

    if (at >= list->room)
        return;
    uva__meter_read(meter, &list->stages[at]);
    list->stages[at].next = -1;
}

/* Stages from number `from` on that pass to no stage so far pass to the stage
 * that is added next. */
static void list_connect(struct list *list, size_t from)
{
    for (size_t i = from; i < list->count && i < list->room; i++)
        if (list->stages[i].next < 0)
            list->stages[i].next = (int32_t)list->count;
}

/* Stages from number `from` on that have no name of a stream so far get this
 * one, which may be NULL. */
static void list_name(struct list *list, size_t from, const char *name)
{
    for (size_t i = from; i < list->count && i < list->room; i++)
        if (list->stages[i].stream == NULL)
            list->stages[i].stream = name;
}

/* Adds the stages of a stream, with the stages of streams that they take in. */
static void list_add_stream(struct list *list, const struct uva__label *label)
{
    const struct uva__meter *meter = uva__atomic_ptr_load(&label->meters);
    const struct uva__label_name *part;
    const struct uva__label *joined;
    const size_t begin = list->count;
    size_t from = begin;

    for (; meter != NULL; meter = uva__atomic_ptr_load(&meter->next)) {
        part = uva__atomic_ptr_load(&meter->part);
        if (part != NULL)
            list_name(list, begin, part->text);
        joined = uva__atomic_ptr_load(&meter->joined);
        for (; joined != NULL; joined = joined->beside)
            list_add_stream(list, joined);
        list_connect(list, from);
        from = list->count;
        list_add(list, meter);
    }
    list_name(list, begin, uva__label_whole(label));
}

int uva_stream_get_stats(const struct uva_stream *stream,
                         struct uva_stage_stats *stages, size_t *count)
{
    struct list list = {.stages = stages};

    if (stream == NULL || count == NULL || (stages == NULL && *count > 0))
        return EINVAL;
    list.room = *count;
    if (stream->sticky.code == 0 && stream->label != NULL)
        list_add_stream(&list, stream->label);
    *count = list.count;
    return 0;
}
