/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a database, by the name that its driver states: each name of
 * the table, other names, and information that has another form than ADBC's,
 * each difference alone. Types that a driver does not know, and whether a
 * connection is alive. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "adbc/connection.h"
#include "adbc/known.h"
#include "support/check_suite.h"
#include "uvarrow/arrow.h"

/* One row of information, and how a test spoils it. */
static struct {
    char text[100];
    uint32_t number;
    int8_t type;
    int32_t at, ends[3];
    AdbcStatusCode status;
    int schema_code, next_code;
    bool is_empty, is_released;
    int lacks; /* 1: get_schema, 2: get_next */
    const char *format, *number_format, *value_format, *text_format;
    int64_t children, value_children, row_offset, number_offset, value_offset;
    int64_t text_offset, rows, texts, buffers;
} info;

static int live; /* streams, schemas and arrays */

static void set_up(void)
{
    memset(&info, 0, sizeof(info));
    info.number = ADBC_INFO_DRIVER_NAME;
    info.format = "+s";
    info.number_format = "I";
    info.value_format = "+ud:0";
    info.text_format = "u";
    info.children = 2;
    info.value_children = 1;
    info.rows = 1;
    info.texts = 1;
    info.buffers = 3;
    live = 0;
}

static void schema_release(struct ArrowSchema *schema)
{
    live--;
    schema->release = NULL;
}

static void child_schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    static struct ArrowSchema text, number, value,
        *values[] = {&text}, *columns[] = {&number, &value};

    (void)self;
    if (info.schema_code != 0)
        return info.schema_code;
    text = (struct ArrowSchema){.format = info.text_format,
                                .release = child_schema_release};
    number = (struct ArrowSchema){.format = info.number_format,
                                  .release = child_schema_release};
    value = (struct ArrowSchema){.format = info.value_format,
                                 .n_children = info.value_children,
                                 .children = values,
                                 .release = child_schema_release};
    *out = (struct ArrowSchema){.format = info.format,
                                .n_children = info.children,
                                .children = columns,
                                .release = schema_release};
    live++;
    return 0;
}

static void array_release(struct ArrowArray *array)
{
    live--;
    array->release = NULL;
}

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    static const void *text_buffers[3], *number_buffers[2], *value_buffers[2],
        *no_buffer[1];
    static uint32_t numbers[2];
    static int8_t types[2];
    static int32_t at[2];
    static struct ArrowArray text, number, value,
        *values[] = {&text}, *columns[] = {&number, &value};

    (void)self;
    out->release = NULL;
    if (info.next_code != 0 || info.is_empty)
        return info.next_code;
    if (info.ends[1] == 0)
        info.ends[1] = (int32_t)strlen(info.text);
    text_buffers[1] = info.ends;
    text_buffers[2] = info.text;
    numbers[0] = info.number;
    types[0] = info.type;
    at[0] = info.at;
    number_buffers[1] = numbers;
    value_buffers[0] = types;
    value_buffers[1] = at;
    text = (struct ArrowArray){.length = info.texts,
                               .offset = info.text_offset,
                               .n_buffers = info.buffers,
                               .buffers = text_buffers,
                               .release = child_release};
    number = (struct ArrowArray){.length = info.rows,
                                 .offset = info.number_offset,
                                 .n_buffers = 2,
                                 .buffers = number_buffers,
                                 .release = child_release};
    value = (struct ArrowArray){.length = info.rows,
                                .offset = info.value_offset,
                                .n_buffers = 2,
                                .buffers = value_buffers,
                                .n_children = info.value_children,
                                .children = values,
                                .release = child_release};
    *out = (struct ArrowArray){.length = 1,
                               .offset = info.row_offset,
                               .n_buffers = 1,
                               .buffers = no_buffer,
                               .n_children = info.children,
                               .children = columns,
                               .release = array_release};
    live++;
    return 0;
}

static void stream_release(struct ArrowArrayStream *self)
{
    live--;
    self->release = NULL;
}

