/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role handler. Each plays some scenarios to a consumer, which its
 * scripted producer observes, and compares the outcome that the consumer
 * reports. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tck/cases.h"
#include "tck/scripted_producer.h"

/* Numbers of the scenarios: bits of a case's `arg`. */
enum {
    INSIDE = 0, /* all callbacks inside the call that starts it */
    THREAD,     /* on another thread */
    BOUNCE,     /* each callback on a new thread */
    LONG,
    EMPTY,
    SLOW,
    EAGER, /* tasks are offered before request returns */
    HOLDS, /* extracted late, on another thread */
    SOME,  /* only some batches are requested */
    TAGGED,
    SMUDGED,        /* a task with malformed metadata */
    FUTURE,         /* an array with reserved bytes in use */
    FIRST,          /* an array on the CPU as device 0 */
    UNKNOWN_DEVICE, /* an array on an unknown device */
    ERROR_FIRST,
    ERROR_NOW,
    ERROR_LATE, /* an error after some batches */
    ERROR_ZERO,
    ERROR_ODD,   /* an odd error code */
    ERROR_BELOW, /* a negative error code */
    ERROR_MUTE,
    ERROR_TAGGED,
    ERROR_UNSET, /* an error before any producer object is set */
    GONE,        /* release without an ending */
    GONE_FIRST,  /* release and no other callback */
    BROKEN,      /* an extraction fails, and no on_error follows */
    HOLLOW,      /* an extraction gives no array */
    STOPS,       /* the consumer cancels; release follows */
    STOPS_MORE,  /* offered tasks come before release */
    STOPS_END,   /* on_next_task(NULL) comes before release */
    STOPS_ERROR,
    STOPS_EAGER, /* on another thread, with early tasks */
    STOPS_HOLDING,
    STOPS_INSIDE, /* on_error comes inside cancel */
    REFUSES_FIRST,
    REFUSES_LATER,
    REFUSES_SCHEMA,
    BARE,         /* a stream that is no struct */
    SMUDGED_KEY,  /* a task with metadata of a negative length */
    SLICED,       /* arrays with offsets */
    SEALED,       /* an array on an unknown device, which cannot be read */
    BROKEN_LATE,  /* as BROKEN, perhaps after the end */
    STOPS_SLOWLY, /* the cancel returns when release has begun */
    SCENARIO_COUNT
};

#define BIT(scenario) (UINT64_C(1) << (scenario))
#define WHOLES                                                                 \
    (BIT(INSIDE) | BIT(THREAD) | BIT(BOUNCE) | BIT(LONG) | BIT(EMPTY) |        \
     BIT(SLOW) | BIT(EAGER) | BIT(HOLDS))
#define ERRORS                                                                 \
    (BIT(ERROR_FIRST) | BIT(ERROR_NOW) | BIT(ERROR_LATE) | BIT(ERROR_ZERO) |   \
     BIT(ERROR_ODD) | BIT(ERROR_BELOW) | BIT(ERROR_MUTE) | BIT(ERROR_TAGGED))
#define ALL_STOPS                                                              \
    (BIT(STOPS) | BIT(STOPS_MORE) | BIT(STOPS_END) | BIT(STOPS_ERROR) |        \
     BIT(STOPS_EAGER))
#define REFUSALS (BIT(REFUSES_FIRST) | BIT(REFUSES_LATER) | BIT(REFUSES_SCHEMA))
#define EVERY                                                                  \
    (WHOLES | ERRORS | ALL_STOPS | REFUSALS | BIT(GONE) | BIT(BROKEN) |        \
     BIT(TAGGED) | BIT(SOME))

enum { ANY = -1 };

/* A scenario and the outcome that the consumer must report. */
struct scenario {
    enum uva_subject_manner manner;
    int64_t k;
    const char *script;
    int end;         /* an enum uva_subject_end, or ANY */
    int64_t batches; /* batches received, or ANY */
    int code;        /* code of a failure; ANY: any but 0 */
    int wrong; /* index in CLAUSES of the clause that a wrong ending breaks */
};

