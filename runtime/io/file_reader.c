/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_from_file(): messages are read and put in order by a blocking
 * worker, and made into arrays where their tasks are extracted.
 *
 * Happy path:  schema: the file is opened -> the first bytes -> stream format:
 *              message after message; file format: the footer, all
 *              dictionaries, then the batches.
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
#include <unistd.h>
#include <uv.h>

#include "io/ipc_decoder.h"
#include "io/ipc_source.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

enum { TRAILER = 10, MAGIC = 6, FIRST_PLACE = 8 };

/* The rows of a file are counted before it is read, from the heads of its
 * batches, if there are not too many, and none is too large. */
enum { HEADS_COUNTED = 1024, HEAD_ROOM = 1 << 16 };

struct file_reader {
    char *path;  /* owns; NULL: the descriptor was given */
    int fd;      /* owns; -1: not open */
    int wake[2]; /* owns: a pipe, readable after a cancel; or -1, -1 */
    struct uva_runtime *runtime; /* borrows */
    bool need_end_mark;          /* see struct uva_ipc_source */
    bool is_seekable;            /* a regular file */
    int64_t base;                /* where it begins in that */
    int64_t size;                /* of that, from the base on */
    struct uva__ipc_framer framer;
    struct uva__ipc_decoder *decoder; /* owns */
    struct uva__shared_bytes *footer; /* owns; NULL: the stream format */
    struct uva__ipc_footer places;    /* borrows from the footer */
    size_t at;      /* the next place: dictionaries, then batches */
    char *metadata; /* owns: of the last batch, or NULL */
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

/* Reads up to `size` bytes at `offset`, which is where the descriptor stands
 * unless the format is for files. */
static int file_read(const struct file_reader *r, int64_t offset, uint8_t *to,
                     size_t size, size_t *got, struct uva_error *error)
{
    const bool is_placed = r->framer.is_file && r->is_seekable;
    ssize_t result = 0;
    int code;

    do {
        code = file_wait(r);
        if (code == 0) {
            result = is_placed ? pread(r->fd, to, size, r->base + offset)
                               : read(r->fd, to, size);
            code = result < 0 ? errno : 0;
        }
    } while (code == EINTR || code == EAGAIN);
    if (code != 0)
        return uva_error_set(error, code, "cannot read at byte %" PRId64 ": %s",
                             offset, uv_strerror(-code));
    *got = (size_t)result;
    return 0;
}

/* Reads until a message is complete, or the end. */
static int file_read_message(struct file_reader *r, struct uva_error *error)
{
    int code = 0;

    while (code == 0 && r->framer.state < UVA__IPC_FRAMER_FULL) {
        uint8_t *to;
        size_t size, got = 0;

        uva__ipc_framer_want(&r->framer, &to, &size);
        code = file_read(r, r->framer.offset, to, size, &got, error);
        if (code != 0)
            return code;
        if (got == 0) {
            code = uva__ipc_source_end(r->runtime, &r->framer, r->need_end_mark,
                                       error);
            r->framer.state = UVA__IPC_FRAMER_OVER;
        } else {
            code = uva__ipc_framer_add(&r->framer, got, error);
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
        size_t got = 0;

        code = file_read(r, offset, to, size, &got, error);
        if (code == 0 && got == 0)
            code = uva_error_set(error, EPROTO,
                                 "Arrow IPC: the file became shorter");
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

static int file_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    struct file_reader *r = ctx;
    struct stat status = {0};
    int code = r->path == NULL ? 0 : file_open_path(r, error);

    if (code != 0)
        return code;
    (void)fstat(r->fd, &status);
    if (S_ISREG(status.st_mode)) {
        r->is_seekable = true;
        r->base = lseek(r->fd, 0, SEEK_CUR);
        r->size = status.st_size - r->base;
        uva__ipc_decoder_fit(r->decoder, r->size);
        r->framer.max_bytes = uva__ipc_decoder_limit(r->decoder);
    }
    while (code == 0 && r->framer.state == UVA__IPC_FRAMER_PREFIX &&
           !r->framer.is_file) {
        uint8_t *to;
        size_t size, got = 0;

        uva__ipc_framer_want(&r->framer, &to, &size);
        code = file_read(r, r->framer.offset, to, size, &got, error);
        if (code == 0)
            code = got == 0 ? uva__ipc_framer_end(&r->framer, error)
                            : uva__ipc_framer_add(&r->framer, got, error);
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
    r->decoder = uva__ipc_decoder_new(options->max_bytes);
    if (r->decoder == NULL)
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
    uva__ipc_framer_init(&r->framer, uva__ipc_decoder_limit(r->decoder));
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
    r->runtime = runtime;
    return uva_stream_from_tasks(runtime, &source);
}
