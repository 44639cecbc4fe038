/* SPDX-License-Identifier: Apache-2.0 */
/* Checks name the missing member. Copies of schemas are complete, independent
 * of the original, and can be moved. */
#include "arrow/structs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* ---- arrays ------------------------------------------------------------- */

START_TEST(da08_a_cleared_array_is_released_and_zero_to_the_last_byte)
{
    static const char zero[sizeof(struct ArrowDeviceArray)];
    struct ArrowDeviceArray array;

    memset(&array, 0xA5, sizeof(array));
    uva_array_clear(&array);
    ck_assert(!uva_array_is_live(&array));
    ck_assert_mem_eq(&array, zero, sizeof(zero));
}
END_TEST

/* ---- checks ------------------------------------------------------------- */

static int stream_call(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    (void)stream;
    (void)out;
    return 0;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    (void)stream;
    (void)out;
    return 0;
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

START_TEST(ab17_a_stream_names_its_empty_slot)
{
    const struct ArrowArrayStream whole = {stream_call, stream_next,
                                           stream_error, stream_release, NULL};
    struct ArrowArrayStream stream = whole;
    struct uva_error error;

    ck_assert_int_eq(uva__structs_check_stream(&stream, &error), 0);
    stream.get_next = NULL;
    ck_assert_int_eq(uva__structs_check_stream(&stream, &error), EINVAL);
    ck_assert_str_eq(error.message,
                     "source: get_next is NULL; fill in all four functions");
    ck_assert_int_eq(uva__structs_check_stream(&stream, NULL), EINVAL);
    stream = whole;
    stream.get_schema = NULL;
    ck_assert_int_eq(uva__structs_check_stream(&stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "get_schema"));
    stream = whole;
    stream.get_last_error = NULL;
    ck_assert_int_eq(uva__structs_check_stream(&stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "get_last_error"));
    stream = whole;
    stream.release = NULL;
    ck_assert_int_eq(uva__structs_check_stream(&stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "released"));
    ck_assert_int_eq(uva__structs_check_stream(NULL, &error), EINVAL);
}
END_TEST

static int device_schema(struct ArrowDeviceArrayStream *stream,
                         struct ArrowSchema *out)
{
    (void)stream;
    (void)out;
    return 0;
}

static int device_next(struct ArrowDeviceArrayStream *stream,
                       struct ArrowDeviceArray *out)
{
    (void)stream;
    (void)out;
    return 0;
}

static const char *device_error(struct ArrowDeviceArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void device_release(struct ArrowDeviceArrayStream *stream)
{
    stream->release = NULL;
}

START_TEST(ab17_a_device_stream_names_its_empty_slot)
{
    const struct ArrowDeviceArrayStream whole = {
        1, device_schema, device_next, device_error, device_release, NULL};
    struct ArrowDeviceArrayStream stream = whole;
    struct uva_error error;

    ck_assert_int_eq(uva__structs_check_device_stream(&stream, &error), 0);
    stream.get_schema = NULL;
    ck_assert_int_eq(uva__structs_check_device_stream(&stream, &error), EINVAL);
    ck_assert_str_eq(error.message,
                     "source: get_schema is NULL; fill in all four functions");
    stream = whole;
    stream.get_next = NULL;
    ck_assert_int_eq(uva__structs_check_device_stream(&stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "get_next"));
    stream = whole;
    stream.get_last_error = NULL;
    ck_assert_int_eq(uva__structs_check_device_stream(&stream, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "get_last_error"));
    stream = whole;
    stream.release = NULL;
    ck_assert_int_eq(uva__structs_check_device_stream(&stream, &error), EINVAL);
    ck_assert_int_eq(uva__structs_check_device_stream(NULL, NULL), EINVAL);
}
END_TEST

static int on_schema(struct ArrowAsyncDeviceStreamHandler *handler,
                     struct ArrowSchema *schema)
{
    (void)handler;
    (void)schema;
    return 0;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *handler,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    (void)handler;
    (void)task;
    (void)metadata;
    return 0;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *handler, int code,
                     const char *message, const char *metadata)
{
    (void)handler;
    (void)code;
    (void)message;
    (void)metadata;
}

static void on_release(struct ArrowAsyncDeviceStreamHandler *handler)
{
    handler->release = NULL;
}

START_TEST(ah02_a_handler_names_its_empty_slot)
{
    const struct ArrowAsyncDeviceStreamHandler whole = {
        on_schema, on_next_task, on_error, on_release, NULL, NULL};
    struct ArrowAsyncDeviceStreamHandler handlers[] = {whole, whole, whole,
                                                       whole};
    const char *const names[] = {"on_schema", "on_next_task", "on_error",
                                 "release"};
    struct uva_error error;

    ck_assert_int_eq(uva__structs_check_handler(&whole, &error), 0);
    handlers[0].on_schema = NULL;
    handlers[1].on_next_task = NULL;
    handlers[2].on_error = NULL;
    handlers[3].release = NULL;
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(uva__structs_check_handler(&handlers[i], &error),
                         EINVAL);
        ck_assert_ptr_nonnull(strstr(error.message, names[i]));
    }
    ck_assert_int_eq(uva__structs_check_handler(NULL, &error), EINVAL);
}
END_TEST

START_TEST(a_schema_must_be_live_and_have_a_format)
{
    struct ArrowSchema schema;
    struct uva_error error;

    plain_schema(&schema, "i", NULL, 0);
    ck_assert_int_eq(uva__structs_check_schema(&schema, &error), 0);
    schema.format = NULL;
    ck_assert_int_eq(uva__structs_check_schema(&schema, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "format"));
    uva_schema_release(&schema);
    ck_assert_int_eq(uva__structs_check_schema(&schema, &error), EINVAL);
    ck_assert_ptr_nonnull(strstr(error.message, "released"));
    ck_assert_int_eq(uva__structs_check_schema(NULL, &error), EINVAL);
}
END_TEST

/* ---- copies ------------------------------------------------------------- */

/* Returns one pair, "k" and "v\0w". */
static const char *some_metadata(void)
{
    static char block[32];
    const struct uva_pair pair[] = {
        {.key = "k", .value = "v\0w", .value_size = 3}, {0}};
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    return block;
}

/* Makes columns: a number with metadata, a list, and a dictionary. */
static void make_schema(struct ArrowSchema *out)
{
    plain_schema(out, "+s", "", 3);
    out->metadata = some_metadata();
    plain_schema(out->children[0], "l", "id", 0);
    out->children[0]->flags = ARROW_FLAG_NULLABLE;
    out->children[0]->metadata = some_metadata();
    plain_schema(out->children[1], "+l", "tags", 1);
    plain_schema(out->children[1]->children[0], "u", "item", 0);
    plain_schema(out->children[2], "i", NULL, 0);
    out->children[2]->flags = ARROW_FLAG_DICTIONARY_ORDERED;
    plain_schema(plain_schema_dictionary(out->children[2]), "U", "word", 0);
}

static void check_text(const char *a, const char *b)
{
    ck_assert_int_eq(a == NULL, b == NULL);
    if (a != NULL) {
        ck_assert_str_eq(a, b);
        ck_assert_ptr_ne(a, b);
    }
}

static void check_metadata(const char *a, const char *b)
{
    size_t a_size, b_size;

    ck_assert_int_eq(uva_metadata_size(a, &a_size), 0);
    ck_assert_int_eq(uva_metadata_size(b, &b_size), 0);
    ck_assert_uint_eq(a_size, b_size);
    if (a_size != 0) {
        ck_assert_ptr_ne(a, b);
        ck_assert_mem_eq(a, b, a_size);
    }
}

static void check_equal(const struct ArrowSchema *a,
                        const struct ArrowSchema *b)
{
    ck_assert(b->release != NULL);
    check_text(a->format, b->format);
    check_text(a->name, b->name);
    check_metadata(a->metadata, b->metadata);
    ck_assert_int_eq(a->flags, b->flags);
    ck_assert_int_eq(a->n_children, b->n_children);
    ck_assert_int_eq(b->n_children == 0, b->children == NULL);
    ck_assert_int_eq(a->dictionary == NULL, b->dictionary == NULL);
    for (int64_t i = 0; i < a->n_children; i++)
        check_equal(a->children[i], b->children[i]);
    if (a->dictionary != NULL)
        check_equal(a->dictionary, b->dictionary);
}

START_TEST(a_copy_is_equal_and_outlives_the_original)
{
    struct ArrowSchema schema, copy, again;

    make_schema(&schema);
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    check_equal(&schema, &copy);
    ck_assert_int_eq(uva_schema_copy(&copy, &again), 0);
    uva_schema_release(&schema);
    ck_assert_int_eq(plain_live(), 0);
    check_equal(&copy, &again);
    uva_schema_release(&copy);
    ck_assert(copy.release == NULL);
    ck_assert_str_eq(again.children[1]->children[0]->name, "item");
    uva_schema_release(&again);
}
END_TEST

START_TEST(lc10_a_child_moved_out_outlives_its_parent)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    struct ArrowSchema schema, copy, child, dictionary;

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    make_schema(&schema);
    ck_assert_int_eq(uva__structs_copy_schema(&table, &schema, &copy), 0);
    uva_schema_release(&schema);
    uva_schema_move(copy.children[1], &child);
    uva_schema_move(copy.children[2]->dictionary, &dictionary);
    uva_schema_release(&copy);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 3);
    ck_assert_str_eq(child.children[0]->format, "u");
    ck_assert_str_eq(dictionary.name, "word");
    uva_schema_release(&child);
    uva_schema_release(&dictionary);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

