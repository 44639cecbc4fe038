/* SPDX-License-Identifier: Apache-2.0 */
/* The reporter: its options, its reports, its transcript, and its end. */
#include "check/reporter.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "check/breach_text.h"
#include "check/transcript.h"
#include "protocol/clauses.h"
#include "support/breach_log.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"

static struct uva__reporter *reporter_new(const struct uva_check *options)
{
    struct uva__reporter *reporter = NULL;

    ck_assert_int_eq(uva__reporter_new(options, &reporter, NULL), 0);
    return reporter;
}

/* ---- options ------------------------------------------------------------ */

START_TEST(without_options_there_are_defaults)
{
    struct uva__reporter *reporter = reporter_new(NULL);
    const struct uva_check *options = uva__reporter_options(reporter);

    ck_assert_str_eq(options->name, "");
    ck_assert(options->allocator.alloc != NULL &&
              options->allocator.dealloc != NULL);
    uva__reporter_release(reporter);
}
END_TEST

START_TEST(options_are_kept_and_the_name_copied)
{
    char name[] = "hop 3";
    struct uva__reporter *reporter =
        reporter_new(&(struct uva_check){.name = name, .deep = true});

    memset(name, 'x', 3);
    ck_assert_str_eq(uva__reporter_options(reporter)->name, "hop 3");
    ck_assert(uva__reporter_options(reporter)->deep);
    uva__reporter_release(reporter);
}
END_TEST

START_TEST(bad_options_are_refused_and_nothing_is_taken)
{
    struct faulty_allocator memory;
    struct breach_log log;

    faulty_allocator_init(&memory, 0);
    breach_log_init(&log);
    for (int i = 0; i < 3; i++) {
        struct uva_check options = breach_log_options(&log);
        struct uva__reporter *reporter = NULL;
        struct uva_error error = {0};
        options.allocator = faulty_allocator_table(&memory);
        if (i == 0)
            options.reserved[3] = &log;
        else if (i == 1)
            options.allocator.alloc = NULL;
        else
            options.allocator.dealloc = NULL;
        ck_assert_int_eq(uva__reporter_new(&options, &reporter, &error),
                         EINVAL);
        ck_assert_int_eq(error.code, EINVAL);
        ck_assert_ptr_null(reporter);
    }
    ck_assert_int_eq(log.freed, 0);
    ck_assert_int_eq(faulty_allocator_asked(&memory), 0);
}
END_TEST

START_TEST(without_memory_nothing_is_taken)
{
    struct faulty_allocator memory;
    struct breach_log log;
    struct uva_check options;
    struct uva__reporter *reporter = NULL;
    struct uva_error error = {0};

    faulty_allocator_init(&memory, 1);
    breach_log_init(&log);
    options = breach_log_options(&log);
    options.allocator = faulty_allocator_table(&memory);
    ck_assert_int_eq(uva__reporter_new(&options, &reporter, &error), ENOMEM);
    ck_assert_int_eq(error.code, ENOMEM);
    ck_assert_int_eq(log.freed, 0);
}
END_TEST

/* ---- counts ------------------------------------------------------------- */

START_TEST(the_last_count_frees_all_and_then_the_context)
{
    struct faulty_allocator memory;
    struct breach_log log;
    struct uva_check options;
    struct uva__reporter *reporter;

    faulty_allocator_init(&memory, 0);
    breach_log_init(&log);
    options = breach_log_options(&log);
    options.allocator = faulty_allocator_table(&memory);
    reporter = reporter_new(&options);
    for (int i = 0; i < 3; i++) {
        struct uva__quarantined *block =
            uva__memory_new(&options.allocator, 64);
        ck_assert_ptr_nonnull(block);
        uva__quarantine_put(uva__reporter_quarantine(reporter), block, 64);
    }
    ck_assert_ptr_eq(uva__reporter_acquire(reporter), reporter);
    uva__reporter_release(reporter);
    ck_assert_int_eq(log.freed, 0);
    ck_assert_int_eq(faulty_allocator_live(&memory), 4);
    uva__reporter_release(reporter);
    ck_assert_int_eq(log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&memory), 0);
}
END_TEST

