/* SPDX-License-Identifier: Apache-2.0 */
/* The walk down a plan (arrow/cast_plan.h), with an array for each node: its
 * buffers are made by the function of its kind (arrow/cast_kinds.h), and its
 * children here. */
#include "arrow/cast.h"

#include <errno.h>
#include <inttypes.h>

#include "arrow/cast_kinds.h"
#include "arrow/layout.h"
#include "arrow/structs.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

struct uva__cast {
    struct uva_allocator allocator;
    struct ArrowSchema to; /* owns */
    struct uva__cast_plan plan;
};

/* ---- new arrays --------------------------------------------------------- */

static void release_if_live(struct ArrowArray *array)
{
    if (array->release != NULL)
        array->release(array);
}

static int cast_node(struct uva__cast_at *at, struct ArrowArray *out);

/* Casts a span of `array` for child `i` of the plan. An empty one may begin
 * anywhere. */
static int cast_child(const struct uva__cast_at *at, int64_t i,
                      struct ArrowArray *array,
                      const struct uva__cast_span *span, struct ArrowArray *out)
{
    const int64_t first = span->count > 0 ? span->first : 0;
    struct uva__cast_at below = {.up = at,
                                 .plan = &at->plan->children[i],
                                 .allocator = at->allocator,
                                 .error = at->error,
                                 .array = array,
                                 .count = span->count};

    if (first < 0 || first > array->length ||
        span->count > array->length - first)
        return uva__cast_at_fail(at, -1, EINVAL, "its offsets are wrong");
    below.from = array->offset + first;
    return cast_node(&below, out);
}

/* Values that lie otherwise, copied first. */
static int cast_copied(const struct uva__cast_at *at,
                       int (*copy)(const struct uva__cast_at *at,
                                   struct ArrowArray *out),
                       struct ArrowArray *out)
{
    struct ArrowArray values = {.release = NULL};
    int code = copy(at, &values);

    if (code == 0)
        code = cast_child(at, 0, &values,
                          &(struct uva__cast_span){0, values.length}, out);
    release_if_live(&values);
    return code;
}

static int cast_nested(struct uva__cast_at *at, struct ArrowArray *out)
{
    struct uva__cast_span span;
    int code = uva__cast_nested(at, out);

    at->out = out;
    if (code == 0 && at->plan->kind == UVA__CAST_LIST &&
        !uva__cast_nested_is_ordered(at, &span))
        return cast_copied(at, uva__decode_lists, out->children[0]);
    for (int64_t i = 0; i < at->plan->n_children && code == 0; i++) {
        uva__cast_nested_span(at, i, &span);
        code =
            cast_child(at, i, at->array->children[at->plan->children[i].child],
                       &span, out->children[i]);
    }
    return code;
}

static int cast_equal(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int code = uva__new_array_part(
        at->allocator, at->array, at->from - at->array->offset, at->count, out);

    return code == 0 ? 0 : uva__cast_at_fail(at, -1, code, "no memory");
}

static int cast_nulls(const struct uva__cast_at *at, struct ArrowArray *out)
{
    const int code =
        uva__nulls_new(at->allocator, at->plan->to, at->count, out);

    return code == 0 ? 0
                     : uva__cast_at_fail(at, -1, code, "%" PRId64 " nulls: %s",
                                         at->count, uva_error_name(code));
}

/* Fails at a null that is not hidden by one above. */
static int check_strict(const struct uva__cast_at *at)
{
    const bool all = at->plan->from->format[0] == 'n';

    if (!all && !uva__cast_at_has_nulls(at))
        return 0;
    for (int64_t i = 0; i < at->count; i++) {
        const int64_t row = all || uva__cast_at_is_null(at, i)
                                ? uva__cast_at_row_of_null(at, i)
                                : INT64_C(-1);

        if (row >= 0)
            return uva__cast_at_fail(at, row, EINVAL,
                                     "a null, which the column cannot have");
    }
    return 0;
}

static int cast_node(struct uva__cast_at *at, struct ArrowArray *out)
{
    const int code = at->plan->strict ? check_strict(at) : 0;

    if (code != 0)
        return code;
    if (at->plan->kind == UVA__CAST_EQUAL)
        return cast_equal(at, out);
    if (at->count > PTRDIFF_MAX / 64)
        return uva__cast_at_fail(at, -1, EOVERFLOW, "too many items");
    switch (at->plan->kind) {
    case UVA__CAST_NULLS:
        return cast_nulls(at, out);
    case UVA__CAST_NUMBER:
        return uva__cast_numbers(at, out);
    case UVA__CAST_BYTES:
        return uva__cast_bytes(at, out);
    case UVA__CAST_DECODE:
        return cast_copied(at, uva__decode, out);
    default:
        return cast_nested(at, out);
    }
}

/* ---- all ---------------------------------------------------------------- */

/* Looks at the array before any of its buffers is read. A format that is
 * unknown is equal in both schemas. */
static int cast_check(const struct uva__cast *cast,
                      const struct ArrowDeviceArray *array,
                      struct uva_error *error)
{
    struct uva_error wrong = {0};
    int64_t bytes;
    int code = uva__layout_measure(cast->plan.from, array, &bytes, &wrong);

    if (code != 0 && code != ENOTSUP)
        return uva_error_set(error, code, "%s", wrong.message);
    if (array->device_type != ARROW_DEVICE_CPU || array->sync_event != NULL)
        return uva_error_set(error, ENOTSUP,
                             "only data of the CPU can be cast");
    return 0;
}

int uva__cast_array(const struct uva__cast *cast,
                    struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva__cast_at at = {.plan = &cast->plan,
                              .allocator = &cast->allocator,
                              .error = error,
                              .array = &array->array,
                              .from = array->array.offset,
                              .count = array->array.length};
    struct ArrowArray rows = {.release = NULL};
    int code;

    out->array.release = NULL;
    if (cast->plan.kind == UVA__CAST_EQUAL) {
        uva_array_move(array, out);
        return 0;
    }
    code = cast_check(cast, array, error);
    if (code == 0)
        code = cast_node(&at, &rows);
    if (code == 0) {
        uva_array_from_cpu(&rows, out);
    } else if (rows.release != NULL) { /* has parts of it. Clauses: LC-10. */
        uva_array_release(array);
        rows.release(&rows);
    }
    return code;
}

int uva__cast_new(const struct uva_allocator *allocator,
                  const struct ArrowSchema *from, const struct ArrowSchema *to,
                  struct uva__cast **out, struct uva_error *error)
{
    struct uva__cast *const cast = uva__memory_new(allocator, sizeof(*cast));
    int code;

    *out = NULL;
    if (cast == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a cast");
    cast->allocator = *allocator;
    code = uva__structs_copy_schema(allocator, to, &cast->to);
    if (code != 0)
        code = uva_error_set(error, code, "cast: the schema cannot be used: %s",
                             uva_error_name(code));
    if (code == 0)
        code =
            uva__cast_plan_init(allocator, from, &cast->to, &cast->plan, error);
    if (code == 0)
        *out = cast;
    else
        uva__cast_free(cast);
    return code;
}

void uva__cast_free(struct uva__cast *cast)
{
    struct uva_allocator allocator;

    if (cast == NULL)
        return;
    allocator = cast->allocator;
    uva__cast_plan_fini(&allocator, &cast->plan);
    uva_schema_release(&cast->to);
    uva__memory_free(&allocator, cast, sizeof(*cast));
}
