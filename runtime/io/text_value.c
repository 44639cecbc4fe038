/* SPDX-License-Identifier: Apache-2.0 */
/* Works in two steps: finds the value through dictionaries, unions and runs,
 * then writes it in the form of its kind. Lists and structs become JSON. */
#include "io/text_value.h"

#include <assert.h>

#include "io/text_json.h"
#include "io/text_time.h"

/* ---- reading ------------------------------------------------------------ */

static uint64_t load_uint(const void *data, int32_t width, int64_t at)
{
    const uint64_t value = (uint64_t)uva__text_field_load(data, width, at);

    return width == 8 ? value : value & ((UINT64_C(1) << 8 * width) - 1);
}

static bool load_bit(const void *data, int64_t at)
{
    return (((const uint8_t *)data)[at >> 3] >> (at & 7) & 1) != 0;
}

/* Loads the integer at the cell, with the width of its kind. */
static int64_t cell_int(const struct uva__text_value *c)
{
    return uva__text_field_load(c->array->buffers[1], c->field->width, c->at);
}

/* ---- finding ------------------------------------------------------------ */

static struct uva__text_value cell_child(const struct uva__text_value *c,
                                         int64_t child, int64_t at)
{
    const struct ArrowArray *array = c->array->children[child];

    assert(child < c->field->n_children);
    return (struct uva__text_value){&c->field->children[child], array,
                                    at + array->offset};
}

static struct uva__text_value cell_look_up(const struct uva__text_value *c)
{
    const struct ArrowArray *array = c->array->dictionary;

    return (struct uva__text_value){c->field->dictionary, array,
                                    cell_int(c) + array->offset};
}

/* The cell is in the first run that ends after it. */
static struct uva__text_value cell_run(const struct uva__text_value *c)
{
    const struct uva__text_value ends = cell_child(c, 0, 0);
    int64_t low = 0, high = ends.array->length;

    assert(c->field->kind == UVA__TEXT_FIELD_RUNS && high > 0);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (uva__text_field_load(ends.array->buffers[1], ends.field->width,
                                 ends.at + middle) > c->at)
            high = middle;
        else
            low = middle + 1;
    }
    return cell_child(c, 1, low);
}

static bool cell_union(struct uva__text_value *c)
{
    const int8_t id =
        (int8_t)uva__text_field_load(c->array->buffers[0], 1, c->at);
    const int8_t child = id < 0 ? -1 : c->field->ids[id];

    if (child < 0)
        return false;
    *c = cell_child(c, child,
                    c->field->kind == UVA__TEXT_FIELD_SPARSE_UNION
                        ? c->at
                        : uva__text_field_load(c->array->buffers[1], 4, c->at));
    return true;
}

static bool cell_is_null(const struct uva__text_value *c)
{
    return c->array->null_count != 0 && c->array->buffers[0] != NULL &&
           !load_bit(c->array->buffers[0], c->at);
}

/* Whether the value is in the array itself. */
static inline bool cell_is_direct(const struct uva__text_value *c)
{
    return c->field->kind > UVA__TEXT_FIELD_NULL &&
           c->field->kind < UVA__TEXT_FIELD_DENSE_UNION &&
           c->field->dictionary == NULL;
}

/* Goes one step to the value. Returns false if there is none. */
static bool cell_follow(struct uva__text_value *c)
{
    switch (c->field->kind) {
    case UVA__TEXT_FIELD_NULL:
        return false;
    case UVA__TEXT_FIELD_DENSE_UNION:
    case UVA__TEXT_FIELD_SPARSE_UNION:
        return cell_union(c);
    case UVA__TEXT_FIELD_RUNS:
        *c = cell_run(c);
        return true;
    default:
        if (cell_is_null(c))
            return false;
        *c = cell_look_up(c);
        return true;
    }
}

/* Follows dictionaries, unions and runs to the value. Returns false if it is
 * null. */
static inline bool cell_resolve(struct uva__text_value *c)
{
    while (!cell_is_direct(c))
        if (!cell_follow(c))
            return false;
    return !cell_is_null(c);
}

/* ---- writing: numbers --------------------------------------------------- */

static char *write_bool(const struct uva__text_value *c, char *at)
{
    if (load_bit(c->array->buffers[1], c->at)) {
        memcpy(at, "true", 4);
        return at + 4;
    }
    memcpy(at, "false", 5);
    return at + 5;
}

