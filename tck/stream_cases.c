/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role stream. The suite reads blocking streams, one call at a
 * time, and checks everything it gets. Each case plays some readings. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tck/cases.h"
#include "tck/checker.h"
#include "tck/expected_data.h"
#include "tck/producer_session.h"
#include "tck/thread_barrier.h"
#include "uvarrow/arrow.h"

/* Numbers of the readings: bits of a case's `arg`. */
enum {
    WHOLE = 0, /* read to the end */
    EMPTY,     /* a stream without batches */
    SLOW,
    EARLY,     /* the stream is released after the third batch */
    UNREAD,    /* the stream is released without a read */
    KEPT,      /* batches and schema are released after the stream */
    MOVED,     /* the stream's struct is moved after each call */
    DESCRIBED, /* get_schema is called again and again */
    FAILS,     /* fails after three batches */
    FAILS_FIRST,
    BY_THREADS, /* batches are released by other threads */
    READINGS
};

#define BIT(reading) (UINT64_C(1) << (reading))
#define ALL_FREED    (UINT64_C(1) << 63)
#define WHOLES                                                                 \
    (BIT(WHOLE) | BIT(EMPTY) | BIT(SLOW) | BIT(KEPT) | BIT(MOVED) |            \
     BIT(DESCRIBED))
#define EVERY                                                                  \
    (WHOLES | BIT(EARLY) | BIT(UNREAD) | BIT(FAILS) | BIT(FAILS_FIRST) |       \
     BIT(BY_THREADS))

enum { ARRAYS = 16 };

/* How a stream is read. */
struct manner {
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t reads; /* calls of get_next that give a batch; then one more,
                      unless `stops` */
    bool stops;
    bool keeps;
    bool moves;
    bool query_call;
    bool jobs_in_flight;
};

static const struct manner MANNERS[READINGS] = {
    [WHOLE] = {.plan = UVA_SUBJECT_WHOLE, .batches = 10, .reads = 10},
    [EMPTY] = {.plan = UVA_SUBJECT_WHOLE, .batches = 0, .reads = 0},
    [SLOW] = {.plan = UVA_SUBJECT_SLOW, .batches = 4, .reads = 4},
    [EARLY] = {.plan = UVA_SUBJECT_ENDLESS, .reads = 3, .stops = true},
    [UNREAD] = {.plan = UVA_SUBJECT_WHOLE, .batches = 3, .stops = true},
    [KEPT] = {.plan = UVA_SUBJECT_WHOLE,
              .batches = 6,
              .reads = 6,
              .keeps = true},
    [MOVED] = {.plan = UVA_SUBJECT_WHOLE,
               .batches = 5,
               .reads = 5,
               .moves = true},
    [DESCRIBED] = {.plan = UVA_SUBJECT_WHOLE,
                   .batches = 3,
                   .reads = 3,
                   .query_call = true},
    [FAILS] = {.plan = UVA_SUBJECT_FAILS, .batches = 3, .reads = 3},
    [FAILS_FIRST] = {.plan = UVA_SUBJECT_FAILS_FIRST},
    [BY_THREADS] = {.plan = UVA_SUBJECT_WHOLE,
                    .batches = 6,
                    .reads = 6,
                    .keeps = true,
                    .jobs_in_flight = true},
};

/* A stream being read. Lives as long as its process. */
struct reading {
    struct uva__case_run *run;
    const struct manner *manner;
    struct ArrowDeviceArrayStream *stream; /* where its struct is now */
    ArrowDeviceType device_type;
    struct ArrowSchema schema;
    struct ArrowDeviceArray arrays[ARRAYS]; /* batches that are kept */
    int64_t kept;
    struct uva__atomic64 next; /* next batch for a thread to release */
};

/* ---- calls -------------------------------------------------------------- */

/* Checks the invariants of each call. */
static void reading_inspect(struct reading *r)
{
    if (r->stream->device_type != r->device_type)
        uva__case_run_breach(r->run, "DS-05", "device_type changed to %d",
                             (int)r->stream->device_type);
}

/* A call has failed: checks that `code` is an errno and has a text. */
static void reading_check_error(struct reading *r, int code)
{
    const char *text;

    uva__case_run_note(r->run, "   failed with %d", code);
    if (code != EIO)
        uva__case_run_breach(r->run, "ER-02", "EIO arrived as %d", code);
    if (code < 0)
        uva__case_run_breach(r->run, "DS-07", "an error of %d, below 0", code);
    text = r->stream->get_last_error(r->stream);
    uva__case_run_note(r->run, "   \"%s\"", text != NULL ? text : "(none)");
    if (text != NULL && strlen(text) > 65536)
        uva__case_run_breach(r->run, "DS-11", "a text without an end");
}

