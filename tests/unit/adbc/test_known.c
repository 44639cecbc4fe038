/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a database, by the name that its driver states: each name of
 * the table, other names, and information that has another form than ADBC's,
 * each difference alone. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "adbc/known.h"
#include "support/check_suite.h"
#include "uvarrow/arrow.h"

/* One row of information, and what a test spoils of it. */
static struct {
    char text[100];
    uint32_t number;
    int8_t type;
    int32_t at, ends[2];
    AdbcStatusCode status;
    int schema_code, next_code;
    bool is_empty;
    const char *format, *number_format, *value_format, *text_format;
    int64_t children, value_children, row_offset, value_offset, text_offset;
    int64_t buffers;
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
    number_buffers[1] = &info.number;
    value_buffers[0] = &info.type;
    value_buffers[1] = &info.at;
    text = (struct ArrowArray){.length = 1,
                               .offset = info.text_offset,
                               .n_buffers = info.buffers,
                               .buffers = text_buffers,
                               .release = child_release};
    number = (struct ArrowArray){.length = 1,
                                 .n_buffers = 2,
                                 .buffers = number_buffers,
                                 .release = child_release};
    value = (struct ArrowArray){.length = 1,
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
    if (info.status != ADBC_STATUS_OK)
        return info.status;
    *out = (struct ArrowArrayStream){.get_schema = get_schema,
                                     .get_next = get_next,
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
        bool at_once;
    } expected[] = {
        {"ADBC PostgreSQL Driver", UVA__RESET_DISCARD_ALL, true},
        {"ADBC SQLite Driver", UVA__RESET_CLOSE_IF_WRITES, false},
        {"ADBC DuckDB Driver", UVA__RESET_CLOSE, false},
        {"ADBC Flight SQL Driver - Go", UVA__RESET_CLOSE, true},
    };

    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        set_up();
        strcpy(info.text, expected[i].name);
        ck_assert_str_eq(find()->driver, expected[i].name);
        ck_assert_int_eq(find()->reset, expected[i].reset);
        ck_assert_int_eq(find()->connects_at_once, expected[i].at_once);
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
        ck_assert(!find()->connects_at_once);
    }
    ck_assert_ptr_null(uva__known_find(&connection)->driver);
}
END_TEST

START_TEST(information_of_another_form_names_nothing)
{
    info.status = ADBC_STATUS_IO, spoilt();
    info.schema_code = EIO, spoilt();
    info.next_code = EIO, spoilt();
    info.is_empty = true, spoilt();
    info.number = ADBC_INFO_VENDOR_NAME, spoilt();
    info.type = 1, spoilt();
    info.at = 1, spoilt();
    info.at = -1, spoilt();
    info.ends[0] = -1, info.ends[1] = 21, spoilt();
    info.format = "i", info.children = 0, spoilt();
    info.format = "no format", spoilt();
    info.children = 1, spoilt();
    info.number_format = "i", spoilt();
    info.value_format = "+us:0", spoilt();
    info.value_format = "+ud:1", spoilt();
    info.value_children = 0, info.value_format = "+ud:", spoilt();
    info.text_format = "z", spoilt();
    info.row_offset = 1, spoilt();
    info.value_offset = 1, spoilt();
    info.text_offset = 1, spoilt();
    info.buffers = 2, spoilt();
}
END_TEST

int main(void)
{
    return suite_main(
        "known", set_up, NULL,
        suite_tests("names", each_name_is_found, another_name_is_unknown,
                    information_of_another_form_names_nothing, NULL),
        NULL);
}
