/* SPDX-License-Identifier: Apache-2.0 */
/* Format strings of the Arrow C data interface, read into layouts. */
#include "arrow/format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the layouts -------------------------------------------------------- */

/* The width is a parameter of the format string. */
#define FORMAT_WIDTH (-1)

/* Groups of formats that have one layout. */
enum format_group {
    FORMAT_UNKNOWN,
    FORMAT_NOTHING,   /* no buffer and no child */
    FORMAT_BITS,      /* validity, a bit an item */
    FORMAT_FIXED,     /* validity, some bytes an item */
    FORMAT_INDEX,     /* as FORMAT_FIXED, of an integer */
    FORMAT_BINARY,    /* validity, offsets, data */
    FORMAT_VIEW,      /* validity, views, data buffers, their lengths */
    FORMAT_LIST,      /* validity, offsets; the items are a child */
    FORMAT_LIST_VIEW, /* validity, offsets, sizes; the items are a child */
    FORMAT_ROW,       /* validity; the columns are children */
    FORMAT_SPARSE,    /* type ids; the members are children */
    FORMAT_DENSE,     /* type ids, offsets; the members are children */
    FORMAT_RUNS       /* no buffer; ends of runs and values are children */
};

/* Without n_children they have no children; rows and unions set theirs later.
 */
static const struct uva__layout FORMAT_LAYOUTS[] = {
    [FORMAT_NOTHING] = {.n_buffers = 0},
    [FORMAT_BITS] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                 {UVA__BUFFER_BITS, 0}},
                     .n_buffers = 2},
    [FORMAT_FIXED] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                  {UVA__BUFFER_FIXED, FORMAT_WIDTH}},
                      .n_buffers = 2},
    [FORMAT_INDEX] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                  {UVA__BUFFER_FIXED, FORMAT_WIDTH}},
                      .n_buffers = 2,
                      .index = true},
    [FORMAT_BINARY] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                   {UVA__BUFFER_OFFSETS, FORMAT_WIDTH},
                                   {UVA__BUFFER_DATA, 0}},
                       .n_buffers = 3},
    [FORMAT_VIEW] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                 {UVA__BUFFER_FIXED, 16}},
                     .n_buffers = 2,
                     .variadic = true},
    [FORMAT_LIST] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                 {UVA__BUFFER_OFFSETS, FORMAT_WIDTH}},
                     .n_buffers = 2,
                     .n_children = 1},
    [FORMAT_LIST_VIEW] = {.buffers = {{UVA__BUFFER_VALIDITY, 0},
                                      {UVA__BUFFER_FIXED, FORMAT_WIDTH},
                                      {UVA__BUFFER_FIXED, FORMAT_WIDTH}},
                          .n_buffers = 3,
                          .n_children = 1},
    [FORMAT_ROW] = {.buffers = {{UVA__BUFFER_VALIDITY, 0}}, .n_buffers = 1},
    [FORMAT_SPARSE] = {.buffers = {{UVA__BUFFER_FIXED, 1}}, .n_buffers = 1},
    [FORMAT_DENSE] = {.buffers = {{UVA__BUFFER_FIXED, 1},
                                  {UVA__BUFFER_FIXED, 4}},
                      .n_buffers = 2},
    [FORMAT_RUNS] = {.n_buffers = 0, .n_children = 2},
};

/* Fills in the layout of a group, with the width of the format string. */
static int format_give(enum format_group group, int32_t width,
                       struct uva__layout *out)
{
    assert(group <= FORMAT_RUNS);
    if (group == FORMAT_UNKNOWN)
        return ENOTSUP;
    *out = FORMAT_LAYOUTS[group];
    if (out->buffers[1].width == FORMAT_WIDTH)
        out->buffers[1].width = width;
    if (out->buffers[2].width == FORMAT_WIDTH)
        out->buffers[2].width = width;
    return 0;
}

/* ---- one letter --------------------------------------------------------- */

struct format_letter {
    uint8_t group; /* enum format_group; 0: no such letter */
    uint8_t width; /* bytes */
};

