/* SPDX-License-Identifier: Apache-2.0 */
/* What the server does at the moment, and has done since its start. */
#include "state.h"

#include <uv.h>

#include "json_list.h"

/* Of both pools, where there are two. */
static json_t *database_json(const struct uva__site *site)
{
    struct uva_adbc_pool_stats a, b;

    uva_adbc_pool_get_stats(site->answers.pool, &a);
    uva_adbc_pool_get_stats(site->reading_pool, &b);
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:I,s:I}", "used",
        (json_int_t)(a.connections_used + b.connections_used), "idle",
        (json_int_t)(a.connections_idle + b.connections_idle), "stuck",
        (json_int_t)(a.connections_stuck + b.connections_stuck), "max",
        (json_int_t)(a.connections_max + b.connections_max), "waiting",
        (json_int_t)(a.queries_waiting + b.queries_waiting), "queries",
        (json_int_t)(a.queries + b.queries));
}

/* Returns a text, without invalid UTF-8, such as the half of a character at its
 * end. */
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    char ascii[UVA__ANSWER_SQL];
    size_t n = 0;

    for (; json == NULL && n + 1 < sizeof(ascii) && text[n] != '\0'; n++)
        ascii[n] = (text[n] & 0x80) != 0 ? '?' : text[n];
    ascii[n] = '\0';
    return json != NULL ? json : json_string(ascii);
}

/* With the begin of its text, and its client, if `is_whole`. */
static json_t *query_json(const struct uva__answer *answer, bool is_whole)
{
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:b, s:b}", "id", (json_int_t)answer->id, "rows",
        (json_int_t)answer->rows, "bytes", (json_int_t)answer->bytes, "ms",
        (json_int_t)((uv_hrtime() - answer->begun) / 1000000), "begun",
        answer->has_begun, "paused", answer->is_paused);
    json_t *more = NULL;

    if (!is_whole || json == NULL)
        return json;
    more =
        json_pack("{s:s, s:s, s:o}", "client", answer->connection->client_name,
                  "format", uva__format_name(answer->format), "sql",
                  *answer->sql != '\0' ? text_json(answer->sql) : json_null());
    if (json_object_update(json, more) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

static json_t *queries_json(const struct uva__answers *answers, bool is_whole)
{
    const struct uva__answer *answer;
    json_t *list = json_array();
    int code = 0;

    for (answer = answers->first; answer != NULL; answer = answer->next)
        code |= json_array_append_new(list, query_json(answer, is_whole));
    return uva__json_list_end(list, code);
}

json_t *uva__state_queries_json(const struct uva__answers *answers)
{
    return json_pack("{s:o}", "queries", queries_json(answers, true));
}

/* Returns the list of the last answers that were cut, oldest first; NULL:
 * without memory. */
static json_t *cuts_json(const struct uva__answers *answers)
{
    json_t *list = json_array();
    int code = list == NULL ? -1 : 0;

    for (int64_t i = 0; i < UVA__CUTS && code == 0; i++) {
        const struct uva__cut *cut =
            &answers->cuts[(answers->cut_count + i) % UVA__CUTS];

        if (cut->id != 0)
            code = json_array_append_new(
                list, json_pack("{s:I, s:o}", "id", (json_int_t)cut->id,
                                "error", text_json(cut->text)));
    }
    return uva__json_list_end(list, code);
}

json_t *uva__state_json(const struct uva__site *site)
{
    const struct uva__connection_stats *http = &site->http.all.stats;
    const struct uva__answers *answers = &site->answers;
    struct uva_runtime_stats runtime;

    uva_runtime_get_stats(site->runtime, &runtime);
    return json_pack(
        "{s:{s:I,s:I,s:I,s:I,s:I,s:I,s:I}, "
        "s:{s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}, s:o, "
        "s:{s:I,s:I,s:I,s:I,s:I}}",
        "http", "connections", (json_int_t)http->connections, "accepted",
        (json_int_t)http->accepted, "refused", (json_int_t)http->refused,
        "requests", (json_int_t)http->requests, "malformed",
        (json_int_t)http->malformed, "timed_out", (json_int_t)http->timed_out,
        "limited", (json_int_t)http->limited, "queries", "complete",
        (json_int_t)answers->complete, "failed", (json_int_t)answers->failed,
        "timed_out", (json_int_t)answers->timed_out, "cancelled",
        (json_int_t)answers->cancelled, "refused", (json_int_t)answers->refused,
        "ended", (json_int_t)answers->ended, "running",
        queries_json(answers, false), "cut", cuts_json(answers), "database",
        database_json(site), "runtime", "streams",
        (json_int_t)runtime.streams_open, "streams_held",
        (json_int_t)runtime.streams_held, "threads",
        (json_int_t)(runtime.threads_blocking + runtime.threads_compute),
        "memory_held", (json_int_t)runtime.memory_held, "hold_max_us",
        (json_int_t)(runtime.hold_max_ns / 1000));
}