static AdbcStatusCode get_info(struct AdbcConnection *connection,
                               const uint32_t *codes, size_t count,
                               struct ArrowArrayStream *out,
                               struct AdbcError *error)
{
    (void)connection;
    (void)error;
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(codes[0], ADBC_INFO_DRIVER_NAME);
    if (info.status != ADBC_STATUS_OK || info.is_released)
        return info.status;
    *out = (struct ArrowArrayStream){
        .get_schema = info.lacks == 1 ? NULL : get_schema,
        .get_next = info.lacks == 2 ? NULL : get_next,
        .release = stream_release};
    live++;
    return ADBC_STATUS_OK;
}

static const struct uva__known *find(void)
{
    struct AdbcDriver driver = {.ConnectionGetInfo = get_info};
    struct AdbcConnection connection = {.private_driver = &driver};
    const struct uva__known *known = uva__known_find(&connection);

    ck_assert_ptr_nonnull(known);
    ck_assert_int_eq(live, 0);
    return known;
}

static void spoilt(void)
{
    strcpy(info.text, "ADBC PostgreSQL Driver");
    ck_assert_ptr_null(find()->driver);
    set_up();
}

START_TEST(each_name_is_found)
{
    static const struct {
        const char *name;
        enum uva__known_reset reset;
        bool at_once, drops;
    } expected[] = {
        {"ADBC PostgreSQL Driver", UVA__RESET_DISCARD_ALL, true, true},
        {"ADBC SQLite Driver", UVA__RESET_CLOSE_IF_WRITES, false, true},
        {"ADBC DuckDB Driver", UVA__RESET_CLOSE, false, false},
        {"ADBC Flight SQL Driver - Go", UVA__RESET_CLOSE, true, true},
    };

    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        set_up();
        strcpy(info.text, expected[i].name);
        ck_assert_str_eq(find()->driver, expected[i].name);
        ck_assert_int_eq(find()->reset, expected[i].reset);
        ck_assert_int_eq(uva__known_has(find(), UVA__KNOWN_CONNECTS_AT_ONCE),
                         expected[i].at_once);
        ck_assert_int_eq(uva__known_has(find(), UVA__KNOWN_DROPS_RESULTS),
                         expected[i].drops);
    }
}
END_TEST

START_TEST(another_name_is_unknown)
{
    static const char *const names[] = {"", "ADBC PostgreSQL Drive",
                                        "ADBC PostgreSQL Driver!",
                                        "adbc postgresql driver"};
    struct AdbcDriver driver = {0};
    struct AdbcConnection connection = {.private_driver = &driver};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        set_up();
        strcpy(info.text, names[i]);
        ck_assert_ptr_null(find()->driver);
        ck_assert_int_eq(find()->reset, UVA__RESET_CLOSE);
        ck_assert(!uva__known_has(find(), UVA__KNOWN_CONNECTS_AT_ONCE));
    }
    ck_assert_ptr_null(uva__known_find(&connection)->driver);
}
END_TEST

START_TEST(information_of_another_form_names_nothing)
{
    info.status = ADBC_STATUS_IO, spoilt();
    info.is_released = true, spoilt();
    info.lacks = 1, spoilt();
    info.lacks = 2, spoilt();
    info.schema_code = EIO, spoilt();
    info.next_code = EIO, spoilt();
    info.is_empty = true, spoilt();
    info.number = ADBC_INFO_VENDOR_NAME, spoilt();
    info.type = 1, spoilt();
    info.at = 1, spoilt();
    info.at = -1, spoilt();
    info.ends[0] = -1, info.ends[1] = 21, spoilt();
    info.ends[1] = -1, info.ends[2] = 21, info.at = 1, info.texts = 2, spoilt();
    info.format = NULL, spoilt();
    info.format = "i", info.children = 0, spoilt();
    info.format = "no format", spoilt();
    info.children = 1, spoilt();
    info.number_format = "i", spoilt();
    info.value_format = "+us:0", spoilt();
    info.value_format = "+ud:1", spoilt();
    info.value_children = 0, spoilt();
    info.value_children = 0, info.value_format = "+ud:", spoilt();
    info.text_format = "z", spoilt();
    info.row_offset = 1, spoilt();
    info.row_offset = 1, info.rows = 2, spoilt();
    info.number_offset = 1, spoilt();
    info.value_offset = 1, spoilt();
    info.text_offset = 1, spoilt();
    info.text_offset = 1, info.ends[1] = info.ends[2] = 22, spoilt();
    info.buffers = 2, spoilt();
}
END_TEST

