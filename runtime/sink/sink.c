/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a sink by the table of its kind. */
#include "sink/sink.h"

#include <string.h>

static void options_copy(const struct uva__sink_kind *kind,
                         struct uva__sink *sink, const void *options,
                         const struct uva_window *window)
{
    char *copy = (char *)sink + kind->copy;

    memcpy(copy, uva__options_or_zeroes(options), kind->options.size);
    if (kind->options.window != 0)
        memcpy(copy + kind->options.window, window, sizeof(*window));
}

int uva__sink_start(struct uva_stream *stream,
                    const struct uva__sink_kind *kind, const void *options,
                    struct uva_error *error)
{
    struct uva__window checked = {0};
    struct uva_window window;
    int code = uva__stream_may_start(stream, error);

    if (code == 0)
        code = uva__options_check_all(&kind->options, options, &checked, error);
    if (code != 0)
        return code;
    window = uva__window_given(&checked);
    if (kind->prepare != NULL)
        kind->prepare(stream, &window);
    code = uva__stream_make_sink(stream, &kind->ops, error);
    if (code != 0)
        return code;
    options_copy(kind, stream->sink, options, &window);
    code = kind->init != NULL ? kind->init(stream, error) : 0;
    if (code == 0)
        return uva__stream_start(stream, error);
    uva__stream_discard_sink(stream);
    return code;
}
