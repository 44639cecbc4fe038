/* SPDX-License-Identifier: Apache-2.0 */
/* The body of an answer that is not the encoder's bytes as they are: an array
 * of JSON, or compressed text. A stage after that of the encoder makes it, on a
 * worker. */
#ifndef UVA_SERVE_BODY_H
#define UVA_SERVE_BODY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "coding.h"
#include "format.h"
#include "uvarrow/stages.h"

/* A piece of a body. */
struct uva__body_text {
    uv_buf_t buffer; /* owns its bytes, which are not empty */
    int64_t rows;    /* in it */
};

/* Returns whether an answer needs the stage. Thread: any, as all here. */
bool uva__body_is_made(enum uva__rows format, enum uva__coding coding);

/* Adds the stage. Returns 0 or ENOMEM. */
UVA_MUST_CHECK int uva__body_add(struct uva_stream *stream,
                                 enum uva__rows format,
                                 enum uva__coding coding);

/* Takes the text out of a batch that follows the stage, to be freed; NULL: it
 * carries none. */
struct uva__body_text *uva__body_take(struct ArrowDeviceArray *array);

/* Frees it. */
void uva__body_text_free(void *text);

#endif
