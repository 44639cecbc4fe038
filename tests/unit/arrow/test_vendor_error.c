/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of vendors: in struct uva_error, in metadata, and back. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "arrow/vendor_error.h"
#include "base/memory.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "uvarrow/arrow.h"

static struct faulty_allocator memory;
static struct uva_allocator allocator;

static void setup(void)
{
    faulty_allocator_init(&memory, 0);
    allocator = faulty_allocator_table(&memory);
}

static void teardown(void)
{
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}

/* Checks the value of `key` in `block`; NULL: no such key. */
static void value_is(const char *block, const char *key, const char *wanted)
{
    struct uva_pair pair;
    const int code = uva_metadata_get(block, key, &pair);

    if (wanted == NULL) {
        ck_assert_int_eq(code, ENOENT);
        return;
    }
    ck_assert_int_eq(code, 0);
    ck_assert_uint_eq(pair.value_size, strlen(wanted));
    ck_assert_mem_eq(pair.value, wanted, pair.value_size);
}

static void error_is_written(const struct uva_error *error, const char *code,
                             const char *call)
{
    struct uva__metadata out;

    ck_assert_int_eq(uva__vendor_error_to_metadata(&allocator, error, &out), 0);
    value_is(out.block, "uvarrow.vendor", error->vendor);
    value_is(out.block, "uvarrow.vendor_code", code);
    value_is(out.block, "uvarrow.vendor_call", call);
    uva__metadata_fini(&out, &allocator, NULL);
}

START_TEST(a_failed_call_is_written_with_all_that_is_known)
{
    struct uva_error error;

    ck_assert_int_eq(uva__vendor_error_set(&error, EIO, "cuda", 719,
                                           "%s failed with %d", "cuEventQuery",
                                           719),
                     EIO);
    ck_assert_int_eq(error.code, EIO);
    ck_assert_str_eq(error.message, "cuEventQuery failed with 719");
    error_is_written(&error, "719", "cuEventQuery");
    (void)uva__vendor_error_set(&error, EIO, "v", INT_MIN, "a_2 failed");
    error_is_written(&error, "-2147483648", "a_2");
    (void)uva__vendor_error_set(&error, EIO, "sycl", 1,
                                "sycl::event::wait failed");
    error_is_written(&error, "1", "sycl::event::wait");
}
END_TEST

START_TEST(a_code_of_nought_is_left_out)
{
    struct uva_error error;

    (void)uva__vendor_error_set(&error, ENOTSUP, "hip", 0,
                                "dlopen failed: gone");
    error_is_written(&error, NULL, "dlopen");
}
END_TEST

START_TEST(a_text_that_begins_otherwise_names_no_call)
{
    static const char *const texts[] = {
        "soft event 3 has failed", " failed",      "failed with 3",
        "cuEventQuery: failed",    "cuEventQuery", ""};
    struct uva_error error;

    (void)uva__vendor_error_set(&error, EIO, "soft", 3, "%s", texts[_i]);
    error_is_written(&error, "3", NULL);
}
END_TEST

START_TEST(an_error_of_no_vendor_writes_nothing)
{
    struct uva_error error;
    struct uva__metadata out = {"", 1};

    (void)uva_error_set(&error, EIO, "cuEventQuery failed");
    error.vendor_code = 3;
    ck_assert_int_eq(uva__vendor_error_to_metadata(&allocator, &error, &out),
                     0);
    ck_assert_ptr_null(out.block);
    ck_assert_uint_eq(out.size, 0);
    ck_assert_int_eq(uva__vendor_error_set(NULL, EIO, "cuda", 1, "x"), EIO);
}
END_TEST

START_TEST(without_memory_nothing_is_written)
{
    struct uva_error error;
    struct uva__metadata out = {"", 1};

    (void)uva__vendor_error_set(&error, EIO, "cuda", 1, "x failed");
    faulty_allocator_init(&memory, 1);
    ck_assert_int_eq(uva__vendor_error_to_metadata(&allocator, &error, &out),
                     ENOMEM);
    ck_assert_ptr_null(out.block);
    ck_assert_uint_eq(out.size, 0);
}
END_TEST

