/* SPDX-License-Identifier: Apache-2.0 */
/* A month of flights, from the ADBC driver for SQLite through a stream to a
 * blocking stream, compared row by row with the rows of Python's sqlite3
 * module. */
#define _GNU_SOURCE
#include <check.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/adbc_query.h"
#include "support/check_suite.h"
#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

/* the path that the test of the query tool uses, too */
#define DATABASE UVA_TEST_BUILD "/test_query_tool/flights.db"
#define QUERY                                                                  \
    "SELECT day, dep_time, dep_delay, carrier, flight, tailnum, origin, dest " \
    "FROM flights WHERE month = 1 ORDER BY rowid"

enum { ROWS = 27004, SKIP = 77 };

/* ---- Python's rows ------------------------------------------------------ */

static void build_database(void)
{
    ck_assert_int_eq(system(UVA_TEST_PYTHON
                            " " UVA_TEST_SOURCE
                            "/tools/flights.py " UVA_TEST_FLIGHTS " " DATABASE),
                     0);
}

/* Opens the rows as lines: a bar after each field, and an empty field for NULL.
 */
static FILE *wanted_open(void)
{
    FILE *wanted = popen(
        UVA_TEST_PYTHON
        " -c \"import sqlite3\nfor row in "
        "sqlite3.connect('" DATABASE "').execute('" QUERY "'):\n"
        " print(''.join(('' if x is None else str(x)) + '|' for x in row))\"",
        "r");

    ck_assert_ptr_nonnull(wanted);
    return wanted;
}

/* ---- uvarrow's rows ----------------------------------------------------- */

static bool is_valid(const struct ArrowArray *column, int64_t i)
{
    const uint8_t *bits = column->buffers[0];

    i += column->offset;
    return bits == NULL || (bits[i / 8] >> (i % 8) & 1);
}

static int put_field(char *to, size_t room, const char *format,
                     const struct ArrowArray *column, int64_t i)
{
    const int32_t *ends = column->buffers[1];
    const int64_t at = i + column->offset;

    if (!is_valid(column, i))
        return snprintf(to, room, "|");
    if (strcmp(format, "l") == 0)
        return snprintf(to, room, "%lld|",
                        (long long)((const int64_t *)column->buffers[1])[at]);
    ck_assert_str_eq(format, "u");
    return snprintf(to, room, "%.*s|", (int)(ends[at + 1] - ends[at]),
                    (const char *)column->buffers[2] + ends[at]);
}

static void check_row(const struct ArrowSchema *schema,
                      const struct ArrowArray *array, int64_t i, FILE *wanted)
{
    char got[500], line[500];
    size_t size = 0;

    for (int64_t c = 0; c < array->n_children; c++)
        size += (size_t)put_field(got + size, sizeof(got) - size,
                                  schema->children[c]->format,
                                  array->children[c], i + array->offset);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), wanted));
    line[strcspn(line, "\n")] = '\0';
    ck_assert_str_eq(got, line);
}

static int64_t compare(struct ArrowArrayStream *stream, FILE *wanted)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    int64_t rows = 0;

    ck_assert_int_eq(stream->get_schema(stream, &schema), 0);
    for (;;) {
        ck_assert_int_eq(stream->get_next(stream, &array), 0);
        if (array.release == NULL)
            break;
        for (int64_t i = 0; i < array.length; i++, rows++)
            check_row(&schema, &array, i, wanted);
        array.release(&array);
    }
    uva_schema_release(&schema);
    return rows;
}

/* ---- the test ----------------------------------------------------------- */

struct source {
    struct adbc_query query;
    sem_t freed;
};

static void source_free(void *ctx)
{
    struct source *source = ctx;

    adbc_query_close(&source->query);
    (void)sem_post(&source->freed);
}

START_TEST(what_the_driver_reads_comes_through_unchanged)
{
    struct source driver;
    struct uva_arrow_source options = {.free_ctx = source_free, .ctx = &driver};
    const struct uva_window window = {.batches = _i};
    struct ArrowArrayStream source, out;
    struct uva_runtime *runtime;
    struct uva_error error = {0};

    build_database();
    FILE *wanted = wanted_open();
    (void)sem_init(&driver.freed, 0, 0);
    adbc_query_open(&driver.query, DATABASE, QUERY, &source);
    ck_assert_int_eq(uva_runtime_open(NULL, NULL, &runtime, NULL), 0);
    struct uva_stream *stream =
        uva_stream_from_arrow_stream(runtime, &source, &options);
    ck_assert_msg(uva_stream_to_arrow_stream(stream, &window, &out, &error) ==
                      0,
                  "%s", error.message);
    uva_stream_release(stream);
    ck_assert_int_eq(compare(&out, wanted), ROWS);
    ck_assert_int_eq(fgetc(wanted), EOF);
    ck_assert_int_eq(pclose(wanted), 0);
    out.release(&out);
    ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
    while (sem_wait(&driver.freed) != 0)
        ;
}
END_TEST

int main(void)
{
    if (!adbc_query_is_possible())
        return SKIP;

    TCase *rows = tcase_create("rows");
    tcase_add_loop_test(rows, what_the_driver_reads_comes_through_unchanged, 0,
                        3);

    return suite_main("to_arrow_stream_sqlite", NULL, NULL, rows, NULL);
}
