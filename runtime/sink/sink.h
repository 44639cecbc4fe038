/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a sink, declared: its options, the stages that it needs, and its
 * functions are in a table for each kind. */
#ifndef UVA_SINK_SINK_H
#define UVA_SINK_SINK_H

#include "stream/options.h"
#include "stream/stream_impl.h"

/* A kind of sink: a static table. */
struct uva__sink_kind {
    struct uva__sink_ops ops;         /* first */
    struct uva__options_kind options; /* of the start */
    size_t copy; /* where a copy of the options lies in its object, with its
                    window complete */
    /* adds the stages that it needs, with the window of the options, or zeroes;
     * the stream keeps a failure. NULL: it needs no stages */
    void (*prepare)(struct uva_stream *stream, const struct uva_window *window);
    /* sets up the rest of its object, which is cleared. 0; a code with `error`:
     * the object is freed. NULL: there is no rest */
    int (*init)(struct uva_stream *stream, struct uva_error *error);
};

/* Starts `stream` with a sink of `kind`. 0; EINVAL; ENOMEM; as
 * uva__stream_start(); as its `init`. Thread: builder. */
UVA_MUST_CHECK int uva__sink_start(struct uva_stream *stream,
                                   const struct uva__sink_kind *kind,
                                   const void *options,
                                   struct uva_error *error);

#endif
