/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: of Arrow's C data interface as objects of JavaScript, which are
 * called Fields, and back. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

/* As the library reads them */
enum { DEPTH_MAX = 64 };

struct shape *shape_new(const struct ArrowSchema *schema)
{
    struct shape *shape = calloc(1, sizeof(*shape));

    if (shape == NULL)
        return NULL;
    shape->users = 1;
    if (uva_schema_copy(schema, &shape->schema) == 0)
        return shape;
    free(shape);
    return NULL;
}

struct shape *shape_acquire(struct shape *shape)
{
    shape->users++;
    return shape;
}

void shape_release(struct shape *shape)
{
    if (shape == NULL || --shape->users > 0)
        return;
    uva_schema_release(&shape->schema);
    free(shape);
}

/* ---- as a Field ---------------------------------------------------------- */

static bool field_set(napi_env env, napi_value field, const char *name,
                      napi_value value)
{
    return value != NULL &&
           value_ok(env, napi_set_named_property(env, field, name, value));
}

static napi_value field_text(napi_env env, const char *text)
{
    napi_value out = NULL;

    return value_ok(env, napi_create_string_utf8(env, text == NULL ? "" : text,
                                                 NAPI_AUTO_LENGTH, &out))
               ? out
               : NULL;
}

static napi_value field_children(napi_env env, const struct ArrowSchema *schema)
{
    napi_value out = NULL;

    if (!value_ok(env, napi_create_array(env, &out)))
        return NULL;
    for (int64_t i = 0; i < schema->n_children; i++) {
        napi_value child = schema_value(env, schema->children[i]);

        if (child == NULL ||
            !value_ok(env, napi_set_element(env, out, (uint32_t)i, child)))
            return NULL;
    }
    return out;
}

/* The schema is a copy of the library's, which has checked its depth. */
napi_value schema_value(napi_env env, const struct ArrowSchema *schema)
{
    const int64_t flags = schema->flags;
    napi_value out = NULL;

    if (!value_ok(env, napi_create_object(env, &out)) ||
        !field_set(env, out, "name", field_text(env, schema->name)) ||
        !field_set(env, out, "format", field_text(env, schema->format)) ||
        !field_set(env, out, "nullable",
                   value_truth(env, (flags & ARROW_FLAG_NULLABLE) != 0)) ||
        !field_set(env, out, "flags", value_number(env, (double)flags)) ||
        !field_set(env, out, "metadata",
                   value_metadata(env, schema->metadata)) ||
        !field_set(env, out, "children", field_children(env, schema)))
        return NULL;
    if (schema->dictionary != NULL &&
        !field_set(env, out, "dictionary",
                   schema_value(env, schema->dictionary)))
        return NULL;
    return out;
}

/* ---- from a Field -------------------------------------------------------- */

static void made_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i]->release != NULL)
            schema->children[i]->release(schema->children[i]);
        free(schema->children[i]);
    }
    if (schema->dictionary != NULL && schema->dictionary->release != NULL)
        schema->dictionary->release(schema->dictionary);
    free(schema->dictionary);
    free(schema->children);
    free((void *)schema->format);
    free((void *)schema->name);
    free((void *)schema->metadata);
    schema->release = NULL;
}

static bool field_read(napi_env env, napi_value field, int depth,
                       struct ArrowSchema *out);

static bool field_get(napi_env env, napi_value field, const char *name,
                      napi_value *out)
{
    return value_ok(env, napi_get_named_property(env, field, name, out));
}

/* JavaScript passes the metadata as an array of keys and values. */
static bool field_read_metadata(napi_env env, napi_value list,
                                struct ArrowSchema *out)
{
    struct uva_pair *pairs = NULL;
    char *block = NULL;
    size_t size = 0;
    int code;

    if (!value_pairs(env, list, &pairs))
        return false;
    code = uva_metadata_encode(pairs, NULL, &size);
    if (code == EMSGSIZE && (block = malloc(size)) != NULL)
        code = uva_metadata_encode(pairs, block, &size);
    value_pairs_free(pairs);
    out->metadata = block;
    if (code != 0)
        (void)value_fail(env, block == NULL ? ENOMEM : code,
                         "metadata cannot be encoded", NULL);
    return code == 0;
}

static bool field_read_children(napi_env env, napi_value list, int depth,
                                struct ArrowSchema *out)
{
    uint32_t count = 0;

    if (!value_ok(env, napi_get_array_length(env, list, &count)))
        return false;
    out->children = calloc(count + 1, sizeof(struct ArrowSchema *));
    for (uint32_t i = 0; out->children != NULL && i < count; i++) {
        napi_value child = NULL;

        out->children[i] = calloc(1, sizeof(struct ArrowSchema));
        if (out->children[i] == NULL)
            break;
        out->n_children++;
        if (!value_ok(env, napi_get_element(env, list, i, &child)) ||
            !field_read(env, child, depth + 1, out->children[i]))
            return false;
    }
    if (out->children != NULL && out->n_children == (int64_t)count)
        return true;
    (void)value_no_memory(env);
    return false;
}

static bool field_read_dictionary(napi_env env, napi_value field, int depth,
                                  struct ArrowSchema *out)
{
    napi_valuetype type = napi_undefined;

    if (!value_ok(env, napi_typeof(env, field, &type)))
        return false;
    if (type != napi_object)
        return true;
    out->dictionary = calloc(1, sizeof(*out->dictionary));
    if (out->dictionary == NULL) {
        (void)value_no_memory(env);
        return false;
    }
    return field_read(env, field, depth + 1, out->dictionary);
}

/* On failure `out` holds what was read so far, to be released. */
static bool field_read(napi_env env, napi_value field, int depth,
                       struct ArrowSchema *out)
{
    napi_value name, format, flags, metadata, children, dictionary;

    out->release = made_release;
    if (depth > DEPTH_MAX) {
        (void)value_fail(env, EINVAL, "a field has too many levels", NULL);
        return false;
    }
    return field_get(env, field, "name", &name) &&
           field_get(env, field, "format", &format) &&
           field_get(env, field, "flags", &flags) &&
           field_get(env, field, "metadata", &metadata) &&
           field_get(env, field, "children", &children) &&
           field_get(env, field, "dictionary", &dictionary) &&
           value_text(env, name, (char **)&out->name) &&
           value_text(env, format, (char **)&out->format) &&
           value_integer(env, flags, &out->flags) &&
           field_read_metadata(env, metadata, out) &&
           field_read_children(env, children, depth, out) &&
           field_read_dictionary(env, dictionary, depth, out);
}

bool schema_read(napi_env env, napi_value field, struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){0};
    if (field_read(env, field, 0, out))
        return true;
    uva_schema_release(out);
    return false;
}
