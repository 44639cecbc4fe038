/* SPDX-License-Identifier: Apache-2.0 */
/*   2.1 s  1,000 of 336,776 rows  0.3 MB  480 rows/s  0.1 MB/s
 *   0.4 s  waits for the database
 *
 * The source is waited for if no row came since the line before. */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "terminal.h"

#define WIPE "\r\033[K"

enum { LINE_MOST = 200, COLUMNS_USUAL = 80 };

/* A text that grows. */
struct text {
    char *out;
    size_t used, size; /* the size is not 0 */
};

static void text_add(struct text *text, const char *format, ...)
    UVA_PRINTF(2, 3);

static void text_add(struct text *text, const char *format, ...)
{
    const size_t room = text->size - text->used;
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(text->out + text->used, room, format, args);
    va_end(args);
    text->used += size < (int)room ? (size_t)size : room - 1;
}

/* The part of the source that was read: of its rows, or else of its bytes, of
 * which the last ones need not be those of a batch. */
static void add_rows(struct text *text, const struct uva__tally *tally)
{
    const int64_t read = tally->bytes_read, all = tally->bytes_expected,
                  rows = tally->rows_expected;

    text_add(text, "  %s", uva__report_figure(tally->rows).text);
    if (rows > 0) {
        text_add(text, " of %s row%s", uva__report_figure(rows).text,
                 rows == 1 ? "" : "s");
        return;
    }
    text_add(text, " row%s", tally->rows == 1 ? "" : "s");
    if (all > 0 && read > 0)
        text_add(text, " (%.0f %% read)",
                 read < all ? 100.0 * (double)read / (double)all : 100.0);
}

static void add_speed(struct text *text, const struct uva__tally *tally,
                      double seconds)
{
    const double megabytes = (double)tally->bytes / 1e6;
    const int64_t rate = (int64_t)((double)tally->rows / seconds);

    text_add(text, "  %.1f MB  %s rows/s  %.1f MB/s", megabytes,
             uva__report_figure(rate).text, megabytes / seconds);
}

static void add_waits(struct text *text, const struct uva__progress *p,
                      enum uva_waiting waiting, bool output_is_full)
{
    const bool stands_still = p->rows == p->tally->rows;

    if (output_is_full)
        text_add(text, "  waits for its reader");
    else if (stands_still && waiting == UVA_WAITING_PERMIT)
        text_add(text, "  waits for a connection");
    else if (stands_still && waiting == UVA_WAITING_WORKER)
        text_add(text, "  waits for a thread");
    else if (stands_still)
        text_add(text, "  waits for %s", p->source);
}

/* A source is a stage to which no other one passes. */
static bool stage_is_source(const struct uva_stage_stats *stages, size_t count,
                            size_t at)
{
    for (size_t i = 0; i < count; i++)
        if (stages[i].next == (int32_t)at)
            return false;
    return true;
}

void uva__progress_expect(struct uva__tally *tally,
                          const struct uva_stage_stats *stages, size_t count)
{
    bool knows_rows = true, knows_bytes = true;

    tally->rows_expected = tally->bytes_expected = tally->bytes_read = 0;
    for (size_t i = 0; i < count; i++) {
        if (!stage_is_source(stages, count, i))
            continue;
        knows_rows &= stages[i].rows_expected > 0;
        knows_bytes &= stages[i].bytes_expected > 0;
        tally->rows_expected += stages[i].rows_expected;
        tally->bytes_expected += stages[i].bytes_expected;
        tally->bytes_read += stages[i].bytes > 0 ? stages[i].bytes : 0;
    }
    tally->rows_expected = knows_rows ? tally->rows_expected : 0;
    tally->bytes_expected = knows_bytes ? tally->bytes_expected : 0;
}

void uva__progress_text(struct uva__progress *progress,
                        enum uva_waiting waiting, bool output_is_full,
                        int columns, char *out, size_t size)
{
    const struct uva__tally *tally = progress->tally;
    const double seconds = uva__report_seconds(tally);
    const size_t most =
        (size_t)(columns > 1 ? columns : COLUMNS_USUAL); /* with the NUL */
    struct text text = {.out = out, .size = most < size ? most : size};

    text_add(&text, "%.1f s", seconds);
    if (tally->rows > 0) {
        add_rows(&text, tally);
        add_speed(&text, tally, seconds);
    }
    add_waits(&text, progress, waiting, output_is_full);
    progress->rows = tally->rows;
}

void uva__progress_show(struct uva__progress *progress,
                        enum uva_waiting waiting, bool output_is_full)
{
    char line[LINE_MOST];

    uva__progress_text(progress, waiting, output_is_full,
                       uva__terminal_columns(STDERR_FILENO), line,
                       sizeof(line));
    fprintf(stderr, WIPE "%s", line);
    progress->is_shown = true;
}

void uva__progress_wipe(struct uva__progress *progress)
{
    if (progress->is_shown)
        fputs(WIPE, stderr);
    progress->is_shown = false;
}
