/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_file(): messages are read, put in order and made into arrays
 * by a blocking worker; compressed ones are made into arrays where their tasks
 * are extracted.
 *
 * Happy path:  schema: the file is opened -> the first bytes -> stream format:
 *              message after message; file format: the footer, all
 *              dictionaries, then the batches.
 *
 * A read of a body goes on into the next message, so that one call reads both:
 * of a regular file what is likely to be wanted, of a pipe or socket only what
 * surely is. A mapped file is not read: bodies are parts of it.
 *
 * Failures: a read; the framer and the decoder, for the bytes read.
 *
 * On cancel:   a wait for a pipe or socket is woken by `wake`, which stays
 *              readable. Reads of regular files return by themselves. */
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <uv.h>

#include "io/file_map.h"
#include "io/ipc_decoder.h"
#include "io/ipc_source.h"
#include "uvarrow/arrow.h"
#include "uvarrow/runtime.h"
#include "uvarrow/sources.h"

enum { TRAILER = 10, MAGIC = 6, FIRST_PLACE = 8 };

/* The rows of a file are counted before it is read, from the heads of its
 * batches, if there are not too many, and none is too large. */
enum { HEADS_COUNTED = 1024, HEAD_ROOM = 1 << 16 };

/* Most headers are smaller than this, with the bytes in front of them. */
enum { AHEAD_ROOM = 4096 };

/* Bytes that were read and not wanted so far. */
struct file_ahead {
    int64_t offset; /* of the first one */
    size_t size;
    uint8_t bytes[AHEAD_ROOM];
};

struct file_reader {
    char *path;  /* owns; NULL: the descriptor was given */
    int fd;      /* owns; -1: not open */
    int wake[2]; /* owns: a pipe, readable after a cancel; or -1, -1 */
    struct uva_runtime *runtime; /* counts: a read may return after its close */
    bool need_end_mark;          /* see struct uva_ipc_source */
    bool may_map;                /* see struct uva_ipc_source */
    bool is_seekable;            /* a regular file */
    int64_t base;                /* where it begins in that */
    int64_t size;                /* of that, from the base on */
    struct uva__file_map *map;   /* owns; NULL: it is read */
    struct uva__ipc_framer framer;
    struct uva__ipc_decoder *decoder; /* owns */
    struct uva__shared_bytes *footer; /* owns; NULL: the stream format */
    struct uva__ipc_footer places;    /* borrows from the footer */
    size_t at;      /* the next place: dictionaries, then batches */
    char *metadata; /* owns: of the last batch, or NULL */
    struct file_ahead ahead;
};

/* ---- reading ------------------------------------------------------------ */

static int file_no_memory(struct uva_error *error)
{
    return uva_error_set(error, ENOMEM, "out of memory");
}

/* Waits until there is something to read. Returns 0; ECANCELED after an
 * interrupt; EINTR. */
static int file_wait(const struct file_reader *r)
{
    struct pollfd fds[] = {{.fd = r->fd, .events = POLLIN},
                           {.fd = r->wake[0], .events = POLLIN}};

    if (r->is_seekable)
        return 0;
    if (poll(fds, 2, -1) < 0)
        return errno;
    return fds[1].revents != 0 ? ECANCELED : 0;
}

/* Reads into one or two buffers what is at `offset`, as much as there is, or as
 * comes. Of a pipe or socket that is where it stands. */
static int file_read(const struct file_reader *r, int64_t offset,
                     const struct iovec *to, int count, size_t *got,
                     struct uva_error *error)
{
    ssize_t result = 0;
    int code;

    do {
        code = file_wait(r);
        if (code == 0) {
            result = r->is_seekable ? preadv(r->fd, to, count, r->base + offset)
                                    : readv(r->fd, to, count);
            code = result < 0 ? errno : 0;
        }
    } while (code == EINTR || code == EAGAIN);
    if (code != 0)
        return uva_error_set(error, code, "cannot read at byte %" PRId64 ": %s",
                             offset, uv_strerror(-code));
    *got = (size_t)result;
    return 0;
}

