/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream with a check. Correct calls pass unchanged and without a
 * report; a fault is reported by its clause alone, and has no more effect than
 * without the check. */
#include "check/device_stream_check.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/error_text.h"
#include "support/check_suite.h"
#include "support/plain_tree.h"
#include "support/spoiled_stream.h"
#include "uvarrow/arrow.h"

/* ---- correct ------------------------------------------------------------ */

START_TEST(a_stream_that_is_read_to_its_end_gives_no_report)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 3);
    ck_assert_int_eq(fixture.stream.device_type, ARROW_DEVICE_CPU);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), ENODATA);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), ENODATA);
    ck_assert_int_eq(fixture.calls, 7);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(deep_and_perturbed_it_gives_no_report_either)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct spoiled_stream fixture;
        struct uva_check options;
        spoiled_stream_init(&fixture, 3);
        options = spoiled_stream_options(&fixture);
        options.deep = true;
        options.perturb_seed = seed;
        ck_assert_int_eq(uva__reporter_new(&options, &fixture.reporter, NULL),
                         0);
        ck_assert_int_eq(
            uva__device_stream_check(fixture.reporter, &fixture.stream, NULL),
            0);
        ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
        while (spoiled_stream_get_next(&fixture) == 0)
            continue;
        spoiled_stream_close(&fixture);
    }
}
END_TEST

START_TEST(ds13_what_was_given_outlives_the_stream)
{
    struct spoiled_stream fixture;
    struct ArrowSchema schema;
    struct ArrowDeviceArray chunk;
    struct uva_check options;

    spoiled_stream_init(&fixture, 1);
    options = spoiled_stream_options(&fixture);
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, &options, NULL),
                     0);
    ck_assert_int_eq(fixture.stream.get_schema(&fixture.stream, &schema), 0);
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    fixture.stream.release(&fixture.stream);
    ck_assert_str_eq(schema.children[0]->format, "l");
    ck_assert_int_eq(*(const int64_t *)chunk.array.children[0]->buffers[1], 0);
    ck_assert_int_eq(fixture.log.freed, 0);
    uva_schema_release(&schema);
    uva_array_release(&chunk);
    ck_assert_int_eq(fixture.log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
    breach_log_expect(&fixture.log, "");
}
END_TEST

START_TEST(ds18_it_may_be_moved_between_calls)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArrayStream elsewhere;
    struct ArrowDeviceArray chunk;

    spoiled_stream_open(&fixture, 2);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    elsewhere = fixture.stream;
    memset(&fixture.stream, 0xDD, sizeof(fixture.stream));
    fixture.stream.release = NULL;
    ck_assert_int_eq(elsewhere.get_next(&elsewhere, &chunk), 0);
    uva_array_release(&chunk);
    elsewhere.release(&elsewhere);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(without_options_all_is_checked)
{
    struct spoiled_stream fixture;

    spoiled_stream_init(&fixture, 1);
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, NULL, NULL), 0);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    fixture.stream.release(&fixture.stream);
    ck_assert_int_eq(fixture.releases, 1);
}
END_TEST

START_TEST(a_failure_passes_with_its_code_and_text)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    fixture.text = "the disk \xC3\xA4";
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    ck_assert_str_eq(spoiled_stream_get_last_error(&fixture), fixture.text);
    ck_assert_str_eq(spoiled_stream_get_last_error(&fixture), fixture.text);
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EIO);
    fixture.text = NULL;
    ck_assert_ptr_null(spoiled_stream_get_last_error(&fixture));
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds12_the_text_is_spoiled_by_the_next_call)
{
    struct spoiled_stream fixture;
    const char *text;

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    fixture.text = "abc";
    for (int i = 0; i < 30; i++) {
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
        text = spoiled_stream_get_last_error(&fixture);
        ck_assert_ptr_ne(text, fixture.text);
        ck_assert_str_eq(text, "abc");
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
        ck_assert_str_eq(text, "\xDD\xDD\xDD");
    }
    text = spoiled_stream_get_last_error(&fixture);
    fixture.stream.release(&fixture.stream);
    ck_assert_str_eq(text, "\xDD\xDD\xDD"); /* in quarantine */
    ck_assert_int_ge(faulty_allocator_live(&fixture.memory), UVA__ERROR_TEXTS);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(da09_all_bytes_of_a_chunk_pass)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk, before;

    spoiled_stream_open(&fixture, 1);
    memset(&chunk, 0x77, sizeof(chunk));
    chunk.array.release = NULL;
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    spoiled_stream_chunk(&before);
    ck_assert_int_eq(chunk.array.length, before.array.length);
    ck_assert_int_eq(chunk.device_id, -1);
    ck_assert_ptr_null(chunk.sync_event);
    ck_assert_int_eq(
        memcmp(chunk.reserved, before.reserved, sizeof(before.reserved)), 0);
    uva_array_release(&chunk);
    uva_array_release(&before);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds09_of_the_end_only_its_release_is_to_be_read)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray end;
    unsigned char poison[sizeof(end.sync_event)];

    memset(poison, 0xDD, sizeof(poison));
    spoiled_stream_open(&fixture, 0);
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &end), 0);
    ck_assert(end.array.release == NULL);
    ck_assert_int_eq(memcmp(&end.sync_event, poison, sizeof(poison)), 0);
    spoiled_stream_close(&fixture);
}
END_TEST

