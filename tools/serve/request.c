/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of llhttp keep their arguments. They return -1 once the
 * request is refused, and pause the parser after the head and at the end. */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

/* Room that an unused request keeps for the next one. */
#define KEPT 1024

/* Longest name of a header that is looked at; longer ones are not kept. */
#define NAME_MOST 32

/* Bytes of framing that are accepted for each byte of a body in chunks. */
#define FRAME_RATIO 8

static const char *const NAMES[UVA__FIELDS] = {
    [UVA__FIELD_HOST] = "host",
    [UVA__FIELD_ORIGIN] = "origin",
    [UVA__FIELD_AUTHORIZATION] = "authorization",
    [UVA__FIELD_ACCEPT] = "accept",
    [UVA__FIELD_ACCEPT_ENCODING] = "accept-encoding",
    [UVA__FIELD_CONTENT_TYPE] = "content-type",
    [UVA__FIELD_CONTENT_ENCODING] = "content-encoding",
    [UVA__FIELD_TRANSFER_ENCODING] = "transfer-encoding",
    [UVA__FIELD_EXPECT] = "expect",
    [UVA__FIELD_SEC_FETCH_SITE] = "sec-fetch-site",
    [UVA__FIELD_SEC_FETCH_MODE] = "sec-fetch-mode",
    [UVA__FIELD_X_FORWARDED_FOR] = "x-forwarded-for",
};

/* Refuses the request. Only the first refusal counts. Returns -1. */
static int refuse(struct uva__request *request, int status, const char *why)
{
    if (request->phase == UVA__REQUEST_FAILED)
        return -1;
    request->phase = UVA__REQUEST_FAILED;
    request->status = status;
    request->why = why;
    return -1;
}

static int keep(struct uva__request *request, struct uva__bytes *bytes,
                const char *data, size_t size)
{
    return uva__bytes_add(bytes, data, size) == 0
               ? 0
               : refuse(request, 503, "out of memory");
}

/* ---- callbacks of the parser --------------------------------------------- */

static int on_url(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__request *request = parser->data;

    if ((int64_t)(request->target.size + size) > request->limits->url_bytes)
        return refuse(request, 414, "the URL is too long");
    return keep(request, &request->target, data, size);
}

/* Trailers have no meaning here, and must not replace a header. */
static bool in_trailers(const struct uva__request *request)
{
    return request->phase == UVA__REQUEST_BODY;
}

static int on_name(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__request *request = parser->data;

    if (request->in_value)
        uva__bytes_clear(&request->name, KEPT);
    request->in_value = false;
    if (in_trailers(request))
        return 0;
    if (request->name.size + size > NAME_MOST) /* no name that is looked at */
        return keep(request, &request->name, "!", 1);
    return keep(request, &request->name, data, size);
}

static enum uva__field field_find(const char *name)
{
    int field;

    for (field = 0; field < UVA__FIELDS; field++)
        if (strcasecmp(name, NAMES[field]) == 0)
            break;
    return (enum uva__field)field;
}

/* Whether several lines of a field are one list. */
static bool field_is_list(enum uva__field field)
{
    return field == UVA__FIELD_ACCEPT || field == UVA__FIELD_ACCEPT_ENCODING ||
           field == UVA__FIELD_X_FORWARDED_FOR;
}

/* A second line of a used field could be read by a proxy as the one that
 * counts. */
static int field_begin(struct uva__request *request)
{
    const enum uva__field field = field_find(uva__bytes_text(&request->name));

    request->field = field;
    if (field == UVA__FIELDS)
        return 0;
    if ((request->seen >> field & 1) == 0) {
        request->seen |= 1u << field;
        return 0;
    }
    if (field_is_list(field))
        return keep(request, &request->fields[field], ",", 1);
    return refuse(request, 400, "a header is there twice");
}

static int on_value(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__request *request = parser->data;

    if (in_trailers(request))
        return 0;
    if (!request->in_value && field_begin(request) != 0)
        return -1;
    request->in_value = true;
    if (request->field == UVA__FIELDS)
        return 0;
    return keep(request, &request->fields[request->field], data, size);
}

static int on_value_complete(llhttp_t *parser)
{
    struct uva__request *request = parser->data;
    struct uva__bytes *value;

    if (in_trailers(request))
        return 0;
    if (!request->in_value && field_begin(request) != 0) /* an empty value */
        return -1;
    request->in_value = true;
    if (request->field == UVA__FIELDS)
        return 0;
    request->has_origin |= request->field == UVA__FIELD_ORIGIN;
    value = &request->fields[request->field];
    while (value->size > 0 && strchr(" \t", value->data[value->size - 1]))
        value->data[--value->size] = '\0';
    return 0;
}

