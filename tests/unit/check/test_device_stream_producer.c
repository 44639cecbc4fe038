/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream with one fault, and its check: it is reported by its clause
 * alone. */
#include <check.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/spoiled_stream.h"
#include "uvarrow/arrow.h"
#include "uvarrow/check.h"

/* ---- the producer's faults ---------------------------------------------- */

static void expect_producer(struct spoiled_stream *fixture, const char *clause,
                            enum uva_severity severity)
{
    breach_log_expect_one(&fixture->log, clause, UVA_PARTY_PRODUCER, severity);
}

static void drop_child(struct ArrowDeviceArray *chunk)
{
    uva_array_release(chunk);
    spoiled_stream_chunk(chunk);
    chunk->array.children[0]->release(chunk->array.children[0]);
    chunk->array.n_children = 0;
}

START_TEST(ds01_chunks_fit_the_schema)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 3);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    fixture.spoil_chunk = drop_child;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    expect_producer(&fixture, "DS-01", UVA_SEVERITY_ERROR);
    spoiled_stream_close(&fixture);
}
END_TEST

static void untouched(struct ArrowDeviceArray *chunk)
{
    memset(chunk, 0xA5, sizeof(*chunk));
}

START_TEST(ds02_success_gives_a_chunk_or_the_end)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 0);
    fixture.spoil_chunk = untouched;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EPROTO);
    expect_producer(&fixture, "DS-02", UVA_SEVERITY_ERROR);
    ck_assert_str_eq(spoiled_stream_get_last_error(&fixture),
                     "the stream succeeded without giving anything");
    spoiled_stream_close(&fixture);
}
END_TEST

static void on_gpu(struct ArrowDeviceArray *chunk)
{
    chunk->device_type = ARROW_DEVICE_CUDA;
    chunk->device_id = 0;
}

START_TEST(ds03_chunks_are_of_the_streams_device)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk;

    spoiled_stream_open(&fixture, 1);
    fixture.spoil_chunk = on_gpu;
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    expect_producer(&fixture, "DS-03", UVA_SEVERITY_WARNING);
    ck_assert_int_eq(chunk.device_type, ARROW_DEVICE_CUDA);
    uva_array_release(&chunk);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds05_its_device_type_is_set)
{
    struct spoiled_stream fixture;

    spoiled_stream_init(&fixture, 1);
    fixture.stream.device_type = 0;
    spoiled_stream_check(&fixture);
    expect_producer(&fixture, "DS-05", UVA_SEVERITY_ERROR);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds05_and_stays)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 3);
    fixture.turns_to = ARROW_DEVICE_CUDA;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    expect_producer(&fixture, "DS-05", UVA_SEVERITY_ERROR);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds07_codes_are_positive)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.code = -EIO;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), -EIO);
    expect_producer(&fixture, "DS-07", UVA_SEVERITY_WARNING);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), -EIO);
    expect_producer(&fixture, "DS-07", UVA_SEVERITY_WARNING);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds11_texts_are_utf8)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    fixture.text = "\xFF";
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    ck_assert_str_eq(spoiled_stream_get_last_error(&fixture), "\xFF");
    expect_producer(&fixture, "DS-11", UVA_SEVERITY_ERROR);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds15_release_marks_the_stream)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.unmarked = true;
    fixture.stream.release(&fixture.stream);
    ck_assert(fixture.stream.release == NULL);
    expect_producer(&fixture, "DS-15", UVA_SEVERITY_ERROR);
    spoiled_stream_close(&fixture);
}
END_TEST

static struct ArrowDeviceArray left_array;
static struct ArrowSchema left_schema;

static void leave_chunk(struct ArrowDeviceArray *chunk)
{
    spoiled_stream_chunk(chunk);
    left_array = *chunk;
}

static void leave_schema(struct ArrowSchema *schema)
{
    plain_schema(schema, "l", "", 0);
    left_schema = *schema;
}

START_TEST(ds19_a_failed_call_gives_nothing)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    fixture.spoil_chunk = leave_chunk;
    fixture.spoil_schema = leave_schema;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    expect_producer(&fixture, "DS-19", UVA_SEVERITY_FATAL);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EIO);
    expect_producer(&fixture, "DS-19", UVA_SEVERITY_FATAL);
    uva_array_release(&left_array);
    uva_schema_release(&left_schema);
    spoiled_stream_close(&fixture);
}
END_TEST

static void clear_chunk(struct ArrowDeviceArray *chunk)
{
    memset(chunk, 0, sizeof(*chunk));
}

static void clear_schema(struct ArrowSchema *schema)
{
    memset(schema, 0, sizeof(*schema));
}

START_TEST(ds19_released_is_nothing)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    fixture.spoil_chunk = clear_chunk;
    fixture.spoil_schema = clear_schema;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EIO);
    spoiled_stream_close(&fixture);
}
END_TEST

