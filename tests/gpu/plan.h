/* SPDX-License-Identifier: Apache-2.0 */
/* The programs of a GPU bundle: the file `plan` beside the program `run`. A
 * line is a program, with tabs between the fields:
 *
 *     PART KIND LIMIT NAME [VARIABLE=VALUE ...] -- PROGRAM [ARGUMENT ...]
 *
 * PART is 1 or 2, KIND is facts, info, test, example or bench, LIMIT is in
 * seconds, and PROGRAM is a path below the bundle. cmake/UvaGpuBundle.cmake
 * writes the lines. */
#ifndef UVA_TESTS_GPU_PLAN_H
#define UVA_TESTS_GPU_PLAN_H

#include <stdbool.h>

enum { PLAN_PARTS = 2, PLAN_FIELDS = 24, PLAN_PROGRAMS = 256 };

struct program {
    int part;
    double limit_s;
    const char *kind, *name;        /* borrow from the text of the plan */
    char *environment[PLAN_FIELDS]; /* borrows as well; ended by NULL */
    char *arguments[PLAN_FIELDS];   /* the program is the first one */
};

struct plan {
    char *text; /* owns */
    struct program programs[PLAN_PROGRAMS];
    int count;
};

/* Reads the plan at `path`. Returns false, after printing why, if it cannot be
 * read or a line is not as described. The plan is to be freed in any case. */
bool plan_read(struct plan *plan, const char *path);
void plan_free(struct plan *plan);

#endif
