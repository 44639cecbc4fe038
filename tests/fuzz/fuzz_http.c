/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of HTTP of any bytes, at the parser of `uvarrow serve`. An accepted
 * request keeps to the limits, and is the same however the bytes are cut into
 * pieces: a proxy may cut them in another way. Targets are decoded, bodies are
 * read as parameters of a query, and X-Forwarded-For as a list of clients.
 *
 * Input: how strict the limits are, and how the bytes are cut; the rest is the
 * input of a connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_input.h"
#include "parameters.h"
#include "proxies.h"
#include "request.h"
#include "url.h"

/* The reading of one connection. */
struct reading {
    struct uva__bytes text; /* of the requests that were complete */
    int complete;           /* number of these */
    bool failed;            /* the last one was refused */
};

/* ---- accepted requests -------------------------------------------------- */

static void add(struct reading *reading, const char *bytes, size_t size)
{
    FUZZ_RULE(uva__bytes_add(&reading->text, bytes, size) == 0);
    FUZZ_RULE(uva__bytes_add(&reading->text, "\n", 1) == 0);
}

static void check_url(const char *target)
{
    struct uva__url url;
    const int code = uva__url_init(&url, target);

    FUZZ_RULE(code == 0 || code == EINVAL);
    if (code != 0)
        return;
    FUZZ_RULE(url.path[0] == '/' && url.count <= UVA__URL_PARAMETERS);
    for (int i = 0; i < url.count; i++)
        FUZZ_RULE(uva__url_get(&url, url.parameters[i].name) ==
                  url.parameters[i].value);
    uva__url_fini(&url);
}

/* A list ends with {0}, and texts are C strings. */
static void check_values(const struct uva_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FUZZ_RULE(values[i].type != UVA_VALUE_END && values[i].name == NULL);
        FUZZ_RULE(values[i].type != UVA_VALUE_TEXT ||
                  strlen(values[i].data) == values[i].size);
    }
    FUZZ_RULE(values[count].type == UVA_VALUE_END);
}

static void check_body(const struct uva__bytes *body)
{
    struct uva_value *parameters;
    struct uva_error error = {0};
    json_t *values;
    int code;

    values =
        body->size > 0 ? json_loadb(body->data, body->size, 0, NULL) : NULL;
    if (values == NULL)
        return;
    code = uva__parameters_new(values, &parameters, &error);
    FUZZ_RULE(code == error.code && (code == 0) == (error.message[0] == '\0'));
    if (code == 0) {
        check_values(parameters, json_array_size(values));
        free(parameters);
    }
    json_decref(values);
}

/* Of a peer that is no proxy the list has no meaning; otherwise the client is
 * an address, whatever the list is. */
static void check_client(const char *forwarded)
{
    static const struct in6_addr peer = {.s6_addr = {10, 1}};
    const struct uva__proxies all = {.networks = {{.bits = 0}}, .count = 1},
                              none = {.count = 0};
    struct in6_addr client = uva__proxies_client(&none, &peer, forwarded);
    char text[UVA__NETWORK_ROOM];

    FUZZ_RULE(memcmp(&client, &peer, sizeof(peer)) == 0);
    client = uva__proxies_client(&all, &peer, forwarded);
    uva__network_name(&client, text);
    FUZZ_RULE(text[0] != '\0' && strlen(text) < sizeof(text));
    FUZZ_RULE(forwarded != NULL || memcmp(&client, &peer, sizeof(peer)) == 0);
}

static void check_complete(const struct uva__request *request)
{
    const struct uva__limits *limits = request->limits;

    FUZZ_RULE((int64_t)request->target.size <= limits->url_bytes);
    FUZZ_RULE((int64_t)request->body.size <= limits->body_bytes);
    FUZZ_RULE(request->head_size <= limits->head_bytes);
    FUZZ_RULE(request->is_old ||
              uva__request_field(request, UVA__FIELD_HOST) != NULL);
    FUZZ_RULE(request->has_body || request->body.size == 0);
    for (int i = 0; i < UVA__FIELDS; i++) {
        const char *value = uva__request_field(request, (enum uva__field)i);

        FUZZ_RULE(value == NULL || strpbrk(value, "\r\n") == NULL);
    }
    check_client(uva__request_field(request, UVA__FIELD_X_FORWARDED_FOR));
    check_url(uva__bytes_text(&request->target));
    check_body(&request->body);
}

