/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata blocks: byte by byte, at odd addresses, and next to a guard page. */
#include "arrow/metadata.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/guard_page.h"
#include "uvarrow/arrow.h"

static struct uva_pair pair_of(const char *key, const char *value)
{
    return (struct uva_pair){.key = key, .value = value};
}

/* Writes a number in native byte order. */
static size_t put(char *to, size_t at, int32_t number)
{
    memcpy(to + at, &number, sizeof(number));
    return at + sizeof(number);
}

/* Whether a text that was read is one that was given: without a size, it is a C
 * string. */
static bool same(const char *is, size_t is_size, const char *given,
                 size_t given_size)
{
    const size_t size = given_size > 0 ? given_size : strlen(given);

    return is_size == size && memcmp(is, given, size) == 0;
}

START_TEST(md01_one_pair_is_these_22_bytes)
{
    const struct uva_pair pair[] = {pair_of("key1", "value1"), {0}};
    char expected[22], block[22];
    size_t size = sizeof(block), at = put(expected, 0, 1);

    at = put(expected, at, 4);
    memcpy(expected + at, "key1", 4);
    at = put(expected, at + 4, 6);
    memcpy(expected + at, "value1", 6);
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    ck_assert_uint_eq(size, 22);
    ck_assert_mem_eq(block, expected, 22);
}
END_TEST

START_TEST(md02_no_pairs_are_no_block)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    size_t size = 7;
    struct uva__metadata copy;
    char empty[4];

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    ck_assert_int_eq(uva_metadata_encode(NULL, NULL, &size), 0);
    ck_assert_uint_eq(size, 0);
    size = 7;
    ck_assert_int_eq(
        uva_metadata_encode(&(struct uva_pair){.key = NULL}, NULL, &size), 0);
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(uva_metadata_next(NULL, &at, &pair), ENOENT);
    size = 7;
    ck_assert_int_eq(uva_metadata_size(NULL, &size), 0);
    ck_assert_uint_eq(size, 0);
    put(empty, 0, 0); /* peers send this; it counts as no block */
    ck_assert_int_eq(uva_metadata_next(empty, &at, &pair), ENOENT);
    ck_assert_int_eq(uva_metadata_size(empty, &size), 0);
    ck_assert_uint_eq(size, 4);
    ck_assert_int_eq(uva__metadata_copy(&table, empty, &copy), 0);
    ck_assert_ptr_null(copy.block);
    ck_assert_uint_eq(copy.size, 0);
    ck_assert_int_eq(uva__metadata_copy(&table, NULL, &copy), 0);
    ck_assert_ptr_null(copy.block);
    ck_assert_int_eq(faulty_allocator_asked(&faulty), 0);
}
END_TEST

/* Puts random pairs and an end into `pairs`, with their bytes in `pool`, which
 * has 4096. */
static size_t fill_pairs(struct uva_pair *pairs, size_t most, char *pool)
{
    const size_t count = (size_t)rand() % (most + 1);

    for (int i = 0; i < 4096; i++)
        pool[i] = (char)rand();
    for (size_t i = 0; i < count; i++) {
        pairs[i].key_size = (size_t)(rand() % 20);
        pairs[i].key = pairs[i].key_size > 0 ? pool + rand() % 2048 : "";
        pairs[i].value_size = (size_t)(rand() % 8 == 0 ? rand() % 1000 : 3);
        pairs[i].value = pairs[i].value_size > 0 ? pool + rand() % 2048 : "";
    }
    pairs[count] = (struct uva_pair){0};
    return count;
}

static void check_pairs(const char *block, const struct uva_pair *pairs,
                        size_t count)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(uva_metadata_next(block, &at, &pair), 0);
        ck_assert(
            same(pair.key, pair.key_size, pairs[i].key, pairs[i].key_size));
        ck_assert(same(pair.value, pair.value_size, pairs[i].value,
                       pairs[i].value_size));
    }
    ck_assert_int_eq(uva_metadata_next(block, &at, &pair), ENOENT);
    ck_assert_int_eq(uva_metadata_next(block, &at, &pair), ENOENT);
}

START_TEST(md01_md04_what_is_written_is_read_at_any_address)
{
    static char pool[4096], room[64 * 1024];
    struct uva_pair pairs[17];

    for (unsigned seed = 0; seed < 10000; seed++) {
        char *block = room + seed % 17;
        size_t count, size = sizeof(room) - 17, measured;
        srand(seed);
        count = fill_pairs(pairs, 16, pool);
        ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
        if (count == 0)
            continue;
        check_pairs(block, pairs, count);
        ck_assert_int_eq(uva_metadata_size(block, &measured), 0);
        ck_assert_uint_eq(measured, size);
    }
}
END_TEST

