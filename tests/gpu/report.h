/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a run of a GPU bundle: the findings, the fate of each program,
 * and the figures of the bench. It is written after each program, so that a run
 * that is cut off leaves a report of its first part. */
#ifndef UVA_TESTS_GPU_REPORT_H
#define UVA_TESTS_GPU_REPORT_H

#include <stdbool.h>

#include "gpu/plan.h"

enum outcome {
    OUTCOME_NONE, /* of another part, or it is to come */
    OUTCOME_PASSED,
    OUTCOME_SKIPPED,
    OUTCOME_FAILED,
    OUTCOME_TIMED_OUT,
    OUTCOME_STUCK,  /* it could not even be killed */
    OUTCOME_NO_TIME /* the time of its part was over */
};

struct result {
    enum outcome outcome;
    int code; /* exit code, or 128 and the number of a signal */
    double seconds;
    char *output; /* owns: its output, or NULL */
};

struct report {
    const struct plan *plan; /* borrows */
    struct result results[PLAN_PROGRAMS];
    const char *about; /* borrows: the facts about the build of the bundle */
    const char *began; /* borrows: when, as in ISO 8601 */
    bool parts[PLAN_PARTS + 1];
};

/* Whether the run has failed: a program has, or no test has passed. */
bool report_has_failed(const struct report *report);

/* Writes FOLDER/report.json and report.txt; after one part alone, report-1.json
 * and so on. Returns false, after printing why, if it cannot. */
bool report_write(const struct report *report, const char *folder);

/* The line of the text for program `i`. */
const char *report_outcome_name(enum outcome outcome);

#endif
