/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up format strings in one table, and compares the buffers and children
 * of arrays with it. Offsets inside buffers are trusted but for the first and
 * the last, as is usual for data of the same process. */
#include "io/text_field.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/text_number.h"
#include "io/text_time.h"
#include "uvarrow/arrow.h"

/* A format string and its meaning. A text that ends in ':' is a prefix. */
struct format {
    const char *text;               /* as it stands in a schema */
    enum uva__text_field_kind kind; /* how values are stored */
    int32_t width;                  /* see struct uva__text_field */
    int32_t digits;                 /* see struct uva__text_field */
};

static const struct format FORMATS[] = {
    {"n", UVA__TEXT_FIELD_NULL, 0, 0},
    {"b", UVA__TEXT_FIELD_BOOL, 0, 0},
    {"c", UVA__TEXT_FIELD_INT, 1, 0},
    {"s", UVA__TEXT_FIELD_INT, 2, 0},
    {"i", UVA__TEXT_FIELD_INT, 4, 0},
    {"l", UVA__TEXT_FIELD_INT, 8, 0},
    {"C", UVA__TEXT_FIELD_UINT, 1, 0},
    {"S", UVA__TEXT_FIELD_UINT, 2, 0},
    {"I", UVA__TEXT_FIELD_UINT, 4, 0},
    {"L", UVA__TEXT_FIELD_UINT, 8, 0},
    {"e", UVA__TEXT_FIELD_HALF, 2, 0},
    {"f", UVA__TEXT_FIELD_FLOAT, 4, 0},
    {"g", UVA__TEXT_FIELD_DOUBLE, 8, 0},
    {"d:", UVA__TEXT_FIELD_DECIMAL, 16, 0},
    {"u", UVA__TEXT_FIELD_TEXT, 4, 0},
    {"U", UVA__TEXT_FIELD_TEXT, 8, 0},
    {"z", UVA__TEXT_FIELD_BYTES, 4, 0},
    {"Z", UVA__TEXT_FIELD_BYTES, 8, 0},
    {"vu", UVA__TEXT_FIELD_TEXT_VIEW, 0, 0},
    {"vz", UVA__TEXT_FIELD_BYTES_VIEW, 0, 0},
    {"w:", UVA__TEXT_FIELD_FIXED_BYTES, 0, 0},
    {"tdD", UVA__TEXT_FIELD_DATE, 4, 0},
    {"tdm", UVA__TEXT_FIELD_DATE, 8, 3},
    {"tts", UVA__TEXT_FIELD_TIME, 4, 0},
    {"ttm", UVA__TEXT_FIELD_TIME, 4, 3},
    {"ttu", UVA__TEXT_FIELD_TIME, 8, 6},
    {"ttn", UVA__TEXT_FIELD_TIME, 8, 9},
    {"tss:", UVA__TEXT_FIELD_TIMESTAMP, 8, 0},
    {"tsm:", UVA__TEXT_FIELD_TIMESTAMP, 8, 3},
    {"tsu:", UVA__TEXT_FIELD_TIMESTAMP, 8, 6},
    {"tsn:", UVA__TEXT_FIELD_TIMESTAMP, 8, 9},
    {"tDs", UVA__TEXT_FIELD_DURATION, 8, 0},
    {"tDm", UVA__TEXT_FIELD_DURATION, 8, 3},
    {"tDu", UVA__TEXT_FIELD_DURATION, 8, 6},
    {"tDn", UVA__TEXT_FIELD_DURATION, 8, 9},
    {"tiM", UVA__TEXT_FIELD_MONTHS, 4, 0},
    {"tiD", UVA__TEXT_FIELD_DAYS_MS, 8, 3},
    {"tin", UVA__TEXT_FIELD_MONTHS_NS, 16, 9},
    {"+l", UVA__TEXT_FIELD_LIST, 4, 0},
    {"+L", UVA__TEXT_FIELD_LIST, 8, 0},
    {"+m", UVA__TEXT_FIELD_LIST, 4, 0},
    {"+vl", UVA__TEXT_FIELD_LIST_VIEW, 4, 0},
    {"+vL", UVA__TEXT_FIELD_LIST_VIEW, 8, 0},
    {"+w:", UVA__TEXT_FIELD_FIXED_LIST, 0, 0},
    {"+s", UVA__TEXT_FIELD_STRUCT, 0, 0},
    {"+ud:", UVA__TEXT_FIELD_DENSE_UNION, 0, 0},
    {"+us:", UVA__TEXT_FIELD_SPARSE_UNION, 0, 0},
    {"+r", UVA__TEXT_FIELD_RUNS, 0, 0},
};