/* Takes what is wanted at `offset` of the bytes that were read ahead. Returns
 * how many these are. */
static size_t file_take_ahead(const struct file_ahead *ahead, int64_t offset,
                              uint8_t *to, size_t size)
{
    const int64_t at = offset - ahead->offset;
    size_t left;

    if (at < 0 || at >= (int64_t)ahead->size)
        return 0;
    left = ahead->size - (size_t)at;
    size = size < left ? size : left;
    memcpy(to, ahead->bytes + at, size);
    return size;
}

/* Reads what the framer wants, and ahead. */
static int file_read_ahead(struct file_reader *r, uint8_t *to, size_t size,
                           size_t *got, struct uva_error *error)
{
    const int64_t offset = r->framer.offset;
    struct file_ahead *ahead = &r->ahead;
    const struct iovec both[] = {
        {.iov_base = to, .iov_len = size},
        {.iov_base = ahead->bytes,
         .iov_len =
             r->is_seekable ? AHEAD_ROOM : uva__ipc_framer_behind(&r->framer)}};
    int code;

    *got = file_take_ahead(ahead, offset, to, size);
    if (*got > 0)
        return 0;
    code = file_read(r, offset, both, both[1].iov_len > 0 ? 2 : 1, got, error);
    if (code != 0)
        return code;
    ahead->offset = offset + (int64_t)size;
    ahead->size = *got > size ? *got - size : 0;
    *got -= ahead->size;
    return 0;
}

/* Gives the framer some of the bytes that it wants; at the end of the file
 * none. */
static int file_feed(struct file_reader *r, size_t *got,
                     struct uva_error *error)
{
    struct uva__ipc_framer *framer = &r->framer;
    uint8_t *to;
    size_t size;
    int code = 0;

    uva__ipc_framer_want(framer, &to, &size);
    if (r->map != NULL)
        *got = uva__file_map_copy(r->map, framer->offset, to, size);
    else
        code = file_read_ahead(r, to, size, got, error);
    if (code == 0 && *got > 0)
        code = uva__ipc_framer_add(framer, *got, error);
    return code;
}

static int file_is_shorter(struct uva_error *error)
{
    return uva_error_set(error, EPROTO, "Arrow IPC: the file became shorter");
}

/* Whether a mapped file is as long as it was: its pages can be looked at. */
static int file_check_map(const struct file_reader *r, struct uva_error *error)
{
    struct stat status = {0};

    if (r->map == NULL)
        return 0;
    (void)fstat(r->fd, &status);
    return status.st_size - r->base < r->size ? file_is_shorter(error) : 0;
}

/* Lends a body of the mapped file; `got` 0: its end is missing. */
static int file_lend(struct file_reader *r, size_t *got,
                     struct uva_error *error)
{
    struct uva__ipc_framer *framer = &r->framer;
    const int64_t left = uva__file_map_left(r->map, framer->offset);
    const size_t size = (size_t)framer->body_size;
    struct uva__shared_bytes *body;

    *got = 0;
    if (framer->body_size > left) {
        framer->offset += left;
        return 0;
    }
    if (!uva__file_map_load(r->map, framer->offset, size))
        return uva_error_set(error, EIO,
                             "cannot read at byte %" PRId64
                             ": the file became shorter, or its disk fails",
                             framer->offset);
    body = uva__file_map_part(r->map, framer->offset, size);
    if (body == NULL)
        return file_no_memory(error);
    uva__ipc_framer_lend(framer, body);
    *got = size;
    return 0;
}

