/* SPDX-License-Identifier: Apache-2.0 */
/* Writes each kind of trace event in Chrome's terms:
 *
 *   span      "X", on the lane of its thread
 *   instant   "i"
 *   counter   "C", one for each stage of a stream
 *   wait      "b" and "e", because waits overlap
 *   link      "i"
 *
 * An arrow is a "s" at the first span of a batch, a "t" at each further one and
 * a "f" at the consumer, each with the same id, at the time at which its span
 * begins: viewers bind them to the span that is open then. A batch is known by
 * its stream and number. As stages may number batches anew, it is known also by
 * the last such stage above the span, its segment; a link leads from one
 * segment to the next, and from one stream to another. */
#include "observe/trace_json.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { NAME_SIZE = 64, STAGES = 64 };

/* ---- text --------------------------------------------------------------- */

static inline void put_bytes(struct uva__trace_json *json, const char *text,
                             size_t size)
{
    assert(size <= sizeof(json->text) - json->size);
    memcpy(json->text + json->size, text, size);
    json->size += size;
}

static inline void put(struct uva__trace_json *json, const char *text)
{
    put_bytes(json, text, strlen(text));
}

static const char two_digits[] = "0001020304050607080910111213141516171819"
                                 "2021222324252627282930313233343536373839"
                                 "4041424344454647484950515253545556575859"
                                 "6061626364656667686970717273747576777879"
                                 "8081828384858687888990919293949596979899";

static void put_int(struct uva__trace_json *json, int64_t value)
{
    char digits[24], *end = digits + sizeof(digits), *at = end;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    for (; rest >= 100; rest /= 100) {
        at -= 2;
        memcpy(at, two_digits + rest % 100 * 2, 2);
    }
    if (rest >= 10)
        *--at = two_digits[rest * 2 + 1];
    *--at = two_digits[rest >= 10 ? rest * 2 : rest * 2 + 1];
    if (value < 0)
        *--at = '-';
    put_bytes(json, at, (size_t)(end - at));
}

/* Chrome's unit is the microsecond. */
static void put_us(struct uva__trace_json *json, int64_t ns)
{
    const int64_t size = ns < 0 ? -ns : ns;
    const char digits[] = {'.', (char)('0' + size / 100 % 10),
                           (char)('0' + size / 10 % 10),
                           (char)('0' + size % 10), '\0'};

    if (ns < 0)
        put(json, "-");
    put_int(json, size / 1000);
    put(json, digits);
}

/* How many characters at `text` can be put into a string as they are. */
static size_t plain_size(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && *at >= ' ' && *at < 0x7F && *at != '"' && *at != '\\')
        at++;
    return (size_t)(at - text);
}

/* Puts one character that cannot; returns its size. Bytes that are not UTF-8,
 * or not printed, become "?". */
static size_t put_char(struct uva__trace_json *json, const char *text,
                       const char *end)
{
    const size_t size = uva__utf8_size(text);

    if (size == 0 || size > (size_t)(end - text) ||
        (unsigned char)*text < ' ' || *text == 0x7F) {
        put_bytes(json, "?", 1);
        return 1;
    }
    if (size == 1)
        put_bytes(json, "\\", 1);
    put_bytes(json, text, size);
    return size;
}

/* Puts the inside of a string. `text` ends with a NUL, and is cut after
 * NAME_SIZE bytes. */
static void put_text(struct uva__trace_json *json, const char *text)
{
    const char *end = text + strnlen(text, NAME_SIZE);

    while (text < end) {
        const size_t size = plain_size(text, end);

        put_bytes(json, text, size);
        text += size;
        if (text < end)
            text += put_char(json, text, end);
    }
}

/* Puts a member of an object, after another one: `begin` is the text before its
 * value, as a literal, which costs no call. */
static inline void put_member(struct uva__trace_json *json, const char *begin,
                              const char *value)
{
    put(json, begin);
    put_text(json, value);
    put(json, "\"");
}

static inline void put_number(struct uva__trace_json *json, const char *begin,
                              int64_t value)
{
    put(json, begin);
    put_int(json, value);
}

