/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow serve: queries in, rows out, over HTTP.
 *
 * Start:       settings -> runtime -> (a driver with a file that shows no
 *              database is asked for its name) -> pool -> access log -> listens
 *              -> the driver is the expected one, and the rights of the
 *              database's user are few -> announced. Fewer connections and
 *              queries than wanted where descriptors are few.
 * SIGHUP:      the log is opened again at once, other files by reload.h.
 * End:         a signal -> no new connection, running answers go on, unless
 *              their clients stand still -> all connections closed, at the
 *              latest after drain_ms or a second signal -> log written, unless
 *              its reader stands still -> pool released -> runtime closed.
 *              Other calls that stand still are ended by the guard.
 * Failures:    at the start, each step, with a text. Later only single answers
 *              do; a failed access log is reported, and the server goes on. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "guard.h"
#include "json_memory.h"
#include "loop.h"
#include "notify.h"
#include "reload.h"
#include "replaced.h"
#include "report.h"
#include "settings.h"
#include "site.h"
#include "status.h"
#include "target.h"
#include "uvarrow/uvarrow.h"

/* The time for the reader of the log at the end. */
#define LOG_MS 200

/* The times after which the process is left, whatever stands still: after
 * drain_ms, and from a second signal. */
#define GUARD_MS  1000
#define SECOND_MS 800

/* One run of the command. */
struct serve {
    struct uva__settings settings;        /* owns */
    uv_loop_t loop;                       /* of all the members below */
    struct uva_runtime *runtime;          /* owns, until closed */
    struct uva_adbc_pool *pool;           /* counts */
    struct uva_adbc_pool *reading_pool;   /* counts; NULL: not needed */
    struct uva__tls *tls;                 /* owns; NULL: plain */
    struct uva__access_log log;           /* of `has_log` */
    struct uva__site site;                /* the server */
    struct uva__rest rest;                /* while no query runs */
    struct uva__replaced replaced;        /* the file of the database */
    struct uva__reload reload;            /* of other files, at SIGHUP */
    struct uva__rights rights;            /* of the database's user */
    struct uva__rights_question question; /* at the start */
    uv_signal_t interrupt;                /* Ctrl-C */
    uv_signal_t terminate;                /* SIGTERM */
    uv_signal_t quit;                     /* SIGQUIT, as that */
    uv_signal_t hangup;                   /* SIGHUP, if a file is used */
    uv_timer_t deadline;                  /* of running answers, at the end */
    struct uva__guard guard;              /* ends it if all else fails */
    struct uva_runtime_stats stats; /* of the runtime, once it is closed */
    struct uva_error error;         /* code 0: no error */
    int64_t descriptors;            /* that may be open */
    char where[128];                /* "listening at http://..." */
    bool is_lowered;                /* limits are, as these are few */
    bool has_log;                   /* it is open */
    bool log_has_failed;            /* which was reported */
    bool listens;                   /* so does the site */
    bool is_ending;                 /* a signal has come */
    bool has_terminal;              /* it is standard error */
};

static void serve_on_starved(void *ctx, int code)
{
    (void)ctx;
    (void)fprintf(stderr,
                  "uvarrow: no connection can be accepted until there is room: "
                  "%s\n",
                  strerror(code));
}

/* ---- the end ------------------------------------------------------------- */

static void serve_on_detached(void *ctx)
{
    struct serve *s = ctx;

    uva_runtime_get_stats(s->runtime, &s->stats);
}

/* No request is answered any more: closes the handles that keep the loop. */
static void serve_release(struct serve *s)
{
    uva__rights_drop(&s->question);
    uva_adbc_pool_release(s->reading_pool);
    uva_adbc_pool_release(s->pool);
    s->reading_pool = s->pool = NULL;
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->quit, NULL);
    uv_close((uv_handle_t *)&s->hangup, NULL);
    uv_close((uv_handle_t *)&s->deadline, NULL);
    uva__rest_close(&s->rest);
    uva__replaced_close(&s->replaced);
    (void)uva_runtime_close(s->runtime, 0, serve_on_detached, s);
}

/* Each line may fail, until there is space again. */
static void serve_on_log_failed(void *ctx, int code)
{
    struct serve *s = ctx;

    if (s->log_has_failed)
        return;
    s->log_has_failed = true;
    (void)fprintf(stderr, "uvarrow: cannot write the access log: %s\n",
                  strerror(code));
}

