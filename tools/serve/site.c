/* SPDX-License-Identifier: Apache-2.0 */
/* Each path has a function. Access is checked when the head of a request is
 * there, before a byte of its body is kept. */
#include "site.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "about.h"
#include "json_memory.h"
#include "metrics.h"
#include "openapi.h"
#include "page.h"
#include "parameters.h"
#include "state.h"
#include "url.h"

/* A request on its path. */
struct call {
    struct uva__site *site;
    struct uva__connection *connection;
    const struct uva__request *request;
    const struct uva__url *url;
    const char *origin; /* another site that may read the answer, or NULL */
};

static void call_fail(const struct call *call, int status, const char *why)
{
    uva__connection_fail(call->connection, status, call->origin, NULL, why,
                         NULL);
}

/* Refuses a request of a client that is not trusted with another one. */
static void call_refuse(const struct call *call, int status, const char *why)
{
    call->connection->request.keeps_alive = false;
    call_fail(call, status, why);
}

/* Refuses a query of a connection beside which there are too many. */
static void call_refuse_spare(const struct call *call)
{
    call->site->http.all.stats.refused++;
    uva__connection_fail(call->connection, 503, call->origin,
                         "Retry-After: 1\r\n",
                         "there are too many connections, or no descriptors "
                         "for more",
                         NULL);
}

/* Counts a query for its client. Returns whether it may be; otherwise it is
 * refused. */
static bool call_counts(const struct call *call)
{
    const int code = uva__connection_count(call->connection);

    if (code == 0)
        return true;
    call->site->http.all.stats.limited += code == EDQUOT;
    uva__connection_fail(
        call->connection, code == EDQUOT ? 429 : 503, call->origin,
        "Retry-After: 1\r\n",
        code == EDQUOT ? "this client has as many queries as one may; see "
                         "--max-client-queries"
                       : "out of memory",
        NULL);
    return false;
}

/* Whether the URL has no parameters but the given ones (may be NULL). An
 * unknown name may be misspelt. */
static bool call_knows(const struct call *call, const char *const names[4])
{
    int i, k;

    for (i = 0; i < call->url->count; i++) {
        for (k = 0; k < 4; k++)
            if (names[k] != NULL &&
                strcmp(call->url->parameters[i].name, names[k]) == 0)
                break;
        if (k == 4)
            return false;
    }
    return true;
}

/* ---- /query -------------------------------------------------------------- */

/* The wish of a request. Zeroes: none so far. */
struct ask {
    json_t *body;         /* owns: of POST with JSON */
    json_t *parsed;       /* owns: the parameters of a URL */
    const char *sql;      /* borrows, as the next ones */
    const char *format;   /* a name; NULL: by Accept */
    const json_t *values; /* parameters; may be NULL */
    int64_t limit_ms;     /* that the database may take */
};

static void ask_fini(struct ask *ask)
{
    json_decref(ask->body);
    json_decref(ask->parsed);
}

static bool has_known_members(json_t *body)
{
    const char *key;
    json_t *value;
    size_t known = 0;

    json_object_foreach(body, key, value)
    {
        known += strcmp(key, "sql") == 0 || strcmp(key, "parameters") == 0 ||
                 strcmp(key, "format") == 0 || strcmp(key, "timeout") == 0;
    }
    return known == json_object_size(body);
}

/* A number that would be changed is refused, and the text states that. */
static const char *why_no_json(const json_error_t *error, const char *otherwise)
{
    return json_error_code(error) == json_error_numeric_overflow
               ? "a number is beyond the range of 64 bits"
               : otherwise;
}

/* Sets the limit of its time. Returns the static text of the fault, or NULL, as
 * the next ones. */
static const char *ask_limit(struct ask *ask, json_int_t ms, int64_t most)
{
    if (ms < 1 || ms > most)
        return "timeout is a number of milliseconds, from 1 to the server's "
               "--query-ms";
    ask->limit_ms = ms;
    return NULL;
}

static const char *ask_limit_text(struct ask *ask, const char *text,
                                  int64_t most)
{
    char *end;
    const long long ms = strtoll(text, &end, 10);

    return ask_limit(ask, *end == '\0' ? ms : 0, most);
}

