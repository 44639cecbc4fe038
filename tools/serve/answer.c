/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer of the encoded stream of a query. */
#include "answer.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "body.h"
#include "status.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* ---- parts --------------------------------------------------------------- */

static void part_free(void *ptr)
{
    uva_part_release(ptr);
    free(ptr);
}

static void answer_count(struct uva__answer *answer, int64_t rows,
                         int64_t bytes)
{
    answer->rows += rows;
    answer->bytes += bytes;
    answer->answers->rows += rows;
    answer->answers->bytes += bytes;
}

/* Sends a part, and takes it. Returns 0; ENOMEM; ECANCELED: the answer is gone.
 */
static int answer_send(struct uva__answer *answer, struct uva_part *part)
{
    struct uva__transport_part out = {
        .buffers = part->buffers, .count = part->count, .release = part_free};
    const int64_t bytes = part->bytes;
    struct uva_part *owned = malloc(sizeof(*owned));

    answer_count(answer, part->rows, owned != NULL ? bytes : 0);
    if (owned == NULL) {
        uva_part_release(part);
        return ENOMEM;
    }
    *owned = *part;
    out.owner = owned;
    return uva__connection_send(answer->connection, &out, bytes) == 0
               ? 0
               : ECANCELED;
}

/* The same of a text, of a body that has its own. */
static int answer_send_text(struct uva__answer *answer,
                            struct uva__body_text *text)
{
    const struct uva__transport_part out = {.buffers = &text->buffer,
                                            .count = 1,
                                            .release = uva__body_text_free,
                                            .owner = text};
    const int64_t bytes = (int64_t)text->buffer.len;

    answer_count(answer, text->rows, bytes);
    return uva__connection_send(answer->connection, &out, bytes) == 0
               ? 0
               : ECANCELED;
}

/* ---- the end ------------------------------------------------------------- */

/* Gives its place up. As its connection ends the answer, it may start the next
 * query of its client: so that comes later. */
static void answer_leave(struct uva__answer *answer)
{
    *answer->previous = answer->next;
    if (answer->next != NULL)
        answer->next->previous = answer->previous;
    if (--answer->answers->count == 0)
        uva__rest_begin(answer->answers->rest);
}

/* The client has left: so does the query. */
static void answer_on_gone(void *ctx)
{
    struct uva__answer *answer = ctx;

    answer->answers->cancelled++;
    uva__rights_drop(&answer->question);
    uva_stream_drop(answer->stream);
    answer_leave(answer);
    free(answer);
}

static void answer_on_writable(void *ctx)
{
    struct uva__answer *answer = ctx;

    answer->is_paused = false;
    if (answer->stream != NULL && answer->question.stream == NULL)
        uva_stream_resume(answer->stream);
}

/* The facts of a driver about an error, for its members. */
struct details {
    char values[4][64];
    const char *members[9]; /* key, value, ..., NULL */
};

static void details_read(const char *metadata, struct details *out)
{
    static const char *const KEYS[][2] = {
        {"adbc.status", "status_name"},
        {"adbc.sqlstate", "sqlstate"},
        {"adbc.vendor_code", "vendor_code"},
        {"adbc.detail.duckdb:error_type", "error_type"}};
    struct uva_pair pair;
    int i, n = 0;

    memset(out, 0, sizeof(*out));
    for (i = 0; i < 4; i++) {
        if (uva_metadata_get(metadata, KEYS[i][0], &pair) != 0)
            continue;
        (void)snprintf(out->values[i], sizeof(out->values[i]), "%.*s",
                       (int)pair.value_size, pair.value);
        out->members[n++] = KEYS[i][1];
        out->members[n++] = out->values[i];
    }
}

/* Gives the text of a failure with the driver's whole message, of which the
 * library has cut the end; to be freed. NULL: not cut, or there is no memory.
 */