/* The clauses about the end of a stream, and about its batches. */
enum { AH_01, ER_01, ER_06, ER_12, ER_13, ER_14, DA_29, AB_15, AP_15, TH_02 };
static const char *const CLAUSES[] = {"AH-01", "ER-01", "ER-06", "ER-12",
                                      "ER-13", "ER-14", "DA-29", "AB-15",
                                      "AP-15", "TH-02"};

#define TAKES    UVA_SUBJECT_TAKES_ALL
#define CANCELS  UVA_SUBJECT_CANCELS
#define REFUSES  UVA_SUBJECT_REFUSES
#define DONE     UVA_SUBJECT_COMPLETE
#define BAD      UVA_SUBJECT_FAILED
#define STOPPED  UVA_SUBJECT_CANCELLED
#define DECLINED UVA_SUBJECT_REFUSED

/* clang-format off: a table */
static const struct scenario SCENARIOS[SCENARIO_COUNT] = {
    [INSIDE] = {TAKES, 0, "schema task*5 end release", DONE, 5, 0, AH_01},
    [THREAD] = {TAKES, 0, "thread schema task*20 end release", DONE, 20, 0,
                TH_02},
    [BOUNCE] = {TAKES, 0, "bounce schema task*10 end release", DONE, 10, 0,
                TH_02},
    [LONG] = {TAKES, 0, "thread schema task*300 end release", DONE, 300, 0,
              AH_01},
    [EMPTY] = {TAKES, 0, "schema end release", DONE, 0, 0, AH_01},
    [SLOW] = {TAKES, 0, "slow thread schema task*5 end release", DONE, 5, 0,
              AH_01},
    [EAGER] = {TAKES, 0, "eager thread schema task*5 end release", DONE, 5, 0,
               AH_01},
    [HOLDS] = {UVA_SUBJECT_HOLDS, 0, "thread schema task*6 end release", DONE,
               6, 0, AH_01},
    [SOME] = {UVA_SUBJECT_TAKES_SOME, 3, "schema task*3 listen end release",
              DONE, 3, 0, AH_01},
    [TAGGED] = {TAKES, 0, "schema tagged*4 end release", DONE, 4, 0, AH_01},
    [SMUDGED] = {TAKES, 0, "schema task smudged error release", ANY, ANY, ANY,
                 AH_01},
    [FUTURE] = {TAKES, 0, "schema future*3 end release", DONE, 3, 0, AH_01},
    [FIRST] = {TAKES, 0, "schema first*3 end release", DONE, 3, 0, AH_01},
    [UNKNOWN_DEVICE] = {TAKES, 0, "schema alien leftover end release", ANY, ANY,
                        ANY, AB_15},
    [ERROR_FIRST] = {TAKES, 0, "error release", BAD, 0, EIO, ER_01},
    [ERROR_NOW] = {TAKES, 0, "schema error release", BAD, 0, EIO, ER_01},
    [ERROR_LATE] = {TAKES, 0, "thread schema task*3 error release", BAD, ANY,
                    EIO, ER_01},
    [ERROR_ZERO] = {TAKES, 0, "schema task error-0 release", BAD, ANY, ANY,
                    ER_06},
    [ERROR_ODD] = {TAKES, 0, "schema task error-100000 release", BAD, ANY,
                   100000, ER_01},
    [ERROR_BELOW] = {TAKES, 0, "schema task error--5 release", BAD, ANY, ANY,
                     ER_01},
    [ERROR_MUTE] = {TAKES, 0, "schema task error-mute release", BAD, ANY, EIO,
                    ER_01},
    [ERROR_TAGGED] = {TAKES, 0, "schema task error-tagged release", BAD, ANY,
                      EIO, ER_01},
    [ERROR_UNSET] = {TAKES, 0, "unset error release", BAD, 0, EIO, ER_01},
    [GONE] = {TAKES, 0, "schema task*2 release", BAD, ANY, ANY, ER_13},
    [GONE_FIRST] = {TAKES, 0, "release", BAD, 0, ANY, ER_13},
    [BROKEN] = {TAKES, 0, "schema task broken leftover release", BAD, ANY, EIO,
                ER_12},
    [HOLLOW] = {TAKES, 0, "schema task hollow leftover release", BAD, ANY, ANY,
                DA_29},
    [STOPS] = {CANCELS, 2, "schema task*3 cancelled release", STOPPED, ANY, 0,
               ER_14},
    [STOPS_MORE] = {CANCELS, 2, "schema task*3 cancelled leftover*3 release",
                    STOPPED, ANY, 0, AP_15},
    [STOPS_END] = {CANCELS, 2, "schema task*3 cancelled end release", STOPPED,
                   ANY, 0, ER_14},
    [STOPS_ERROR] = {CANCELS, 2, "schema task*3 cancelled error-125 release",
                     STOPPED, ANY, 0, ER_14},
    [STOPS_EAGER] = {CANCELS, 0, "eager thread schema task cancelled release",
                     STOPPED, ANY, 0, ER_14},
    [STOPS_HOLDING] = {UVA_SUBJECT_HOLDS_AND_CANCELS, 3,
                       "schema task*4 cancelled release", STOPPED, ANY, 0,
                       ER_14},
    [STOPS_INSIDE] = {UVA_SUBJECT_HOLDS_AND_CANCELS, 2,
                      "schema task*3 cancelled-error release", STOPPED, ANY, 0,
                      ER_14},
    [REFUSES_FIRST] = {REFUSES, 0, "schema task release", DECLINED, ANY, 0,
                       AH_01},
    [REFUSES_LATER] = {REFUSES, 2, "thread schema task*3 release", DECLINED,
                       ANY, 0, AH_01},
    [REFUSES_SCHEMA] = {UVA_SUBJECT_REFUSES_SCHEMA, 0, "schema release",
                        DECLINED, 0, 0, AH_01},
    [SMUDGED_KEY] = {TAKES, 0, "schema task smudged-key error release", ANY,
                     ANY, ANY, AH_01},
    [SLICED] = {TAKES, 0, "schema sliced sliced leftover end release", ANY, ANY,
                ANY, AH_01},
    [SEALED] = {TAKES, 0, "schema sealed leftover end release", ANY, ANY, ANY,
                AB_15},
    [BROKEN_LATE] = {UVA_SUBJECT_HOLDS, 0, "schema task broken end release",
                     BAD, ANY, EIO, ER_12},
    [STOPS_SLOWLY] = {UVA_SUBJECT_HOLDS_AND_CANCELS, 2,
                      "languid schema task*3 cancelled release", STOPPED, ANY,
                      0, ER_14},
    [BARE] = {UVA_SUBJECT_TAKES_BARE, 0, "schema-bare bare*3 end-bare release",
              ANY, ANY, ANY, AH_01},
};
/* clang-format on */

