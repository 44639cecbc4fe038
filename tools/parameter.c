/* SPDX-License-Identifier: Apache-2.0 */
/* JSON's grammar of scalar values. */
#include "parameter.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS "0123456789"

/* ---- numbers --------------------------------------------------------------
 */

/* The meaning of a text as a number of JSON. */
enum shape { SHAPE_NONE, SHAPE_INT, SHAPE_FLOAT };

/* Skips digits; returns NULL without digits. */
static const char *digits_skip(const char *at)
{
    const size_t count = strspn(at, DIGITS);

    return count == 0 ? NULL : at + count;
}

static enum shape shape_of(const char *at)
{
    enum shape shape = SHAPE_INT;

    at += *at == '-';
    if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
        return SHAPE_NONE;
    at = digits_skip(at);
    if (at != NULL && *at == '.') {
        shape = SHAPE_FLOAT;
        at = digits_skip(at + 1);
    }
    if (at != NULL && (*at == 'e' || *at == 'E')) {
        shape = SHAPE_FLOAT;
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        at = digits_skip(at);
    }
    return at != NULL && *at == '\0' ? shape : SHAPE_NONE;
}

static int number_read(const char *from, enum shape shape,
                       struct uva_value *out, struct uva_error *error)
{
    errno = 0;
    if (shape == SHAPE_INT) {
        out->type = UVA_VALUE_INT;
        out->integer = strtoimax(from, NULL, 10);
    } else {
        out->type = UVA_VALUE_DOUBLE;
        out->number = strtod(from, NULL);
    }
    if (shape == SHAPE_INT ? errno == 0 : isfinite(out->number))
        return 0;
    return uva_error_set(error, EINVAL,
                         "the number %s is too large; as a text, write it in "
                         "quotes: '\"%s\"'",
                         from, from);
}

/* ---- strings --------------------------------------------------------------
 */

/* Reads four hexadecimal digits; returns -1 if they are not. */
static long hex_read(const char *at)
{
    char text[5] = "";

    if (strspn(at, DIGITS "abcdefABCDEF") < 4)
        return -1;
    memcpy(text, at, 4);
    return strtol(text, NULL, 16);
}

/* Writes a character as UTF-8; returns the place after it. */
static char *utf8_put(char *to, long c)
{
    if (c < 0x80) {
        *to++ = (char)c;
        return to;
    }
    if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (c & 0x3f));
    return to;
}

/* Reads the part after "\u", also a pair of surrogates. Returns the place after
 * it; NULL if it is no character, or NUL. */
static const char *unicode_read(const char *at, char **to)
{
    long c = hex_read(at), low;

    at += 4;
    if (c <= 0 || (c >= 0xdc00 && c < 0xe000))
        return NULL;
    if (c >= 0xd800 && c < 0xdc00) {
        low = strncmp(at, "\\u", 2) == 0 ? hex_read(at + 2) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return NULL;
        c = 0x10000 + (c - 0xd800) * 0x400 + (low - 0xdc00);
        at += 6;
    }
    *to = utf8_put(*to, c);
    return at;
}

/* Reads an escape after its backslash. */
static const char *escape_read(const char *at, char **to)
{
    static const char NAMES[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    const char *name;

    if (*at == 'u')
        return unicode_read(at + 1, to);
    name = *at == '\0' ? NULL : strchr(NAMES, *at);
    if (name == NULL)
        return NULL;
    *(*to)++ = MEANT[name - NAMES];
    return at + 1;
}

/* Reads a string in quotes into `to`, which has room for it. Returns its size;
 * -1 if it is invalid. */
static ptrdiff_t string_read(const char *from, char *to)
{
    const char *const begin = to;
    const char *at = from;

    if (*at++ != '"')
        return -1;
    while (at != NULL && *at != '"' && (unsigned char)*at >= ' ') {
        if (*at == '\\')
            at = escape_read(at + 1, &to);
        else
            *to++ = *at++;
    }
    *to = '\0';
    return at != NULL && at[0] == '"' && at[1] == '\0' ? to - begin : -1;
}

/* Takes `from` as a string in quotes, or as it stands. */
static int text_read(const char *from, struct uva_value *out,
                     struct uva_error *error)
{
    const size_t size = strlen(from);
    char *text =
        malloc(size + 1); /* escapes are longer than their characters */
    ptrdiff_t read;

    if (text == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    read = string_read(from, text);
    if (read < 0)
        memcpy(text, from, size + 1);
    *out = (struct uva_value){.type = UVA_VALUE_TEXT,
                              .data = text,
                              .size = read < 0 ? size : (size_t)read};
    return 0;
}

/* ---- values ---------------------------------------------------------------
 */

int uva__parameter_read(const char *from, struct uva_value *out,
                        struct uva_error *error)
{
    const enum shape shape = shape_of(from);

    *out = (struct uva_value){.type = UVA_VALUE_NULL};
    if (shape != SHAPE_NONE)
        return number_read(from, shape, out, error);
    if (strcmp(from, "null") == 0)
        return 0;
    if (strcmp(from, "true") != 0 && strcmp(from, "false") != 0)
        return text_read(from, out, error);
    out->type = UVA_VALUE_BOOL;
    out->integer = from[0] == 't';
    return 0;
}

void uva__parameter_fini(struct uva_value *value)
{
    free((void *)(uintptr_t)value->data);
    *value = (struct uva_value){0};
}
