/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, names and frees labels with their meters. */
#include "observe/label.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* The bytes of the name of a source, without the NUL: sources.h states them. */
enum { KEPT_ROOM = 31 };

struct uva__label *uva__label_new(struct uva__rt *rt, size_t cleared,
                                  size_t more)
{
    const size_t first = sizeof(struct uva__label) + cleared;
    struct uva__label *label =
        uva__memory_new_partly(&rt->allocator, first + more, first);

    if (label == NULL)
        return NULL;
    label->size = (uint32_t)(first + more);
    uva__rt_hold(rt);
    label->rt = rt;
    label->id = uva__atomic64_add(&rt->streams_made, 1) + 1;
    uva__point_set_name(&label->consumer, "consumer"); /* until the start */
    label->consumer.label = label;
    label->consumer.rt = rt;
    uva__atomic64_store(&label->refs, 1);
    return label;
}

struct uva__label *uva__label_acquire(struct uva__label *label)
{
    if (label != NULL)
        uva__atomic64_add(&label->refs, 1);
    return label;
}

/* Frees its memory. */
static void meter_fini(struct uva__meter *meter)
{
    struct uva__label *joined = uva__atomic_ptr_load(&meter->joined), *beside;

    for (; joined != NULL; joined = beside) {
        beside = joined->beside;
        uva__label_release(joined);
    }
    uva__memory_free(&meter->point.rt->allocator, meter->times,
                     sizeof(*meter->times));
}

static void meter_free(struct uva__label *label, struct uva__meter *meter)
{
    meter_fini(meter);
    if (meter != &label->first)
        uva__memory_free(&label->rt->allocator, meter, sizeof(*meter));
}

static void names_free(struct uva__rt *rt, struct uva__label_name *name)
{
    struct uva__label_name *before;

    for (; name != NULL; name = before) {
        before = name->before;
        uva__memory_free(&rt->allocator, name, sizeof(*name));
    }
}

static void label_free(struct uva__label *label)
{
    struct uva__meter *meter = uva__atomic_ptr_load(&label->meters), *next;
    struct uva__rt *rt = label->rt;

    names_free(rt, uva__atomic_ptr_load(&label->now));
    names_free(rt, label->kept);
    for (; meter != NULL; meter = next) {
        next = uva__atomic_ptr_load(&meter->next);
        meter_free(label, meter);
    }
    uva__memory_free(&rt->allocator, label, label->size);
    uva__rt_unhold(rt);
}

void uva__label_release(struct uva__label *label)
{
    if (label != NULL && uva__atomic64_sub(&label->refs, 1) == 1)
        label_free(label);
}

/* Makes a name in front of `before`, of `room` bytes at most; NULL without
 * memory. */
static struct uva__label_name *name_new(struct uva__rt *rt, const char *text,
                                        size_t room,
                                        struct uva__label_name *before)
{
    struct uva__label_name *name =
        uva__memory_new(&rt->allocator, sizeof(*name));

    if (name == NULL)
        return NULL;
    memcpy(name->text, text, /* the rest is 0 */
           uva__error_utf8_prefix(text, strlen(text), room));
    name->before = before;
    return name;
}

int uva__label_set(struct uva__label *label, const char *text)
{
    struct uva__label_name *name =
        name_new(label->rt, text, sizeof(name->text) - 1,
                 uva__atomic_ptr_load(&label->now));

    if (name == NULL)
        return ENOMEM;
    uva__atomic_ptr_store(&label->now, name);
    return 0;
}

const char *uva__label_keep(struct uva__label *label, const char *text)
{
    struct uva__label_name *name =
        name_new(label->rt, text, KEPT_ROOM, label->kept);

    if (name == NULL)
        return NULL;
    label->kept = name;
    return name->text;
}

/* Makes a meter that is in no list: the first one needs no memory. */
static struct uva__meter *meter_new(struct uva__label *label)
{
    struct uva__rt *rt = label->rt;
    struct uva__meter *meter =
        uva__atomic_ptr_load(&label->meters) == NULL
            ? &label->first
            : uva__memory_new(&rt->allocator, sizeof(*meter));

    if (meter == NULL)
        return NULL;
    meter->point.rt = rt;
    if (!(rt->observed & UVA__OBSERVED_MEASURE))
        return meter;
    meter->times = uva__memory_new(&rt->allocator, sizeof(*meter->times));
    if (meter->times != NULL)
        return meter;
    meter_free(label, meter);
    return NULL;
}

struct uva__meter *uva__label_add_meter(struct uva__label *label,
                                        const char *name,
                                        struct uva__meter *source)
{
    struct uva__atomic_ptr *end = &label->meters;
    struct uva__meter *meter = meter_new(label), *before;

    if (meter == NULL)
        return NULL;
    uva__point_set_name(&meter->point, name);
    meter->point.label = label;
    meter->point.stage = label->consumer.stage++;
    meter->source = source;
    while ((before = uva__atomic_ptr_load(end)) != NULL)
        end = &before->next;
    uva__atomic_ptr_store(end, meter);
    return meter;
}

void uva__label_part(struct uva__label *label, struct uva__meter *meter)
{
    void *const name = uva__atomic_ptr_load(&label->now);

    if (name != uva__atomic_ptr_load(&label->part))
        uva__atomic_ptr_store(&meter->part, name);
    uva__atomic_ptr_store(&label->part, name);
}

void uva__label_join(struct uva__meter *meter, struct uva__label *other)
{
    other->beside = uva__atomic_ptr_load(&meter->joined);
    uva__atomic_ptr_store(&meter->joined, uva__label_acquire(other));
}
