/* SPDX-License-Identifier: Apache-2.0 */
/* Format strings: a table of those without parameters, and a function for each
 * form with some. */
#include "io/ipc_type.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = 0, ONE = 1, TWO = 2, ANY = -1 };

struct ipc_type_row {
    const char *format;
    struct uva__ipc_type type;
};

#define ROW(text, kind_, width_, tag_, children, ...)                          \
    {                                                                          \
        .format = (text), .type = {                                            \
            .kind = UVA__IPC_##kind_,                                          \
            .tag = UVA__IPC_TAG_##tag_,                                        \
            .width = (width_),                                                 \
            .numbers = {__VA_ARGS__},                                          \
            .n_children = (children)                                           \
        }                                                                      \
    }

/* Units of time count from seconds; units of dates from days, and of intervals
 * from months. */
static const struct ipc_type_row rows[] = {
    ROW("n", NULL, 0, NULL, NONE, 0),
    ROW("b", BITS, 0, BOOL, NONE, 0),
    ROW("c", FIXED, 1, INT, NONE, 8, true),
    ROW("C", FIXED, 1, INT, NONE, 8, false),
    ROW("s", FIXED, 2, INT, NONE, 16, true),
    ROW("S", FIXED, 2, INT, NONE, 16, false),
    ROW("i", FIXED, 4, INT, NONE, 32, true),
    ROW("I", FIXED, 4, INT, NONE, 32, false),
    ROW("l", FIXED, 8, INT, NONE, 64, true),
    ROW("L", FIXED, 8, INT, NONE, 64, false),
    ROW("e", FIXED, 2, FLOAT, NONE, 0),
    ROW("f", FIXED, 4, FLOAT, NONE, 1),
    ROW("g", FIXED, 8, FLOAT, NONE, 2),
    ROW("z", BINARY, 4, BINARY, NONE, 0),
    ROW("Z", BINARY, 8, LARGE_BINARY, NONE, 0),
    ROW("u", BINARY, 4, UTF8, NONE, 0),
    ROW("U", BINARY, 8, LARGE_UTF8, NONE, 0),
    ROW("vz", VIEW, 16, BINARY_VIEW, NONE, 0),
    ROW("vu", VIEW, 16, UTF8_VIEW, NONE, 0),
    ROW("tdD", FIXED, 4, DATE, NONE, 0),
    ROW("tdm", FIXED, 8, DATE, NONE, 1),
    ROW("tts", FIXED, 4, TIME, NONE, 0, 32),
    ROW("ttm", FIXED, 4, TIME, NONE, 1, 32),
    ROW("ttu", FIXED, 8, TIME, NONE, 2, 64),
    ROW("ttn", FIXED, 8, TIME, NONE, 3, 64),
    ROW("tDs", FIXED, 8, DURATION, NONE, 0),
    ROW("tDm", FIXED, 8, DURATION, NONE, 1),
    ROW("tDu", FIXED, 8, DURATION, NONE, 2),
    ROW("tDn", FIXED, 8, DURATION, NONE, 3),
    ROW("tiM", FIXED, 4, INTERVAL, NONE, 0),
    ROW("tiD", FIXED, 8, INTERVAL, NONE, 1),
    ROW("tin", FIXED, 16, INTERVAL, NONE, 2),
    ROW("+l", LIST, 4, LIST, ONE, 0),
    ROW("+L", LIST, 8, LARGE_LIST, ONE, 0),
    ROW("+vl", LIST_VIEW, 4, LIST_VIEW, ONE, 0),
    ROW("+vL", LIST_VIEW, 8, LARGE_LIST_VIEW, ONE, 0),
    ROW("+m", LIST, 4, MAP, ONE, 0),
    ROW("+s", STRUCT, 0, STRUCT, ANY, 0),
    ROW("+r", RUN_END, 0, RUN_END, TWO, 0),
};

const int8_t uva__ipc_parameters[][3] = {
    [UVA__IPC_TAG_INT] = {4, 1},
    [UVA__IPC_TAG_FLOAT] = {2},
    [UVA__IPC_TAG_DECIMAL] = {4, 4, 4},
    [UVA__IPC_TAG_DATE] = {2},
    [UVA__IPC_TAG_TIME] = {2, 4},
    [UVA__IPC_TAG_TIMESTAMP] = {2},
    [UVA__IPC_TAG_INTERVAL] = {2},
    [UVA__IPC_TAG_UNION] = {2},
    [UVA__IPC_TAG_FIXED_BINARY] = {4},
    [UVA__IPC_TAG_FIXED_LIST] = {4},
    [UVA__IPC_TAG_MAP] = {1},
    [UVA__IPC_TAG_DURATION] = {2},
    [UVA__IPC_TAG_LARGE_LIST_VIEW] = {0},
};

