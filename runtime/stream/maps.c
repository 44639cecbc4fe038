/* SPDX-License-Identifier: Apache-2.0 */
/* Adds, opens and frees the maps of a producer. */
#include "stream/maps.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

int uva__maps_add(struct uva__producer *p, const struct uva_map *options)
{
    struct uva__mapping *m = uva__memory_new(&p->rt->allocator, sizeof(*m));
    struct uva__mapping **end = &p->maps;

    if (m != NULL)
        m->meter =
            uva__label_add_meter(p->source->label, "map", p->source->meter);
    if (m == NULL || m->meter == NULL) {
        uva__memory_free(&p->rt->allocator, m, sizeof(*m));
        if (options->free_ctx != NULL)
            options->free_ctx(options->ctx);
        return ENOMEM;
    }
    m->options = *options;
    m->batch = options->batch;
    m->ctx = options->ctx;
    m->producer = p;
    if (p->observed & (UVA__OBSERVED_MEASURE | UVA__OBSERVED_TRACE)) {
        m->batch = uva__task_map_timed;
        m->ctx = m;
    }
    uva__small_counter_set(&m->meter->sized,
                           (p->observed & UVA__OBSERVED_MEASURE) != 0);
    while (*end != NULL)
        end = &(*end)->next;
    *end = m;
    p->expensive = p->expensive || !options->on_loop;
    p->lazy = true;
    return 0;
}

/* Has the map replace `schema`, the outline of which it has. */
static int map_replace(const struct uva__mapping *m, struct ArrowSchema *schema,
                       struct uva_error *error)
{
    struct ArrowSchema next = {0};
    int code = uva__error_positive(
        m->options.schema(m->options.ctx, &m->measure->schema, &next, error));

    if (code == 0 && uva__structs_check_schema(&next, error) != 0)
        code = uva_error_set(error, EPROTO,
                             "a map succeeded and gave no valid schema");
    if (code != 0) {
        uva_schema_release(&next); /* the user may have begun it */
        return code;
    }
    uva_schema_release(schema);
    uva_schema_move(&next, schema);
    return 0;
}

/* Whether the sizes of its batches are measured at their extraction. */
static bool maps_measure(const struct uva__producer *p)
{
    return p->lazy && (p->observed & UVA__OBSERVED_MEASURE);
}

/* Passes the schema through one map; `*outline`, which is counted, becomes that
 * of the result, as far as it is needed. */
static int map_open(struct uva__mapping *m, struct ArrowSchema *schema,
                    struct uva__outline **outline, struct uva_error *error)
{
    struct uva__producer *p = m->producer;
    int code;

    m->outline = uva__outline_share(*outline);
    m->measure = uva__outline_measure(m->outline);
    if (m->options.schema == NULL)
        return 0;
    code = map_replace(m, schema, error);
    uva__outline_release(*outline);
    *outline = NULL;
    return code == 0 && (m->next != NULL || maps_measure(p))
               ? uva__outline_acquire(p->rt, schema, outline)
               : code;
}

int uva__maps_open(struct uva__producer *p, struct ArrowSchema *schema)
{
    struct uva__outline *outline;
    struct uva_error error;
    int code;

    if (p->maps == NULL && !maps_measure(p))
        return 0;
    uva__error_begin(&error);
    code = uva__source_outline(p->source);
    outline = uva__outline_share(p->source->outline);
    for (struct uva__mapping *m = p->maps; m != NULL && code == 0; m = m->next)
        code = map_open(m, schema, &outline, &error);
    p->output = outline;
    if (code != 0)
        uva__failure_set(&p->loop->urgent, &p->rt->allocator, code, &error,
                         NULL);
    return code;
}

void uva__maps_free(struct uva__producer *p)
{
    struct uva__mapping *m = p->maps, *next;

    for (; m != NULL; m = next) {
        next = m->next;
        uva__outline_release(m->outline);
        if (m->options.free_ctx != NULL)
            m->options.free_ctx(m->options.ctx);
        uva__memory_free(&p->rt->allocator, m, sizeof(*m));
    }
    p->maps = NULL;
}
