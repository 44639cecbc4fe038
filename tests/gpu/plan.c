/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the plan of a bundle: the whole file at once, which is then cut into
 * fields in place. */
#define _GNU_SOURCE
#include "gpu/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the text of a file; NULL, after printing why. The caller owns it. */
static char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (file == NULL) {
        perror(path);
        return NULL;
    }
    if (getdelim(&text, &size, '\0', file) < 0) {
        (void)fprintf(stderr, "%s: it is empty\n", path);
        free(text);
        text = NULL;
    }
    (void)fclose(file);
    return text;
}

/* Cuts the fields of a line into the ones before and the ones after "--". */
static void fields_split(struct program *program, char *fields)
{
    char **out = program->environment;
    int count = 0;
    char *field;

    while ((field = strsep(&fields, "\t")) != NULL) {
        if (out == program->environment && strcmp(field, "--") == 0) {
            out = program->arguments;
            count = 0;
        } else if (count < PLAN_FIELDS - 1) {
            out[count++] = field;
        }
    }
}

static bool line_read(struct program *program, char *line)
{
    const char *part = strsep(&line, "\t");
    const char *kind = strsep(&line, "\t");
    const char *limit = strsep(&line, "\t");
    const char *name = strsep(&line, "\t");

    if (name == NULL || line == NULL)
        return false;
    program->part = atoi(part);
    program->kind = kind;
    program->limit_s = atof(limit);
    program->name = name;
    fields_split(program, line);
    return program->part >= 1 && program->part <= PLAN_PARTS &&
           program->limit_s > 0 && program->arguments[0] != NULL;
}

bool plan_read(struct plan *plan, const char *path)
{
    char *line, *rest;

    *plan = (struct plan){.text = file_text(path)};
    rest = plan->text;
    if (rest == NULL)
        return false;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (line[0] == '\0')
            continue;
        if (plan->count == PLAN_PROGRAMS ||
            !line_read(&plan->programs[plan->count++], line)) {
            (void)fprintf(stderr, "%s: program %d is not as in plan.h\n", path,
                          plan->count);
            return false;
        }
    }
    return true;
}

void plan_free(struct plan *plan)
{
    free(plan->text);
    plan->text = NULL;
}
