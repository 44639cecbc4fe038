/* SPDX-License-Identifier: Apache-2.0 */
/* Walks down the target schema, finds the source of each column, and decides
 * how it is cast, by one rule for each group of types. */
#include "arrow/cast_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/format.h"
#include "base/memory.h"
#include "uvarrow/arrow.h"

/* The arguments of all functions that make a plan. */
struct plan_walk {
    const struct uva_allocator *allocator; /* borrows */
    struct uva_error *error;               /* borrows; may be NULL */
};

static const char *text_of(const char *text)
{
    return text != NULL ? text : "";
}

static bool is_one_of(const char *format, const char *const formats[],
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(format, formats[i]) == 0)
            return true;
    return false;
}

/* ---- texts -------------------------------------------------------------- */

static int64_t plan_index(const struct uva__cast_plan *plan)
{
    return plan - plan->up->children;
}

/* The names from the root on, with dots between them. */
static void path_write(const struct uva__cast_plan *plan,
                       char path[UVA__CAST_PATH_SIZE])
{
    const char *name = text_of(plan->to->name);
    size_t used;

    if (plan->up == NULL) {
        (void)snprintf(path, UVA__CAST_PATH_SIZE, "column ");
        return;
    }
    path_write(plan->up, path);
    if (plan->up->kind == UVA__CAST_DECODE)
        return;
    used = strlen(path);
    if (path[used - 1] != ' ' && used + 1 < UVA__CAST_PATH_SIZE)
        path[used++] = '.';
    if (name[0] != '\0')
        (void)snprintf(path + used, UVA__CAST_PATH_SIZE - used, "%s", name);
    else
        (void)snprintf(path + used, UVA__CAST_PATH_SIZE - used, "#%lld",
                       (long long)plan_index(plan));
}

void uva__cast_plan_path(const struct uva__cast_plan *plan,
                         char path[UVA__CAST_PATH_SIZE])
{
    memset(path, 0, UVA__CAST_PATH_SIZE);
    while (plan->up != NULL && plan->up->kind == UVA__CAST_DECODE)
        plan = plan->up;
    if (plan->up != NULL)
        path_write(plan, path);
}

struct plan_name {
    const char *format, *name;
};

static const struct plan_name PLAN_NAMES[] = {
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
    {"z", "binary"},
    {"Z", "large_binary"},
    {"vz", "binary_view"},
    {"u", "utf8"},
    {"U", "large_utf8"},
    {"vu", "utf8_view"},
    {"tdD", "date32"},
    {"tdm", "date64"},
    {"tts", "time32[s]"},
    {"ttm", "time32[ms]"},
    {"ttu", "time64[us]"},
    {"ttn", "time64[ns]"},
    {"tDs", "duration[s]"},
    {"tDm", "duration[ms]"},
    {"tDu", "duration[us]"},
    {"tDn", "duration[ns]"},
    {"+l", "list"},
    {"+L", "large_list"},
    {"+vl", "list_view"},
    {"+vL", "large_list_view"},
    {"+s", "struct"},
    {"+m", "map"},
    {"+r", "run_end_encoded"},
};

/* The name of a type with a parameter. */
static void name_write(const char *format, char name[UVA__CAST_NAME_SIZE])
{
    static const char letters[] = "smun";
    static const char *const units[] = {"s", "ms", "us", "ns"};

    if (strncmp(format, "ts", 2) == 0 && uva__format_width(format) != 0)
        (void)snprintf(name, UVA__CAST_NAME_SIZE, "timestamp[%s%s%.40s]",
                       units[strchr(letters, format[2]) - letters],
                       format[4] != '\0' ? ", " : "", format + 4);
    else if (strncmp(format, "w:", 2) == 0)
        (void)snprintf(name, UVA__CAST_NAME_SIZE, "fixed_size_binary[%.20s]",
                       format + 2);
    else if (strncmp(format, "+w:", 3) == 0)
        (void)snprintf(name, UVA__CAST_NAME_SIZE, "fixed_size_list[%.20s]",
                       format + 3);
    else
        (void)snprintf(name, UVA__CAST_NAME_SIZE, "'%.40s'", format);
}

void uva__cast_plan_name(const struct ArrowSchema *schema,
                         char name[UVA__CAST_NAME_SIZE])
{
    const size_t count = sizeof(PLAN_NAMES) / sizeof(PLAN_NAMES[0]);

    if (schema->dictionary != NULL) {
        (void)snprintf(name, UVA__CAST_NAME_SIZE, "dictionary");
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(schema->format, PLAN_NAMES[i].format) == 0) {
            (void)snprintf(name, UVA__CAST_NAME_SIZE, "%s", PLAN_NAMES[i].name);
            return;
        }
    name_write(schema->format, name);
}

