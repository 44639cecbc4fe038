/* SPDX-License-Identifier: Apache-2.0 */
/* prefix -> header -> body -> full -> (taken) prefix ... -> over. An empty body
 * is skipped. What the 8 bytes in front of the first header hold shows whether
 * there are markers; after a message without one, only 4 bytes are wanted, as
 * no more may follow. */
#include "io/ipc_framer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MARKER UINT32_MAX

/* Without a marker: no header is smaller, and all texts look larger. */
enum { LEAST_HEAD = 8, MOST_HEAD = '\t' << 24 };

/* A file begins so; two bytes of any value follow. */
static const uint8_t magic[6] = {'A', 'R', 'R', 'O', 'W', '1'};

void uva__ipc_framer_init(struct uva__ipc_framer *framer, int64_t max_bytes)
{
    *framer = (struct uva__ipc_framer){.max_bytes = max_bytes};
}

void uva__ipc_framer_seek(struct uva__ipc_framer *framer, int64_t offset)
{
    framer->offset = framer->message.offset = offset;
    framer->state = UVA__IPC_FRAMER_PREFIX;
    framer->done = 0;
}

/* How many bytes are in front of the header. */
static size_t framer_prefix(const struct uva__ipc_framer *framer)
{
    const bool is_marked =
        !framer->is_unmarked ||
        (framer->done >= 4 && uva__table_load(framer->prefix, 4) == MARKER);

    return is_marked ? sizeof(framer->prefix) : 4;
}

void uva__ipc_framer_want(struct uva__ipc_framer *framer, uint8_t **to,
                          size_t *size)
{
    const struct uva__message *message = &framer->message;

    assert(framer->state < UVA__IPC_FRAMER_FULL);
    if (framer->state == UVA__IPC_FRAMER_PREFIX) {
        *to = framer->prefix;
        *size = framer_prefix(framer);
    } else if (framer->state == UVA__IPC_FRAMER_HEAD) {
        *to = message->head->bytes;
        *size = message->head->size;
    } else {
        *to = message->body->bytes;
        *size = message->body->size;
    }
    *to += framer->done;
    *size -= framer->done;
}

/* ---- input -------------------------------------------------------------- */

static int framer_too_large(const struct uva__ipc_framer *framer,
                            const char *what, int64_t size,
                            struct uva_error *error)
{
    return uva_error_set(error, EMSGSIZE,
                         "%s of %" PRId64 " bytes: at most %" PRId64
                         " are allowed (max_bytes)",
                         what, size, framer->max_bytes);
}

static int framer_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Goes on with a header of `size` bytes. */
static int framer_begin_head(struct uva__ipc_framer *framer, int64_t size,
                             struct uva_error *error)
{
    framer->message.head_size = (framer->is_unmarked ? 4 : 8) + size;
    framer->state = size == 0 ? UVA__IPC_FRAMER_OVER : UVA__IPC_FRAMER_HEAD;
    if (size == 0)
        return 0;
    framer->message.head = uva__shared_bytes_new((size_t)size);
    return framer->message.head != NULL ? 0 : framer_no_memory(error);
}

/* Takes a prefix without a marker: the size, and the bytes of the header read
 * so far. Whatever is no Arrow IPC looks like that, too. */
static int framer_add_unmarked(struct uva__ipc_framer *framer,
                               struct uva_error *error)
{
    const uint8_t *prefix = framer->prefix;
    const int64_t size = (int32_t)uva__table_load(prefix, 4);
    const size_t more = framer_prefix(framer) - 4;
    int code;

    if (size < 0 || size > framer->max_bytes || size >= MOST_HEAD ||
        (size > 0 && size < LEAST_HEAD))
        return uva_error_set(error, EPROTO,
                             "it begins with %02x %02x %02x %02x, neither with "
                             "ff ff ff ff nor with a possible size: this is no "
                             "Arrow IPC",
                             prefix[0], prefix[1], prefix[2], prefix[3]);
    framer->is_unmarked = true;
    code = framer_begin_head(framer, size, error);
    if (code == 0 && framer->state == UVA__IPC_FRAMER_HEAD) {
        memcpy(framer->message.head->bytes, prefix + 4, more);
        framer->done = more;
    }
    return code;
}

static int framer_add_prefix(struct uva__ipc_framer *framer,
                             struct uva_error *error)
{
    const uint8_t *prefix = framer->prefix;
    int64_t size;

    if (framer->message.offset == 0 &&
        memcmp(prefix, magic, sizeof(magic)) == 0) {
        framer->is_file = true;
        framer->message.offset = framer->offset;
        return 0;
    }
    if (uva__table_load(prefix, 4) != MARKER)
        return framer_add_unmarked(framer, error);
    framer->is_unmarked = false;
    size = (int32_t)uva__table_load(prefix + 4, 4);
    if (size < 0)
        return uva_error_set(error, EPROTO, "a header of %" PRId64 " bytes",
                             size);
    if (size > framer->max_bytes)
        return framer_too_large(framer, "a header", size, error);
    return framer_begin_head(framer, size, error);
}

/* Goes on with a body, if there is one. */
static int framer_begin_body(struct uva__ipc_framer *framer,
                             struct uva_error *error)
{
    const size_t size = (size_t)framer->body_size;

