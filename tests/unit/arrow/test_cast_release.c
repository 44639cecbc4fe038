/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which an array and its parts are released when a cast has moved
 * some of them: the array goes first. Clauses: LC-10. */
#include "arrow/cast.h"

#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow.h"

enum { ROWS = 2, COLUMNS = 2 };

static char order[8]; /* of the releases: 'a' for the array, '0' and '1' */
static int released;

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
    order[released++] = *(const char *)array->private_data;
}

static void array_release(struct ArrowArray *array)
{
    array->release = NULL;
    order[released++] = 'a';
    for (int i = 0; i < COLUMNS; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
}

static struct ArrowSchema columns[2][COLUMNS];
static struct ArrowSchema *lists[2][COLUMNS];

static struct ArrowSchema make_schema(int n, const char *second)
{
    for (int i = 0; i < COLUMNS; i++) {
        columns[n][i] = (struct ArrowSchema){.format = i == 0 ? "l" : second,
                                             .name = i == 0 ? "kept" : "cast",
                                             .release = schema_release};
        lists[n][i] = &columns[n][i];
    }
    return (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = COLUMNS,
                                .children = lists[n],
                                .release = schema_release};
}

static void make_array(struct ArrowDeviceArray *out)
{
    static const int64_t values[ROWS] = {1, INT64_C(1) << 40};
    static const void *buffers[2] = {NULL, values};
    static const void *none[1] = {NULL};
    static struct ArrowArray children[COLUMNS];
    static struct ArrowArray *list[COLUMNS] = {&children[0], &children[1]};
    static char names[COLUMNS] = {'0', '1'};
    struct ArrowArray plain = {.length = ROWS,
                               .n_buffers = 1,
                               .n_children = COLUMNS,
                               .buffers = none,
                               .children = list,
                               .release = array_release};

    for (int i = 0; i < COLUMNS; i++)
        children[i] = (struct ArrowArray){.length = ROWS,
                                          .n_buffers = 2,
                                          .buffers = buffers,
                                          .release = column_release,
                                          .private_data = &names[i]};
    uva_array_from_cpu(&plain, out);
}

/* Casts the second column to `format`, and releases what is left. */
static int cast_second(const char *format)
{
    const struct ArrowSchema from = make_schema(0, "l"),
                             to = make_schema(1, format);
    struct ArrowDeviceArray array, out;
    struct faulty_allocator memory;
    struct uva_allocator allocator;
    struct uva_error error;
    struct uva__cast *cast;
    int code;

    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(uva__cast_new(&allocator, &from, &to, &cast, &error), 0);
    make_array(&array);
    code = uva__cast_array(cast, &array, &out, &error);
    uva__cast_free(cast);
    uva_array_release(&array);
    uva_array_release(&out);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    return code;
}

static void set_up(void)
{
    released = 0;
    for (int i = 0; i < (int)sizeof(order); i++)
        order[i] = '\0';
}

START_TEST(a_cast_leaves_the_array_to_be_released_first)
{
    ck_assert_int_eq(cast_second("g"), 0);
    ck_assert_str_eq(order, "a10");
}
END_TEST

START_TEST(a_cast_that_fails_releases_the_array_before_a_part_it_has_moved)
{
    ck_assert_int_eq(cast_second("i"), EOVERFLOW);
    ck_assert_str_eq(order, "a10");
}
END_TEST

int main(void)
{
    return suite_main(
        "cast_release", set_up, NULL,
        suite_tests(
            "cast_release", a_cast_leaves_the_array_to_be_released_first,
            a_cast_that_fails_releases_the_array_before_a_part_it_has_moved,
            NULL),
        NULL);
}