static bool reading_get_schema(struct reading *r, struct ArrowSchema *out)
{
    int code;

    uva__expected_data_fill(out, sizeof(*out));
    code = r->stream->get_schema(r->stream, out);
    uva__case_run_note(r->run, "get_schema: %d", code);
    reading_inspect(r);
    if (code != 0) {
        reading_check_error(r, code);
        return false;
    }
    if (out->release == NULL)
        uva__case_run_fail(r->run, "LC-01: get_schema gave a released schema");
    uva__expected_data_check_schema(r->run, out, "DS-01");
    return true;
}

/* Gets the schema once more and checks that it is a copy of the first. */
static void reading_call(struct reading *r)
{
    struct ArrowSchema schema;

    if (!reading_get_schema(r, &schema)) {
        uva__case_run_breach(r->run, "DS-21",
                             "get_schema failed when asked "
                             "again");
        return;
    }
    schema.release(&schema);
    if (schema.release != NULL)
        uva__case_run_breach(r->run, "LC-07", "a schema was not marked");
}

/* Moves the stream to another place, and overwrites the old one. */
static void reading_move(struct reading *r)
{
    struct ArrowDeviceArrayStream *place =
        uva__case_run_alloc(r->run, sizeof(*place));

    *place = *r->stream;
    uva__expected_data_fill(r->stream, sizeof(*r->stream));
    r->stream = place;
}

/* ---- batches ------------------------------------------------------------ */

static void reading_receive(struct reading *r, struct ArrowDeviceArray *array,
                            int64_t ordinal)
{
    if (uva__expected_data_is_filled(&array->array.release, sizeof(void *)))
        uva__case_run_fail(r->run,
                           "DS-09: get_next returned 0 without a result");
    uva__checker_check_array(r->run, &r->schema, array);
    if (array->device_type != r->device_type)
        uva__case_run_breach(r->run, "DS-03", "a batch of device_type %d",
                             (int)array->device_type);
    if (!uva__expected_data_check_array(r->run, array, ordinal, "DS-01",
                                        "DS-01"))
        array->array.release(&array->array);
    else if (r->manner->keeps)
        r->arrays[r->kept++] = *array;
    else
        uva__expected_data_release_array(r->run, array, ordinal);
}

/* Calls get_next once. Returns false if it gave no batch. */
static bool reading_get_next(struct reading *r, int64_t ordinal, int *code)
{
    struct ArrowDeviceArray array;

    uva__expected_data_fill(&array, sizeof(array));
    *code = r->stream->get_next(r->stream, &array);
    uva__case_run_note(r->run, "get_next: %d%s", *code,
                       *code == 0 && array.array.release == NULL ? ", the end"
                                                                 : "");
    reading_inspect(r);
    if (*code != 0) {
        reading_check_error(r, *code);
        /* A checked run puts a trap there for a reader that releases it
         * anyway. */
        if (!r->run->checked && array.array.release != NULL &&
            !uva__expected_data_is_filled(&array.array.release, sizeof(void *)))
            uva__case_run_breach(r->run, "DS-19",
                                 "a failed get_next left an array that looks "
                                 "live");
        return false;
    }
    if (array.array.release == NULL)
        return false;
    reading_receive(r, &array, ordinal);
    return true;
}

/* Checks the result against the plan: so many batches, then an end or an
 * error. */
static void reading_check(struct reading *r, int64_t came, int code)
{
    const bool fails = r->manner->plan == UVA_SUBJECT_FAILS;

    if (came > r->manner->reads)
        uva__case_run_fail(r->run, "DS-01: more than %" PRId64 " batches",
                           r->manner->reads);
    if (fails && code == 0) {
        uva__case_run_breach(r->run, "ER-01", "the failure has code 0");
        uva__case_run_breach(r->run, "ER-15", "the failure was not reported");
        uva__case_run_breach(r->run, "ER-09",
                             "the failure was reported as an end");
    }
    if (fails && came < r->manner->reads)
        uva__case_run_breach(r->run, "DS-02",
                             "the failure after %" PRId64 " of %" PRId64
                             " batches",
                             came, r->manner->reads);
    if (!fails && code != 0)
        uva__case_run_fail(r->run, "%s: get_next failed with %d",
                           r->run->clause, code);
    if (!fails && came < r->manner->reads)
        uva__case_run_fail(
            r->run, "%s: the end after %" PRId64 " of %" PRId64 " batches",
            r->run->clause, came, r->manner->reads);
}

