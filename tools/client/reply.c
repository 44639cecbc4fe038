/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of llhttp keep their arguments. They return -1 once the
 * reply has failed. A body ends with its last chunk, at its length, or, without
 * both, with the connection. */
#include "reply.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#define HEAD_MOST 65536 /* bytes of heads and of trailers */
#define TEXT_MOST 65536 /* bytes of a body that explains */
#define NAME_MOST 32    /* longer names are not looked at */

static const char *const NAMES[UVA__REPLY_FIELDS] = {
    [UVA__REPLY_TYPE] = "content-type",
    [UVA__REPLY_ENCODING] = "content-encoding",
    [UVA__REPLY_CODING] = "transfer-encoding",
};

/* ---- failures ------------------------------------------------------------ */

/* Only the first failure counts. Returns -1. */
static int reply_fail(struct uva__reply *reply, int code, const char *what,
                      const char *detail)
{
    if (reply->phase == UVA__REPLY_FAILED)
        return -1;
    reply->phase = UVA__REPLY_FAILED;
    (void)uva_error_set(&reply->error, code, what, detail);
    return -1;
}

static int reply_keep(struct uva__reply *reply, struct uva__bytes *bytes,
                      const char *data, size_t size)
{
    return uva__bytes_add(bytes, data, size) == 0
               ? 0
               : reply_fail(reply, ENOMEM, "%s", "out of memory");
}

/* A server of queries explains its status as {"error": {"message": ...}}; other
 * ones have a reason after it. */
static void reply_explain(struct uva__reply *reply)
{
    const int status = llhttp_get_status_code(&reply->parser);
    json_t *root =
        json_loadb(uva__bytes_text(&reply->text), reply->text.size, 0, NULL);
    const char *why = json_string_value(
        json_object_get(json_object_get(root, "error"), "message"));

    if (why == NULL)
        why = uva__bytes_text(&reply->reason);
    if (reply->phase != UVA__REPLY_FAILED)
        (void)uva_error_set(&reply->error, EIO, "the server answers %d%s%s",
                            status, *why != '\0' ? ": " : "", why);
    reply->phase = UVA__REPLY_FAILED;
    json_decref(root);
}

/* ---- callbacks of the parser --------------------------------------------- */

/* Counts the bytes of a head, and of trailers. */
static int head_count(struct uva__reply *reply, size_t size)
{
    reply->head_size += size;
    return reply->head_size <= HEAD_MOST
               ? 0
               : reply_fail(reply, EMSGSIZE, "%s",
                            "the head of the answer is too long");
}

static int on_status(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__reply *reply = parser->data;

    if (head_count(reply, size) != 0)
        return -1;
    return reply_keep(reply, &reply->reason, data, size);
}

static int on_name(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__reply *reply = parser->data;

    if (head_count(reply, size) != 0)
        return -1;
    if (reply->in_value)
        uva__bytes_clear(&reply->name, NAME_MOST);
    reply->in_value = false;
    if (reply->name.size + size > NAME_MOST)
        return reply_keep(reply, &reply->name, "!", 1);
    return reply_keep(reply, &reply->name, data, size);
}

/* Returns the field that the value is of; NULL: it is not looked at. */
static struct uva__bytes *field_find(struct uva__reply *reply)
{
    int i = 0;

    while (i < UVA__REPLY_FIELDS &&
           strcasecmp(uva__bytes_text(&reply->name), NAMES[i]) != 0)
        i++;
    return i < UVA__REPLY_FIELDS && reply->phase == UVA__REPLY_HEAD
               ? &reply->fields[i]
               : NULL;
}

static int on_value(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__reply *reply = parser->data;
    struct uva__bytes *field = field_find(reply);
    const size_t i = field == NULL ? 0 : (size_t)(field - reply->fields);

    if (head_count(reply, size) != 0)
        return -1;
    if (field == NULL)
        return 0;
    if (!reply->in_value && (reply->seen >> i & 1) != 0)
        return reply_fail(reply, EPROTO, "the answer has %s twice", NAMES[i]);
    reply->in_value = true;
    reply->seen |= 1u << i;
    return reply_keep(reply, field, data, size);
}

static int on_value_complete(llhttp_t *parser)
{
    struct uva__reply *reply = parser->data;
    struct uva__bytes *field = field_find(reply);

    reply->in_value = true; /* also after an empty one */
    while (field != NULL && field->size > 0 &&
           strchr(" \t", field->data[field->size - 1]) != NULL)
        field->data[--field->size] = '\0';
    return 0;
}