static void serve_on_log_closed(void *ctx)
{
    serve_release(ctx);
}

/* A full log loses lines, so no one waits for it. */
static void serve_on_log_writable(void *ctx)
{
    (void)ctx;
}

/* Ends the waits: slow clients, and then a reader of the log that stands still.
 */
static void serve_hurry(struct serve *s)
{
    uva__http_close(&s->site.http);
    if (s->has_log)
        uva__output_cut(&s->log.output);
}

static void serve_on_deadline(uv_timer_t *timer);

static void serve_on_closed(void *ctx)
{
    struct serve *s = ctx;

    if (!s->has_log) {
        serve_release(s);
        return;
    }
    uva__output_close(&s->log.output);
    (void)uv_timer_start(&s->deadline, serve_on_deadline, LOG_MS, 0);
}

static void serve_on_deadline(uv_timer_t *timer)
{
    struct serve *s = timer->data;

    serve_hurry(s);
}

static void serve_on_signal(uv_signal_t *handle, int number)
{
    struct serve *s = handle->data;

    (void)number;
    if (s->is_ending) {
        serve_hurry(s);
        return;
    }
    s->is_ending = true;
    uva__reload_end(&s->reload);
    uva__notify_send(UVA__NOTIFY_STOPPING, "ends after the running answers");
    if (!s->listens) {
        serve_release(s);
        return;
    }
    (void)uv_timer_start(&s->deadline, serve_on_deadline,
                         (uint64_t)s->settings.limits.drain_ms, 0);
    uva__http_drain(&s->site.http);
}

/* ---- SIGHUP -------------------------------------------------------------- */

/* The default of the signal is the end, which is right for a server without
 * such files. */
static bool serve_takes_hangup(const struct uva__settings *settings)
{
    return settings->log != NULL || settings->token_file != NULL ||
           settings->certificate != NULL || settings->config != NULL ||
           uva__notify_is_wanted();
}

/* A signal may come as soon as files are read: it waits until it is taken. */
static void hold_hangup(bool holds)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

/* A terminal that was closed has sent it, too. */
static void serve_on_hangup(uv_signal_t *handle, int number)
{
    struct serve *s = handle->data;
    int code = 0;

    (void)number;
    if (s->has_terminal && !isatty(STDERR_FILENO)) {
        if (!s->is_ending)
            (void)kill(getpid(), SIGTERM);
        return;
    }
    if (s->has_log && s->settings.log != NULL)
        code = uva__access_log_reopen(&s->log, s->settings.log);
    if (code != 0)
        (void)fprintf(stderr, "uvarrow: cannot reopen %s, and go on: %s\n",
                      s->settings.log, strerror(code));
    uva__reload_want(&s->reload);
}

static void serve_on_reload(void *ctx)
{
    (void)ctx;
    uva__notify_send(UVA__NOTIFY_RELOADING, "loads its files again");
}

static void serve_take_token(struct serve *s, struct uva__loaded *loaded)
{
    struct uva__access *access = &s->settings.access;

    uva__access_fini(access);
    access->token = s->site.access.token = loaded->access.token;
    access->is_exposed = loaded->access.is_exposed;
    loaded->access.token = NULL;
}

/* Sessions keep the certificate that they have begun with. */
static void serve_take_tls(struct serve *s, struct uva__loaded *loaded)
{
    uva__tls_free(s->tls);
    s->tls = s->site.http.all.tls = loaded->tls;
    loaded->tls = NULL;
}

static void report_kept(const char *what, const struct uva_error *error)
{
    if (error->code != 0)
        (void)fprintf(stderr, "uvarrow: SIGHUP: %s as before: %s\n", what,
                      error->message);
}

static void report_loaded(const struct uva__loaded *loaded)
{
    const bool has_token = loaded->access.token != NULL,
               has_tls = loaded->tls != NULL;

    report_kept("the token is", &loaded->of_token);
    report_kept("the certificate is", &loaded->of_tls);
    report_kept("options are", &loaded->of_options);
    if (loaded->changed[0] != '\0')
        (void)fprintf(stderr,
                      "uvarrow: SIGHUP: these options have changed, and need a "
                      "restart: %s\n",
                      loaded->changed);
    (void)fprintf(stderr, "uvarrow: SIGHUP: loaded %s%s%s\n",
                  has_token ? "the token" : "",
                  has_token && has_tls ? " and " : "",
                  has_tls     ? "the certificate"
                  : has_token ? ""
                              : "no file");
}