static char *write_int(const struct uva__text_value *c, char *at)
{
    return uva__text_number_put_int(at, cell_int(c));
}

static char *write_uint(const struct uva__text_value *c, char *at)
{
    return uva__text_number_put_uint(
        at, load_uint(c->array->buffers[1], c->field->width, c->at));
}

static char *write_half(const struct uva__text_value *c, char *at)
{
    return uva__text_number_put_half(at, (uint16_t)cell_int(c));
}

static char *write_float(const struct uva__text_value *c, char *at)
{
    float value;

    memcpy(&value, (const char *)c->array->buffers[1] + 4 * c->at,
           sizeof(value));
    return uva__text_number_put_float(at, value);
}

static char *write_double(const struct uva__text_value *c, char *at)
{
    double value;

    memcpy(&value, (const char *)c->array->buffers[1] + 8 * c->at,
           sizeof(value));
    return uva__text_number_put_double(at, value);
}

static char *write_decimal(const struct uva__text_value *c, char *at)
{
    const size_t width = (size_t)c->field->width;
    const char *value =
        (const char *)c->array->buffers[1] + (int64_t)width * c->at;

    return uva__text_number_put_decimal(at, value, width, c->field->scale);
}

/* ---- writing: time ------------------------------------------------------ */

static int64_t days_of_ms(int64_t ms)
{
    return ms / 86400000 - (ms % 86400000 < 0);
}

static char *write_moment(const struct uva__text_value *c, char *at)
{
    const int digits = c->field->digits;
    const int64_t value = cell_int(c);

    switch (c->field->kind) {
    case UVA__TEXT_FIELD_DATE:
        return uva__text_time_put_date(at,
                                       digits == 0 ? value : days_of_ms(value));
    case UVA__TEXT_FIELD_TIME:
        return uva__text_time_put_time(at, value, digits);
    case UVA__TEXT_FIELD_TIMESTAMP:
        return uva__text_time_put_timestamp(at, value, digits, c->field->zone);
    case UVA__TEXT_FIELD_DURATION:
        return uva__text_time_put_duration(at, value, digits);
    default:
        assert(c->field->kind == UVA__TEXT_FIELD_MONTHS);
        return uva__text_time_put_interval(at, (int32_t)value, 0, 0, -1);
    }
}

static char *write_days_ms(const struct uva__text_value *c, char *at)
{
    const void *data = c->array->buffers[1];
    const int32_t days = (int32_t)uva__text_field_load(data, 4, 2 * c->at);
    const int32_t ms = (int32_t)uva__text_field_load(data, 4, 2 * c->at + 1);

    return uva__text_time_put_interval(at, 0, days, ms, 3);
}

static char *write_months_ns(const struct uva__text_value *c, char *at)
{
    const void *data = c->array->buffers[1];
    const int32_t months = (int32_t)uva__text_field_load(data, 4, 4 * c->at);
    const int32_t days = (int32_t)uva__text_field_load(data, 4, 4 * c->at + 1);
    const int64_t ns = uva__text_field_load(data, 8, 2 * c->at + 1);

    return uva__text_time_put_interval(at, months, days, ns, 9);
}

/* Writes a value that is not null. */
typedef char *cell_write_fn(const struct uva__text_value *c, char *at);

static cell_write_fn *const WRITE[UVA__TEXT_FIELD_KINDS] = {
    [UVA__TEXT_FIELD_BOOL] = write_bool,
    [UVA__TEXT_FIELD_INT] = write_int,
    [UVA__TEXT_FIELD_UINT] = write_uint,
    [UVA__TEXT_FIELD_HALF] = write_half,
    [UVA__TEXT_FIELD_FLOAT] = write_float,
    [UVA__TEXT_FIELD_DOUBLE] = write_double,
    [UVA__TEXT_FIELD_DECIMAL] = write_decimal,
    [UVA__TEXT_FIELD_DATE] = write_moment,
    [UVA__TEXT_FIELD_TIME] = write_moment,
    [UVA__TEXT_FIELD_TIMESTAMP] = write_moment,
    [UVA__TEXT_FIELD_DURATION] = write_moment,
    [UVA__TEXT_FIELD_MONTHS] = write_moment,
    [UVA__TEXT_FIELD_DAYS_MS] = write_days_ms,
    [UVA__TEXT_FIELD_MONTHS_NS] = write_months_ns,
};