/* ---- the consumer's faults ---------------------------------------------- */

static void expect_consumer(struct spoiled_stream *fixture, const char *clause)
{
    breach_log_expect_one(&fixture->log, clause, UVA_PARTY_CONSUMER,
                          strcmp(clause, "DS-10") == 0 ? UVA_SEVERITY_ERROR
                                                       : UVA_SEVERITY_FATAL);
}

START_TEST(ds06_nothing_is_called_on_a_released_stream)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArrayStream copy;

    spoiled_stream_open(&fixture, 1);
    copy = fixture.stream;
    fixture.stream.release(&fixture.stream);
    for (int i = 0; i < 2; i++) { /* by the struct, and by a copy */
        const int calls = fixture.calls;
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), EINVAL);
        expect_consumer(&fixture, "DS-06");
        ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EINVAL);
        expect_consumer(&fixture, "DS-06");
        ck_assert_ptr_null(spoiled_stream_get_last_error(&fixture));
        expect_consumer(&fixture, "DS-06");
        ck_assert_int_eq(fixture.calls, calls);
        fixture.stream = copy;
    }
    fixture.stream.release = NULL;
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds06_nor_by_a_struct_it_was_moved_from)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArrayStream moved;

    spoiled_stream_open(&fixture, 1);
    moved = fixture.stream;
    fixture.stream.release = NULL;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EINVAL);
    expect_consumer(&fixture, "DS-06");
    moved.release(&fixture.stream);
    expect_consumer(&fixture, "DS-14");
    ck_assert_int_eq(fixture.releases, 0);
    fixture.stream = moved;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds14_it_is_released_once)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArrayStream copy;

    spoiled_stream_open(&fixture, 1);
    copy = fixture.stream;
    fixture.stream.release(&fixture.stream);
    copy.release(&copy);
    ck_assert(copy.release == NULL);
    expect_consumer(&fixture, "DS-14");
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds10_a_text_is_asked_for_only_after_a_failure)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 1);
    fixture.text = "old";
    ck_assert_str_eq(spoiled_stream_get_last_error(&fixture), "old");
    expect_consumer(&fixture, "DS-10");
    fixture.code = EIO;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    fixture.code = 0;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
    spoiled_stream_get_last_error(&fixture);
    expect_consumer(&fixture, "DS-10");
    spoiled_stream_close(&fixture);
}
END_TEST

static void call_all(struct spoiled_stream *fixture)
{
    const int calls = fixture->calls;

    ck_assert_int_eq(spoiled_stream_get_next(fixture), EINVAL);
    ck_assert_int_eq(spoiled_stream_get_schema(fixture), EINVAL);
    ck_assert_ptr_null(spoiled_stream_get_last_error(fixture));
    ck_assert_int_eq(fixture->calls, calls);
}

static void *call_elsewhere(void *ctx)
{
    call_all(ctx);
    return NULL;
}

static void call_all_elsewhere(struct spoiled_stream *fixture)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, call_elsewhere, fixture), 0);
    pthread_join(thread, NULL);
}

