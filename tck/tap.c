/* SPDX-License-Identifier: Apache-2.0 */
/* Writes results in the Test Anything Protocol, version 14. A clause that is
 * only recommended is marked TODO if it does not hold, which TAP readers do not
 * count as a failure. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "tck/entries.h"

/* Writes a text as a YAML block below a result line; every line is indented. */
static void tap_write_block(FILE *file, const char *name, const char *text)
{
    bool begin = true;

    if (text[0] == '\0')
        return;
    (void)fprintf(file, "  %s: |\n", name);
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;

        if (begin)
            (void)fputs("    ", file);
        begin = byte == '\n';
        (void)fputc(byte == '\n' || byte >= ' ' ? byte : '?', file);
    }
    if (!begin)
        (void)fputc('\n', file);
}

/* Writes the reason after a directive: one line, without a '#'. */
static void tap_write_reason(FILE *file, const char *word, const char *text)
{
    (void)fprintf(file, " # %s ", word);
    for (; *text != '\0'; text++)
        (void)fputc((unsigned char)*text < ' ' || *text == '#' ? ' ' : *text,
                    file);
}

static void tap_write(FILE *file, size_t number,
                      const struct uva_tck_result *result)
{
    const bool broken = result->verdict == UVA_TCK_BROKEN;

    (void)fprintf(file, "%s %zu - %s %s", broken ? "not ok" : "ok", number,
                  uva__entries_role(result->role), result->name);
    if (result->verdict == UVA_TCK_SKIPPED)
        tap_write_reason(file, "SKIP", result->message);
    else if (broken && !result->required)
        tap_write_reason(file, "TODO", "only recommended");
    (void)fputc('\n', file);
    if (result->verdict == UVA_TCK_SKIPPED)
        return;
    (void)fprintf(file, "  ---\n  duration_ms: %" PRId64 "\n", result->took_ms);
    if (broken) {
        tap_write_block(file, "message", result->message);
        tap_write_block(file, "transcript", result->transcript);
        tap_write_block(file, "output", result->output);
    }
    (void)fputs("  ...\n", file);
}

int uva__entries_write_tap(const struct uva__tck_entries *from,
                           const char *path)
{
    FILE *file = fopen(path, "w");
    int code;

    if (file == NULL)
        return errno;
    (void)fprintf(file, "TAP version 14\n1..%zu\n", from->count);
    for (size_t i = 0; i < from->count; i++)
        tap_write(file, i + 1, &from->all[i].result);
    code = ferror(file) ? EIO : 0;
    return fclose(file) != 0 ? errno : code;
}