static void dead_schema(struct ArrowSchema *schema)
{
    uva_schema_release(schema);
}

static void untouched_schema(struct ArrowSchema *schema)
{
    uva_schema_release(schema);
    memset(schema, 0xA5, sizeof(*schema));
}

START_TEST(ab17_a_schema_that_is_given_is_live)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.spoil_schema = dead_schema;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EPROTO);
    expect_producer(&fixture, "AB-17", UVA_SEVERITY_ERROR);
    fixture.spoil_schema = untouched_schema;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EPROTO);
    expect_producer(&fixture, "AB-17", UVA_SEVERITY_ERROR);
    ck_assert_ptr_nonnull(spoiled_stream_get_last_error(&fixture));
    spoiled_stream_close(&fixture);
}
END_TEST

static void rename_field(struct ArrowSchema *schema)
{
    schema->children[0]->name = "m";
}

START_TEST(ds21_all_schemas_are_equal)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    fixture.spoil_schema = rename_field;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    expect_producer(&fixture, "DS-21", UVA_SEVERITY_ERROR);
    spoiled_stream_close(&fixture);
}
END_TEST

static void spoil_metadata(struct ArrowSchema *schema)
{
    static const int32_t MINUS[] = {-1};

    schema->metadata = (const char *)MINUS;
}

START_TEST(md05_the_schema_is_looked_at_once)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.spoil_schema = spoil_metadata;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    expect_producer(&fixture, "MD-05", UVA_SEVERITY_ERROR);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    spoiled_stream_close(&fixture);
}
END_TEST

static void reserve(struct ArrowDeviceArray *chunk)
{
    chunk->reserved[2] = 1;
}

START_TEST(da08_chunks_are_checked_as_arrays_are)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.spoil_chunk = reserve;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    expect_producer(&fixture, "DA-08", UVA_SEVERITY_ERROR);
    ck_assert_ptr_nonnull(
        strstr(fixture.log.entries[0].transcript, "it gives chunk 0"));
    spoiled_stream_close(&fixture);
}
END_TEST

static void on_nothing(struct ArrowDeviceArray *chunk)
{
    chunk->device_type = 0;
}

START_TEST(da03_a_chunk_on_no_device_is_not_on_another_one_too)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk;

    spoiled_stream_open(&fixture, 1);
    fixture.spoil_chunk = on_nothing;
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    expect_producer(&fixture, "DA-03", UVA_SEVERITY_ERROR);
    uva_array_release(&chunk);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ab17_no_function_is_missing)
{
    for (int i = 0; i < 3; i++) {
        struct spoiled_stream fixture;
        struct uva_check options;
        struct uva_error error = {0};
        struct ArrowDeviceArrayStream before;
        spoiled_stream_init(&fixture, 1);
        options = spoiled_stream_options(&fixture);
        if (i == 0)
            fixture.stream.get_schema = NULL;
        else if (i == 1)
            fixture.stream.get_next = NULL;
        else
            fixture.stream.get_last_error = NULL;
        before = fixture.stream;
        ck_assert_int_eq(
            uva_check_device_stream(&fixture.stream, &options, &error), EINVAL);
        ck_assert_int_eq(error.code, EINVAL);
        ck_assert_int_eq(memcmp(&before, &fixture.stream, sizeof(before)), 0);
        expect_producer(&fixture, "AB-17", UVA_SEVERITY_ERROR);
        ck_assert_int_eq(fixture.log.freed, 0);
        ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("producer");

    tcase_add_test(tcase, ds01_chunks_fit_the_schema);
    tcase_add_test(tcase, ds02_success_gives_a_chunk_or_the_end);
    tcase_add_test(tcase, ds03_chunks_are_of_the_streams_device);
    tcase_add_test(tcase, ds05_its_device_type_is_set);
    tcase_add_test(tcase, ds05_and_stays);
    tcase_add_test(tcase, ds07_codes_are_positive);
    tcase_add_test(tcase, ds11_texts_are_utf8);
    tcase_add_test(tcase, ds15_release_marks_the_stream);
    tcase_add_test(tcase, ds19_a_failed_call_gives_nothing);
    tcase_add_test(tcase, ds19_released_is_nothing);
    tcase_add_test(tcase, ab17_a_schema_that_is_given_is_live);
    tcase_add_test(tcase, ds21_all_schemas_are_equal);
    tcase_add_test(tcase, md05_the_schema_is_looked_at_once);
    tcase_add_test(tcase, da08_chunks_are_checked_as_arrays_are);
    tcase_add_test(tcase, da03_a_chunk_on_no_device_is_not_on_another_one_too);
    tcase_add_test(tcase, ab17_no_function_is_missing);
    return suite_main("blocking_producer", NULL, NULL, tcase, NULL);
}