/* ---- parameters --------------------------------------------------------- */

/* Reads a decimal number and advances. */
static bool ipc_type_number(const char **text, int32_t *out)
{
    const bool minus = **text == '-';
    const char *at = *text + (minus ? 1 : 0);
    int32_t value = 0;

    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > (INT32_MAX - (*at - '0')) / 10)
            return false;
        value = value * 10 + (*at - '0');
    }
    *text = at;
    *out = minus ? -value : value;
    return true;
}

/* Reads `c` and advances. */
static bool ipc_type_mark(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* w:WIDTH and +w:WIDTH */
static int ipc_type_read_width(const char *text, struct uva__ipc_type *out)
{
    if (!ipc_type_number(&text, &out->width) || *text != '\0' || out->width < 0)
        return EINVAL;
    out->numbers[0] = out->width;
    return 0;
}

/* d:PRECISION,SCALE or d:PRECISION,SCALE,BITS */
static int ipc_type_read_decimal(const char *text, struct uva__ipc_type *out)
{
    int32_t *const bits = &out->numbers[2];

    *bits = 128;
    if (!ipc_type_number(&text, &out->numbers[0]) ||
        !ipc_type_mark(&text, ',') || !ipc_type_number(&text, &out->numbers[1]))
        return EINVAL;
    if (ipc_type_mark(&text, ',') && !ipc_type_number(&text, bits))
        return EINVAL;
    if (*text != '\0' ||
        (*bits != 32 && *bits != 64 && *bits != 128 && *bits != 256))
        return EINVAL;
    out->width = *bits / 8;
    return 0;
}

bool uva__ipc_type_next_code(const char **text, int32_t *code)
{
    if (**text == '\0' || !ipc_type_number(text, code))
        return false;
    return ipc_type_mark(text, ',') || **text == '\0';
}

/* +us:CODE,CODE... and +ud:CODE,CODE... No two children have one code: which of
 * them is meant would be up to each reader. */
static int ipc_type_read_codes(const char *text, struct uva__ipc_type *out)
{
    bool is_used[UVA__IPC_MOST_CODES] = {false};
    int32_t code;

    out->text = text;
    out->n_children = 0;
    while (*text != '\0') {
        if (!uva__ipc_type_next_code(&text, &code) || code < 0 ||
            code >= UVA__IPC_MOST_CODES || is_used[code])
            return EINVAL;
        is_used[code] = true;
        out->n_children++;
    }
    return 0;
}

/* tsU:ZONE, for a unit U */
static int ipc_type_read_timestamp(const char *text, struct uva__ipc_type *out)
{
    static const char units[] = "smun";
    const char *unit = *text == '\0' ? NULL : strchr(units, *text);

    if (unit == NULL || text[1] != ':')
        return ENOTSUP;
    out->numbers[0] = (int32_t)(unit - units);
    out->text = text + 2;
    return 0;
}

/* ---- a format ----------------------------------------------------------- */

struct ipc_type_form {
    const char *begin;
    struct uva__ipc_type type;
    int (*read)(const char *text, struct uva__ipc_type *out);
};

static const struct ipc_type_form forms[] = {
    {.begin = "ts",
     .type = {.kind = UVA__IPC_FIXED,
              .tag = UVA__IPC_TAG_TIMESTAMP,
              .width = 8},
     .read = ipc_type_read_timestamp},
    {.begin = "w:",
     .type = {.kind = UVA__IPC_FIXED, .tag = UVA__IPC_TAG_FIXED_BINARY},
     .read = ipc_type_read_width},
    {.begin = "d:",
     .type = {.kind = UVA__IPC_FIXED, .tag = UVA__IPC_TAG_DECIMAL},
     .read = ipc_type_read_decimal},
    {.begin = "+w:",
     .type = {.kind = UVA__IPC_FIXED_LIST,
              .tag = UVA__IPC_TAG_FIXED_LIST,
              .n_children = ONE},
     .read = ipc_type_read_width},
    {.begin = "+us:",
     .type = {.kind = UVA__IPC_SPARSE_UNION,
              .tag = UVA__IPC_TAG_UNION,
              .numbers = {0}},
     .read = ipc_type_read_codes},
    {.begin = "+ud:",
     .type = {.kind = UVA__IPC_DENSE_UNION,
              .tag = UVA__IPC_TAG_UNION,
              .numbers = {1}},
     .read = ipc_type_read_codes},
};

int uva__ipc_type_read(const char *format, struct uva__ipc_type *out)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (strcmp(rows[i].format, format) == 0) {
            *out = rows[i].type;
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const size_t size = strlen(forms[i].begin);

        if (strncmp(forms[i].begin, format, size) == 0) {
            *out = forms[i].type;
            return forms[i].read(format + size, out);
        }
    }
    return ENOTSUP;
}

