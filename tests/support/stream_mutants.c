/* SPDX-License-Identifier: Apache-2.0 */
/* The mutants of the blocking stream and of its reader: first their functions,
 * then the table in the order of the catalogue. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference_shape.h"
#include "support/reference_stream.h"

static int stream_arg(const struct reference_stream *s)
{
    return s->how.mutant->arg;
}

static int reader_arg(const struct reference_reader *r)
{
    return r->how.mutant->arg;
}

/* ---- the stream --------------------------------------------------------- */

static bool lacks_slot(void *peer, void *at)
{
    struct ArrowDeviceArrayStream *stream = at;

    if (stream_arg(peer) == 0)
        stream->get_schema = NULL;
    else if (stream_arg(peer) == 1)
        stream->get_next = NULL;
    else
        stream->get_last_error = NULL;
    return false;
}

static bool block_is(void *peer, void *at)
{
    struct reference_stream *s = peer;

    (void)at;
    s->block = (enum reference_block)stream_arg(s);
    return false;
}

static bool schema_stays_marked(void *peer, void *at)
{
    (void)peer;
    reference_schema_unmarked(at);
    return false;
}

static bool schema_is_dead(void *peer, void *at)
{
    struct ArrowSchema *schema = at;

    (void)peer;
    schema->release(schema);
    return false;
}

/* Gives a second schema that differs from the first. */
static bool schema_varies(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct ArrowSchema *schema = at;

    if (s->schemas == 2)
        schema->children[0]->flags = 0;
    return false;
}

static bool misshapes(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct stream_call *call = at;

    if (s->acts++ == 0)
        reference_array_misshape(call->out,
                                 (enum reference_shape)stream_arg(s));
    return false;
}

static bool gives_nothing(void *peer, void *at)
{
    struct reference_stream *s = peer;

    (void)at;
    return s->next == 1;
}

static bool type_changes(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct stream_call *call = at;

    if (s->next == s->how.batches)
        call->self->device_type = ARROW_DEVICE_CUDA;
    return false;
}

static bool type_is_none(void *peer, void *at)
{
    struct ArrowDeviceArrayStream *stream = at;

    (void)peer;
    stream->device_type = 0;
    return false;
}

static bool code_is_negative(void *peer, void *at)
{
    struct stream_call *call = at;

    (void)peer;
    call->code = -EIO;
    return false;
}

static bool fails_and_fills(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct stream_call *call = at;

    reference_array(&s->live_structs, s->next, call->out);
    s->stray = call->out->array;
    return false;
}

static const char *odd_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return "\xFF\xFE";
}

static bool text_is_odd(void *peer, void *at)
{
    struct ArrowDeviceArrayStream *stream = at;

    (void)peer;
    stream->get_last_error = odd_error;
    return false;
}

static void do_nothing(struct ArrowDeviceArrayStream *self)
{
    (void)self;
}

static bool stays_marked(void *peer, void *at)
{
    struct ArrowDeviceArrayStream *stream = at;

    (void)peer;
    stream->release = do_nothing;
    return false;
}

/* ---- the reader --------------------------------------------------------- */

enum deed { ASKS_SCHEMA, ASKS_CHUNK, ASKS_TEXT, RELEASES };

/* Releases the stream, and then uses a copy of it. */
static bool goes_on(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowDeviceArrayStream *stream = at, copy = *stream;
    struct ArrowSchema schema = {0};
    struct ArrowDeviceArray array = {0};

    stream->release(stream);
    if (reader_arg(r) == ASKS_SCHEMA)
        copy.get_schema(&copy, &schema);
    else if (reader_arg(r) == ASKS_CHUNK)
        copy.get_next(&copy, &array);
    else if (reader_arg(r) == ASKS_TEXT)
        copy.get_last_error(&copy);
    else
        copy.release(&copy);
    return true;
}

static bool asks_text_after_success(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct stream_call *call = at;

    if (call->code == 0 && r->acts++ == 0)
        r->stream.get_last_error(&r->stream);
    return false;
}

static void *read_elsewhere(void *ctx)
{
    struct reference_reader *r = ctx;
    struct ArrowDeviceArray array = {0};

    if (r->stream.get_next(&r->stream, &array) == 0 &&
        array.array.release != NULL)
        array.array.release(&array.array);
    return NULL;
}