/* Reads until a message is complete, or the end. */
static int file_read_message(struct file_reader *r, struct uva_error *error)
{
    struct uva__ipc_framer *framer = &r->framer;
    int code = file_check_map(r, error);

    while (code == 0 && framer->state < UVA__IPC_FRAMER_FULL) {
        size_t got = 0;

        code = framer->state == UVA__IPC_FRAMER_BODY && framer->is_lent
                   ? file_lend(r, &got, error)
                   : file_feed(r, &got, error);
        if (code == 0 && got == 0) {
            code = uva__ipc_source_end(r->runtime, framer, r->need_end_mark,
                                       error);
            framer->state = UVA__IPC_FRAMER_OVER;
        }
    }
    return code;
}

/* ---- the format of files ------------------------------------------------ */

/* Reads exactly `size` bytes at `offset`. */
static int file_read_at(const struct file_reader *r, int64_t offset,
                        uint8_t *to, size_t size, struct uva_error *error)
{
    int code = 0;

    while (size > 0 && code == 0) {
        const struct iovec wanted = {.iov_base = to, .iov_len = size};
        size_t got = 0;

        code = file_read(r, offset, &wanted, 1, &got, error);
        if (code == 0 && got == 0)
            code = file_is_shorter(error);
        offset += (int64_t)got;
        to += got;
        size -= got;
    }
    return code;
}

/* Whether the footer has a possible size. */
static int file_check_footer(const struct file_reader *r,
                             const uint8_t *trailer, int64_t *size,
                             struct uva_error *error)
{
    if (memcmp(trailer + TRAILER - MAGIC, "ARROW1", MAGIC) != 0)
        return uva_error_set(error, EPROTO,
                             "Arrow IPC: the file does not end with ARROW1: it "
                             "is cut off");
    *size = (int32_t)uva__table_load(trailer, 4);
    if (*size <= 0 || *size > r->size - FIRST_PLACE - TRAILER)
        return uva_error_set(error, EPROTO,
                             "Arrow IPC: a footer of %" PRId64 " bytes", *size);
    if (*size > r->framer.max_bytes)
        return uva_error_set(
            error, EMSGSIZE,
            "Arrow IPC: a footer of %" PRId64 " bytes (max_bytes)", *size);
    return 0;
}

/* Finds the footer from the last bytes of the file. */
static int file_find_footer(const struct file_reader *r, int64_t *size,
                            struct uva_error *error)
{
    uint8_t trailer[TRAILER];
    int code;

    if (r->size < FIRST_PLACE + TRAILER)
        return uva_error_set(error, EPROTO,
                             "Arrow IPC: a file without a footer");
    code = file_read_at(r, r->size - TRAILER, trailer, TRAILER, error);
    return code == 0 ? file_check_footer(r, trailer, size, error) : code;
}

static int file_read_footer(struct file_reader *r, struct uva_error *error)
{
    struct uva__shared_bytes *footer;
    int64_t size = 0;
    int code = file_find_footer(r, &size, error);

    if (code != 0)
        return code;
    footer = uva__shared_bytes_new((size_t)size);
    if (footer == NULL)
        return file_no_memory(error);
    r->footer = footer;
    code = file_read_at(r, r->size - TRAILER - size, footer->bytes,
                        footer->size, error);
    if (code == 0) {
        code = uva__ipc_footer_read(footer->bytes, footer->size, &r->places,
                                    error);
        if (code == 0)
            code = uva__ipc_decoder_begin_file(r->decoder, &r->places, error);
        if (code != 0) {
            r->framer.message.offset = r->size - TRAILER - size;
            code = uva__message_fail(&r->framer.message, error);
        }
    }
    return code;
}

/* Reads the message at a place. */
static int file_read_place(struct file_reader *r,
                           const struct uva__ipc_place *place,
                           struct uva_error *error)
{
    const struct uva__message *message = &r->framer.message;
    int code;