static void request_note(struct reading *reading,
                         const struct uva__request *request)
{
    char facts[64];
    const int size =
        snprintf(facts, sizeof(facts), "%d %d %d %d", (int)request->method,
                 request->is_old, request->keeps_alive, request->has_body);

    check_complete(request);
    add(reading, facts, (size_t)size);
    add(reading, uva__bytes_text(&request->target), request->target.size);
    for (int i = 0; i < UVA__FIELDS; i++) {
        const char *value = uva__request_field(request, (enum uva__field)i);

        value = value != NULL ? value : "-";
        add(reading, value, strlen(value));
    }
    add(reading, uva__bytes_text(&request->body), request->body.size);
    reading->complete++;
    fuzz_trace("http", uva__bytes_text(&request->target),
               (int64_t)request->body.size);
}

/* ---- reading ------------------------------------------------------------ */

/* Gives the parser one piece, as a connection does. Returns false if the
 * connection would be closed. */
static bool piece_read(struct reading *reading, struct uva__request *request,
                       const char *data, size_t size)
{
    size_t read = 0, now;

    for (;;) {
        now = uva__request_feed(request, data + read, size - read);
        FUZZ_RULE(now <= size - read);
        read += now;
        switch (request->phase) {
        case UVA__REQUEST_FAILED:
            FUZZ_RULE(request->status >= 400 && request->why != NULL);
            reading->failed = true;
            return false;
        case UVA__REQUEST_COMPLETE:
            request_note(reading, request);
            uva__request_reset(request);
            break;
        case UVA__REQUEST_READY:
            continue; /* for the body, also if that is empty */
        default:
            FUZZ_RULE(read == size);
        }
        if (read == size)
            return true;
    }
}

/* Each piece is a block of exactly its size. */
static void bytes_read(struct reading *reading, const struct fuzz_input *in,
                       const struct uva__limits *limits, size_t most)
{
    struct uva__request request;
    size_t at = 0, size;
    bool goes_on = true;
    char *piece;

    uva__request_init(&request, limits);
    for (; at < in->size && goes_on; at += size) {
        size = in->size - at < most ? in->size - at : most;
        piece = malloc(size);
        FUZZ_RULE(piece != NULL);
        memcpy(piece, in->data + at, size);
        goes_on = piece_read(reading, &request, piece, size);
        free(piece);
    }
    uva__request_fini(&request);
}

/* Some limits are refused at another byte if the bytes come in other pieces,
 * but the requests that were complete before that are equal. */
static void check_same(const struct reading *a, const struct reading *b)
{
    const size_t size =
        a->text.size < b->text.size ? a->text.size : b->text.size;

    FUZZ_RULE(a->failed || b->failed || a->complete == b->complete);
    FUZZ_RULE(a->failed || a->complete >= b->complete);
    FUZZ_RULE(b->failed || b->complete >= a->complete);
    FUZZ_RULE(size == 0 || memcmp(a->text.data, b->text.data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct reading whole = {0}, cut = {0};
    struct uva__limits limits;

    uva__limits_init(&limits);
    if (fuzz_below(&in, 4) == 0) {
        limits.head_bytes = 16 + fuzz_byte(&in);
        limits.url_bytes = 1 + fuzz_byte(&in);
        limits.body_bytes = fuzz_byte(&in);
    }
    const size_t most = 1 + (size_t)fuzz_below(&in, 40);
    bytes_read(&whole, &in, &limits, SIZE_MAX);
    bytes_read(&cut, &in, &limits, most);
    check_same(&whole, &cut);
    uva__bytes_clear(&whole.text, 0);
    uva__bytes_clear(&cut.text, 0);
    return 0;
}