/* Fails at a column. `reason` follows its name. */
static int plan_fail(const struct plan_walk *walk,
                     const struct uva__cast_plan *plan, const char *reason)
{
    char path[UVA__CAST_PATH_SIZE];

    uva__cast_plan_path(plan, path);
    return uva_error_set(walk->error, EINVAL, "%s%s%s", path,
                         path[0] != '\0' ? " " : "the schema ", reason);
}

static int plan_refuse(const struct plan_walk *walk,
                       const struct uva__cast_plan *plan)
{
    char from[UVA__CAST_NAME_SIZE], to[UVA__CAST_NAME_SIZE],
        reason[2 * UVA__CAST_NAME_SIZE + 32];

    uva__cast_plan_name(plan->from, from);
    uva__cast_plan_name(plan->to, to);
    (void)snprintf(reason, sizeof(reason), "cannot be cast from %s to %s", from,
                   to);
    return plan_fail(walk, plan, reason);
}

/* ---- equal types -------------------------------------------------------- */

/* The size of a format without the width of a decimal of 128 bits, which may be
 * left out: "d:10,2,128". */
static size_t format_size(const char *format)
{
    const char *const last = strrchr(format, ',');

    return strncmp(format, "d:", 2) == 0 && last != NULL &&
                   strcmp(last, ",128") == 0 && strchr(format, ',') != last
               ? (size_t)(last - format)
               : strlen(format);
}

static bool is_same_format(const char *from, const char *to)
{
    const size_t size = format_size(from);

    return size == format_size(to) && strncmp(from, to, size) == 0;
}

static bool is_nullable(const struct ArrowSchema *schema)
{
    return (schema->flags & ARROW_FLAG_NULLABLE) != 0;
}

/* Whether the target promises an order that the source does not have. */
static bool is_ordered_anew(const struct ArrowSchema *from,
                            const struct ArrowSchema *to)
{
    const int64_t orders =
        ARROW_FLAG_DICTIONARY_ORDERED | ARROW_FLAG_MAP_KEYS_SORTED;

    return (to->flags & ~from->flags & orders) != 0;
}

/* Whether fields are found by their names: those of a map have any. */
static bool has_names(const struct ArrowSchema *parent)
{
    return parent->format[1] == 's' || parent->format[1] == 'u';
}

static bool is_equal(const struct ArrowSchema *from,
                     const struct ArrowSchema *to, bool names);

/* Whether a child or a dictionary is equal, and may be passed on unseen. */
static bool is_equal_below(const struct ArrowSchema *from,
                           const struct ArrowSchema *to, bool names)
{
    return (!names || strcmp(text_of(from->name), text_of(to->name)) == 0) &&
           (is_nullable(to) || !is_nullable(from)) && is_equal(from, to, true);
}

/* With `names` those of the children count. */
static bool is_equal(const struct ArrowSchema *from,
                     const struct ArrowSchema *to, bool names)
{
    const bool is_map = strcmp(from->format, "+m") == 0;

    if (!is_same_format(from->format, to->format) ||
        is_ordered_anew(from, to) || from->n_children != to->n_children ||
        (from->dictionary == NULL) != (to->dictionary == NULL))
        return false;
    for (int64_t i = 0; i < to->n_children; i++) {
        const struct ArrowSchema *const a = from->children[i],
                                        *const b = to->children[i];

        if (is_map ? !is_equal(a, b, false)
                   : !is_equal_below(a, b, names && has_names(from)))
            return false;
    }
    return to->dictionary == NULL ||
           is_equal_below(from->dictionary, to->dictionary, false);
}

/* ---- one node ----------------------------------------------------------- */

static int plan_node(const struct plan_walk *walk, struct uva__cast_plan *plan,
                     bool names);

static int plan_memory(const struct plan_walk *walk)
{
    return uva_error_set(walk->error, ENOMEM, "no memory for a cast");
}

/* Gives `plan` room for children. */
static int plan_have(const struct plan_walk *walk, struct uva__cast_plan *plan,
                     int64_t count)
{
    plan->children = uva__memory_new(
        walk->allocator, (size_t)(count > 0 ? count : 1) * sizeof(*plan));
    if (plan->children == NULL)
        return plan_memory(walk);
    plan->n_children = count;
    return 0;
}

