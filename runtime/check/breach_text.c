/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one line for each breach, plain or JSON. The FILE is locked from the
 * first byte of a line to its last, and is written in few pieces. Names and
 * messages may contain any bytes: invalid UTF-8 is replaced, and line breaks
 * are escaped. */
#include "check/breach_text.h"

#include <string.h>

#include "base/platform.h"
#include "base/utf8.h"

/* A line being written. */
struct breach_line {
    FILE *out;        /* borrows, locked */
    char piece[1024]; /* not yet written */
    size_t used;      /* bytes of that */
};

static void breach_line_begin(struct breach_line *line, FILE *out)
{
    line->out = out;
    line->used = 0;
    uva__platform_lock_stdio(out);
}

static void breach_line_flush(struct breach_line *line)
{
    (void)fwrite(line->piece, 1, line->used, line->out);
    line->used = 0;
}

static void breach_line_put(struct breach_line *line, const char *text,
                            size_t size)
{
    if (size > sizeof(line->piece) - line->used)
        breach_line_flush(line);
    memcpy(line->piece + line->used, text, size);
    line->used += size;
}

/* Adds text shorter than a piece. */
static void breach_line_add(struct breach_line *line, const char *text)
{
    breach_line_put(line, text, strlen(text));
}

static void breach_line_end(struct breach_line *line)
{
    breach_line_put(line, "\n", 1);
    breach_line_flush(line);
    uva__platform_unlock_stdio(line->out);
}

static const char *breach_line_severity(enum uva_severity severity)
{
    static const char *const NAMES[] = {"note", "warning", "error", "fatal"};

    return NAMES[severity];
}

static const char *breach_line_party(enum uva_party party)
{
    static const char *const NAMES[] = {"", "producer", "consumer", "either"};

    return NAMES[party];
}

/* ---- plain -------------------------------------------------------------- */

/* Adds one character of foreign text; returns the next. */
static const char *breach_line_add_plain(struct breach_line *line,
                                         const char *text)
{
    const size_t size = uva__utf8_size(text);

    if (size == 0 || (unsigned char)*text < ' ' || *text == 0x7F)
        breach_line_put(line, *text == '\n' ? "; " : "?",
                        *text == '\n' ? 2 : 1);
    else
        breach_line_put(line, text, size);
    return text + (size == 0 ? 1 : size);
}

static void breach_line_add_foreign(struct breach_line *line, const char *text)
{
    while (*text != '\0')
        text = breach_line_add_plain(line, text);
}

void uva__breach_text_plain(const struct uva_breach *breach, FILE *out)
{
    struct breach_line line;

    breach_line_begin(&line, out);
    breach_line_add(&line, "uvarrow: ");
    breach_line_add_foreign(&line, breach->name);
    breach_line_add(&line, breach->name[0] == '\0' ? "" : ": ");
    breach_line_add(&line, breach->clause);
    breach_line_add(&line, " (");
    breach_line_add(&line, breach_line_severity(breach->severity));
    breach_line_add(&line, ", ");
    breach_line_add(&line, breach_line_party(breach->party));
    breach_line_add(&line, "): ");
    breach_line_add_foreign(&line, breach->message);
    breach_line_add(&line, breach->transcript[0] == '\0' ? "" : "; after ");
    breach_line_add_foreign(&line, breach->transcript);
    breach_line_end(&line);
}

/* ---- JSON --------------------------------------------------------------- */

/* Adds one character of a string; returns the next. */
static const char *breach_line_add_char(struct breach_line *line,
                                        const char *text)
{
    const size_t size = uva__utf8_size(text);
    char escape[8];

    if (size == 0) {
        breach_line_add(line, "\\ufffd");
        return text + 1;
    }
    if ((unsigned char)*text < ' ') {
        (void)snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)*text);
        breach_line_add(line, escape);
        return text + 1;
    }
    if (*text == '"' || *text == '\\')
        breach_line_put(line, "\\", 1);
    breach_line_put(line, text, size);
    return text + size;
}

/* Adds `text` up to `stop` or its end as a string; returns that place. */
static const char *breach_line_add_string(struct breach_line *line,
                                          const char *text, char stop)
{
    breach_line_put(line, "\"", 1);
    while (*text != '\0' && *text != stop)
        text = breach_line_add_char(line, text);
    breach_line_put(line, "\"", 1);
    return text;
}

/* Adds the lines of the transcript as strings. */
static void breach_line_add_calls(struct breach_line *line, const char *text)
{
    if (*text == '\0')
        return;
    text = breach_line_add_string(line, text, '\n');
    while (*text != '\0') {
        breach_line_put(line, ",", 1);
        text = breach_line_add_string(line, text + 1, '\n');
    }
}

void uva__breach_text_json(const struct uva_breach *breach, FILE *out)
{
    struct breach_line line;

    breach_line_begin(&line, out);
    breach_line_add(&line, "{\"clause\":");
    (void)breach_line_add_string(&line, breach->clause, '\0');
    breach_line_add(&line, ",\"severity\":\"");
    breach_line_add(&line, breach_line_severity(breach->severity));
    breach_line_add(&line, "\",\"party\":\"");
    breach_line_add(&line, breach_line_party(breach->party));
    breach_line_add(&line, "\",\"name\":");
    (void)breach_line_add_string(&line, breach->name, '\0');
    breach_line_add(&line, ",\"message\":");
    (void)breach_line_add_string(&line, breach->message, '\0');
    breach_line_add(&line, ",\"transcript\":[");
    breach_line_add_calls(&line, breach->transcript);
    breach_line_add(&line, "]}");
    breach_line_end(&line);
}