/* ---- the opposite ------------------------------------------------------- */

/* +us:CODE,CODE... or +ud:CODE,CODE... */
static int ipc_type_write_codes(const struct uva__ipc_type *type,
                                const int32_t *codes, int32_t n_codes,
                                char *format, size_t room)
{
    size_t used =
        (size_t)snprintf(format, room, type->numbers[0] == 0 ? "+us:" : "+ud:");

    assert(n_codes <= UVA__IPC_MOST_CODES);
    if (type->numbers[0] > 1)
        return EPROTO;
    for (int32_t i = 0; i < n_codes; i++) {
        assert(used < room);
        used += (size_t)snprintf(format + used, room - used, "%s%d",
                                 i == 0 ? "" : ",", (int)codes[i]);
    }
    return used < room ? 0 : EPROTO;
}

/* A format with parameters. */
static int ipc_type_write_form(const struct uva__ipc_type *type, char *format,
                               size_t room)
{
    static const char units[] = "smun";
    const int32_t *numbers = type->numbers;

    switch (type->tag) {
    case UVA__IPC_TAG_TIMESTAMP:
        if (numbers[0] > 3)
            return EPROTO;
        (void)snprintf(format, room, "ts%c:%s", units[numbers[0]], type->text);
        return 0;
    case UVA__IPC_TAG_FIXED_BINARY:
        (void)snprintf(format, room, "w:%d", (int)numbers[0]);
        return 0;
    case UVA__IPC_TAG_FIXED_LIST:
        (void)snprintf(format, room, "+w:%d", (int)numbers[0]);
        return 0;
    default:
        assert(type->tag == UVA__IPC_TAG_DECIMAL);
        if (numbers[0] < 0)
            return EPROTO;
        if (numbers[2] == 128)
            (void)snprintf(format, room, "d:%d,%d", (int)numbers[0],
                           (int)numbers[1]);
        else
            (void)snprintf(format, room, "d:%d,%d,%d", (int)numbers[0],
                           (int)numbers[1], (int)numbers[2]);
        return 0;
    }
}

int uva__ipc_type_write(const struct uva__ipc_type *type, const int32_t *codes,
                        int32_t n_codes, char *format, size_t room)
{
    struct uva__ipc_type check;
    bool is_known = false;
    int code;

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (rows[i].type.tag != type->tag)
            continue;
        is_known = true;
        if (memcmp(rows[i].type.numbers, type->numbers,
                   sizeof(type->numbers)) == 0) {
            (void)snprintf(format, room, "%s", rows[i].format);
            return 0;
        }
    }
    if (is_known)
        return EPROTO;
    code = type->tag == UVA__IPC_TAG_UNION
               ? ipc_type_write_codes(type, codes, n_codes, format, room)
               : ipc_type_write_form(type, format, room);
    return code != 0 || uva__ipc_type_read(format, &check) == 0 ? code : EPROTO;
}

int32_t uva__ipc_type_buffers(enum uva__ipc_kind kind)
{
    static const int8_t numbers[] = {
        [UVA__IPC_NULL] = 0,        [UVA__IPC_BITS] = 2,
        [UVA__IPC_FIXED] = 2,       [UVA__IPC_BINARY] = 3,
        [UVA__IPC_VIEW] = 3,        [UVA__IPC_LIST] = 2,
        [UVA__IPC_LIST_VIEW] = 3,   [UVA__IPC_FIXED_LIST] = 1,
        [UVA__IPC_STRUCT] = 1,      [UVA__IPC_SPARSE_UNION] = 1,
        [UVA__IPC_DENSE_UNION] = 2, [UVA__IPC_RUN_END] = 0,
    };

    return numbers[kind];
}