START_TEST(ds16_one_call_at_a_time_is_let_through)
{
    for (int i = 0; i < 2; i++) {
        struct spoiled_stream fixture;
        spoiled_stream_open(&fixture, 2);
        fixture.inside = i == 0 ? call_all : call_all_elsewhere;
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
        ck_assert_int_eq(fixture.log.entries[0].party, UVA_PARTY_CONSUMER);
        ck_assert_int_eq(fixture.log.entries[0].severity, UVA_SEVERITY_FATAL);
        breach_log_expect(&fixture.log, "DS-16 DS-16 DS-16");
        ck_assert_int_eq(spoiled_stream_get_next(&fixture),
                         0); /* and the next call is */
        spoiled_stream_close(&fixture);
    }
}
END_TEST

static void release_inside(struct spoiled_stream *fixture)
{
    fixture->stream.release(&fixture->stream);
    ck_assert(fixture->stream.release == NULL);
    ck_assert_int_eq(fixture->releases, 0);
}

START_TEST(ds16_a_release_that_overlaps_waits_for_the_call)
{
    struct spoiled_stream fixture;

    spoiled_stream_open(&fixture, 2);
    fixture.inside = release_inside;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    ck_assert_int_eq(fixture.releases, 1);
    expect_consumer(&fixture, "DS-16");
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds17_private_data_is_left_alone)
{
    struct spoiled_stream fixture;
    void *data;

    spoiled_stream_open(&fixture, 2);
    data = fixture.stream.private_data;
    fixture.stream.private_data = (char *)data + 1;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    expect_consumer(&fixture, "DS-17");
    fixture.stream.private_data = (char *)data - 1;
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    expect_consumer(&fixture, "DS-17");
    fixture.stream.private_data = data;
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(ds17_what_leads_nowhere_is_refused)
{
    static char nothing[128] __attribute__((aligned(64)));
    void *const wrong[] = {NULL, nothing + 40};
    struct spoiled_stream fixture;
    void *data;

    spoiled_stream_open(&fixture, 1);
    data = fixture.stream.private_data;
    for (int i = 0; i < 2; i++) {
        fixture.stream.private_data = wrong[i];
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), EINVAL);
        ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EINVAL);
        ck_assert_ptr_null(spoiled_stream_get_last_error(&fixture));
        fixture.stream.release(&fixture.stream);
    }
    ck_assert_int_eq(fixture.calls, 0);
    fixture.stream.private_data = data;
    spoiled_stream_close(&fixture);
}
END_TEST

static void no_release(struct ArrowArray *array)
{
    (void)array;
    ck_abort_msg("called");
}

static void no_schema_release(struct ArrowSchema *schema)
{
    (void)schema;
    ck_abort_msg("called");
}

START_TEST(ds19_after_a_failure_there_is_nothing_to_release)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk = {.array.release = no_release};
    struct ArrowSchema schema = {.release = no_schema_release};

    spoiled_stream_open(&fixture, 1);
    fixture.code = EIO;
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), EIO);
    uva_array_release(&chunk);
    expect_consumer(&fixture, "DS-19");
    ck_assert_int_eq(fixture.stream.get_schema(&fixture.stream, &schema), EIO);
    uva_schema_release(&schema);
    expect_consumer(&fixture, "DS-19");
    spoiled_stream_close(&fixture);
}
END_TEST

/* `no_release` is left out: a check without `keep` cannot report it, as the
 * reporter is freed by then. */
START_TEST(without_keep_a_failed_call_leaves_everything_as_it_was)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk, chunk_before;
    struct ArrowSchema schema, schema_before;
    struct uva_check options;

    memset(&chunk, 0x5A, sizeof(chunk));
    memset(&schema, 0x5A, sizeof(schema));
    chunk_before = chunk;
    schema_before = schema;
    spoiled_stream_init(&fixture, 1);
    options = spoiled_stream_options(&fixture);
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, &options, NULL),
                     0);
    fixture.code = EIO;
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), EIO);
    ck_assert_int_eq(fixture.stream.get_schema(&fixture.stream, &schema), EIO);
    ck_assert_mem_eq(&chunk, &chunk_before, sizeof(chunk));
    ck_assert_mem_eq(&schema, &schema_before, sizeof(schema));
    fixture.stream.release(&fixture.stream);
    breach_log_expect(&fixture.log, "");
    ck_assert_int_eq(fixture.log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
}
END_TEST

START_TEST(of_two_checks_neither_takes_the_others_trap_for_a_gift)
{
    struct spoiled_stream fixture;
    struct uva_check options;

    spoiled_stream_open(&fixture, 1);
    options = spoiled_stream_options(&fixture);
    options.free_ctx = NULL;
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, &options, NULL),
                     0);
    fixture.code = EIO;
    ck_assert_int_eq(spoiled_stream_get_schema(&fixture), EIO);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
    spoiled_stream_close(&fixture);
}
END_TEST