/* ---- one scenario ------------------------------------------------------- */

/* Checks that the stream ended as it must; `clause` covers the ending. */
static void scenario_check_end(struct uva__case_run *run,
                               const struct scenario *scenario,
                               const struct uva_subject_outcome *got)
{
    const char *clause = CLAUSES[scenario->wrong];

    if (scenario->end != ANY && got->end != scenario->end)
        uva__case_run_fail(run,
                           "%s: the consumer reports its end as %d, not %d",
                           clause, (int)got->end, scenario->end);
    /* A consumer may keep a code of 0 if the producer sent one. */
    if (got->end == UVA_SUBJECT_FAILED && got->code == 0 &&
        scenario->wrong != ER_06)
        uva__case_run_fail(run, "%s: a failure with code 0", clause);
}

/* Checks that a failure has the code and the text that were sent. */
static void scenario_check_error(struct uva__case_run *run,
                                 const struct scenario *scenario,
                                 const struct uva_subject_outcome *got)
{
    if (scenario->code == EIO && got->code != EIO)
        uva__case_run_breach(run, "ER-02", "EIO arrived as %d", (int)got->code);
    if (scenario->code != ANY && got->code != scenario->code)
        uva__case_run_breach(run, "ER-01", "code %d arrived as %d",
                             scenario->code, (int)got->code);
    if (strstr(scenario->script, "error ") != NULL && got->message[0] != '\0' &&
        strcmp(got->message, "the producer failed") != 0)
        uva__case_run_breach(run, "ER-07", "the message arrived as \"%s\"",
                             got->message);
}