START_TEST(da17_a_copy_may_lie_anywhere)
{
    struct ArrowSchema schema, copy, moved;

    make_schema(&schema);
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    memcpy(&moved, &copy, sizeof(copy));
    memset(&copy, 0xDD, sizeof(copy));
    check_equal(&schema, &moved);
    uva_schema_release(&moved);
    uva_schema_release(&schema);
}
END_TEST

START_TEST(a_copy_fails_without_a_trace_wherever_memory_ends)
{
    struct faulty_allocator faulty;
    struct ArrowSchema schema, copy;
    long n = 0;
    int code;

    make_schema(&schema);
    do {
        struct uva_allocator table = faulty_allocator_table(&faulty);
        faulty_allocator_init(&faulty, ++n);
        memset(&copy, 0xA5, sizeof(copy));
        code = uva__structs_copy_schema(&table, &schema, &copy);
        ck_assert_int_eq(code,
                         faulty_allocator_has_failed(&faulty) ? ENOMEM : 0);
        ck_assert_int_eq(copy.release != NULL, code == 0);
        uva_schema_release(&copy);
        ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
    } while (code != 0);
    ck_assert_int_eq(n, 7); /* one block for each node */
    uva_schema_release(&schema);
}
END_TEST

/* Returns the code of copying `schema`; releases the schema. */
static int copy_of(struct ArrowSchema *schema)
{
    struct ArrowSchema copy;
    int code;

    memset(&copy, 0xA5, sizeof(copy));
    code = uva_schema_copy(schema, &copy);
    ck_assert_int_eq(copy.release != NULL, code == 0);
    uva_schema_release(&copy);
    uva_schema_release(schema);
    ck_assert_int_eq(plain_live(), 0);
    return code;
}

