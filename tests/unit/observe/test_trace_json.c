/* SPDX-License-Identifier: Apache-2.0 */
/* The text of each kind of trace event, and the spans that an arrow joins. */
#include "observe/trace_json.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "support/check_suite.h"

enum { GONE = 2147483600 }; /* no such thread */

static struct uva__trace_json *json;

static void set_up(void)
{
    json = calloc(1, sizeof(*json));
    ck_assert_ptr_nonnull(json);
    json->pid = 7;
    json->origin_ns = 1000;
}

static void tear_down(void)
{
    free(json);
}

/* The text so far; it begins anew. */
static const char *text(void)
{
    json->text[json->size] = '\0';
    json->size = 0;
    return json->text;
}

static struct uva__trace_record
record_of(enum uva_trace_kind kind, const char *name, int64_t at, int64_t end)
{
    return (struct uva__trace_record){.event = {.kind = kind,
                                                .name = name,
                                                .stream_id = 3,
                                                .ordinal = -1,
                                                .at_ns = at,
                                                .end_ns = end},
                                      .thread = GONE,
                                      .stage = "source"};
}

static void put(struct uva__trace_record record)
{
    uva__trace_json_put(json, &record);
}

/* A span of one batch. */
static void span(uint64_t stream, int32_t stage, const char *name,
                 int64_t ordinal, int64_t at, int64_t end)
{
    struct uva__trace_record record = record_of(UVA_TRACE_SPAN, name, at, end);

    record.event.stream_id = stream;
    record.event.stage = stage;
    record.event.ordinal = ordinal;
    put(record);
}

/* A batch that `stage` has made of another one. */
static void link_to(uint64_t stream, int32_t stage, int64_t ordinal,
                    uint64_t from_stream, int64_t from)
{
    struct uva__trace_record record = record_of(UVA_TRACE_LINK, "from", 0, 0);

    record.event.stream_id = stream;
    record.event.stage = stage;
    record.event.ordinal = ordinal;
    record.event.from_id = from_stream;
    record.event.value = from;
    put(record);
}

/* The arrows so far, as "s1@2000 t1@3000 ": phase, id, time in ns; the text
 * begins anew. */
static const char *arrows(void)
{
    static char found[1000];
    const char *at = text();

    found[0] = '\0';
    while ((at = strstr(at, "\n{\"ph\":\"")) != NULL) {
        const char *phase = at + 8, *id = strstr(at, ",\"id\":"),
                   *ts = strstr(at, "\"ts\":");
        const size_t used = strlen(found);

        at = phase;
        if (strchr("stf", *phase) != NULL)
            (void)snprintf(found + used, sizeof(found) - used, "%c%d@%.0f ",
                           *phase, atoi(id + 6), strtod(ts + 5, NULL) * 1000);
    }
    return found;
}

/* ---- kinds -------------------------------------------------------------- */

START_TEST(a_span_is_a_complete_event)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_SPAN, "open", 2234, 5234);

    put(record);
    ck_assert_str_eq(
        text(), ",\n{\"ph\":\"X\",\"pid\":7,\"tid\":2147483600,\"ts\":1.234,"
                "\"dur\":3.000,\"cat\":\"uvarrow\",\"name\":\"open\",\"args\":{"
                "\"stream\":\"stream #3\",\"stage\":0,\"in\":\"source\"}}");
}
END_TEST

START_TEST(a_span_without_length_lasts_for_a_nanosecond)
{
    put(record_of(UVA_TRACE_SPAN, "open", 2000, 2000));
    ck_assert_ptr_nonnull(strstr(text(), "\"dur\":0.001,"));
}
END_TEST

START_TEST(a_time_before_the_first_is_negative)
{
    put(record_of(UVA_TRACE_SPAN, "open", 999, 1000));
    ck_assert_ptr_nonnull(strstr(text(), "\"ts\":-0.001,"));
}
END_TEST

START_TEST(an_instant_has_its_value)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_REQUEST, "request", 1000, 1000);

    record.event.value = 4;
    put(record);
    ck_assert_str_eq(
        text(), ",\n{\"ph\":\"i\",\"pid\":7,\"tid\":2147483600,\"ts\":0.000,"
                "\"s\":\"t\",\"cat\":\"uvarrow\",\"name\":\"request\",\"args\":"
                "{\"stream\":\"stream #3\",\"stage\":0,\"in\":\"source\","
                "\"value\":4}}");
    record.event.value = -4;
    put(record);
    ck_assert_ptr_nonnull(strstr(text(), "\"value\":-4}}"));
}
END_TEST