/* Checks that the consumer received the first batches, in order. */
static void scenario_check_rows(struct uva__case_run *run,
                                const struct scenario *scenario,
                                const struct uva_subject_outcome *got)
{
    const int64_t rows = got->batches * UVA_SUBJECT_ROWS;
    /* It may refuse offsets, but not overlook them. Clauses: DA-28. */
    const bool counts = scenario->batches != ANY ||
                        (scenario == &SCENARIOS[SLICED] && got->end == DONE);

    if (scenario->batches != ANY && got->batches != scenario->batches)
        uva__case_run_fail(
            run, "%s: the consumer saw %" PRId64 " of %" PRId64 " batches",
            run->clause, got->batches, scenario->batches);
    if (got->rows != rows)
        uva__case_run_fail(run, "%s: %" PRId64 " rows in %" PRId64 " batches",
                           run->clause, got->rows, got->batches);
    if (counts && got->sum != rows * (rows - 1) / 2)
        uva__case_run_fail(run,
                           "%s: the values add up to %" PRId64 ", not %" PRId64,
                           run->clause, got->sum, rows * (rows - 1) / 2);
}

/* Checks the last metadata that the consumer reports. */
static void scenario_check_tag(struct uva__case_run *run, const char *tag,
                               int64_t size,
                               const struct uva_subject_outcome *got)
{
    static const char *const ABOUT[] = {"MD-04", "MD-06", "AH-14", "AH-20",
                                        "ER-08"};

    if (got->tag_size < 0) {
        uva__case_run_note(run, "the subject does not report metadata");
        return;
    }
    if (got->tag_size == size && memcmp(got->tag, tag, (size_t)size) == 0)
        return;
    for (size_t i = 0; i < sizeof(ABOUT) / sizeof(*ABOUT); i++)
        /* Metadata that was lost or cut was not misread, which is another
         * clause. Clauses: MD-06. */
        if (got->tag_size > 0 || strcmp(ABOUT[i], "MD-06") == 0)
            uva__case_run_breach(run, ABOUT[i],
                                 "%" PRId64
                                 " bytes of metadata arrived, not these "
                                 "%" PRId64,
                                 got->tag_size, size);
}

static void scenario_play(struct uva__case_run *run, int number)
{
    const struct scenario *scenario = &SCENARIOS[number];
    struct uva__scripted_producer *producer =
        uva__case_run_alloc(run, sizeof(*producer));
    struct uva_subject_outcome outcome;
    enum uva__script_result result;

    result =
        uva__scripted_producer_run(producer, run, scenario->manner, scenario->k,
                                   scenario->script, &outcome);
    if (result == UVA__SCRIPT_HUNG)
        uva__case_run_breach(run, CLAUSES[scenario->wrong],
                             "no outcome is known long after release");
    if (result != UVA__SCRIPT_FINISHED)
        return;
    uva__case_run_note(run, "   outcome: end %d, code %d, batches %" PRId64,
                       (int)outcome.end, (int)outcome.code, outcome.batches);
    scenario_check_end(run, scenario, &outcome);
    if (scenario->end == BAD)
        scenario_check_error(run, scenario, &outcome);
    scenario_check_rows(run, scenario, &outcome);
    if (number == ERROR_TAGGED)
        scenario_check_tag(run, "a\0b\0c", 5, &outcome);
    if (number == TAGGED)
        scenario_check_tag(run, "v\0v", 3, &outcome);
}

static void scenarios_run(struct uva__case_run *run)
{
    for (int scenario = 0; scenario < SCENARIO_COUNT * 2; scenario++) {
        run->checked = scenario >= SCENARIO_COUNT;
        if ((run->what->arg & BIT(scenario % SCENARIO_COUNT)) != 0)
            scenario_play(run, scenario % SCENARIO_COUNT);
    }
}

/* ---- the table ---------------------------------------------------------- */

#define CASES_OF(name, scenarios)                                              \
    {                                                                          \
        name, scenarios_run, scenarios, NULL                                   \
    }