/* Keeps the text that events of one thread have in common. */
static void place_set(struct uva__trace_json *json, int32_t thread)
{
    json->place.thread = thread;
    json->place.size = (uint32_t)snprintf(
        json->place.text, sizeof(json->place.text),
        "\",\"pid\":%lld,\"tid\":%ld,\"ts\":", (long long)json->pid,
        (long)thread);
}

/* Begins an event that happened on `thread`; `phase` is one character. */
static void put_event(struct uva__trace_json *json, const char *phase,
                      int32_t thread, int64_t at_ns)
{
    if (json->place.thread != thread || json->place.size == 0)
        place_set(json, thread);
    put(json, ",\n{\"ph\":\"");
    put_bytes(json, phase, 1);
    put_bytes(json, json->place.text, json->place.size);
    put_us(json, at_ns - json->origin_ns);
}

/* ---- names -------------------------------------------------------------- */

/* False if the thread has ended: then its number is its name. */
static bool thread_name(int32_t thread, char name[NAME_SIZE])
{
    char path[48];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%ld/comm",
                   (long)thread);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    size = fread(name, 1, NAME_SIZE - 1, file);
    (void)fclose(file);
    name[size] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return true;
}

/* Names a thread, or the process by its first thread. */
static void put_name(struct uva__trace_json *json, const char *what,
                     int32_t thread)
{
    char name[NAME_SIZE];

    if (!thread_name(thread, name))
        return;
    put(json, ",\n{\"ph\":\"M\"");
    put_number(json, ",\"pid\":", json->pid);
    put_number(json, ",\"tid\":", thread);
    put_member(json, ",\"name\":\"", what);
    put(json, ",\"args\":{\"name\":\"");
    put_text(json, name);
    put(json, "\"}}");
}

static void put_thread(struct uva__trace_json *json, int32_t thread)
{
    int32_t *named = &json->threads[(uint32_t)thread % UVA__TRACE_JSON_THREADS];

    if (*named == thread)
        return;
    *named = thread;
    put_name(json, "thread_name", thread);
}

void uva__trace_json_begin(struct uva__trace_json *json)
{
    put(json, "[\n{\"ph\":\"M\"");
    put_number(json, ",\"pid\":", json->pid);
    put(json, ",\"name\":\"process_labels\"");
    put(json, ",\"args\":{\"labels\":\"uvarrow\"}}");
    put_name(json, "process_name", (int32_t)json->pid);
}

/* ---- arrows ------------------------------------------------------------- */

static struct uva__trace_numbering *numbering_of(struct uva__trace_json *json,
                                                 uint64_t stream_id)
{
    return &json->numberings[stream_id % UVA__TRACE_JSON_STREAMS];
}

static void numbering_add(struct uva__trace_json *json, uint64_t stream_id,
                          int32_t stage)
{
    struct uva__trace_numbering *numbering = numbering_of(json, stream_id);

    if (numbering->stream_id != stream_id)
        *numbering = (struct uva__trace_numbering){.stream_id = stream_id};
    numbering->stages |= (uint64_t)1 << stage;
}

/* The segment above `stage`: 0, or one more than the number of the last stage
 * before it that numbers batches anew. */
static int32_t segment_above(struct uva__trace_json *json, uint64_t stream_id,
                             int32_t stage)
{
    const struct uva__trace_numbering *numbering =
        numbering_of(json, stream_id);

    if (numbering->stream_id != stream_id)
        return 0;
    if (stage > STAGES)
        stage = STAGES;
    while (stage > 0 && (numbering->stages >> (stage - 1) & 1) == 0)
        stage--;
    return stage;
}

/* The entry that is the batch's, or that it would take. */
static struct uva__trace_flow *flow_of(struct uva__trace_json *json,
                                       uint64_t stream_id, int32_t segment,
                                       int64_t ordinal)
{
    const uint64_t start =
        (stream_id * STAGES + (uint64_t)segment) * 0x9E3779B97F4A7C15U;

    return &json->flows[((start >> 40) + (uint64_t)ordinal) %
                        UVA__TRACE_JSON_FLOWS];
}