START_TEST(lc02_a_chunk_is_released_once)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk, copy;

    spoiled_stream_open(&fixture, 1);
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    copy = chunk;
    uva_array_release(&chunk);
    uva_array_release(&copy);
    expect_consumer(&fixture, "LC-02");
    spoiled_stream_close(&fixture);
}
END_TEST

/* ---- conclude ----------------------------------------------------------- */

/* A stream of one chunk with a check that keeps. */
static void open_kept(struct spoiled_stream *fixture)
{
    struct uva_check options;

    spoiled_stream_init(fixture, 1);
    options = spoiled_stream_options(fixture);
    options.keep = true;
    ck_assert_int_eq(uva_check_device_stream(&fixture->stream, &options, NULL),
                     0);
}

static void expect_gone(struct spoiled_stream *fixture)
{
    ck_assert_int_eq(fixture->releases, 1);
    ck_assert_int_eq(fixture->log.freed, 1);
    ck_assert_int_eq(faulty_allocator_live(&fixture->memory), 0);
    ck_assert_int_eq(plain_live(), 0);
    breach_log_expect(&fixture->log, "");
}

START_TEST(a_sound_stream_is_concluded_without_a_word)
{
    struct spoiled_stream fixture;

    open_kept(&fixture);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
    fixture.stream.release(&fixture.stream);
    ck_assert_int_eq(fixture.log.freed, 0);
    ck_assert_int_eq(uva_check_conclude_device_stream(&fixture.stream), 0);
    expect_gone(&fixture);
}
END_TEST

START_TEST(what_is_kept_tells_of_calls_that_come_too_late)
{
    struct spoiled_stream fixture;
    struct ArrowDeviceArray chunk, copy;

    open_kept(&fixture);
    ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
    copy = chunk;
    fixture.stream.release(&fixture.stream);
    uva_array_release(&chunk);
    uva_array_release(&copy);
    ck_assert_int_eq(spoiled_stream_get_next(&fixture), EINVAL);
    breach_log_expect(&fixture.log, "LC-02 DS-06");
    ck_assert_int_eq(uva_check_conclude_device_stream(&fixture.stream), 2);
    expect_gone(&fixture);
}
END_TEST

START_TEST(ds14_and_lc02_what_was_never_released_is_told)
{
    for (int keep = 0; keep < 2; keep++) {
        struct spoiled_stream fixture;
        struct ArrowDeviceArray chunk;
        if (keep == 1) {
            open_kept(&fixture);
        } else {
            struct uva_check options;
            spoiled_stream_init(&fixture, 1);
            options = spoiled_stream_options(&fixture);
            ck_assert_int_eq(
                uva_check_device_stream(&fixture.stream, &options, NULL), 0);
        }
        ck_assert_int_eq(fixture.stream.get_next(&fixture.stream, &chunk), 0);
        ck_assert_int_eq(uva_check_conclude_device_stream(&fixture.stream), 2);
        ck_assert(fixture.stream.release == NULL);
        ck_assert_int_eq(fixture.log.entries[0].severity, UVA_SEVERITY_ERROR);
        breach_log_expect(&fixture.log, "DS-14 LC-02");
        ck_assert_int_eq(fixture.log.freed, 0);
        uva_array_release(&chunk); /* which is still allowed */
        expect_gone(&fixture);
    }
}
END_TEST

START_TEST(what_is_not_checked_cannot_be_concluded)
{
    struct ArrowDeviceArrayStream none = {0};

    ck_assert_int_eq(uva_check_conclude_device_stream(&none), 0);
}
END_TEST

/* ---- bad input ---------------------------------------------------------- */

START_TEST(what_is_no_stream_is_refused_without_a_word)
{
    struct spoiled_stream fixture;
    struct uva_check options;
    void (*release)(struct ArrowDeviceArrayStream * self);

    spoiled_stream_init(&fixture, 1);
    options = spoiled_stream_options(&fixture);
    ck_assert_int_eq(uva_check_device_stream(NULL, &options, NULL), EINVAL);
    release = fixture.stream.release;
    fixture.stream.release = NULL;
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, &options, NULL),
                     EINVAL);
    options.reserved[0] = &fixture;
    fixture.stream.release = release;
    ck_assert_int_eq(uva_check_device_stream(&fixture.stream, &options, NULL),
                     EINVAL);
    breach_log_expect(&fixture.log, "");
    ck_assert_int_eq(fixture.log.freed, 0);
    ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
}
END_TEST

