/* SPDX-License-Identifier: Apache-2.0 */
/* Does a driver keep the rules of Arrow's asynchronous interface? A checker
 * between it and its consumer reports each rule that is broken, and by whom. It
 * belongs into the tests of a driver; here that is async_driver.c.
 *
 *     $ cc check_driver.c async_driver.c run.c \
 *         $(pkg-config --cflags --libs uvarrow-io)
 *     $ ./a.out flights.arrow
 *     rules broken: 0
 */
#include <inttypes.h>
#include <stdio.h>

#include "async_driver.h"
#include "run.h"

struct query {
    struct async_driver *driver;
    const char *path;
    struct ArrowAsyncDeviceStreamHandler *checked; /* NULL: not begun */
};

static void on_breach(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    printf("%s, by the %s: %s\n%s", breach->clause,
           breach->party == UVA_PARTY_CONSUMER ? "consumer" : "driver",
           breach->message, breach->transcript);
}

/* Puts the checker in front of our handler, and passes it to the driver. */
static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error)
{
    const struct uva_check options = {
        .report = on_breach, .name = "driver", .deep = true, .keep = true};
    struct query *query = ctx;
    int code = uva_check_handler(handler, &options, &query->checked, error);

    if (code != 0)
        return code;
    code = async_driver_read(query->driver, query->path, query->checked);
    if (code != 0) { /* our handler is as before */
        (void)uva_check_withdraw(query->checked);
        query->checked = NULL;
        uva_error_set(error, code, "the driver refuses");
    }
    return code;
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx, (void)batch;
    return 0;
}

int main(int argc, char **argv)
{
    struct query query = {.path = argc > 1 ? argv[1] : ""};
    struct uva_runtime *rt;
    struct uva_stream *s;
    int code;

    query.driver = async_driver_open();
    if (query.driver == NULL || uva_runtime_open(NULL, NULL, &rt, NULL) != 0)
        return 1;
    s = uva_stream_from_async(
        rt, &(struct uva_async_source){.start = start, .ctx = &query});
    code = run_to_end(rt, s, &(struct uva_consumer){.on_batch = on_batch});
    async_driver_close(query.driver); /* no further call comes */
    if (query.checked != NULL)
        printf("rules broken: %" PRId64 "\n",
               uva_check_conclude(query.checked));
    return code;
}
