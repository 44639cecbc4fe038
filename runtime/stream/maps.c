/* SPDX-License-Identifier: Apache-2.0 */
/* Adds, opens and frees the maps of a producer. */
#include "stream/maps.h"

#include <errno.h>
#include <string.h>

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

/* Keeps a copy of the schema of its results. */
static int maps_keep_output(struct uva__producer *p,
                            const struct ArrowSchema *schema)
{
    const struct uva_allocator *allocator = &p->rt->allocator;

    p->output = uva__memory_new(allocator, sizeof(*p->output));
    return p->output != NULL
               ? uva__structs_copy_schema(allocator, schema, p->output)
               : ENOMEM;
}

int uva__maps_open(struct uva__producer *p, struct ArrowSchema *schema)
{
    struct uva__mapping *m;
    struct ArrowSchema next;
    struct uva_error error;
    int code = 0;

    uva__error_begin(&error);
    for (m = p->maps; m != NULL && code == 0; m = m->next) {
        memset(&next, 0, sizeof(next));
        code = uva__structs_copy_schema(&p->rt->allocator, schema, &m->schema);
        if (code != 0 || m->options.schema == NULL)
            continue;
        code = uva__error_positive(
            m->options.schema(m->options.ctx, &m->schema, &next, &error));
        if (code == 0 && uva__structs_check_schema(&next, &error) != 0)
            code = uva_error_set(&error, EPROTO,
                                 "a map succeeded and gave no valid schema");
        if (code != 0) {
            uva_schema_release(&next); /* the user may have begun it */
            break;
        }
        uva_schema_release(schema);
        uva_schema_move(&next, schema);
    }
    if (code == 0 && p->lazy && (p->observed & UVA__OBSERVED_MEASURE))
        code = maps_keep_output(p, schema);
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
        uva_schema_release(&m->schema);
        if (m->options.free_ctx != NULL)
            m->options.free_ctx(m->options.ctx);
        uva__memory_free(&p->rt->allocator, m, sizeof(*m));
    }
    p->maps = NULL;
}