START_TEST(a_counter_is_named_after_its_stage_and_stream)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_COUNTER, "batches", 1000, 1000);

    record.event.value = 12;
    record.event.stage = 2;
    strcpy(record.stream, "flights");
    put(record);
    ck_assert_str_eq(
        text(), ",\n{\"ph\":\"C\",\"pid\":7,\"tid\":2147483600,\"ts\":0.000,"
                "\"name\":\"batches in source (2) of flights #3\","
                "\"args\":{\"batches\":12}}");
}
END_TEST

START_TEST(a_wait_has_a_beginning_and_an_end_of_one_id)
{
    put(record_of(UVA_TRACE_WAIT, "worker", 2000, 4000));
    ck_assert_str_eq(
        text(), ",\n{\"ph\":\"b\",\"pid\":7,\"tid\":2147483600,\"ts\":1.000,"
                "\"id\":1,\"cat\":\"wait\",\"name\":\"wait for worker\","
                "\"args\":{\"stream\":\"stream #3\",\"stage\":0,"
                "\"in\":\"source\"}}"
                ",\n{\"ph\":\"e\",\"pid\":7,\"tid\":2147483600,\"ts\":3.000,"
                "\"id\":1,\"cat\":\"wait\",\"name\":\"wait for worker\"}");
}
END_TEST

START_TEST(a_link_names_both_batches)
{
    link_to(3, 1, 5, 9, 2);
    ck_assert_ptr_nonnull(strstr(text(), "\"batch\":5,\"from_stream\":\"#9\","
                                         "\"from_batch\":2}}"));
}
END_TEST

START_TEST(a_stream_of_a_later_runtime_has_two_numbers)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_SPAN, "open", 2000, 3000);

    record.event.stream_id |= (uint64_t)1 << UVA__TRACE_JSON_ID_BITS;
    put(record);
    ck_assert_ptr_nonnull(strstr(text(), "\"stream\":\"stream #2.3\""));
}
END_TEST

START_TEST(lost_events_are_counted)
{
    uva__trace_json_put_lost(json, 12, 1000);
    ck_assert_str_eq(text(),
                     ",\n{\"ph\":\"i\",\"pid\":7,\"tid\":7,\"ts\":0.000,"
                     "\"s\":\"g\",\"cat\":\"uvarrow\",\"name\":\"events lost\","
                     "\"args\":{\"value\":12}}");
}
END_TEST

/* ---- names -------------------------------------------------------------- */

START_TEST(a_thread_is_named_once)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_SPAN, "open", 2000, 3000);
    char name[16] = "", expected[64];

    (void)prctl(PR_GET_NAME, name); /* qemu's, if that runs it */
    (void)snprintf(expected, sizeof(expected),
                   "\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                   name);
    record.thread = (int32_t)getpid();
    put(record);
    ck_assert_ptr_nonnull(strstr(text(), expected));
    put(record);
    ck_assert_ptr_null(strstr(text(), "thread_name"));
}
END_TEST

START_TEST(the_array_begins_with_the_process)
{
    json->pid = getpid();
    uva__trace_json_begin(json);
    ck_assert_int_eq(strncmp(text(), "[\n{\"ph\":\"M\",", 12), 0);
    ck_assert_ptr_nonnull(strstr(json->text, "process_labels"));
    ck_assert_ptr_nonnull(strstr(json->text, "process_name"));
}
END_TEST

START_TEST(a_name_cannot_break_the_text)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_SPAN, "open", 2000, 3000);

    strcpy(record.stream, "a\"b\\c\n\x7F\xC3\xA4\xC3z\xFF</script>");
    put(record);
    ck_assert_ptr_nonnull(
        strstr(text(), "\"stream\":\"a\\\"b\\\\c??\xC3\xA4?z?</script> #3\""));
}
END_TEST

