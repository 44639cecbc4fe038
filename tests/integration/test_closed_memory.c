/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a stream leaves in quarantine once it is closed: only the
 * part that late calls may still reach. Bytes are counted, and no time has to
 * pass: a producer's memory leaves quarantine only after 4096 of its kind, and
 * the test makes fewer. */
#include <check.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum {
    STREAMS = 512,
    WARM = 512,       /* streams before any is counted */
    MOST_BYTES = 256, /* of a producer, of which a stream has one, and one more
                         for each stage with its own thread */
    BATCHES = 3
};

static struct fixture f;

/* A stream of arrays in memory, as a source of the list below. */
static struct uva_stream *make_arrays(struct fixture *fixture)
{
    struct ArrowDeviceArray arrays[BATCHES];

    for (int i = 0; i < BATCHES; i++)
        fake_source_batch(&fixture->fake, i, &arrays[i]);
    return fixture_arrays(fixture, arrays, BATCHES);
}

static const struct fixture_source *source_at(int i)
{
    static const struct fixture_source arrays = {"arrays", make_arrays};

    return i < FIXTURE_SOURCES ? &fixture_sources[i] : &arrays;
}

/* Tasks that may be expensive are extracted by a stage of their own. */
static int producers_of(int i)
{
    return i == SOURCE_TASKS ? 2 : 1;
}

static void run_streams(const struct fixture_source *source, int count)
{
    for (int i = 0; i < count; i++) {
        recording_init(&f.got);
        (void)fixture_consume(&f, source->make(&f));
        ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
        loop_settle(&f.loop);
    }
}

START_TEST(a_closed_stream_leaves_at_most_256_bytes_of_each_producer)
{
    const struct fixture_source *source = source_at(_i);
    long before, each;

    fixture_open(&f, BATCHES);
    run_streams(source, WARM);
    before = faulty_allocator_live_bytes(&f.loop.memory);
    run_streams(source, STREAMS);
    each = (faulty_allocator_live_bytes(&f.loop.memory) - before) / STREAMS;
    ck_assert_msg(each <= MOST_BYTES * producers_of(_i), "%s: %ld bytes",
                  source->name, each);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *c = suite_tests("closed memory", NULL);

    suite_add_loops(c, 0, FIXTURE_SOURCES + 1,
                    a_closed_stream_leaves_at_most_256_bytes_of_each_producer,
                    NULL);
    return suite_main("closed_memory", NULL, NULL, c, NULL);
}