/* Only later bytes can be read as rows. */
static int rows_check(struct uva__reply *reply)
{
    const char *type = uva__bytes_text(&reply->fields[UVA__REPLY_TYPE]);
    const char *encoding = uva__bytes_text(&reply->fields[UVA__REPLY_ENCODING]);
    const char *coding = uva__bytes_text(&reply->fields[UVA__REPLY_CODING]);
    const size_t size = strcspn(type, "; \t");
    static const char *const TYPES[] = {"application/vnd.apache.arrow.stream",
                                        "application/octet-stream", ""};
    size_t i = 0;

    while (i < 3 &&
           (strlen(TYPES[i]) != size || strncasecmp(type, TYPES[i], size) != 0))
        i++;
    if (i == 3)
        return reply_fail(reply, EPROTO,
                          "the answer is %s, not a stream of Arrow IPC", type);
    if (*encoding != '\0' && strcasecmp(encoding, "identity") != 0)
        return reply_fail(reply, ENOTSUP, "the answer is encoded: %s",
                          encoding);
    if (*coding != '\0' && strcasecmp(coding, "chunked") != 0)
        return reply_fail(reply, ENOTSUP,
                          "the answer has the transfer coding %s", coding);
    return 0;
}

static bool is_interim(const llhttp_t *parser)
{
    return parser->status_code / 100 == 1 && parser->status_code != 101;
}

static int on_head(llhttp_t *parser)
{
    struct uva__reply *reply = parser->data;

    if (head_count(reply, 1) != 0)
        return -1;
    if (parser->http_major != 1)
        return reply_fail(reply, EPROTO, "%s",
                          "the server does not speak HTTP/1");
    if (is_interim(parser))
        return 0;
    if (parser->status_code != 200) {
        reply->phase = UVA__REPLY_TEXT;
        return 0;
    }
    if (rows_check(reply) != 0)
        return -1;
    reply->phase = UVA__REPLY_ROWS;
    return 0;
}

static int on_body(llhttp_t *parser, const char *data, size_t size)
{
    struct uva__reply *reply = parser->data;
    int code;

    if (reply->phase == UVA__REPLY_TEXT) {
        if (reply->text.size + size > TEXT_MOST)
            size = TEXT_MOST - reply->text.size;
        return size == 0 ? 0 : reply_keep(reply, &reply->text, data, size);
    }
    code = reply->on_body(reply->ctx, data, size);
    return code == 0 ? 0
                     : reply_fail(reply, code, "cannot pass on the rows: %s",
                                  strerror(code));
}

static void head_clear(struct uva__reply *reply)
{
    int i;

    for (i = 0; i < UVA__REPLY_FIELDS; i++)
        uva__bytes_clear(&reply->fields[i], 0);
    uva__bytes_clear(&reply->reason, 0);
    uva__bytes_clear(&reply->name, 0);
    reply->seen = 0;
    reply->in_value = false;
}

static int on_complete(llhttp_t *parser)
{
    struct uva__reply *reply = parser->data;

    if (reply->phase == UVA__REPLY_HEAD) { /* another one follows */
        head_clear(reply);
        return 0;
    }
    if (reply->phase == UVA__REPLY_TEXT)
        reply_explain(reply);
    else
        reply->phase = UVA__REPLY_COMPLETE;
    return HPE_PAUSED;
}

static const llhttp_settings_t SETTINGS = {
    .on_status = on_status,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- the reply ----------------------------------------------------------- */

void uva__reply_init(struct uva__reply *reply, uva__reply_body_fn *on_body_fn,
                     void *ctx)
{
    memset(reply, 0, sizeof(*reply));
    reply->on_body = on_body_fn;
    reply->ctx = ctx;
    llhttp_init(&reply->parser, HTTP_RESPONSE, &SETTINGS);
    reply->parser.data = reply;
}

void uva__reply_fini(struct uva__reply *reply)
{
    head_clear(reply);
    uva__bytes_clear(&reply->text, 0);
}

static bool reply_is_over(const struct uva__reply *reply)
{
    return reply->phase >= UVA__REPLY_COMPLETE;
}

void uva__reply_feed(struct uva__reply *reply, const char *data, size_t size)
{
    enum llhttp_errno code;

    if (reply_is_over(reply))
        return;
    code = llhttp_execute(&reply->parser, data, size);
    if (code == HPE_OK || reply_is_over(reply))
        return;
    if (code == HPE_PAUSED_UPGRADE && reply->phase == UVA__REPLY_TEXT)
        reply_explain(reply);
    else
        (void)reply_fail(reply, EPROTO, "the answer is malformed: %s",
                         llhttp_get_error_reason(&reply->parser));
}

/* The meaning of a connection that has ended. */
static void reply_cut(struct uva__reply *reply, const char *why)
{
    const char *more = why != NULL ? why : "the server has closed it";

    if (reply->phase == UVA__REPLY_TEXT)
        reply_explain(reply);
    else
        (void)reply_fail(reply, EPIPE,
                         reply->phase == UVA__REPLY_ROWS
                             ? "the answer was cut, and rows are missing: %s"
                             : "the connection ended before an answer: %s",
                         more);
}

void uva__reply_end(struct uva__reply *reply, const char *why)
{
    if (reply_is_over(reply))
        return;
    if (why == NULL)
        (void)llhttp_finish(&reply->parser);
    if (!reply_is_over(reply))
        reply_cut(reply, why);
}