static bool flow_is(const struct uva__trace_flow *flow, uint64_t stream_id,
                    int32_t segment, int64_t ordinal)
{
    return flow->id != 0 && flow->stream_id == stream_id &&
           flow->segment == segment && flow->ordinal == ordinal;
}

/* Writes the end of an arrow, or its beginning, at the flow's span. */
static void put_flow(struct uva__trace_json *json, const char *phase,
                     const struct uva__trace_flow *flow)
{
    put_event(json, phase, flow->thread, flow->at_ns);
    put_number(json, ",\"id\":", (int64_t)flow->id);
    put(json, ",\"cat\":\"batch\",\"name\":\"batch\"");
    put(json, *phase == 'f' ? ",\"bp\":\"e\"}" : "}");
}

/* A batch enters a segment, by its first span or a link: an arrow begins. */
static void flow_begin(struct uva__trace_json *json,
                       struct uva__trace_flow flow)
{
    struct uva__trace_flow *entry =
        flow_of(json, flow.stream_id, flow.segment, flow.ordinal);

    *entry = flow;
    entry->id = ++json->n_flows;
    put_flow(json, "s", entry);
}

/* A span around a span that was written before it is not part of the arrow. */
static void flow_go_on(struct uva__trace_json *json,
                       const struct uva__trace_record *record)
{
    const struct uva_trace_event *event = &record->event;
    const bool ends = strcmp(event->name, "on_batch") == 0;
    const int32_t segment = segment_above(json, event->stream_id, event->stage);
    struct uva__trace_flow *flow =
        flow_of(json, event->stream_id, segment, event->ordinal);

    if (!flow_is(flow, event->stream_id, segment, event->ordinal)) {
        if (!ends)
            flow_begin(json,
                       (struct uva__trace_flow){.stream_id = event->stream_id,
                                                .segment = segment,
                                                .ordinal = event->ordinal,
                                                .at_ns = event->at_ns,
                                                .thread = record->thread});
        return;
    }
    if (flow->ended || event->at_ns < flow->at_ns)
        return;
    flow->at_ns = event->at_ns;
    flow->thread = record->thread;
    flow->ended = ends;
    put_flow(json, ends ? "f" : "t", flow);
}

/* The arrow of a new batch begins at the end of the arrow of the batch of which
 * it was made; of several, the first. */
static void flow_link(struct uva__trace_json *json,
                      const struct uva_trace_event *event)
{
    const bool inside = event->from_id == event->stream_id;
    const int32_t above =
        segment_above(json, event->from_id, inside ? event->stage : STAGES);
    const int32_t segment = event->stage + 1;
    struct uva__trace_flow from =
        *flow_of(json, event->from_id, above, event->value);

    numbering_add(json, event->stream_id, event->stage);
    if (!flow_is(&from, event->from_id, above, event->value) ||
        flow_is(flow_of(json, event->stream_id, segment, event->ordinal),
                event->stream_id, segment, event->ordinal))
        return;
    from.stream_id = event->stream_id;
    from.segment = segment;
    from.ordinal = event->ordinal;
    from.ended = false;
    flow_begin(json, from);
}

/* ---- events ------------------------------------------------------------- */

/* "#3", or "#2.3" in the second runtime of the process. */
static void put_id(struct uva__trace_json *json, uint64_t stream_id)
{
    put(json, "#");
    if (stream_id >> UVA__TRACE_JSON_ID_BITS != 0) {
        put_int(json, (int64_t)(stream_id >> UVA__TRACE_JSON_ID_BITS) + 1);
        put(json, ".");
    }
    put_int(json, (int64_t)(stream_id &
                            (((uint64_t)1 << UVA__TRACE_JSON_ID_BITS) - 1)));
}

static void put_stream(struct uva__trace_json *json,
                       const struct uva__trace_record *record)
{
    if (record->stream[0] != '\0')
        put_text(json, record->stream);
    else
        put(json, "stream");
    put(json, " ");
    put_id(json, record->event.stream_id);
}

