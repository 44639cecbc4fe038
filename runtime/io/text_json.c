/* SPDX-License-Identifier: Apache-2.0 */
/* Checks JSON (RFC 8259) without recursion: the kinds of the open arrays and
 * objects are bits. */
#include "io/text_json.h"

#include <stdint.h>
#include <string.h>

enum { LEVELS = 512 };

/* The place of the check, and the open brackets. */
struct scan {
    const char *at, *end; /* borrow */
    size_t level;
    bool is_object[LEVELS];
};

static bool scan_is(const struct scan *s, char c)
{
    return s->at < s->end && *s->at == c;
}

/* Steps over a character, if it is there. */
static bool scan_take(struct scan *s, char c)
{
    const bool is_there = scan_is(s, c);

    s->at += is_there;
    return is_there;
}

static void scan_space(struct scan *s)
{
    while (scan_is(s, ' ') || scan_is(s, '\n') || scan_is(s, '\r') ||
           scan_is(s, '\t'))
        s->at++;
}

static bool scan_digits(struct scan *s)
{
    const char *const from = s->at;

    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > from;
}

static bool scan_number(struct scan *s)
{
    (void)scan_take(s, '-');
    if (!scan_take(s, '0') && !scan_digits(s))
        return false;
    if (scan_take(s, '.') && !scan_digits(s))
        return false;
    if (!scan_take(s, 'e') && !scan_take(s, 'E'))
        return true;
    if (!scan_take(s, '+'))
        (void)scan_take(s, '-');
    return scan_digits(s);
}

/* After a backslash. */
static bool scan_escape(struct scan *s)
{
    if (s->at == s->end || *s->at == '\0')
        return false;
    if (!scan_take(s, 'u'))
        return strchr("\"\\/bfnrt", *s->at++) != NULL;
    for (int i = 0; i < 4; i++, s->at++)
        if (s->at == s->end || *s->at == '\0' ||
            strchr("0123456789abcdefABCDEF", *s->at) == NULL)
            return false;
    return true;
}

static bool scan_string(struct scan *s)
{
    if (!scan_take(s, '"'))
        return false;
    for (;;) {
        s->at += uva__text_json_plain(s->at, (size_t)(s->end - s->at));
        if (scan_take(s, '"'))
            return true;
        if (!scan_take(s, '\\') || !scan_escape(s))
            return false;
    }
}

static bool scan_word(struct scan *s, const char *word)
{
    const size_t size = strlen(word);

    if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0)
        return false;
    s->at += size;
    return true;
}

static bool scan_scalar(struct scan *s)
{
    if (scan_is(s, '"'))
        return scan_string(s);
    return scan_word(s, "true") || scan_word(s, "false") ||
           scan_word(s, "null") || scan_number(s);
}

/* The name of a member, up to its value. */
static bool scan_name(struct scan *s)
{
    scan_space(s);
    if (!scan_string(s))
        return false;
    scan_space(s);
    return scan_take(s, ':');
}

/* Closes the brackets that end here, and steps over a comma. False if something
 * else is there; `at` is the end after the last value. */
static bool scan_behind_value(struct scan *s)
{
    for (scan_space(s); s->level > 0; scan_space(s)) {
        const bool is_object = s->is_object[s->level - 1];

        if (scan_take(s, ','))
            return !is_object || scan_name(s);
        if (!scan_take(s, is_object ? '}' : ']'))
            return false;
        s->level--;
    }
    return s->at == s->end;
}

/* Opens an array or an object, up to its first value, or to its end, which
 * scan_behind_value() closes. */
static bool scan_open(struct scan *s, bool *is_empty)
{
    const bool is_object = *s->at++ == '{';

    if (s->level == LEVELS)
        return false;
    s->is_object[s->level++] = is_object;
    scan_space(s);
    *is_empty = scan_is(s, is_object ? '}' : ']');
    return *is_empty || !is_object || scan_name(s);
}

bool uva__text_json_check(const char *data, size_t size)
{
    struct scan s = {.at = data, .end = size > 0 ? data + size : data};

    while (size > 0) {
        bool is_behind = true;

        scan_space(&s);
        if (scan_is(&s, '{') || scan_is(&s, '[')) {
            if (!scan_open(&s, &is_behind))
                return false;
        } else if (!scan_scalar(&s)) {
            return false;
        }
        if (is_behind && !scan_behind_value(&s))
            return false;
        if (is_behind && s.level == 0)
            return true;
    }
    return false;
}

/* Line breaks stand between values alone. */
void uva__text_json_put(struct uva__text *text, const char *data, size_t size)
{
    char *at = uva__text_room(text, size);

    for (size_t i = 0; at != NULL && i < size; i++)
        at[i] = data[i] == '\n' || data[i] == '\r' ? ' ' : data[i];
    if (at != NULL)
        uva__text_advance(text, at + size);
}
