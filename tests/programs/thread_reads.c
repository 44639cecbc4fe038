/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous stream read by a thread that only knows blocking streams: the
 * loop makes batches while there is room, and a thread of libuv's pool ingests
 * them into a database. */
#include <assert.h>
#include <uv.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 100 };

/* ---- the thread --------------------------------------------------------- */

struct ingest {
    uv_work_t work;
    struct db *db;
    struct ArrowArrayStream in; /* owns */
    int code;
    bool done;
};

static void ingest_run(uv_work_t *work)
{
    struct ingest *job = work->data;

    /* Reads on this thread until the end, then releases `in`; if it stops
     * early, the release cancels the stream. */
    job->code = db_ingest(job->db, "flights", &job->in);
}

static void ingest_done(uv_work_t *work, int status)
{
    struct ingest *job = work->data;

    assert(status == 0 && job->code == 0);
    job->done = true;
}

/* ---- the loop ----------------------------------------------------------- */

struct feed {
    int pushed, full; /* batches pushed; how often the window was full then */
};

static void source_room(void *ctx, struct uva_pusher *pusher)
{
    struct feed *feed = ctx;
    struct ArrowDeviceArray next;
    struct ArrowArray plain;
    int code;

    while (feed->pushed < BATCHES) {
        assert(column_count_up((int64_t)feed->pushed * DB_ROWS, DB_ROWS,
                               &plain) == 0);
        uva_array_from_cpu(&plain, &next);
        code = uva_pusher_push(pusher, &next, NULL, 0);
        assert(code == 0 || code == EAGAIN);
        feed->pushed++;
        if (code == EAGAIN) {
            feed->full++; /* called again when there is room */
            return;
        }
    }
    uva_pusher_close(pusher, NULL, NULL);
}

static void source_start(struct feed *feed, struct uva_pusher *pusher)
{
    struct ArrowSchema schema;

    assert(column_schema(&schema) == 0);
    assert(uva_pusher_set_schema(pusher, &schema) == 0);
    source_room(feed, pusher);
    assert(feed->full > 0); /* no batch can have been read so far */
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct ingest job = {.db = db_open("copy.db")};
    struct feed feed = {0};
    const struct uva_push_source options = {
        .on_writable = source_room, .ctx = &feed, .window = {.batches = 4}};
    struct uva_pusher *pusher;
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    assert(job.db != NULL);
    assert(uva_runtime_open(loop, NULL, &rt, &error) == 0);
    s = uva_stream_from_pusher(rt, &options, &pusher);
    assert(uva_stream_to_arrow_stream(s, &(struct uva_window){.batches = 8},
                                      &job.in, &error) == 0);
    uva_stream_release(s);
    job.work.data = &job;
    assert(uv_queue_work(loop, &job.work, ingest_run, ingest_done) == 0);
    source_start(&feed, pusher);
    uv_run(loop, UV_RUN_DEFAULT);
    assert(job.done && db_rows(job.db) == (int64_t)BATCHES * DB_ROWS);

    db_close(job.db);
    assert(uva_runtime_close(rt, 0, NULL, NULL) == 0);
    uv_run(loop, UV_RUN_DEFAULT);
    world_await_release();
    return uv_loop_close(loop);
}
