/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: counts the fields and dictionaries, then fills them in. The values
 * of a dictionary come after the fields of what has that dictionary, in the
 * order in which dictionaries are found. */
#include "io/ipc_plan.h"

#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* The counts of a schema with its children and dictionaries. */
struct ipc_plan_count {
    int32_t fields;
    int32_t dictionaries;
};

static int ipc_plan_fail(struct uva_error *error, int code,
                         const struct ArrowSchema *schema, const char *what)
{
    return uva_error_set(error, code, "Arrow IPC: field '%.64s' (%.64s): %s",
                         schema->name == NULL ? "" : schema->name,
                         schema->format, what);
}

/* ---- checks ------------------------------------------------------------- */

static bool ipc_plan_is(const struct ArrowSchema *schema, const char *formats)
{
    return schema->format[0] != '\0' && schema->format[1] == '\0' &&
           strchr(formats, schema->format[0]) != NULL;
}

static int ipc_plan_check_dictionary(const struct ArrowSchema *schema,
                                     struct uva_error *error)
{
    const struct ArrowSchema *values = schema->dictionary;
    size_t size = 0;

    if (values == NULL)
        return 0;
    if (!ipc_plan_is(schema, "cCsSiIlL"))
        return ipc_plan_fail(error, EINVAL, schema,
                             "a dictionary is indexed by integers only");
    if (values->dictionary != NULL)
        return ipc_plan_fail(error, ENOTSUP, schema,
                             "the values of its dictionary are themselves "
                             "indices, which the format cannot express");
    if (uva_metadata_size(values->metadata, &size) == 0 && size > 4)
        return ipc_plan_fail(error, ENOTSUP, schema,
                             "its dictionary has metadata, for which the "
                             "format has no place");
    return 0;
}

static int ipc_plan_check_children(const struct ArrowSchema *schema,
                                   const struct uva__ipc_type *type,
                                   struct uva_error *error)
{
    const struct ArrowSchema *first =
        schema->n_children > 0 ? schema->children[0] : NULL;

    if (type->n_children >= 0 && schema->n_children != type->n_children)
        return ipc_plan_fail(error, EINVAL, schema, "wrong number of children");
    if (type->kind == UVA__IPC_RUN_END &&
        (!ipc_plan_is(first, "sil") || first->dictionary != NULL))
        return ipc_plan_fail(error, EINVAL, schema,
                             "run ends are integers of 16, 32 or 64 bits");
    if (type->tag == UVA__IPC_TAG_MAP &&
        (strcmp(first->format, "+s") != 0 || first->n_children != 2))
        return ipc_plan_fail(error, EINVAL, schema,
                             "the entries of a map are a struct of two");
    return 0;
}

static int ipc_plan_check(const struct ArrowSchema *schema,
                          struct uva__ipc_type *type, struct uva_error *error)
{
    int code = uva__ipc_type_read(schema->format, type);

    if (code == ENOTSUP)
        return ipc_plan_fail(error, code, schema, "unknown format");
    if (code != 0)
        return ipc_plan_fail(error, code, schema, "malformed format");
    code = ipc_plan_check_children(schema, type, error);
    return code == 0 ? ipc_plan_check_dictionary(schema, error) : code;
}

/* ---- counting ----------------------------------------------------------- */

/* Checks a field and all below, and counts them. */
static int ipc_plan_count(const struct ArrowSchema *schema,
                          struct ipc_plan_count *count, struct uva_error *error)
{
    struct uva__ipc_type type;
    int code = ipc_plan_check(schema, &type, error);

    count->fields++;
    for (int64_t i = 0; i < schema->n_children && code == 0; i++)
        code = ipc_plan_count(schema->children[i], count, error);
    if (code != 0 || schema->dictionary == NULL)
        return code;
    count->dictionaries++;
    return ipc_plan_count(schema->dictionary, count, error);
}

/* ---- filling in --------------------------------------------------------- */

/* Adds a field and its children, and its dictionary to the waiting ones. */
static void ipc_plan_add(struct uva__ipc_plan *plan,
                         const struct ArrowSchema *schema)
{
    struct uva__ipc_field *field = &plan->fields[plan->n_fields++];
    struct uva__ipc_type type;

    (void)uva__ipc_type_read(schema->format, &type); /* as before */
    *field = (struct uva__ipc_field){.kind = type.kind,
                                     .width = type.width,
                                     .n_children = (int32_t)schema->n_children,
                                     .dictionary = -1,
                                     .schema = schema};
    if (schema->dictionary != NULL) {
        field->dictionary = plan->n_dictionaries;
        plan->dictionaries[plan->n_dictionaries++].field =
            (int32_t)(field - plan->fields);
    }
    for (int64_t i = 0; i < schema->n_children; i++)
        ipc_plan_add(plan, schema->children[i]);
    field->next = plan->n_fields;
}

/* Adds the values of each dictionary, which may add more dictionaries. */
static void ipc_plan_add_values(struct uva__ipc_plan *plan)
{
    for (int32_t i = 0; i < plan->n_dictionaries; i++) {
        struct uva__ipc_values *values = &plan->dictionaries[i];
        const struct ArrowSchema *indices = plan->fields[values->field].schema;
        const int32_t before = plan->n_dictionaries;

        values->field = plan->n_fields;
        ipc_plan_add(plan, indices->dictionary);
        values->is_nested = plan->n_dictionaries > before;
    }
}

int uva__ipc_plan_init(struct uva__ipc_plan *plan,
                       const struct ArrowSchema *schema,
                       struct uva_error *error)
{
    struct ipc_plan_count count = {0};
    int code;

    *plan = (struct uva__ipc_plan){0};
    code = schema == NULL ? EINVAL : uva_schema_copy(schema, &plan->schema);
    if (code != 0)
        return uva_error_set(error, code,
                             code == ENOMEM ? "out of memory"
                                            : "Arrow IPC: invalid schema");
    if (strcmp(plan->schema.format, "+s") != 0)
        code = ipc_plan_fail(error, EINVAL, &plan->schema,
                             "the root is no struct");
    else
        code = ipc_plan_count(&plan->schema, &count, error);
    if (code != 0)
        goto fail;
    plan->fields = calloc((size_t)count.fields, sizeof(*plan->fields));
    plan->dictionaries =
        calloc((size_t)count.dictionaries + 1, sizeof(*plan->dictionaries));
    if (plan->fields == NULL || plan->dictionaries == NULL) {
        code = uva_error_set(error, ENOMEM, "out of memory");
        goto fail;
    }
    ipc_plan_add(plan, &plan->schema);
    ipc_plan_add_values(plan);
    return 0;
fail:
    uva__ipc_plan_fini(plan);
    return code;
}

void uva__ipc_plan_fini(struct uva__ipc_plan *plan)
{
    uva_schema_release(&plan->schema);
    free(plan->fields);
    free(plan->dictionaries);
    *plan = (struct uva__ipc_plan){0};
}