START_TEST(md05_negative_numbers_are_refused_before_reading_on)
{
    const struct {
        int32_t numbers[3];
        int count;
    } bad[] = {{{-1}, 1}, {{1, -1}, 2}, {{1, 0, -1}, 3}, {{INT32_MIN}, 1}};

    for (int i = 0; i < 4; i++) {
        const size_t size = (size_t)bad[i].count * 4;
        char *block = guard_page_copy(bad[i].numbers, size);
        struct uva_metadata_at at = {0};
        struct uva_pair pair;
        size_t measured = 99;
        ck_assert_int_eq(uva_metadata_next(block, &at, &pair), EINVAL);
        ck_assert_uint_eq(at.offset, 0);
        ck_assert_int_eq(uva_metadata_size(block, &measured), EINVAL);
        ck_assert_uint_eq(measured, 99);
        guard_page_free(block, size);
    }
}
END_TEST

START_TEST(md06_keys_and_values_may_hold_anything)
{
    const struct uva_pair both[] = {
        {.key = "a\0b", .value = "\xFF\0", .key_size = 3, .value_size = 2},
        pair_of("a", ""),
        {0}};
    struct uva_pair pair;
    char block[64];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(both, block, &size), 0);
    check_pairs(block, both, 2);
    ck_assert_int_eq(uva_metadata_get(block, "a", &pair), 0);
    ck_assert_uint_eq(pair.value_size, 0); /* "a\0b" is another key */
    ck_assert_str_eq(pair.value, "");
}
END_TEST

START_TEST(pairs_without_sizes_or_values_are_c_strings)
{
    const struct uva_pair pairs[] = {
        {.key = "k"}, {.key = "", .value = "v"}, {0}};
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    char block[64], again[64];
    size_t size = sizeof(block), more = sizeof(again);

    ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
    ck_assert_int_eq(uva_metadata_next(block, &at, &pair), 0);
    ck_assert(same(pair.key, pair.key_size, "k", 0));
    ck_assert_str_eq(pair.value, "");
    ck_assert_uint_eq(pair.value_size, 0);
    ck_assert_int_eq(uva_metadata_next(block, &at, &pair), 0);
    ck_assert_str_eq(pair.key, ""); /* not the end, when it is written again */
    ck_assert(same(pair.value, pair.value_size, "v", 0));
    ck_assert_int_eq(
        uva_metadata_encode((struct uva_pair[]){pairs[0], pair, {0}}, again,
                            &more),
        0);
    ck_assert_uint_eq(more, size);
    ck_assert_mem_eq(again, block, size);
}
END_TEST

START_TEST(md08_order_and_duplicates_are_kept)
{
    const struct uva_pair pairs[] = {
        pair_of("a", "1"), pair_of("a", "2"), pair_of("b", "3"), {0}};
    struct uva_pair pair;
    char block[64];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
    check_pairs(block, pairs, 3);
    ck_assert_int_eq(uva_metadata_get(block, "a", &pair), 0);
    ck_assert(same(pair.value, pair.value_size, "1", 0));
    ck_assert_int_eq(uva_metadata_get(block, "b", &pair), 0);
    ck_assert(same(pair.value, pair.value_size, "3", 0));
    ck_assert_int_eq(uva_metadata_get(block, "", &pair), ENOENT);
    ck_assert_int_eq(uva_metadata_get(block, "c", &pair), ENOENT);
}
END_TEST

START_TEST(md09_what_is_too_much_is_not_touched)
{
    const int32_t too_much[][4] = {{1024 * 1024 + 1},
                                   {1, 64 * 1024 * 1024},
                                   {1, INT32_MAX},
                                   {1, 0, 64 * 1024 * 1024}};
    const size_t counts[] = {1, 2, 2, 3};

    for (int i = 0; i < 4; i++) {
        char *block = guard_page_copy(too_much[i], counts[i] * 4);
        struct uva_metadata_at at = {0};
        struct uva_pair pair;
        size_t size;
        ck_assert_int_eq(uva_metadata_next(block, &at, &pair), EMSGSIZE);
        ck_assert_int_eq(uva_metadata_size(block, &size), EMSGSIZE);
        guard_page_free(block, counts[i] * 4);
    }
}
END_TEST

START_TEST(md09_nothing_behind_the_last_byte_is_read)
{
    struct faulty_allocator faulty;
    struct uva_allocator table;
    static char pool[4096], room[64 * 1024];
    struct uva_pair pairs[9];

    faulty_allocator_init(&faulty, 0);
    table = faulty_allocator_table(&faulty);
    for (unsigned seed = 0; seed < 200; seed++) {
        size_t count, size = sizeof(room);
        struct uva__metadata copy;
        char *block;
        srand(seed);
        count = fill_pairs(pairs, 8, pool);
        ck_assert_int_eq(uva_metadata_encode(pairs, room, &size), 0);
        if (count == 0)
            continue;
        block = guard_page_copy(room, size);
        check_pairs(block, pairs, count);
        ck_assert_int_eq(uva__metadata_copy(&table, block, &copy), 0);
        ck_assert_uint_eq(copy.size, size);
        ck_assert_mem_eq(copy.block, room, size);
        uva__metadata_fini(&copy, &table, NULL);
        guard_page_free(block, size);
    }
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}
END_TEST

