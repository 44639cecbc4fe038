/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that are implausibly wide, or too deep to be described in full: every
 * function that walks children must end and report an error. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "arrow/layout.h"
#include "arrow/structs.h"
#include "support/check_suite.h"
#include "uvarrow/arrow.h"

enum { WIDE = 1025 };

/* A node with a thousand children, all the same one: a node with as many, all
 * the same leaf. */
struct thicket {
    struct ArrowSchema schema, branch_schema, leaf_schema;
    struct ArrowDeviceArray array;
    struct ArrowArray branch, leaf;
    struct ArrowSchema *branch_schemas[WIDE], *leaf_schemas[WIDE];
    struct ArrowArray *branches[WIDE], *leaves[WIDE];
};

static int64_t values[2];
static const void *leaf_buffers[] = {NULL, values};

static void keep_schema(struct ArrowSchema *schema)
{
    (void)schema;
}

static void keep_array(struct ArrowArray *array)
{
    (void)array;
}

static void node(struct ArrowSchema *schema, struct ArrowArray *array,
                 struct ArrowSchema **schemas, struct ArrowArray **arrays)
{
    *schema = (struct ArrowSchema){.format = "+s",
                                   .n_children = WIDE,
                                   .children = schemas,
                                   .release = keep_schema};
    *array = (struct ArrowArray){.length = 1,
                                 .n_buffers = 1,
                                 .buffers = leaf_buffers,
                                 .n_children = WIDE,
                                 .children = arrays,
                                 .release = keep_array};
}

static struct thicket *thicket(const char *leaf_format)
{
    static struct thicket t;

    node(&t.schema, &t.array.array, t.branch_schemas, t.branches);
    node(&t.branch_schema, &t.branch, t.leaf_schemas, t.leaves);
    t.array.device_type = ARROW_DEVICE_CPU;
    t.leaf_schema =
        (struct ArrowSchema){.format = leaf_format, .release = keep_schema};
    t.leaf = (struct ArrowArray){.length = 1,
                                 .n_buffers = 2,
                                 .buffers = leaf_buffers,
                                 .release = keep_array};
    for (int i = 0; i < WIDE; i++) {
        t.branch_schemas[i] = &t.branch_schema;
        t.branches[i] = &t.branch;
        t.leaf_schemas[i] = &t.leaf_schema;
        t.leaves[i] = &t.leaf;
    }
    return &t;
}

START_TEST(a_tree_too_wide_is_not_measured)
{
    /* a column of numbers takes the fast path, a column of bits does not */
    struct thicket *t = thicket(_i == 0 ? "l" : "b");
    struct uva_error error;
    int64_t size;

    ck_assert_int_eq(uva__layout_measure(&t->schema, &t->array, &size, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "nested too deeply"));
    t->schema.n_children = t->array.array.n_children = 3;
    ck_assert_int_eq(uva__layout_measure(&t->schema, &t->array, &size, &error),
                     0);
    ck_assert_int_eq(size, 3 * WIDE * (_i == 0 ? 8 : 1));
}
END_TEST

START_TEST(a_tree_too_wide_is_not_copied)
{
    struct thicket *t = thicket("l");
    struct ArrowSchema copy;

    ck_assert_int_eq(uva_schema_copy(&t->schema, &copy), EINVAL);
    ck_assert(copy.release == NULL);
}
END_TEST

START_TEST(a_tree_too_wide_is_not_shared)
{
    struct thicket *t = thicket("l");
    struct ArrowDeviceArray out;

    ck_assert_int_eq(uva_array_share(&t->array, &out), EINVAL);
    ck_assert(out.array.release == NULL);
    ck_assert(t->array.array.release == keep_array);
}
END_TEST

/* A chain of indices, each the dictionary of the one above it. */
START_TEST(a_place_too_deep_is_told_as_far_as_there_is_room)
{
    static struct ArrowSchema schemas[64];
    static struct ArrowArray arrays[64];
    struct ArrowDeviceArray array;
    struct uva_error error;
    int64_t size;

    for (int i = 0; i < 64; i++) {
        schemas[i] = (struct ArrowSchema){.format = "l",
                                          .dictionary = &schemas[i + 1],
                                          .release = keep_schema};
        arrays[i] = (struct ArrowArray){.length = 1,
                                        .n_buffers = 2,
                                        .buffers = leaf_buffers,
                                        .dictionary = &arrays[i + 1],
                                        .release = keep_array};
    }
    schemas[63].dictionary = NULL;
    arrays[63].dictionary = NULL;
    arrays[63].n_buffers = 7;
    uva_array_from_cpu(&arrays[0], &array);
    ck_assert_int_eq(uva__layout_measure(&schemas[0], &array, &size, &error),
                     EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "dictionary.dictionary"));
    ck_assert_ptr_nonnull(
        strstr(error.message, "(format 'l'): n_buffers is 7, expected 2"));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("trees");

    tcase_add_loop_test(tcase, a_tree_too_wide_is_not_measured, 0, 2);
    tcase_add_test(tcase, a_tree_too_wide_is_not_copied);
    tcase_add_test(tcase, a_tree_too_wide_is_not_shared);
    tcase_add_test(tcase, a_place_too_deep_is_told_as_far_as_there_is_room);
    return suite_main("bounds", NULL, NULL, tcase, NULL);
}
