/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path: get_schema, get_next until it gives a released array, release.
 * Failures: the schema, once, and get_next, from then on. Everything it gave
 * outlives the stream. */
#include "support/reference_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the stream --------------------------------------------------------- */

static bool acts(struct reference_stream *s, enum stream_point point, void *at)
{
    const struct stream_mutant *mutant = s->how.mutant;

    return mutant != NULL && mutant->point == point && mutant->act(s, at);
}

static void enter(struct reference_stream *s)
{
    if (atomic_fetch_add(&s->inside, 1) > 0)
        atomic_fetch_add(&s->faults, 1); /* DS-16 */
    s->text[0] = '\0';
}

static int leave(struct reference_stream *s, int code)
{
    if (code != 0 && !s->how.mute)
        snprintf(s->text, sizeof(s->text), "failed with %d", code);
    atomic_fetch_sub(&s->inside, 1);
    return code;
}

static int get_schema(struct ArrowDeviceArrayStream *self,
                      struct ArrowSchema *out)
{
    struct reference_stream *s = self->private_data;

    enter(s);
    if (s->how.fails_first && s->schemas == 0) {
        s->schemas++;
        return leave(s, EIO);
    }
    s->schemas++;
    reference_schema(&s->live_structs, reference_block(s->block), out);
    acts(s, STREAM_AT_SCHEMA, out);
    return leave(s, 0);
}

static int fill(struct reference_stream *s, struct stream_call *call)
{
    if (s->next < s->how.batches) {
        reference_array(&s->live_structs, s->next++, call->out);
        call->out->device_type = s->how.device_type;
        acts(s, STREAM_AT_CHUNK, call);
        return 0;
    }
    s->failed = s->how.fails;
    if (s->failed) {
        call->code = EIO;
        acts(s, STREAM_AT_FAIL, call);
        return call->code;
    }
    memset(call->out, 0, sizeof(*call->out));
    call->out->device_type = s->how.device_type;
    return 0;
}

static int get_next(struct ArrowDeviceArrayStream *self,
                    struct ArrowDeviceArray *out)
{
    struct reference_stream *s = self->private_data;
    struct stream_call call = {self, out, 0};
    void (*hook)(void *) = s->hook;

    s->hook = NULL;
    enter(s);
    if (hook != NULL)
        hook(s->ctx);
    if (!acts(s, STREAM_AT_NEXT, &call))
        call.code = fill(s, &call);
    return leave(s, call.code);
}

static const char *get_last_error(struct ArrowDeviceArrayStream *self)
{
    struct reference_stream *s = self->private_data;

    return s->text[0] == '\0' ? NULL : s->text;
}

static void release(struct ArrowDeviceArrayStream *self)
{
    struct reference_stream *s = self->private_data;

    memset(s->text, 0x5A, sizeof(s->text) - 1);
    atomic_fetch_add(&s->released, 1);
    self->release = NULL;
    acts(s, STREAM_AT_RELEASE, self);
}

void reference_stream_give(struct reference_stream *s,
                           struct ArrowDeviceArrayStream *out)
{
    *out = (struct ArrowDeviceArrayStream){
        .device_type = s->how.device_type,
        .get_schema = get_schema,
        .get_next = get_next,
        .get_last_error = get_last_error,
        .release = release,
        .private_data = s,
    };
    acts(s, STREAM_AT_GIVE, out);
}

void reference_stream_init(struct reference_stream *s,
                           const struct reference_stream_options *how)
{
    memset(s, 0, sizeof(*s));
    s->how = *how;
    s->block = how->metadata ? REFERENCE_SOUND : REFERENCE_NONE;
    if (how->device_type == 0)
        s->how.device_type = ARROW_DEVICE_CPU;
}

void reference_stream_fini(struct reference_stream *s)
{
    if (s->stray.release != NULL)
        s->stray.release(&s->stray);
    reference_counts_fini(&s->live_structs);
}

/* ---- the reader --------------------------------------------------------- */

static bool reader_acts(struct reference_reader *r, enum stream_point point,
                        void *at)
{
    const struct stream_mutant *mutant = r->how.mutant;

    return mutant != NULL && mutant->point == point && mutant->act(r, at);
}

void reference_reader_init(struct reference_reader *r,
                           const struct reference_reader_options *how,
                           struct ArrowDeviceArrayStream *stream)
{
    memset(r, 0, sizeof(*r));
    r->how = *how;
    r->stream = *stream;
    stream->release = NULL;
}

/* Gets the error text right after a failed call. */
static void ask_text(struct reference_reader *r)
{
    const char *text;

    if (r->code == 0 || !r->how.text)
        return;
    text = r->stream.get_last_error(&r->stream);
    if (text != NULL && strlen(text) > 1000)
        r->faults++;
}

static void read_schema(struct reference_reader *r)
{
    struct ArrowSchema schema = {0};

    r->code = r->stream.get_schema(&r->stream, &schema);
    ask_text(r);
    if (r->code != 0) {
        r->ended = true;
        return;
    }
    if (r->schema.release != NULL)
        r->schema.release(&r->schema);
    r->schema = schema;
}

static void read_schema_again(struct reference_reader *r)
{
    r->how.again = 0;
    read_schema(r);
}

void reference_reader_drop(struct reference_reader *r,
                           struct ArrowDeviceArray *array)
{
    struct reference_chunk *chunk;

    if (!r->how.keep) {
        if (!reader_acts(r, STREAM_AT_DROP, &array->array))
            array->array.release(&array->array);
        return;
    }
    chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL)
        abort();
    chunk->array = *array;
    chunk->next = r->chunks;
    r->chunks = chunk;
}

static void read_next(struct reference_reader *r)
{
    struct ArrowDeviceArray array = {0};
    struct stream_call call = {&r->stream, &array, 0};

    if (!reader_acts(r, STREAM_AT_READ, &call))
        call.code = r->stream.get_next(&r->stream, &array);
    r->code = call.code;
    ask_text(r);
    if (!reader_acts(r, STREAM_AT_FED, &call) && r->code == 0 &&
        array.array.release != NULL) {
        r->rows += array.array.length;
        r->had++;
        reference_reader_drop(r, &array);
    } else {
        r->ended = true;
    }
}

static void shut(struct reference_reader *r)
{
    if (!reader_acts(r, STREAM_AT_SHUT, &r->stream))
        r->stream.release(&r->stream);
    if (r->stream.release != NULL)
        r->faults++; /* DS-15 */
    r->stream.release = NULL;
}

bool reference_reader_step(struct reference_reader *r)
{
    if (r->stream.release == NULL)
        return false;
    if (r->ended || (r->how.stop_at > 0 && r->had == r->how.stop_at))
        shut(r);
    else if (r->schema.release == NULL)
        read_schema(r);
    else if (r->how.again > 0 && r->had == r->how.again)
        read_schema_again(r);
    else
        read_next(r);
    return true;
}

void reference_reader_fini(struct reference_reader *r)
{
    struct reference_chunk *chunk;

    while ((chunk = r->chunks) != NULL) {
        r->chunks = chunk->next;
        if (!reader_acts(r, STREAM_AT_DROP, &chunk->array.array))
            chunk->array.array.release(&chunk->array.array);
        free(chunk);
    }
    if (r->schema.release != NULL)
        r->schema.release(&r->schema);
}
