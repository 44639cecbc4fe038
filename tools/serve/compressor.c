/* SPDX-License-Identifier: Apache-2.0 */
/* One member of gzip, or one frame of zstd: some clients read no second one. */
#include "compressor.h"

#include <errno.h>
#include <stdlib.h>
#ifdef UVA_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef UVA_HAS_ZSTD
#include <zstd.h>
#endif

/* Settings for text that is made while its client waits: fast, and with little
 * memory for each query. */
#define GZIP_LEVEL      1
#define GZIP_WINDOW     31 /* 32 KiB, and a head of gzip */
#define ZSTD_LEVEL      1
#define ZSTD_WINDOW_LOG 18 /* 256 KiB */

/* Most bytes that zlib takes at once. */
#define PIECE ((size_t)1 << 30)

enum step { STEP_ADD, STEP_FLUSH, STEP_END };

/* A compressor. */
struct uva__compressor {
    enum uva__coding coding; /* says which of these is used */
#ifdef UVA_HAS_ZLIB
    z_stream gzip; /* owns */
#endif
#ifdef UVA_HAS_ZSTD
    ZSTD_CCtx *zstd; /* owns */
#endif
    char room[16384]; /* compressed bytes on their way */
};

/* ---- gzip ---------------------------------------------------------------- */

#ifdef UVA_HAS_ZLIB

static void *gzip_alloc(void *ctx, unsigned count, unsigned size)
{
    (void)ctx;
    return calloc(count, size);
}

static void gzip_release(void *ctx, void *data)
{
    (void)ctx;
    free(data);
}

static int gzip_begin(struct uva__compressor *c)
{
    c->gzip.zalloc = gzip_alloc;
    c->gzip.zfree = gzip_release;
    return deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
                        Z_DEFAULT_STRATEGY) == Z_OK
               ? 0
               : ENOMEM;
}

/* Compresses a piece. A step is over once it leaves room. */
static int gzip_piece(struct uva__compressor *c, const char *data, size_t size,
                      enum step step, struct uva__bytes *out)
{
    static const int FLUSH[] = {[STEP_ADD] = Z_NO_FLUSH,
                                [STEP_FLUSH] = Z_SYNC_FLUSH,
                                [STEP_END] = Z_FINISH};
    int code = 0;

    c->gzip.next_in = (z_const Bytef *)(uintptr_t)data;
    c->gzip.avail_in = (uInt)size;
    do {
        c->gzip.next_out = (Bytef *)c->room;
        c->gzip.avail_out = sizeof(c->room);
        (void)deflate(&c->gzip, FLUSH[step]);
        code =
            uva__bytes_add(out, c->room, sizeof(c->room) - c->gzip.avail_out);
    } while (code == 0 && c->gzip.avail_out == 0);
    return code;
}

static int gzip_run(struct uva__compressor *c, const char *data, size_t size,
                    enum step step, struct uva__bytes *out)
{
    int code = 0;

    while (size > PIECE && code == 0) {
        code = gzip_piece(c, data, PIECE, STEP_ADD, out);
        data += PIECE;
        size -= PIECE;
    }
    return code == 0 ? gzip_piece(c, data, size, step, out) : code;
}

#endif

/* ---- zstd ---------------------------------------------------------------- */

#ifdef UVA_HAS_ZSTD

static int zstd_begin(struct uva__compressor *c)
{
    c->zstd = ZSTD_createCCtx();
    if (c->zstd == NULL)
        return ENOMEM;
    (void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    (void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_windowLog, ZSTD_WINDOW_LOG);
    return 0;
}

static int zstd_run(struct uva__compressor *c, const char *data, size_t size,
                    enum step step, struct uva__bytes *out)
{
    static const ZSTD_EndDirective MODE[] = {[STEP_ADD] = ZSTD_e_continue,
                                             [STEP_FLUSH] = ZSTD_e_flush,
                                             [STEP_END] = ZSTD_e_end};
    ZSTD_inBuffer in = {.src = data, .size = size};
    size_t left;
    int code;

    do {
        ZSTD_outBuffer room = {.dst = c->room, .size = sizeof(c->room)};

        left = ZSTD_compressStream2(c->zstd, &room, &in, MODE[step]);
        if (ZSTD_isError(left))
            return ENOMEM;
        code = uva__bytes_add(out, c->room, room.pos);
    } while (code == 0 && (step == STEP_ADD ? in.pos < in.size : left > 0));
    return code;
}

#endif

/* ---- either -------------------------------------------------------------- */

static int compressor_begin(struct uva__compressor *c)
{
#ifdef UVA_HAS_ZLIB
    if (c->coding == UVA__CODING_GZIP)
        return gzip_begin(c);
#endif
#ifdef UVA_HAS_ZSTD
    if (c->coding == UVA__CODING_ZSTD)
        return zstd_begin(c);
#endif
    (void)c; /* without a library */
    return ENOTSUP;
}

static int compressor_run(struct uva__compressor *c, const char *data,
                          size_t size, enum step step, struct uva__bytes *out)
{
#ifdef UVA_HAS_ZLIB
    if (c->coding == UVA__CODING_GZIP)
        return gzip_run(c, data, size, step, out);
#endif
#ifdef UVA_HAS_ZSTD
    if (c->coding == UVA__CODING_ZSTD)
        return zstd_run(c, data, size, step, out);
#endif
    (void)c;
    (void)data;
    (void)size;
    (void)step;
    (void)out;
    return ENOTSUP;
}

struct uva__compressor *uva__compressor_new(enum uva__coding coding)
{
    struct uva__compressor *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->coding = coding;
    if (compressor_begin(c) == 0)
        return c;
    free(c);
    return NULL;
}

int uva__compressor_add(struct uva__compressor *compressor, const char *data,
                        size_t size, struct uva__bytes *out)
{
    return compressor_run(compressor, data, size, STEP_ADD, out);
}

int uva__compressor_flush(struct uva__compressor *compressor, bool is_last,
                          struct uva__bytes *out)
{
    return compressor_run(compressor, "", 0, is_last ? STEP_END : STEP_FLUSH,
                          out);
}

void uva__compressor_free(struct uva__compressor *compressor)
{
    if (compressor == NULL)
        return;
#ifdef UVA_HAS_ZLIB
    if (compressor->coding == UVA__CODING_GZIP)
        (void)deflateEnd(&compressor->gzip);
#endif
#ifdef UVA_HAS_ZSTD
    if (compressor->coding == UVA__CODING_ZSTD)
        (void)ZSTD_freeCCtx(compressor->zstd);
#endif
    free(compressor);
}