START_TEST(wherever_memory_ends_the_stream_goes_on_or_is_as_it_was)
{
    for (long fail_at = 1;; fail_at++) {
        struct spoiled_stream fixture;
        struct uva_check options;
        struct ArrowDeviceArrayStream before;
        int code;
        spoiled_stream_init(&fixture, 2);
        options = spoiled_stream_options(&fixture);
        fixture.memory.fail_at = fail_at;
        before = fixture.stream;
        code = uva_check_device_stream(&fixture.stream, &options, NULL);
        if (code != 0) {
            ck_assert_int_eq(code, ENOMEM);
            ck_assert_int_eq(memcmp(&before, &fixture.stream, sizeof(before)),
                             0);
            ck_assert_int_eq(fixture.log.freed, 0);
        }
        ck_assert_int_eq(spoiled_stream_get_schema(&fixture), 0);
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), 0);
        fixture.code = EIO;
        fixture.text = "no";
        ck_assert_int_eq(spoiled_stream_get_next(&fixture), EIO);
        ck_assert_str_eq(spoiled_stream_get_last_error(&fixture), "no");
        fixture.stream.release(&fixture.stream);
        ck_assert_int_eq(fixture.releases, 1);
        ck_assert_int_eq(plain_live(), 0);
        ck_assert_int_eq(faulty_allocator_live(&fixture.memory), 0);
        breach_log_expect(&fixture.log, "");
        ck_assert_int_eq(fixture.log.freed, code == 0 ? 1 : 0);
        if (!faulty_allocator_has_failed(&fixture.memory))
            break;
    }
}
END_TEST

static TCase *consumers(void)
{
    TCase *tcase = tcase_create("consumer");

    tcase_add_test(tcase, ds06_nothing_is_called_on_a_released_stream);
    tcase_add_test(tcase, ds06_nor_by_a_struct_it_was_moved_from);
    tcase_add_test(tcase, ds14_it_is_released_once);
    tcase_add_test(tcase, ds10_a_text_is_asked_for_only_after_a_failure);
    tcase_add_test(tcase, ds16_one_call_at_a_time_is_let_through);
    tcase_add_test(tcase, ds16_a_release_that_overlaps_waits_for_the_call);
    tcase_add_test(tcase, ds17_private_data_is_left_alone);
    tcase_add_test(tcase, ds17_what_leads_nowhere_is_refused);
    tcase_add_test(tcase, ds19_after_a_failure_there_is_nothing_to_release);
    tcase_add_test(tcase,
                   without_keep_a_failed_call_leaves_everything_as_it_was);
    tcase_add_test(tcase,
                   of_two_checks_neither_takes_the_others_trap_for_a_gift);
    tcase_add_test(tcase, lc02_a_chunk_is_released_once);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("device_stream_check");
    TCase *tcase = tcase_create("both");

    tcase_add_test(tcase, a_stream_that_is_read_to_its_end_gives_no_report);
    tcase_add_test(tcase, deep_and_perturbed_it_gives_no_report_either);
    tcase_add_test(tcase, ds13_what_was_given_outlives_the_stream);
    tcase_add_test(tcase, ds18_it_may_be_moved_between_calls);
    tcase_add_test(tcase, without_options_all_is_checked);
    tcase_add_test(tcase, a_failure_passes_with_its_code_and_text);
    tcase_add_test(tcase, ds12_the_text_is_spoiled_by_the_next_call);
    tcase_add_test(tcase, da09_all_bytes_of_a_chunk_pass);
    tcase_add_test(tcase, ds09_of_the_end_only_its_release_is_to_be_read);
    tcase_add_test(tcase, a_sound_stream_is_concluded_without_a_word);
    tcase_add_test(tcase, what_is_kept_tells_of_calls_that_come_too_late);
    tcase_add_test(tcase, ds14_and_lc02_what_was_never_released_is_told);
    tcase_add_test(tcase, what_is_not_checked_cannot_be_concluded);
    tcase_add_test(tcase, what_is_no_stream_is_refused_without_a_word);
    tcase_add_test(tcase,
                   wherever_memory_ends_the_stream_goes_on_or_is_as_it_was);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, consumers());
    return suite_run(suite);
}
