/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: one walk down schema and array together, which adds up the memory of
 * the buffers. The size of its rows is left to row_size.h.
 *
 * Runs for every batch, so a valid column costs a few comparisons; texts are
 * written only for errors. Bounded are the depth, the number of nodes, and
 * every sum and product. Buffers are measured from item 0, as `offset` is the
 * number of items before the first; empty arrays need no buffers. Clauses:
 * DA-23. */
#include "arrow/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/row_size.h"
#include "arrow/share.h"
#include "arrow/structs.h"
#include "base/error.h"
#include "uvarrow/arrow.h"

/* One step of the walk; lies on the stack of its caller. */
struct layout_at {
    const struct layout_at *up;       /* borrows: the parent; NULL: the top */
    const struct ArrowSchema *schema; /* borrows */
    const struct ArrowArray *array;   /* borrows */
    int64_t index;                    /* in the parent; -1: its dictionary */
    int depth;                        /* 0 at the top */
};

enum { LAYOUT_SEEN_MAX = 128 };

/* Buffers that were counted: further ones count each time. */
struct layout_seen {
    int count;
    const void *buffers[LAYOUT_SEEN_MAX]; /* borrows */
    int64_t sizes[LAYOUT_SEEN_MAX];       /* as counted */
};

/* The state of the whole walk. */
struct layout_walk {
    struct uva_error *error;  /* borrows; may be NULL */
    int64_t memory;           /* bytes of buffers added up so far */
    struct layout_seen *seen; /* borrows; NULL: each buffer counts each time */
    int64_t nodes;            /* visited so far */
    bool on_host;             /* offsets can be read */
    bool unknown;             /* a format was: those buffers are not checked */
    uint64_t cut; /* not 0: the rows may take less than the memory */
};

/* ---- errors ------------------------------------------------------------- */

/* Writes the path from the top to `at`, as far as it fits. */
static size_t layout_write_path(const struct layout_at *at, char *text,
                                size_t room)
{
    size_t used;
    int size;

    if (at->up == NULL)
        return 0;
    used = layout_write_path(at->up, text, room);
    if (at->index < 0)
        size = snprintf(text + used, room - used, "%sdictionary",
                        used == 0 ? "" : ".");
    else
        size = snprintf(text + used, room - used, "%schildren[%" PRId64 "]",
                        used == 0 ? "" : ".", at->index);
    if ((size_t)size < room - used)
        return used + (size_t)size;
    text[used] = '\0';
    return used;
}

/* Writes "name 'x', " into `text`, or "" for a node without a name. */
static void layout_write_name(const struct ArrowSchema *schema, char *text,
                              size_t room)
{
    const char *name = schema->name == NULL ? "" : schema->name;
    const size_t size = uva__error_utf8_prefix(name, strlen(name), 64);

    text[0] = '\0';
    if (size != 0)
        (void)snprintf(text, room, "name '%.*s', ", (int)size, name);
}

/* Fills the walk's error with the path and the fault. */
static int layout_fail(const struct layout_walk *walk,
                       const struct layout_at *at, int code, const char *format,
                       ...) UVA_PRINTF(4, 5);

static int layout_fail(const struct layout_walk *walk,
                       const struct layout_at *at, int code, const char *format,
                       ...)
{
    const char *kind = at->schema->format == NULL ? "?" : at->schema->format;
    char path[512] = "batch", name[96], what[160];
    va_list args;

    if (walk->error == NULL)
        return code;
    (void)layout_write_path(at, path, sizeof(path));
    layout_write_name(at->schema, name, sizeof(name));
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return uva_error_set(
        walk->error, code, "%s (%sformat '%.*s'): %s", path, name,
        (int)uva__error_utf8_prefix(kind, strlen(kind), 64), kind, what);
}

static int layout_fail_count(const struct layout_walk *walk,
                             const struct layout_at *at, const char *what,
                             int64_t is, int64_t expected)
{
    return layout_fail(walk, at, EINVAL, "%s is %" PRId64 ", expected %" PRId64,
                       what, is, expected);
}

/* ---- one node ----------------------------------------------------------- */

/* Checks that the node is live, within bounds, and not too deep.
 * Clauses: DA-21, DA-29. */