static const char *ask_json(struct ask *ask, const struct uva__bytes *body,
                            int64_t query_ms)
{
    const json_t *sql, *format, *limit;
    json_error_t error = {0};

    ask->body = json_loadb(uva__bytes_text(body), body->size,
                           JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(ask->body))
        return why_no_json(&error, "the body is not an object of JSON");
    if (!has_known_members(ask->body))
        return "the body has a member that is none of sql, parameters, format, "
               "timeout";
    sql = json_object_get(ask->body, "sql");
    format = json_object_get(ask->body, "format");
    if ((sql != NULL && !json_is_string(sql)) ||
        (format != NULL && !json_is_string(format)))
        return "sql and format are texts";
    ask->sql = json_string_value(sql);
    ask->format = json_string_value(format);
    ask->values = json_object_get(ask->body, "parameters");
    limit = json_object_get(ask->body, "timeout");
    return limit != NULL ? ask_limit(ask, json_integer_value(limit), query_ms)
                         : NULL;
}

static const char *ask_url(struct ask *ask, const struct uva__url *url,
                           int64_t query_ms)
{
    const char *limit = uva__url_get(url, "timeout");
    const char *why =
        limit != NULL ? ask_limit_text(ask, limit, query_ms) : NULL;
    const char *sql = uva__url_get(url, "sql");
    const char *format = uva__url_get(url, "format");
    const char *values = uva__url_get(url, "parameters");
    json_error_t error = {0};

    if (why != NULL)
        return why;
    if (sql != NULL && ask->sql != NULL)
        return "sql is given twice";
    if (sql != NULL)
        ask->sql = sql;
    if (format != NULL)
        ask->format = format;
    if (values == NULL)
        return NULL;
    ask->parsed = json_loads(values, JSON_REJECT_DUPLICATES, &error);
    ask->values = ask->parsed;
    return ask->parsed != NULL
               ? NULL
               : why_no_json(&error, "parameters are an array of JSON");
}

/* Whether a header names a media type, whatever follows it. */
static bool is_type(const char *header, const char *type)
{
    const size_t size = strlen(type);

    return header != NULL && strncasecmp(header, type, size) == 0 &&
           strchr("; \t", header[size]) != NULL;
}

/* Reads the body of a POST. Returns a status, or 0. */
static int ask_body(struct ask *ask, const struct call *call, const char **why)
{
    const struct uva__bytes *body = &call->request->body;
    const char *type =
        uva__request_field(call->request, UVA__FIELD_CONTENT_TYPE);
    const char *coding =
        uva__request_field(call->request, UVA__FIELD_CONTENT_ENCODING);

    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        *why = "no Content-Encoding is understood";
        return 415;
    }
    if (is_type(type, "application/json")) {
        *why = ask_json(ask, body, call->site->query_ms);
        return *why != NULL ? 400 : 0;
    }
    if (!is_type(type, "application/sql") && !is_type(type, "text/plain")) {
        *why = "a body is application/json, application/sql or text/plain";
        return 415;
    }
    if (body->size != strlen(uva__bytes_text(body))) {
        *why = "the body has a NUL";
        return 400;
    }
    ask->sql = uva__bytes_text(body);
    return 0;
}

static int ask_read(struct ask *ask, const struct call *call, const char **why)
{
    static const char *const NAMES[] = {"sql", "format", "parameters",
                                        "timeout"};
    int status = 0;

    if (!call_knows(call, NAMES))
        return *why = "the URL has a parameter that is none of sql, format, "
                      "parameters, timeout",
               400;
    if (call->request->method == UVA__METHOD_POST)
        status = ask_body(ask, call, why);
    if (status != 0)
        return status;
    *why = ask_url(ask, call->url, call->site->query_ms);
    if (ask->sql != NULL && strncmp(ask->sql, "\xef\xbb\xbf", 3) == 0)
        ask->sql += 3; /* editors write it in front of a file */
    if (*why == NULL && (ask->sql == NULL || *ask->sql == '\0'))
        *why = "there is no sql";
    return *why != NULL ? 400 : 0;
}

