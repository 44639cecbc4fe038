/* SPDX-License-Identifier: Apache-2.0 */
/* Which characters are shown as they are, and what stands for the others. */
#include "glyph.h"
#include "support/check_suite.h"

#include <check.h>
#include <string.h>

static const struct {
    const char *text, *shown;
} TEXTS[] = {
    {"a", "a"},
    {"\xc3\xa9", "\xc3\xa9"},
    {"\033", "\\x1b"},
    {"\xff", "\\xff"},
    {"\xc2\x9b", "\\u009b"},
    {"\xd8\x9b", "\xd8\x9b"}, /* U+061B */
    {"\xd8\x9c", "\\u061c"},
    {"\xe2\x80\x8a", "\xe2\x80\x8a"}, /* U+200A */
    {"\xe2\x80\x8b", "\\u200b"},
    {"\xe2\x80\x8c", "\\u200c"},
    {"\xe2\x80\x8d", "\xe2\x80\x8d"}, /* U+200D joins emoji */
    {"\xe2\x80\xae", "\\u202e"},
    {"\xf3\xa0\x80\x80", "\\ue0000"},
    {"\xf3\xa0\x81\xbf", "\\ue007f"},
    {"\xf3\xa0\x82\x80", "\xf3\xa0\x82\x80"}, /* U+E0080 */
};

START_TEST(characters_that_are_not_drawn_are_named)
{
    struct uva__glyph glyph;

    uva__glyph_begin();
    ck_assert_uint_eq(uva__glyph_next(TEXTS[_i].text, &glyph),
                      strlen(TEXTS[_i].text));
    uva__glyph_end();
    ck_assert_str_eq(glyph.text, TEXTS[_i].shown);
    if (glyph.text[0] == '\\')
        ck_assert_uint_eq(glyph.columns, strlen(glyph.text));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("glyph");

    suite_add_loops(tc, 0, sizeof(TEXTS) / sizeof(*TEXTS),
                    characters_that_are_not_drawn_are_named, NULL);
    return suite_main("glyph", NULL, NULL, tc, NULL);
}