START_TEST(a_name_is_cut_between_characters)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_SPAN, "open", 2000, 3000);

    memset(record.stream, 'a', sizeof(record.stream) - 2);
    record.stream[62] = '\xC3'; /* the first of two bytes, then the NUL */
    put(record);
    ck_assert_ptr_nonnull(strstr(text(), "aaa? #3\""));
    memset(record.stream, 0, sizeof(record.stream));
    memset(record.stage, 'a', sizeof(record.stage) - 2);
    record.stage[30] = '\xC3';
    put(record);
    ck_assert_ptr_nonnull(strstr(text(), "aaa?\"}}"));
}
END_TEST

/* ---- arrows ------------------------------------------------------------- */

START_TEST(an_arrow_follows_a_batch)
{
    span(3, 0, "get_next", 5, 2000, 3000);
    span(3, 1, "map", 5, 4000, 5000);
    span(3, 2, "on_batch", 5, 6000, 7000);
    ck_assert_str_eq(arrows(), "s1@1000 t1@3000 f1@5000 ");
}
END_TEST

START_TEST(each_batch_of_each_stream_has_an_arrow_of_its_own)
{
    span(3, 0, "get_next", 5, 2000, 3000);
    span(3, 0, "get_next", 6, 4000, 5000);
    span(4, 0, "get_next", 5, 6000, 7000);
    span(4, 1, "map", 5, 8000, 9000);
    ck_assert_str_eq(arrows(), "s1@1000 s2@3000 s3@5000 t3@7000 ");
}
END_TEST

START_TEST(a_span_around_another_one_is_passed_over)
{
    span(3, 1, "map", 5, 4000, 5000);
    span(3, 1, "extract", 5, 3000, 6000);
    ck_assert_str_eq(arrows(), "s1@3000 ");
}
END_TEST

START_TEST(nothing_follows_the_consumer)
{
    span(3, 0, "get_next", 5, 2000, 3000);
    span(3, 2, "on_batch", 5, 4000, 5000);
    span(3, 1, "extract", 5, 4000, 6000);
    ck_assert_str_eq(arrows(), "s1@1000 f1@3000 ");
}
END_TEST

START_TEST(a_consumer_alone_has_no_arrow)
{
    span(3, 2, "on_batch", 5, 4000, 5000);
    ck_assert_str_eq(arrows(), "");
}
END_TEST

START_TEST(an_arrow_leads_from_the_batch_that_was_taken)
{
    span(3, 0, "get_next", 5, 2000, 3000);
    span(3, 1, "transform", 5, 4000, 5000);
    link_to(3, 1, 9, 3, 5);
    span(3, 2, "on_batch", 9, 6000, 7000);
    ck_assert_str_eq(arrows(), "s1@1000 t1@3000 s2@3000 f2@5000 ");
}
END_TEST

START_TEST(one_number_on_two_sides_of_a_stage_is_two_batches)
{
    span(3, 0, "get_next", 0, 2000, 3000);
    link_to(3, 1, 0, 3, 0);
    span(3, 2, "on_batch", 0, 4000, 5000);
    span(3, 0, "get_next", 1, 6000, 7000);
    link_to(3, 1, 1, 3, 0);
    span(3, 1, "transform", 1, 8000, 9000);
    span(3, 2, "on_batch", 1, 9000, 9500);
    ck_assert_str_eq(arrows(),
                     "s1@1000 s2@1000 f2@3000 s3@5000 s4@1000 t3@7000 "
                     "f4@8000 ");
}
END_TEST

START_TEST(of_several_batches_the_arrow_leads_from_the_first)
{
    span(3, 0, "get_next", 0, 2000, 3000);
    span(3, 0, "get_next", 1, 4000, 5000);
    link_to(3, 1, 0, 3, 0);
    link_to(3, 1, 0, 3, 1);
    span(3, 2, "on_batch", 0, 6000, 7000);
    ck_assert_str_eq(arrows(), "s1@1000 s2@3000 s3@1000 f3@5000 ");
}
END_TEST

START_TEST(an_arrow_leads_from_one_stream_to_another)
{
    span(3, 0, "get_next", 0, 2000, 3000);
    link_to(9, 0, 7, 3, 0);
    span(9, 1, "on_batch", 7, 4000, 5000);
    ck_assert_str_eq(arrows(), "s1@1000 s2@1000 f2@3000 ");
}
END_TEST

START_TEST(a_link_from_a_batch_without_a_span_draws_nothing)
{
    link_to(9, 0, 7, 3, 0);
    span(9, 1, "map", 7, 4000, 5000);
    ck_assert_str_eq(arrows(), "s1@3000 ");
}
END_TEST