/* Picks the format that is named, or else by Accept. Returns a status, or 0. */
static int pick_format(const struct call *call, const char *name,
                       enum uva__rows *out, const char **why)
{
    const char *accept = uva__request_field(call->request, UVA__FIELD_ACCEPT);

    if (name != NULL) {
        *why = "there is no such format";
        return uva__format_find(name, out) == 0 ? 0 : 400;
    }
    *why = "none of the accepted types is a format of rows";
    return uva__format_accepted(accept, out) == 0 ? 0 : 406;
}

/* Refuses a request before anything is made. Returns a status, or 0. */
static int ask_check(struct ask *ask, const struct call *call,
                     enum uva__rows *format, const char **why)
{
    int status = ask_read(ask, call, why);

    if (status == 0)
        status = pick_format(call, ask->format, format, why);
    if (status != 0)
        return status;
    if (json_is_array(ask->values) && json_array_size(ask->values) == 0)
        ask->values = NULL;
    return uva__database_check(call->site->database, ask->sql,
                               call->request->method == UVA__METHOD_POST, why);
}

/* Only a POST may change the database. */
static struct uva_adbc_pool *query_pool(const struct call *call)
{
    const struct uva__site *site = call->site;

    return call->request->method == UVA__METHOD_POST ||
                   site->reading_pool == NULL
               ? site->answers.pool
               : site->reading_pool;
}

static void query(const struct call *call)
{
    struct ask ask = {.limit_ms = call->site->query_ms};
    struct uva_value *values = NULL;
    struct uva_error error;
    enum uva__rows format = UVA__ROWS_ARROW;
    const char *why = NULL;
    int status;

    uva__json_memory_reset();
    status = ask_check(&ask, call, &format, &why);
    if (uva__json_memory_has_failed()) {
        status = 503;
        why = "out of memory";
    }
    if (status == 0 && ask.values != NULL &&
        uva__parameters_new(ask.values, &values, &error) != 0) {
        status = error.code == ENOMEM ? 503 : 400;
        why = error.message;
    }
    if (status != 0)
        call_fail(call, status, why);
    else
        uva__answer_start(&call->site->answers, call->connection,
                          uva_stream_from_query(
                              query_pool(call),
                              &(struct uva_adbc_query){
                                  .sql = ask.sql,
                                  .options = uva__database_query_options(
                                      call->site->database, ask.sql),
                                  .values = values,
                                  .busy_ms = ask.limit_ms,
                                  .window = {.batches = UVA__ANSWER_WINDOW}}),
                          ask.limit_ms, format, ask.sql, call->origin);
    free(values);
    ask_fini(&ask);
}

/* ---- /tables ------------------------------------------------------------- */

/* Lists tables; with a pattern for their names, also their columns. */
static void tables(const struct call *call)
{
    const char *table = uva__url_get(call->url, "table");
    const char *name = uva__url_get(call->url, "format"), *why;
    static const char *const NAMES[] = {"table", "format", NULL, NULL};
    enum uva__rows format;
    int status = pick_format(call, name, &format, &why);

    if (!call_knows(call, NAMES)) {
        status = 400;
        why = "the URL has a parameter that is none of table, format";
    }
    if (status != 0) {
        call_fail(call, status, why);
        return;
    }
    uva__answer_start(&call->site->answers, call->connection,
                      uva_stream_from_objects(
                          call->site->answers.pool,
                          &(struct uva_adbc_objects){
                              .depth = table == NULL ? ADBC_OBJECT_DEPTH_TABLES
                                                     : ADBC_OBJECT_DEPTH_ALL,
                              .table = table,
                              .busy_ms = call->site->query_ms,
                              .window = {.batches = UVA__ANSWER_WINDOW}}),
                      call->site->query_ms, format, "", call->origin);
}

/* ---- the other paths --------------------------------------- */