START_TEST(one_that_is_undone_leaves_the_context_alone)
{
    struct breach_log log;
    struct uva_check options;

    breach_log_init(&log);
    options = breach_log_options(&log);
    uva__reporter_free_unused(reporter_new(&options));
    ck_assert_int_eq(log.freed, 0);
}
END_TEST

/* ---- reports ------------------------------------------------------------ */

START_TEST(a_breach_is_told_as_the_catalogue_has_it)
{
    struct breach_log log;
    struct uva_check options;
    struct uva__reporter *reporter;

    breach_log_init(&log);
    options = breach_log_options(&log);
    reporter = reporter_new(&options);
    uva__reporter_breach(reporter, "AP-06", 0, "task %d\nof %d", 9, 8);
    ck_assert_str_eq(log.entries[0].name, "test");
    ck_assert_str_eq(log.entries[0].message, "task 9 of 8"); /* one line */
    ck_assert_str_eq(log.entries[0].transcript, "");
    breach_log_expect_one(&log, "AP-06", UVA_PARTY_PRODUCER,
                          UVA_SEVERITY_ERROR);
    uva__reporter_breach(reporter, "LC-01", UVA_PARTY_CONSUMER, "x");
    breach_log_expect_one(&log, "LC-01", UVA_PARTY_CONSUMER,
                          UVA_SEVERITY_ERROR);
    uva__reporter_breach_as(reporter, "AT-03", UVA_SEVERITY_NOTE, "x");
    breach_log_expect_one(&log, "AT-03", UVA_PARTY_CONSUMER, UVA_SEVERITY_NOTE);
    uva__reporter_release(reporter);
}
END_TEST

START_TEST(only_errors_and_worse_are_counted)
{
    struct breach_log log;
    struct uva_check options;
    struct uva__reporter *reporter;

    breach_log_init(&log);
    options = breach_log_options(&log);
    reporter = reporter_new(&options);
    uva__reporter_breach_as(reporter, "AT-03", UVA_SEVERITY_NOTE, "x");
    uva__reporter_breach_as(reporter, "AT-03", UVA_SEVERITY_WARNING, "x");
    ck_assert_int_eq(uva__reporter_count(reporter), 0);
    uva__reporter_breach_as(reporter, "AT-03", UVA_SEVERITY_ERROR, "x");
    uva__reporter_breach_as(reporter, "AT-03", UVA_SEVERITY_FATAL, "x");
    ck_assert_int_eq(uva__reporter_count(reporter), 2);
    uva__reporter_release(reporter);
}
END_TEST

/* Reports each kind of breach that it distinguishes. */
static void report_all(struct uva__reporter *reporter)
{
    int count;
    const struct uva__clause *clauses = uva__clauses(&count);

    for (int i = 0; i < count; i++)
        for (int party = 1; party <= UVA_PARTY_EITHER; party++)
            uva__reporter_breach(reporter, clauses[i].id, (enum uva_party)party,
                                 "odd");
    for (int severity = 0; severity <= UVA_SEVERITY_FATAL; severity++)
        uva__reporter_breach_as(reporter, "LC-02", (enum uva_severity)severity,
                                "odd");
}

START_TEST(once_is_once_for_each_clause_party_and_severity)
{
    struct breach_log log;
    struct uva_check options;
    struct uva__reporter *reporter;
    int count, reported;

    (void)uva__clauses(&count);
    breach_log_init(&log);
    options = breach_log_options(&log);
    reporter = reporter_new(&options);
    uva__reporter_set_once(reporter);
    report_all(reporter);
    reported = log.count;
    report_all(reporter);
    /* LC-02 binds the consumer, and is fatal: that kind was reported before */
    ck_assert_int_eq(reported, count * 3 + 3);
    ck_assert_int_eq(log.count, reported);
    uva__reporter_release(reporter);
}
END_TEST

