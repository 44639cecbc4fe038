/* SPDX-License-Identifier: Apache-2.0 */
/* The checked stream, the check, and its reader. */
#include "support/spoiled_stream.h"

#include <check.h>
#include <string.h>

#include "check/device_stream_check.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

static const int64_t DATA[4] = {0};

static struct spoiled_stream *spoiled_of(struct ArrowDeviceArrayStream *self)
{
    struct spoiled_stream *spoiled = self->private_data;

    spoiled->calls++;
    return spoiled;
}

static int behind_get_schema(struct ArrowDeviceArrayStream *self,
                             struct ArrowSchema *out)
{
    struct spoiled_stream *spoiled = spoiled_of(self);

    if (spoiled->code == 0) {
        plain_schema(out, "+s", "", 1);
        plain_schema(out->children[0], "l", "n", 0);
    }
    if (spoiled->spoil_schema != NULL)
        spoiled->spoil_schema(out);
    return spoiled->code;
}

void spoiled_stream_chunk(struct ArrowDeviceArray *out)
{
    memset(out, 0, sizeof(*out));
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    plain_array(&out->array, 4, 1, 1);
    plain_array(out->array.children[0], 4, 2, 0);
    out->array.children[0]->buffers[1] = DATA;
}

static int behind_get_next(struct ArrowDeviceArrayStream *self,
                           struct ArrowDeviceArray *out)
{
    struct spoiled_stream *spoiled = spoiled_of(self);
    void (*inside)(struct spoiled_stream * spoiled) = spoiled->inside;

    spoiled->inside = NULL;
    if (inside != NULL)
        inside(spoiled);
    if (spoiled->code == 0 && spoiled->chunks > 0)
        spoiled_stream_chunk(out);
    else if (spoiled->code == 0)
        out->array.release = NULL;
    spoiled->chunks--;
    if (spoiled->spoil_chunk != NULL)
        spoiled->spoil_chunk(out);
    if (spoiled->turns_to != 0)
        self->device_type = spoiled->turns_to;
    return spoiled->code;
}

static const char *behind_get_last_error(struct ArrowDeviceArrayStream *self)
{
    return spoiled_of(self)->text;
}

static void behind_release(struct ArrowDeviceArrayStream *self)
{
    struct spoiled_stream *spoiled = spoiled_of(self);

    spoiled->releases++;
    if (!spoiled->unmarked)
        self->release = NULL;
}

void spoiled_stream_init(struct spoiled_stream *spoiled, int chunks)
{
    memset(spoiled, 0, sizeof(*spoiled));
    breach_log_init(&spoiled->log);
    faulty_allocator_init(&spoiled->memory, 0);
    spoiled->chunks = chunks;
    spoiled->stream =
        (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CPU,
                                        .get_schema = behind_get_schema,
                                        .get_next = behind_get_next,
                                        .get_last_error = behind_get_last_error,
                                        .release = behind_release,
                                        .private_data = spoiled};
}

struct uva_check spoiled_stream_options(struct spoiled_stream *spoiled)
{
    struct uva_check options = breach_log_options(&spoiled->log);

    options.allocator = faulty_allocator_table(&spoiled->memory);
    return options;
}

/* Puts the check around the stream. */
void spoiled_stream_check(struct spoiled_stream *spoiled)
{
    struct uva_check options = spoiled_stream_options(spoiled);

    options.keep = true;
    ck_assert_int_eq(uva__reporter_new(&options, &spoiled->reporter, NULL), 0);
    ck_assert_int_eq(
        uva__device_stream_check(spoiled->reporter, &spoiled->stream, NULL), 0);
}

void spoiled_stream_open(struct spoiled_stream *spoiled, int chunks)
{
    spoiled_stream_init(spoiled, chunks);
    spoiled_stream_check(spoiled);
}

/* Releases the stream, if it is live, and checks that no object is left. */
void spoiled_stream_close(struct spoiled_stream *spoiled)
{
    if (spoiled->stream.release != NULL)
        spoiled->stream.release(&spoiled->stream);
    breach_log_expect(&spoiled->log, "");
    ck_assert_int_eq(spoiled->releases, 1);
    ck_assert_int_eq(spoiled->log.freed, 0);
    uva__reporter_release(spoiled->reporter);
    ck_assert_int_eq(spoiled->log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&spoiled->memory), 0);
    ck_assert_int_eq(plain_live(), 0);
}

int spoiled_stream_get_schema(struct spoiled_stream *spoiled)
{
    struct ArrowSchema schema = {0};
    const int code = spoiled->stream.get_schema(&spoiled->stream, &schema);

    if (code == 0)
        uva_schema_release(&schema);
    else
        ck_assert(schema.release == NULL);
    return code;
}

/* Reads one chunk and releases it; ENODATA at the end. */
int spoiled_stream_get_next(struct spoiled_stream *spoiled)
{
    struct ArrowDeviceArray chunk = {0};
    const int code = spoiled->stream.get_next(&spoiled->stream, &chunk);

    if (code != 0) {
        ck_assert(chunk.array.release == NULL);
        return code;
    }
    if (chunk.array.release == NULL)
        return ENODATA;
    ck_assert_int_eq(chunk.device_type, ARROW_DEVICE_CPU);
    chunk.array.release(&chunk.array);
    return 0;
}

const char *spoiled_stream_get_last_error(struct spoiled_stream *spoiled)
{
    return spoiled->stream.get_last_error(&spoiled->stream);
}
