/* SPDX-License-Identifier: Apache-2.0 */
/* Checks one array: sound, and then with one fault at a time, which is reported
 * by its clause and no other. Cases begin with the id of the clause. */
#include "check/array_check.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/structs.h"
#include "support/breach_log.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "support/plain_tree.h"
#include "uvarrow/arrow.h"

/* Data for all columns, which is never released. */
static const int64_t DATA[8] = {0};
static const int32_t OFFSETS[4] = {0, 1, 1, 3};
static const int64_t LENGTHS[2] = {3, 5};
enum column { NUMBER, TEXT, LIST, WORDS, VIEW, COLUMNS };

struct fixture {
    struct breach_log log;
    struct uva_check options;
    struct ArrowSchema schema;
    struct ArrowDeviceArray batch;
    struct uva_error error;
};

static void make_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "+s", NULL, COLUMNS);
    plain_schema(schema->children[NUMBER], "l", "number", 0);
    plain_schema(schema->children[TEXT], "u", "text", 0);
    plain_schema(schema->children[LIST], "+l", "list", 1);
    plain_schema(schema->children[LIST]->children[0], "i", "item", 0);
    plain_schema(schema->children[WORDS], "c", "words", 0);
    plain_schema(plain_schema_dictionary(schema->children[WORDS]), "g", "", 0);
    plain_schema(schema->children[VIEW], "vu", "view", 0);
}

static void make_column(struct ArrowArray *array, int n_buffers, int n_children,
                        const void *second, const void *third)
{
    plain_array(array, 3, n_buffers, n_children);
    array->buffers[1] = second;
    if (n_buffers > 2)
        array->buffers[2] = third;
}

static void make_batch(struct ArrowDeviceArray *batch)
{
    struct ArrowArray *columns = &batch->array;

    memset(batch, 0, sizeof(*batch));
    batch->device_id = -1;
    batch->device_type = ARROW_DEVICE_CPU;
    plain_array(columns, 3, 1, COLUMNS);
    make_column(columns->children[NUMBER], 2, 0, DATA, NULL);
    make_column(columns->children[TEXT], 3, 0, OFFSETS, DATA);
    make_column(columns->children[LIST], 2, 1, OFFSETS, NULL);
    make_column(columns->children[LIST]->children[0], 2, 0, DATA, NULL);
    make_column(columns->children[WORDS], 2, 0, DATA, NULL);
    make_column(plain_array_dictionary(columns->children[WORDS]), 2, 0, DATA,
                NULL);
    make_column(columns->children[VIEW], 5, 0, DATA, DATA);
    columns->children[VIEW]->buffers[3] = DATA;
    columns->children[VIEW]->buffers[4] = LENGTHS;
}

static void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    breach_log_init(&fixture->log);
    fixture->options = breach_log_options(&fixture->log);
    make_schema(&fixture->schema);
    make_batch(&fixture->batch);
}

static struct ArrowArray *column(struct fixture *fixture, enum column which)
{
    return fixture->batch.array.children[which];
}

static struct ArrowSchema *field(struct fixture *fixture, enum column which)
{
    return fixture->schema.children[which];
}

static int check(struct fixture *fixture)
{
    fixture->error = (struct uva_error){0};
    return uva_check_array(&fixture->schema, &fixture->batch, &fixture->options,
                           &fixture->error);
}

static void fixture_close(struct fixture *fixture)
{
    uva_schema_release(&fixture->schema);
    uva_array_release(&fixture->batch);
    ck_assert_int_eq(plain_live(), 0);
    ck_assert_int_eq(fixture->log.freed, 0);
}

/* Expects exactly this breach, of a "must". */
static void expect_error(struct fixture *fixture, const char *clause)
{
    ck_assert_int_eq(check(fixture), EPROTO);
    ck_assert_int_eq(fixture->error.code, EPROTO);
    ck_assert_msg(strncmp(fixture->error.message, clause, 5) == 0, "%s",
                  fixture->error.message);
    breach_log_expect_one(&fixture->log, clause,
                          strcmp(clause, "LC-01") == 0 ? UVA_PARTY_EITHER
                                                       : UVA_PARTY_PRODUCER,
                          UVA_SEVERITY_ERROR);
}