/* Sets the schemas of child `i`, which is `child` of the source. */
static struct uva__cast_plan *plan_below(struct uva__cast_plan *plan, int64_t i,
                                         int64_t child)
{
    struct uva__cast_plan *const below = &plan->children[i];

    below->up = plan;
    below->from = plan->from->children[child];
    below->to = plan->to->children[i];
    below->child = child;
    return below;
}

/* Children of one position each. */
static int plan_positions(const struct plan_walk *walk,
                          struct uva__cast_plan *plan, bool names)
{
    const int64_t count = plan->to->n_children;
    int code;

    if (plan->from->n_children != count)
        return plan_refuse(walk, plan);
    code = plan_have(walk, plan, count);
    for (int64_t i = 0; i < count && code == 0; i++)
        code = plan_node(walk, plan_below(plan, i, i), names);
    return code;
}

/* The children of a schema, by name: there may be many. */
struct name {
    const char *text; /* borrows */
    int64_t child;
};

struct names {
    struct name *list; /* owns */
    int64_t count;
};

static int name_compare(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text,
                  ((const struct name *)b)->text);
}

static size_t names_size(int64_t count)
{
    return (size_t)(count > 0 ? count : 1) * sizeof(struct name);
}

static int names_init(const struct plan_walk *walk,
                      const struct ArrowSchema *schema, struct names *names)
{
    names->count = schema->n_children;
    names->list = uva__memory_new(walk->allocator, names_size(names->count));
    if (names->list == NULL)
        return plan_memory(walk);
    for (int64_t i = 0; i < names->count; i++)
        names->list[i] = (struct name){text_of(schema->children[i]->name), i};
    qsort(names->list, (size_t)names->count, sizeof(struct name), name_compare);
    return 0;
}

static void names_fini(const struct plan_walk *walk, struct names *names)
{
    uva__memory_free(walk->allocator, names->list, names_size(names->count));
}

/* The number of the one child with this name; -1: there is none; -2: there are
 * several. */
static int64_t names_find(const struct names *names, const char *text)
{
    const struct name key = {text, 0};
    const struct name *const end = names->list + names->count;
    const struct name *const found = bsearch(
        &key, names->list, (size_t)names->count, sizeof(key), name_compare);

    if (found == NULL)
        return -1;
    return (found > names->list && name_compare(found - 1, &key) == 0) ||
                   (found + 1 < end && name_compare(found + 1, &key) == 0)
               ? -2
               : found->child;
}

static int plan_column(const struct plan_walk *walk,
                       struct uva__cast_plan *plan, int64_t i,
                       const struct names *from, const struct names *to)
{
    struct uva__cast_plan *const below = &plan->children[i];
    const char *const name = text_of(plan->to->children[i]->name);
    const int64_t child = names_find(from, name);

    below->up = plan;
    below->to = plan->to->children[i];
    if (child == -1)
        return plan_fail(walk, below, "is missing");
    if (child < 0 || names_find(to, name) < 0)
        return plan_fail(walk, below, "is there twice");
    return plan_node(walk, plan_below(plan, i, child), true);
}

static int plan_columns(const struct plan_walk *walk,
                        struct uva__cast_plan *plan)
{
    struct names from = {.count = 0}, to = {.count = 0};
    int code = plan_have(walk, plan, plan->to->n_children);

    if (code == 0)
        code = names_init(walk, plan->from, &from);
    if (code == 0)
        code = names_init(walk, plan->to, &to);
    for (int64_t i = 0; i < plan->n_children && code == 0; i++)
        code = plan_column(walk, plan, i, &from, &to);
    names_fini(walk, &from);
    names_fini(walk, &to);
    return code;
}

/* Members of unions have type ids and names. */
static int plan_members(const struct plan_walk *walk,
                        struct uva__cast_plan *plan)
{
    const struct ArrowSchema *const from = plan->from, *const to = plan->to;

    plan->kind = from->format[2] == 's' ? UVA__CAST_SPARSE : UVA__CAST_DENSE;
    if (strcmp(from->format, to->format) != 0)
        return plan_refuse(walk, plan);
    for (int64_t i = 0; i < to->n_children; i++)
        if (strcmp(text_of(from->children[i]->name),
                   text_of(to->children[i]->name)) != 0)
            return plan_refuse(walk, plan);
    return plan_positions(walk, plan, true);
}

/* ---- the rules ---------------------------------------------------------- */

/* The item of a number; -1: it is none. No other format begins so. */
static int item_of_number(const char *format)
{
    const char *const found = strchr(UVA__CAST_NUMBERS, format[0]);

    return found != NULL ? (int)(found - UVA__CAST_NUMBERS) : -1;
}

