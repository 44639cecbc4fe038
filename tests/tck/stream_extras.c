/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking stream's additional mutants: first the functions, then the
 * table. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference_shape.h"
#include "tck/array_spoil.h"
#include "tck/mutant_extras.h"

static int arg_of(const struct reference_stream *s)
{
    return s->how.mutant->arg;
}

static bool fails_with(void *peer, void *at)
{
    struct stream_call *call = at;

    call->code = arg_of(peer);
    call->out->array.release = NULL;
    return false;
}

static bool misshapes(void *peer, void *at)
{
    const struct stream_call *call = at;

    reference_array_misshape(call->out, (enum reference_shape)arg_of(peer));
    return false;
}

static bool spoils(void *peer, void *at)
{
    const struct stream_call *call = at;

    array_spoil(call->out, (enum array_spoil)arg_of(peer));
    return false;
}

static bool leaks(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct ArrowDeviceArray array;

    (void)at;
    reference_array(&s->live_structs, 0, &array);
    return false;
}

static bool block_is_minus(void *peer, void *at)
{
    (void)at;
    ((struct reference_stream *)peer)->block = REFERENCE_MINUS;
    return false;
}

/* Returns EAGAIN instead of waiting. */
static bool is_not_ready(void *peer, void *at)
{
    struct reference_stream *s = peer;
    struct stream_call *call = at;

    if (s->acts++ > 0)
        return false;
    call->code = EAGAIN;
    return true;
}

/* Loses batches before a failure: all, or only the last one. */
enum { LOSES_ALL, LOSES_LAST };

static bool loses_before_failure(void *peer, void *at)
{
    struct reference_stream *s = peer;

    (void)at;
    if (s->how.fails &&
        (arg_of(s) == LOSES_ALL || s->next == s->how.batches - 1))
        s->next = s->how.batches;
    return false;
}

/* Returns the end without writing anything. */
static bool ends_in_silence(void *peer, void *at)
{
    const struct reference_stream *s = peer;

    (void)at;
    return s->next == s->how.batches;
}

/* Crashes if the struct was moved. */
static bool is_bound_to_address(void *peer, void *at)
{
    static struct ArrowDeviceArrayStream *address;
    const struct stream_call *call = at;

    (void)peer;
    if (address != NULL && address != call->self)
        abort();
    address = call->self;
    return false;
}

#define M(clause, variant, point, act, arg)                                    \
    {                                                                          \
        clause, variant, false, STREAM_AT_##point, act, arg, NULL, false       \
    }

/* clang-format off: a table */
static const struct stream_mutant STREAM_EXTRAS[] = {
    M("DA-02", "unreadable", CHUNK, spoils, ARRAY_UNREADABLE),
    M("DA-03", "other", CHUNK, misshapes, REFERENCE_TYPE_OTHER),
    M("DA-12", "marked", CHUNK, misshapes, REFERENCE_MARK_STAYS),
    M("DA-15", "changes", CHUNK, spoils, ARRAY_CHANGES),
    M("DA-17", "home", CHUNK, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("DA-18", "changes", CHUNK, spoils, ARRAY_CHANGES),
    M("DA-20", "many", CHUNK, misshapes, REFERENCE_BUFFERS_MANY),
    M("DA-26", "none", CHUNK, misshapes, REFERENCE_WORDS_NONE),
    M("DA-23", "unreadable", CHUNK, spoils, ARRAY_UNREADABLE),
    M("DS-02", "again", NEXT, is_not_ready, 0),
    M("DS-02", "all", NEXT, loses_before_failure, LOSES_ALL),
    M("DS-02", "last", NEXT, loses_before_failure, LOSES_LAST),
    M("DS-09", "silent", NEXT, ends_in_silence, 0),
    M("DS-13", "changes", CHUNK, spoils, ARRAY_CHANGES),
    M("DS-18", "home", NEXT, is_bound_to_address, 0),
    M("TH-07", "threaded", CHUNK, spoils, ARRAY_THREADED),
    M("MD-01", "minus", GIVE, block_is_minus, 0),
    M("LC-01", "dead", CHUNK, misshapes, REFERENCE_CHILD_DEAD),
    M("LC-06", "leaks", RELEASE, leaks, 0),
    M("LC-08", "home", CHUNK, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("LC-09", "home", CHUNK, spoils, ARRAY_BOUND_TO_ADDRESS),
    M("LC-12", "changes", CHUNK, spoils, ARRAY_CHANGES),
    M("LC-22", "leaks", RELEASE, leaks, 0),
    M("ER-01", "zero", FAIL, fails_with, 0),
    M("ER-02", "other", FAIL, fails_with, ENOENT),
    M("ER-09", "end", FAIL, fails_with, 0),
    M("ER-15", "end", FAIL, fails_with, 0),
};
/* clang-format on */

const struct stream_mutant *mutant_stream_extras(int *count)
{
    *count = (int)(sizeof(STREAM_EXTRAS) / sizeof(*STREAM_EXTRAS));
    return STREAM_EXTRAS;
}