static char *whole_text(const struct uva_outcome *outcome)
{
    const char *const cut = outcome->error.message;
    struct uva_pair whole;
    char begin[64] = "";
    const char *at;
    size_t before;
    char *text;

    if (uva_metadata_get(outcome->metadata, "adbc.message", &whole) != 0 ||
        whole.value_size < sizeof(begin))
        return NULL;
    memcpy(begin, whole.value, sizeof(begin) - 1);
    at = strstr(cut, begin);
    if (at == NULL)
        return NULL;
    before = (size_t)(at - cut);
    text = malloc(before + whole.value_size + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, cut, before);
    memcpy(text + before, whole.value, whole.value_size);
    text[before + whole.value_size] = '\0';
    return text;
}

/* The text of a failure for a client: without the name of the source, by which
 * a program tells its streams apart, and which is that of every answer. */
static const char *text_of(const char *text)
{
    static const char name[] = "query: ";
    const size_t size = sizeof(name) - 1;

    return strncmp(text, name, size) == 0 ? text + size : text;
}

/* Whether the limit of the answer has passed, and not a limit of the database
 * or of the wait for a connection. */
static bool outcome_is_late(const struct uva_outcome *outcome)
{
    struct uva_pair status;

    return outcome->error.code == ETIMEDOUT &&
           strstr(outcome->error.message, "(busy_ms)") != NULL &&
           uva_metadata_get(outcome->metadata, "adbc.status", &status) != 0;
}

static void answer_fail(struct uva__answer *answer,
                        const struct uva_outcome *outcome)
{
    struct details details;
    const struct uva_error *error =
        answer->why.code != 0 ? &answer->why : &outcome->error;
    const int status =
        answer->why.code == ETIMEDOUT ? 504
        : answer->why.code == ECANCELED
            ? 409
            : uva__status_of(answer->answers->kind, error,
                             error == &outcome->error ? outcome->metadata
                                                      : NULL);

    char *const whole = error == &outcome->error ? whole_text(outcome) : NULL;
    char more[80];

    (void)snprintf(more, sizeof(more), "X-Query-Id: %" PRId64 "\r\n%s",
                   answer->id, status == 503 ? "Retry-After: 1\r\n" : "");
    details_read(outcome->metadata, &details);
    uva__connection_fail(answer->connection, status, answer->origin, more,
                         text_of(whole != NULL ? whole : error->message),
                         details.members);
    free(whole);
}

/* ---- the stream ---------------------------------------------------------- */

/* Sends the head. Returns 0; ECANCELED: the answer is gone. */
static int answer_begin(struct uva__answer *answer)
{
    const bool is_coded = answer->coding != UVA__CODING_NONE;
    char more[80];

    if (answer->has_begun)
        return 0;
    answer->has_begun = true;
    (void)snprintf(more, sizeof(more), "X-Query-Id: %" PRId64 "\r\n%s%s%s",
                   answer->id, is_coded ? "Content-Encoding: " : "",
                   is_coded ? uva__coding_name(answer->coding) : "",
                   is_coded ? "\r\n" : "");
    return uva__connection_begin(answer->connection, 200,
                                 uva__format_type(answer->format),
                                 answer->origin, more) == 0
               ? 0
               : ECANCELED;
}

/* A HEAD request needs no rows: the query is over once it has some. */
static int answer_stop(struct uva__answer *answer)
{
    struct uva__connection *connection = answer->connection;

    answer->answers->complete++;
    uva_stream_drop(answer->stream);
    answer_leave(answer);
    free(answer);
    uva__connection_end(connection);
    return ECANCELED;
}

static int answer_on_batch(void *ctx, struct uva_batch *batch)
{
    struct uva__answer *answer = ctx;
    struct uva__body_text *text;
    struct uva_part part;
    int code = answer_begin(answer);

    if (code != 0)
        return code;
    if (answer->connection->body == UVA__BODY_OMITTED)
        return answer_stop(answer);
    text = uva__body_take(&batch->data);
    if (text == NULL)
        code = uva_part_take(&batch->data, &part);
    if (code == 0)
        code = text != NULL ? answer_send_text(answer, text)
                            : answer_send(answer, &part);
    if (code != 0)
        return code;
    answer->is_paused = uva__connection_is_full(answer->connection);
    return answer->is_paused ? EAGAIN : 0;
}

