/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers for people: with commas, in sensible units. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#define REPORT_WIPE "\r\033[K"

struct uva__figure uva__report_figure(int64_t value)
{
    struct uva__figure figure;
    char digits[32];
    const size_t size = (size_t)snprintf(digits, sizeof(digits), "%" PRId64,
                                         value < 0 ? 0 : value);
    char *at = figure.text;
    size_t i;

    for (i = 0; i < size; i++) {
        *at++ = digits[i];
        if ((size - i) % 3 == 1 && i + 1 < size)
            *at++ = ',';
    }
    *at = '\0';
    return figure;
}

double uva__report_seconds(const struct uva__tally *tally)
{
    const uint64_t end = tally->end_ns != 0 ? tally->end_ns : uv_hrtime();
    const uint64_t spent = end - tally->begin_ns;

    return spent == 0 ? 1e-9 : (double)spent / 1e9;
}

static double megabytes(int64_t bytes)
{
    return (double)bytes / 1e6;
}

static const char *plural(int64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

void uva__report_note(const char *text, bool over_progress)
{
    fprintf(stderr, "%suvarrow: note: %s\n", over_progress ? REPORT_WIPE : "",
            text);
}

void uva__report_summary(const char *ending, const struct uva__tally *tally)
{
    const double seconds = uva__report_seconds(tally);
    const int64_t rate = (int64_t)((double)tally->rows / seconds);

    if (tally->rows == 0 && tally->affected >= 0) {
        fprintf(stderr, "uvarrow: %s: %s %s changed in %.2f s\n", ending,
                uva__report_figure(tally->affected).text,
                plural(tally->affected, "row", "rows"), seconds);
        return;
    }
    fprintf(stderr,
            "uvarrow: %s: %s %s in %s %s, %.1f MB in %.2f s "
            "(%s rows/s, %.1f MB/s)\n",
            ending, uva__report_figure(tally->rows).text,
            plural(tally->rows, "row", "rows"),
            uva__report_figure(tally->batches).text,
            plural(tally->batches, "batch", "batches"), megabytes(tally->bytes),
            seconds, uva__report_figure(rate).text,
            megabytes(tally->bytes) / seconds);
}

void uva__report_loop(uint64_t late_max_ns, uint64_t hold_max_ns)
{
    fprintf(stderr,
            "uvarrow: the stream held up the loop for %.1f ms at most, a 1 ms "
            "timer was late by %.1f ms at most\n",
            (double)hold_max_ns / 1e6, (double)late_max_ns / 1e6);
}