static void overlap(void *ctx)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, read_elsewhere, ctx) != 0)
        abort();
    pthread_join(thread, NULL);
}

/* Another thread calls get_next while the stream is inside get_next. */
static bool reads_twice_at_once(void *peer, void *at)
{
    struct reference_reader *r = peer;

    (void)at;
    if (r->acts++ == 0) {
        r->behind->ctx = r;
        r->behind->hook = overlap;
    }
    return false;
}

static bool writes_private(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct stream_call *call = at;
    void *const own = r->stream.private_data;

    if (r->acts++ > 0)
        return false;
    r->stream.private_data = (char *)own + 1;
    call->code = r->stream.get_next(&r->stream, call->out);
    r->stream.private_data = own;
    return true;
}

static void no_release(struct ArrowArray *array)
{
    (void)array;
}

static bool releases_failed(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct stream_call *call = at;

    call->out->array.release = no_release;
    call->code = r->stream.get_next(&r->stream, call->out);
    if (call->code != 0)
        call->out->array.release(&call->out->array);
    return true;
}

static bool releases_twice(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowArray *array = at, copy = *array;

    if (r->acts++ > 0)
        return false;
    array->release(array);
    copy.release(&copy);
    return true;
}

static void no_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static bool releases_schema_twice(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowSchema one = r->schema, two = r->schema;

    (void)at;
    if (r->acts++ > 0)
        return false;
    one.release(&one);
    two.release(&two);
    r->schema.release = no_schema_release;
    return false;
}

static bool releases_elsewhere(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowArray *array = at, source = *array;

    source.release = NULL; /* it was moved */
    if (r->acts++ == 0)
        array->release(&source);
    return false;
}

static bool releases_child(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowArray *array = at;

    if (r->acts++ == 0)
        array->children[0]->release(array->children[0]);
    return false;
}

static bool writes_buffers(void *peer, void *at)
{
    struct reference_reader *r = peer;
    struct ArrowArray *array = at;

    if (r->acts++ == 0)
        array->buffers[0] = array;
    return false;
}

/* ---- the table ---------------------------------------------------------- */

static const struct stream_pair USUAL = {{.batches = 3, .metadata = true}, {0}};
static const struct stream_pair AGAIN = {{.batches = 3}, {.again = 1}};
static const struct stream_pair FAILS = {{.batches = 2, .fails = true},
                                         {.text = true}};
static const struct stream_pair EMPTY = {{0}, {0}};
static const struct stream_pair ON_VPI = {
    {.batches = 2, .device_type = ARROW_DEVICE_VPI}, {0}};

#define AT(point) STREAM_AT_##point

