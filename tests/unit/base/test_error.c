/* SPDX-License-Identifier: Apache-2.0 */
/* Error names, codes with two names, and texts that are truncated at a whole
 * character. */
#include "base/error.h"
#include "support/check_suite.h"

#include <check.h>
#include <limits.h>
#include <string.h>
#include <wchar.h>

START_TEST(every_code_of_the_library_has_a_name)
{
    ck_assert_str_eq(uva_error_name(EAGAIN), "EAGAIN");
    ck_assert_str_eq(uva_error_name(EPROTO), "EPROTO");
    ck_assert_str_eq(uva_error_name(ECONNABORTED), "ECONNABORTED");
    ck_assert_str_eq(uva_error_name(ENOTSUP), "ENOTSUP");
    ck_assert_str_eq(uva_error_name(ESHUTDOWN), "ESHUTDOWN");
    ck_assert_str_eq(uva_error_name(ENODEV), "ENODEV");
    ck_assert_str_eq(uva_error_name(ENOENT), "ENOENT");
    ck_assert_str_eq(uva_error_name(0), "OK");
    ck_assert_str_eq(uva_error_name(-EINVAL), "E?");
    ck_assert_str_eq(uva_error_name(100000), "E?");
}
END_TEST

START_TEST(negative_codes_become_their_twins)
{
    ck_assert_int_eq(uva__error_positive(0), 0);
    ck_assert_int_eq(uva__error_positive(-EPIPE), EPIPE);
    ck_assert_int_eq(uva__error_positive(EIO), EIO);
    ck_assert_int_eq(uva__error_positive(INT_MIN), INT_MAX);
}
END_TEST

START_TEST(the_version_is_that_of_the_headers)
{
    ck_assert_uint_eq(uva_version(), UVA_VERSION_HEX);
}
END_TEST

START_TEST(an_error_is_filled_and_its_code_returned)
{
    struct uva_error error;

    memset(&error, 0xA5, sizeof(error));
    ck_assert_int_eq(uva_error_set(&error, EIO, "row %d", 7), EIO);
    ck_assert_int_eq(error.code, EIO);
    ck_assert_int_eq(error.vendor_code, 0);
    ck_assert_ptr_null(error.vendor);
    ck_assert_str_eq(error.message, "row 7");
    ck_assert_int_eq(uva_error_set(NULL, ENOMEM, "row %d", 7), ENOMEM);
}
END_TEST

START_TEST(a_message_may_be_wrapped_in_place)
{
    struct uva_error error;

    uva_error_set(&error, EIO, "no such row");
    uva_error_set(&error, EPROTO, "source: %s", error.message);
    ck_assert_str_eq(error.message, "source: no such row");
}
END_TEST

/* Returns how much is left of `count` times `character` after `shift`
 * letters. */
static size_t cut(const char *character, size_t shift)
{
    struct uva_error error;
    char text[2000] = "";

    memset(text, 'x', shift);
    text[shift] = '\0';
    while (strlen(text) < 1500)
        strcat(text, character);
    uva_error_set(&error, EIO, "%s", text);
    ck_assert_int_eq(strncmp(error.message, text, strlen(error.message)), 0);
    return strlen(error.message);
}

START_TEST(long_texts_are_cut_at_a_whole_character)
{
    const size_t room = sizeof(((struct uva_error *)0)->message) - 1;
    const char *const characters[] = {"a", "\xC3\xA4", "\xE2\x82\xAC",
                                      "\xF0\x9F\x8E\x89"};

    for (size_t width = 1; width <= 4; width++)
        for (size_t shift = 0; shift < 5; shift++) {
            const size_t whole = (room - shift) / width * width + shift;
            ck_assert_uint_eq(cut(characters[width - 1], shift), whole);
        }
}
END_TEST

START_TEST(bytes_that_are_no_characters_are_cut_anywhere)
{
    const size_t room = sizeof(((struct uva_error *)0)->message) - 1;

    ck_assert_uint_eq(cut("\x80", 0), room);
    ck_assert_uint_eq(cut("\xFF", 3), room);
}
END_TEST

START_TEST(a_text_that_cannot_be_written_is_left_out)
{
    struct uva_error error;

    /* the character does not exist in the locale "C" */
    ck_assert_int_eq(uva_error_set(&error, EIO, "%lc", (wint_t)0x20AC), EIO);
    ck_assert_str_eq(error.message, "");
}
END_TEST

START_TEST(clip_keeps_what_fits)
{
    ck_assert_uint_eq(uva__error_utf8_prefix("abc", 3, 3), 3);
    ck_assert_uint_eq(uva__error_utf8_prefix("abc", 3, 0), 0);
    ck_assert_uint_eq(uva__error_utf8_prefix("\xC3\xA4", 2, 1), 0);
    ck_assert_uint_eq(uva__error_utf8_prefix("a\xE2\x82\xAC", 4, 3), 1);
    ck_assert_uint_eq(uva__error_utf8_prefix("a\xE2\x82\xAC.", 5, 4), 4);
    ck_assert_uint_eq(uva__error_utf8_prefix("\xC3\xA4\x80", 3, 2), 2);
    ck_assert_uint_eq(uva__error_utf8_prefix("\x82\x82\x82\x82", 4, 2), 2);
    ck_assert_uint_eq(uva__error_utf8_prefix("\xC1\x80", 2, 1), 1);
    ck_assert_uint_eq(uva__error_utf8_prefix("\xF0\x9F\x8C\xB3", 4, 3), 0);
    ck_assert_uint_eq(uva__error_utf8_prefix("\xF5\x9F\x8C\xB3", 4, 3), 3);
}
END_TEST

START_TEST(foreign_errors_keep_their_code_and_text) /* ER-01, ER-06, ER-07 */
{
    struct uva_error error;
    char endless[sizeof(error.message) + 3];

    ck_assert_int_eq(uva__error_set_foreign(&error, -5, "oh"), 5);
    ck_assert_int_eq(error.code, 5);
    ck_assert_str_eq(error.message, "oh");
    ck_assert_int_eq(uva__error_set_foreign(&error, 0, "oh"), EIO);
    ck_assert_int_eq(error.code, EIO);
    ck_assert_int_eq(uva__error_set_foreign(&error, EBADF, NULL), EBADF);
    ck_assert_ptr_nonnull(strstr(error.message, "EBADF"));
    ck_assert_int_eq(uva__error_set_foreign(NULL, 0, "oh"), EIO);
    memset(endless, 'y', sizeof(endless)); /* a text without NUL */
    ck_assert_int_eq(uva__error_set_foreign(&error, EIO, endless), EIO);
    ck_assert_uint_eq(strlen(error.message), sizeof(error.message) - 1);
}
END_TEST

int main(void)
{
    TCase *codes = tcase_create("codes"), *texts = tcase_create("texts");

    tcase_add_test(codes, every_code_of_the_library_has_a_name);
    tcase_add_test(codes, negative_codes_become_their_twins);
    tcase_add_test(codes, the_version_is_that_of_the_headers);
    tcase_add_test(texts, an_error_is_filled_and_its_code_returned);
    tcase_add_test(texts, a_message_may_be_wrapped_in_place);
    tcase_add_test(texts, long_texts_are_cut_at_a_whole_character);
    tcase_add_test(texts, bytes_that_are_no_characters_are_cut_anywhere);
    tcase_add_test(texts, clip_keeps_what_fits);
    tcase_add_test(texts, a_text_that_cannot_be_written_is_left_out);
    tcase_add_test(texts, foreign_errors_keep_their_code_and_text);
    return suite_main("error", NULL, NULL, codes, texts, NULL);
}
