/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow carries key-value metadata in four places: with the schema, with the
 * producer, with a batch, and with an error. Here a pusher writes three of them
 * and a consumer reads what it receives; csv_driver.c shows the producer's
 * metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <uv.h>

#include "numbers.h"

/* ---- reading ------------------------------------------------------------ */

/* Prints a block, which may come from any peer and be malformed. */
static void show(const char *where, const char *block)
{
    struct uva_metadata_at at = {0};
    struct uva_pair pair;
    int code;

    while ((code = uva_metadata_next(block, &at, &pair)) == 0)
        printf("%s: %.*s = %.*s\n", where, (int)pair.key_size, pair.key,
               (int)pair.value_size, pair.value);
    if (code != ENOENT) /* a fault of the peer, not fatal */
        printf("%s: malformed (%s)\n", where, uva_error_name(code));
}

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    show("schema", info->schema->metadata);
    show("producer", info->metadata);
    return 0;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva_pair part;

    (void)ctx;
    if (uva_metadata_get(batch->metadata, "part", &part) == 0)
        printf("batch %" PRId64 " is part %.*s\n", batch->ordinal,
               (int)part.value_size, part.value);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    printf("%s\n", outcome->error.message);
    show("error", outcome->metadata);
    *(bool *)ctx = outcome->error.code == EIO && outcome->batches == 1 &&
                   outcome->metadata != NULL;
}

/* ---- writing ------------------------------------------------------------ */

/* Writes a block of one pair to `buffer`. */
static const char *one_pair(const char *key, const char *value, char *buffer,
                            size_t size)
{
    const struct uva_pair pair[] = {{.key = key, .value = value}, {0}};

    return uva_metadata_encode(pair, buffer, &size) == 0 ? buffer : NULL;
}

/* The schema borrows its metadata, because it has no memory to free: so a deep
 * copy of it is pushed. */
static int push_schema(struct uva_pusher *pusher)
{
    struct ArrowSchema plain, schema = {0};
    char buffer[64];
    int code = numbers_schema("load", &plain);

    if (code != 0)
        return code;
    plain.metadata = one_pair("unit", "kN", buffer, sizeof(buffer));
    code = uva_schema_copy(&plain, &schema);
    uva_schema_release(&plain);
    if (code == 0)
        code = uva_pusher_set_schema(pusher, &schema);
    return code;
}

static int push_batch(struct uva_pusher *pusher)
{
    struct ArrowDeviceArray batch;
    double *values = numbers_new(2, &batch);
    char buffer[64];

    if (values == NULL)
        return ENOMEM;
    values[0] = 1.5;
    values[1] = 2.5;
    return uva_pusher_push(pusher, &batch,
                           one_pair("part", "7", buffer, sizeof(buffer)), 0);
}

static int feed(struct uva_pusher *pusher)
{
    struct uva_error error;
    char buffer[64];
    int code = push_schema(pusher);

    if (code == 0)
        code = push_batch(pusher);
    uva_error_set(&error, EIO, "the line went dead");
    uva_pusher_close(pusher, &error,
                     one_pair("line", "3", buffer, sizeof(buffer)));
    return code;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct uva_pusher *pusher;
    struct uva_runtime *rt;
    struct uva_stream *s;
    bool well = false;
    int code;

    if (uva_runtime_open(loop, NULL, &rt, NULL) != 0)
        return 1;
    s = uva_stream_from_pusher(rt, NULL, &pusher);
    code = uva_stream_for_each(s,
                               &(struct uva_consumer){.on_schema = on_schema,
                                                      .on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &well},
                               NULL);
    uva_stream_release(s);
    if (code != 0 || feed(pusher) != 0)
        return 1;
    uv_run(loop, UV_RUN_DEFAULT);
    uva_runtime_close(rt, 0, NULL, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0 || !well;
}
