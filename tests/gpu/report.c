/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the report as JSON, for scripts/gpu_report, and as text. The output of
 * programs is copied with its last lines; bytes outside of ASCII become "?". */
#define _GNU_SOURCE
#include "gpu/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { TAIL_LINES = 20, INFO_LINES = 100, CODE_CRASHED = 124 };

const char *report_outcome_name(enum outcome outcome)
{
    static const char *const names[] = {
        [OUTCOME_NONE] = "not run",        [OUTCOME_PASSED] = "passed",
        [OUTCOME_SKIPPED] = "skipped",     [OUTCOME_FAILED] = "failed",
        [OUTCOME_TIMED_OUT] = "timed out", [OUTCOME_STUCK] = "stuck",
        [OUTCOME_NO_TIME] = "no time left"};

    return names[outcome];
}

static bool has_kind(const struct program *program, const char *kind)
{
    return strcmp(program->kind, kind) == 0;
}

/* How many tests of the parts that were run ended so. */
static int count_of(const struct report *report, enum outcome outcome)
{
    int count = 0;

    for (int i = 0; i < report->plan->count; i++)
        count += report->results[i].outcome == outcome &&
                 has_kind(&report->plan->programs[i], "test");
    return count;
}

static bool has_test(const struct report *report)
{
    for (int i = 0; i < report->plan->count; i++)
        if (report->parts[report->plan->programs[i].part] &&
            has_kind(&report->plan->programs[i], "test"))
            return true;
    return false;
}

/* Information may be missing: not each machine has its sources. */
static bool program_has_failed(const struct program *program,
                               const struct result *result)
{
    if (result->outcome == OUTCOME_FAILED && has_kind(program, "info"))
        return result->code >= CODE_CRASHED;
    return result->outcome > OUTCOME_SKIPPED;
}

bool report_has_failed(const struct report *report)
{
    for (int i = 0; i < report->plan->count; i++)
        if (program_has_failed(&report->plan->programs[i], &report->results[i]))
            return true;
    return has_test(report) && count_of(report, OUTCOME_PASSED) == 0;
}

/* ---- pieces of text ------------------------------------------------------ */

/* Returns where the last `lines` lines begin. */
static const char *tail(const char *text, int lines)
{
    const char *from = text + strlen(text);

    if (from > text && from[-1] == '\n')
        from--;
    while (from > text) {
        if (from[-1] == '\n' && --lines == 0)
            break;
        from--;
    }
    return from;
}

/* Returns the next line, cut off at its end; NULL: there is no more. */
static char *line_next(char **rest)
{
    char *line = strsep(rest, "\n");

    return line != NULL && *rest == NULL && line[0] == '\0' ? NULL : line;
}

/* Writes a string of JSON. */
static void json_string(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            (void)fprintf(out, "\\%c", c);
        else if (c < 32)
            (void)fprintf(out, "\\u%04x", c);
        else
            (void)fputc(c < 127 ? c : '?', out);
    }
    (void)fputc('"', out);
}

static void json_member(FILE *out, const char *name, const char *text)
{
    json_string(out, name);
    (void)fputs(": ", out);
    json_string(out, text);
}

/* Writes the fields of a line, with tabs between them, as a list of strings. */
static void json_fields(FILE *out, char *line)
{
    const char *field, *comma = "";

    (void)fputc('[', out);
    while ((field = strsep(&line, "\t")) != NULL) {
        (void)fputs(comma, out);
        json_string(out, field);
        comma = ", ";
    }
    (void)fputc(']', out);
}

/* Writes each line of the output of programs of a kind as a list. */
static void json_tables(FILE *out, const struct report *report,
                        const char *name, const char *kind)
{
    const char *comma = "\n  ";

    (void)fprintf(out, "\"%s\": [", name);
    for (int i = 0; i < report->plan->count; i++) {
        const char *output = report->results[i].output;
        char *copy, *rest, *line;

        if (output == NULL || !has_kind(&report->plan->programs[i], kind))
            continue;
        copy = rest = strdup(output);
        while (rest != NULL && (line = line_next(&rest)) != NULL) {
            if (strchr(line, '\t') == NULL)
                continue; /* other output than its figures */
            (void)fputs(comma, out);
            json_fields(out, line);
            comma = ",\n  ";
        }
        free(copy);
    }
    (void)fputs("],\n ", out);
}

/* ---- JSON ---------------------------------------------------------------- */