/* ---- one reading -------------------------------------------------------- */

static void reading_read(struct reading *r)
{
    int64_t came = 0;
    int code = 0;
    bool more = true;

    while (more && (came < r->manner->reads || !r->manner->stops)) {
        if (r->manner->moves)
            reading_move(r);
        if (r->manner->query_call)
            reading_call(r);
        more = reading_get_next(r, came, &code);
        came += more;
        if (came > r->manner->reads)
            break;
    }
    if (r->manner->query_call)
        reading_call(r);
    if (!r->manner->stops)
        reading_check(r, came, code);
}

static void thread_barrier_releases(void *ctx)
{
    struct reading *r = ctx;
    uint64_t n;

    while ((n = uva__atomic64_add(&r->next, 1)) < (uint64_t)r->kept)
        uva__expected_data_release_array(r->run, &r->arrays[n], (int64_t)n);
}

/* Releases the stream first, and its batches afterwards. */
static void reading_release(struct reading *r)
{
    r->stream->release(r->stream);
    if (r->stream->release != NULL)
        uva__case_run_breach(r->run, "DS-15",
                             "release did not mark the stream");
    uva__expected_data_fill(r->stream, sizeof(*r->stream));
    if (r->manner->jobs_in_flight)
        uva__thread_barrier_run(r->run, 3, thread_barrier_releases, r);
    else
        thread_barrier_releases(r);
    if (r->schema.release == NULL)
        return;
    uva__expected_data_check_schema(r->run, &r->schema, "DS-13");
    r->schema.release(&r->schema);
}

static void reading_play(struct uva__case_run *run, const struct manner *manner)
{
    struct reading *r = uva__case_run_alloc(run, sizeof(*r));
    int32_t code;

    r->run = run;
    r->manner = manner;
    r->stream = uva__case_run_alloc(run, sizeof(*r->stream));
    code = uva__subject_open(&run->subject, manner->plan, manner->batches,
                             r->stream);
    uva__case_run_note(run, "-- open(plan %d, %" PRId64 "): %d%s",
                       (int)manner->plan, manner->batches, (int)code,
                       run->checked ? ", checked" : "");
    if (!uva__case_run_can(run, code, manner->plan == UVA_SUBJECT_WHOLE,
                           "uva_subject_open()"))
        return;
    if (r->stream->get_schema == NULL || r->stream->get_next == NULL ||
        r->stream->get_last_error == NULL || r->stream->release == NULL)
        uva__case_run_fail(run, "AB-17: a function of the stream is NULL");
    if (r->stream->device_type != ARROW_DEVICE_CPU)
        uva__case_run_breach(run, "DS-05", "device_type is %d, not CPU (1)",
                             (int)r->stream->device_type);
    r->device_type = r->stream->device_type;
    uva__checker_wrap(run, r->stream);
    if (reading_get_schema(r, &r->schema))
        reading_read(r);
    else if (manner->plan != UVA_SUBJECT_FAILS_FIRST)
        uva__case_run_fail(run, "get_schema failed");
    else
        r->schema.release = NULL;
    reading_release(r);
}

static void readings_run(struct uva__case_run *run)
{
    for (int n = 0; n < READINGS * 2; n++) {
        run->checked = n >= READINGS;
        if ((run->what->arg & BIT(n % READINGS)) != 0)
            reading_play(run, &MANNERS[n % READINGS]);
    }
    if (uva__atomic64_load(&run->played) > 0 &&
        (run->what->arg & ALL_FREED) != 0)
        uva__producer_session_check_live(run);
}

/* ---- the table ---------------------------------------------------------- */

#define READS(name, readings)                                                  \
    {                                                                          \
        name, readings_run, readings, NULL                                     \
    }

