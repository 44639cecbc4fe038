/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a file of Arrow data and adds a pair of metadata to its schema.
 *
 *     $ cc metadata_write.c tell.c \
 *         $(pkg-config --cflags --libs uvarrow-io libuv)
 *     $ ./a.out made-by me < flights.arrow > new.arrow
 *     $ grep -aoE 'made-by|airports' new.arrow | sort
 *     airports
 *     made-by
 */
#include <uv.h>

#include "tell.h"
#include "uvarrow/io.h"

/* Gives the schema of the copy: with the pairs of `in`, and `ctx`. */
static int add_pair(void *ctx, const struct ArrowSchema *in,
                    struct ArrowSchema *out, struct uva_error *error)
{
    struct ArrowSchema plain = *in; /* borrows all that `in` has */
    struct uva_metadata_at at = {0};
    struct uva_pair pairs[64] = {{0}};
    char block[16384];
    size_t count = 0, size = sizeof(block);
    int code;

    while (count < 62 &&
           (code = uva_metadata_next(in->metadata, &at, &pairs[count])) == 0)
        count++;
    if (count == 62 || code != ENOENT) /* the end */
        return uva_error_set(error, EINVAL, "too many pairs, or malformed");
    pairs[count] = *(const struct uva_pair *)ctx;
    code = uva_metadata_encode(pairs, block, &size);
    plain.metadata = block;
    if (code == 0)
        code = uva_schema_copy(&plain, out); /* a deep one */
    return code == 0 ? 0 : uva_error_set(error, code, "cannot add the pair");
}

static int pass_on(void *ctx, struct uva_batch *in,
                   struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    uva_array_move(&in->data, out);
    return 0;
}

static void on_done(void *code, const struct uva_outcome *outcome, int64_t size)
{
    (void)size;
    tell_end(code, outcome);
}

int main(int argc, char **argv)
{
    struct uva_pair pair;
    struct uva_map map = {
        .batch = pass_on, .schema = add_pair, .ctx = &pair, .on_loop = true};
    int code = 0;
    struct uva_write to = {.on_done = on_done, .ctx = &code};
    uv_loop_t *loop = uv_default_loop();
    struct uva_runtime *rt;
    struct uva_error error;
    struct uva_stream *s;

    if (argc != 3 || uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 2;
    pair = (struct uva_pair){.key = argv[1], .value = argv[2]};
    s = uva_stream_from_file(rt, NULL, NULL); /* standard input */
    uva_stream_map(s, &map);
    if (uva_stream_write_file(s, 1, &to, &error) != 0)
        code = tell(&error);
    uva_stream_release(s);
    uva_runtime_close(rt, UVA_FOREVER, NULL, NULL); /* once it has ended */
    return uv_run(loop, UV_RUN_DEFAULT) != 0 || code != 0;
}