static int layout_check_node(struct layout_walk *walk,
                             const struct layout_at *at)
{
    const struct ArrowArray *array = at->array;

    if (array->release == NULL)
        return layout_fail(walk, at, EINVAL, "the array is released");
    if (at->depth > UVA__STRUCTS_MAX_DEPTH ||
        ++walk->nodes > UVA__STRUCTS_MAX_NODES)
        return layout_fail(walk, at, EINVAL, "nested too deeply");
    if (array->length < 0 || array->offset < 0 ||
        array->offset > INT64_MAX - array->length)
        return layout_fail(walk, at, EINVAL,
                           "length %" PRId64 ", offset %" PRId64, array->length,
                           array->offset);
    if (array->null_count < -1 || array->null_count > array->length)
        return layout_fail(walk, at, EINVAL,
                           "null_count %" PRId64 ", length %" PRId64,
                           array->null_count, array->length);
    return 0;
}

/* An unknown format is noted. It may stand for any number of buffers. */
static int layout_check_format(struct layout_walk *walk,
                               const struct layout_at *at,
                               struct uva__layout *layout)
{
    const int code = uva__format_read(at->schema->format, layout);

    if (code == ENOTSUP) {
        if (!walk->unknown)
            (void)layout_fail(walk, at, code, "unknown format");
        walk->unknown = true;
        *layout = (struct uva__layout){.n_buffers = -1, .n_children = -1};
        return 0;
    }
    if (code != 0)
        return layout_fail(walk, at, code, "malformed format");
    if (at->schema->dictionary != NULL && !layout->index)
        return layout_fail(walk, at, EINVAL,
                           "a dictionary is indexed by integers only");
    return 0;
}

static int layout_check_buffer_count(const struct layout_walk *walk,
                                     const struct layout_at *at,
                                     const struct uva__layout *layout)
{
    const int64_t n = at->array->n_buffers;

    if (!layout->variadic && n != layout->n_buffers)
        return layout_fail_count(walk, at, "n_buffers", n, layout->n_buffers);
    if (layout->variadic && n <= layout->n_buffers)
        return layout_fail_count(walk, at, "n_buffers", n,
                                 layout->n_buffers + 1);
    if (n > UVA__STRUCTS_MAX_NODES)
        return layout_fail(walk, at, EINVAL, "n_buffers is %" PRId64, n);
    if (n > 0 && at->array->buffers == NULL)
        return layout_fail(walk, at, EINVAL, "the buffers vector is NULL");
    return 0;
}

/* Checks children and dictionary of both schema and array.
 * Clauses: DA-25, DA-26. */
static int layout_check_below(const struct layout_walk *walk,
                              const struct layout_at *at,
                              const struct uva__layout *layout)
{
    const struct ArrowSchema *schema = at->schema;
    const struct ArrowArray *array = at->array;

    if ((array->dictionary != NULL) != (schema->dictionary != NULL))
        return layout_fail(walk, at, EINVAL, "%s dictionary",
                           array->dictionary == NULL ? "lacks its"
                                                     : "has an unexpected");
    if (layout->n_children >= 0 && schema->n_children != layout->n_children)
        return layout_fail_count(walk, at, "the schema's n_children",
                                 schema->n_children, layout->n_children);
    if (array->n_children != schema->n_children)
        return layout_fail_count(walk, at, "n_children", array->n_children,
                                 schema->n_children);
    if (schema->n_children == 0)
        return 0;
    if (!uva__structs_children_are_sound(schema->n_children, schema->children))
        return layout_fail(walk, at, EINVAL,
                           "impossible children in the schema");
    if (array->children == NULL)
        return layout_fail(walk, at, EINVAL, "the children vector is NULL");
    return 0;
}

/* A bitmap may be NULL without nulls. With an unknown null count it should not
 * be, but some producers send such arrays. Clauses: DA-22. */
static bool layout_is_absent(const struct uva__layout *layout,
                             const struct ArrowArray *array, int64_t i)
{
    return array->buffers[i] == NULL && i == 0 && array->null_count <= 0 &&
           layout->buffers[0].kind == UVA__BUFFER_VALIDITY;
}