/* clang-format off: one case in two lines */
static const struct uva__tck_case CASES[] = {
    READS("required_AB17_every_function_slot_is_there", BIT(WHOLE)),
    READS("required_DA03_device_type_is_set", BIT(WHOLE)),
    READS("recommended_DA05_a_cpu_array_has_device_id_minus_one", BIT(WHOLE)),
    READS("recommended_EV04_a_cpu_array_has_no_event", BIT(WHOLE)),
    READS("required_DA08_reserved_bytes_are_zero", BIT(WHOLE)),
    READS("required_DA15_what_a_batch_points_to_lasts_until_its_release",
          BIT(KEPT)),
    READS("required_DA17_a_batch_may_be_moved", BIT(KEPT)),
    READS("required_DA18_values_stay_as_they_are_until_release", BIT(KEPT)),
    READS("required_DA20_a_batch_has_the_shape_of_its_schema", BIT(WHOLE)),
    READS("required_DA21_length_offset_and_null_count_are_possible",
          BIT(WHOLE)),
    READS("required_DA22_no_buffer_is_null_that_is_needed", BIT(WHOLE)),
    READS("recommended_DA24_buffers_are_aligned", BIT(WHOLE)),
    READS("required_DA25_children_are_there", BIT(WHOLE)),
    READS("required_DA26_no_dictionary_without_one_in_the_schema", BIT(WHOLE)),
    READS("required_DS01_every_batch_fits_the_one_schema",
          BIT(WHOLE) | BIT(SLOW) | BIT(KEPT)),
    READS("required_DS02_get_next_waits_for_a_batch", BIT(SLOW)),
    READS("required_DS02_batches_come_before_a_failure", BIT(FAILS)),
    READS("recommended_DS03_every_batch_is_on_the_device_of_the_stream",
          BIT(WHOLE)),
    READS("required_DS05_device_type_does_not_change", EVERY),
    READS("required_DS07_a_result_is_zero_or_an_errno",
          BIT(WHOLE) | BIT(FAILS) | BIT(FAILS_FIRST)),
    READS("required_DS09_the_end_is_a_released_array", BIT(WHOLE) | BIT(EMPTY)),
    READS("required_DS11_the_text_of_an_error_is_sound",
          BIT(FAILS) | BIT(FAILS_FIRST)),
    READS("required_DS13_batches_and_schema_outlive_the_stream", BIT(KEPT)),
    READS("required_DS15_release_marks_as_released", EVERY),
    READS("required_DS18_the_stream_may_be_moved", BIT(MOVED)),
    READS("required_DS19_a_failed_get_next_gives_nothing", BIT(FAILS)),
    READS("required_DS21_get_schema_may_be_called_at_any_time", BIT(DESCRIBED)),
    READS("required_LC01_live_structs_have_a_release", BIT(WHOLE)),
    READS("required_LC06_nothing_is_left_when_all_is_released",
          WHOLES | ALL_FREED),
    READS("required_LC07_release_of_a_batch_marks_it",
          BIT(WHOLE) | BIT(KEPT) | BIT(DESCRIBED)),
    READS("required_LC12_batches_are_released_behind_the_stream", BIT(KEPT)),
    READS("required_LC22_nothing_is_left_after_any_reading", EVERY | ALL_FREED),
    READS("required_MD01_metadata_is_encoded_as_pairs", BIT(WHOLE)),
    READS("required_TH07_batches_are_released_on_any_thread", BIT(BY_THREADS)),
    READS("required_ER09_a_failure_is_never_reported_as_an_end", BIT(FAILS)),
    READS("required_ER15_a_failure_is_reported_by_its_code",
          BIT(FAILS) | BIT(FAILS_FIRST)),
    READS("recommended_DA02_every_value_can_be_read", BIT(WHOLE)),
    READS("required_DA12_release_alone_shows_what_is_released",
          BIT(WHOLE) | BIT(KEPT)),
    READS("required_DA23_buffers_are_long_enough", BIT(WHOLE)),
    READS("required_LC08_release_works_wherever_the_struct_lies", BIT(KEPT)),
    READS("required_LC09_nothing_points_into_a_struct", BIT(KEPT) | BIT(MOVED)),
    READS("required_ER01_a_failure_has_a_code_that_is_not_zero",
          BIT(FAILS) | BIT(FAILS_FIRST)),
    READS("recommended_ER02_a_failure_of_input_is_eio",
          BIT(FAILS) | BIT(FAILS_FIRST)),
    READS("required_LC05_release_releases_the_children",
          BIT(WHOLE) | ALL_FREED),
    READS("required_MD02_no_metadata_is_null", BIT(WHOLE)),
    READS("required_MD05_no_count_of_metadata_is_negative", BIT(WHOLE)),
    READS("required_MD09_metadata_is_bounded", BIT(WHOLE)),
};
/* clang-format on */

const struct uva__tck_table uva__stream_cases = {CASES, sizeof(CASES) /
                                                            sizeof(*CASES)};
