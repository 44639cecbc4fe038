/* SPDX-License-Identifier: Apache-2.0 */
/* A shared array gets copies in place of its nodes with an offset: structs of a
 * share may be released and replaced. The result is shared anew, as a whole:
 * copies of a share are taken to need only its origin. Indices are copied
 * without their dictionary, which may be much larger. */
#include "arrow/flat.h"

#include <errno.h>

#include "arrow/concat.h"
#include "arrow/layout.h"
#include "arrow/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

/* Copied indices, and the dictionary of before. */
struct flat_indices {
    struct uva_allocator allocator;
    struct ArrowArray indices; /* owns */
    struct ArrowArray
        dictionary; /* owns: nodes of a mixture are not moved out */
};

static void flat_release_indices(struct ArrowArray *array)
{
    struct flat_indices *own = array->private_data;
    const struct uva_allocator allocator = own->allocator;

    own->dictionary.release(&own->dictionary);
    own->indices.release(&own->indices);
    array->release = NULL;
    uva__memory_free(&allocator, own, sizeof(*own));
}

/* Whether there is an offset in an array that has the children of its schema,
 * of whatever formats. */
static bool flat_is_due(const struct ArrowArray *array)
{
    bool due = array->offset != 0;

    for (int64_t i = 0; i < array->n_children && !due; i++)
        due = flat_is_due(array->children[i]);
    return due || (array->dictionary != NULL && flat_is_due(array->dictionary));
}

/* Gives a copy of all rows of an array. */
static int flat_copy(const struct uva_allocator *allocator,
                     const struct ArrowSchema *schema,
                     const struct ArrowArray *array, struct ArrowArray *out)
{
    struct uva__concat *concat = NULL;
    int code = uva__concat_new(allocator, schema, &concat);

    if (code == 0)
        code = uva__concat_measure(concat, array, 0, array->length);
    if (code == 0)
        code = uva__concat_begin(concat);
    if (code == 0) {
        for (int64_t i = 0; i < uva__concat_passes(concat); i++)
            uva__concat_fill(concat, i, array, 0, array->length);
        uva__concat_finish(concat, out);
    }
    uva__concat_free(concat);
    return code;
}

static int flat_replace(const struct uva_allocator *allocator,
                        const struct ArrowSchema *schema,
                        struct ArrowArray *array)
{
    struct ArrowArray copy;
    const int code = flat_copy(allocator, schema, array, &copy);

    if (code != 0)
        return code;
    array->release(array);
    *array = copy;
    return 0;
}

static int flat_replace_indices(const struct uva_allocator *allocator,
                                const struct ArrowSchema *schema,
                                struct ArrowArray *array)
{
    struct flat_indices *own = uva__memory_new(allocator, sizeof(*own));
    struct ArrowSchema plain = *schema;
    struct ArrowArray bare = *array;
    int code;

    if (own == NULL)
        return ENOMEM;
    plain.dictionary = NULL;
    bare.dictionary = NULL;
    code = flat_copy(allocator, &plain, &bare, &own->indices);
    if (code != 0) {
        uva__memory_free(allocator, own, sizeof(*own));
        return code;
    }
    own->allocator = *allocator;
    own->dictionary = *array->dictionary;
    array->dictionary->release = NULL;
    array->release(array);
    *array = own->indices;
    array->dictionary = &own->dictionary;
    array->release = flat_release_indices;
    array->private_data = own;
    return 0;
}

/* Removes the offsets of a shared array and its children. */
static int flat_node(const struct uva_allocator *allocator,
                     const struct ArrowSchema *schema, struct ArrowArray *array)
{
    int code = 0;

    if (array->offset != 0 && array->dictionary == NULL)
        return flat_replace(allocator, schema, array);
    if (array->offset != 0)
        code = flat_replace_indices(allocator, schema, array);
    for (int64_t i = 0; i < array->n_children && code == 0; i++)
        code = flat_node(allocator, schema->children[i], array->children[i]);
    return code == 0 && array->dictionary != NULL
               ? flat_node(allocator, schema->dictionary, array->dictionary)
               : code;
}

/* The parts of a shared array, once some of its nodes are copies. */
struct flat_mixture {
    struct uva_allocator allocator;
    struct ArrowArray array; /* owns */
};

static void flat_release_mixture(struct ArrowArray *array)
{
    struct flat_mixture *own = array->private_data;
    const struct uva_allocator allocator = own->allocator;

    own->array.release(&own->array);
    array->release = NULL;
    uva__memory_free(&allocator, own, sizeof(*own));
}

/* Makes `array` the owner of its parts. */
static int flat_own(const struct uva_allocator *allocator,
                    struct ArrowArray *array)
{
    struct flat_mixture *own = uva__memory_new(allocator, sizeof(*own));

    if (own == NULL)
        return ENOMEM;
    own->allocator = *allocator;
    own->array = *array;
    array->release = flat_release_mixture;
    array->private_data = own;
    return 0;
}

static int flat_share(const struct uva_allocator *allocator,
                      const struct ArrowSchema *schema,
                      struct ArrowDeviceArray *array,
                      struct ArrowDeviceArray *out)
{
    struct ArrowDeviceArray mixture;
    int code = uva__array_share(allocator, array, &mixture);

    if (code == 0)
        code = flat_node(allocator, schema, &mixture.array);
    if (code == 0)
        code = flat_own(allocator, &mixture.array);
    if (code == 0)
        code = uva__array_share(allocator, &mixture, out);
    if (mixture.array.release != NULL)
        uva_array_release(&mixture);
    return code;
}

int uva__flat_array(const struct uva_allocator *allocator,
                    const struct ArrowSchema *schema,
                    struct ArrowDeviceArray *array,
                    struct ArrowDeviceArray *out, struct uva_error *error)
{
    struct uva_error wrong = {0};
    int64_t bytes;
    int code = uva__layout_measure(schema, array, &bytes, &wrong);

    out->array.release = NULL;
    if ((code == 0 || code == ENOTSUP) && !flat_is_due(&array->array)) {
        uva_array_move(array, out);
        return 0;
    }
    if (code != 0)
        return uva_error_set(error, code, "%s", wrong.message);
    if (array->device_type != ARROW_DEVICE_CPU || array->sync_event != NULL)
        return uva_error_set(error, ENOTSUP,
                             "only data of the CPU can be copied to have no "
                             "offset");
    code = flat_share(allocator, schema, array, out);
    return code == 0 ? 0
                     : uva_error_set(error, code,
                                     "cannot copy a column with an offset: %s",
                                     uva_error_name(code));
}