/* Returns how many of the `size` bytes of a buffer were not seen before. */
static int64_t layout_see(struct layout_seen *seen, const void *buffer,
                          int64_t size)
{
    int64_t more;
    int i = 0;

    while (i < seen->count && seen->buffers[i] != buffer)
        i++;
    if (i == LAYOUT_SEEN_MAX)
        return size;
    if (i == seen->count) {
        seen->buffers[seen->count++] = buffer;
        seen->sizes[i] = 0;
    }
    more = size > seen->sizes[i] ? size - seen->sizes[i] : 0;
    seen->sizes[i] += more;
    return more;
}

static int layout_add_buffer(struct layout_walk *walk,
                             const struct layout_at *at,
                             const struct uva__layout *layout, int64_t i)
{
    int64_t size;

    if (layout_is_absent(layout, at->array, i))
        return 0;
    if (uva__buffer_needed(layout, at->array, i, walk->on_host, &size) != 0)
        return layout_fail(walk, at, EINVAL,
                           "buffers[%" PRId64 "] cannot be that large, or its "
                           "offsets are wrong",
                           i);
    if (size > 0 && at->array->buffers[i] == NULL)
        return layout_fail(walk, at, EINVAL, "buffers[%" PRId64 "] is NULL", i);
    if (size > 0 && walk->on_host && i < layout->n_buffers &&
        layout->buffers[i].kind == UVA__BUFFER_DATA)
        walk->cut |= (uint64_t)uva__buffer_data_begin(layout, at->array, i);
    if (walk->seen != NULL)
        size = layout_see(walk->seen, at->array->buffers[i], size);
    if (size > INT64_MAX - walk->memory)
        return layout_fail(walk, at, EINVAL, "the sum of sizes cannot be");
    walk->memory += size;
    return 0;
}

static int layout_check_self(struct layout_walk *walk,
                             const struct layout_at *at)
{
    struct uva__layout layout;
    int code = layout_check_node(walk, at);

    if (code == 0)
        code = layout_check_format(walk, at, &layout);
    if (code == 0 && layout.n_buffers >= 0)
        code = layout_check_buffer_count(walk, at, &layout);
    if (code == 0)
        code = layout_check_below(walk, at, &layout);
    if (code != 0 || layout.n_buffers < 0)
        return code;
    walk->cut |= (uint64_t)at->array->offset | layout.variadic |
                 (at->array->dictionary != NULL && at->array->length == 0);
    for (int64_t i = 0; i < at->array->n_buffers && code == 0; i++)
        code = layout_add_buffer(walk, at, &layout, i);
    return code;
}

/* ---- the walk ----------------------------------------------------------- */

static int layout_walk_node(struct layout_walk *walk,
                            const struct layout_at *at);

/* How many items each child has at least. Without rows it needs no bytes, and
 * offsets or ends of runs are not read to decide that. */
static int64_t layout_rows_below(const struct layout_at *at)
{
    const char *format = at->schema->format;
    const int64_t rows = at->array->offset + at->array->length;
    int64_t list_size;

    if (at->array->length == 0 || format[0] != '+')
        return 0;
    if (strcmp(format, "+s") == 0 || strncmp(format, "+us:", 4) == 0)
        return rows;
    if (strncmp(format, "+w:", 3) != 0)
        return 0;
    list_size = strtol(format + 3, NULL, 10);
    return list_size > 0 && rows > INT64_MAX / list_size ? INT64_MAX
                                                         : rows * list_size;
}

/* Walks through a child, which must have `rows` items. */
static int layout_walk_child(struct layout_walk *walk,
                             const struct layout_at *up, int64_t i,
                             int64_t rows)
{
    const struct layout_at at = {.up = up,
                                 .schema = up->schema->children[i],
                                 .array = up->array->children[i],
                                 .index = i,
                                 .depth = up->depth + 1};

    if (at.schema == NULL || at.array == NULL)
        return layout_fail(walk, up, EINVAL, "children[%" PRId64 "] is NULL",
                           i);
    if (at.schema->release == NULL)
        return layout_fail(walk, up, EINVAL,
                           "children[%" PRId64 "] has a released schema", i);
    if (at.array->release != NULL && at.array->length < rows)
        return layout_fail(walk, &at, EINVAL,
                           "length %" PRId64 ", but the parent needs %" PRId64,
                           at.array->length, rows);
    walk->cut |= (uint64_t)((at.array->length ^ rows) | at.array->offset);
    return layout_walk_node(walk, &at);
}