/* Runs `fn` and returns its standard error. */
static void capture(void (*fn)(const struct uva_check *options),
                    const struct uva_check *options, char *text, size_t room)
{
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    size_t size;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(before, 0);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    fn(options);
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(before, STDERR_FILENO), 0);
    (void)close(before);
    rewind(file);
    size = fread(text, 1, room - 1, file);
    text[size] = '\0';
    (void)fclose(file);
}

static void report_two(const struct uva_check *options)
{
    struct uva__reporter *reporter = reporter_new(options);

    uva__reporter_breach(reporter, "DA-24", 0, "odd");
    uva__reporter_note(reporter, "request(%" PRId64 ")", 8, 0);
    uva__reporter_note(reporter, "took %" PRId64 " of %" PRId64, 1, 2);
    uva__reporter_breach(reporter, "AP-06", 0, "said \"%s\"", "two\twords\\");
    uva__reporter_release(reporter);
}

START_TEST(without_a_function_each_breach_is_a_line_on_standard_error)
{
    char text[1024];

    capture(report_two, &(struct uva_check){.name = "hop\n1"}, text,
            sizeof(text));
    ck_assert_str_eq(
        text, "uvarrow: hop; 1: DA-24 (warning, producer): odd\n"
              "uvarrow: hop; 1: AP-06 (error, producer): said \"two?words\\\"; "
              "after thread 1: request(8); thread 1: took 1 of 2\n");
    capture(report_two, &(struct uva_check){.name = "\xFF\x7F\xC3\xA4"}, text,
            sizeof(text));
    ck_assert_ptr_eq(strstr(text, "uvarrow: ??\xC3\xA4: DA-24"), text);
    capture(report_two, NULL, text, sizeof(text));
    ck_assert_ptr_eq(strstr(text, "uvarrow: DA-24 (warning"), text);
}
END_TEST

START_TEST(or_a_json_object)
{
    char text[1024];

    capture(report_two, &(struct uva_check){.name = "h\x01", .json = true},
            text, sizeof(text));
    ck_assert_str_eq(
        text,
        "{\"clause\":\"DA-24\",\"severity\":\"warning\",\"party\":\"producer\","
        "\"name\":\"h\\u0001\",\"message\":\"odd\",\"transcript\":[]}\n"
        "{\"clause\":\"AP-06\",\"severity\":\"error\",\"party\":\"producer\","
        "\"name\":\"h\\u0001\",\"message\":\"said "
        "\\\"two\\u0009words\\\\\\\"\",\"transcript\":[\"thread 1: "
        "request(8)\",\"thread 1: took 1 of 2\"]}\n");
}
END_TEST

START_TEST(every_severity_and_party_has_a_name)
{
    static const char *const SEVERITIES[] = {"note", "warning", "error",
                                             "fatal"};
    static const char *const PARTIES[] = {"", "producer", "consumer", "either"};

    for (int i = 0; i < 4; i++)
        for (int k = 1; k < 4; k++) {
            const struct uva_breach breach = {.clause = "AB-01",
                                              .severity = i,
                                              .party = k,
                                              .name = "",
                                              .message = "m",
                                              .transcript = ""};
            char expected[64], text[128] = "";
            FILE *file = fmemopen(text, sizeof(text), "w");
            ck_assert_ptr_nonnull(file);
            uva__breach_text_plain(&breach, file);
            (void)fclose(file);
            (void)snprintf(expected, sizeof(expected),
                           "uvarrow: AB-01 (%s, %s): m\n", SEVERITIES[i],
                           PARTIES[k]);
            ck_assert_str_eq(text, expected);
        }
}
END_TEST