    uva__ipc_framer_seek(&r->framer, place->offset);
    if (place->offset < FIRST_PLACE || place->head_size < 0 ||
        place->body_size < 0 || place->offset > r->size ||
        place->head_size > r->size - place->offset ||
        place->body_size > r->size - place->offset - place->head_size) {
        (void)uva_error_set(error, EPROTO,
                            "the footer has it outside of the file");
        return uva__message_fail(message, error);
    }
    code = file_read_message(r, error);
    if (code != 0)
        return code;
    if (r->framer.state != UVA__IPC_FRAMER_FULL ||
        message->head_size != place->head_size ||
        (message->body == NULL ? 0 : (int64_t)message->body->size) !=
            place->body_size) {
        (void)uva_error_set(error, EPROTO, "the footer has another size of it");
        return uva__message_fail(message, error);
    }
    return 0;
}

/* Gives the next batch of a file. */
static int file_next_place(struct file_reader *r, struct uva__ipc_item **item,
                           struct uva_error *error)
{
    const size_t n_dictionaries = r->places.dictionaries.count;
    int code = 0;

    while (code == 0 && *item == NULL &&
           r->at < n_dictionaries + r->places.batches.count) {
        const bool is_batch = r->at >= n_dictionaries;
        const struct uva__ipc_place place = uva__ipc_place_read(
            is_batch ? &r->places.batches : &r->places.dictionaries,
            is_batch ? r->at - n_dictionaries : r->at);
        struct uva__message message;

        code = file_read_place(r, &place, error);
        if (code != 0)
            break;
        uva__ipc_framer_take(&r->framer, &message);
        code = uva__ipc_decoder_take(r->decoder, &message, item, error);
        uva__message_fini(&message);
        if (code == 0 && (*item != NULL) != is_batch)
            code = uva_error_set(error, EPROTO,
                                 "Arrow IPC: entry %zu of the footer is no %s",
                                 r->at, is_batch ? "batch" : "dictionary");
        r->at++;
    }
    return code;
}

/* Reads the rows of a batch from its head, which is read into `to`, of
 * HEAD_ROOM bytes. Returns 0; a code if it cannot tell. */
static int file_count_place(const struct file_reader *r,
                            const struct uva__ipc_place *place, uint8_t *to,
                            int64_t *rows)
{
    const size_t size = (size_t)place->head_size;
    struct uva_error unread;
    struct uva__ipc_parts parts;
    struct uva__ipc_head head;
    size_t prefix;
    int code;

    if (place->offset < FIRST_PLACE || place->head_size < FIRST_PLACE ||
        place->head_size > HEAD_ROOM || place->offset > r->size ||
        place->head_size > r->size - place->offset)
        return EPROTO;
    code = file_read_at(r, place->offset, to, size, &unread);
    if (code != 0)
        return code;
    prefix = uva__table_load(to, 4) == UINT32_MAX ? 8 : 4;
    code = uva__ipc_head_read(to + prefix, size - prefix, &head, &unread);
    if (code == 0)
        code = head.what != UVA__IPC_BATCH
                   ? EPROTO
                   : uva__ipc_parts_read(&head.header, &parts, &unread);
    if (code == 0)
        *rows = parts.length;
    return code;
}

/* Returns the rows of all batches; 0: not known. */
static int64_t file_count(const struct file_reader *r)
{
    const size_t count = r->places.batches.count;
    int64_t rows = 0, of_one = 0;
    uint8_t *head = count <= HEADS_COUNTED ? malloc(HEAD_ROOM) : NULL;

    for (size_t i = 0; head != NULL && i < count; i++) {
        const struct uva__ipc_place place =
            uva__ipc_place_read(&r->places.batches, i);

        if (file_count_place(r, &place, head, &of_one) != 0 ||
            of_one > INT64_MAX - rows) {
            rows = 0;
            break;
        }
        rows += of_one;
    }
    free(head);
    return rows;
}

/* ---- the source --------------------------------------------------------- */

static void file_expect(void *ctx, int64_t *rows, int64_t *bytes)
{
    const struct file_reader *r = ctx;

    *bytes = r->size;
    *rows = r->footer != NULL ? file_count(r) : 0;
}

