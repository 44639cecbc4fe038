/* SPDX-License-Identifier: Apache-2.0 */
/* Measures batches by the shape of their schema, or column by column. */
#include "stream/measure.h"

#include <string.h>

#include "arrow/layout.h"
#include "arrow/structs.h"
#include "uvarrow/arrow.h"

int uva__measure_init(struct uva__measure *m,
                      const struct uva_allocator *allocator,
                      const struct ArrowSchema *schema)
{
    const int code = uva__structs_copy_schema(allocator, schema, &m->schema);

    if (code == 0)
        uva__fixed_width_read(&m->shape, &m->schema);
    return code;
}

static void schema_forget(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

void uva__measure_lend(struct uva__measure *m, const struct ArrowSchema *schema)
{
    m->schema = *schema;
    m->schema.release = schema_forget;
    uva__fixed_width_read(&m->shape, &m->schema);
}

void uva__measure_fini(struct uva__measure *m)
{
    uva_schema_release(&m->schema);
}

int uva__measure_columns(const struct uva__measure *m,
                         const struct ArrowDeviceArray *batch, int64_t *bytes,
                         struct uva_error *error)
{
    *bytes = 0;
    return uva__layout_measure_shaped(&m->shape, &m->schema, batch, bytes,
                                      error);
}