static void answer_json(const struct call *call, json_t *value)
{
    char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    struct uva__bytes line = {0};

    if (text == NULL || uva__bytes_add(&line, text, strlen(text)) != 0 ||
        uva__bytes_add(&line, "\n", 1) != 0)
        call_fail(call, 503, "out of memory");
    else
        uva__connection_answer(call->connection, 200, "application/json",
                               call->origin, NULL, line.data, line.size);
    uva__bytes_clear(&line, 0);
    free(text);
    json_decref(value);
}

static void about(const struct call *call)
{
    answer_json(call, uva__about_json(call->site->database));
}

/* The server is of no use while each of its connections is in a call that does
 * not return. */
static void health(const struct call *call)
{
    struct uva_adbc_pool_stats pool;

    uva_adbc_pool_get_stats(call->site->answers.pool, &pool);
    if (pool.connections_stuck < pool.connections_max)
        answer_json(call, json_pack("{s:s}", "status", "ok"));
    else
        uva__connection_fail(call->connection, 503, call->origin,
                             "Retry-After: 1\r\n",
                             "no connection is left: each is in a call of the "
                             "driver that does not return",
                             NULL);
}

static void stats(const struct call *call)
{
    answer_json(call, uva__state_json(call->site));
}

static void metrics(const struct call *call)
{
    struct uva__bytes text = {0};

    if (uva__metrics_add(call->site, &text) != 0)
        call_fail(call, 503, "out of memory");
    else
        uva__connection_answer(call->connection, 200, UVA__METRICS_TYPE,
                               call->origin, NULL, text.data, text.size);
    uva__bytes_clear(&text, 0);
}

static void queries(const struct call *call)
{
    answer_json(call, uva__state_queries_json(&call->site->answers));
}

/* Ends the query whose number is the last part of the path. */
static void query_end(const struct call *call)
{
    const char *text = call->url->path + strlen("/queries/");
    const bool is_number =
        *text != '\0' && strspn(text, "0123456789") == strlen(text);
    const int64_t id = is_number ? strtoll(text, NULL, 10) : 0;

    if (uva__answer_end(&call->site->answers, id) != 0)
        call_fail(call, 404, "no such query is under way");
    else
        uva__connection_answer(call->connection, 204, NULL, call->origin, NULL,
                               NULL, 0);
}

/* A frame of another site around the page could steal clicks: the header
 * forbids it, which the page itself cannot. */
static void page(const struct call *call)
{
    char more[512];

    (void)snprintf(more, sizeof(more),
                   "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
                   "Referrer-Policy: no-referrer\r\n",
                   uva__page_policy);
    uva__connection_answer(call->connection, 200, "text/html; charset=utf-8",
                           NULL, more, (const char *)uva__page, uva__page_size);
}

static void openapi(const struct call *call)
{
    uva__connection_answer(call->connection, 200, "application/json",
                           call->origin, NULL, (const char *)uva__openapi,
                           uva__openapi_size);
}

/* ---- paths --------------------------------------------------------------- */

/* Methods of a path. */
enum {
    GETS = 1 << UVA__METHOD_GET | 1 << UVA__METHOD_HEAD,
    POSTS = 1 << UVA__METHOD_POST,
    DELETES = 1 << UVA__METHOD_DELETE
};

struct route {
    const char *path; /* one that ends with a slash has any rest */
    void (*answer)(const struct call *call);
    unsigned methods; /* that it takes */
    bool is_open;     /* no token is needed: the database is not shown */
    bool asks;        /* the database, so it may need descriptors */
};

static const struct route ROUTES[] = {
    {"/", page, GETS, true, false},
    {"/database", about, GETS, false, false},
    {"/health", health, GETS, true, false},
    {"/metrics", metrics, GETS, false, false},
    {"/openapi.json", openapi, GETS, true, false},
    {"/queries", queries, GETS, false, false},
    {"/queries/", query_end, DELETES, false, false},
    {"/query", query, GETS | POSTS, false, true},
    {"/stats", stats, GETS, false, false},
    {"/tables", tables, GETS, false, true},
};

static bool route_fits(const struct route *route, const char *path)
{
    const size_t size = strlen(route->path);

    return strcmp(path, route->path) == 0 ||
           (size > 1 && route->path[size - 1] == '/' &&
            strncmp(path, route->path, size) == 0);
}