static int layout_walk_dictionary(struct layout_walk *walk,
                                  const struct layout_at *up)
{
    const struct layout_at at = {.up = up,
                                 .schema = up->schema->dictionary,
                                 .array = up->array->dictionary,
                                 .index = -1,
                                 .depth = up->depth + 1};

    if (at.schema->release == NULL)
        return layout_fail(walk, up, EINVAL,
                           "the dictionary has a released schema");
    return layout_walk_node(walk, &at);
}

static int layout_walk_node(struct layout_walk *walk,
                            const struct layout_at *at)
{
    const int64_t n_children = at->array->n_children;
    int code = layout_check_self(walk, at);
    const int64_t rows = code == 0 ? layout_rows_below(at) : 0;

    for (int64_t i = 0; i < n_children && code == 0; i++)
        code = layout_walk_child(walk, at, i, rows);
    if (code == 0 && at->array->dictionary != NULL)
        code = layout_walk_dictionary(walk, at);
    return code;
}

/* Checks all nodes, and adds up their buffers. */
static int layout_walk_all(struct layout_walk *walk,
                           const struct ArrowSchema *schema,
                           const struct ArrowArray *array)
{
    const struct layout_at at = {.schema = schema, .array = array};
    int code = uva__structs_check_schema(schema, walk->error);

    if (code == 0)
        code = layout_walk_node(walk, &at);
    return code == 0 && walk->unknown ? ENOTSUP /* the error is of the first */
                                      : code;
}

int uva__layout_measure(const struct ArrowSchema *schema,
                        const struct ArrowDeviceArray *array,
                        int64_t *size_bytes, struct uva_error *error)
{
    struct layout_walk walk = {.error = error,
                               .on_host = uva__buffer_on_host(array)};
    const int code = layout_walk_all(&walk, schema, &array->array);

    if (code == 0)
        *size_bytes =
            walk.cut != 0
                ? uva__row_size_measure(schema, &array->array, 0,
                                        array->array.length, walk.on_host)
                : walk.memory;
    return code;
}

int uva__layout_copied(const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array,
                       int64_t *size_bytes, struct uva_error *error)
{
    struct layout_walk walk = {.error = error,
                               .on_host = uva__buffer_on_host(array)};
    const int code = layout_walk_all(&walk, schema, &array->array);

    if (code == 0)
        *size_bytes = walk.memory;
    return code;
}

int uva__layout_check_column(const struct ArrowSchema *schema,
                             const struct ArrowArray *array, int64_t rows,
                             bool on_host, int64_t *size_bytes)
{
    struct layout_walk walk = {.on_host = on_host};
    const struct layout_at at = {.schema = schema, .array = array};
    int code = layout_walk_node(&walk, &at);

    if (code == 0 && array->length < rows)
        code = EINVAL;
    *size_bytes = walk.memory;
    return code;
}

int uva_array_size(const struct ArrowSchema *schema,
                   const struct ArrowDeviceArray *array, int64_t *size_bytes)
{
    return uva__layout_measure(schema, array, size_bytes, NULL);
}

static int layout_add_up(const struct ArrowSchema *schema,
                         const struct ArrowArray *array, bool on_host,
                         int64_t *size_bytes)
{
    struct layout_seen seen = {.count = 0};
    struct layout_walk walk = {.on_host = on_host, .seen = &seen};
    const int code = layout_walk_all(&walk, schema, array);

    if (code == 0)
        *size_bytes = walk.memory;
    return code;
}

/* An owner may have changed its own structs, so that they differ from the
 * whole. */
int uva__layout_memory(const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array,
                       int64_t *size_bytes, bool *whole)
{
    const struct ArrowArray *const shared =
        uva__array_share_whole(&array->array);
    const bool on_host = uva__buffer_on_host(array);

    *whole = shared != NULL &&
             layout_add_up(schema, shared, on_host, size_bytes) == 0;
    return *whole ? 0
                  : layout_add_up(schema, &array->array, on_host, size_bytes);
}

int uva_array_memory(const struct ArrowSchema *schema,
                     const struct ArrowDeviceArray *array, int64_t *size_bytes)
{
    bool whole;

    return uva__layout_memory(schema, array, size_bytes, &whole);
}