/* Writes a line with `message` in it to a pipe into `python`. */
static void write_line(FILE *to, const char *message)
{
    uva__breach_text_json(&(struct uva_breach){.clause = "AB-01",
                                               .party = UVA_PARTY_EITHER,
                                               .name = message,
                                               .message = message,
                                               .transcript = message},
                          to);
}

START_TEST(whatever_bytes_there_are_it_is_json_and_utf8)
{
    static const char *const ODD[] = {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80",
                                      "\xC3",
                                      "\xE2\x82",
                                      "\xED\xA0\x80",
                                      "\xF4\x90\x80\x80",
                                      "\xC0\x80",
                                      "a\n\nb\n",
                                      "\n"};
    FILE *python =
        popen(UVA_TEST_PYTHON
              " -c 'import json, sys\n"
              "n = 0\n"
              "for line in sys.stdin.buffer:\n"
              "    o = json.loads(line.decode(\"utf-8\"))\n"
              "    keys = \"clause severity party name message transcript\"\n"
              "    assert list(o) == keys.split(), line\n"
              "    assert \"\\n\".join(o[\"transcript\"]) == "
              "o[\"message\"], line\n"
              "    n += 1\n"
              "assert n == 255 + 8 + 1, n\n'",
              "w");
    char *long_one = malloc(10001);

    ck_assert_ptr_nonnull(python);
    for (int byte = 1; byte < 256; byte++)
        write_line(python, (char[]){'a', (char)byte, 'b', '\0'});
    for (int i = 0; i < 8; i++)
        write_line(python, ODD[i]);
    memset(long_one, '\x1F', 10000);
    long_one[10000] = '\0';
    write_line(python, long_one);
    free(long_one);
    ck_assert_int_eq(pclose(python), 0);
}
END_TEST

START_TEST(utf8_is_told_from_what_is_not)
{
    static const struct {
        const char *text;
        size_t size;
    } ROWS[] = {{"", 1},
                {"a", 1},
                {"\x7F", 1},
                {"\xC2\x80", 2},
                {"\xDF\xBF", 2},
                {"\xE0\xA0\x80", 3},
                {"\xED\x9F\xBF", 3},
                {"\xEE\x80\x80", 3},
                {"\xF0\x90\x80\x80", 4},
                {"\xF4\x8F\xBF\xBF", 4},
                {"\x80", 0},
                {"\xC1\xBF", 0},
                {"\xC2", 0},
                {"\xC2\xC0", 0},
                {"\xE0\x9F\xBF", 0},
                {"\xE1\x80", 0},
                {"\xED\xA0\x80", 0},
                {"\xF0\x8F\x80\x80", 0},
                {"\xF1\x80\x80\x2A", 0},
                {"\xF4\x90\x80\x80", 0},
                {"\xF5\x80\x80\x80", 0},
                {"\xFF", 0}};

    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        ck_assert_msg(uva__utf8_size(ROWS[i].text) == ROWS[i].size, "%zu", i);
        ck_assert(uva__utf8_is_sound(ROWS[i].text) == (ROWS[i].size != 0));
    }
    ck_assert(uva__utf8_is_sound("a\xC3\xA4z"));
    ck_assert(!uva__utf8_is_sound("a\xC3\xA4z\xC3"));
}
END_TEST

/* ---- the transcript ----------------------------------------------------- */

START_TEST(the_last_calls_are_kept_the_newest_last)
{
    struct uva__transcript transcript = {0};
    char text[UVA__TRANSCRIPT_SIZE], expected[UVA__TRANSCRIPT_SIZE];
    size_t used = 0;

    uva__transcript_write(&transcript, text);
    ck_assert_str_eq(text, "");
    for (int i = 0; i < 100; i++)
        uva__transcript_note(&transcript, "call %" PRId64 " of %" PRId64, i,
                             -i);
    uva__transcript_write(&transcript, text);
    for (int i = 100 - UVA__TRANSCRIPT_NOTES; i < 100; i++)
        used += (size_t)snprintf(expected + used, sizeof(expected) - used,
                                 "%sthread 1: call %d of %d",
                                 used == 0 ? "" : "\n", i, -i);
    ck_assert_str_eq(text, expected);
}
END_TEST