/* Expects exactly this breach, of less than a "must". */
static void expect_mild(struct fixture *fixture, const char *clause,
                        enum uva_severity severity)
{
    ck_assert_int_eq(check(fixture), 0);
    ck_assert_int_eq(fixture->error.code, 0);
    breach_log_expect_one(&fixture->log, clause, UVA_PARTY_PRODUCER, severity);
}

static void expect_nothing(struct fixture *fixture)
{
    ck_assert_int_eq(check(fixture), 0);
    breach_log_expect(&fixture->log, "");
}

/* ---- sound -------------------------------------------------------------- */

START_TEST(a_sound_array_gives_no_report)
{
    struct fixture fixture;

    fixture_open(&fixture);
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(nulls_with_a_bitmap_and_offsets_are_sound)
{
    struct fixture fixture;

    fixture_open(&fixture);
    for (int i = 0; i < COLUMNS; i++) {
        column(&fixture, i)->buffers[0] = DATA;
        column(&fixture, i)->null_count = i - 1;
    }
    column(&fixture, NUMBER)->offset = 5;
    expect_nothing(&fixture);
    fixture.batch.device_type = ARROW_DEVICE_CUDA;
    column(&fixture, NUMBER)->offset = INT64_C(1) << 40;
    expect_nothing(&fixture);
    column(&fixture, NUMBER)->length = INT64_C(1) << 40;
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(an_empty_array_needs_no_buffers)
{
    struct fixture fixture;

    fixture_open(&fixture);
    for (int i = 0; i < COLUMNS; i++) {
        struct ArrowArray *array = column(&fixture, i);
        array->length = 0;
        array->null_count = -1;
        for (int b = 0; b < array->n_buffers; b++)
            array->buffers[b] = NULL;
    }
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(nothing_on_a_device_is_read)
{
    struct fixture fixture;
    const void *nowhere = (void *)(uintptr_t)8;

    fixture_open(&fixture);
    fixture.batch.device_type = ARROW_DEVICE_CUDA;
    fixture.batch.device_id = 0;
    fixture.batch.sync_event = (void *)(uintptr_t)8;
    for (int i = 0; i < COLUMNS; i++)
        for (int b = 1; b < column(&fixture, i)->n_buffers; b++)
            column(&fixture, i)->buffers[b] = nowhere;
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(ab15_an_unknown_device_is_taken_as_it_is)
{
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.device_type = 9999;
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(formats_say_how_many_buffers_and_how_aligned)
{
    static const struct {
        const char *format;
        int buffers;
        int align;
    } ROWS[] = {{"c", 2, 1},        {"s", 2, 2},   {"f", 2, 4},   {"g", 2, 8},
                {"w:3", 2, 1},      {"w:8", 2, 1}, {"tdD", 2, 4}, {"tiD", 2, 4},
                {"tin", 2, 8},      {"b", 2, 1},   {"n", 0, 1},   {"u", 3, 4},
                {"d:9,2,256", 2, 8}};

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct fixture fixture;
        struct ArrowArray *array;
        fixture_open(&fixture);
        array = column(&fixture, NUMBER);
        field(&fixture, NUMBER)->format = ROWS[i].format;
        array->release(array);
        plain_array(array, 1, ROWS[i].buffers, 0);
        for (int b = 1; b < ROWS[i].buffers; b++)
            array->buffers[b] = DATA;
        expect_nothing(&fixture);
        for (int step = 1; step < 8 && ROWS[i].buffers > 0; step *= 2) {
            array->buffers[1] = (const char *)DATA + step;
            if (step % ROWS[i].align == 0)
                expect_nothing(&fixture);
            else
                expect_mild(&fixture, "DA-24", UVA_SEVERITY_WARNING);
        }
        fixture_close(&fixture);
    }
}
END_TEST

/* ---- the device part ---------------------------------------------------- */

START_TEST(da03_the_device_type_is_set)
{
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.device_type = 0;
    expect_error(&fixture, "DA-03");
    memset(&fixture.batch.device_type, 0xA5, sizeof(fixture.batch.device_type));
    expect_error(&fixture, "DA-03");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da04_the_device_id_is_set)
{
    struct fixture fixture;

    fixture_open(&fixture);
    memset(&fixture.batch.device_id, 0xA5, sizeof(fixture.batch.device_id));
    expect_error(&fixture, "DA-04");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da05_another_id_for_the_cpu_is_noted)
{
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.device_id = 0;
    expect_mild(&fixture, "DA-05", UVA_SEVERITY_NOTE);
    fixture_close(&fixture);
}
END_TEST

START_TEST(da08_reserved_bytes_are_zero)
{
    for (int i = 0; i < 3; i++) {
        struct fixture fixture;
        fixture_open(&fixture);
        fixture.batch.reserved[i] = INT64_C(1) << (20 * i);
        expect_error(&fixture, "DA-08");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(ev04_and_ev09_some_devices_have_no_events)
{
    static const ArrowDeviceType TYPES[] = {ARROW_DEVICE_CPU, ARROW_DEVICE_VPI,
                                            ARROW_DEVICE_WEBGPU,
                                            ARROW_DEVICE_HEXAGON};

    for (int i = 0; i < 4; i++) {
        struct fixture fixture;
        fixture_open(&fixture);
        fixture.batch.device_type = TYPES[i];
        expect_nothing(&fixture);
        fixture.batch.sync_event = &fixture;
        expect_mild(&fixture, i == 0 ? "EV-04" : "EV-09", UVA_SEVERITY_WARNING);
        fixture_close(&fixture);
    }
}
END_TEST

/* ---- released ----------------------------------------------------------- */

START_TEST(lc01_a_released_array_is_none)
{
    struct fixture fixture;

    fixture_open(&fixture);
    uva_array_release(&fixture.batch);
    expect_error(&fixture, "LC-01");
    fixture_close(&fixture);
}
END_TEST

START_TEST(lc01_a_released_schema_is_none_and_the_array_is_checked)
{
    struct fixture fixture;

    fixture_open(&fixture);
    uva_schema_release(&fixture.schema);
    expect_error(&fixture, "LC-01");
    fixture.batch.array.offset = -1;
    fixture.batch.array.children[LIST]->children[0]->offset = -1;
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "LC-01 DA-21 DA-21");
    fixture_close(&fixture);
}
END_TEST

/* ---- numbers ------------------------------------------------------------ */

START_TEST(da21_length_offset_and_null_count_are_possible)
{
    for (int i = 0; i < 5; i++) {
        struct fixture fixture;
        struct ArrowArray *array;
        fixture_open(&fixture);
        array = column(&fixture, NUMBER);
        if (i == 0)
            array->length = -1;
        else if (i == 1)
            array->offset = -1;
        else if (i == 2)
            array->null_count = -2;
        else if (i == 3)
            array->null_count = 4;
        else
            array->offset = INT64_MAX;
        expect_error(&fixture, "DA-21");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(da20_the_number_of_buffers_is_that_of_the_format)
{
    static const int64_t COUNTS[] = {-1, 0, 1, 3, INT64_MAX};

    for (int i = 0; i < 5; i++) {
        struct fixture fixture;
        fixture_open(&fixture);
        column(&fixture, NUMBER)->n_buffers = COUNTS[i];
        expect_error(&fixture, "DA-20");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(da20_views_have_more_buffers_than_two_and_not_any_number)
{
    static const int64_t COUNTS[] = {-1, 1, INT64_MAX};

    for (int i = 0; i < 3; i++) {
        struct fixture fixture;
        fixture_open(&fixture);
        column(&fixture, VIEW)->n_buffers = COUNTS[i];
        expect_error(&fixture, "DA-20");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(da27_views_have_their_lengths)
{
    struct fixture fixture;

    fixture_open(&fixture);
    column(&fixture, VIEW)->n_buffers = 2;
    expect_error(&fixture, "DA-27");
    column(&fixture, VIEW)->n_buffers = 3; /* no data: all is in the views */
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(da20_the_number_of_children_is_that_of_the_schema)
{
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.array.n_children = COLUMNS - 1;
    expect_error(&fixture, "DA-20");
    fixture.batch.array.n_children = COLUMNS;
    column(&fixture, NUMBER)->n_children = 1;
    column(&fixture, NUMBER)->children = column(&fixture, LIST)->children;
    expect_error(&fixture, "DA-20");
    column(&fixture, NUMBER)->n_children = 0;
    column(&fixture, NUMBER)->children = NULL;
    fixture_close(&fixture);
}
END_TEST

/* ---- buffers ------------------------------------------------------------ */

START_TEST(da22_no_buffer_is_null_that_has_to_hold_something)
{
    static const struct {
        enum column which;
        int buffer;
    } ROWS[] = {{NUMBER, 1}, {TEXT, 1}, {TEXT, 2}, {LIST, 1},
                {VIEW, 1},   {VIEW, 2}, {VIEW, 3}, {VIEW, 4}};

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct fixture fixture;
        fixture_open(&fixture);
        column(&fixture, ROWS[i].which)->buffers[ROWS[i].buffer] = NULL;
        expect_error(&fixture, "DA-22");
        fixture_close(&fixture);
    }
}
END_TEST

START_TEST(da22_the_buffers_vector_is_there)
{
    struct fixture fixture;
    const void **buffers;

    fixture_open(&fixture);
    buffers = column(&fixture, NUMBER)->buffers;
    column(&fixture, NUMBER)->buffers = NULL;
    expect_error(&fixture, "DA-22");
    column(&fixture, NUMBER)->buffers = buffers;
    fixture_close(&fixture);
}
END_TEST

START_TEST(da22_where_something_is_null_there_is_a_bitmap)
{
    struct fixture fixture;

    fixture_open(&fixture);
    column(&fixture, NUMBER)->null_count = 1;
    expect_error(&fixture, "DA-22");
    column(&fixture, NUMBER)->null_count = -1;
    expect_mild(&fixture, "DA-22", UVA_SEVERITY_WARNING);
    column(&fixture, NUMBER)->buffers[0] = DATA;
    expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

START_TEST(da23_offsets_do_not_fall)
{
    static const int32_t NEGATIVE[4] = {-1, 0, 1, 3}, FALLING[4] = {3, 2, 1, 0};
    struct fixture fixture;

    fixture_open(&fixture);
    column(&fixture, TEXT)->buffers[1] = NEGATIVE;
    expect_error(&fixture, "DA-23");
    column(&fixture, TEXT)->buffers[1] = FALLING;
    expect_error(&fixture, "DA-23");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da23_sizes_are_possible)
{
    static const int64_t NEGATIVE[2] = {-3, 5};
    struct fixture fixture;

    fixture_open(&fixture);
    column(&fixture, VIEW)->buffers[4] = NEGATIVE;
    expect_error(&fixture, "DA-23");
    column(&fixture, VIEW)->buffers[4] = LENGTHS;
    column(&fixture, NUMBER)->offset = INT64_MAX - 3;
    expect_error(&fixture, "DA-23");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da24_offsets_and_lengths_are_aligned)
{
    struct fixture fixture;
    char odd[1 + sizeof(LENGTHS)];

    memcpy(odd + 1, LENGTHS, sizeof(LENGTHS));
    fixture_open(&fixture);
    column(&fixture, VIEW)->buffers[4] = odd + 1;
    if ((uintptr_t)(odd + 1) % 8 != 0)
        expect_mild(&fixture, "DA-24", UVA_SEVERITY_WARNING);
    else
        expect_nothing(&fixture);
    fixture_close(&fixture);
}
END_TEST

/* ---- below -------------------------------------------------------------- */

START_TEST(da25_children_are_there_and_live)
{
    struct fixture fixture;
    struct ArrowArray **children, *child;

    fixture_open(&fixture);
    children = fixture.batch.array.children;
    fixture.batch.array.children = NULL;
    expect_error(&fixture, "DA-25");
    fixture.batch.array.children = children;
    fixture.batch.array.n_children = -1;
    expect_error(&fixture, "DA-25");
    fixture.batch.array.n_children = COLUMNS;
    child = children[TEXT];
    children[TEXT] = NULL;
    expect_error(&fixture, "DA-25");
    children[TEXT] = child;
    child->release(child);
    expect_error(&fixture, "DA-25");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da26_there_is_a_dictionary_where_the_schema_has_one)
{
    struct fixture fixture;
    struct ArrowArray *dictionary;

    fixture_open(&fixture);
    dictionary = column(&fixture, WORDS)->dictionary;
    column(&fixture, WORDS)->dictionary = NULL;
    expect_error(&fixture, "DA-26");
    column(&fixture, NUMBER)->dictionary = dictionary;
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-26 DA-26");
    column(&fixture, NUMBER)->dictionary = NULL;
    column(&fixture, WORDS)->dictionary = dictionary;
    dictionary->release(dictionary);
    expect_error(&fixture, "DA-26");
    fixture_close(&fixture);
}
END_TEST

START_TEST(da25_a_tree_that_leads_in_a_circle_is_told_once)
{
    struct fixture fixture;
    struct ArrowSchema *item;
    struct ArrowArray *array;

    fixture_open(&fixture);
    item = field(&fixture, LIST)->children[0];
    array = column(&fixture, LIST)->children[0];
    field(&fixture, LIST)->children[0] = field(&fixture, LIST);
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-25 DA-20");
    column(&fixture, LIST)->children[0] = column(&fixture, LIST);
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-25 DA-25");
    field(&fixture, LIST)->children[0] = item;
    column(&fixture, LIST)->children[0] = array;
    fixture_close(&fixture);
}
END_TEST

START_TEST(da25_a_tree_that_is_too_large_is_told_once)
{
    enum { MANY = UVA__STRUCTS_MAX_NODES };
    struct fixture fixture;
    struct ArrowArray **children,
        **many_children = malloc(MANY * sizeof(*many_children));

    ck_assert_ptr_nonnull(many_children);
    fixture_open(&fixture);
    uva_schema_release(&fixture.schema);
    children = fixture.batch.array.children;
    for (int i = 0; i < MANY; i++)
        many_children[i] = children[NUMBER];
    fixture.batch.array.children = many_children;
    fixture.batch.array.n_children = MANY;
    fixture.batch.array.dictionary = children[TEXT];
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "LC-01 DA-25");
    fixture.batch.array.children = children;
    fixture.batch.array.n_children = COLUMNS;
    fixture.batch.array.dictionary = NULL;
    free(many_children);
    fixture_close(&fixture);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

START_TEST(da20_formats_can_be_read)
{
    struct fixture fixture;

    fixture_open(&fixture);
    field(&fixture, NUMBER)->format = NULL;
    expect_error(&fixture, "DA-20");
    field(&fixture, NUMBER)->format = "w:";
    expect_error(&fixture, "DA-20");
    field(&fixture, NUMBER)->format = "one day";
    expect_mild(&fixture, "DA-20", UVA_SEVERITY_NOTE);
    field(&fixture, NUMBER)->format = "l";
    field(&fixture, LIST)->format = "+r";
    ck_assert_int_eq(check(&fixture), EPROTO); /* for the buffers, too */
    breach_log_expect(&fixture.log, "DA-20 DA-20");
    field(&fixture, LIST)->format = "+l";
    fixture.batch.array.dictionary = column(&fixture, WORDS)->dictionary;
    expect_error(&fixture, "DA-26");
    fixture.batch.array.dictionary = NULL;
    fixture.schema.format = NULL;
    expect_error(&fixture, "DA-20");
    fixture.schema.format = "+sx";
    expect_mild(&fixture, "DA-20", UVA_SEVERITY_NOTE);
    fixture_close(&fixture);
}
END_TEST

START_TEST(da25_and_da26_a_schema_has_what_it_says)
{
    struct fixture fixture;
    struct ArrowSchema **children, *child;

    fixture_open(&fixture);
    children = fixture.schema.children;
    fixture.schema.children = NULL;
    expect_error(&fixture, "DA-25");
    fixture.schema.children = children;
    field(&fixture, NUMBER)->n_children = -1;
    expect_error(&fixture, "DA-25");
    field(&fixture, NUMBER)->n_children = 0;
    child = children[NUMBER];
    children[NUMBER] = NULL;
    expect_error(&fixture, "DA-25");
    children[NUMBER] = child;
    child->release(child);
    expect_error(&fixture, "DA-25");
    field(&fixture, WORDS)->format = "w:1"; /* no integer */
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-25 DA-26");
    field(&fixture, WORDS)
        ->dictionary->release(field(&fixture, WORDS)->dictionary);
    field(&fixture, WORDS)->format = "c";
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-25 DA-26");
    fixture_close(&fixture);
}
END_TEST

START_TEST(md_rules_hold_for_the_metadata_of_each_field)
{
    static const int32_t NONE[] = {0}, MINUS[] = {-1}, KEY[] = {1, -1},
                         VALUE[] = {1, 0, -1}, CROWD[] = {1 << 21},
                         GIANT[] = {1, 1 << 27}, SOUND[] = {1, 0, 0};
    const int32_t *const wrong[] = {MINUS, KEY, VALUE};
    const int32_t *const large[] = {CROWD, GIANT};
    struct fixture fixture;

    fixture_open(&fixture);
    field(&fixture, TEXT)->metadata = (const char *)SOUND;
    expect_nothing(&fixture);
    field(&fixture, TEXT)->metadata = (const char *)NONE;
    expect_mild(&fixture, "MD-02", UVA_SEVERITY_NOTE);
    for (int i = 0; i < 3; i++) {
        field(&fixture, TEXT)->metadata = (const char *)wrong[i];
        expect_error(&fixture, "MD-05");
    }
    for (int i = 0; i < 2; i++) {
        field(&fixture, TEXT)->metadata = (const char *)large[i];
        expect_error(&fixture, "MD-09");
    }
    fixture_close(&fixture);
}
END_TEST

/* ---- how it is reported ------------------------------------------------- */

START_TEST(all_breaches_are_told_and_the_first_is_the_error)
{
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.device_id = 7;
    fixture.batch.reserved[0] = 1;
    column(&fixture, LIST)->children[0]->offset = -1;
    column(&fixture, WORDS)->dictionary->buffers[1] = NULL;
    ck_assert_int_eq(check(&fixture), EPROTO);
    ck_assert_str_eq(fixture.error.message,
                     "DA-08: the top: reserved bytes are not zero");
    ck_assert_str_eq(fixture.log.entries[2].message,
                     "children[2].children[0]: length 3, offset -1, null_count "
                     "0");
    ck_assert_str_eq(fixture.log.entries[3].message,
                     "children[3].dictionary: buffers[1] is NULL");
    breach_log_expect(&fixture.log, "DA-05 DA-08 DA-21 DA-22");
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_cut)
{
    enum { DEEP = 40 };
    struct fixture fixture;
    struct ArrowSchema *schema;
    struct ArrowArray *array;

    fixture_open(&fixture);
    schema = field(&fixture, NUMBER);
    array = column(&fixture, NUMBER);
    schema->release(schema);
    array->release(array);
    for (int i = 0; i < DEEP; i++) {
        plain_schema(schema, "+s", "", 1);
        plain_array(array, 1, 1, 1);
        schema = schema->children[0];
        array = array->children[0];
    }
    plain_schema(schema, "+s", "", 0);
    plain_array(array, -1, 1, 0);
    expect_error(&fixture, "DA-21");
    ck_assert_ptr_nonnull(
        strstr(fixture.log.entries[0].message, ".children[0]: length -1"));
    fixture_close(&fixture);
}
END_TEST

START_TEST(without_options_it_tells_standard_error_and_without_error_nobody)
{
    struct fixture fixture;

    fixture_open(&fixture);
    ck_assert_int_eq(
        uva_check_array(&fixture.schema, &fixture.batch, NULL, &fixture.error),
        0);
    fixture.batch.reserved[0] = 1;
    ck_assert_int_eq(uva_check_array(&fixture.schema, &fixture.batch,
                                     &fixture.options, NULL),
                     EPROTO);
    breach_log_expect(&fixture.log, "DA-08");
    fixture_close(&fixture);
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
    struct fixture fixture;

    fixture_open(&fixture);
    ck_assert_int_eq(
        uva_check_array(NULL, &fixture.batch, &fixture.options, &fixture.error),
        EINVAL);
    ck_assert_int_eq(uva_check_array(&fixture.schema, NULL, &fixture.options,
                                     &fixture.error),
                     EINVAL);
    fixture.options.reserved[1] = &fixture;
    ck_assert_int_eq(check(&fixture), EINVAL);
    breach_log_expect(&fixture.log, "");
    fixture_close(&fixture);
}
END_TEST

START_TEST(without_memory_nothing_is_checked)
{
    struct faulty_allocator memory;
    struct fixture fixture;

    fixture_open(&fixture);
    fixture.batch.reserved[0] = 1;
    faulty_allocator_init(&memory, 1);
    fixture.options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(check(&fixture), ENOMEM);
    breach_log_expect(&fixture.log, "");
    ck_assert_int_eq(check(&fixture), EPROTO);
    breach_log_expect(&fixture.log, "DA-08");
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
    fixture_close(&fixture);
}
END_TEST

/* ---- against the schema of a stream ------------------------------------- */

static void check_beside(struct fixture *fixture,
                         const struct ArrowSchema *schema, const char *misfit)
{
    struct uva__tree_walk walk = {0};

    ck_assert_int_eq(uva__reporter_new(&fixture->options, &walk.reporter, NULL),
                     0);
    uva__array_check(&walk, schema, &fixture->batch, misfit);
    uva__reporter_release(walk.reporter);
    fixture->log.freed = 0;
}

START_TEST(all_misfits_are_one_clause_where_that_is_asked_for)
{
    struct fixture fixture;
    struct ArrowArray *dictionary;

    fixture_open(&fixture);
    column(&fixture, NUMBER)->n_buffers = 3;
    check_beside(&fixture, &fixture.schema, "AT-17");
    breach_log_expect(&fixture.log, "AT-17");
    column(&fixture, NUMBER)->n_buffers = 2;
    fixture.batch.array.n_children--;
    check_beside(&fixture, &fixture.schema, "DS-01");
    breach_log_expect(&fixture.log, "DS-01");
    fixture.batch.array.n_children++;
    dictionary = column(&fixture, WORDS)->dictionary;
    column(&fixture, WORDS)->dictionary = NULL;
    check_beside(&fixture, &fixture.schema, "DS-01");
    breach_log_expect(&fixture.log, "DS-01");
    column(&fixture, WORDS)->dictionary = dictionary;
    fixture_close(&fixture);
}
END_TEST

START_TEST(without_a_schema_what_can_be_seen_is_checked)
{
    struct fixture fixture;

    fixture_open(&fixture);
    column(&fixture, NUMBER)->n_buffers = 77;
    check_beside(&fixture, NULL, "DS-01");
    breach_log_expect(&fixture.log, "");
    column(&fixture, WORDS)->dictionary->offset = -1;
    column(&fixture, NUMBER)->n_children = 2;
    check_beside(&fixture, NULL, "DS-01");
    breach_log_expect(&fixture.log, "DA-25 DA-21");
    column(&fixture, NUMBER)->n_children = 0;
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("arrays");

    tcase_add_test(tcase, a_sound_array_gives_no_report);
    tcase_add_test(tcase, nulls_with_a_bitmap_and_offsets_are_sound);
    tcase_add_test(tcase, an_empty_array_needs_no_buffers);
    tcase_add_test(tcase, nothing_on_a_device_is_read);
    tcase_add_test(tcase, ab15_an_unknown_device_is_taken_as_it_is);
    tcase_add_test(tcase, formats_say_how_many_buffers_and_how_aligned);
    tcase_add_test(tcase, da03_the_device_type_is_set);
    tcase_add_test(tcase, da04_the_device_id_is_set);
    tcase_add_test(tcase, da05_another_id_for_the_cpu_is_noted);
    tcase_add_test(tcase, da08_reserved_bytes_are_zero);
    tcase_add_test(tcase, ev04_and_ev09_some_devices_have_no_events);
    tcase_add_test(tcase, lc01_a_released_array_is_none);
    tcase_add_test(tcase,
                   lc01_a_released_schema_is_none_and_the_array_is_checked);
    tcase_add_test(tcase, da21_length_offset_and_null_count_are_possible);
    tcase_add_test(tcase, da20_the_number_of_buffers_is_that_of_the_format);
    tcase_add_test(tcase,
                   da20_views_have_more_buffers_than_two_and_not_any_number);
    tcase_add_test(tcase, da27_views_have_their_lengths);
    tcase_add_test(tcase, da20_the_number_of_children_is_that_of_the_schema);
    tcase_add_test(tcase, da22_no_buffer_is_null_that_has_to_hold_something);
    tcase_add_test(tcase, da22_the_buffers_vector_is_there);
    tcase_add_test(tcase, da22_where_something_is_null_there_is_a_bitmap);
    tcase_add_test(tcase, da23_offsets_do_not_fall);
    tcase_add_test(tcase, da23_sizes_are_possible);
    tcase_add_test(tcase, da24_offsets_and_lengths_are_aligned);
    tcase_add_test(tcase, da25_children_are_there_and_live);
    tcase_add_test(tcase, da26_there_is_a_dictionary_where_the_schema_has_one);
    tcase_add_test(tcase, da25_a_tree_that_leads_in_a_circle_is_told_once);
    tcase_add_test(tcase, da25_a_tree_that_is_too_large_is_told_once);
    tcase_add_test(tcase, da20_formats_can_be_read);
    tcase_add_test(tcase, da25_and_da26_a_schema_has_what_it_says);
    tcase_add_test(tcase, md_rules_hold_for_the_metadata_of_each_field);
    tcase_add_test(tcase, all_breaches_are_told_and_the_first_is_the_error);
    tcase_add_test(tcase, a_path_that_is_too_long_is_cut);
    tcase_add_test(
        tcase,
        without_options_it_tells_standard_error_and_without_error_nobody);
    tcase_add_test(tcase, bad_arguments_are_refused);
    tcase_add_test(tcase, without_memory_nothing_is_checked);
    tcase_add_test(tcase, all_misfits_are_one_clause_where_that_is_asked_for);
    tcase_add_test(tcase, without_a_schema_what_can_be_seen_is_checked);
    return suite_main("array_check", NULL, NULL, tcase, NULL);
}