/* The client has the head and some rows: it sees that the rest is missing. */
static void answer_cut(struct uva__answer *answer,
                       const struct uva_outcome *outcome)
{
    struct uva__answers *answers = answer->answers;
    struct uva__cut *cut = &answers->cuts[answers->cut_count++ % UVA__CUTS];
    const bool is_ours = answer->why.code != 0;
    char *const whole = is_ours ? NULL : whole_text(outcome);
    const char *why = is_ours ? answer->why.message : outcome->error.message;

    if (whole != NULL)
        why = whole;
    why = text_of(why);
    cut->id = answer->id;
    (void)snprintf(cut->text, sizeof(cut->text), "%.*s",
                   (int)sizeof(cut->text) - 1, why);
    uva__connection_cut(answer->connection, why);
    free(whole);
}

static void answer_on_done(void *ctx, const struct uva_outcome *outcome)
{
    struct uva__answer *answer = ctx;
    struct uva__connection *connection = answer->connection;
    int code = 0;

    uva_stream_release(answer->stream);
    answer->stream = NULL;
    if (outcome->end == UVA_END_COMPLETE)
        code = answer_begin(answer);
    if (code != 0)
        return; /* on_gone has freed it */
    answer_leave(answer);
    if (outcome_is_late(outcome)) {
        answer->answers->timed_out++;
        (void)uva_error_set(&answer->why, ETIMEDOUT,
                            "the query took longer than %" PRId64 " ms",
                            answer->limit_ms);
    }
    if (outcome->end == UVA_END_COMPLETE) {
        answer->answers->complete++;
        uva__connection_end(connection);
    } else {
        answer->answers->failed++;
        if (answer->has_begun)
            answer_cut(answer, outcome);
        else
            answer_fail(answer, outcome);
    }
    free(answer);
}

/* ---- the start ----------------------------------------------------------- */

static struct uva__answer *answer_new(struct uva__answers *answers,
                                      struct uva__connection *connection,
                                      enum uva__rows format, const char *origin)
{
    const char *codings =
        uva__request_field(&connection->request, UVA__FIELD_ACCEPT_ENCODING);
    struct uva__answer *answer = calloc(1, sizeof(*answer));

    if (answer == NULL)
        return NULL;
    answer->answers = answers;
    answer->next = answers->first;
    answer->previous = &answers->first;
    if (answer->next != NULL)
        answer->next->previous = &answer->next;
    answers->first = answer;
    answers->count++;
    uva__rest_end(answers->rest);
    answer->connection = connection;
    answer->format = format;
    if (format != UVA__ROWS_ARROW)
        answer->coding = uva__coding_accepted(codings);
    answer->origin = origin;
    answer->id = ++answers->begun;
    answer->begun = uv_hrtime();
    return answer;
}

/* One value may be as large as the database allows, and text of it several
 * times that: so it is refused before that is made. */
static int limit_batch(void *ctx, struct uva_batch *in,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int64_t *most = ctx;
    int64_t size = 0;
    const int code = uva_array_size(in->schema, &in->data, &size);

    if (code != 0)
        return uva_error_set(error, code, "the rows do not fit their schema");
    if (size > *most)
        return uva_error_set(error, EFBIG,
                             "rows of %" PRId64 " bytes come at once, and "
                             "--max-batch-bytes is %" PRId64,
                             size, *most);
    uva_array_move(&in->data, out);
    return 0;
}