static enum uva__method method_of(const llhttp_t *parser)
{
    switch (llhttp_get_method((llhttp_t *)parser)) {
    case HTTP_GET:
        return UVA__METHOD_GET;
    case HTTP_HEAD:
        return UVA__METHOD_HEAD;
    case HTTP_POST:
        return UVA__METHOD_POST;
    case HTTP_DELETE:
        return UVA__METHOD_DELETE;
    case HTTP_OPTIONS:
        return UVA__METHOD_OPTIONS;
    default:
        return UVA__METHOD_OTHER;
    }
}

/* A coding that a proxy could undo, or understand in another way. */
static int coding_check(struct uva__request *request)
{
    const char *coding =
        uva__request_field(request, UVA__FIELD_TRANSFER_ENCODING);

    if (coding != NULL && request->is_old)
        return refuse(request, 400, "HTTP/1.0 has no transfer codings");
    if (coding != NULL && strcasecmp(coding, "chunked") != 0)
        return refuse(request, 501, "the only transfer coding is chunked");
    request->has_body = coding != NULL;
    return 0;
}

static int length_check(struct uva__request *request)
{
    const llhttp_t *parser = &request->parser;

    if ((parser->flags & F_CONTENT_LENGTH) == 0)
        return 0;
    request->has_body |= parser->content_length > 0;
    if (parser->content_length > (uint64_t)request->limits->body_bytes)
        return refuse(request, 413, "the body is too long");
    return 0;
}

/* Returns the length of "http://" or "https://" in front of a target; 0: it
 * is a path. */
static size_t scheme_length(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0)
        return 7;
    return strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

/* Of a target in absolute form the host counts, not the field Host, and the
 * path is the target: as if it had been sent so. */
static int target_split(struct uva__request *request)
{
    const char *text = uva__bytes_text(&request->target);
    const size_t scheme = scheme_length(text);
    const size_t size = strcspn(text + scheme, "/?#");
    struct uva__bytes *host = &request->fields[UVA__FIELD_HOST];

    if (scheme == 0)
        return 0;
    if (size == 0 || memchr(text + scheme, '@', size) != NULL)
        return refuse(request, 400, "the URL is malformed");
    uva__bytes_clear(host, KEPT);
    request->seen |= 1u << UVA__FIELD_HOST;
    if (keep(request, host, text + scheme, size) != 0)
        return -1;
    if (text[scheme + size] == '/') {
        uva__bytes_skip(&request->target, scheme + size);
        return 0;
    }
    uva__bytes_skip(&request->target, scheme + size - 1);
    request->target.data[0] = '/'; /* instead of the host's last character */
    return 0;
}

/* Requests that the parser accepts, and this server does not. */
static int head_check(struct uva__request *request)
{
    const char *expect = uva__request_field(request, UVA__FIELD_EXPECT);

    if (request->parser.http_major != 1)
        return refuse(request, 505, "only HTTP/1.1 and HTTP/1.0");
    if (request->method == UVA__METHOD_OTHER &&
        llhttp_get_method(&request->parser) == HTTP_CONNECT)
        return refuse(request, 400, "this is not a proxy");
    if (!request->is_old &&
        uva__request_field(request, UVA__FIELD_HOST) == NULL)
        return refuse(request, 400, "there is no Host");
    if (target_split(request) != 0)
        return -1;
    request->parser.upgrade = 0; /* an offer, which may be ignored */
    if (coding_check(request) != 0 || length_check(request) != 0)
        return -1;
    if (expect != NULL && strcasecmp(expect, "100-continue") != 0)
        return refuse(request, 417, "the only expectation is 100-continue");
    request->expects_continue = expect != NULL && !request->is_old;
    return 0;
}

static int on_head(llhttp_t *parser)
{
    struct uva__request *request = parser->data;

    request->is_old = parser->http_major == 1 && parser->http_minor == 0;
    request->method = method_of(parser);
    request->keeps_alive =
        !request->is_old && llhttp_should_keep_alive(parser) != 0;
    if (head_check(request) != 0)
        return -1;
    request->phase = UVA__REQUEST_READY;
    return HPE_PAUSED;
}