static bool plan_is_number(struct uva__cast_plan *plan)
{
    const int from = item_of_number(plan->from->format),
              to = item_of_number(plan->to->format);

    plan->from_item = (uint8_t)from;
    plan->to_item = (uint8_t)to;
    return from >= 0 && to >= 0;
}

/* How many of a unit are in a second; of dates, in a day. */
static int64_t units_of(const char *format)
{
    static const int64_t units[] = {1, 1000, 1000000, 1000000000};

    if (format[1] == 'd')
        return format[2] == 'D' ? 1 : 86400000;
    return units[strchr("smun", format[2]) - "smun"];
}

/* Times of day, timestamps of one zone, durations, dates. */
static bool plan_is_time(struct uva__cast_plan *plan)
{
    const char *const from = plan->from->format, *const to = plan->to->format;
    int64_t from_units, to_units;

    if (from[0] != 't' || to[0] != 't' || from[1] != to[1] ||
        strchr("tsDd", from[1]) == NULL ||
        (from[1] == 's' && strcmp(from + 3, to + 3) != 0))
        return false;
    from_units = units_of(from);
    to_units = units_of(to);
    if (to_units > from_units)
        plan->multiply = to_units / from_units;
    else
        plan->divide = from_units / to_units;
    plan->from_item =
        uva__format_width(from) == 4 ? UVA__CAST_INT32 : UVA__CAST_INT64;
    plan->to_item =
        uva__format_width(to) == 4 ? UVA__CAST_INT32 : UVA__CAST_INT64;
    return true;
}

/* The item of bytes, and whether they are text; -1: they are no bytes. */
static int item_of_bytes(const char *format, bool *text, int64_t *size)
{
    static const char *const formats[] = {"u", "U", "vu", "z", "Z", "vz"};

    for (int i = 0; i < 6; i++)
        if (strcmp(format, formats[i]) == 0) {
            *text = i < 3;
            return i % 3;
        }
    if (strncmp(format, "w:", 2) != 0)
        return -1;
    *text = false;
    *size = strtol(format + 2, NULL, 10);
    return UVA__CAST_FIXED;
}

static bool plan_is_bytes(struct uva__cast_plan *plan)
{
    bool from_text = false, to_text = false;
    const int from = item_of_bytes(plan->from->format, &from_text, &plan->size),
              to = item_of_bytes(plan->to->format, &to_text, &plan->size);

    plan->from_item = (uint8_t)from;
    plan->to_item = (uint8_t)to;
    return from >= 0 && to >= 0 && from_text == to_text &&
           (from != UVA__CAST_FIXED || to != UVA__CAST_FIXED);
}

/* Lists of any size, and maps. */
static bool plan_is_list(struct uva__cast_plan *plan)
{
    static const char *const lists[] = {"+l", "+L", "+vl", "+vL"};
    const char *const from = plan->from->format, *const to = plan->to->format;
    const bool maps = strcmp(from, "+m") == 0 && strcmp(to, "+m") == 0 &&
                      !is_ordered_anew(plan->from, plan->to);

    plan->from_width = from[strlen(from) - 1] == 'L' ? 8 : 4;
    plan->to_width = to[strlen(to) - 1] == 'L' ? 8 : 4;
    return maps || (is_one_of(from, lists, 4) && is_one_of(to, lists, 4));
}

static int plan_nested(const struct plan_walk *walk,
                       struct uva__cast_plan *plan, bool names)
{
    const char *const from = plan->from->format, *const to = plan->to->format;

    if (strcmp(from, "+s") == 0 && strcmp(to, "+s") == 0) {
        plan->kind = UVA__CAST_STRUCT;
        return names ? plan_columns(walk, plan)
                     : plan_positions(walk, plan, true);
    }
    if (strncmp(from, "+u", 2) == 0)
        return plan_members(walk, plan);
    if (strncmp(from, "+w:", 3) == 0 && strcmp(from, to) == 0) {
        plan->kind = UVA__CAST_FIXED_LIST;
        plan->size = strtol(from + 3, NULL, 10);
        return plan_positions(walk, plan, true);
    }
    if (!plan_is_list(plan))
        return plan_refuse(walk, plan);
    plan->kind = UVA__CAST_LIST;
    return plan_positions(walk, plan, strcmp(from, "+m") != 0);
}

/* Runs whose ends are plain integers; of a well-formed schema. */
static bool is_runs(const struct ArrowSchema *schema)
{
    const char *ends;

    if (strcmp(schema->format, "+r") != 0)
        return false;
    ends = schema->children[0]->format;
    return schema->children[0]->dictionary == NULL && ends[0] != '\0' &&
           ends[1] == '\0' && strchr("sil", ends[0]) != NULL;
}

