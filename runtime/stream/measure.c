/* SPDX-License-Identifier: Apache-2.0 */
/* Measures batches by the plan of their schema, or in full. */
#include "stream/measure.h"

#include "arrow/layout.h"
#include "arrow/structs.h"
#include "uvarrow/arrow.h"

int uva__measure_init(struct uva__measure *m,
                      const struct uva_allocator *allocator,
                      const struct ArrowSchema *schema)
{
    const int code = uva__structs_copy_schema(allocator, schema, &m->schema);

    if (code == 0)
        uva__plan_init(&m->plan, allocator, &m->schema);
    return code;
}

static void schema_forget(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

void uva__measure_lend(struct uva__measure *m,
                       const struct uva_allocator *allocator,
                       const struct ArrowSchema *schema)
{
    m->schema = *schema;
    m->schema.release = schema_forget;
    uva__plan_init(&m->plan, allocator, &m->schema);
}

void uva__measure_fini(struct uva__measure *m)
{
    uva__plan_fini(&m->plan);
    uva_schema_release(&m->schema);
}

int uva__measure_exactly(const struct uva__measure *m,
                         const struct ArrowDeviceArray *batch, int64_t *bytes,
                         struct uva_error *error)
{
    int code = 0;

    *bytes = 0;
    if (!uva__plan_measure(&m->plan, &m->schema, batch, bytes))
        code = uva__layout_measure(&m->schema, batch, bytes, error);
    return code == EINVAL ? code : 0;
}

int uva__measure(const struct uva__measure *m,
                 const struct ArrowDeviceArray *batch, int64_t *bytes,
                 struct uva_error *error)
{
    const int code = uva__measure_exactly(m, batch, bytes, error);

    *bytes = uva__window_size(*bytes);
    return code;
}