/* The size of a chunk is known before its data comes. */
static int on_chunk(llhttp_t *parser)
{
    struct uva__request *request = parser->data;
    const uint64_t left =
        (uint64_t)request->limits->body_bytes - request->body.size;

    if (parser->content_length > left)
        return refuse(request, 413, "the body is too long");
    return 0;
}

static int on_body(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__request *request = parser->data;

    if ((int64_t)(request->body.size + size) > request->limits->body_bytes)
        return refuse(request, 413, "the body is too long");
    return keep(request, &request->body, data, size);
}

static int on_complete(llhttp_t *parser)
{
    struct uva__request *request = parser->data;

    request->phase = UVA__REQUEST_COMPLETE;
    return HPE_PAUSED;
}

static const llhttp_settings_t SETTINGS = {
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_head,
    .on_chunk_header = on_chunk,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- the request --------------------------------------------------------- */

void uva__request_init(struct uva__request *request,
                       const struct uva__limits *limits)
{
    memset(request, 0, sizeof(*request));
    request->limits = limits;
    request->field = UVA__FIELDS;
    llhttp_init(&request->parser, HTTP_REQUEST, &SETTINGS);
    request->parser.data = request;
}

static void request_clear(struct uva__request *request, size_t kept)
{
    int i;

    uva__bytes_clear(&request->target, kept);
    uva__bytes_clear(&request->body, kept);
    uva__bytes_clear(&request->name, kept);
    for (i = 0; i < UVA__FIELDS; i++)
        uva__bytes_clear(&request->fields[i], kept);
}

void uva__request_reset(struct uva__request *request)
{
    const struct uva__bytes none = {0};
    struct uva__request before = *request;
    int i;

    request_clear(&before, KEPT);
    uva__request_init(request, before.limits);
    request->target = before.target;
    request->name = before.name;
    for (i = 0; i < UVA__FIELDS; i++)
        request->fields[i] = before.fields[i];
    request->body = none;
    uva__bytes_clear(&before.body, 0);
}

void uva__request_fini(struct uva__request *request)
{
    request_clear(request, 0);
}

/* Gives `size` bytes to the parser. Returns how many it has read. */
static size_t request_parse(struct uva__request *request, const char *data,
                            size_t size)
{
    const enum llhttp_errno code = llhttp_execute(&request->parser, data, size);

    if (code == HPE_OK)
        return size;
    if (code == HPE_PAUSED)
        llhttp_resume(&request->parser);
    else
        (void)refuse(request, 400, "the request is malformed");
    return (size_t)(llhttp_get_error_pos(&request->parser) - data);
}

/* While the head is read, the parser gets no more than the head may still
 * have. */
static size_t feed_head(struct uva__request *request, const char *data,
                        size_t size)
{
    const int64_t left = request->limits->head_bytes - request->head_size;

    if (size > (size_t)left)
        size = (size_t)left;
    request->phase = UVA__REQUEST_HEAD;
    size = request_parse(request, data, size);
    request->head_size += (int64_t)size;
    if (request->phase == UVA__REQUEST_HEAD &&
        request->head_size >= request->limits->head_bytes)
        (void)refuse(request, 431, "the head is too long");
    return size;
}

/* Sizes of chunks, their extensions and trailers are limited by the needs of a
 * body. */
static size_t feed_body(struct uva__request *request, const char *data,
                        size_t size)
{
    const size_t before = request->body.size;

    request->phase = UVA__REQUEST_BODY;
    size = request_parse(request, data, size);
    request->frame_size += (int64_t)(size - (request->body.size - before));
    if (request->phase != UVA__REQUEST_FAILED &&
        request->frame_size > request->limits->head_bytes +
                                  FRAME_RATIO * (int64_t)request->body.size)
        (void)refuse(request, 431, "the chunks have more framing than data");
    return size;
}

size_t uva__request_feed(struct uva__request *request, const char *data,
                         size_t size)
{
    switch (request->phase) {
    case UVA__REQUEST_IDLE:
    case UVA__REQUEST_HEAD:
        return size > 0 ? feed_head(request, data, size) : 0;
    case UVA__REQUEST_READY:
    case UVA__REQUEST_BODY:
        return feed_body(request, data, size);
    default:
        return 0;
    }
}

const char *uva__request_field(const struct uva__request *request,
                               enum uva__field field)
{
    assert(field < UVA__FIELDS);
    if ((request->seen >> field & 1) == 0)
        return NULL;
    return uva__bytes_text(&request->fields[field]);
}
