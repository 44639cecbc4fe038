/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics as objects of JavaScript. */
#include <stdlib.h>

#include "addon.h"

struct number {
    const char *name;
    int64_t value;
};

static bool stats_set(napi_env env, napi_value object,
                      const struct number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        napi_value value = value_number(env, (double)numbers[i].value);

        if (value == NULL ||
            !value_ok(env, napi_set_named_property(env, object, numbers[i].name,
                                                   value)))
            return false;
    }
    return true;
}

static napi_value stats_object(napi_env env, const struct number *numbers,
                               size_t count)
{
    napi_value out = NULL;

    return value_ok(env, napi_create_object(env, &out)) &&
                   stats_set(env, out, numbers, count)
               ? out
               : NULL;
}

/* stats() */
napi_value stats_runtime(napi_env env, napi_callback_info info)
{
    const struct host *host = host_of(env);
    struct uva_runtime_stats s;

    (void)info;
    if (host == NULL)
        return NULL;
    uva_runtime_get_stats(host->runtime, &s);
    const struct number numbers[] = {
        {"streamsOpen", s.streams_open},
        {"streamsHeld", s.streams_held},
        {"threadsCompute", s.threads_compute},
        {"threadsBlocking", s.threads_blocking},
        {"threadsStuck", s.threads_stuck},
        {"callsStuck", s.calls_stuck},
        {"turns", s.turns},
        {"batchesHeld", host->batches},
        {"bytesHeld", host->bytes},
    };
    return stats_object(env, numbers, sizeof(numbers) / sizeof(*numbers));
}

/* ---- stages -------------------------------------------------------------- */

static const char *waiting_name(enum uva_waiting waiting)
{
    static const char *const names[] = {
        [UVA_WAITING_NONE] = "none",         [UVA_WAITING_SOURCE] = "source",
        [UVA_WAITING_CONSUMER] = "consumer", [UVA_WAITING_WORKER] = "worker",
        [UVA_WAITING_DEVICE] = "device",     [UVA_WAITING_MEMORY] = "memory",
        [UVA_WAITING_PERMIT] = "permit",     [UVA_WAITING_TIME] = "time",
        [UVA_WAITING_OVER] = "over"};
    const size_t count = sizeof(names) / sizeof(*names);

    return (size_t)waiting < count ? names[waiting] : "none";
}

static bool stage_set_text(napi_env env, napi_value object, const char *name,
                           const char *text)
{
    napi_value value = NULL;

    return value_ok(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH,
                                                 &value)) &&
           value_ok(env, napi_set_named_property(env, object, name, value));
}

static napi_value stage_value(napi_env env, const struct uva_stage_stats *stage)
{
    const struct number numbers[] = {
        {"next", stage->next},
        {"requested", stage->requested},
        {"batches", stage->batches},
        {"rows", stage->rows},
        {"bytes", stage->bytes},
        {"rowsExpected", stage->rows_expected},
        {"bytesExpected", stage->bytes_expected},
        {"queued", stage->queued},
        {"queuedBytes", stage->queued_bytes},
    };
    napi_value out =
        stats_object(env, numbers, sizeof(numbers) / sizeof(*numbers));

    return out != NULL && stage_set_text(env, out, "name", stage->name) &&
                   stage_set_text(env, out, "waiting",
                                  waiting_name(stage->waiting))
               ? out
               : NULL;
}

static napi_value
stages_value(napi_env env, const struct uva_stage_stats *stages, size_t count)
{
    napi_value out = NULL;

    if (!value_ok(env, napi_create_array(env, &out)))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        napi_value stage = stage_value(env, stages + i);

        if (stage == NULL ||
            !value_ok(env, napi_set_element(env, out, (uint32_t)i, stage)))
            return NULL;
    }
    return out;
}

/* Gives the stages, to be freed; NULL without memory. */
static struct uva_stage_stats *stages_read(const struct uva_stream *stream,
                                           size_t *count)
{
    struct uva_stage_stats *stages;
    size_t room = 0;

    if (uva_stream_get_stats(stream, NULL, &room) != 0)
        return NULL;
    stages = calloc(room + 1, sizeof(*stages));
    *count = room;
    if (stages == NULL || uva_stream_get_stats(stream, stages, count) != 0) {
        free(stages);
        return NULL;
    }
    *count = *count < room ? *count : room;
    return stages;
}

/* streamStats(stream) -> [stage...] */
napi_value stats_stream(napi_env env, napi_callback_info info)
{
    struct uva_stage_stats *stages;
    napi_value arg = NULL, out;
    struct rows *rows;
    size_t count = 0;

    if (!value_args(env, info, 1, &arg) || (rows = rows_of(env, arg)) == NULL)
        return NULL;
    stages = stages_read(rows->stream, &count);
    if (stages == NULL)
        return value_no_memory(env);
    out = stages_value(env, stages, count);
    free(stages);
    return out;
}

/* ---- pools --------------------------------------------------------------- */

napi_value stats_pool_value(napi_env env, const struct uva_adbc_pool_stats *s)
{
    const struct number numbers[] = {
        {"connectionsUsed", s->connections_used},
        {"connectionsIdle", s->connections_idle},
        {"connectionsStuck", s->connections_stuck},
        {"connectionsMax", s->connections_max},
        {"queriesWaiting", s->queries_waiting},
        {"queries", s->queries},
    };

    return stats_object(env, numbers, sizeof(numbers) / sizeof(*numbers));
}