START_TEST(a_call_under_way_is_left_out)
{
    struct uva__transcript transcript = {0};
    char text[UVA__TRANSCRIPT_SIZE];

    uva__transcript_note(&transcript, "one", 0, 0);
    uva__transcript_note(&transcript, "two", 0, 0);
    uva__atomic64_store(&transcript.notes[1].stamp, 0);
    uva__transcript_write(&transcript, text);
    ck_assert_str_eq(text, "thread 1: one");
    uva__atomic64_store(&transcript.notes[0].stamp, 33); /* a round later */
    uva__transcript_write(&transcript, text);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut)
{
    static const char FORMAT[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678901234567890123456789012345678901234567890123456789012345678"
        "9";
    struct uva__transcript transcript = {0};
    char text[UVA__TRANSCRIPT_SIZE];

    for (int i = 0; i < UVA__TRANSCRIPT_NOTES; i++)
        uva__transcript_note(&transcript, FORMAT, 0, 0);
    uva__transcript_write(&transcript, text);
    ck_assert_uint_eq(strlen(text), UVA__TRANSCRIPT_SIZE - 1);
}
END_TEST

struct noter {
    struct uva__transcript *transcript;
    pthread_barrier_t *barrier;
};

static void *note_once(void *ctx)
{
    struct noter *noter = ctx;

    uva__transcript_note(noter->transcript, "here", 0, 0);
    pthread_barrier_wait(noter->barrier);
    return NULL;
}

/* So many threads at once, each of which adds notes. */
static void note_from(struct uva__transcript *transcript, int count)
{
    pthread_t threads[UVA__TRANSCRIPT_THREADS + 8];
    pthread_barrier_t barrier;
    struct noter noter = {transcript, &barrier};

    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, note_once, &noter),
                         0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

START_TEST(threads_are_told_apart_by_small_numbers)
{
    struct uva__transcript transcript = {0};
    char text[UVA__TRANSCRIPT_SIZE];

    uva__transcript_note(&transcript, "here", 0, 0);
    note_from(&transcript, 2);
    uva__transcript_note(&transcript, "again", 0, 0);
    uva__transcript_write(&transcript, text);
    ck_assert_str_eq(text, "thread 1: here\nthread 2: here\nthread 3: here\n"
                           "thread 1: again");
    uva__transcript_write(&transcript, text); /* and keeps them */
    ck_assert_ptr_nonnull(strstr(text, "thread 3: here\nthread 1: again"));
}
END_TEST

START_TEST(threads_beyond_those_told_apart_share_a_number)
{
    struct uva__transcript transcript = {0};
    char text[UVA__TRANSCRIPT_SIZE];

    transcript.threads.count = UVA__TRANSCRIPT_THREADS;
    uva__transcript_note(&transcript, "here", 0, 0);
    uva__transcript_write(&transcript, text);
    ck_assert_str_eq(text, "thread 65: here");
    ck_assert_int_eq(transcript.threads.count, UVA__TRANSCRIPT_THREADS);
}
END_TEST

struct threads_run {
    struct uva__reporter *reporter;
    int notes;
};

static void *note_and_report(void *ctx)
{
    struct threads_run *threads_run = ctx;

    for (int i = 0; i < threads_run->notes; i++) {
        uva__reporter_note(threads_run->reporter, "a %" PRId64 ", b %" PRId64,
                           i, i);
        uva__reporter_perturb(threads_run->reporter);
        if (i % 100 == 99)
            uva__reporter_breach(threads_run->reporter, "TH-01", 0, "%d", i);
    }
    uva__reporter_release(threads_run->reporter);
    return NULL;
}

START_TEST(many_threads_may_note_and_tell_at_once)
{
    struct breach_log log;
    struct uva_check options;
    struct threads_run threads_run = {.notes = 500};
    pthread_t threads[4];

    breach_log_init(&log);
    options = breach_log_options(&log);
    options.perturb_seed = 7;
    threads_run.reporter = reporter_new(&options);
    for (int i = 0; i < 4; i++) {
        uva__reporter_acquire(threads_run.reporter);
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, note_and_report, &threads_run),
            0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(uva__reporter_count(threads_run.reporter), 4 * 5);
    ck_assert_int_eq(log.count, 4 * 5);
    uva__reporter_release(threads_run.reporter);
    ck_assert_int_eq(log.freed, 1);
}
END_TEST

/* ---- the catalogue ------------------------------------------------------ */

START_TEST(every_clause_is_there_once_with_all_that_belongs_to_it)
{
    int count;
    const struct uva__clause *clauses = uva__clauses(&count);

    ck_assert_int_gt(count, 150);
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(strlen(clauses[i].id), 5);
        ck_assert_ptr_eq(uva__clause_find(clauses[i].id), &clauses[i]);
        ck_assert_int_ge(clauses[i].party, UVA_PARTY_PRODUCER);
        ck_assert_int_le(clauses[i].party, UVA_PARTY_EITHER);
        ck_assert_int_ge(clauses[i].severity, UVA_SEVERITY_NOTE);
        ck_assert_int_le(clauses[i].severity, UVA_SEVERITY_FATAL);
        ck_assert_uint_gt(strlen(clauses[i].rule), 5);
        if (i > 0 && strncmp(clauses[i].id, clauses[i - 1].id, 2) == 0)
            ck_assert_int_gt(strcmp(clauses[i].id, clauses[i - 1].id), 0);
    }
}
END_TEST

