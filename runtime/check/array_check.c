/* SPDX-License-Identifier: Apache-2.0 */
/* Checks arrays node by node. A fault stops only the checks that depend on it:
 * with an impossible length no buffer is measured, with a wrong number of
 * buffers no buffer is read, but the children still are. */
#include "check/array_check.h"

#include <inttypes.h>
#include <string.h>

#include "arrow/buffer.h"
#include "arrow/structs.h"
#include "check/schema_check.h"

/* The fill of storage that a producer has not written to. */
#define ARRAY_CHECK_UNSET INT64_C(0xA5A5A5A5A5A5A5A5)

/* One walk down an array. */
struct array_check {
    struct uva__tree_walk *walk; /* borrows */
    const char *misfit;          /* static; or NULL */
    bool on_host;                /* offsets may be read */
};

/* ---- the device part ---------------------------------------------------- */

static void array_check_event(struct uva__tree_walk *walk,
                              const struct ArrowDeviceArray *array)
{
    if (array->sync_event == NULL)
        return;
    switch (array->device_type) {
    case ARROW_DEVICE_CPU:
        uva__tree_walk_breach(walk, "EV-04", "a CPU array with an event");
        break;
    case ARROW_DEVICE_VPI:
    case ARROW_DEVICE_WEBGPU:
    case ARROW_DEVICE_HEXAGON:
        uva__tree_walk_breach(walk, "EV-09",
                              "an event, which device type %" PRId32
                              " does not know",
                              array->device_type);
        break;
    default:
        break;
    }
}

static void array_check_device(struct uva__tree_walk *walk,
                               const struct ArrowDeviceArray *array)
{
    if (array->device_type <= 0)
        uva__tree_walk_breach(walk, "DA-03", "device_type is %" PRId32,
                              array->device_type);
    if (array->device_id == (int64_t)ARRAY_CHECK_UNSET)
        uva__tree_walk_breach(walk, "DA-04", "device_id was not written");
    else if (array->device_type == ARROW_DEVICE_CPU && array->device_id != -1)
        uva__tree_walk_breach(walk, "DA-05", "a CPU array with the id %" PRId64,
                              array->device_id);
    if ((array->reserved[0] | array->reserved[1] | array->reserved[2]) != 0)
        uva__tree_walk_breach(walk, "DA-08", "reserved bytes are not zero");
    array_check_event(walk, array);
}

/* ---- numbers ------------------------------------------------------------ */

static bool array_check_length(struct uva__tree_walk *walk,
                               const struct ArrowArray *array)
{
    if (array->length >= 0 && array->offset >= 0 &&
        array->offset <= INT64_MAX - array->length && array->null_count >= -1 &&
        array->null_count <= array->length)
        return true;
    uva__tree_walk_breach(walk, "DA-21",
                          "length %" PRId64 ", offset %" PRId64
                          ", null_count %" PRId64,
                          array->length, array->offset, array->null_count);
    return false;
}

/* The clause for an array that does not fit its schema: `clause`, unless the
 * caller gave one for all misfits. */
static const char *array_check_misfit(const struct array_check *check,
                                      const char *clause)
{
    return check->misfit == NULL ? clause : check->misfit;
}

static bool array_check_buffer_count(struct array_check *check,
                                     const struct ArrowArray *array,
                                     const struct uva__layout *layout)
{
    struct uva__tree_walk *walk = check->walk;
    const int64_t n = array->n_buffers;

    if (layout->variadic && n == layout->n_buffers) {
        uva__tree_walk_breach(walk, "DA-27",
                              "views without the lengths of their data");
        return false;
    }
    if (layout->variadic ? n < layout->n_buffers || n > UVA__STRUCTS_MAX_NODES
                         : n != layout->n_buffers) {
        uva__tree_walk_breach(walk, array_check_misfit(check, "DA-20"),
                              "n_buffers is %" PRId64 ", the format has %s%d",
                              n, layout->variadic ? "more than " : "",
                              layout->n_buffers);
        return false;
    }
    if (n == 0 || array->buffers != NULL)
        return true;
    uva__tree_walk_breach(walk, "DA-22", "the buffers vector is NULL");
    return false;
}

/* ---- buffers ------------------------------------------------------------ */

/* The alignment that the address of a buffer needs. Clauses: DA-24. */
static uintptr_t array_check_align(const struct uva__layout *layout,
                                   const char *format, int64_t i)
{
    const uint32_t width = (uint32_t)layout->buffers[i].width;
    const uint32_t align = width & (~width + 1);

    if (align == 0 || format[0] == 'w')
        return 1;
    if (format[0] == 't' && strcmp(format, "tiD") == 0) /* two of 4 bytes */
        return 4;
    return align < 8 ? align : 8;
}

static void array_check_aligned(struct uva__tree_walk *walk,
                                const struct ArrowArray *array, int64_t i,
                                uintptr_t align)
{
    if ((uintptr_t)array->buffers[i] % align != 0)
        uva__tree_walk_breach(walk, "DA-24",
                              "buffers[%" PRId64 "] is not aligned to %d", i,
                              (int)align);
}

