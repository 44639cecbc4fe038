/* SPDX-License-Identifier: Apache-2.0 */
/* A batch and its columns share one block, so that a use after free is found
 * wherever it touches them. The texts of a batch follow from its ordinal. */
#include "sim/batches.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/device_peer.h"
#include "sim/engine.h"
#include "uvarrow/arrow.h"

#define BATCH_MARK INT64_C(0x6372617465)

enum { ROWS = BATCHES_ROWS, COLUMNS = 2, LONGEST = 80 };

static bool is_large; /* the offsets of texts have 64 bits */

void batches_begin(bool large)
{
    is_large = large;
}

/* ---- schemas ------------------------------------------------------------ */

struct label {
    struct ArrowSchema columns[COLUMNS];
    struct ArrowSchema *children[COLUMNS];
};

static struct batches_types own_types(void)
{
    return (struct batches_types){"l", is_large ? "U" : "u", false};
}

struct batches_types batches_other_types(void)
{
    return (struct batches_types){"l", is_large ? "u" : "U", true};
}

static void label_release_child(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void label_release(struct ArrowSchema *schema)
{
    struct label *label = schema->private_data;

    for (int i = 0; i < COLUMNS; i++)
        if (label->columns[i].release != NULL)
            label->columns[i].release(&label->columns[i]);
    schema->release = NULL;
    arena_free(label);
}

void batches_typed_schema(const struct batches_types *types,
                          struct ArrowSchema *out)
{
    const char *const names[COLUMNS] = {"n", "t"};
    const char *const formats[COLUMNS] = {types->number, types->text};
    struct label *label = arena_new(sizeof(*label), "a schema");

    for (int i = 0; i < COLUMNS; i++) {
        const int column = types->turned ? COLUMNS - 1 - i : i;

        label->children[i] = &label->columns[i];
        label->columns[i] =
            (struct ArrowSchema){.format = formats[column],
                                 .name = names[column],
                                 .release = label_release_child};
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = COLUMNS,
                                .children = label->children,
                                .release = label_release,
                                .private_data = label};
}

void batches_schema(struct ArrowSchema *out)
{
    const struct batches_types types = own_types();

    batches_typed_schema(&types, out);
}

void batches_check_schema(const struct ArrowSchema *schema)
{
    const struct batches_types types = own_types();

    if (schema == NULL || schema->release == NULL ||
        strcmp(schema->format, "+s") != 0 || schema->n_children != COLUMNS)
        sim_fail("a schema is not what it was");
    if (strcmp(schema->children[0]->format, types.number) != 0 ||
        strcmp(schema->children[1]->format, types.text) != 0)
        sim_fail("a column is not what it was");
}

/* ---- batches ------------------------------------------------------------ */

struct batch_block {
    struct ArrowArray columns[COLUMNS]; /* first */
    int owners; /* the batch, and each column: it may be moved out */
    struct ArrowArray *children[COLUMNS];
    const void *struct_buffers[1];
    const void *number_buffers[2];
    const void *text_buffers[3];
    int64_t values[ROWS]; /* ordinal, maps passed, mark */
    union {
        int32_t narrow[ROWS + 1];
        int64_t wide[ROWS + 1];
    } ends;
    void (*release_event)(void *event);
    void *event; /* owns: its event; or NULL */
    char text[]; /* of all rows */
};

/* Some batches have short texts, or no text, and some have long ones. */
static int64_t text_size(int64_t ordinal, int row)
{
    return ordinal % 3 == 0 ? row : (ordinal * 37 + row * 11) % LONGEST;
}

static char text_letter(int64_t ordinal, int row)
{
    return (char)('a' + (ordinal + row) % 26);
}

static void block_leave(struct batch_block *batch_block)
{
    if (--batch_block->owners > 0)
        return;
    if (batch_block->release_event != NULL)
        batch_block->release_event(batch_block->event);
    arena_free(batch_block);
}

static void batches_release_child(struct ArrowArray *array)
{
    struct batch_block *batch_block = array->private_data;

    array->release = NULL;
    block_leave(batch_block);
}

static void batches_release(struct ArrowArray *array)
{
    struct batch_block *batch_block = array->private_data;

    for (int i = 0; i < COLUMNS; i++)
        if (batch_block->columns[i].release != NULL)
            batch_block->columns[i].release(&batch_block->columns[i]);
    array->release = NULL;
    block_leave(batch_block);
}

/* Makes a block with the texts of `ordinal`, with offsets of 64 bits if they
 * are `large`. */
static struct batch_block *block_new(int64_t ordinal, bool large)
{
    struct batch_block *b;
    int64_t size = 0;

    for (int row = 0; row < ROWS; row++)
        size += text_size(ordinal, row);
    b = arena_new(sizeof(*b) + (size_t)size, "a batch");
    size = 0;
    for (int row = 0; row < ROWS; row++) {
        const int64_t more = text_size(ordinal, row);

        memset(b->text + size, text_letter(ordinal, row), (size_t)more);
        size += more;
        if (large)
            b->ends.wide[row + 1] = size;
        else
            b->ends.narrow[row + 1] = (int32_t)size;
    }
    return b;
}

static void column_make(struct batch_block *b, int column, const void **buffers,
                        int64_t n_buffers)
{
    b->columns[column] = (struct ArrowArray){.length = ROWS,
                                             .n_buffers = n_buffers,
                                             .buffers = buffers,
                                             .release = batches_release_child,
                                             .private_data = b};
    b->owners++;
}

static void batch_make(int64_t ordinal, int64_t hops, bool large, bool turned,
                       struct ArrowArray *out)
{
    struct batch_block *b = block_new(ordinal, large);

    b->owners = 1;
    b->values[0] = ordinal;
    b->values[1] = hops;
    b->values[2] = BATCH_MARK;
    b->number_buffers[1] = b->values;
    b->text_buffers[1] = &b->ends;
    b->text_buffers[2] = b->text;
    column_make(b, 0, b->number_buffers, 2);
    column_make(b, 1, b->text_buffers, 3);
    b->children[turned] = &b->columns[0];
    b->children[!turned] = &b->columns[1];
    *out = (struct ArrowArray){.length = ROWS,
                               .n_buffers = 1,
                               .n_children = COLUMNS,
                               .buffers = b->struct_buffers,
                               .children = b->children,
                               .release = batches_release,
                               .private_data = b};
}

void batches_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out)
{
    batch_make(ordinal, hops, is_large, false, out);
}

