/* SPDX-License-Identifier: Apache-2.0 */
/* Names as people know them: all texts are "text", and a dictionary and runs
 * have the type of their values. */
#include "type_name.h"

#include <stdio.h>
#include <string.h>

#include "uvarrow/stream.h"

static const struct {
    const char *format, *name;
} TYPES[] = {
    {"n", "null"},
    {"b", "bool"},
    {"c", "int8"},
    {"C", "uint8"},
    {"s", "int16"},
    {"S", "uint16"},
    {"i", "int32"},
    {"I", "uint32"},
    {"l", "int64"},
    {"L", "uint64"},
    {"e", "float16"},
    {"f", "float32"},
    {"g", "float64"},
    {"u", "text"},
    {"U", "text"},
    {"vu", "text"},
    {"z", "binary"},
    {"Z", "binary"},
    {"vz", "binary"},
    {"tdD", "date"},
    {"tdm", "date[ms]"},
    {"tts", "time[s]"},
    {"ttm", "time[ms]"},
    {"ttu", "time[us]"},
    {"ttn", "time[ns]"},
    {"tDs", "duration[s]"},
    {"tDm", "duration[ms]"},
    {"tDu", "duration[us]"},
    {"tDn", "duration[ns]"},
    {"tiM", "interval[month]"},
    {"tiD", "interval[day, ms]"},
    {"tin", "interval[month, day, ns]"},
    {"+s", "struct"},
    {"+m", "map"},
};

static const char *type_find(const char *format)
{
    for (size_t i = 0; i < sizeof(TYPES) / sizeof(*TYPES); i++)
        if (strcmp(TYPES[i].format, format) == 0)
            return TYPES[i].name;
    return NULL;
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Gives the name of an extension type, without the folder of Arrow's own. */
static bool type_extension(const struct ArrowSchema *schema, char *out,
                           size_t size)
{
    struct uva_pair pair;

    if (schema->metadata == NULL ||
        uva_metadata_get(schema->metadata, "ARROW:extension:name", &pair) != 0)
        return false;
    if (pair.value_size > 6 && begins(pair.value, "arrow.")) {
        pair.value += 6;
        pair.value_size -= 6;
    }
    (void)snprintf(out, size, "%.*s", (int)pair.value_size, pair.value);
    return true;
}

/* A list of any kind has one child. */
static bool type_list(const struct ArrowSchema *schema, char *out, size_t size)
{
    const char *format = schema->format;
    char item[64];

    if (!(strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0 ||
          strcmp(format, "+vl") == 0 || strcmp(format, "+vL") == 0 ||
          begins(format, "+w:")) ||
        schema->n_children != 1)
        return false;
    uva__type_name(schema->children[0], item, sizeof(item));
    (void)snprintf(out, size, "list<%s>", item);
    return true;
}

static bool type_timestamp(const char *format, char *out, size_t size)
{
    static const char *const UNITS[] = {"s", "ms", "us", "ns"};
    static const char LETTERS[] = "smun";
    const char *at = begins(format, "ts") && format[2] != '\0'
                         ? strchr(LETTERS, format[2])
                         : NULL;

    if (at == NULL || format[3] != ':')
        return false;
    (void)snprintf(out, size, "timestamp[%s%s%s]", UNITS[at - LETTERS],
                   format[4] != '\0' ? ", " : "", format + 4);
    return true;
}

/* Of "d:10,2,256" the bits are of no interest. */
static bool type_decimal(const char *format, char *out, size_t size)
{
    int precision, scale;

    if (sscanf(format, "d:%d,%d", &precision, &scale) != 2)
        return false;
    (void)snprintf(out, size, "decimal(%d, %d)", precision, scale);
    return true;
}

/* The column that has the values. */
static const struct ArrowSchema *values_of(const struct ArrowSchema *schema)
{
    if (schema->dictionary != NULL)
        return schema->dictionary;
    if (strcmp(schema->format, "+r") == 0 && schema->n_children == 2)
        return schema->children[1];
    return schema;
}

void uva__type_name(const struct ArrowSchema *schema, char *out, size_t size)
{
    const struct ArrowSchema *values = values_of(schema);
    const char *format = values->format, *name = type_find(format);

    if (type_extension(schema, out, size) || type_list(values, out, size) ||
        type_timestamp(format, out, size) || type_decimal(format, out, size))
        return;
    if (name == NULL && begins(format, "w:"))
        name = "binary";
    if (name == NULL && begins(format, "+u"))
        name = "union";
    (void)snprintf(out, size, "%s", name != NULL ? name : format);
}

bool uva__type_is_number(const struct ArrowSchema *schema)
{
    const char *format = values_of(schema)->format;

    return (format[0] != '\0' && format[1] == '\0' &&
            strchr("cCsSiIlLefg", format[0]) != NULL) ||
           begins(format, "d:");
}