START_TEST(a_batch_that_was_pushed_out_begins_a_new_arrow)
{
    int64_t i;
    uint64_t stream;

    span(1, 0, "get_next", 0, 2000, 3000);
    link_to(1, 1, 0, 1, 0);
    for (i = 0; i < 2 * UVA__TRACE_JSON_FLOWS; i++)
        for (stream = 1; stream < 4; stream++) {
            span(stream, 0, "get_next", i + 1, 2000, 3000);
            span(stream, 2, "map", i + 1, 2000, 3000);
            json->size = 0;
        }
    span(1, 0, "extract", 0, 4000, 5000);
    ck_assert_int_eq(arrows()[0], 's');
}
END_TEST

START_TEST(stages_beyond_the_table_do_no_harm)
{
    link_to(9, 64, 7, 3, 0);
    link_to(9, 63, 7, 3, 0);
    span(9, 100, "map", 7, 4000, 5000);
    link_to(9 + UVA__TRACE_JSON_STREAMS, 1, 7, 3, 0); /* in its place */
    span(9, 100, "map", 8, 6000, 7000);
    ck_assert_str_eq(arrows(), "s1@3000 s2@5000 ");
}
END_TEST

/* ---- room --------------------------------------------------------------- */

START_TEST(one_event_needs_less_than_what_is_left_when_it_is_full)
{
    struct uva__trace_record record =
        record_of(UVA_TRACE_WAIT, "worker", INT64_MIN / 2, INT64_MAX / 2);

    memset(record.stream, '"',
           sizeof(record.stream) - 1); /* two bytes for each */
    memset(record.stage, '"', sizeof(record.stage) - 1);
    record.event.name =
        "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
        "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
        "\"";
    record.event.stream_id = UINT64_MAX / 2;
    record.event.ordinal = INT64_MAX;
    record.thread = (int32_t)getpid();
    put(record);
    ck_assert_uint_lt(json->size, UVA__TRACE_JSON_RECORD - 8);
    record.event.kind = UVA_TRACE_LINK;
    record.event.value = INT64_MAX;
    json->size = 0;
    json->threads[(uint32_t)record.thread % UVA__TRACE_JSON_THREADS] = 0;
    put(record);
    ck_assert_uint_lt(json->size, UVA__TRACE_JSON_RECORD - 8);
    ck_assert(!uva__trace_json_is_full(json));
    json->size = UVA__TRACE_JSON_ROOM - UVA__TRACE_JSON_RECORD + 1;
    ck_assert(uva__trace_json_is_full(json));
}
END_TEST

int main(void)
{
    return suite_main(
        "trace_json", set_up, tear_down,
        suite_tests("kinds", a_span_is_a_complete_event,
                    a_span_without_length_lasts_for_a_nanosecond,
                    a_time_before_the_first_is_negative,
                    an_instant_has_its_value,
                    a_counter_is_named_after_its_stage_and_stream,
                    a_wait_has_a_beginning_and_an_end_of_one_id,
                    a_link_names_both_batches,
                    a_stream_of_a_later_runtime_has_two_numbers,
                    lost_events_are_counted, NULL),
        suite_tests("names", a_thread_is_named_once,
                    the_array_begins_with_the_process,
                    a_name_cannot_break_the_text,
                    a_name_is_cut_between_characters, NULL),
        suite_tests("arrows", an_arrow_follows_a_batch,
                    each_batch_of_each_stream_has_an_arrow_of_its_own,
                    a_span_around_another_one_is_passed_over,
                    nothing_follows_the_consumer, a_consumer_alone_has_no_arrow,
                    an_arrow_leads_from_the_batch_that_was_taken,
                    one_number_on_two_sides_of_a_stage_is_two_batches,
                    of_several_batches_the_arrow_leads_from_the_first,
                    an_arrow_leads_from_one_stream_to_another,
                    a_link_from_a_batch_without_a_span_draws_nothing,
                    a_batch_that_was_pushed_out_begins_a_new_arrow,
                    stages_beyond_the_table_do_no_harm, NULL),
        suite_tests("room",
                    one_event_needs_less_than_what_is_left_when_it_is_full,
                    NULL),
        NULL);
}
