/* SPDX-License-Identifier: Apache-2.0 */
/* A scanner of strict JSON (RFC 8259) that does not build values: it steps over
 * them and remembers where the events lie. Every other parser accepts its
 * accepted texts. */
#include "scan.h"

#include <errno.h>
#include <string.h>

enum { DEPTH = 64 }; /* values within values */

/* Where the scanner is. `fault` is set once, and stops it. */
struct scanner {
    const char *text; /* borrows */
    const char *at, *end;
    const char *fault; /* static: the expected token; NULL: no fault */
    bool ended;        /* the text has ended where more was expected */
};

static bool fail(struct scanner *s, const char *expected)
{
    if (s->fault == NULL)
        s->fault = expected;
    s->ended = s->at >= s->end;
    return false;
}

static void skip_space(struct scanner *s)
{
    while (s->at < s->end && *s->at != '\0' && strchr(" \t\r\n", *s->at))
        s->at++;
}

/* Steps over `c`, if it is next. */
static bool take(struct scanner *s, char c)
{
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool is_digit(const struct scanner *s)
{
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

/* ---- values ------------------------------------------------------------- */

static bool scan_escape(struct scanner *s)
{
    int i;

    if (s->at < s->end && *s->at != '\0' && strchr("\"\\/bfnrt", *s->at)) {
        s->at++;
        return true;
    }
    if (!take(s, 'u'))
        return fail(s, "an escape such as \\n or \\u00e4");
    for (i = 0; i < 4; i++, s->at++)
        if (s->at >= s->end || *s->at == '\0' ||
            strchr("0123456789abcdefABCDEF", *s->at) == NULL)
            return fail(s, "four hexadecimal digits");
    return true;
}

static bool scan_string(struct scanner *s)
{
    if (!take(s, '"'))
        return fail(s, "a string in double quotes");
    while (s->at < s->end) {
        const unsigned char c = (unsigned char)*s->at;

        if (c < ' ')
            return fail(s, "no control character in a string");
        s->at++;
        if (c == '"')
            return true;
        if (c == '\\' && !scan_escape(s))
            return false;
    }
    return fail(s, "the end of a string");
}

static bool scan_digits(struct scanner *s)
{
    if (!is_digit(s))
        return fail(s, "a digit");
    while (is_digit(s))
        s->at++;
    return true;
}

static bool scan_number(struct scanner *s)
{
    (void)take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            (void)take(s, '-');
        return scan_digits(s);
    }
    return true;
}

static bool scan_word(struct scanner *s, const char *word)
{
    for (; *word != '\0'; word++)
        if (!take(s, *word))
            return fail(s, "true, false or null");
    return true;
}

/* Steps over `"name":`. */
static bool scan_name(struct scanner *s)
{
    skip_space(s);
    if (!scan_string(s))
        return false;
    skip_space(s);
    return take(s, ':') || fail(s, "a colon behind the name");
}

/* Steps over a value, a name before it, or a list; it goes on after a list
 * that it has begun without calling itself, so the depth is that of `closers`.
 */
static bool scan_plain(struct scanner *s)
{
    if (s->at >= s->end)
        return fail(s, "a value");
    switch (*s->at) {
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        if (*s->at != '-' && !is_digit(s))
            return fail(s, "a value");
        return scan_number(s);
    }
}

/* After a value: steps over what closes lists, and over the comma before the
 * next value. `*depth` becomes 0 at the end of the outermost. */
static bool scan_closers(struct scanner *s, const char *closers, int *depth)
{
    while (*depth > 0) {
        skip_space(s);
        if (take(s, ',')) {
            skip_space(s);
            return closers[*depth - 1] == ']' || scan_name(s);
        }
        if (!take(s, closers[*depth - 1]))
            return fail(s, closers[*depth - 1] == ']' ? "a comma or ]"
                                                      : "a comma or }");
        --*depth;
    }
    return true;
}

/* Steps over one value with its content. */
static bool scan_value(struct scanner *s)
{
    char closers[DEPTH];
    int depth = 0;

    do {
        skip_space(s);
        if (depth == DEPTH)
            return fail(s, "fewer values within values");
        if (take(s, '[')) {
            closers[depth++] = ']';
            skip_space(s);
            if (s->at < s->end && *s->at != ']')
                continue;
        } else if (take(s, '{')) {
            closers[depth++] = '}';
            skip_space(s);
            if (s->at < s->end && *s->at != '}') {
                if (!scan_name(s))
                    return false;
                continue;
            }
        } else if (!scan_plain(s)) {
            return false;
        }
        if (!scan_closers(s, closers, &depth))
            return false;
    } while (depth > 0);
    return true;
}

/* ---- the trace ---------------------------------------------------------- */

/* Steps over the events after a "[", and the "]". */
static bool scan_events(struct scanner *s, struct uva__scan *out)
{
    skip_space(s);
    out->begin = s->at;
    while (!take(s, ']')) {
        if (out->events > 0 && !take(s, ','))
            return fail(s, "a comma or ] behind an event");
        skip_space(s);
        if (out->events > 0 && s->at >= s->end)
            return fail(s, "an event");
        if (s->at < s->end && *s->at != '{')
            return fail(s, "an event, which is an object");
        if (!scan_value(s))
            return false;
        out->events++;
        out->size = (size_t)(s->at - out->begin);
        skip_space(s);
    }
    return true;
}

/* Steps over the members of an object, after its "{". */
static bool scan_members(struct scanner *s, struct uva__scan *out)
{
    static const char NAME[] = "\"traceEvents\"";

    do {
        const char *name;

        skip_space(s);
        name = s->at;
        if (!scan_name(s))
            return false;
        skip_space(s);
        if (out->begin == NULL && (size_t)(s->at - name) >= sizeof(NAME) - 1 &&
            strncmp(name, NAME, sizeof(NAME) - 1) == 0) {
            if (!take(s, '['))
                return fail(s, "an array as traceEvents");
            if (!scan_events(s, out))
                return false;
        } else if (!scan_value(s)) {
            return false;
        }
        skip_space(s);
    } while (take(s, ','));
    return take(s, '}') || fail(s, "a comma or }");
}

static bool scan_all(struct scanner *s, struct uva__scan *out)
{
    skip_space(s);
    if (take(s, '[')) {
        if (!scan_events(s, out))
            return false;
    } else if (take(s, '{')) {
        if (!scan_members(s, out))
            return false;
        if (out->begin == NULL)
            return fail(s, "a member traceEvents");
    } else {
        return fail(s, "[ or {");
    }
    skip_space(s);
    return s->at >= s->end || fail(s, "nothing behind the trace");
}

static int64_t line_of(const struct scanner *s)
{
    int64_t line = 1;
    const char *at;

    for (at = s->text; at < s->at && at < s->end; at++)
        line += *at == '\n';
    return line;
}

int uva__scan_trace(const char *text, size_t size, struct uva__scan *out,
                    struct uva_error *error)
{
    struct scanner s = {.text = text, .at = text, .end = text + size};

    *out = (struct uva__scan){0};
    if (scan_all(&s, out))
        return 0;
    if (s.ended && out->events > 0) {
        out->cut = true;
        return 0;
    }
    if (s.ended)
        return uva_error_set(error, EINVAL,
                             "the text ends in line %lld, where %s is "
                             "expected",
                             (long long)line_of(&s), s.fault);
    return uva_error_set(error, EINVAL, "line %lld: expected %s",
                         (long long)line_of(&s), s.fault);
}