static const struct format_letter FORMAT_LETTERS[128] = {
    ['n'] = {FORMAT_NOTHING, 0}, ['b'] = {FORMAT_BITS, 0},
    ['c'] = {FORMAT_INDEX, 1},   ['C'] = {FORMAT_INDEX, 1},
    ['s'] = {FORMAT_INDEX, 2},   ['S'] = {FORMAT_INDEX, 2},
    ['i'] = {FORMAT_INDEX, 4},   ['I'] = {FORMAT_INDEX, 4},
    ['l'] = {FORMAT_INDEX, 8},   ['L'] = {FORMAT_INDEX, 8},
    ['e'] = {FORMAT_FIXED, 2},   ['f'] = {FORMAT_FIXED, 4},
    ['g'] = {FORMAT_FIXED, 8},   ['z'] = {FORMAT_BINARY, 4},
    ['u'] = {FORMAT_BINARY, 4},  ['Z'] = {FORMAT_BINARY, 8},
    ['U'] = {FORMAT_BINARY, 8},
};

static int format_letter(char letter, struct uva__layout *out)
{
    const struct format_letter *row;

    if ((unsigned char)letter >= 128)
        return ENOTSUP;
    row = &FORMAT_LETTERS[(unsigned char)letter];
    return format_give(row->group, row->width, out);
}

/* ---- parameters --------------------------------------------------------- */

/* Reads a number without a sign at `*at` and moves `*at` past it. EINVAL if
 * there is no number, or if it is larger than `max`. */
static int format_number(const char **at, int32_t max, int32_t *out)
{
    int64_t number = 0;

    if (**at < '0' || **at > '9')
        return EINVAL;
    while (**at >= '0' && **at <= '9' && number <= max)
        number = number * 10 + (*(*at)++ - '0');
    *out = (int32_t)number;
    return number > max ? EINVAL : 0;
}

/* The one parameter of "w:42". */
static int format_only_number(const char *at, int32_t *out)
{
    const int code = format_number(&at, INT32_MAX, out);

    return code == 0 && *at != '\0' ? EINVAL : code;
}

/* "d:precision,scale" or "d:precision,scale,bits", after the colon. */
static int format_decimal(const char *at, struct uva__layout *out)
{
    int32_t digits, scale, bits = 128;
    int code = format_number(&at, INT32_MAX, &digits);

    if (code != 0 || *at++ != ',')
        return EINVAL;
    at += *at == '-';
    code = format_number(&at, INT32_MAX, &scale);
    if (code == 0 && *at == ',') {
        at++;
        code = format_number(&at, INT32_MAX, &bits);
    }
    if (code != 0 || *at != '\0')
        return EINVAL;
    if (bits < 32 || bits > 256 || (bits & (bits - 1)) != 0)
        return ENOTSUP;
    return format_give(FORMAT_FIXED, bits / 8, out);
}

/* "id,id,...", after the colon: as many children as ids. */
static int format_union(enum format_group group, const char *at,
                        struct uva__layout *out)
{
    int32_t id, count = 0;

    while (*at != '\0') {
        if (count > 0 && *at++ != ',')
            return EINVAL;
        if (format_number(&at, INT8_MAX, &id) != 0 || ++count > 128)
            return EINVAL;
    }
    (void)format_give(group, 0, out);
    out->n_children = count;
    return 0;
}

/* ---- time --------------------------------------------------------------- */

struct format_time {
    char kind;         /* the letter after the 't' */
    char units[5];     /* the letters that may follow */
    uint8_t widths[4]; /* bytes of each */
};

static const struct format_time FORMAT_TIMES[] = {
    {'s', "smun", {8, 8, 8, 8}}, /* timestamps; a time zone follows */
    {'d', "Dm", {4, 8}},         /* dates */
    {'t', "smun", {4, 4, 8, 8}}, /* times of day */
    {'D', "smun", {8, 8, 8, 8}}, /* durations */
    {'i', "MDn", {4, 8, 16}},    /* intervals */
};