/* Whether there can be a null of this type: its format is known, a union has a
 * member that holds one, and runs have proper ends. */
static bool can_be_null(const struct ArrowSchema *schema)
{
    struct uva__layout layout;
    bool can =
        uva__format_read(schema->format, &layout) == 0 &&
        (layout.n_children < 0 || layout.n_children == schema->n_children) &&
        (strncmp(schema->format, "+u", 2) != 0 || schema->n_children > 0) &&
        (strcmp(schema->format, "+r") != 0 || is_runs(schema));

    for (int64_t i = 0; i < schema->n_children && can; i++)
        can = can_be_null(schema->children[i]);
    return can && (schema->dictionary == NULL ||
                   (layout.index && can_be_null(schema->dictionary)));
}

/* Values are repeated, and some of them may be null. */
static int plan_decode(const struct plan_walk *walk,
                       struct uva__cast_plan *plan, bool names)
{
    const struct ArrowSchema *const values = plan->from->dictionary != NULL
                                                 ? plan->from->dictionary
                                                 : plan->from->children[1];
    struct uva__cast_plan *below;
    int code;

    if (!can_be_null(values))
        return plan_refuse(walk, plan);
    code = plan_have(walk, plan, 1);
    if (code != 0)
        return code;
    plan->kind = UVA__CAST_DECODE;
    plan->strict = false;
    below = plan->children;
    below->up = plan;
    below->from = values;
    below->to = plan->to;
    code = plan_node(walk, below, names);
    below->strict = !is_nullable(plan->to);
    return code;
}

/* Decides by the formats, if those of neither schema are wrong. */
static int plan_formats(const struct plan_walk *walk,
                        struct uva__cast_plan *plan, bool names)
{
    if (plan_is_number(plan) || plan_is_time(plan))
        plan->kind = UVA__CAST_NUMBER;
    else if (plan_is_bytes(plan))
        plan->kind = UVA__CAST_BYTES;
    else if (plan->from->format[0] == '+')
        return plan_nested(walk, plan, names);
    else
        return plan_refuse(walk, plan);
    return 0;
}

static bool is_well_formed(const struct ArrowSchema *schema,
                           struct uva__layout *layout)
{
    return uva__format_read(schema->format, layout) == 0 &&
           (layout->n_children < 0 ||
            layout->n_children == schema->n_children) &&
           (schema->dictionary == NULL || layout->index);
}

/* With `names` columns of a struct are found by them. */
static int plan_node(const struct plan_walk *walk, struct uva__cast_plan *plan,
                     bool names)
{
    const struct ArrowSchema *const from = plan->from, *const to = plan->to;
    struct uva__layout layout = {.n_buffers = 0}, of_target;
    const bool known = is_well_formed(from, &layout);

    plan->has_validity = known && layout.n_buffers > 0 &&
                         layout.buffers[0].kind == UVA__BUFFER_VALIDITY;
    plan->strict = plan->up != NULL && is_nullable(from) && !is_nullable(to);
    plan->kind = UVA__CAST_EQUAL;
    if (is_equal(from, to, names))
        return 0;
    if (!known || !is_well_formed(to, &of_target))
        return plan_refuse(walk, plan);
    if (from->format[0] == 'n') {
        plan->kind = UVA__CAST_NULLS;
        return can_be_null(to) ? 0 : plan_refuse(walk, plan);
    }
    if (to->dictionary != NULL || strcmp(to->format, "+r") == 0)
        return plan_refuse(walk, plan);
    if (from->dictionary != NULL || is_runs(from))
        return plan_decode(walk, plan, names);
    return plan_formats(walk, plan, names);
}

int uva__cast_plan_init(const struct uva_allocator *allocator,
                        const struct ArrowSchema *from,
                        const struct ArrowSchema *to,
                        struct uva__cast_plan *plan, struct uva_error *error)
{
    const struct plan_walk walk = {allocator, error};

    *plan = (struct uva__cast_plan){.from = from, .to = to};
    return plan_node(&walk, plan, true);
}

void uva__cast_plan_fini(const struct uva_allocator *allocator,
                         struct uva__cast_plan *plan)
{
    const int64_t count = plan->n_children;

    for (int64_t i = 0; i < count; i++)
        uva__cast_plan_fini(allocator, &plan->children[i]);
    uva__memory_free(allocator, plan->children,
                     (size_t)(count > 0 ? count : 1) * sizeof(*plan));
    *plan = (struct uva__cast_plan){.n_children = 0};
}