/* ---- types --------------------------------------------------------------- */

/* Whether a field of this type is strange, `depth` levels below a schema. */
static bool is_strange(const char *type, int depth, char *out, size_t size)
{
    const struct uva_pair pair[] = {{.key = "POSTGRESQL:type", .value = type},
                                    {0}};
    struct ArrowSchema fields[16] = {{0}}, *below[16];
    char metadata[80];
    size_t used = sizeof(metadata);

    ck_assert_int_eq(uva_metadata_encode(pair, metadata, &used), 0);
    for (int i = 0; i < depth; i++) {
        below[i] = &fields[i + 1];
        fields[i].n_children = 1;
        fields[i].children = &below[i];
    }
    fields[depth].metadata = metadata;
    return uva__known_is_strange(&fields[0], out, size);
}

START_TEST(a_type_that_the_driver_has_not_found_is_strange)
{
    char out[16] = "";

    ck_assert(!is_strange("int4", 1, out, sizeof(out)));
    ck_assert(!is_strange("unnamed<old:12345>", 1, out, sizeof(out)));
    ck_assert_str_eq(out, "");
    ck_assert(is_strange("unnamed<oid:12345>", 1, out, sizeof(out)));
    ck_assert_str_eq(out, "unnamed<oid:123");
}
END_TEST

START_TEST(a_strange_type_is_found_in_eight_levels)
{
    char out[40] = "";

    ck_assert(is_strange("unnamed<oid:8>", 8, out, sizeof(out)));
    ck_assert_str_eq(out, "unnamed<oid:8>");
    ck_assert(!is_strange("unnamed<oid:9>", 9, out, sizeof(out)));
}
END_TEST

/* ---- whether it is alive ------------------------------------------------- */

static AdbcStatusCode get_version(struct AdbcConnection *connection,
                                  const uint32_t *codes, size_t count,
                                  struct ArrowArrayStream *out,
                                  struct AdbcError *error)
{
    (void)connection;
    (void)error;
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(codes[0], ADBC_INFO_VENDOR_VERSION);
    if (!info.is_released) {
        *out = (struct ArrowArrayStream){.release = stream_release};
        live++;
    }
    return info.status;
}

static bool is_alive(void)
{
    struct AdbcDriver driver = {.ConnectionGetInfo = get_version};
    const struct uva__connection c = {.adbc = {.private_driver = &driver},
                                      .known = uva__known_named("postgresql")};

    return uva__connection_is_alive(&c);
}

START_TEST(a_connection_whose_driver_answers_is_alive)
{
    ck_assert(is_alive());
    ck_assert_int_eq(live, 0);
    info.is_released = true; /* an answer without a stream */
    ck_assert(is_alive());
    info.status = ADBC_STATUS_IO;
    ck_assert(!is_alive());
}
END_TEST

int main(void)
{
    return suite_main(
        "known", set_up, NULL,
        suite_tests("names", each_name_is_found, another_name_is_unknown,
                    information_of_another_form_names_nothing, NULL),
        suite_tests("types", a_type_that_the_driver_has_not_found_is_strange,
                    a_strange_type_is_found_in_eight_levels, NULL),
        suite_tests("alive", a_connection_whose_driver_answers_is_alive, NULL),
        NULL);
}
