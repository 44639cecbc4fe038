/* SPDX-License-Identifier: Apache-2.0 */
/* Two programs in one that share only the Arrow C ABI: a driver with an
 * asynchronous call, and its user.
 *
 *     example_csv_driver flights.csv distance
 *
 * The driver is made with uvarrow: it receives a foreign handler and becomes
 * its producer. The user is written by hand, with the ABI and a few helpers of
 * uvarrow/arrow.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "csv_scan.h"
#include "numbers.h"

/* ---- the driver --------------------------------------------------------- */

/* The driver's entry point, callable on any thread. If it returns 0, the
 * handler controls the stream and will be released; after an error the handler
 * is unchanged. */
static int csv_execute_async(struct uva_runtime *rt, const char *path,
                             const char *column,
                             struct ArrowAsyncDeviceStreamHandler *handler,
                             struct uva_error *error)
{
    const struct uva_pair about[] = {{.key = "path", .value = path}, {0}};
    char metadata[512];
    size_t size = sizeof(metadata);
    struct uva_stream *s;
    int code = uva_metadata_encode(about, metadata, &size);

    s = uva_stream_from_tasks(
        rt, &(struct uva_task_source){.name = "csv",
                                      .schema = csv_scan_schema,
                                      .next = csv_scan_next,
                                      .extract = csv_scan_extract,
                                      .free_ctx = csv_scan_free,
                                      .ctx = csv_scan_new(path, column)});
    code = uva_stream_drive(
        s, handler,
        &(struct uva_drive){.metadata = code == 0 ? metadata : NULL,
                            .on_worker = true}, /* it may block */
        error);
    uva_stream_release(s);
    return code;
}

/* ---- its user ----------------------------------------------------------- */

struct user {
    struct ArrowAsyncDeviceStreamHandler handler;
    int64_t rows;
    double sum;
    int code; /* code of the outcome */
};

static int user_on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                          struct ArrowSchema *schema)
{
    static const char unnamed[] = "a file that the driver does not name";
    struct uva_pair path;

    if (uva_metadata_get(self->producer->additional_metadata, "path", &path))
        path =
            (struct uva_pair){.value = unnamed, .value_size = strlen(unnamed)};
    printf("column %s of %.*s\n", schema->children[0]->name,
           (int)path.value_size, path.value);
    schema->release(schema);                    /* the callee owns the schema */
    self->producer->request(self->producer, 8); /* at most 8 at once */
    return 0;
}

static int user_on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                             struct ArrowAsyncTask *task, const char *metadata)
{
    struct user *user = self->private_data;
    struct ArrowDeviceArray batch = {0};

    (void)metadata;
    if (task == NULL)
        return 0; /* the end */
    user->code = task->extract_data(task, &batch);
    if (user->code != 0)
        return user->code;
    for (int64_t i = 0; i < batch.array.length; i++) {
        const double value = numbers_of(&batch)[i];
        user->sum += isnan(value) ? 0 : value;
    }
    user->rows += batch.array.length;
    batch.array.release(&batch.array);
    self->producer->request(self->producer, 1); /* one more batch after this */
    return 0;
}

static void user_on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                          const char *message, const char *metadata)
{
    (void)metadata;
    ((struct user *)self->private_data)->code = code;
    fprintf(stderr, "%s\n", message != NULL ? message : "no reason");
}

static void user_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    self->release = NULL; /* the last call */
}

int main(int argc, char **argv)
{
    struct user user = {.handler = {.on_schema = user_on_schema,
                                    .on_next_task = user_on_next_task,
                                    .on_error = user_on_error,
                                    .release = user_release}};
    struct uva_runtime *rt;
    struct uva_error error;
    int code;

    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE.csv COLUMN\n", argv[0]);
        return 2;
    }
    user.handler.private_data = &user;
    code = uva_runtime_open(NULL, NULL, &rt, &error);
    if (code == 0) {
        code = csv_execute_async(rt, argv[1], argv[2], &user.handler, &error);
        uva_runtime_join(rt, UVA_FOREVER); /* until all streams have ended */
    }
    if (code != 0)
        fprintf(stderr, "%s\n", error.message);
    if (code != 0 || user.code != 0 || user.handler.release != NULL)
        return 1;
    printf("%" PRId64 " rows, %.0f in all\n", user.rows, user.sum);
    return 0;
}