/* Reads the schema from the first message. */
static int file_begin_stream(struct file_reader *r, struct uva_error *error)
{
    struct uva__message message;
    int code = file_read_message(r, error);

    if (code != 0)
        return code;
    if (r->framer.state == UVA__IPC_FRAMER_OVER)
        return uva_error_set(error, EPROTO, "Arrow IPC: there is no schema");
    uva__ipc_framer_take(&r->framer, &message);
    code = uva__ipc_decoder_begin(r->decoder, &message, error);
    uva__message_fini(&message);
    return code;
}

/* Opens the file. A FIFO without a writer is waited for later, by a poll that a
 * cancel ends. */
static int file_open_path(struct file_reader *r, struct uva_error *error)
{
    do
        r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (r->fd < 0 && errno == EINTR);
    return r->fd >= 0 ? 0
                      : uva_error_set(error, errno, "cannot open %s: %s",
                                      r->path, uv_strerror(-errno));
}

/* Looks what is open. */
static void file_examine(struct file_reader *r)
{
    struct stat status = {0};

    (void)fstat(r->fd, &status);
    if (!S_ISREG(status.st_mode))
        return;
    r->is_seekable = true;
    r->base = lseek(r->fd, 0, SEEK_CUR);
    r->size = status.st_size - r->base;
    if (r->may_map)
        r->map = uva__file_map_new(r->fd, r->base, r->size);
    r->framer.is_lent = r->map != NULL;
    uva__ipc_decoder_fit(r->decoder, r->size);
    r->framer.max_bytes = uva__ipc_decoder_limit(r->decoder);
}

static int file_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    struct file_reader *r = ctx;
    int code = r->path == NULL ? 0 : file_open_path(r, error);

    if (code != 0)
        return code;
    file_examine(r);
    code = file_check_map(r, error);
    while (code == 0 && r->framer.state == UVA__IPC_FRAMER_PREFIX &&
           !r->framer.is_file) {
        size_t got = 0;

        code = file_feed(r, &got, error);
        if (code == 0 && got == 0)
            code = uva__ipc_framer_end(&r->framer, error);
    }
    if (code == 0)
        code = r->framer.is_file && r->is_seekable
                   ? file_read_footer(r, error)
                   : file_begin_stream(r, error);
    return code == 0 ? uva__ipc_decoder_schema(r->decoder, out, error) : code;
}

/* Gives the next batch of a stream. */
static int file_next_message(struct file_reader *r, struct uva__ipc_item **item,
                             struct uva_error *error)
{
    int code = 0;

    while (code == 0 && *item == NULL) {
        struct uva__message message;

        code = file_read_message(r, error);
        if (code != 0 || r->framer.state == UVA__IPC_FRAMER_OVER)
            break;
        uva__ipc_framer_take(&r->framer, &message);
        code = uva__ipc_decoder_take(r->decoder, &message, item, error);
        uva__message_fini(&message);
    }
    if (code == 0 && *item == NULL && r->is_seekable)
        (void)lseek(r->fd, r->base + r->framer.offset, SEEK_SET);
    return code;
}

static int file_next(void *ctx, void **out, const char **metadata,
                     struct uva_error *error)
{
    struct file_reader *r = ctx;
    struct uva__ipc_item *item = NULL;
    const int code = r->footer == NULL ? file_next_message(r, &item, error)
                                       : file_next_place(r, &item, error);

    if (code != 0) {
        uva__ipc_item_free(item);
        return code;
    }
    free(r->metadata);
    r->metadata = item == NULL ? NULL : uva__ipc_item_take_metadata(item);
    *metadata = r->metadata;
    *out = item;
    return 0;
}

static int file_extract(void *ctx, void *data, struct ArrowDeviceArray *out,
                        struct uva_error *error)
{
    struct uva__ipc_item *item = data;
    const int code = out == NULL ? 0 : uva__ipc_item_decode(item, out, error);

    (void)ctx;
    uva__ipc_item_free(item);
    return code;
}

static int64_t file_size(void *ctx, const void *item)
{
    (void)ctx;
    return uva__ipc_item_size(item);
}

