/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that makes a schema, and the next stage, which looks at it. */
#ifndef UVA_SUPPORT_MADE_SCHEMA_H
#define UVA_SUPPORT_MADE_SCHEMA_H

#include "support/recording_consumer.h"

/* For a function that makes a schema: fails with `code`, unless that is 0, or
 * leaves `out` empty, or gives a schema with another name than in
 * recording_consumer.h. */
int made_schema_give(int code, bool empty, const struct ArrowSchema *in,
                     struct ArrowSchema *out, struct uva_error *error);

/* Adds a stage that expects that schema, and runs the stream (takes it), which
 * ends with this transcript and a message that contains `text`. */
void made_schema_run(struct uva_stream *stream,
                     struct recording_consumer *consumer,
                     struct loop_fixture *loop, const char *transcript,
                     const char *text);

#endif
