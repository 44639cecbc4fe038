/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the messages of Flight SQL's partitions, which are protocol buffers: a
 * list of fields, each with its number, its kind and its bytes. Drivers try the
 * locations of an endpoint in their order, each for as long as a connect may
 * take: a limit of time that passes before would only ever reach the first. */
#include "adbc/replicas.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ENDPOINT = 3, LOCATION = 2, URI = 1 }; /* numbers of fields */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* kinds */

/* A part of a message. */
struct span {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number;
    int kind;
    struct span whole; /* with its number and kind */
    struct span bytes; /* of the kind BYTES */
};

static bool varint_read(struct span *from, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        const uint8_t byte = *from->at++;

        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* Takes the next field of a message; false at its end, and if it is none. */
static bool field_next(struct span *from, struct field *out)
{
    uint64_t key, size = 0;

    out->whole.at = from->at;
    if (!varint_read(from, &key))
        return false;
    out->number = key >> 3;
    out->kind = (int)(key & 7);
    if (out->kind == FIXED64 || out->kind == FIXED32)
        size = out->kind == FIXED64 ? 8 : 4;
    else if (out->kind != VARINT && out->kind != BYTES)
        return false;
    else if (!varint_read(from, &size))
        return false;
    if (out->kind == VARINT)
        size = 0;
    if (size > (uint64_t)(from->end - from->at))
        return false;
    out->bytes.at = from->at;
    out->bytes.end = out->whole.end = from->at += size;
    return true;
}

/* Finds field `number` of a message, which must have it once. */
static bool field_find(struct span from, uint64_t number, struct field *out)
{
    struct field field;
    size_t found = 0;

    while (field_next(&from, &field))
        if (field.number == number && field.kind == BYTES && ++found == 1)
            *out = field;
    return found == 1 && from.at == from.end;
}

static bool field_is_location(const struct field *field)
{
    return field->number == LOCATION && field->kind == BYTES;
}

/* Finds the endpoint; false if the partition is of another kind. */
static bool endpoint_find(const void *partition, size_t size,
                          struct span *endpoint)
{
    const struct span all = {partition, (const uint8_t *)partition + size};
    struct field field;

    if (!field_find(all, ENDPOINT, &field))
        return false;
    *endpoint = field.bytes;
    return true;
}

/* Finds the location number `index`, and counts them; false: a broken message.
 */
static bool location_find(struct span endpoint, size_t index,
                          struct field *found, size_t *count)
{
    struct field field;

    *count = 0;
    while (field_next(&endpoint, &field)) {
        if (!field_is_location(&field))
            continue;
        if (*count == index)
            *found = field;
        (*count)++;
    }
    return endpoint.at == endpoint.end;
}

/* The part of a URI between the two slashes, or a user, and the path. */
static struct span host_of(const struct field *location)
{
    struct span host = {NULL, NULL};
    struct field uri;

    if (!field_find(location->bytes, URI, &uri))
        return host;
    host = uri.bytes;
    for (const uint8_t *at = host.at; at + 2 < host.end; at++)
        if (at[0] == ':' && at[1] == '/' && at[2] == '/') {
            host.at = at + 3;
            break;
        }
    for (const uint8_t *at = host.at; at < host.end; at++) {
        if (*at == '@')
            host.at = at + 1;
        else if (*at == '/' || *at == '?' || *at < ' ')
            host.end = at;
    }
    return host;
}

void uva__replicas_hosts(const void *partition, size_t size, char *text,
                         size_t room)
{
    struct field location;
    struct span endpoint, host;
    size_t count = 0, used = 0;

    text[0] = '\0';
    if (!endpoint_find(partition, size, &endpoint))
        return;
    for (size_t i = 0;
         location_find(endpoint, i, &location, &count) && i < count; i++) {
        host = host_of(&location);
        if (host.at == host.end || used >= room)
            continue;
        used += (size_t)snprintf(
            text + used, room - used, "%s%.*s", used > 0 ? " or " : "",
            (int)(host.end - host.at), (const char *)host.at);
    }
}

void uva__replicas_rotate(const void *partition, size_t size, size_t first,
                          void *out)
{
    struct field field, location;
    struct span endpoint, rest;
    size_t count, passed = 0;
    uint8_t *to;

    memcpy(out, partition, size);
    if (!endpoint_find(partition, size, &endpoint) ||
        !location_find(endpoint, 0, &location, &count) || count < 2)
        return;
    to = (uint8_t *)out + (endpoint.at - (const uint8_t *)partition);
    rest = endpoint;
    while (field_next(&rest, &field)) {
        if (field_is_location(&field))
            (void)location_find(endpoint, (first + passed++) % count, &field,
                                &(size_t){0});
        memcpy(to, field.whole.at, (size_t)(field.whole.end - field.whole.at));
        to += field.whole.end - field.whole.at;
    }
}
