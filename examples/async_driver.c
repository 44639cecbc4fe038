/* SPDX-License-Identifier: Apache-2.0 */
/* The driver is a runtime with a thread of its own; each call is a stream that
 * drives the user's handler. */
#include "async_driver.h"

#include <stdlib.h>

#include "uvarrow/io.h"
#include "uvarrow/uvarrow.h"

struct async_driver {
    struct uva_runtime *rt;
};

struct async_driver *async_driver_open(void)
{
    struct async_driver *driver = calloc(1, sizeof(*driver));

    if (driver != NULL && uva_runtime_open(NULL, NULL, &driver->rt, NULL) == 0)
        return driver;
    free(driver);
    return NULL;
}

int async_driver_read(struct async_driver *driver, const char *path,
                      struct ArrowAsyncDeviceStreamHandler *handler)
{
    const struct uva_pair about[] = {{.key = "path", .value = path}, {0}};
    char metadata[4096];
    size_t size = sizeof(metadata);
    const struct uva_drive options = {
        .metadata = metadata, .on_worker = true /* the handler may block */};
    struct uva_stream *s;
    int code = uva_metadata_encode(about, metadata, &size);

    if (code != 0)
        return code;
    s = uva_stream_from_file(driver->rt, path, NULL);
    code = uva_stream_drive(s, handler, &options, NULL);
    uva_stream_release(s);
    return code;
}

void async_driver_close(struct async_driver *driver)
{
    uva_runtime_join(driver->rt, UVA_FOREVER);
    free(driver);
}
