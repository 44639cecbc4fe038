/* SPDX-License-Identifier: Apache-2.0 */
/* Which coding a client gets, and texts that are compressed in pieces. */
#include "coding.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "compressor.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

#if defined(UVA_HAS_ZLIB) && defined(UVA_HAS_ZSTD)
#include <zlib.h>
#include <zstd.h>

static const struct {
    const char *accept;
    enum uva__coding coding;
} cases[] = {
    {NULL, UVA__CODING_NONE},
    {"", UVA__CODING_NONE},
    {",", UVA__CODING_NONE},
    {"br, deflate", UVA__CODING_NONE},
    {"gzip", UVA__CODING_GZIP},
    {"X-GZip", UVA__CODING_GZIP},
    {"gzipped", UVA__CODING_NONE},
    {"zstd", UVA__CODING_ZSTD},
    {"gzip, deflate, br, zstd", UVA__CODING_ZSTD},
    {"gzip;q=1.0, zstd;q=0.9", UVA__CODING_GZIP},
    {"zstd ; q=0.001", UVA__CODING_ZSTD},
    {"gzip;q=0", UVA__CODING_NONE},
    {"gzip;q=0, zstd;q=0.000", UVA__CODING_NONE},
    {"identity;q=0.8, gzip;q=0.5", UVA__CODING_NONE},
    {"identity;q=0.5, gzip;q=0.5", UVA__CODING_GZIP},
    {"identity", UVA__CODING_NONE},
    {"*", UVA__CODING_ZSTD},
    {"*, zstd;q=0", UVA__CODING_GZIP},
    {"*;q=0, gzip;q=0.1", UVA__CODING_GZIP},
    {"*;q=0", UVA__CODING_NONE},
    {"identity;q=0", UVA__CODING_NONE},
    {"gzip;q=nonsense", UVA__CODING_NONE},
};

START_TEST(the_coding_with_the_largest_weight_is_taken)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        ck_assert_msg(uva__coding_accepted(cases[i].accept) == cases[i].coding,
                      "%s", cases[i].accept);
    ck_assert_str_eq(uva__coding_name(UVA__CODING_GZIP), "gzip");
    ck_assert_str_eq(uva__coding_name(UVA__CODING_ZSTD), "zstd");
}
END_TEST

enum { ROOM = 1 << 18 };

static char text[ROOM], decoded[ROOM + 1];

/* Fills the text with numbers that hardly repeat. */
static void text_fill(void)
{
    unsigned number = 1;

    for (size_t i = 0; i < ROOM; i++) {
        number = number * 1664525u + 1013904223u;
        text[i] = (char)(number >> 24);
    }
}

/* Decodes all of `in`. Returns the number of bytes; `*ended`: its end was
 * there. */
static size_t decode_gzip(const struct uva__bytes *in, bool *ended)
{
    z_stream z = {.next_in = (Bytef *)in->data,
                  .avail_in = (uInt)in->size,
                  .next_out = (Bytef *)decoded,
                  .avail_out = sizeof(decoded)};

    ck_assert_int_eq(inflateInit2(&z, 31), Z_OK);
    *ended = inflate(&z, Z_SYNC_FLUSH) == Z_STREAM_END;
    ck_assert_uint_eq(z.avail_in, 0);
    (void)inflateEnd(&z);
    return sizeof(decoded) - z.avail_out;
}

static size_t decode_zstd(const struct uva__bytes *in, bool *ended)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer from = {.src = in->data, .size = in->size};
    ZSTD_outBuffer to = {.dst = decoded, .size = sizeof(decoded)};
    size_t left = 1;

    while (from.pos < from.size) {
        left = ZSTD_decompressStream(z, &to, &from);
        ck_assert(!ZSTD_isError(left));
    }
    *ended = left == 0;
    (void)ZSTD_freeDCtx(z);
    return to.pos;
}

static void check_decoded(enum uva__coding coding, const struct uva__bytes *in,
                          size_t size, bool is_last)
{
    bool ended;
    const size_t got = coding == UVA__CODING_GZIP ? decode_gzip(in, &ended)
                                                  : decode_zstd(in, &ended);

    ck_assert_uint_eq(got, size);
    ck_assert_int_eq(ended, is_last);
    ck_assert_int_eq(memcmp(decoded, text, size), 0);
}

START_TEST(each_flush_can_be_decoded)
{
    static const size_t SIZES[] = {1, 5, 100000, 0, 70000};
    const enum uva__coding coding = (enum uva__coding)_i;
    struct uva__compressor *c = uva__compressor_new(coding);
    struct uva__bytes out = {0};
    size_t done = 0;

    text_fill();
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++) {
        ck_assert_int_eq(uva__compressor_add(c, text + done, SIZES[i], &out),
                         0);
        done += SIZES[i];
        ck_assert_int_eq(uva__compressor_flush(c, false, &out), 0);
        check_decoded(coding, &out, done, false);
    }
    ck_assert_int_eq(uva__compressor_flush(c, true, &out), 0);
    check_decoded(coding, &out, done, true);
    uva__compressor_free(c);
    uva__bytes_clear(&out, 0);
}
END_TEST

START_TEST(no_text_has_an_end)
{
    const enum uva__coding coding = (enum uva__coding)_i;
    struct uva__compressor *c = uva__compressor_new(coding);
    struct uva__bytes out = {0};

    ck_assert_int_eq(uva__compressor_flush(c, true, &out), 0);
    check_decoded(coding, &out, 0, true);
    uva__compressor_free(c);
    uva__bytes_clear(&out, 0);
}
END_TEST

static int compress_all(enum uva__coding coding, struct uva__bytes *out)
{
    struct uva__compressor *c = uva__compressor_new(coding);
    int code = c != NULL ? uva__compressor_add(c, text, ROOM, out) : ENOMEM;

    if (code == 0)
        code = uva__compressor_flush(c, true, out);
    uva__compressor_free(c);
    return code;
}

START_TEST(every_allocation_may_fail)
{
    const enum uva__coding coding = (enum uva__coding)_i;
    bool failed = true;

    text_fill();
    for (long n = 1; failed; n++) {
        struct uva__bytes out = {0};
        int code;

        faulty_libc_fail(n);
        code = compress_all(coding, &out);
        failed = faulty_libc_stop();
        ck_assert_int_eq(code, failed ? ENOMEM : 0);
        uva__bytes_clear(&out, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coding");
    TCase *tcase = suite_case(suite, "coding", NULL, NULL);

    suite_add(tcase, the_coding_with_the_largest_weight_is_taken, NULL);
    suite_add_loops(tcase, UVA__CODING_GZIP, UVA__CODINGS,
                    each_flush_can_be_decoded, no_text_has_an_end,
                    every_allocation_may_fail, NULL);
    return suite_run(suite);
}

#else

int main(void)
{
    return 77;
}

#endif
