/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, arrays and schemas are made once and shared by all batches, so a
 * batch costs one struct, and a release frees no memory. */
#include "batch.h"

#include <stdio.h>
#include <stdlib.h>

#include "suite.h"

enum { TEXT = 6, WORDS = 16, NULL_EACH = 50 };

struct batch_shape batch_now;

/* ---- kinds of columns --------------------------------------------------- */

enum buffer { NONE, VALUES, WIDE, BITS, OFFSETS, TEXTS, INDICES, BUFFERS };

static const struct kind {
    char letter;
    const char *format;
    bool nullable;
    enum buffer first, second; /* after the validity */
    size_t bits;               /* of a value, with its text */
} kinds[] = {
    {'l', "l", false, VALUES, NONE, 64},
    {'n', "l", true, VALUES, NONE, 64},
    {'u', "u", true, OFFSETS, TEXTS, 32 + 8 * TEXT},
    {'g', "g", true, VALUES, NONE, 64},
    {'m', "d:18,2", true, WIDE, NONE, 128},
    {'t', "tsu:UTC", false, VALUES, NONE, 64},
    {'b', "b", true, BITS, NONE, 1},
    {'D', "tdD", true, INDICES, NONE, 32},
    {'d', "i", true, INDICES, NONE, 32}, /* of a dictionary of texts */
};

static const struct kind *kind_of(char letter)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (kinds[i].letter == letter)
            return &kinds[i];
    bench_check(false, "kind of a column");
    return NULL;
}

/* ---- the shape ---------------------------------------------------------- */

static struct {
    char *letters;          /* owns: a kind for each column */
    void *buffers[BUFFERS]; /* owns: as long as the longest batch needs */
    struct column {
        struct ArrowArray array;
        const void *buffers[3];
    } * columns;                                /* owns: those of each place */
    struct ArrowArray **children[BATCH_PLACES]; /* owns: pointers to these */
    struct field {
        struct ArrowSchema schema;
        char name[16];
    } * fields;                     /* owns */
    struct ArrowSchema **fields_of; /* owns: pointers to these */
} shape;

static struct ArrowSchema words_schema;
static struct ArrowArray words;
static const void *words_buffers[3];
static const void *no_buffers[1];

static void *made(size_t count, size_t size)
{
    void *block = calloc(count, size);

    bench_check(block != NULL, "memory");
    return block;
}

static void keep_array(struct ArrowArray *array)
{
    (void)array;
}

static void keep_schema(struct ArrowSchema *schema)
{
    (void)schema;
}

static void shape_free(void)
{
    for (int i = 0; i < BUFFERS; i++)
        free(shape.buffers[i]);
    for (int k = 0; k < BATCH_PLACES; k++)
        free(shape.children[k]);
    free(shape.columns);
    free(shape.fields);
    free(shape.fields_of);
    memset(shape.buffers, 0, sizeof(shape.buffers));
}

static bool is_valid(int64_t row)
{
    return row % NULL_EACH != 0;
}

static void buffers_fill(size_t rows)
{
    const char *const text = "N14228UA    EWR   IAH   ";
    int64_t *values = shape.buffers[VALUES] = made(rows, sizeof(*values));
    int64_t *wide = shape.buffers[WIDE] = made(rows, 2 * sizeof(*wide));
    uint8_t *bits = shape.buffers[BITS] = made(rows / 8 + 1, 1);
    int32_t *offsets = shape.buffers[OFFSETS] =
        made(rows + 1, sizeof(*offsets));
    char *texts = shape.buffers[TEXTS] = made(rows, TEXT);
    int32_t *indices = shape.buffers[INDICES] = made(rows, sizeof(*indices));

    for (size_t i = 0; i < rows; i++) {
        values[i] = wide[2 * i] = (int64_t)i;
        bits[i / 8] |= (uint8_t)(is_valid((int64_t)i) << i % 8);
        offsets[i + 1] = (int32_t)((i + 1) * TEXT);
        memcpy(texts + i * TEXT, text + i % 4 * TEXT, TEXT);
        indices[i] = (int32_t)(i % WORDS);
    }
}

static void words_init(void)
{
    words_buffers[1] = shape.buffers[OFFSETS];
    words_buffers[2] = shape.buffers[TEXTS];
    words = (struct ArrowArray){.length = WORDS,
                                .n_buffers = 3,
                                .buffers = words_buffers,
                                .release = keep_array};
    words_schema =
        (struct ArrowSchema){.format = "u", .name = "", .release = keep_schema};
}

static int64_t count_nulls(int64_t place)
{
    int64_t count = 0;

    for (int64_t row = place; row < place + batch_now.rows; row++)
        count += !is_valid(row);
    return count;
}

static void column_init(struct column *column, char letter, int64_t place,
                        int64_t nulls)
{
    const struct kind *kind = kind_of(letter);

    column->buffers[0] = kind->nullable ? shape.buffers[BITS] : NULL;
    column->buffers[1] = shape.buffers[kind->first];
    column->buffers[2] = shape.buffers[kind->second];
    column->array = (struct ArrowArray){
        .length = batch_now.rows,
        .null_count = kind->nullable ? nulls : 0,
        .offset = place,
        .n_buffers = kind->second == NONE ? 2 : 3,
        .buffers = column->buffers,
        .dictionary = letter == 'd' ? &words : NULL,
        .release = keep_array,
    };
}

