/* SPDX-License-Identifier: Apache-2.0 */
/* Heads are a few lines of text; errors are JSON. */
#include "response.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } REASONS[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    size_t i;

    for (i = 0; i < sizeof(REASONS) / sizeof(*REASONS); i++)
        if (REASONS[i].status == status)
            return REASONS[i].text;
    return "Error";
}

static int add(struct uva__bytes *out, const char *text)
{
    return uva__bytes_add(out, text, strlen(text));
}

/* Appends "name: value". Not written without a value. */
static int line(struct uva__bytes *out, const char *name, const char *value)
{
    int code = 0;

    if (value == NULL)
        return 0;
    code = add(out, name);
    if (code == 0)
        code = add(out, value);
    return code != 0 ? code : add(out, "\r\n");
}

static int head_begin(int status, struct uva__bytes *out)
{
    char text[128], date[64];
    const time_t now = time(NULL);
    struct tm parts;

    (void)gmtime_r(&now, &parts);
    (void)strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    (void)snprintf(text, sizeof(text), "HTTP/1.1 %d %s\r\nDate: %s\r\n", status,
                   reason(status), date);
    return add(out, text);
}

/* States where the content ends. */
static int head_framing(const struct uva__response *response,
                        struct uva__bytes *out)
{
    char text[64];

    if (response->status == 204)
        return 0;
    if (response->length < 0)
        return response->is_chunked ? add(out, "Transfer-Encoding: chunked\r\n")
                                    : 0;
    (void)snprintf(text, sizeof(text), "Content-Length: %" PRId64 "\r\n",
                   response->length);
    return add(out, text);
}

/* The lines for a page of another site. */
static int head_origin(const char *origin, struct uva__bytes *out)
{
    int code = line(out, "Access-Control-Allow-Origin: ", origin);

    if (code == 0 && origin != NULL)
        code = add(out, "Access-Control-Expose-Headers: X-Query-Id, "
                        "Retry-After\r\n");
    return code;
}

/* Clients of HTTP/1.0 expect a close unless they ask for more, and get one. */
static int head_end(const struct uva__response *response,
                    struct uva__bytes *out)
{
    char text[80];

    if (!response->keeps_alive)
        return add(out, "Connection: close\r\n\r\n");
    (void)snprintf(text, sizeof(text),
                   "Connection: keep-alive\r\nKeep-Alive: timeout=%" PRId64
                   "\r\n\r\n",
                   response->idle_s);
    return add(out, text);
}

int uva__response_head(const struct uva__response *response,
                       struct uva__bytes *out)
{
    int code = head_begin(response->status, out);

    if (code == 0)
        code = line(out, "Content-Type: ", response->type);
    if (code == 0)
        code = head_framing(response, out);
    if (code == 0)
        code = add(out, "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Vary: Origin, Accept, Accept-Encoding\r\n");
    if (code == 0)
        code = head_origin(response->origin, out);
    if (code == 0 && response->more != NULL)
        code = add(out, response->more);
    return code == 0 ? head_end(response, out) : code;
}

/* ---- errors -------------------------------------------------------------- */

static int quote_one(const char **at, struct uva__bytes *out)
{
    const size_t length = uva__utf8_size(*at);
    const char *c = *at;
    char text[8];

    *at += length > 0 ? length : 1;
    if (length == 0)
        return add(out, "\xef\xbf\xbd");
    if (length > 1 || (*c >= ' ' && strchr("\"\\<>&\x7f", *c) == NULL))
        return uva__bytes_add(out, c, length);
    (void)snprintf(text, sizeof(text), "\\u%04x", (unsigned)*c);
    return add(out, text);
}

int uva__response_quote(const char *text, struct uva__bytes *out)
{
    int code = add(out, "\"");

    while (code == 0 && *text != '\0')
        code = quote_one(&text, out);
    return code == 0 ? add(out, "\"") : code;
}

static int member(const char *key, const char *value, struct uva__bytes *out)
{
    int code = add(out, ",");

    if (code == 0)
        code = uva__response_quote(key, out);
    if (code == 0)
        code = add(out, ":");
    return code == 0 ? uva__response_quote(value, out) : code;
}

int uva__response_error(int status, const char *message,
                        const char *const *members, struct uva__bytes *out)
{
    char text[48];
    int code;

    (void)snprintf(text, sizeof(text), "{\"error\":{\"status\":%d", status);
    code = add(out, text);
    if (code == 0)
        code = member("message", message, out);
    for (; code == 0 && members != NULL && *members != NULL; members += 2)
        code = member(members[0], members[1], out);
    return code == 0 ? add(out, "}}\n") : code;
}