static const struct stream_mutant MUTANTS[] = {
    {"AB-17", "get_schema", false, AT(GIVE), lacks_slot, 0, &USUAL, false},
    {"AB-17", "get_next", false, AT(GIVE), lacks_slot, 1, &USUAL, false},
    {"AB-17", "get_last_error", false, AT(GIVE), lacks_slot, 2, &USUAL, false},
    {"AB-17", "schema", false, AT(SCHEMA), schema_is_dead, 0, &USUAL, false},
    {"DA-05", "", false, AT(CHUNK), misshapes, REFERENCE_CPU_NUMBERED, &USUAL,
     false},
    {"DA-08", "", false, AT(CHUNK), misshapes, REFERENCE_RESERVED_SET, &USUAL,
     false},
    {"DA-13", "", true, AT(DROP), releases_elsewhere, 0, &USUAL, false},
    {"DS-01", "buffers", false, AT(CHUNK), misshapes, REFERENCE_BUFFERS_MANY,
     &USUAL, false},
    {"DA-21", "length", false, AT(CHUNK), misshapes, REFERENCE_LENGTH_MINUS,
     &USUAL, false},
    {"DA-22", "data", false, AT(CHUNK), misshapes, REFERENCE_DATA_NONE, &USUAL,
     false},
    {"DA-24", "", false, AT(CHUNK), misshapes, REFERENCE_UNALIGNED, &USUAL,
     false},
    {"DA-25", "children", false, AT(CHUNK), misshapes, REFERENCE_CHILDREN_NONE,
     &USUAL, false},
    {"DS-01", "dictionary", false, AT(CHUNK), misshapes, REFERENCE_WORDS_NONE,
     &USUAL, false},
    {"EV-04", "", false, AT(CHUNK), misshapes, REFERENCE_EVENT, &USUAL, false},
    {"EV-09", "", false, AT(CHUNK), misshapes, REFERENCE_EVENT, &ON_VPI, false},
    {"DS-01", "children", false, AT(CHUNK), misshapes, REFERENCE_CHILDREN_FEW,
     &USUAL, false},
    {"DS-02", "", false, AT(NEXT), gives_nothing, 0, &USUAL, false},
    {"DS-03", "", false, AT(CHUNK), misshapes, REFERENCE_TYPE_OTHER, &USUAL,
     false},
    {"DS-05", "none", false, AT(GIVE), type_is_none, 0, &EMPTY, false},
    {"DS-05", "changes", false, AT(CHUNK), type_changes, 0, &USUAL, false},
    {"DS-06", "get_schema", true, AT(SHUT), goes_on, ASKS_SCHEMA, &USUAL,
     false},
    {"DS-06", "get_next", true, AT(SHUT), goes_on, ASKS_CHUNK, &USUAL, false},
    {"DS-06", "get_last_error", true, AT(SHUT), goes_on, ASKS_TEXT, &USUAL,
     false},
    {"DS-07", "", false, AT(FAIL), code_is_negative, 0, &FAILS, false},
    {"DS-10", "", true, AT(FED), asks_text_after_success, 0, &USUAL, false},
    {"DS-11", "", false, AT(GIVE), text_is_odd, 0, &FAILS, false},
    {"DS-14", "", true, AT(SHUT), goes_on, RELEASES, &USUAL, false},
    {"DS-15", "", false, AT(RELEASE), stays_marked, 0, &USUAL, false},
    {"DS-16", "", true, AT(READ), reads_twice_at_once, 0, &USUAL, false},
    {"DS-17", "", true, AT(READ), writes_private, 0, &USUAL, false},
    {"DS-19", "stream", false, AT(FAIL), fails_and_fills, 0, &FAILS, false},
    {"DS-19", "reader", true, AT(READ), releases_failed, 0, &FAILS, false},
    {"DS-21", "", false, AT(SCHEMA), schema_varies, 0, &AGAIN, false},
    {"MD-02", "", false, AT(GIVE), block_is, REFERENCE_EMPTY, &USUAL, false},
    {"MD-05", "pairs", false, AT(GIVE), block_is, REFERENCE_MINUS, &USUAL,
     false},
    {"MD-05", "key", false, AT(GIVE), block_is, REFERENCE_MINUS_KEY, &USUAL,
     false},
    {"MD-05", "value", false, AT(GIVE), block_is, REFERENCE_MINUS_WORD, &USUAL,
     false},
    {"MD-09", "pairs", false, AT(GIVE), block_is, REFERENCE_CROWD, &USUAL,
     false},
    {"MD-09", "key", false, AT(GIVE), block_is, REFERENCE_GIANT, &USUAL, false},
    {"LC-02", "array", true, AT(DROP), releases_twice, 0, &USUAL, false},
    {"LC-02", "schema", true, AT(DROP), releases_schema_twice, 0, &USUAL,
     false},
    {"LC-03", "", true, AT(DROP), releases_child, 0, &USUAL, true},
    {"LC-05", "", false, AT(CHUNK), misshapes, REFERENCE_CHILDREN_STAY, &USUAL,
     true},
    {"LC-07", "array", false, AT(CHUNK), misshapes, REFERENCE_MARK_STAYS,
     &USUAL, false},
    {"LC-07", "schema", false, AT(SCHEMA), schema_stays_marked, 0, &USUAL,
     false},
    {"LC-11", "", true, AT(DROP), writes_buffers, 0, &USUAL, false},
};

const struct stream_mutant *stream_mutants(int *count)
{
    *count = (int)(sizeof(MUTANTS) / sizeof(MUTANTS[0]));
    return MUTANTS;
}