/* clang-format off: one case in two lines */
static const struct uva__tck_case CASES[] = {
    CASES_OF("required_AB15_a_device_that_is_not_known_is_survived",
             BIT(UNKNOWN_DEVICE) | BIT(SEALED)),
    CASES_OF("required_AB17_every_function_slot_is_there", BIT(INSIDE)),
    CASES_OF("recommended_DA05_the_cpu_may_be_device_0", BIT(FIRST)),
    CASES_OF("required_DA09_reserved_bytes_in_use_are_let_pass", BIT(FUTURE)),
    CASES_OF("required_DA12_released_is_shown_by_release_alone", BIT(HOLLOW)),
    CASES_OF("required_DA13_release_gets_the_array",
             BIT(INSIDE) | BIT(THREAD) | BIT(HOLDS)),
    CASES_OF("required_DA16_moved_arrays_are_released_once",
             BIT(INSIDE) | BIT(THREAD) | BIT(HOLDS) | BIT(UNKNOWN_DEVICE)),
    CASES_OF("required_DA18_values_are_not_written_to",
             BIT(INSIDE) | BIT(THREAD) | BIT(HOLDS)),
    CASES_OF("required_DA29_a_released_array_is_not_read", BIT(HOLLOW)),
    CASES_OF("required_AT02_every_task_is_extracted", EVERY),
    CASES_OF("required_AT03_no_task_is_extracted_twice", EVERY),
    CASES_OF("required_AT13_the_task_struct_is_not_kept", WHOLES | ALL_STOPS),
    CASES_OF("required_AT14_private_data_of_tasks_is_left_alone", WHOLES),
    CASES_OF("required_AT19_the_task_struct_is_not_freed",
             BIT(INSIDE) | BIT(STOPS)),
    CASES_OF("required_AT21_tasks_behind_a_cancel_or_error_are_extracted",
             BIT(STOPS_MORE) | BIT(ERROR_LATE) | BIT(STOPS)),
    CASES_OF("required_AT21_tasks_that_wait_at_a_cancel_are_extracted",
             BIT(STOPS_HOLDING)),
    CASES_OF("required_AT22_nothing_is_read_of_a_failed_extraction",
             BIT(BROKEN)),
    CASES_OF("required_AP08_requests_are_for_one_or_more",
             WHOLES | BIT(SOME) | ALL_STOPS),
    CASES_OF("required_AP13_an_error_may_come_inside_cancel",
             BIT(STOPS_INSIDE)),
    CASES_OF("required_AP15_tasks_may_still_come_after_cancel",
             BIT(STOPS_MORE)),
    CASES_OF("required_AP21_private_data_of_the_producer_is_left_alone",
             WHOLES | ALL_STOPS),
    CASES_OF("required_AP23_the_producer_object_is_not_copied",
             WHOLES | ALL_STOPS),
    CASES_OF("required_AP24_nothing_is_called_in_or_behind_release", EVERY),
    CASES_OF("required_AH01_callbacks_may_come_inside_the_start",
             BIT(INSIDE) | BIT(EMPTY)),
    CASES_OF("required_AH02_every_callback_is_there", BIT(INSIDE)),
    CASES_OF("recommended_AH03_an_early_error_needs_no_producer",
             BIT(ERROR_UNSET)),
    CASES_OF("required_AH04_nothing_is_called_before_on_schema",
             WHOLES | BIT(ERROR_FIRST) | BIT(GONE_FIRST)),
    CASES_OF("required_AH06_the_schema_is_moved_or_released", EVERY),
    CASES_OF("required_AH09_callbacks_return_zero_or_an_errno", EVERY),
    CASES_OF("required_AH14_metadata_of_tasks_is_not_kept", BIT(TAGGED)),
    CASES_OF("required_AH19_nothing_is_called_in_on_error_or_release", EVERY),
    CASES_OF("required_AH20_message_and_metadata_of_errors_are_copied",
             BIT(ERROR_TAGGED)),
    CASES_OF("required_ER07_the_message_is_copied",
             BIT(ERROR_NOW) | BIT(ERROR_LATE)),
    CASES_OF("required_TH02_callbacks_may_come_on_any_thread",
             BIT(THREAD) | BIT(BOUNCE)),
    CASES_OF("required_TH10_no_call_is_running_when_the_stream_ends",
             EVERY | BIT(STOPS_SLOWLY)),
    CASES_OF("required_TH11_a_task_may_come_before_request_returns",
             BIT(EAGER) | BIT(STOPS_EAGER)),
    CASES_OF("recommended_TH12_callbacks_return_soon", WHOLES),
    CASES_OF("required_TH14_callbacks_may_come_before_the_start_returns",
             BIT(INSIDE) | BIT(THREAD)),
    CASES_OF("required_MD04_metadata_may_lie_at_any_address",
             BIT(TAGGED) | BIT(ERROR_TAGGED)),
    CASES_OF("required_MD05_malformed_metadata_is_survived",
             BIT(SMUDGED) | BIT(SMUDGED_KEY)),
    CASES_OF("required_MD06_metadata_may_hold_nul",
             BIT(TAGGED) | BIT(ERROR_TAGGED)),
    CASES_OF("optional_MD07_metadata_may_be_ignored", BIT(TAGGED)),
    CASES_OF("required_LC02_everything_is_released_once",
             EVERY | BIT(UNKNOWN_DEVICE) | BIT(BARE)),
    CASES_OF("required_LC03_children_are_left_to_their_parent", EVERY),
    CASES_OF("required_LC04_nothing_is_read_after_its_release",
             WHOLES | ERRORS | ALL_STOPS),
    CASES_OF("required_LC11_what_the_producer_owns_is_left_alone", WHOLES),
    CASES_OF("required_LC21_release_is_the_end_of_a_handler", EVERY),
    CASES_OF("required_LC22_nothing_is_left_after_any_life",
             EVERY | BIT(UNKNOWN_DEVICE) | BIT(BARE)),
    CASES_OF("required_LC22_nothing_is_left_of_a_stream_that_is_no_struct",
             BIT(BARE)),
    CASES_OF("required_ER01_any_code_is_an_error",
             BIT(ERROR_NOW) | BIT(ERROR_ODD) | BIT(ERROR_BELOW)),
    CASES_OF("required_ER06_an_error_of_code_zero_is_an_error",
             BIT(ERROR_ZERO)),
    CASES_OF("recommended_ER02_the_usual_codes_arrive",
             BIT(ERROR_NOW) | BIT(ERROR_FIRST)),
    CASES_OF("required_ER08_metadata_of_errors_is_read", BIT(ERROR_TAGGED)),
    CASES_OF("required_ER10_one_ending_for_each_stream", EVERY),
    CASES_OF("required_ER12_a_failed_extraction_is_shown",
             BIT(BROKEN) | BIT(BROKEN_LATE)),
    CASES_OF("required_ER13_a_stream_that_just_stops_has_failed",
             BIT(GONE) | BIT(GONE_FIRST)),
    CASES_OF("required_ER14_a_cancelled_stream_is_cancelled_whatever_comes",
             ALL_STOPS),
    CASES_OF("optional_AH18_an_error_may_come_first", BIT(ERROR_FIRST)),
    CASES_OF("optional_AH23_a_stream_may_be_empty", BIT(EMPTY)),
    CASES_OF("recommended_AP18_what_follows_a_cancel_is_taken",
             BIT(STOPS_MORE) | BIT(STOPS_END)),
    CASES_OF("required_AP25_no_more_is_requested_than_wanted", BIT(SOME)),
    CASES_OF("required_DA07_a_cpu_array_is_a_plain_array",
             BIT(INSIDE) | BIT(HOLDS) | BIT(SLICED)),
    CASES_OF("required_LC01_a_released_array_is_no_data", BIT(HOLLOW)),
    CASES_OF("required_LC10_a_parent_is_released_behind_its_children",
             BIT(INSIDE) | BIT(HOLDS)),
};
/* clang-format on */

const struct uva__tck_table uva__handler_cases = {CASES, sizeof(CASES) /
                                                             sizeof(*CASES)};
