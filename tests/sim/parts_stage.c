/* SPDX-License-Identifier: Apache-2.0 */
/* Text is compared as a whole, and so the begin of the output has to come once,
 * in the first part. Of Arrow IPC, the numbers of a batch have to be there. */
#include "sim/parts_stage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

enum { LINES = 1024, NUMBERS = 3 };

void parts_add_stage(struct uva_stream *stream, struct expectation *expectation)
{
    static const enum uva_format formats[] = {UVA_FORMAT_ARROW, UVA_FORMAT_CSV,
                                              UVA_FORMAT_JSON};
    const struct uva_encode options = {.format = formats[sim_choose(3)]};

    if (expectation->foreign || expectation->device || expectation->on_device)
        return;
    expectation_note("chain %d: parts of format %d", expectation->number,
                     (int)options.format);
    expectation->encoded = true;
    expectation->format = options.format;
    (void)uva_stream_encode(stream, &options);
}

/* ---- reading ------------------------------------------------------------ */

static const struct uva_part *part_of(const struct ArrowDeviceArray *batch)
{
    const struct ArrowArray *array = &batch->array;
    const struct uva_part *part;

    if (array->release == NULL || array->length != 0 || array->n_buffers != 1 ||
        array->buffers[0] == NULL)
        sim_fail("a batch carries no part");
    part = array->buffers[0];
    if (part->bytes <= 0 || part->count == 0)
        sim_fail("an empty part");
    if (part->rows != 0 && part->rows != BATCHES_ROWS)
        sim_fail("a part of %" PRId64 " rows", part->rows);
    return part;
}

/* The ordinal and the maps of the batch are two of its numbers. */
static void buffers_read(const struct uva_part *part, int64_t *ordinal,
                         int64_t *hops)
{
    int64_t numbers[NUMBERS];

    for (size_t i = 0; i < part->count; i++) {
        if (part->buffers[i].len < sizeof(numbers))
            continue;
        memcpy(numbers, part->buffers[i].base, sizeof(numbers));
        if (!batches_are_numbers(numbers))
            continue;
        *ordinal = numbers[0];
        *hops = numbers[1];
        return;
    }
    sim_fail("a part lacks the numbers of its batch");
}

/* Gives the text of the part, with a NUL. */
static void text_copy(const struct uva_part *part, char *out)
{
    size_t size = 0;

    if (part->bytes >= LINES)
        sim_fail("a part of %" PRId64 " bytes", part->bytes);
    for (size_t i = 0; i < part->count; i++) {
        memcpy(out + size, part->buffers[i].base, part->buffers[i].len);
        size += part->buffers[i].len;
    }
    out[size] = '\0';
    if (size != (size_t)part->bytes)
        sim_fail("a part counts %" PRId64 " bytes of %d", part->bytes,
                 (int)size);
}

/* The line of names comes once, in the first part, which a handler may have
 * discarded. */
static const char *names_skip(struct expectation *expectation, const char *text)
{
    static const char names[] = "n,t\n";

    const bool is_first = strncmp(text, names, strlen(names)) == 0;

    if (expectation->format != UVA_FORMAT_CSV || expectation->part_begun)
        return text;
    if (!is_first && !expectation->partial)
        sim_fail("the first part lacks the line of names");
    return is_first ? text + strlen(names) : text;
}

static void lines_read(struct expectation *expectation,
                       const struct uva_part *part, int64_t *ordinal,
                       int64_t *hops)
{
    const bool json = expectation->format == UVA_FORMAT_JSON;
    char text[LINES], lines[LINES];
    const char *at;

    text_copy(part, text);
    at = names_skip(expectation, text);
    if (part->rows == 0 && *at != '\0')
        sim_fail("a part without rows has lines");
    if (part->rows == 0)
        return;
    at += json ? strlen("{\"n\":") : 0;
    *ordinal = strtoll(at, NULL, 10);
    at = strchr(at, '\n');
    *hops = at != NULL
                ? strtoll(at + 1 + (json ? strlen("{\"n\":") : 0), NULL, 10)
                : -1;
    batches_print(*ordinal, *hops, json, lines);
    if (strcmp(names_skip(expectation, text), lines) != 0)
        sim_fail("a part does not have the lines of batch %" PRId64, *ordinal);
}

bool parts_read(struct expectation *expectation,
                const struct ArrowDeviceArray *batch, int64_t *ordinal,
                int64_t *hops)
{
    const struct uva_part *part = part_of(batch);

    if (expectation->part_ended && !expectation->partial)
        sim_fail("a part after the end of the output");
    if (expectation->format != UVA_FORMAT_ARROW)
        lines_read(expectation, part, ordinal, hops);
    else if (part->rows > 0)
        buffers_read(part, ordinal, hops);
    expectation->part_begun = true;
    expectation->part_ended = part->rows == 0;
    return part->rows > 0;
}

/* ---- taking ------------------------------------------------------------- */

static void part_release(void *arg)
{
    struct uva_part *part = arg;

    peers_dawdle();
    uva_part_release(part);
    arena_free(part);
}

void parts_take(struct ArrowDeviceArray *batch)
{
    struct uva_part *part = arena_new(sizeof(*part), "a part");

    if (uva_part_take(batch, part) != 0)
        sim_fail("a part is not taken");
    if (uva_array_is_live(batch))
        sim_fail("a batch is left when its part was taken");
    if (peers_chance(1, 2))
        part_release(part);
    else
        peers_spawn("releaser of a part", part_release, part);
}