/* A missing bitmap: no value may be null then. With an unknown null count that
 * cannot be checked, and such arrays exist in practice. */
static void array_check_no_bitmap(struct uva__tree_walk *walk,
                                  const struct ArrowArray *array)
{
    if (array->length == 0 || array->null_count == 0)
        return;
    uva__tree_walk_remark(
        walk, "DA-22",
        array->null_count < 0 ? UVA_SEVERITY_WARNING : UVA_SEVERITY_ERROR,
        "there is no validity bitmap, and null_count is %" PRId64,
        array->null_count);
}

/* Checks one buffer other than a missing bitmap. Returns false if the next
 * buffer depends on it and must not be read. */
static bool array_check_buffer(struct array_check *check,
                               const struct ArrowArray *array,
                               const struct uva__layout *layout, int64_t i)
{
    int64_t size;

    if (uva__buffer_needed(layout, array, i, check->on_host, &size) != 0) {
        uva__tree_walk_breach(check->walk, "DA-23",
                              "buffers[%" PRId64
                              "] cannot be as large as its length or the "
                              "offsets say",
                              i);
        return false;
    }
    if (size == 0 || array->buffers[i] != NULL)
        return true;
    uva__tree_walk_breach(check->walk, "DA-22", "buffers[%" PRId64 "] is NULL",
                          i);
    return false;
}

/* Checks the data buffers of views, after the fixed ones; their lengths are in
 * the last buffer, which is checked first. */
static void array_check_variadic(struct array_check *check,
                                 const struct ArrowArray *array,
                                 const struct uva__layout *layout)
{
    const int64_t last = array->n_buffers - 1;

    if (!array_check_buffer(check, array, layout, last))
        return;
    if (array->length != 0)
        array_check_aligned(check->walk, array, last, 8);
    for (int64_t i = layout->n_buffers; i < last; i++)
        if (!array_check_buffer(check, array, layout, i))
            return;
}

static void array_check_buffers(struct array_check *check,
                                const struct ArrowArray *array,
                                const struct uva__layout *layout,
                                const char *format)
{
    for (int64_t i = 0; i < layout->n_buffers; i++) {
        if (layout->buffers[i].kind == UVA__BUFFER_VALIDITY &&
            array->buffers[i] == NULL) {
            array_check_no_bitmap(check->walk, array);
            continue;
        }
        if (!array_check_buffer(check, array, layout, i))
            return;
        if (array->length != 0)
            array_check_aligned(check->walk, array, i,
                                array_check_align(layout, format, i));
    }
    if (layout->variadic)
        array_check_variadic(check, array, layout);
}

/* Checks one node without its children. */
static void array_check_self(struct array_check *check,
                             const struct ArrowSchema *schema,
                             const struct ArrowArray *array)
{
    const bool sound = array_check_length(check->walk, array);
    struct uva__layout layout;

    if (schema == NULL || uva__format_read(schema->format, &layout) != 0)
        return;
    if (array_check_buffer_count(check, array, &layout) && sound)
        array_check_buffers(check, array, &layout, schema->format);
}

/* ---- the fast path ------------------------------------------------------ */

/* Whether only two buffers have to be checked. */
static bool array_check_is_plain(const struct ArrowSchema *schema,
                                 const struct ArrowArray *array)
{
    return array->release != NULL && schema->release != NULL &&
           schema->dictionary == NULL && array->dictionary == NULL &&
           (schema->n_children | array->n_children) == 0 &&
           array->n_buffers == 2 && array->buffers != NULL &&
           array->length > 0 && array->length <= INT32_MAX &&
           (uint64_t)array->offset <= INT32_MAX;
}

/* Whether a column of numbers has no fault, for the most common shape. False
 * for all other columns, sound or not, which are checked in full. */
static bool array_check_plain(const struct ArrowSchema *schema,
                              const struct ArrowArray *array)
{
    const void *const *buffers;

    if (schema == NULL || array == NULL || !array_check_is_plain(schema, array))
        return false;
    buffers = array->buffers;
    return buffers[1] != NULL && (uintptr_t)buffers[1] % 8 == 0 &&
           array->null_count >= -1 &&
           array->null_count <= (buffers[0] == NULL ? 0 : array->length) &&
           (buffers[0] != NULL || array->null_count == 0) &&
           uva__format_width(schema->format) != 0;
}

/* Whether the format consists of these two letters. */
static bool array_check_format_is(const struct ArrowSchema *schema, char first,
                                  char second)
{
    const char *format = schema->format;

    return format != NULL && format[0] == first && format[1] == second &&
           format[2] == '\0';
}

/* Whether a batch itself has no fault: a struct without nulls. False for all
 * other arrays, sound or not. */
static bool array_check_is_batch(const struct ArrowSchema *schema,
                                 const struct ArrowArray *array)
{
    return schema != NULL && array_check_format_is(schema, '+', 's') &&
           schema->dictionary == NULL && array->dictionary == NULL &&
           array->n_buffers == 1 && array->buffers != NULL &&
           array->buffers[0] == NULL && array->null_count == 0 &&
           (uint64_t)array->length <= INT32_MAX &&
           (uint64_t)array->offset <= INT32_MAX;
}