static int answer_open(struct uva__answer *answer, struct uva_error *error)
{
    static const enum uva_format formats[] = {
        [UVA__ROWS_ARROW] = UVA_FORMAT_ARROW,
        [UVA__ROWS_JSON] = UVA_FORMAT_JSON,
        [UVA__ROWS_ARRAY] = UVA_FORMAT_JSON,
        [UVA__ROWS_CSV] = UVA_FORMAT_CSV};
    const struct uva_encode options = {.format = formats[answer->format]};
    int code = 0;

    (void)uva_stream_map(answer->stream,
                         &(struct uva_map){.batch = limit_batch,
                                           .ctx = &answer->answers->batch_bytes,
                                           .on_loop = true});
    (void)uva_stream_encode(answer->stream, &options);
    if (uva__body_is_made(answer->format, answer->coding))
        code = uva__body_add(answer->stream, answer->format, answer->coding);
    if (code != 0)
        return uva_error_set(error, code, "out of memory");
    return uva_stream_for_each(
        answer->stream,
        &(struct uva_consumer){.on_batch = answer_on_batch,
                               .on_done = answer_on_done,
                               .ctx = answer},
        error);
}

/* The answer has not begun: there is an error instead. */
static void answer_refuse(struct uva__answer *answer,
                          const struct uva_outcome *outcome)
{
    uva_stream_release(answer->stream);
    answer->answers->failed++;
    answer_leave(answer);
    answer_fail(answer, outcome);
    free(answer);
}

static void answer_on_rights(void *ctx, const struct uva_outcome *outcome)
{
    struct uva__answer *answer = ctx;
    struct uva_outcome fault = {.end = UVA_END_FAILED};

    if (outcome->end != UVA_END_COMPLETE)
        answer_refuse(answer, outcome);
    else if (answer_open(answer, &fault.error) != 0)
        answer_refuse(answer, &fault);
}

static int answer_ask(struct uva__answer *answer, struct uva_error *error)
{
    if (answer->answers->rights->are_few)
        return answer_open(answer, error);
    answer->question.on_answer = answer_on_rights;
    answer->question.ctx = answer;
    return uva__rights_ask(answer->answers->rights, &answer->question, error);
}

void uva__answer_start(struct uva__answers *answers,
                       struct uva__connection *connection,
                       struct uva_stream *stream, int64_t limit_ms,
                       enum uva__rows format, const char *sql,
                       const char *origin)
{
    struct uva_outcome outcome = {.end = UVA_END_FAILED};
    struct uva__answer *answer;

    if (answers->count >= answers->most_running + answers->most_waiting) {
        answers->refused++;
        uva_stream_release(stream);
        uva__connection_fail(connection, 503, origin, "Retry-After: 1\r\n",
                             "too many queries are waiting", NULL);
        return;
    }
    answer = answer_new(answers, connection, format, origin);
    if (answer == NULL) {
        uva_stream_release(stream);
        uva__connection_fail(connection, 503, origin, NULL, "out of memory",
                             NULL);
        return;
    }
    answer->stream = stream;
    answer->limit_ms = limit_ms;
    (void)snprintf(answer->sql, sizeof(answer->sql), "%.*s",
                   (int)sizeof(answer->sql) - 1, sql);
    if (answer_ask(answer, &outcome.error) != 0) {
        answer_refuse(answer, &outcome);
        return;
    }
    connection->query = answer->id;
    uva__connection_defer(connection, &(struct uva__answer_events){
                                          .on_writable = answer_on_writable,
                                          .on_gone = answer_on_gone,
                                          .ctx = answer});
}

static struct uva__answer *answer_find(const struct uva__answers *answers,
                                       int64_t id)
{
    struct uva__answer *answer = answers->first;

    while (answer != NULL && answer->id != id)
        answer = answer->next;
    return answer;
}

int uva__answer_end(struct uva__answers *answers, int64_t id)
{
    const struct uva_outcome outcome = {.end = UVA_END_CANCELLED};
    struct uva__answer *answer = answer_find(answers, id);

    if (answer == NULL)
        return ENOENT;
    answers->ended++;
    (void)uva_error_set(&answer->why, ECANCELED,
                        "the query was ended: DELETE /queries/%" PRId64, id);
    uva__rights_drop(&answer->question);
    uva_stream_drop(answer->stream);
    answer_leave(answer);
    if (answer->has_begun)
        answer_cut(answer, &outcome);
    else
        answer_fail(answer, &outcome);
    free(answer);
    return 0;
}