/* ---- back --------------------------------------------------------------- */

/* Returns the error read from these vendor pairs. */
static struct uva_error read_of(const char *vendor, const char *code)
{
    struct uva_pair pairs[] = {{.key = "uvarrow.vendor", .value = vendor},
                               {.key = "uvarrow.vendor_code", .value = code},
                               {0}};
    struct uva_error error;
    size_t size = 256;
    char block[256];

    ck_assert_int_eq(uva_metadata_encode(pairs, block, &size), 0);
    (void)uva_error_set(&error, EIO, "foreign");
    uva__vendor_error_from_metadata(block, &error);
    return error;
}

START_TEST(every_vendor_of_ours_is_read_back)
{
    static const char *const vendors[] = {"cuda",   "hip",  "opencl",
                                          "vulkan", "sycl", "uv"};
    const struct uva_error error = read_of(vendors[_i], "-14");

    ck_assert_str_eq(error.vendor, vendors[_i]);
    ck_assert_int_eq(error.vendor_code, -14);
    ck_assert_str_eq(error.message, "foreign");
    ck_assert_int_eq(error.code, EIO);
}
END_TEST

START_TEST(a_vendor_that_is_unknown_here_is_not_read)
{
    static const char *const vendors[] = {"cud", "cudas", "", "soft"};
    const struct uva_error error = read_of(vendors[_i], "3");

    ck_assert_ptr_null(error.vendor);
    ck_assert_int_eq(error.vendor_code, 0);
}
END_TEST

START_TEST(a_code_that_is_none_is_nought)
{
    static const char *const codes[] = {
        "", "x", "3x", "99999999999", "2147483648", "123456789012345"};

    ck_assert_int_eq(read_of("cuda", codes[_i]).vendor_code, 0);
    ck_assert_str_eq(read_of("cuda", codes[_i]).vendor, "cuda");
    ck_assert_int_eq(read_of("cuda", "-2147483648").vendor_code, INT_MIN);
    ck_assert_int_eq(read_of("cuda", "2147483647").vendor_code, INT_MAX);
    ck_assert_int_eq(read_of("cuda", "-2147483649").vendor_code, 0);
}
END_TEST

START_TEST(metadata_that_says_nothing_changes_nothing)
{
    static const int32_t malformed[] = {-1};
    struct uva_error error;

    (void)uva__vendor_error_set(&error, EIO, "mine", 5, "x failed");
    uva__vendor_error_from_metadata(NULL, &error);
    uva__vendor_error_from_metadata((const char *)malformed, &error);
    ck_assert_str_eq(error.vendor, "mine");
    ck_assert_int_eq(error.vendor_code, 5);
}
END_TEST

START_TEST(a_vendor_without_a_code_is_read_too)
{
    const struct uva_pair pair[] = {{.key = "uvarrow.vendor", .value = "hip"},
                                    {0}};
    struct uva_error error = {0};
    char block[64];
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    uva__vendor_error_from_metadata(block, &error);
    ck_assert_str_eq(error.vendor, "hip");
    ck_assert_int_eq(error.vendor_code, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("errors");

    tcase_add_test(tc, a_vendor_without_a_code_is_read_too);
    tcase_add_test(tc, a_failed_call_is_written_with_all_that_is_known);
    tcase_add_test(tc, a_code_of_nought_is_left_out);
    tcase_add_loop_test(tc, a_text_that_begins_otherwise_names_no_call, 0, 6);
    tcase_add_test(tc, an_error_of_no_vendor_writes_nothing);
    tcase_add_test(tc, without_memory_nothing_is_written);
    tcase_add_loop_test(tc, every_vendor_of_ours_is_read_back, 0, 6);
    tcase_add_loop_test(tc, a_vendor_that_is_unknown_here_is_not_read, 0, 4);
    tcase_add_loop_test(tc, a_code_that_is_none_is_nought, 0, 6);
    tcase_add_test(tc, metadata_that_says_nothing_changes_nothing);
    return suite_main("vendor", setup, teardown, tc, NULL);
}