START_TEST(what_cannot_be_a_schema_is_not_copied)
{
    static const int32_t malformed[] = {-1}, huge[] = {1 << 21};
    struct ArrowSchema schema, released = {.format = "i"};

    ck_assert_int_eq(copy_of(&released), EINVAL);
    plain_schema(&schema, NULL, NULL, 0);
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 0);
    schema.n_children = 1;
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 0);
    schema.n_children = -1;
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1);
    schema.n_children = INT64_MAX;
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1); /* its child is released */
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "+s", NULL, 1);
    free(schema.children[0]);
    schema.children[0] = NULL;
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "i", NULL, 0);
    schema.metadata = (const char *)malformed;
    ck_assert_int_eq(copy_of(&schema), EINVAL);
    plain_schema(&schema, "i", NULL, 0);
    schema.metadata = (const char *)huge;
    ck_assert_int_eq(copy_of(&schema), EMSGSIZE);
}
END_TEST

START_TEST(md02_a_block_without_pairs_is_copied_as_none)
{
    static const int32_t empty[] = {0};
    struct ArrowSchema schema, copy;

    plain_schema(&schema, "i", NULL, 0);
    schema.metadata = (const char *)empty;
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    ck_assert_ptr_null(copy.metadata);
    uva_schema_release(&copy);
    uva_schema_release(&schema);
}
END_TEST

/* Makes structs nested in structs. */
static void make_tower(struct ArrowSchema *schema, int levels)
{
    plain_schema(schema, "+s", "x", 1);
    for (; levels > 1; levels--) {
        schema = schema->children[0];
        plain_schema(schema, "+s", "x", 1);
    }
    plain_schema(schema->children[0], "i", "x", 0);
}

START_TEST(there_is_a_bound_to_depth)
{
    struct ArrowSchema schema;

    make_tower(&schema, UVA__STRUCTS_MAX_DEPTH);
    ck_assert_int_eq(copy_of(&schema), 0);
    make_tower(&schema, UVA__STRUCTS_MAX_DEPTH + 1);
    ck_assert_int_eq(copy_of(&schema), EINVAL);
}
END_TEST

static void nothing(struct ArrowSchema *schema)
{
    (void)schema;
}

START_TEST(a_schema_that_leads_in_a_circle_is_refused)
{
    struct ArrowSchema schema = {.format = "+s", .n_children = 1};
    struct ArrowSchema *children[] = {&schema};
    struct ArrowSchema copy;

    schema.children = children;
    schema.release = nothing;
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), EINVAL);
    ck_assert(copy.release == NULL);
}
END_TEST

int main(void)
{
    TCase *checks = tcase_create("checks"), *copies = tcase_create("copies");

    tcase_add_test(checks,
                   da08_a_cleared_array_is_released_and_zero_to_the_last_byte);
    tcase_add_test(checks, ab17_a_stream_names_its_empty_slot);
    tcase_add_test(checks, ab17_a_device_stream_names_its_empty_slot);
    tcase_add_test(checks, ah02_a_handler_names_its_empty_slot);
    tcase_add_test(checks, a_schema_must_be_live_and_have_a_format);
    tcase_add_test(copies, a_copy_is_equal_and_outlives_the_original);
    tcase_add_test(copies, lc10_a_child_moved_out_outlives_its_parent);
    tcase_add_test(copies, da17_a_copy_may_lie_anywhere);
    tcase_add_test(copies, a_copy_fails_without_a_trace_wherever_memory_ends);
    tcase_add_test(copies, what_cannot_be_a_schema_is_not_copied);
    tcase_add_test(copies, md02_a_block_without_pairs_is_copied_as_none);
    tcase_add_test(copies, there_is_a_bound_to_depth);
    tcase_add_test(copies, a_schema_that_leads_in_a_circle_is_refused);
    return suite_main("structs", NULL, NULL, checks, copies, NULL);
}
