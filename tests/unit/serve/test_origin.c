/* SPDX-License-Identifier: Apache-2.0 */
/* Origins as browsers write them. The expected ones come from Chromium and
 * Node, as `new URL(text).origin`. */
#include "origin.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"

static const struct {
    const char *text, *origin; /* may be NULL */
} cases[] = {
    {"https://app.example", "https://app.example"},
    {"HTTPS://App.Example", "https://app.example"},
    {"https://app.example/", "https://app.example"},
    {"https://app.example:443", "https://app.example"},
    {"https://app.example:0443", "https://app.example"},
    {"https://app.example:", "https://app.example"},
    {"https://app.example:80", "https://app.example:80"},
    {"http://app.example:80", "http://app.example"},
    {"http://app.example:443", "http://app.example:443"},
    {"http://app.example:08080", "http://app.example:8080"},
    {"http://app.example:0", "http://app.example:0"},
    {"http://localhost:65535", "http://localhost:65535"},
    {"http://app.example.", "http://app.example."},
    {"http://a_b.example", "http://a_b.example"},
    {"http://127.0.0.1:3000", "http://127.0.0.1:3000"},
    {"http://127.1", "http://127.0.0.1"},
    {"http://0x7F.0.0.01", "http://127.0.0.1"},
    {"http://2130706433", "http://127.0.0.1"},
    {"http://127.0.0.1.", "http://127.0.0.1"},
    {"http://1.2.772", "http://1.2.3.4"},
    {"http://0x", "http://0.0.0.0"},
    {"http://[::1]:80", "http://[::1]"},
    {"http://[0:0:0:0:0:0:0:1]", "http://[::1]"},
    {"http://[2001:DB8::00a0:0:0:0:1]:8080", "http://[2001:db8:0:a0::1]:8080"},
    {"http://[1:0:0:2:0:0:0:3]", "http://[1:0:0:2::3]"},
    {"http://[1:0:2:3:4:5:6:7]", "http://[1:0:2:3:4:5:6:7]"},
    {"http://[1::]", "http://[1::]"},
    {"http://[::]", "http://[::]"},
    {"http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]"},
    {"null", "null"},
    {"chrome-extension://abcdefgh", "chrome-extension://abcdefgh"},
    {"tauri://localhost", "tauri://localhost"},
    {"", NULL},
    {"*", NULL},
    {"Null", NULL},
    {"app.example", NULL},
    {"https:/app.example", NULL},
    {"https://", NULL},
    {"https:///", NULL},
    {"https://*", NULL},
    {"https://*.example", NULL},
    {"https://a/b", NULL},
    {"https://a//", NULL},
    {"https://a?b", NULL},
    {"https://a b", NULL},
    {"https://me@a", NULL},
    {"https://a,https://b", NULL},
    {"https://b\xc3\xbc"
     "cher.example",
     NULL},
    {"https://a:65536", NULL},
    {"https://a:-1", NULL},
    {"https://a:1x", NULL},
    {"https://:443", NULL},
    {"1http://a", NULL},
    {"://a", NULL},
    {"http://256.1.1.1", NULL},
    {"http://1.2.3.4.5", NULL},
    {"http://1.2.65536", NULL},
    {"http://4294967296", NULL},
    {"http://a.09", NULL},
    {"http://1..2", NULL},
    {"http://[::1", NULL},
    {"http://[::1]x", NULL},
    {"http://[::1%1]", NULL},
    {"http://[]", NULL},
    {"http://[x]", NULL},
};

START_TEST(a_text_is_written_as_browsers_do)
{
    char out[UVA__ORIGIN_ROOM] = "";
    const char *expected = cases[_i].origin;
    const int code = uva__origin_normalise(cases[_i].text, out);

    ck_assert_msg(code == (expected != NULL ? 0 : EINVAL), "%s: %d",
                  cases[_i].text, code);
    if (expected != NULL)
        ck_assert_str_eq(out, expected);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_no_origin)
{
    char text[1000] = "https://", out[UVA__ORIGIN_ROOM];

    memset(text + 8, 'a', 255);
    ck_assert_int_eq(uva__origin_normalise(text, out), 0);
    ck_assert_str_eq(out, text);
    memset(text + 8, 'a', 256);
    ck_assert_int_eq(uva__origin_normalise(text, out), EINVAL);
    memset(text, 'a', 40);
    ck_assert_int_eq(uva__origin_normalise(text, out), EINVAL);
    memcpy(text + 40, "://a", 5);
    ck_assert_int_eq(uva__origin_normalise(text, out), EINVAL);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("origin");

    tcase_add_loop_test(tc, a_text_is_written_as_browsers_do, 0,
                        sizeof(cases) / sizeof(*cases));
    tcase_add_test(tc, a_text_that_is_too_long_is_no_origin);
    return suite_main("serve_origin", NULL, NULL, tc, NULL);
}