static void json_program(FILE *out, const struct program *program,
                         const struct result *result)
{
    const bool is_info = has_kind(program, "info");

    (void)fprintf(out, "{\"part\": %d, ", program->part);
    json_member(out, "kind", program->kind);
    (void)fputs(", ", out);
    json_member(out, "name", program->name);
    (void)fputs(", ", out);
    json_member(out, "result", report_outcome_name(result->outcome));
    (void)fprintf(out, ", \"code\": %d, \"seconds\": %.2f", result->code,
                  result->seconds);
    if (result->output != NULL &&
        (is_info || result->outcome != OUTCOME_PASSED)) {
        (void)fputs(", ", out);
        json_member(out, "output",
                    tail(result->output, is_info ? INFO_LINES : TAIL_LINES));
    }
    (void)fputc('}', out);
}

static void json_write(const struct report *report, FILE *out)
{
    const char *comma = "\n  ";
    struct utsname system;

    (void)uname(&system);
    (void)fputs("{\"format\": 1,\n ", out);
    json_member(out, "about", report->about);
    (void)fputs(",\n ", out);
    json_member(out, "began", report->began);
    (void)fputs(",\n ", out);
    json_member(out, "system", system.release);
    (void)fprintf(out, ",\n \"parts\": [%s%s%s],\n ",
                  report->parts[1] ? "1" : "",
                  report->parts[1] && report->parts[2] ? ", " : "",
                  report->parts[2] ? "2" : "");
    json_tables(out, report, "facts", "facts");
    json_tables(out, report, "figures", "bench");
    (void)fputs("\"programs\": [", out);
    for (int i = 0; i < report->plan->count; i++) {
        if (report->results[i].outcome == OUTCOME_NONE)
            continue;
        (void)fputs(comma, out);
        json_program(out, &report->plan->programs[i], &report->results[i]);
        comma = ",\n  ";
    }
    (void)fputs("]}\n", out);
}

/* ---- text ---------------------------------------------------------------- */

static void text_outputs(const struct report *report, FILE *out)
{
    for (int i = 0; i < report->plan->count; i++) {
        const struct program *program = &report->plan->programs[i];
        const struct result *result = &report->results[i];
        const bool is_test =
            has_kind(program, "test") || has_kind(program, "example");

        if (result->output == NULL || result->output[0] == '\0' ||
            (is_test && result->outcome == OUTCOME_PASSED))
            continue;
        (void)fprintf(out, "\n==== %s: %s\n%s", program->name,
                      report_outcome_name(result->outcome),
                      tail(result->output, is_test ? TAIL_LINES : INFO_LINES));
    }
}

static void text_write(const struct report *report, FILE *out)
{
    (void)fprintf(out, "%s, began %s\n", report->about, report->began);
    for (enum outcome k = OUTCOME_PASSED; k <= OUTCOME_NO_TIME; k++)
        if (count_of(report, k) > 0)
            (void)fprintf(out, "tests %s: %d\n", report_outcome_name(k),
                          count_of(report, k));
    if (has_test(report) && count_of(report, OUTCOME_PASSED) == 0)
        (void)fputs("no test has passed: is there a device?\n", out);
    for (int i = 0; i < report->plan->count; i++)
        if (report->results[i].outcome != OUTCOME_NONE)
            (void)fprintf(out, "%-12s %7.2f s  %s\n",
                          report_outcome_name(report->results[i].outcome),
                          report->results[i].seconds,
                          report->plan->programs[i].name);
    text_outputs(report, out);
}

/* ---- files --------------------------------------------------------------- */

typedef void write_fn(const struct report *report, FILE *out);

/* Writes a new file and moves it to its place, so that there is always one. */
static bool file_write(const struct report *report, const char *folder,
                       const char *ending, write_fn *write)
{
    const char *part = report->parts[1] && report->parts[2] ? ""
                       : report->parts[1]                   ? "-1"
                                                            : "-2";
    char path[4096], fresh[4110];
    FILE *out;
    bool good;

    (void)snprintf(path, sizeof(path), "%s/report%s.%s", folder, part, ending);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    out = fopen(fresh, "w");
    if (out != NULL)
        write(report, out);
    good = out != NULL && ferror(out) == 0;
    if (out != NULL && fclose(out) != 0)
        good = false;
    if (good && rename(fresh, path) == 0)
        return true;
    perror(path);
    return false;
}

bool report_write(const struct report *report, const char *folder)
{
    const bool good = file_write(report, folder, "json", json_write);

    return file_write(report, folder, "txt", text_write) && good;
}