void batches_other_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out)
{
    batch_make(ordinal, hops, !is_large, true, out);
}

void batches_device_batch(int64_t ordinal, int64_t hops,
                          struct ArrowDeviceArray *out)
{
    struct ArrowArray plain;

    batches_batch(ordinal, hops, &plain);
    uva_array_from_cpu(&plain, out);
}

/* Finds the batch by its column, because its private_data may be replaced by
 * now, and its structs may belong to a shared array. */
static struct batch_block *batches_of(const struct ArrowArray *batch)
{
    const uintptr_t values = (uintptr_t)batch->children[0]->buffers[1];

    return (struct batch_block *)(values -
                                  offsetof(struct batch_block, values));
}

void batches_keep(struct ArrowDeviceArray *batch, void *event,
                  void (*release_event)(void *event))
{
    struct batch_block *batch_block = batches_of(&batch->array);

    batch_block->event = event;
    batch_block->release_event = release_event;
    batch->device_type = device_own_type();
    batch->device_id = 0;
    batch->sync_event = event;
}

void *batches_event(const struct ArrowArray *batch)
{
    return batches_of(batch)->event;
}

/* Ends the schedule unless the texts fit the ordinal. */
static void text_check(const struct ArrowArray *column, int64_t ordinal)
{
    const int32_t *narrow = column->buffers[1];
    const int64_t *wide = column->buffers[1];
    const char *text = column->buffers[2];
    int64_t at = 0;

    for (int row = 0; row < ROWS; row++) {
        const int64_t end = at + text_size(ordinal, row);

        if ((is_large ? wide[row + 1] : narrow[row + 1]) != end)
            sim_fail("a text has another length than before");
        for (; at < end; at++)
            if (text[at] != text_letter(ordinal, row))
                sim_fail("a text is not what it was");
    }
}

static const int64_t *batches_values(const struct ArrowArray *batch)
{
    const int64_t *values;

    if (batch->release == NULL || batch->n_children != COLUMNS)
        sim_fail("a batch is not live");
    values = batch->children[0]->buffers[1];
    if (values[2] != BATCH_MARK)
        sim_fail("a batch is not what it was");
    return values;
}

void batches_check_text(const struct ArrowArray *batch)
{
    text_check(batch->children[1], batches_values(batch)[0]);
}

bool batches_are_numbers(const int64_t *numbers)
{
    return numbers[2] == BATCH_MARK;
}

void batches_print(int64_t ordinal, int64_t hops, bool json, char *out)
{
    const int64_t numbers[ROWS] = {ordinal, hops, BATCH_MARK};
    char text[LONGEST + 1];

    for (int row = 0; row < ROWS; row++) {
        const size_t size = (size_t)text_size(ordinal, row);

        memset(text, text_letter(ordinal, row), size);
        text[size] = '\0';
        if (json)
            out += sprintf(out, "{\"n\":%" PRId64 ",\"t\":\"%s\"}\n",
                           numbers[row], text);
        else
            out += sprintf(out, "%" PRId64 ",%s\n", numbers[row],
                           size > 0 ? text : "\"\"");
    }
}

int64_t batches_ordinal(const struct ArrowArray *batch)
{
    return batches_values(batch)[0];
}

int64_t batches_hops(const struct ArrowArray *batch)
{
    return batches_values(batch)[1];
}

/* Finds the values by the buffers, because the private_data may be replaced by
 * now. */
void batches_add_hop(struct ArrowArray *batch)
{
    ((int64_t *)(uintptr_t)batches_values(batch))[1]++;
}
