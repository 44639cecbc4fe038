/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of HTTP, which llhttp reads: a body with Arrow IPC, or the reason
 * for its lack. */
#ifndef UVA_CLIENT_REPLY_H
#define UVA_CLIENT_REPLY_H

#include <llhttp.h>
#include <stddef.h>

#include "bytes.h"
#include "uvarrow/base.h"

/* How far it was read. */
enum uva__reply_phase {
    UVA__REPLY_HEAD = 0, /* of this answer, or of one with a status of 1xx */
    UVA__REPLY_ROWS,     /* in the body, which has rows */
    UVA__REPLY_TEXT,     /* in the body, which explains the status */
    UVA__REPLY_COMPLETE, /* all rows were read */
    UVA__REPLY_FAILED    /* see `error` */
};

/* Headers that are looked at. */
enum uva__reply_field {
    UVA__REPLY_TYPE = 0,
    UVA__REPLY_ENCODING, /* of the content */
    UVA__REPLY_CODING,   /* of the transfer */
    UVA__REPLY_FIELDS
};

/* Gets a part of the body, which is valid during the call. Returns 0, or an
 * errno that ends the reply. */
typedef int uva__reply_body_fn(void *ctx, const char *data, size_t size);

struct uva__reply {
    llhttp_t parser;
    enum uva__reply_phase phase;
    uva__reply_body_fn *on_body;
    void *ctx;                                   /* borrows: of on_body */
    struct uva__bytes reason;                    /* owns: of the status */
    struct uva__bytes name;                      /* owns: of a header */
    struct uva__bytes fields[UVA__REPLY_FIELDS]; /* owns */
    unsigned seen;                               /* a bit for each of these */
    struct uva__bytes text;                      /* owns: explains */
    size_t head_size;                            /* bytes of all heads */
    bool in_value;                               /* of the header `name` */
    struct uva_error error;                      /* of FAILED */
};

/* Thread: loop, as all here. */
void uva__reply_init(struct uva__reply *reply, uva__reply_body_fn *on_body,
                     void *ctx);

/* Reads bytes. After COMPLETE or FAILED, there are no bytes to read. */
void uva__reply_feed(struct uva__reply *reply, const char *data, size_t size);

/* The connection has ended, for the reason `why`, or NULL. It is COMPLETE or
 * FAILED afterwards. */
void uva__reply_end(struct uva__reply *reply, const char *why);

void uva__reply_fini(struct uva__reply *reply);

#endif