static int format_time(const char *format, struct uva__layout *out)
{
    const size_t count = sizeof(FORMAT_TIMES) / sizeof(FORMAT_TIMES[0]);
    const struct format_time *row = FORMAT_TIMES;
    const char *unit;

    while (row < FORMAT_TIMES + count && row->kind != format[1])
        row++;
    if (row == FORMAT_TIMES + count || format[2] == '\0')
        return ENOTSUP;
    unit = strchr(row->units, format[2]);
    if (unit == NULL ||
        (row->kind == 's' ? format[3] != ':' : format[3] != '\0'))
        return ENOTSUP;
    return format_give(FORMAT_FIXED, row->widths[unit - row->units], out);
}

/* ---- nested ------------------------------------------------------------- */

struct format_nested {
    const char *format; /* after the '+' */
    uint8_t group;      /* enum format_group */
    uint8_t width;      /* bytes */
};

static const struct format_nested FORMAT_NESTED[] = {
    {"l", FORMAT_LIST, 4},       {"L", FORMAT_LIST, 8},
    {"m", FORMAT_LIST, 4},       {"vl", FORMAT_LIST_VIEW, 4},
    {"vL", FORMAT_LIST_VIEW, 8}, {"r", FORMAT_RUNS, 0},
};

static int format_row(int32_t n_children, struct uva__layout *out)
{
    (void)format_give(FORMAT_ROW, 0, out);
    out->n_children = n_children;
    return 0;
}

/* The format after the '+'. */
static int format_nested(const char *format, struct uva__layout *out)
{
    const size_t count = sizeof(FORMAT_NESTED) / sizeof(FORMAT_NESTED[0]);
    int32_t list_size;

    if (strcmp(format, "s") == 0)
        return format_row(-1, out);
    for (size_t i = 0; i < count; i++)
        if (strcmp(format, FORMAT_NESTED[i].format) == 0)
            return format_give(FORMAT_NESTED[i].group, FORMAT_NESTED[i].width,
                               out);
    if (strncmp(format, "us:", 3) == 0)
        return format_union(FORMAT_SPARSE, format + 3, out);
    if (strncmp(format, "ud:", 3) == 0)
        return format_union(FORMAT_DENSE, format + 3, out);
    if (strncmp(format, "w:", 2) != 0)
        return ENOTSUP;
    return format_only_number(format + 2, &list_size) == 0 ? format_row(1, out)
                                                           : EINVAL;
}

/* ---- all ---------------------------------------------------------------- */

static int format_fixed_binary(const char *at, struct uva__layout *out)
{
    int32_t width;
    const int code = format_only_number(at, &width);

    return code == 0 ? format_give(FORMAT_FIXED, width, out) : code;
}

int uva__format_read(const char *format, struct uva__layout *out)
{
    if (format == NULL)
        return EINVAL;
    if (format[0] == '\0' || format[1] == '\0')
        return format_letter(format[0], out);
    if (format[0] == 't')
        return format_time(format, out);
    if (format[0] == '+')
        return format_nested(format + 1, out);
    if (strcmp(format, "vu") == 0 || strcmp(format, "vz") == 0)
        return format_give(FORMAT_VIEW, 0, out);
    if (strncmp(format, "d:", 2) == 0)
        return format_decimal(format + 2, out);
    if (strncmp(format, "w:", 2) == 0)
        return format_fixed_binary(format + 2, out);
    return ENOTSUP;
}

void uva__format_members(const char *format, int8_t of_id[UVA__UNION_IDS])
{
    const char *at = strchr(format, ':') + 1;
    int8_t member = 0;
    char *end;

    memset(of_id, -1, UVA__UNION_IDS);
    for (; *at != '\0'; at = *end == ',' ? end + 1 : end)
        of_id[strtol(at, &end, 10)] = member++;
}

int32_t uva__format_width(const char *format)
{
    struct uva__layout layout;
    const struct format_letter *row;

    if (format == NULL || format[0] == '\0')
        return 0;
    if (format[1] != '\0')
        return format[0] == 't' && format_time(format, &layout) == 0
                   ? layout.buffers[1].width
                   : 0;
    if ((unsigned char)format[0] >= 128)
        return 0;
    row = &FORMAT_LETTERS[(unsigned char)format[0]];
    return row->group == FORMAT_FIXED || row->group == FORMAT_INDEX ? row->width
                                                                    : 0;
}