/* The parts of an array of a kind. */
struct shape {
    int64_t buffers;  /* minimum for view types */
    int64_t children; /* -1: as many as the schema has */
    bool quoted;      /* written as text */
};

static const struct shape SHAPES[UVA__TEXT_FIELD_KINDS] = {
    [UVA__TEXT_FIELD_NULL] = {0, 0, false},
    [UVA__TEXT_FIELD_BOOL] = {2, 0, false},
    [UVA__TEXT_FIELD_INT] = {2, 0, false},
    [UVA__TEXT_FIELD_UINT] = {2, 0, false},
    [UVA__TEXT_FIELD_HALF] = {2, 0, false},
    [UVA__TEXT_FIELD_FLOAT] = {2, 0, false},
    [UVA__TEXT_FIELD_DOUBLE] = {2, 0, false},
    [UVA__TEXT_FIELD_DECIMAL] = {2, 0, false},
    [UVA__TEXT_FIELD_DATE] = {2, 0, true},
    [UVA__TEXT_FIELD_TIME] = {2, 0, true},
    [UVA__TEXT_FIELD_TIMESTAMP] = {2, 0, true},
    [UVA__TEXT_FIELD_DURATION] = {2, 0, true},
    [UVA__TEXT_FIELD_MONTHS] = {2, 0, true},
    [UVA__TEXT_FIELD_DAYS_MS] = {2, 0, true},
    [UVA__TEXT_FIELD_MONTHS_NS] = {2, 0, true},
    [UVA__TEXT_FIELD_TEXT] = {3, 0, true},
    [UVA__TEXT_FIELD_BYTES] = {3, 0, true},
    [UVA__TEXT_FIELD_TEXT_VIEW] = {3, 0, true},
    [UVA__TEXT_FIELD_BYTES_VIEW] = {3, 0, true},
    [UVA__TEXT_FIELD_FIXED_BYTES] = {2, 0, true},
    [UVA__TEXT_FIELD_LIST] = {2, 1, false},
    [UVA__TEXT_FIELD_LIST_VIEW] = {3, 1, false},
    [UVA__TEXT_FIELD_FIXED_LIST] = {1, 1, false},
    [UVA__TEXT_FIELD_STRUCT] = {1, -1, false},
    [UVA__TEXT_FIELD_DENSE_UNION] = {2, -1, false},
    [UVA__TEXT_FIELD_SPARSE_UNION] = {1, -1, false},
    [UVA__TEXT_FIELD_RUNS] = {0, 2, false},
};

/* ---- from the schema ---------------------------------------------------- */

static int field_build(struct uva__text_field *field,
                       const struct ArrowSchema *schema, bool is_loose,
                       struct uva_error *error);

static const struct format *format_find(const char *text)
{
    size_t i;

    for (i = 0; i < sizeof(FORMATS) / sizeof(*FORMATS); i++) {
        const char *known = FORMATS[i].text;
        const size_t size = strlen(known);

        if (known[size - 1] == ':' ? strncmp(text, known, size) == 0
                                   : strcmp(text, known) == 0)
            return &FORMATS[i];
    }
    return NULL;
}

static int field_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

static int parameter_error(const struct uva__text_field *field,
                           const char *format, struct uva_error *error)
{
    return uva_error_set(error, EINVAL,
                         "column '%.64s' (format '%.64s'): malformed format",
                         field->name, format);
}

/* Reads "precision,scale" or "precision,scale,bits". */
static bool decimal_read(struct uva__text_field *field, const char *text)
{
    char *end;
    long scale, bits = 128;

    (void)strtol(text, &end, 10);
    if (*end != ',')
        return false;
    scale = strtol(end + 1, &end, 10);
    if (*end == ',')
        bits = strtol(end + 1, &end, 10);
    field->scale = (int32_t)scale;
    field->width = (int32_t)(bits / 8);
    return *end == '\0' && labs(scale) <= UVA__TEXT_NUMBER_SCALE_MAX &&
           (bits == 32 || bits == 64 || bits == 128 || bits == 256);
}