static bool file_at_once(void *ctx, const void *item)
{
    (void)ctx;
    return uva__ipc_item_is_plain(item);
}

static void file_interrupt(void *ctx)
{
    const struct file_reader *r = ctx;

    (void)!write(r->wake[1], "", 1);
}

static void file_close(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static void file_free(void *ctx)
{
    struct file_reader *r = ctx;

    file_close(r->wake[0]);
    file_close(r->wake[1]);
    file_close(r->fd);
    free(r->path);
    free(r->metadata);
    uva__ipc_framer_fini(&r->framer);
    uva__ipc_decoder_free(r->decoder);
    uva__shared_bytes_release(r->footer);
    uva__file_map_release(r->map);
    uva_runtime_release(r->runtime);
    free(r);
}

/* ---- making one --------------------------------------------------------- */

static int file_copy_path(struct file_reader *r, const char *path,
                          struct uva_error *error)
{
    r->path = strdup(path);
    return r->path != NULL ? 0 : file_no_memory(error);
}

static int file_copy_fd(struct file_reader *r, int fd, struct uva_error *error)
{
    r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return r->fd >= 0
               ? 0
               : uva_error_set(error, errno, "uva_stream_from_file: fd %d: %s",
                               fd, uv_strerror(-errno));
}

static int file_make_wake(struct file_reader *r, struct uva_error *error)
{
    if (pipe(r->wake) != 0)
        return uva_error_set(error, errno, "uva_stream_from_file: pipe: %s",
                             uv_strerror(-errno));
    for (int i = 0; i < 2; i++)
        (void)fcntl(r->wake[i], F_SETFD, FD_CLOEXEC);
    return 0;
}

static int file_new(const char *path, const struct uva_ipc_source *options,
                    struct file_reader **out, struct uva_error *error)
{
    struct file_reader *r = calloc(1, sizeof(*r));
    int code;

    if (r == NULL)
        return file_no_memory(error);
    r->fd = r->wake[0] = r->wake[1] = -1;
    r->need_end_mark = options->need_end_mark;
    r->may_map = options->mmap;
    r->decoder = uva__ipc_decoder_new(options->max_bytes);
    r->framer.kept = uva__kept_bytes_new();
    if (r->decoder == NULL || r->framer.kept == NULL)
        code = file_no_memory(error);
    else
        code = path != NULL ? file_copy_path(r, path, error)
                            : file_copy_fd(r, options->fd, error);
    if (code == 0)
        code = file_make_wake(r, error);
    if (code != 0) {
        file_free(r);
        return code;
    }
    r->framer.max_bytes = uva__ipc_decoder_limit(r->decoder);
    *out = r;
    return 0;
}

struct uva_stream *uva_stream_from_file(struct uva_runtime *runtime,
                                        const char *path,
                                        const struct uva_ipc_source *options)
{
    static const struct uva_ipc_source none;
    struct uva_task_source source = {.schema = file_schema,
                                     .next = file_next,
                                     .extract = file_extract,
                                     .interrupt = file_interrupt,
                                     .size = file_size,
                                     .at_once = file_at_once,
                                     .expect = file_expect,
                                     .name = "file",
                                     .free_ctx = file_free};
    struct file_reader *r = NULL;
    struct uva_error error = {0};
    int code = uva__ipc_source_check(options, &error);

    if (options == NULL)
        options = &none;
    if (code == 0 && path != NULL && options->fd != 0)
        code = uva_error_set(&error, EINVAL,
                             "uva_ipc_source: fd is %d beside a path",
                             options->fd);
    if (code == 0)
        code = file_new(path, options, &r, &error);
    if (code != 0)
        return uva_stream_from_error(runtime, &error);
    source.window = options->window;
    source.permits = options->permits;
    source.ctx = r;
    r->runtime = uva_runtime_acquire(runtime);
    return uva_stream_from_tasks(runtime, &source);
}
