/* SPDX-License-Identifier: Apache-2.0 */
/* The table of limits, and how an option sets one. */
#include "server_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT(option, member, normal, least, most, meaning)                    \
    {                                                                          \
        option, meaning, offsetof(struct uva__limits, member), normal, least,  \
            most                                                               \
    }

/* Descriptors of the server: log, listener, its reserve, the spare connection,
 * and the needs of loading a driver. */
#define OWN 6

#define MIB (INT64_C(1) << 20)
#define DAY INT64_C(86400000) /* in milliseconds */

static const struct uva__limit LIMITS[] = {
    LIMIT("--max-head", head_bytes, 16384, 256, MIB,
          "bytes of request line and headers"),
    LIMIT("--max-url", url_bytes, 8192, 64, MIB, "bytes of the URL"),
    LIMIT("--max-body", body_bytes, MIB, 1, 1024 * MIB,
          "bytes of a request's body"),
    LIMIT("--max-connections", connections, 1024, 1, 1000000,
          "connections open at one time"),
    LIMIT("--max-client-connections", client_connections, 0, 0, 1000000,
          "connections of one client; 0: any number"),
    LIMIT("--max-client-queries", client_queries, 0, 0, 1000000,
          "queries of one client; 0: any number"),
    LIMIT("--head-ms", head_ms, 10000, 1, DAY, "time until the head is there"),
    LIMIT("--body-ms", body_ms, 30000, 1, DAY,
          "time from there until the body is"),
    LIMIT("--idle-ms", idle_ms, 130000, 1, DAY, "time between two requests"),
    LIMIT("--write-ms", write_ms, 60000, 1, DAY,
          "time in which a client must take something"),
    LIMIT("--linger-ms", linger_ms, 2000, 1, DAY,
          "time for a client to close after the last answer"),
    LIMIT("--drain-ms", drain_ms, 30000, 1, DAY,
          "time for running answers after SIGTERM"),
    LIMIT("--max-queries", queries, 8, 1, 10000, "queries running at one time"),
    LIMIT("--stuck", stuck, 0, 0, 10000,
          "connections in a call that does not return, which are replaced; "
          "0: as many as --max-queries"),
    LIMIT("--query-ms", query_ms, 300000, 1, DAY,
          "time that the database may take for a query"),
    LIMIT("--max-waiting", waiting, 64, 1, 1000000,
          "queries that wait for one of these"),
    LIMIT("--wait-ms", wait_ms, 30000, 1, DAY, "the longest such wait"),
    LIMIT("--lock-ms", lock_ms, 5000, 1, DAY,
          "wait for another program's lock"),
    LIMIT("--max-batch-bytes", max_batch_bytes, 64 * MIB, 1024, INT64_MAX,
          "of rows that the database gives at once"),
    LIMIT("--memory-bytes", memory_bytes, 128 * MIB, 65536, INT64_MAX,
          "of batches, of all queries together"),
    LIMIT("--batch-bytes", batch_bytes, 262144, 1, 1024 * MIB,
          "about so large is a batch of the driver's"),
};

#define LIMITS_COUNT (sizeof(LIMITS) / sizeof(*LIMITS))

const struct uva__limit *uva__limits_at(size_t i)
{
    return i < LIMITS_COUNT ? &LIMITS[i] : NULL;
}

static int64_t *limit_of(struct uva__limits *limits,
                         const struct uva__limit *limit)
{
    return (int64_t *)(void *)((char *)limits + limit->offset);
}

void uva__limits_init(struct uva__limits *limits)
{
    size_t i;

    for (i = 0; i < LIMITS_COUNT; i++)
        *limit_of(limits, &LIMITS[i]) = LIMITS[i].normal;
}

static int limit_parse(const struct uva__limit *limit, const char *text,
                       int64_t *out, struct uva_error *error)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < limit->least ||
        value > limit->most)
        return uva_error_set(error, EINVAL,
                             "%s takes a number from %" PRId64 " to %" PRId64
                             ", not '%s'",
                             limit->option, limit->least, limit->most, text);
    *out = value;
    return 0;
}

int uva__limits_set(struct uva__limits *limits, const char *option,
                    const char *value, struct uva_error *error)
{
    size_t i;

    for (i = 0; i < LIMITS_COUNT; i++)
        if (strcmp(option, LIMITS[i].option) == 0)
            return limit_parse(&LIMITS[i], value, limit_of(limits, &LIMITS[i]),
                               error);
    return ENOENT;
}

int uva__limits_fit(struct uva__limits *limits, int64_t most, int64_t used,
                    struct uva_error *error)
{
    const int64_t room = most - used - OWN;
    int64_t queries = room / 2 / UVA__LIMITS_QUERY, left;

    if (room < 2)
        return uva_error_set(error, EMFILE,
                             "the limit of %" PRId64 " open files is too low: "
                             "the server needs %" PRId64 " at least",
                             most, used + OWN + 2);
    if (queries < 1)
        queries = 1;
    if (limits->queries > queries)
        limits->queries = queries;
    left = room - limits->queries * UVA__LIMITS_QUERY;
    if (left < 1)
        left = 1;
    if (limits->connections > left)
        limits->connections = left;
    return 0;
}
