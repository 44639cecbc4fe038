/* SPDX-License-Identifier: Apache-2.0 */
/* A library that uses uvarrow internally without exposing it: it opens its own
 * runtime on first use, on any thread of its users, and gives them plain Arrow
 * streams. Its users are threads that do not know loops. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

/* ---- the library -------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct uva_runtime *rt;
static int users;

static int lib_open(char *message, size_t size)
{
    struct uva_error error = {0};
    int code = 0;

    pthread_mutex_lock(&lock);
    if (users == 0)
        code = uva_runtime_open(
            NULL, &(struct uva_runtime_options){.name = "lib"}, &rt, &error);
    if (code == 0)
        users++;
    pthread_mutex_unlock(&lock);
    if (code != 0 && size > 0) {
        strncpy(message, error.message, size - 1);
        message[size - 1] = '\0';
    }
    return code;
}

/* The last user to leave closes the runtime and its thread. */
static void lib_close(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0) {
        (void)uva_runtime_close(rt, 0, NULL, NULL);
        (void)uva_runtime_join(rt, UVA_FOREVER);
    }
    pthread_mutex_unlock(&lock);
}

static int open_one(void *ctx, struct ArrowArrayStream *out,
                    struct uva_error *error)
{
    return db_scan(ctx, out) == 0
               ? 0
               : uva_error_set(error, EIO, "%s: cannot open", (char *)ctx);
}

/* Reads a database ahead of its reader, as a blocking stream. */
static int lib_scan(const char *uri, struct ArrowArrayStream *out)
{
    struct uva_stream *s = uva_stream_from_arrow_stream(
        rt, NULL,
        &(struct uva_arrow_source){
            .open = open_one, .free_ctx = free, .ctx = strdup(uri)});
    int code = uva_stream_to_arrow_stream(s, NULL, out, NULL);

    uva_stream_release(s);
    return code;
}

/* ---- its users ---------------------------------------------------------- */

enum { USERS = 4, SCANS = 8 };

/* Every other scan is abandoned half-way. */
static void use_once(bool whole)
{
    struct db *copy = db_open("copy.db");
    struct ArrowArrayStream in;
    struct ArrowArray batch;

    assert(copy != NULL && lib_scan("flights.db", &in) == 0);
    if (whole) {
        assert(db_ingest(copy, "t", &in) == 0);
        assert(db_rows(copy) == (int64_t)DB_BATCHES * DB_ROWS);
    } else {
        assert(in.get_next(&in, &batch) == 0 && batch.length == DB_ROWS);
        batch.release(&batch);
        in.release(&in);
    }
    db_close(copy);
}

static void *use(void *ctx)
{
    char message[200];

    (void)ctx;
    for (int i = 0; i < SCANS; i++) {
        assert(lib_open(message, sizeof(message)) == 0);
        use_once(i % 2 == 0);
        lib_close();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[USERS];

    for (int i = 0; i < USERS; i++)
        assert(pthread_create(&threads[i], NULL, use, NULL) == 0);
    for (int i = 0; i < USERS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(users == 0);
    world_await_release();
    return 0;
}
