/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format: two lines that describe one, then a line
 * for each of its values. */
#include "metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A text that grows. */
struct text {
    struct uva__bytes *out; /* borrows */
    int code;               /* ENOMEM: it lacks something */
};

/* A metric. The name of a counter ends with _total. */
struct metric {
    const char *name;
    const char *help; /* without line breaks and backslashes */
};

static void add(struct text *text, const char *line)
{
    if (text->code == 0)
        text->code = uva__bytes_add(text->out, line, strlen(line));
}

static void describe(struct text *text, const struct metric *metric)
{
    const char *suffix = strrchr(metric->name, '_');
    const bool is_counter = strcmp(suffix, "_total") == 0;
    char line[512];

    (void)snprintf(line, sizeof(line), "# HELP %s %s\n# TYPE %s %s\n",
                   metric->name, metric->help, metric->name,
                   is_counter ? "counter" : "gauge");
    add(text, line);
}

/* Adds one of several values, which `label` tells apart. */
static void add_labelled(struct text *text, const char *name, const char *label,
                         const char *value, int64_t number)
{
    char line[256];

    (void)snprintf(line, sizeof(line), "%s{%s=\"%s\"} %" PRId64 "\n", name,
                   label, value, number);
    add(text, line);
}

static void add_number(struct text *text, const struct metric *metric,
                       int64_t number)
{
    char line[256];

    describe(text, metric);
    (void)snprintf(line, sizeof(line), "%s %" PRId64 "\n", metric->name,
                   number);
    add(text, line);
}

/* Adds a time of nanoseconds, in seconds. */
static void add_time(struct text *text, const struct metric *metric, int64_t ns)
{
    char line[256];

    describe(text, metric);
    (void)snprintf(line, sizeof(line), "%s %" PRId64 ".%09" PRId64 "\n",
                   metric->name, ns / 1000000000, ns % 1000000000);
    add(text, line);
}

/* ---- groups -------------------------------------------------------------- */

static void add_queries(struct text *text, const struct uva__answers *answers)
{
    static const struct metric outcomes = {
        "uvarrow_queries_total",
        "Queries that are over, by their outcome: failed by the database, "
        "timed out, cancelled by a client that left, ended by their number, or "
        "refused as too many waited."};
    const struct {
        const char *name;
        int64_t count;
    } counts[] = {
        {"complete", answers->complete},
        {"failed", answers->failed - answers->timed_out},
        {"timed_out", answers->timed_out},
        {"cancelled", answers->cancelled},
        {"ended", answers->ended},
        {"refused", answers->refused},
    };

    describe(text, &outcomes);
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        add_labelled(text, outcomes.name, "outcome", counts[i].name,
                     counts[i].count);
    add_number(text,
               &(struct metric){"uvarrow_queries_running",
                                "Queries under way, waiting ones included."},
               answers->count);
    add_number(text,
               &(struct metric){"uvarrow_rows_total",
                                "Rows that were sent, of all queries."},
               answers->rows);
    add_number(text,
               &(struct metric){"uvarrow_bytes_total",
                                "Bytes of these rows, as they were sent."},
               answers->bytes);
}

static void add_http(struct text *text, const struct uva__connection_stats *s)
{
    add_number(text,
               &(struct metric){"uvarrow_http_connections",
                                "Open connections of clients."},
               s->connections);
    add_number(text,
               &(struct metric){"uvarrow_http_connections_accepted_total",
                                "Connections that were accepted."},
               s->accepted);
    add_number(text,
               &(struct metric){"uvarrow_http_connections_refused_total",
                                "Connections that were refused, as there were "
                                "too many."},
               s->refused);
    add_number(text,
               &(struct metric){"uvarrow_http_connections_timed_out_total",
                                "Connections that were closed, as their "
                                "clients were too slow."},
               s->timed_out);
    add_number(text,
               &(struct metric){"uvarrow_http_limited_total",
                                "Connections and queries that were refused, as "
                                "their client had as many as one may."},
               s->limited);
    add_number(
        text,
        &(struct metric){"uvarrow_http_requests_total", "Whole requests."},
        s->requests);
    add_number(text,
               &(struct metric){"uvarrow_http_requests_malformed_total",
                                "Requests that were malformed, or above a "
                                "limit."},
               s->malformed);
}

/* Of both pools, where there are two. */
static void add_database(struct text *text, const struct uva__site *site)
{
    static const struct metric connections = {
        "uvarrow_database_connections",
        "Connections to the database: with a query, free, or stuck in a call "
        "of the driver that does not return."};
    struct uva_adbc_pool_stats a, b;

    uva_adbc_pool_get_stats(site->answers.pool, &a);
    uva_adbc_pool_get_stats(site->reading_pool, &b);
    describe(text, &connections);
    add_labelled(text, connections.name, "state", "used",
                 a.connections_used + b.connections_used);
    add_labelled(text, connections.name, "state", "idle",
                 a.connections_idle + b.connections_idle);
    add_labelled(text, connections.name, "state", "stuck",
                 a.connections_stuck + b.connections_stuck);
    add_number(text,
               &(struct metric){"uvarrow_database_connections_max",
                                "Most connections to the database, stuck ones "
                                "included."},
               a.connections_max + b.connections_max);
    add_number(text,
               &(struct metric){"uvarrow_database_queries_waiting",
                                "Queries that wait for a connection."},
               a.queries_waiting + b.queries_waiting);
}

static void add_threads(struct text *text, const struct uva_runtime_stats *s)
{
    static const struct metric threads = {
        "uvarrow_threads", "Threads of the workers: for computations, for "
                           "calls that block, and those of both that are "
                           "written off."};

    describe(text, &threads);
    add_labelled(text, threads.name, "kind", "compute", s->threads_compute);
    add_labelled(text, threads.name, "kind", "blocking", s->threads_blocking);
    add_labelled(text, threads.name, "kind", "stuck", s->threads_stuck);
}

static void add_runtime(struct text *text, const struct uva__site *site)
{
    struct uva_runtime_stats s;

    uva_runtime_get_stats(site->runtime, &s);
    add_threads(text, &s);
    add_number(text,
               &(struct metric){"uvarrow_calls_stuck",
                                "Calls of the driver that were abandoned and "
                                "still run."},
               s.calls_stuck);
    add_number(
        text,
        &(struct metric){"uvarrow_streams_open", "Streams that are under way."},
        s.streams_open);
    add_number(text,
               &(struct metric){"uvarrow_memory_held_bytes",
                                "Memory of batches, held or asked for."},
               s.memory_held);
    add_number(text,
               &(struct metric){"uvarrow_memory_limit_bytes",
                                "The limit of that: --memory-bytes."},
               site->http.all.limits->memory_bytes);
    add_time(text,
             &(struct metric){"uvarrow_loop_delay_max_seconds",
                              "The longest time since the start in which one "
                              "turn of the loop held up all others."},
             s.hold_max_ns);
    add_time(text,
             &(struct metric){"uvarrow_loop_cpu_max_seconds",
                              "The most CPU time of one turn of the loop since "
                              "the start."},
             s.hold_max_cpu_ns);
    add_number(text,
               &(struct metric){"uvarrow_loop_turns_total",
                                "Turns of the loop that ran the runtime."},
               s.turns);
}

int uva__metrics_add(const struct uva__site *site, struct uva__bytes *out)
{
    struct text text = {.out = out};

    add_queries(&text, &site->answers);
    add_http(&text, &site->http.all.stats);
    add_database(&text, site);
    add_runtime(&text, site);
    return text.code;
}