static void put_args(struct uva__trace_json *json,
                     const struct uva__trace_record *record)
{
    const struct uva_trace_event *event = &record->event;

    put(json, ",\"args\":{\"stream\":\"");
    put_stream(json, record);
    put(json, "\"");
    put_number(json, ",\"stage\":", event->stage);
    put_member(json, ",\"in\":\"", record->stage);
    if (event->ordinal >= 0)
        put_number(json, ",\"batch\":", event->ordinal);
    if (event->value != 0 && event->kind >= UVA_TRACE_SCHEMA)
        put_number(json, ",\"value\":", event->value);
    if (event->kind == UVA_TRACE_LINK) {
        put(json, ",\"from_stream\":\"");
        put_id(json, event->from_id);
        put(json, "\"");
        put_number(json, ",\"from_batch\":", event->value);
    }
    put(json, "}}");
}

/* A viewer would not bind an arrow to a span without length. */
static void put_span(struct uva__trace_json *json,
                     const struct uva__trace_record *record)
{
    const struct uva_trace_event *event = &record->event;
    const int64_t length_ns = event->end_ns - event->at_ns;

    put_event(json, "X", record->thread, event->at_ns);
    put(json, ",\"dur\":");
    put_us(json, length_ns > 0 ? length_ns : 1);
    put(json, ",\"cat\":\"uvarrow\"");
    put_member(json, ",\"name\":\"", event->name);
    put_args(json, record);
    if (event->ordinal >= 0)
        flow_go_on(json, record);
}

static void put_counter(struct uva__trace_json *json,
                        const struct uva__trace_record *record)
{
    const struct uva_trace_event *event = &record->event;

    put_event(json, "C", record->thread, event->at_ns);
    put(json, ",\"name\":\"");
    put_text(json, event->name);
    put(json, " in ");
    put_text(json, record->stage);
    put(json, " (");
    put_int(json, event->stage);
    put(json, ") of ");
    put_stream(json, record);
    put(json, "\",\"args\":{\"");
    put_text(json, event->name);
    put(json, "\":");
    put_int(json, event->value);
    put(json, "}}");
}

static void put_wait(struct uva__trace_json *json,
                     const struct uva__trace_record *record)
{
    const struct uva_trace_event *event = &record->event;
    char name[32];

    (void)snprintf(name, sizeof(name), "wait for %.16s", event->name);
    json->n_waits++;
    put_event(json, "b", record->thread, event->at_ns);
    put_number(json, ",\"id\":", (int64_t)json->n_waits);
    put(json, ",\"cat\":\"wait\"");
    put_member(json, ",\"name\":\"", name);
    put_args(json, record);
    put_event(json, "e", record->thread, event->end_ns);
    put_number(json, ",\"id\":", (int64_t)json->n_waits);
    put(json, ",\"cat\":\"wait\"");
    put_member(json, ",\"name\":\"", name);
    put(json, "}");
}

static void put_instant(struct uva__trace_json *json,
                        const struct uva__trace_record *record)
{
    put_event(json, "i", record->thread, record->event.at_ns);
    put(json, ",\"s\":\"t\"");
    put(json, ",\"cat\":\"uvarrow\"");
    put_member(json, ",\"name\":\"", record->event.name);
    put_args(json, record);
}

void uva__trace_json_put(struct uva__trace_json *json,
                         const struct uva__trace_record *record)
{
    put_thread(json, record->thread);
    switch (record->event.kind) {
    case UVA_TRACE_SPAN:
        put_span(json, record);
        break;
    case UVA_TRACE_COUNTER:
        put_counter(json, record);
        break;
    case UVA_TRACE_WAIT:
        put_wait(json, record);
        break;
    case UVA_TRACE_LINK:
        if (record->event.stage < STAGES)
            flow_link(json, &record->event);
        put_instant(json, record);
        break;
    default:
        put_instant(json, record);
    }
}

void uva__trace_json_put_lost(struct uva__trace_json *json, uint64_t count,
                              int64_t at_ns)
{
    put_event(json, "i", (int32_t)json->pid, at_ns);
    put(json, ",\"s\":\"g\",\"cat\":\"uvarrow\",\"name\":\"events lost\"");
    put(json, ",\"args\":{\"value\":");
    put_int(json, (int64_t)count);
    put(json, "}}");
}