char *uva__text_value_write(const struct uva__text_value *cell, char *at)
{
    return WRITE[cell->field->kind](cell, at);
}

/* JSON has no notation for NaN and infinity. */
static char *quote_odd(char *start, char *end)
{
    if (end[-1] != 'n' && end[-1] != 'f')
        return end;
    memmove(start + 1, start, (size_t)(end - start));
    start[0] = end[1] = '"';
    return end + 2;
}

char *uva__text_value_write_json(const struct uva__text_value *cell, char *at)
{
    char *const start = at;

    switch (cell->field->kind) {
    case UVA__TEXT_FIELD_HALF:
    case UVA__TEXT_FIELD_FLOAT:
    case UVA__TEXT_FIELD_DOUBLE:
        return quote_odd(start, uva__text_value_write(cell, at));
    default:
        break;
    }
    if (cell->field->quoted)
        *at++ = '"';
    at = uva__text_value_write(cell, at);
    if (cell->field->quoted)
        *at++ = '"';
    return at;
}

/* ---- writing: bytes ----------------------------------------------------- */

/* Some bytes in a buffer. Borrows. */
struct span {
    const char *data; /* may be NULL if size is 0 */
    size_t size;      /* in bytes */
};

static struct span span_of_offsets(const struct uva__text_value *c)
{
    const void *offsets = c->array->buffers[1];
    const int32_t width = c->field->width;
    const int64_t begin = uva__text_field_load(offsets, width, c->at);
    const int64_t end = uva__text_field_load(offsets, width, c->at + 1);

    if (end <= begin)
        return (struct span){NULL, 0};
    return (struct span){(const char *)c->array->buffers[2] + begin,
                         (size_t)(end - begin)};
}

/* A view is a size and either up to 12 bytes or a prefix of 4, the number of a
 * buffer and an offset in it. */
static struct span span_of_view(const struct uva__text_value *c)
{
    const char *view = (const char *)c->array->buffers[1] + 16 * c->at;
    const int64_t size = uva__text_field_load(view, 4, 0);
    const int64_t buffer = uva__text_field_load(view, 4, 2);

    if (size <= 12)
        return (struct span){view + 4, size < 0 ? 0 : (size_t)size};
    if (buffer < 0 || buffer >= c->array->n_buffers - 3)
        return (struct span){NULL, 0};
    return (struct span){(const char *)c->array->buffers[2 + buffer] +
                             uva__text_field_load(view, 4, 3),
                         (size_t)size};
}

static struct span cell_span(const struct uva__text_value *c)
{
    const int64_t width = c->field->width;

    switch (c->field->kind) {
    case UVA__TEXT_FIELD_TEXT:
    case UVA__TEXT_FIELD_BYTES:
        return span_of_offsets(c);
    case UVA__TEXT_FIELD_TEXT_VIEW:
    case UVA__TEXT_FIELD_BYTES_VIEW:
        return span_of_view(c);
    default:
        assert(c->field->kind == UVA__TEXT_FIELD_FIXED_BYTES);
        if (width == 0) /* there may be no buffer */
            return (struct span){NULL, 0};
        return (struct span){(const char *)c->array->buffers[1] + width * c->at,
                             (size_t)width};
    }
}

/* 8-4-4-4-12 hexadecimal digits. */
static void put_uuid(const char *data, struct uva__text *out)
{
    static const size_t sizes[] = {4, 2, 2, 2, 6};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        if (i > 0)
            uva__text_put_char(out, '-');
        uva__text_put_hex(out, data, sizes[i]);
        data += sizes[i];
    }
}

static void put_bytes(const struct uva__text_value *c, struct uva__text *out)
{
    const struct span span = cell_span(c);

    if (c->field->is_uuid)
        put_uuid(span.data, out);
    else
        uva__text_put_hex(out, span.data, span.size);
}

/* ---- writing: nested ---------------------------------------------------- */