START_TEST(md09_exactly_as_much_as_allowed_is_read)
{
    const size_t most = 64 * 1024 * 1024;
    char *block = calloc(1, most);
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    size_t size;

    put(block, put(block, 0, 1), (int32_t)(most - 12));
    ck_assert_int_eq(uva_metadata_next(block, &at, &pair), 0);
    ck_assert_uint_eq(pair.key_size, most - 12);
    ck_assert_int_eq(uva_metadata_size(block, &size), 0);
    ck_assert_uint_eq(size, most);
    put(block, put(block, 0, 1), (int32_t)(most - 11));
    ck_assert_int_eq(uva_metadata_size(block, &size), EMSGSIZE);
    put(block, put(block, 0, 1024 * 1024), 0); /* as many empty pairs */
    memset(block + 4, 0, most - 4);
    ck_assert_int_eq(uva_metadata_size(block, &size), 0);
    ck_assert_uint_eq(size, 4 + 8 * 1024 * 1024);
    free(block);
}
END_TEST

START_TEST(md12_what_int32_cannot_hold_is_refused)
{
    struct uva_pair pair[] = {pair_of("key", "value"), pair_of("k", "v"), {0}};
    char block[64];
    size_t size = sizeof(block);

    pair[0].value_size = (size_t)INT32_MAX + 1; /* not read */
    memset(block, 7, sizeof(block));
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), EOVERFLOW);
    ck_assert_uint_eq(size, sizeof(block));
    ck_assert_int_eq(block[0], 7);
    pair[0] = pair_of("key", "value");
    pair[0].key_size = SIZE_MAX;
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), EOVERFLOW);
    pair[0].key_size = INT32_MAX - 26; /* and 27 bytes */
    ck_assert_int_eq(uva_metadata_encode(pair, NULL, &size), EOVERFLOW);
    pair[0].key_size = INT32_MAX - 27;
    ck_assert_int_eq(uva_metadata_encode(pair, NULL, &size), EMSGSIZE);
    ck_assert_uint_eq(size, INT32_MAX);
}
END_TEST

START_TEST(a_buffer_too_small_is_told_the_size_and_left_alone)
{
    const struct uva_pair pair[] = {pair_of("key1", "value1"), {0}};
    char block[22];
    size_t size = 0;

    memset(block, 7, sizeof(block));
    ck_assert_int_eq(uva_metadata_encode(pair, NULL, &size), EMSGSIZE);
    ck_assert_uint_eq(size, 22);
    size = 21;
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), EMSGSIZE);
    ck_assert_uint_eq(size, 22);
    ck_assert_int_eq(block[0], 7);
}
END_TEST

START_TEST(a_copy_without_memory_is_nothing)
{
    const struct uva_pair pair[] = {pair_of("key1", "value1"), {0}};
    struct faulty_allocator faulty;
    struct uva_allocator table;
    char block[22];
    size_t size = sizeof(block);
    struct uva__metadata copy = {block, size};

    faulty_allocator_init(&faulty, 1);
    table = faulty_allocator_table(&faulty);
    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    ck_assert_int_eq(uva__metadata_copy(&table, block, &copy), ENOMEM);
    ck_assert_ptr_null(copy.block);
    ck_assert_uint_eq(copy.size, 0);
    put(block, 0, -1);
    ck_assert_int_eq(uva__metadata_copy(&table, block, &copy), EINVAL);
    ck_assert_ptr_null(copy.block);
}
END_TEST

START_TEST(a_place_that_cannot_be_is_refused)
{
    const struct uva_pair pair[] = {pair_of("key1", "value1"), {0}};
    struct uva_metadata_at at = {.index = -1};
    struct uva_pair out;
    char block[22];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    ck_assert_int_eq(uva_metadata_next(block, &at, &out), EINVAL);
    at = (struct uva_metadata_at){.offset = SIZE_MAX};
    ck_assert_int_eq(uva_metadata_next(block, &at, &out), EMSGSIZE);
}
END_TEST

int main(void)
{
    TCase *rules = tcase_create("rules");

    tcase_set_timeout(rules, 120);
    tcase_add_test(rules, md01_one_pair_is_these_22_bytes);
    tcase_add_test(rules, md02_no_pairs_are_no_block);
    tcase_add_test(rules, md01_md04_what_is_written_is_read_at_any_address);
    tcase_add_test(rules, md05_negative_numbers_are_refused_before_reading_on);
    tcase_add_test(rules, md06_keys_and_values_may_hold_anything);
    tcase_add_test(rules, pairs_without_sizes_or_values_are_c_strings);
    tcase_add_test(rules, md08_order_and_duplicates_are_kept);
    tcase_add_test(rules, md09_what_is_too_much_is_not_touched);
    tcase_add_test(rules, md09_nothing_behind_the_last_byte_is_read);
    tcase_add_test(rules, md09_exactly_as_much_as_allowed_is_read);
    tcase_add_test(rules, md12_what_int32_cannot_hold_is_refused);
    tcase_add_test(rules, a_buffer_too_small_is_told_the_size_and_left_alone);
    tcase_add_test(rules, a_copy_without_memory_is_nothing);
    tcase_add_test(rules, a_place_that_cannot_be_is_refused);
    return suite_main("metadata", NULL, NULL, rules, NULL);
}