/* ---- below -------------------------------------------------------------- */

static void array_check_node(struct array_check *check,
                             const struct ArrowSchema *schema,
                             const struct ArrowArray *array);

/* A released schema, which is reported elsewhere, is treated as unknown. */
static const struct ArrowSchema *
array_check_known(const struct ArrowSchema *schema)
{
    return schema != NULL && schema->release != NULL ? schema : NULL;
}

/* Checks a child or, with index -1, the dictionary. */
static void array_check_below(struct array_check *check, int64_t index,
                              const struct ArrowSchema *schema,
                              const struct ArrowArray *array)
{
    if (!uva__tree_walk_enter(check->walk, index))
        return;
    if (array == NULL || array->release == NULL)
        uva__tree_walk_breach(check->walk, index < 0 ? "DA-26" : "DA-25",
                              "the array is %s",
                              array == NULL ? "NULL" : "released");
    else
        array_check_node(check, array_check_known(schema), array);
    uva__tree_walk_leave(check->walk);
}

static void array_check_dictionary(struct array_check *check,
                                   const struct ArrowSchema *schema,
                                   const struct ArrowArray *array)
{
    if (schema != NULL &&
        (schema->dictionary != NULL) != (array->dictionary != NULL))
        uva__tree_walk_breach(
            check->walk, array_check_misfit(check, "DA-26"), "%s dictionary",
            array->dictionary == NULL ? "lacks its" : "has an unexpected");
    else if (array->dictionary != NULL)
        array_check_below(check, -1, schema == NULL ? NULL : schema->dictionary,
                          array->dictionary);
}

static void array_check_children(struct array_check *check,
                                 const struct ArrowSchema *schema,
                                 const struct ArrowArray *array)
{
    const struct ArrowSchema *const *schemas = NULL;

    if (!uva__structs_children_are_sound(array->n_children, array->children)) {
        uva__tree_walk_breach(check->walk, "DA-25",
                              "there cannot be %" PRId64 " children",
                              array->n_children);
        return;
    }
    if (schema != NULL &&
        !uva__structs_children_are_sound(schema->n_children, schema->children))
        schema = NULL; /* it is reported with the schema */
    if (schema != NULL && array->n_children != schema->n_children)
        uva__tree_walk_breach(check->walk, array_check_misfit(check, "DA-20"),
                              "%" PRId64 " children; the schema has %" PRId64,
                              array->n_children, schema->n_children);
    else if (schema != NULL)
        schemas = (const struct ArrowSchema *const *)schema->children;
    for (int64_t i = 0; i < array->n_children; i++) {
        const struct ArrowSchema *child = schemas == NULL ? NULL : schemas[i];
        if (!array_check_plain(child, array->children[i]))
            array_check_below(check, i, child, array->children[i]);
    }
}

static void array_check_node(struct array_check *check,
                             const struct ArrowSchema *schema,
                             const struct ArrowArray *array)
{
    array_check_self(check, schema, array);
    array_check_dictionary(check, schema, array);
    array_check_children(check, schema, array);
}

void uva__array_check(struct uva__tree_walk *walk,
                      const struct ArrowSchema *schema,
                      const struct ArrowDeviceArray *array, const char *misfit)
{
    struct array_check check = {
        .walk = walk, .misfit = misfit, .on_host = uva__buffer_on_host(array)};

    uva__tree_walk_begin(walk);
    array_check_device(walk, array);
    if (!array_check_is_batch(schema, &array->array)) {
        array_check_self(&check, schema, &array->array);
        array_check_dictionary(&check, schema, &array->array);
    }
    array_check_children(&check, schema, &array->array);
}

/* ---- public ------------------------------------------------------------- */

static void array_check_both(struct uva__tree_walk *walk,
                             const struct ArrowSchema *schema,
                             const struct ArrowDeviceArray *array)
{
    if (schema->release == NULL)
        uva__tree_walk_breach(walk, "LC-01", "the schema is released");
    else
        uva__schema_check(walk, schema);
    if (array->array.release == NULL)
        uva__tree_walk_breach(walk, "LC-01", "the array is released");
    else
        uva__array_check(walk, array_check_known(schema), array, NULL);
}

int uva_check_array(const struct ArrowSchema *schema,
                    const struct ArrowDeviceArray *array,
                    const struct uva_check *options, struct uva_error *error)
{
    struct uva_check borrowed =
        options == NULL ? (struct uva_check){0} : *options;
    struct uva__tree_walk walk = {.error = error};
    int code;

    if (schema == NULL || array == NULL)
        return uva_error_set(error, EINVAL, "check: no %s",
                             schema == NULL ? "schema" : "array");
    borrowed.free_ctx = NULL;
    code = uva__reporter_new(&borrowed, &walk.reporter, error);
    if (code != 0)
        return code;
    array_check_both(&walk, schema, array);
    if (uva__reporter_count(walk.reporter) != 0)
        code = EPROTO;
    uva__reporter_release(walk.reporter);
    return code;
}
