/* SPDX-License-Identifier: Apache-2.0 */
/* The schema that is made differs from the other one in its name alone. */
#include "support/made_schema.h"

#include <check.h>
#include <string.h>

#include "support/plain_tree.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

int made_schema_give(int code, bool empty, const struct ArrowSchema *in,
                     struct ArrowSchema *out, struct uva_error *error)
{
    ck_assert_str_eq(in->format, "c");
    ck_assert_str_eq(in->name, "");
    if (code != 0)
        return uva_error_set(error, code, "no schema");
    if (!empty)
        plain_schema(out, "c", "made", 0);
    return 0;
}

static int see_schema(void *ctx, struct uva_batch *in,
                      struct ArrowDeviceArray *out, struct uva_error *error)
{
    (void)ctx;
    (void)error;
    ck_assert_str_eq(in->schema->name, "made");
    uva_array_move(&in->data, out);
    return 0;
}

void made_schema_run(struct uva_stream *stream,
                     struct recording_consumer *consumer,
                     struct loop_fixture *loop, const char *transcript,
                     const char *text)
{
    (void)uva_stream_map(
        stream, &(struct uva_map){.batch = see_schema, .on_loop = true});
    recording_consume(consumer, stream);
    recording_await_done(consumer, loop);
    ck_assert_str_eq(consumer->transcript, transcript);
    ck_assert_ptr_nonnull(strstr(consumer->outcome.error.message, text));
}
