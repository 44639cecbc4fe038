/* SPDX-License-Identifier: Apache-2.0 */
/* Writes results as JUnit XML, one suite for each role. A clause that is only
 * recommended counts as skipped if it does not hold. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "tck/entries.h"

/* Writes a text in XML; a character that XML cannot hold becomes a '?'. */
static void junit_write_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (byte == '<')
            (void)fputs("&lt;", file);
        else if (byte == '>')
            (void)fputs("&gt;", file);
        else if (byte == '&')
            (void)fputs("&amp;", file);
        else if (byte == '"')
            (void)fputs("&quot;", file);
        else
            (void)fputc(byte == '\n' || (byte >= ' ' && byte < 0x7f) ? byte
                                                                     : '?',
                        file);
    }
}

static bool junit_fails(const struct uva_tck_result *result)
{
    return result->verdict == UVA_TCK_BROKEN && result->required;
}

static void junit_write_case(FILE *file, const struct uva_tck_result *result)
{
    (void)fprintf(file,
                  "    <testcase classname=\"%s\" name=\"%s\" "
                  "time=\"%" PRId64 ".%03" PRId64 "\"",
                  uva__entries_role(result->role), result->name,
                  result->took_ms / 1000, result->took_ms % 1000);
    if (result->verdict == UVA_TCK_HELD) {
        (void)fputs("/>\n", file);
        return;
    }
    (void)fprintf(file, ">\n      <%s message=\"",
                  junit_fails(result) ? "failure" : "skipped");
    if (result->verdict == UVA_TCK_BROKEN && !result->required)
        (void)fputs("only recommended: ", file);
    junit_write_text(file, result->message);
    (void)fputs("\"/>\n", file);
    if (result->verdict == UVA_TCK_BROKEN) {
        (void)fputs("      <system-out>", file);
        junit_write_text(file, result->transcript);
        (void)fputs("\n", file);
        junit_write_text(file, result->output);
        (void)fputs("</system-out>\n", file);
    }
    (void)fputs("    </testcase>\n", file);
}

/* Writes the suite that begins at entry `i`; returns where the next one
 * begins. */
static size_t junit_write_suite(FILE *file, const struct uva__tck_entries *from,
                                size_t i)
{
    const enum uva_tck_role role = from->all[i].result.role;
    size_t end = i;
    size_t failures = 0;
    size_t skipped = 0;

    for (; end < from->count && from->all[end].result.role == role; end++) {
        const struct uva_tck_result *result = &from->all[end].result;

        failures += junit_fails(result);
        skipped += result->verdict != UVA_TCK_HELD && !junit_fails(result);
    }
    (void)fprintf(file,
                  "  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" "
                  "errors=\"0\" skipped=\"%zu\">\n",
                  uva__entries_role(role), end - i, failures, skipped);
    for (; i < end; i++)
        junit_write_case(file, &from->all[i].result);
    (void)fputs("  </testsuite>\n", file);
    return end;
}

int uva__entries_write_junit(const struct uva__tck_entries *from,
                             const char *path)
{
    FILE *file = fopen(path, "w");
    size_t i = 0;
    int code;

    if (file == NULL)
        return errno;
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<testsuites name=\"uvarrow-tck\">\n",
                file);
    while (i < from->count)
        i = junit_write_suite(file, from, i);
    (void)fputs("</testsuites>\n", file);
    code = ferror(file) ? EIO : 0;
    return fclose(file) != 0 ? errno : code;
}