static void put_list(const struct uva__text_value *c, struct uva__text *out)
{
    const int32_t width = c->field->width;
    const void *offsets;
    int64_t at, end;

    if (c->field->kind == UVA__TEXT_FIELD_FIXED_LIST) {
        at = width * c->at;
        end = at + width;
    } else {
        offsets = c->array->buffers[1];
        at = uva__text_field_load(offsets, width, c->at);
        end =
            c->field->kind == UVA__TEXT_FIELD_LIST
                ? uva__text_field_load(offsets, width, c->at + 1)
                : at + uva__text_field_load(c->array->buffers[2], width, c->at);
    }
    uva__text_put_char(out, '[');
    for (; at < end; at++) {
        uva__text_value_put_json(cell_child(c, 0, at), out);
        if (at + 1 < end)
            uva__text_put_char(out, ',');
    }
    uva__text_put_char(out, ']');
}

/* The comma of the first key becomes the bracket. */
static void put_struct(const struct uva__text_value *c, struct uva__text *out)
{
    const size_t start = out->size;
    int64_t i;

    for (i = 0; i < c->field->n_children; i++) {
        const struct uva__text *key = &c->field->children[i].key;

        uva__text_put(out, key->data, key->size);
        uva__text_value_put_json(cell_child(c, i, c->at), out);
    }
    if (i == 0)
        uva__text_put_char(out, '{');
    else if (!out->failed)
        out->data[start] = '{';
    uva__text_put_char(out, '}');
}

/* ---- writing ------------------------------------------------------------ */

/* Appends a value that is not null, no text, and has no fixed room, without
 * quotes. */
typedef void cell_put_fn(const struct uva__text_value *c,
                         struct uva__text *out);

static cell_put_fn *const PUT[UVA__TEXT_FIELD_KINDS] = {
    [UVA__TEXT_FIELD_BYTES] = put_bytes,
    [UVA__TEXT_FIELD_BYTES_VIEW] = put_bytes,
    [UVA__TEXT_FIELD_FIXED_BYTES] = put_bytes,
    [UVA__TEXT_FIELD_LIST] = put_list,
    [UVA__TEXT_FIELD_LIST_VIEW] = put_list,
    [UVA__TEXT_FIELD_FIXED_LIST] = put_list,
    [UVA__TEXT_FIELD_STRUCT] = put_struct,
};

static bool cell_is_text(const struct uva__text_value *c)
{
    return c->field->kind == UVA__TEXT_FIELD_TEXT ||
           c->field->kind == UVA__TEXT_FIELD_TEXT_VIEW;
}

static void cell_put(const struct uva__text_value *c, struct uva__text *out)
{
    char *at;

    if (PUT[c->field->kind] != NULL) {
        PUT[c->field->kind](c, out);
        return;
    }
    at = uva__text_room(out, UVA__TEXT_VALUE_ROOM);
    if (at != NULL)
        uva__text_advance(out, uva__text_value_write(c, at));
}

void uva__text_value_put_csv(struct uva__text_value cell,
                             const struct uva__csv_style *style,
                             struct uva__text *out)
{
    const size_t start = out->size;
    struct span span;

    if (!cell_resolve(&cell)) {
        uva__text_put(out, style->null_text, style->null_size);
        return;
    }
    if (cell_is_text(&cell)) {
        span = cell_span(&cell);
        uva__text_put_csv(out, span.data, span.size, style);
        return;
    }
    cell_put(&cell, out);
    if (cell.field->is_loose)
        uva__text_quote_csv(out, start, style);
}

static void cell_put_json_text(const struct uva__text_value *c,
                               struct uva__text *out)
{
    const struct span span = cell_span(c);

    if (c->field->is_json && uva__text_json_check(span.data, span.size))
        uva__text_json_put(out, span.data, span.size);
    else
        uva__text_put_json(out, span.data, span.size);
}

void uva__text_value_put_json(struct uva__text_value cell,
                              struct uva__text *out)
{
    char *at;

    if (!cell_resolve(&cell)) {
        uva__text_put(out, "null", 4);
        return;
    }
    if (cell_is_text(&cell)) {
        cell_put_json_text(&cell, out);
        return;
    }
    if (PUT[cell.field->kind] == NULL) {
        at = uva__text_room(out, UVA__TEXT_VALUE_ROOM);
        if (at != NULL)
            uva__text_advance(out, uva__text_value_write_json(&cell, at));
        return;
    }
    if (cell.field->quoted)
        uva__text_put_char(out, '"');
    PUT[cell.field->kind](&cell, out);
    if (cell.field->quoted)
        uva__text_put_char(out, '"');
}
