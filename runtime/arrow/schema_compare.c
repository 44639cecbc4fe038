/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through two schemas side by side. The expected one is a finite tree, so
 * the walk ends even where the other one contains a cycle. */
#include "arrow/schema_compare.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 200 };

/* A field on the way from the root. */
struct place {
    const struct place *above; /* NULL: this is the root */
    const char *name;          /* "" for a missing name */
    int64_t index;             /* among its siblings */
};

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

/* Appends the names from the root on, separated by dots. */
static void path_write(const struct place *place, char path[PATH_SIZE])
{
    size_t used;

    if (place->above == NULL)
        return;
    path_write(place->above, path);
    used = strlen(path);
    if (used > 0 && used + 1 < PATH_SIZE)
        path[used++] = '.';
    if (place->name[0] != '\0')
        (void)snprintf(path + used, PATH_SIZE - used, "%s", place->name);
    else
        (void)snprintf(path + used, PATH_SIZE - used, "#%lld",
                       (long long)place->index);
}

static int differs(const struct place *place, struct uva_error *error,
                   const char *what, const char *given, const char *expected)
{
    char path[PATH_SIZE] = {0};

    if (place->above == NULL)
        return uva_error_set(error, EINVAL, "its %s is %s, not %s", what, given,
                             expected);
    path_write(place, path);
    return uva_error_set(error, EINVAL, "field '%s': its %s is %s, not %s",
                         path, what, given, expected);
}

static int compare_flags(const struct place *place,
                         const struct ArrowSchema *expected,
                         const struct ArrowSchema *given,
                         struct uva_error *error)
{
    static const struct {
        int64_t flag;
        const char *name;
    } flags[] = {
        {ARROW_FLAG_NULLABLE, "nullability"},
        {ARROW_FLAG_DICTIONARY_ORDERED, "order of the dictionary"},
        {ARROW_FLAG_MAP_KEYS_SORTED, "order of the keys"},
    };
    const bool is_batch =
        place->above == NULL && strcmp(expected->format, "+s") == 0;
    const int64_t differing = (expected->flags ^ given->flags) &
                              ~(is_batch ? ARROW_FLAG_NULLABLE : INT64_C(0));

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (differing & flags[i].flag)
            return differs(place, error, flags[i].name,
                           given->flags & flags[i].flag ? "true" : "false",
                           given->flags & flags[i].flag ? "false" : "true");
    return 0;
}

static int compare_count(const struct place *place, int64_t expected,
                         int64_t given, struct uva_error *error)
{
    char texts[2][24];

    if (expected == given)
        return 0;
    (void)snprintf(texts[0], sizeof(texts[0]), "%lld", (long long)given);
    (void)snprintf(texts[1], sizeof(texts[1]), "%lld", (long long)expected);
    return differs(place, error, "number of children", texts[0], texts[1]);
}

/* Compares a field without its children. */
static int compare_field(const struct place *place,
                         const struct ArrowSchema *expected,
                         const struct ArrowSchema *given,
                         struct uva_error *error)
{
    int code;

    if (given == NULL || given->release == NULL || given->format == NULL)
        return differs(place, error, "format", "missing", expected->format);
    if (strcmp(expected->format, given->format) != 0)
        return differs(place, error, "format", given->format, expected->format);
    if (place->above != NULL && strcmp(place->name, text_of(given->name)) != 0)
        return differs(place, error, "name", text_of(given->name), place->name);
    code = compare_flags(place, expected, given, error);
    if (code == 0)
        code = compare_count(place, expected->n_children, given->n_children,
                             error);
    if (code != 0)
        return code;
    if (given->n_children > 0 && given->children == NULL)
        return differs(place, error, "vector of children", "missing", "given");
    if ((expected->dictionary == NULL) != (given->dictionary == NULL))
        return differs(place, error, "dictionary",
                       given->dictionary != NULL ? "given" : "missing",
                       given->dictionary != NULL ? "missing" : "given");
    return 0;
}

static int compare_at(const struct place *place,
                      const struct ArrowSchema *expected,
                      const struct ArrowSchema *given, struct uva_error *error)
{
    int code = compare_field(place, expected, given, error);
    int64_t i;

    for (i = 0; i < expected->n_children && code == 0; i++)
        code = compare_at(
            &(struct place){place, text_of(expected->children[i]->name), i},
            expected->children[i], given->children[i], error);
    if (code == 0 && expected->dictionary != NULL)
        code = compare_at(
            &(struct place){place, text_of(expected->dictionary->name), 0},
            expected->dictionary, given->dictionary, error);
    return code;
}

int uva__schema_compare(const struct ArrowSchema *expected,
                        const struct ArrowSchema *given,
                        struct uva_error *error)
{
    return compare_at(&(struct place){NULL, "", 0}, expected, given, error);
}
