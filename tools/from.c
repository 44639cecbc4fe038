/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor is the stream's own copy, so it is closed here at once. */
#include "from.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "uvarrow/io.h"
#include "uvarrow/sources.h"
#include "uvarrow/stages.h"
#ifdef UVA_HAS_CLIENT
#include "client/client.h"
#endif

static struct uva_stream *from_file(struct uva_runtime *runtime,
                                    const struct uva__options *options)
{
    struct uva_ipc_source source = {.max_bytes = options->max_bytes};
    const char *path = options->from; /* one of several */
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

static struct uva_stream *from_one(struct uva_runtime *runtime,
                                   const struct uva__options *options, size_t i,
                                   struct uva_error *error)
{
    struct uva__options one = *options;
    struct uva_stream *stream;

    one.from = options->froms[i];
    stream = uva__options_from_server(&one) ? from_server(runtime, &one, error)
                                            : from_file(runtime, &one);
    if (options->n_froms > 1) /* an error says of which one */
        (void)uva_stream_set_name(stream, one.from);
    return stream;
}

struct uva_stream *uva__from_stream(struct uva_runtime *runtime,
                                    const struct uva__options *options,
                                    struct uva_error *error)
{
    struct uva_merge how = {.cast =
                                (options->together & UVA__TOGETHER_CAST) != 0};
    struct uva_stream *others[UVA__OPTIONS_FROMS], *stream;

    stream = from_one(runtime, options, 0, error);
    if (options->n_froms == 1)
        return stream;
    if (!uva__options_from_server(options)) /* all say how much they have */
        how.open_at_once = (int32_t)options->n_froms;
    for (size_t i = 1; i < options->n_froms; i++)
        others[i - 1] = from_one(runtime, options, i, error);
    if ((options->together & UVA__TOGETHER_MERGE) != 0)
        (void)uva_stream_merge(stream, others, options->n_froms - 1, &how);
    else
        (void)uva_stream_concat(stream, others, options->n_froms - 1, &how);
    return stream;
}