START_TEST(what_is_no_clause_is_not_found)
{
    ck_assert_ptr_null(uva__clause_find("AP-99"));
    ck_assert_ptr_null(uva__clause_find(""));
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("reporter");

    tcase_add_test(tcase, without_options_there_are_defaults);
    tcase_add_test(tcase, options_are_kept_and_the_name_copied);
    tcase_add_test(tcase, bad_options_are_refused_and_nothing_is_taken);
    tcase_add_test(tcase, without_memory_nothing_is_taken);
    tcase_add_test(tcase, the_last_count_frees_all_and_then_the_context);
    tcase_add_test(tcase, one_that_is_undone_leaves_the_context_alone);
    tcase_add_test(tcase, a_breach_is_told_as_the_catalogue_has_it);
    tcase_add_test(tcase, only_errors_and_worse_are_counted);
    tcase_add_test(tcase, once_is_once_for_each_clause_party_and_severity);
    tcase_add_test(tcase,
                   without_a_function_each_breach_is_a_line_on_standard_error);
    tcase_add_test(tcase, or_a_json_object);
    tcase_add_test(tcase, every_severity_and_party_has_a_name);
    tcase_add_test(tcase, whatever_bytes_there_are_it_is_json_and_utf8);
    tcase_add_test(tcase, utf8_is_told_from_what_is_not);
    tcase_add_test(tcase, the_last_calls_are_kept_the_newest_last);
    tcase_add_test(tcase, a_call_under_way_is_left_out);
    tcase_add_test(tcase, a_line_that_is_too_long_is_cut);
    tcase_add_test(tcase, threads_are_told_apart_by_small_numbers);
    tcase_add_test(tcase, threads_beyond_those_told_apart_share_a_number);
    tcase_add_test(tcase, many_threads_may_note_and_tell_at_once);
    tcase_add_test(tcase,
                   every_clause_is_there_once_with_all_that_belongs_to_it);
    tcase_add_test(tcase, what_is_no_clause_is_not_found);
    return suite_main("reporter", NULL, NULL, tcase, NULL);
}
