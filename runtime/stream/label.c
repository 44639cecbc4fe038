/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, names and frees labels of streams. */
#include "stream/label.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

struct uva__label *uva__label_new(struct uva__rt *rt)
{
    struct uva__label *label = uva__memory_new(&rt->allocator, sizeof(*label));

    if (label == NULL)
        return NULL;
    uva__rt_hold(rt);
    label->rt = rt;
    uva__atomic64_store(&label->refs, 1);
    return label;
}

struct uva__label *uva__label_acquire(struct uva__label *label)
{
    if (label != NULL)
        uva__atomic64_add(&label->refs, 1);
    return label;
}

static void label_free(struct uva__label *label)
{
    struct uva__rt *rt = label->rt;
    struct uva__label_name *name = uva__atomic_ptr_load(&label->now), *before;

    for (; name != NULL; name = before) {
        before = name->before;
        uva__memory_free(&rt->allocator, name, sizeof(*name));
    }
    uva__memory_free(&rt->allocator, label, sizeof(*label));
    uva__rt_unhold(rt);
}

void uva__label_release(struct uva__label *label)
{
    if (label != NULL && uva__atomic64_sub(&label->refs, 1) == 1)
        label_free(label);
}

int uva__label_set(struct uva__label *label, const char *text)
{
    struct uva__label_name *name =
        uva__memory_new(&label->rt->allocator, sizeof(*name));
    size_t size;

    if (name == NULL)
        return ENOMEM;
    size = uva__error_utf8_prefix(text, strlen(text), sizeof(name->text) - 1);
    memcpy(name->text, text, size); /* the rest is 0 */
    name->before = uva__atomic_ptr_load(&label->now);
    uva__atomic_ptr_store(&label->now, name);
    return 0;
}