static bool width_read(struct uva__text_field *field, const char *text)
{
    char *end;
    const long width = strtol(text, &end, 10);

    field->width = (int32_t)width;
    return end != text && *end == '\0' && width >= 0 && width <= INT32_MAX;
}

/* Reads the type ids of a union: "0,5". No two children have the same one. */
static bool ids_read(struct uva__text_field *field, const char *text)
{
    const char *at = text;
    int child = 0;
    char *end;

    memset(field->ids, -1, sizeof(field->ids));
    while (*at != '\0') {
        const long id = strtol(at, &end, 10);

        if (end == at || id < 0 || id > 127 || field->ids[id] >= 0 ||
            child >= field->n_children)
            return false;
        field->ids[id] = (int8_t)child++;
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

/* Reads the part after the ':' of a format. */
static bool parameter_read(struct uva__text_field *field, const char *text)
{
    switch (field->kind) {
    case UVA__TEXT_FIELD_DECIMAL:
        return decimal_read(field, text);
    case UVA__TEXT_FIELD_FIXED_BYTES:
    case UVA__TEXT_FIELD_FIXED_LIST:
        return width_read(field, text);
    case UVA__TEXT_FIELD_TIMESTAMP:
        field->zone = uva__text_time_read_zone(text);
        return true;
    case UVA__TEXT_FIELD_DENSE_UNION:
    case UVA__TEXT_FIELD_SPARSE_UNION:
        return ids_read(field, text);
    default:
        return true;
    }
}

/* On failure, uva__text_field_fini() frees the children made so far. */
static int children_build(struct uva__text_field *field,
                          const struct ArrowSchema *schema, bool is_loose,
                          struct uva_error *error)
{
    const size_t count = (size_t)schema->n_children;
    int code = 0;
    size_t i;

    field->children = calloc(count > 0 ? count : 1, sizeof(*field->children));
    if (field->children == NULL)
        return field_no_memory(error);
    field->n_children = schema->n_children;
    for (i = 0; i < count && code == 0; i++)
        code = field_build(&field->children[i], schema->children[i], is_loose,
                           error);
    return code;
}

static int dictionary_build(struct uva__text_field *field,
                            const struct ArrowSchema *schema, bool is_loose,
                            struct uva_error *error)
{
    if (field->kind != UVA__TEXT_FIELD_INT &&
        field->kind != UVA__TEXT_FIELD_UINT)
        return parameter_error(field, schema->format, error);
    field->dictionary = calloc(1, sizeof(*field->dictionary));
    if (field->dictionary == NULL)
        return field_no_memory(error);
    return field_build(field->dictionary, schema->dictionary, is_loose, error);
}

static bool runs_are_sound(const struct uva__text_field *field)
{
    const struct uva__text_field *ends = &field->children[0];

    return ends->kind == UVA__TEXT_FIELD_INT && ends->width >= 2 &&
           ends->dictionary == NULL;
}

/* Fills in the members that depend on the kind alone. */
static void kind_set(struct uva__text_field *field, const struct format *format,
                     bool is_loose)
{
    const enum uva__text_field_kind kind = format->kind;

    field->kind = kind;
    field->width = format->width;
    field->digits = format->digits;
    field->quoted = SHAPES[kind].quoted;
    field->is_loose = is_loose || kind >= UVA__TEXT_FIELD_TEXT;
}

/* Writes the name as JSON has it, after a comma. */
static void key_write(struct uva__text_field *field)
{
    char *end;

    uva__text_put_char(&field->key, ',');
    uva__text_put_json(&field->key, field->name, strlen(field->name));
    uva__text_put_char(&field->key, ':');
    end = uva__text_room(&field->key, UVA__TEXT_FIELD_KEY_BLOCK);
    if (end != NULL)
        memset(end, 0, UVA__TEXT_FIELD_KEY_BLOCK);
}

static int field_build(struct uva__text_field *field,
                       const struct ArrowSchema *schema, bool is_loose,
                       struct uva_error *error)
{
    const struct format *format = format_find(schema->format);
    int code;

    field->name = schema->name == NULL ? "" : schema->name;
    key_write(field);
    if (field->key.failed)
        return field_no_memory(error);
    if (format == NULL)
        return uva_error_set(error, ENOTSUP,
                             "column '%.64s' (format '%.64s') cannot be "
                             "written as text",
                             field->name, schema->format);
    kind_set(field, format, is_loose);
    if (SHAPES[format->kind].children >= 0 &&
        SHAPES[format->kind].children != schema->n_children)
        return parameter_error(field, schema->format, error);
    code = children_build(field, schema, is_loose, error);
    if (code == 0 &&
        (!parameter_read(field, schema->format + strlen(format->text)) ||
         (field->kind == UVA__TEXT_FIELD_RUNS && !runs_are_sound(field))))
        code = parameter_error(field, schema->format, error);
    if (code == 0 && schema->dictionary != NULL)
        code = dictionary_build(field, schema, is_loose, error);
    return code;
}

int uva__text_field_init(struct uva__text_field *field,
                         const struct ArrowSchema *schema, bool is_loose,
                         struct uva_error *error)
{
    int code;

    memset(field, 0, sizeof(*field));
    code = field_build(field, schema, is_loose, error);
    if (code != 0)
        uva__text_field_fini(field);
    return code;
}

static bool extension_is(const struct ArrowSchema *schema, const char *name)
{
    struct uva_pair pair;

    return uva_metadata_get(schema->metadata, "ARROW:extension:name", &pair) ==
               0 &&
           pair.value_size == strlen(name) &&
           memcmp(pair.value, name, pair.value_size) == 0;
}

void uva__text_field_mark(struct uva__text_field *field,
                          const struct ArrowSchema *schema)
{
    struct uva__text_field *values = field;

    for (int64_t i = 0; i < field->n_children; i++)
        uva__text_field_mark(&field->children[i], schema->children[i]);
    if (field->dictionary != NULL) { /* the mark is on the indices */
        values = field->dictionary;
        uva__text_field_mark(values, schema->dictionary);
    }
    values->is_uuid |= values->kind == UVA__TEXT_FIELD_FIXED_BYTES &&
                       values->width == 16 &&
                       extension_is(schema, "arrow.uuid");
    values->is_json |= (values->kind == UVA__TEXT_FIELD_TEXT ||
                        values->kind == UVA__TEXT_FIELD_TEXT_VIEW) &&
                       extension_is(schema, "arrow.json");
}

void uva__text_field_fini(struct uva__text_field *field)
{
    int64_t i;

    for (i = 0; i < field->n_children; i++)
        uva__text_field_fini(&field->children[i]);
    free(field->children);
    if (field->dictionary != NULL)
        uva__text_field_fini(field->dictionary);
    free(field->dictionary);
    uva__text_fini(&field->key);
    memset(field, 0, sizeof(*field));
}

/* ---- checking an array -------------------------------------------------- */

/* Returns the length that the children must have, if it is known beforehand. */
static int64_t child_length(const struct uva__text_field *field,
                            const struct ArrowArray *array)
{
    const int64_t end = array->length + array->offset;

    switch (field->kind) {
    case UVA__TEXT_FIELD_STRUCT:
    case UVA__TEXT_FIELD_SPARSE_UNION:
        return end;
    case UVA__TEXT_FIELD_FIXED_LIST:
        return field->width == 0 || end <= INT64_MAX / field->width
                   ? end * field->width
                   : INT64_MAX;
    default:
        return 0;
    }
}

static bool has_bitmap(const struct uva__text_field *field)
{
    switch (field->kind) {
    case UVA__TEXT_FIELD_NULL:
    case UVA__TEXT_FIELD_DENSE_UNION:
    case UVA__TEXT_FIELD_SPARSE_UNION:
    case UVA__TEXT_FIELD_RUNS:
        return false;
    default:
        return true;
    }
}

static bool buffer_count_fits(const struct uva__text_field *field,
                              const struct ArrowArray *array)
{
    const int64_t count = SHAPES[field->kind].buffers;
    const bool is_view = field->kind == UVA__TEXT_FIELD_TEXT_VIEW ||
                         field->kind == UVA__TEXT_FIELD_BYTES_VIEW;

    if (is_view ? array->n_buffers < count : array->n_buffers != count)
        return false;
    return count == 0 || array->buffers != NULL;
}

/* Only a bitmap may be missing, or the data of strings that are all empty. */
static bool buffers_fit(const struct uva__text_field *field,
                        const struct ArrowArray *array)
{
    const int64_t count = SHAPES[field->kind].buffers;

    if (!buffer_count_fits(field, array))
        return false;
    if (count == 0 || array->length == 0)
        return true;
    if (array->buffers[0] == NULL &&
        (!has_bitmap(field) || array->null_count > 0))
        return false;
    if (field->kind == UVA__TEXT_FIELD_LIST_VIEW && array->buffers[2] == NULL)
        return false;
    return count < 2 || array->buffers[1] != NULL ||
           (field->kind == UVA__TEXT_FIELD_FIXED_BYTES && field->width == 0);
}

static bool children_fit(const struct uva__text_field *field,
                         const struct ArrowArray *array)
{
    const int64_t least = child_length(field, array);
    int64_t i;

    if (array->n_children != field->n_children ||
        (array->n_children > 0 && array->children == NULL))
        return false;
    for (i = 0; i < array->n_children; i++)
        if (array->children[i] == NULL || array->children[i]->length < least)
            return false;
    return true;
}

/* Whether the first and the last offset are in order and in range. */
static bool offsets_fit(const struct uva__text_field *field,
                        const struct ArrowArray *array)
{
    const bool is_list = field->kind == UVA__TEXT_FIELD_LIST;
    const void *offsets;
    int64_t begin, end;

    if ((!is_list && field->kind != UVA__TEXT_FIELD_TEXT &&
         field->kind != UVA__TEXT_FIELD_BYTES) ||
        array->length == 0)
        return true;
    offsets = array->buffers[1];
    begin = uva__text_field_load(offsets, field->width, array->offset);
    end = uva__text_field_load(offsets, field->width,
                               array->offset + array->length);
    if (begin < 0 || end < begin)
        return false;
    return is_list ? end <= array->children[0]->length
                   : end == begin || array->buffers[2] != NULL;
}

static bool field_fits(const struct uva__text_field *field,
                       const struct ArrowArray *array)
{
    return array->release != NULL && array->length >= 0 && array->offset >= 0 &&
           array->length <= INT64_MAX - array->offset &&
           array->null_count <= array->length &&
           (array->dictionary != NULL) == (field->dictionary != NULL) &&
           buffers_fit(field, array) && children_fit(field, array) &&
           offsets_fit(field, array);
}

/* Every value must lie in a run, so the last run must end late enough. */
static bool runs_fit(const struct uva__text_field *field,
                     const struct ArrowArray *array)
{
    const struct ArrowArray *ends = array->children[0];

    assert(field->kind == UVA__TEXT_FIELD_RUNS && field->n_children == 2);
    if (array->length == 0)
        return true;
    if (ends->length == 0 || array->children[1]->length < ends->length)
        return false;
    return uva__text_field_load(ends->buffers[1], field->children[0].width,
                                ends->offset + ends->length - 1) >=
           array->offset + array->length;
}

static int fit_error(const struct uva__text_field *field,
                     struct uva_error *error)
{
    return uva_error_set(error, EINVAL,
                         "column '%.64s': the batch does not fit the schema",
                         field->name);
}

int uva__text_field_check(const struct uva__text_field *field,
                          const struct ArrowArray *array,
                          struct uva_error *error)
{
    int code = field_fits(field, array) ? 0 : fit_error(field, error);
    int64_t i;

    for (i = 0; i < field->n_children && code == 0; i++)
        code = uva__text_field_check(&field->children[i], array->children[i],
                                     error);
    if (code == 0 && field->dictionary != NULL)
        code =
            uva__text_field_check(field->dictionary, array->dictionary, error);
    if (code == 0 && field->kind == UVA__TEXT_FIELD_RUNS &&
        !runs_fit(field, array))
        code = fit_error(field, error);
    return code;
}
