/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor is the stream's own copy, so it is closed here at once. */
#include "from.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "uvarrow/io.h"
#include "uvarrow/sources.h"
#ifdef UVA_HAS_CLIENT
#include "client/client.h"
#endif

static struct uva_stream *from_file(struct uva_runtime *runtime,
                                    const struct uva__options *options)
{
    struct uva_ipc_source source = {.max_bytes = options->max_bytes};
    const char *path = options->from;
    const bool is_input = strcmp(path, "-") == 0;
    const int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct uva_error error = {0};
    struct uva_stream *stream;

    if (fd < 0) {
        (void)uva_error_set(&error, errno, "cannot read %s: %s", path,
                            strerror(errno));
        return uva_stream_from_error(runtime, &error);
    }
    source.fd = fd;
    stream = uva_stream_from_file(runtime, NULL, &source);
    if (!is_input)
        (void)close(fd);
    return stream;
}

#ifdef UVA_HAS_CLIENT
static struct uva_stream *from_server(struct uva_runtime *runtime,
                                      const struct uva__options *options,
                                      struct uva_error *error)
{
    return uva__client_stream(runtime, options, error);
}
#else
static struct uva_stream *from_server(struct uva_runtime *runtime,
                                      const struct uva__options *options,
                                      struct uva_error *error)
{
    (void)uva_error_set(error, ENOTSUP,
                        "cannot read %s: HTTP needs llhttp, jansson and "
                        "OpenSSL when uvarrow is built",
                        options->from);
    return uva_stream_from_error(runtime, error);
}
#endif

struct uva_stream *uva__from_stream(struct uva_runtime *runtime,
                                    const struct uva__options *options,
                                    struct uva_error *error)
{
    return uva__options_from_server(options)
               ? from_server(runtime, options, error)
               : from_file(runtime, options);
}