static const struct route *route_find(const char *path)
{
    size_t i;

    for (i = 0; i < sizeof(ROUTES) / sizeof(*ROUTES); i++)
        if (route_fits(&ROUTES[i], path))
            return &ROUTES[i];
    return NULL;
}

/* A browser asks whether a page of an allowed site may send its request: the
 * answer names the permitted parts. */
static void preflight(const struct call *call)
{
    uva__connection_answer(
        call->connection, 204, NULL, call->origin,
        "Access-Control-Allow-Methods: GET, POST, DELETE\r\n"
        "Access-Control-Allow-Headers: authorization, content-type\r\n"
        "Access-Control-Max-Age: 600\r\n",
        NULL, 0);
}

/* Whether the path takes the method; otherwise the call is refused. */
static bool route_takes(const struct route *route, const struct call *call)
{
    const enum uva__method method = call->request->method;

    if ((route->methods >> method & 1) == 0)
        uva__connection_fail(call->connection, 405, call->origin,
                             route->methods == DELETES ? "Allow: DELETE\r\n"
                             : route->methods == GETS
                                 ? "Allow: GET, HEAD\r\n"
                                 : "Allow: GET, HEAD, POST\r\n",
                             "the method is not possible here", NULL);
    else if (call->request->has_body && method != UVA__METHOD_POST)
        call_refuse(call, 400, "a body needs POST");
    else
        return true;
    return false;
}

static void route_take(const struct route *route, const struct call *call)
{
    const bool has_token =
        uva__access_has_token(&call->site->access, call->request);

    if (call->request->method == UVA__METHOD_OPTIONS && call->origin != NULL)
        preflight(call);
    else if (!has_token && (route == NULL || !route->is_open))
        uva__connection_fail(call->connection, 401, call->origin,
                             "WWW-Authenticate: Bearer\r\n",
                             "the token is missing or wrong", NULL);
    else if (route == NULL)
        call_fail(call, 404, "there is no such path");
    else if (!route_takes(route, call))
        return;
    else if (call->connection->is_spare && route->asks)
        call_refuse_spare(call);
    else if (route->asks && !call_counts(call))
        return;
    else if (call->request->phase == UVA__REQUEST_COMPLETE)
        route->answer(call);
}

/* Refuses the request; without effect if its body is still to come. */
static void on_any(void *ctx, struct uva__connection *connection)
{
    struct uva__site *site = ctx;
    struct uva__url url;
    struct call call = {.site = site,
                        .connection = connection,
                        .request = &connection->request,
                        .url = &url};
    const char *why;
    int code = uva__access_check(&site->access, connection, &call.origin, &why);

    if (code != 0) {
        call_refuse(&call, code, why);
        return;
    }
    code = uva__url_init(&url, uva__bytes_text(&connection->request.target));
    if (code != 0) {
        call_refuse(&call, code == ENOMEM ? 503 : 400,
                    code == ENOMEM ? "out of memory" : "the URL is malformed");
        return;
    }
    route_take(route_find(url.path), &call);
    uva__url_fini(&url);
}

static const char *on_origin_of(void *ctx,
                                const struct uva__connection *connection)
{
    const struct uva__site *site = ctx;

    return uva__access_origin(&site->access, &connection->request);
}

static void on_answered(void *ctx, const struct uva__answered *entry)
{
    const struct uva__site *site = ctx;

    if (site->log != NULL)
        uva__access_log_add(site->log, entry);
}

static void on_starved(void *ctx, int code)
{
    const struct uva__site *site = ctx;

    site->on_starved(site->ctx, code);
}

static void on_closed(void *ctx)
{
    const struct uva__site *site = ctx;

    site->on_closed(site->ctx);
}

struct uva__http_handler uva__site_handler(struct uva__site *site)
{
    return (struct uva__http_handler){.requests = {.on_head = on_any,
                                                   .on_request = on_any,
                                                   .origin_of = on_origin_of,
                                                   .on_answered = on_answered,
                                                   .ctx = site},
                                      .on_starved = on_starved,
                                      .on_closed = on_closed,
                                      .ctx = site};
}
