/* SPDX-License-Identifier: Apache-2.0 */
/* One request of HTTP/1.1 or 1.0, as it arrives. llhttp parses it by its strict
 * rules; this keeps the used parts, and enforces the limits. A request that two
 * readers could understand in two ways is refused. */
#ifndef UVA_SERVE_REQUEST_H
#define UVA_SERVE_REQUEST_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "server_limits.h"

enum uva__request_phase {
    UVA__REQUEST_IDLE = 0, /* no byte of it has come */
    UVA__REQUEST_HEAD,     /* some bytes of its head have */
    UVA__REQUEST_READY,    /* the head is complete: feed again for the body */
    UVA__REQUEST_BODY,     /* the body is coming */
    UVA__REQUEST_COMPLETE, /* it has arrived */
    UVA__REQUEST_FAILED    /* refused: `status` and `why` */
};

enum uva__method {
    UVA__METHOD_GET = 0,
    UVA__METHOD_HEAD,
    UVA__METHOD_POST,
    UVA__METHOD_DELETE,
    UVA__METHOD_OPTIONS,
    UVA__METHOD_OTHER
};

/* The headers that the server looks at. */
enum uva__field {
    UVA__FIELD_HOST = 0,
    UVA__FIELD_ORIGIN,
    UVA__FIELD_AUTHORIZATION,
    UVA__FIELD_ACCEPT,
    UVA__FIELD_ACCEPT_ENCODING,
    UVA__FIELD_CONTENT_TYPE,
    UVA__FIELD_CONTENT_ENCODING,
    UVA__FIELD_TRANSFER_ENCODING,
    UVA__FIELD_EXPECT,
    UVA__FIELD_SEC_FETCH_SITE,
    UVA__FIELD_SEC_FETCH_MODE,
    UVA__FIELD_X_FORWARDED_FOR,
    UVA__FIELDS /* number of them */
};

/* A request. */
struct uva__request {
    llhttp_t parser;                  /* its data is the request */
    const struct uva__limits *limits; /* borrows */
    enum uva__request_phase phase;    /* how far it is */
    int status;                       /* FAILED: of the answer */
    const char *why;                  /* FAILED: static */
    enum uva__method method;          /* from READY on, as the next ones */
    bool is_old;                      /* HTTP/1.0 */
    bool keeps_alive;                 /* another request may follow */
    bool has_body;                    /* its head announces one */
    bool expects_continue;            /* the client waits for 100 Continue */
    struct uva__bytes target;         /* path and query */
    struct uva__bytes fields[UVA__FIELDS]; /* values, without outer blanks */
    struct uva__bytes body;                /* without its framing */
    struct uva__bytes name;                /* of the header that is read */
    enum uva__field field;                 /* that it is, or UVA__FIELDS */
    unsigned seen;                         /* a bit for each field */
    bool has_origin;                       /* that field has arrived */
    bool in_value;                         /* of a header */
    int64_t head_size;                     /* bytes up to the body */
    int64_t frame_size;                    /* bytes after it, but the body's */
};

/* Thread: loop, as all here. */
void uva__request_init(struct uva__request *request,
                       const struct uva__limits *limits);

/* Makes it ready for the next request of the connection. */
void uva__request_reset(struct uva__request *request);

/* Frees its content. */
void uva__request_fini(struct uva__request *request);

/* Reads up to `size` bytes at `data`. Returns how many were read: all, or fewer
 * once the phase is READY, COMPLETE or FAILED. In the phase READY, `size` may
 * be 0: a request without a body is COMPLETE then. */
size_t uva__request_feed(struct uva__request *request, const char *data,
                         size_t size);

/* Returns the value of a header; NULL if the request does not have it. */
const char *uva__request_field(const struct uva__request *request,
                               enum uva__field field);

#endif