    framer->state = size == 0 ? UVA__IPC_FRAMER_FULL : UVA__IPC_FRAMER_BODY;
    if (size == 0 || framer->is_lent)
        return 0;
    framer->message.body = framer->kept != NULL
                               ? uva__kept_bytes_take(framer->kept, size)
                               : uva__shared_bytes_new(size);
    return framer->message.body != NULL ? 0 : framer_no_memory(error);
}

static int framer_add_head(struct uva__ipc_framer *framer,
                           struct uva_error *error)
{
    const struct uva__message *message = &framer->message;
    struct uva__ipc_head head;
    int code = uva__ipc_head_read(message->head->bytes, message->head->size,
                                  &head, error);

    if (code != 0)
        return code;
    if (head.body_size > framer->max_bytes - (int64_t)message->head->size)
        return framer_too_large(framer, "a body", head.body_size, error);
    framer->body_size = head.body_size;
    return framer_begin_body(framer, error);
}

/* Polars writes no size in front of the first header of a file. */
static int framer_fail(const struct uva__ipc_framer *framer,
                       struct uva_error *error)
{
    if (error->code == EPROTO && framer->is_file &&
        framer->message.number == 0 &&
        uva__table_load(framer->prefix, 4) != MARKER)
        (void)uva_error_set(error, EPROTO,
                            "its size is missing: of such a file only the "
                            "footer shows where messages are, so that it "
                            "cannot be read through a pipe or socket");
    return uva__message_fail(&framer->message, error);
}

int uva__ipc_framer_add(struct uva__ipc_framer *framer, size_t size,
                        struct uva_error *error)
{
    uint8_t *to;
    size_t left;
    int code = 0;

    framer->done += size;
    framer->offset += (int64_t)size;
    uva__ipc_framer_want(framer, &to, &left);
    if (left > 0)
        return 0;
    framer->done = 0;
    if (framer->state == UVA__IPC_FRAMER_PREFIX)
        code = framer_add_prefix(framer, error);
    else if (framer->state == UVA__IPC_FRAMER_HEAD)
        code = framer_add_head(framer, error);
    else
        framer->state = UVA__IPC_FRAMER_FULL;
    return code == 0 ? 0 : framer_fail(framer, error);
}

size_t uva__ipc_framer_behind(const struct uva__ipc_framer *framer)
{
    if (framer->state != UVA__IPC_FRAMER_BODY)
        return 0;
    return framer->is_unmarked ? 4 : sizeof(framer->prefix);
}

void uva__ipc_framer_lend(struct uva__ipc_framer *framer,
                          struct uva__shared_bytes *body)
{
    assert(framer->is_lent && framer->state == UVA__IPC_FRAMER_BODY);
    assert((int64_t)body->size == framer->body_size);
    framer->message.body = body;
    framer->offset += framer->body_size;
    framer->done = 0;
    framer->state = UVA__IPC_FRAMER_FULL;
}

bool uva__ipc_framer_is_between(const struct uva__ipc_framer *framer)
{
    return framer->state == UVA__IPC_FRAMER_PREFIX && framer->done == 0 &&
           framer->message.number > 0;
}

int uva__ipc_framer_end(const struct uva__ipc_framer *framer,
                        struct uva_error *error)
{
    const bool is_zero_end = framer->state == UVA__IPC_FRAMER_PREFIX &&
                             framer->message.number > 0 && framer->done == 4 &&
                             uva__table_load(framer->prefix, 4) == 0;

    if (framer->state == UVA__IPC_FRAMER_OVER || is_zero_end)
        return 0;
    if (uva__ipc_framer_is_between(framer))
        return uva_error_set(error, EPROTO,
                             "Arrow IPC: the input ends at byte %" PRId64
                             ", behind message %" PRId64
                             ", without the marker of the end",
                             framer->offset, framer->message.number - 1);
    return uva_error_set(error, EPROTO,
                         "Arrow IPC: the input ends at byte %" PRId64
                         ", inside of message %" PRId64,
                         framer->offset, framer->message.number);
}

void uva__ipc_framer_take(struct uva__ipc_framer *framer,
                          struct uva__message *out)
{
    *out = framer->message;
    out->is_in_file = framer->is_file;
    framer->message = (struct uva__message){.number = out->number + 1,
                                            .offset = framer->offset};
    framer->state = UVA__IPC_FRAMER_PREFIX;
}

void uva__ipc_framer_fini(struct uva__ipc_framer *framer)
{
    uva__message_fini(&framer->message);
    uva__kept_bytes_close(framer->kept);
}

void uva__message_fini(struct uva__message *message)
{
    uva__shared_bytes_release(message->head);
    uva__shared_bytes_release(message->body);
    *message = (struct uva__message){0};
}

int uva__message_fail(const struct uva__message *message,
                      struct uva_error *error)
{
    static const char name[] = "Arrow IPC: ";
    const bool is_named = strncmp(error->message, name, sizeof(name) - 1) == 0;
    char text[sizeof(error->message)];

    (void)snprintf(text, sizeof(text), "%s",
                   error->message + (is_named ? sizeof(name) - 1 : 0));
    return uva_error_set(error, error->code,
                         "Arrow IPC: message %" PRId64 " at byte %" PRId64
                         ": %s",
                         message->number, message->offset, text);
}
