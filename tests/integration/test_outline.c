/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of one runtime share the copy and the plan of a schema, if the
 * schema of the next stream has the same contents: not if it only lies at the
 * same place. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/arrow.h"

static struct fixture f;

/* ---- a source with a schema that the test changes in place --------------- */

enum { COLUMNS = 40 }; /* all alike */

static char format[8];
static struct ArrowSchema column, *columns[COLUMNS];
static int64_t given, taken;
static bool done;

static void schema_forget(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void array_forget(struct ArrowArray *array)
{
    array->release = NULL;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    column = (struct ArrowSchema){
        .format = format, .name = "n", .release = schema_forget};
    for (int i = 0; i < COLUMNS; i++)
        columns[i] = &column;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = COLUMNS,
                                .children = columns,
                                .release = schema_forget};
    return 0;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    static const int64_t values[10];
    static const void *buffers[2] = {NULL, values};
    static struct ArrowArray numbers, *children[COLUMNS];

    (void)self;
    if (given++ > 0)
        return 0;
    numbers = (struct ArrowArray){.length = 10,
                                  .n_buffers = 2,
                                  .buffers = buffers,
                                  .release = array_forget};
    for (int i = 0; i < COLUMNS; i++)
        children[i] = &numbers;
    *out = (struct ArrowArray){.length = 10,
                               .n_buffers = 1,
                               .buffers = buffers,
                               .n_children = COLUMNS,
                               .children = children,
                               .release = array_forget};
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return NULL;
}

static void release(struct ArrowArrayStream *self)
{
    self->release = NULL;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    ck_assert_str_eq(batch->schema->children[0]->format, format);
    taken++;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    done = true;
}

static bool is_done(void *ctx)
{
    (void)ctx;
    return done;
}

/* Runs a stream of one batch with a column of that format. Returns the bytes
 * that its window has counted. */
static int64_t run(const char *of)
{
    struct ArrowArrayStream source = {get_schema, get_next, get_last_error,
                                      release, NULL};
    struct uva_stage_stats stats;
    struct uva_stream *stream;
    size_t count = 1;

    (void)snprintf(format, sizeof(format), "%s", of);
    given = taken = 0;
    done = false;
    stream = uva_stream_from_arrow_stream(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(
        uva_stream_for_each(
            stream,
            &(struct uva_consumer){.on_batch = on_batch, .on_done = on_done},
            NULL),
        0);
    loop_until(&f.loop, is_done, NULL);
    ck_assert_int_eq(uva_stream_status(stream, NULL), 0);
    ck_assert_int_eq(taken, 1);
    ck_assert_int_eq(uva_stream_get_stats(stream, &stats, &count), 0);
    uva_stream_release(stream);
    loop_settle(&f.loop);
    return stats.bytes;
}

static void set_up(void)
{
    fixture_open(&f, 0);
}

static void tear_down(void)
{
    fixture_close_counted(&f, 0, 0);
}

/* ---- tests --------------------------------------------------------------- */

START_TEST(another_schema_at_the_same_place_is_noticed)
{
    ck_assert_int_eq(run("l"), COLUMNS * 80);
    ck_assert_int_eq(run("i"), COLUMNS * 40);
    ck_assert_int_eq(run("i"), COLUMNS * 40);
    ck_assert_int_eq(run("l"), COLUMNS * 80);
}
END_TEST

START_TEST(the_same_schema_is_not_copied_again)
{
    struct faulty_allocator *memory = &f.loop.memory;
    long first, more;

    (void)run("l"); /* with what a runtime makes once */
    first = faulty_allocator_asked(memory);
    (void)run("i");
    first = faulty_allocator_asked(memory) - first;
    more = faulty_allocator_asked(memory);
    (void)run("i");
    more = faulty_allocator_asked(memory) - more;
    ck_assert_int_ge(first - more, COLUMNS / 2); /* a node of each column; a few
                                                    others vary */
}
END_TEST

int main(void)
{
    return suite_main("outline", set_up, tear_down,
                      suite_tests("outline",
                                  another_schema_at_the_same_place_is_noticed,
                                  the_same_schema_is_not_copied_again, NULL),
                      NULL);
}