static void columns_init(void)
{
    const size_t count = (size_t)batch_now.columns;

    shape.columns = made(count * BATCH_PLACES, sizeof(*shape.columns));
    for (int64_t k = 0; k < BATCH_PLACES; k++) {
        struct column *of = &shape.columns[(size_t)k * count];
        const int64_t nulls = count_nulls(k);

        shape.children[k] = made(count, sizeof(*shape.children[k]));
        for (size_t i = 0; i < count; i++) {
            column_init(&of[i], shape.letters[i], k, nulls);
            shape.children[k][i] = &of[i].array;
        }
    }
}

static void fields_init(void)
{
    const size_t count = (size_t)batch_now.columns;

    shape.fields = made(count, sizeof(*shape.fields));
    shape.fields_of = made(count, sizeof(struct ArrowSchema *));
    for (size_t i = 0; i < count; i++) {
        const struct kind *kind = kind_of(shape.letters[i]);
        struct field *field = &shape.fields[i];

        (void)snprintf(field->name, sizeof(field->name), "column_%zu",
                       i % 10000);
        field->schema = (struct ArrowSchema){
            .format = kind->format,
            .name = field->name,
            .flags = kind->nullable ? ARROW_FLAG_NULLABLE : 0,
            .dictionary = kind->letter == 'd' ? &words_schema : NULL,
            .release = keep_schema,
        };
        shape.fields_of[i] = &field->schema;
    }
}

void batch_use_rows(int64_t rows)
{
    shape_free();
    batch_now.rows = rows;
    buffers_fill((size_t)(rows > WORDS ? rows : WORDS) + BATCH_PLACES);
    words_init();
    columns_init();
    fields_init();
}

void batch_use_kinds(const char *letters, int64_t columns, int64_t rows)
{
    free(shape.letters);
    shape.letters = made((size_t)columns, 1);
    for (int64_t i = 0; i < columns; i++)
        shape.letters[i] = letters[(size_t)i % strlen(letters)];
    batch_now.columns = columns;
    batch_use_rows(rows);
}

void batch_use(const char *name)
{
    static const struct {
        const char *name, *kinds;
        int64_t columns;
    } shapes[] = {{"number", "l", 1},
                  {"flights", "nnnnnnnnnunuuunnnnt", 19},
                  {"mixed", "nugmtbDd", 64},
                  {"numbers", "l", 1000}};

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (strcmp(shapes[i].name, name) == 0) {
            batch_use_kinds(shapes[i].kinds, shapes[i].columns, BATCH_ROWS);
            return;
        }
    bench_check(false, "name of a shape");
}

/* ---- batches ------------------------------------------------------------ */

static void batch_release(struct ArrowArray *array)
{
    array->release = NULL;
}

void batch_fill(struct ArrowDeviceArray *out, int64_t i)
{
    memset(out, 0, sizeof(*out));
    out->array.length = batch_now.rows;
    out->array.n_buffers = 1;
    out->array.buffers = no_buffers;
    out->array.n_children = batch_now.columns;
    out->array.children = shape.children[i & (BATCH_PLACES - 1)];
    out->array.release = batch_release;
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
}

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

void batch_schema(struct ArrowSchema *out)
{
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = batch_now.columns,
                                .children = shape.fields_of,
                                .release = schema_release};
}

/* The bytes of a column of a batch. */
static size_t column_bytes(int64_t column)
{
    return (size_t)batch_now.rows * kind_of(shape.letters[column])->bits / 8;
}

int64_t batch_bytes(void)
{
    size_t bytes = 0;

    for (int64_t i = 0; i < batch_now.columns; i++)
        bytes += column_bytes(i);
    return (int64_t)bytes;
}

void batch_copy(char *to, int64_t batches)
{
    for (int64_t i = 0; i < batch_now.columns; i++) {
        const size_t size = column_bytes(i);

        for (int64_t k = 0; k < batches; k++, to += size)
            memcpy(to, shape.buffers[WIDE], size); /* the largest */
    }
}

/* ---- the stream --------------------------------------------------------- */

static int input_get_schema(struct ArrowDeviceArrayStream *self,
                            struct ArrowSchema *out)
{
    (void)self;
    batch_schema(out);
    return 0;
}

static int input_get_next(struct ArrowDeviceArrayStream *self,
                          struct ArrowDeviceArray *out)
{
    struct input *input = self->private_data;

    if (input->next == input->count)
        out->array.release = NULL;
    else
        batch_fill(out, input->next++);
    return 0;
}

static const char *input_get_last_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return NULL;
}

static void input_release(struct ArrowDeviceArrayStream *self)
{
    self->release = NULL;
}

void input_init(struct input *input, int64_t count)
{
    *input = (struct input){.abi = {.device_type = ARROW_DEVICE_CPU,
                                    .get_schema = input_get_schema,
                                    .get_next = input_get_next,
                                    .get_last_error = input_get_last_error,
                                    .release = input_release,
                                    .private_data = input},
                            .count = count};
}

/* ---- the consumer ------------------------------------------------------- */

void tally_check(const struct tally *tally, int64_t count)
{
    bench_check(tally->seen == count, "number of batches");
    bench_check(tally->wrong == 0, "a batch, or its place");
}