static void serve_on_loaded(void *ctx, struct uva__loaded *loaded, bool is_last)
{
    struct serve *s = ctx;

    report_loaded(loaded);
    if (loaded->access.token != NULL)
        serve_take_token(s, loaded);
    if (loaded->tls != NULL)
        serve_take_tls(s, loaded);
    uva__settings_warn(&s->settings);
    if (is_last)
        uva__notify_send(UVA__NOTIFY_READY, s->where);
}

/* ---- the start ----------------------------------------------------------- */

/* Each connection needs a descriptor, and so do files of databases. Returns how
 * many there may be. */
static int64_t raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return INT64_MAX;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)limit.rlim_cur;
}

/* Returns how many descriptors are open: a service may inherit some, the lowest
 * ones. */
static int64_t count_descriptors(int64_t most)
{
    const int first = (int)(most < 4096 ? most : 4096);
    int64_t count = 0;
    int fd;

    for (fd = 0; fd < first; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int serve_fit(struct serve *s)
{
    struct uva__limits *limits = &s->settings.limits;
    const struct uva__limits wanted = *limits;
    const int code = uva__limits_fit(
        limits, s->descriptors, count_descriptors(s->descriptors), &s->error);

    s->is_lowered = limits->connections < wanted.connections ||
                    limits->queries < wanted.queries;
    return code;
}

static void serve_watch(struct serve *s)
{
    (void)uv_signal_init(&s->loop, &s->interrupt);
    (void)uv_signal_init(&s->loop, &s->terminate);
    (void)uv_signal_init(&s->loop, &s->quit);
    (void)uv_signal_init(&s->loop, &s->hangup);
    (void)uv_timer_init(&s->loop, &s->deadline);
    uva__rest_init(&s->rest, &s->loop);
    uva__replaced_init(&s->replaced, &s->loop);
    s->interrupt.data = s->terminate.data = s->deadline.data = s;
    s->hangup.data = s->quit.data = s;
    (void)uv_signal_start(&s->interrupt, serve_on_signal, SIGINT);
    (void)uv_signal_start(&s->terminate, serve_on_signal, SIGTERM);
    (void)uv_signal_start(&s->quit, serve_on_signal, SIGQUIT);
    (void)signal(SIGUSR1, SIG_IGN);
    s->has_terminal = isatty(STDERR_FILENO) == 1;
    if (serve_takes_hangup(&s->settings))
        (void)uv_signal_start(&s->hangup, serve_on_hangup, SIGHUP);
    hold_hangup(false);
}

/* The log must not be an input file. */
static int serve_check_log(struct serve *s)
{
    const struct uva__settings *set = &s->settings;
    const char *const secrets[] = {set->certificate, set->key};
    struct uva__options files = {.output = set->log,
                                 .driver = set->database.driver,
                                 .uri = set->database.name,
                                 .token_file = set->token_file,
                                 .froms = {set->config},
                                 .n_froms = set->config != NULL};
    int code = 0;
    size_t i;

    if (files.uri == NULL)
        files.uri = set->database.own_name;
    for (i = 0; i < sizeof(secrets) / sizeof(*secrets) && code == 0; i++) {
        files.tls_ca = secrets[i];
        code = uva__target_check(&files, &s->error);
    }
    return code;
}

static int serve_open_log(struct serve *s)
{
    const struct uva__output_events events = {.on_writable =
                                                  serve_on_log_writable,
                                              .on_failed = serve_on_log_failed,
                                              .on_closed = serve_on_log_closed,
                                              .ctx = s};
    int code;

    if (s->settings.is_quiet)
        return 0;
    code = serve_check_log(s);
    if (code == 0)
        code = uva__access_log_open(&s->log, &s->loop, s->settings.log, &events,
                                    &s->error);
    s->has_log = code == 0;
    return code;
}

static int serve_listen(struct serve *s)
{
    const struct uva__limits *limits = &s->settings.limits;
    const struct uva__http_handler handler = uva__site_handler(&s->site);

    s->site.access = s->settings.access; /* which stays the owner */
    s->site.http.all.proxies = s->settings.proxies;
    s->site.answers.pool = s->rights.pool = s->pool;
    s->site.reading_pool = s->reading_pool;
    s->site.answers.rights = &s->rights;
    s->site.answers.rest = &s->rest;
    s->site.answers.kind = uva__database_kind(&s->settings.database);
    s->rights.kind = s->site.answers.kind;
    s->rights.must_match = !s->settings.database.is_writable;
    s->rights.must_be_few = uva__database_needs_rights(&s->settings.database);
    s->site.database = &s->settings.database;
    s->site.answers.most_running = limits->queries;
    s->site.answers.most_waiting = limits->waiting;
    s->site.query_ms = limits->query_ms;
    s->site.answers.batch_bytes = limits->max_batch_bytes;
    s->site.log = s->has_log ? &s->log : NULL;
    s->site.runtime = s->runtime;
    s->site.on_starved = serve_on_starved;
    s->site.on_closed = serve_on_closed;
    s->site.ctx = s;
    return uva__http_open(&s->site.http, &s->loop,
                          (const struct sockaddr *)&s->settings.address, s->tls,
                          limits, &handler, &s->error);
}

/* Ends it with its error. */
static void serve_give_up(struct serve *s)
{
    s->is_ending = true;
    uva__reload_end(&s->reload);
    uva__notify_send(UVA__NOTIFY_STOPPING, s->error.message);
    uva__http_drain(&s->site.http);
    serve_hurry(s);
}

static void serve_announce(struct serve *s)
{
    const struct uva__limits *limits = &s->settings.limits;
    const char *listen = s->settings.listen;

    (void)snprintf(s->where, sizeof(s->where), "listening at %s://%.*s:%d",
                   s->tls != NULL ? "https" : "http",
                   (int)(strrchr(listen, ':') - listen), listen,
                   uva__http_port(&s->site.http));
    (void)fprintf(stderr, "uvarrow: %s\n", s->where);
    if (s->is_lowered)
        (void)fprintf(stderr,
                      "uvarrow: %" PRId64 " connections and %" PRId64
                      " queries at one time, as %" PRId64 " descriptors may be "
                      "open (ulimit -n): a connection needs one, a query %d\n",
                      limits->connections, limits->queries, s->descriptors,
                      UVA__LIMITS_QUERY);
}

/* A server of a database may come later: until then, each query asks again. */
static void serve_on_rights(void *ctx, const struct uva_outcome *outcome)
{
    struct serve *s = ctx;
    const bool is_complete = outcome->end == UVA_END_COMPLETE;

    if (s->is_ending)
        return;
    if (s->rights.are_many ||
        (!is_complete && uva__status_is_lasting(s->rights.kind, &outcome->error,
                                                outcome->metadata))) {
        s->error = outcome->error;
        serve_give_up(s);
        return;
    }
    serve_announce(s);
    uva__settings_warn(&s->settings);
    if (!is_complete)
        (void)fprintf(stderr,
                      "uvarrow: the database cannot be asked so far: %s\n",
                      outcome->error.message);
    uva__notify_send(UVA__NOTIFY_READY, s->where);
    uva__reload_ready(&s->reload);
}

/* Requests are answered meanwhile: the answer of a database may take long. */
static void serve_ask(struct serve *s)
{
    s->question.on_answer = serve_on_rights;
    s->question.ctx = s;
    if (uva__rights_ask(&s->rights, &s->question, &s->error) != 0)
        serve_give_up(s);
}

/* Queries that run keep the pool that they have. A database with a file has no
 * pool for reading. */
static void serve_on_replaced(void *ctx)
{
    struct serve *s = ctx;
    struct uva_adbc_pool *old = s->pool;
    struct uva_error error = {0};

    if (s->is_ending)
        return;
    if (uva__database_pool_again(&s->settings.database, s->runtime,
                                 &s->settings.limits, &s->pool, &error) != 0) {
        (void)fprintf(stderr,
                      "uvarrow: the file of the database was replaced, and the "
                      "old one is read on: %s\n",
                      error.message);
        return;
    }
    s->site.answers.pool = s->rights.pool = s->pool;
    uva_adbc_pool_release(old);
    (void)fprintf(stderr, "uvarrow: the file of the database was replaced, and "
                          "is opened anew\n");
}

static int serve_open_pools(struct serve *s)
{
    struct uva__database *database = &s->settings.database;
    const struct uva__limits *limits = &s->settings.limits;
    int code = serve_fit(s);

    if (code == 0)
        code = uva__database_pool(database, s->runtime, limits, &s->pool,
                                  &s->error);
    if (code == 0)
        uva__replaced_begin(&s->replaced, database, serve_on_replaced, s);
    return code == 0 ? uva__database_reading_pool(database, s->runtime, limits,
                                                  &s->reading_pool, &s->error)
                     : code;
}

/* The kind of the database is known. */
static void serve_open(struct serve *s)
{
    int code = serve_open_pools(s);

    if (code == 0)
        code = serve_open_log(s);
    if (code == 0)
        code = serve_listen(s);
    s->listens = code == 0;
    if (code == 0)
        serve_ask(s);
    else if (s->has_log)
        uva__output_close(&s->log.output);
    else
        serve_release(s);
}

static void serve_on_driver(void *ctx, const struct uva_outcome *outcome)
{
    struct serve *s = ctx;
    struct uva__database *database = &s->settings.database;

    uva_adbc_pool_release(s->pool);
    s->pool = NULL;
    database->found = s->rights.found;
    if (database->found != UVA__KIND_OTHER || database->is_writable) {
        serve_open(s);
        return;
    }
    (void)uva_error_set(
        &s->error, EACCES,
        "the driver '%s' is none of SQLite, DuckDB and PostgreSQL, so nothing "
        "keeps queries from changing the database: see --writable%s%s",
        database->driver, outcome->end != UVA_END_COMPLETE ? ": " : "",
        outcome->end != UVA_END_COMPLETE ? outcome->error.message : "");
    serve_release(s);
}

/* Of a driver with another file no database is opened before it has stated its
 * name. */
static void serve_probe(struct serve *s)
{
    int code = uva__database_probe(&s->settings.database, s->runtime, &s->pool,
                                   &s->error);

    s->rights.pool = s->pool;
    s->question.on_answer = serve_on_driver;
    s->question.ctx = s;
    if (code == 0)
        code = uva__rights_ask(&s->rights, &s->question, &s->error);
    if (code != 0)
        serve_release(s);
}

static void serve_start(struct serve *s)
{
    const struct uva_runtime_options options = {
        .name = "serve", .memory_bytes = s->settings.limits.memory_bytes};
    int code = 0;

    if (s->settings.certificate != NULL)
        code = uva__tls_new(s->settings.certificate, s->settings.key, &s->tls,
                            &s->error);
    if (code == 0)
        code = uva__guard_open(&s->guard,
                               (uint64_t)s->settings.limits.drain_ms + GUARD_MS,
                               SECOND_MS, false, &s->error);
    if (code == 0)
        code = uva_runtime_open(&s->loop, &options, &s->runtime, &s->error);
    if (code != 0)
        return;
    serve_watch(s);
    if (uva__database_must_ask(&s->settings.database))
        serve_probe(s);
    else
        serve_open(s);
}

static int serve_run(struct serve *s)
{
    int code;

    s->descriptors = raise_descriptors();
    code = uva__loop_open(&s->loop, &s->error);
    uva__json_memory_init();
    if (code != 0)
        return uva__report_error(&s->error, UVA__EXIT_FAILED);
    serve_start(s);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    uva__tls_free(s->tls);
    uva__replaced_fini(&s->replaced);
    if (uv_loop_close(&s->loop) != 0 && s->error.code == 0)
        (void)uva_error_set(&s->error, EBUSY, "the loop does not close");
    if (s->log.lost > 0)
        (void)fprintf(stderr, "uvarrow: %lld lines of the access log lost\n",
                      (long long)s->log.lost);
    code = s->error.code == 0 ? UVA__EXIT_OK
                              : uva__report_error(&s->error, UVA__EXIT_USAGE);
    uva__guard_close(&s->guard);
    if (s->stats.calls_stuck > 0)
        _exit(code); /* skip cleanup: a driver call is still running */
    return code;
}

int uva__serve_main(char **args)
{
    struct serve s = {
        .reload = {.on_begin = serve_on_reload, .on_loaded = serve_on_loaded}};
    int code = UVA__EXIT_OK;

    hold_hangup(true);
    s.reload.ctx = &s;
    uva__reload_init(&s.reload, &s.loop, &s.settings, args);
    if (uva__settings_init(&s.settings, args, &s.error) != 0)
        code = uva__report_error(&s.error, UVA__EXIT_USAGE);
    else if (s.settings.help)
        uva__settings_help();
    else
        code = serve_run(&s);
    uva__settings_fini(&s.settings);
    return code;
}
