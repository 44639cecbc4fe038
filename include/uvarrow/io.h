/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as bytes, in the formats that readers expect, and bytes as batches:
 * Arrow's IPC formats, CSV, JSON lines. A library of its own, libuvarrow-io,
 * which uvarrow.h does not include. Arrow IPC is written without copying a
 * column: a batch becomes one header and the array's own buffers, and is
 * released when these have been written. It is read into arrays that borrow
 * what was read. */
#ifndef UVARROW_IO_H
#define UVARROW_IO_H

#include "uvarrow/base.h"
#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct uv_stream_s; /* libuv's uv_stream_t */
struct uv_buf_t;    /* libuv's; <uv.h> is needed to look into one */

/** What bytes mean. */
enum uva_format {
    UVA_FORMAT_ARROW = 0,  /* application/vnd.apache.arrow.stream */
    UVA_FORMAT_ARROW_FILE, /* application/vnd.apache.arrow.file: messages of the
                              stream, and a footer that lists where they lie */
    UVA_FORMAT_CSV,        /* text/csv, RFC 4180 */
    UVA_FORMAT_JSON        /* application/x-ndjson: an object a line */
};

/** How CSV is written; zeroes: commas, a line of names, nulls as nothing, and
 * newlines alone. A field is quoted if it holds a delimiter, a quote or a line
 * break, if it is an empty text, or if it equals the text of nulls. */
struct uva_csv {
    char delimiter;        /* between fields: ASCII, no quote and no line break;
                              0: a comma */
    bool no_header;        /* no line of names */
    bool crlf;             /* lines end as RFC 4180 has it, with CR LF */
    const char *null_text; /* borrows for the call; what stands for a null,
                              without quotes; NULL: nothing */
};

/** How batches are written. */
struct uva_write {
    enum uva_format format; /* the format */
    struct uva_csv csv;     /* of CSV; not looked at for other formats */
    int32_t compression;    /* of Arrow IPC buffers: 0 none, 1 LZ4, 2 ZSTD; both
                               copy, and need their library when uvarrow is
                               built: otherwise ENOTSUP; text has none */
    /* the rest is for uva_stream_write() and uva_stream_write_file() */
    bool http_chunked;  /* frame as HTTP/1.1 chunks; the last chunk is sent only
                           after a complete stream */
    int64_t high_bytes; /* take no batch while more than this waits to be
                           written; 0: 1 MiB */
    int64_t low_bytes;  /* go on at this or less; 0: a quarter */
    /* the end: everything was written, or why not. After an end other than
     * COMPLETE, writes may be under way. `bytes` were written so far. On the
     * loop thread, once, except after uva_stream_drop(). Mandatory. */
    void (*on_done)(void *ctx, const struct uva_outcome *outcome,
                    int64_t bytes);
    void *ctx; /* borrows, until on_done or uva_stream_drop() */
    void *reserved[4];
};

/* ---- streams ------------------------------------------------------------- */

/** Starts the stream and writes all of it to `socket` (TCP, pipe, TTY), which
 * must be on the runtime's loop. Batches are taken while little waits to be
 * written, and each is released when libuv has written it. A failed write ends
 * the stream CANCELLED with its code; a peer that leaves between batches is
 * only seen by a read, which is the caller's: it calls uva_stream_cancel().
 * Text is encoded by compute workers, each one batch at a time, and written in
 * order; compression runs on one of them. The socket stays open and the
 * caller's.
 *
 * To end it early, cancel or drop the stream, then uv_close() the socket:
 * writes under way keep their batches until libuv has answered, so close it
 * before the runtime. Once the source has ended, only writes are left: then the
 * uv_close() alone ends them, and on_done reports ECANCELED. A program that
 * writes to sockets ignores SIGPIPE.
 *
 * Returns 0; EINVAL for an invalid option, without `socket`, or for one of
 * another loop; ENOTSUP for a codec that is not there; EPERM on another thread;
 * otherwise as uva_stream_for_each(). Thread: loop. */
UVA_API UVA_MUST_CHECK int uva_stream_write(struct uva_stream *stream,
                                            struct uv_stream_s *socket,
                                            const struct uva_write *options,
                                            struct uva_error *error);

/** Starts the stream and writes all of it to a file descriptor, from its
 * position on, by threads of libuv's. `fd` must block; it is copied, and not
 * closed. Otherwise
 * as uva_stream_write(). Returns as that does; the error of the system if `fd`
 * cannot be copied. Thread: loop. */
UVA_API UVA_MUST_CHECK int
uva_stream_write_file(struct uva_stream *stream, int fd,
                      const struct uva_write *options, struct uva_error *error);

/* ---- the encoder, for programs with an output of their own --------------- */

struct uva_encoder; /* writes one stream in one format */

/** One or more messages: what to write, in order. Zeroes: nothing. */
struct uva_encoder_part {
    const struct uv_buf_t
        *buffers;  /* borrows, until released; not empty ones */
    size_t count;  /* number of buffers */
    int64_t bytes; /* of all buffers */
    void *owner;   /* of the library; valid after uva_encoder_free() too */
};

/** Makes an encoder of batches with the schema `schema`, which is copied. Every
 * Arrow type can be written: nested, dictionary, run-end encoded, views,
 * unions, with metadata. `options` may be NULL: a stream of Arrow IPC without
 * compression; members that are for sockets and files are not looked at.
 * Returns 0 and gives `out`, freed by uva_encoder_free(); EINVAL for an invalid
 * schema or option; ENOTSUP for what the format cannot express: in Arrow IPC a
 * dictionary with values that are indices of another one, metadata of such
 * values; or for a codec that was not there when the library was built; ENOMEM.
 * The text names the field. Thread: any. Clauses: DS-03, DS-21. */
UVA_API UVA_MUST_CHECK int uva_encoder_new(const struct ArrowSchema *schema,
                                           const struct uva_write *options,
                                           struct uva_encoder **out,
                                           struct uva_error *error);

/** Gives what comes first: the schema, the line of names, or nothing. Returns 0
 * and gives `out`, to be released; ENOMEM; EINVAL if it was called before.
 * Thread: any, one at a time. */
UVA_API UVA_MUST_CHECK int uva_encoder_begin(struct uva_encoder *encoder,
                                             struct uva_encoder_part *out);

/** Gives the messages or the lines of a batch. Takes `batch` if it returns 0.
 * Text is a copy, and the batch is released at once; lines of no rows are an
 * empty part. Otherwise `out` borrows the buffers of the batch, which is
 * released with it. Sliced arrays are written as what they show; only offsets
 * that do not begin at 0, run ends, and bits that do not begin a byte are
 * copied. Of views and dense unions, all that the array holds is written.
 *
 * In Arrow IPC, a dictionary is compared by content with a copy of the one last
 * written: if they are equal, nothing is written; if it is longer with the same
 * beginning, a delta; otherwise a replacement, which a file cannot express
 * (ENOTSUP). Values that have dictionaries of their own are replaced when they
 * grow.
 *
 * Returns 0; EINVAL, and a text that names the column, if `batch` does not fit
 * the schema, or before uva_encoder_begin() or after uva_encoder_end(); ENOTSUP
 * for data of a device or behind an event, and for rows that are null; ENOMEM;
 * EIO if a codec fails. A batch that failed leaves no trace: the next one may
 * follow. Contents of buffers are not checked, except for the ends of offsets.
 * Thread: any, one at a time; of text, several at a time between
 * uva_encoder_begin() and uva_encoder_end(). Clauses: DA-16, DA-20, DA-21,
 * DA-22, DA-23. */
UVA_API UVA_MUST_CHECK int uva_encoder_batch(struct uva_encoder *encoder,
                                             struct ArrowDeviceArray *batch,
                                             struct uva_encoder_part *out,
                                             struct uva_error *error);

/** Gives what comes last: the end of the stream, the footer of the file, or
 * nothing.
 * Returns 0 and gives `out`, to be released; ENOMEM; EINVAL before
 * uva_encoder_begin() and if it was called before. Thread: any, one at a time.
 */
UVA_API UVA_MUST_CHECK int uva_encoder_end(struct uva_encoder *encoder,
                                           struct uva_encoder_part *out);

/** Releases what the part borrows, and leaves zeroes. NULL and zeroes are
 * allowed. Also after uva_encoder_free().
 * Thread: any. */
UVA_API void uva_encoder_part_release(struct uva_encoder_part *part);

/** Frees the encoder, but not its parts. NULL is allowed.
 * Thread: any, one at a time. */
UVA_API void uva_encoder_free(struct uva_encoder *encoder);

/* ---- reading ------------------------------------------------------------- */

/** Options of a source that reads Arrow IPC. Zeroes are the defaults. */
struct uva_ipc_source {
    struct uva_window window; /* limits of what was read and is not passed on */
    /* the most bytes that a message may have, its buffers when decompressed,
     * the schema in memory, and all dictionaries together; 0: 256 MiB. More is
     * EMSGSIZE */
    int64_t max_bytes;
    /* the input may also end behind a message, without the marker of its end,
     * as the format allows. Otherwise that is EPROTO, because the rest may be
     * lost */
    bool any_end;
    /* the rest is for uva_stream_from_socket(). The socket is not used any
     * more: its reading is stopped, its `data` is as before. May close it. On
     * the loop thread, once, behind which `ctx` is not used. NULL: no callback
     */
    void (*on_released)(void *ctx, struct uv_stream_s *socket);
    void *ctx; /* borrows, until on_released */
    void *reserved[4];
};

/** Makes a stream of the batches of an Arrow IPC stream that arrives on
 * `socket` (TCP, pipe, TTY), which must be on the runtime's loop. Every type,
 * dictionaries, compressed buffers and metadata are read. Nothing that comes is
 * trusted: an array is passed on only when all of it was checked but whether
 * texts are UTF-8. Arrays borrow what was read, which is freed with the last of
 * them. Decoding runs on a compute worker.
 *
 * Reading begins at once, and stops while the window is full, so that the
 * sender waits. It ends with the last byte of the Arrow stream: what follows
 * stays in the socket. Until on_released the socket must stay open, nothing
 * else may read it, and its `data` is the library's. That is called when the
 * end was read, when the input ends or fails, and after the stream has ended in
 * another way, was dropped, or was released without a start: then it may stand
 * in the middle of a message. Streams that are not started are released before
 * the runtime closes.
 *
 * The stream fails with EPROTO for what is malformed or cut off; ENOTSUP for
 * what is not supported: numbers of the other byte order, a codec that is not
 * there, versions before 4; EMSGSIZE beyond a limit; the error of the system if
 * the connection fails. The text names the message, its place, and the field.
 *
 * Returns the stream, never NULL, with one reference for the caller; it has
 * failed with EINVAL for an invalid option, without `socket`, for one of
 * another loop or that is being read; EPERM on another thread; and then
 * on_released is not called. Thread: loop. Clauses: DA-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_socket(struct uva_runtime *runtime, struct uv_stream_s *socket,
                       const struct uva_ipc_source *options);

/** Makes a stream of the batches in a file: Arrow's stream format, or that of
 * files (Feather 2), which is recognised. It is read from the position of `fd`
 * on, by blocking workers, once the stream starts. `fd` is copied, and not
 * closed. A pipe, FIFO or socket can be read too, and a cancel ends the wait
 * for it; there, a file is read as the stream that it contains. Batches are
 * decoded where their tasks are extracted, several at once with
 * uva_stream_parallel().
 *
 * Fails and returns as uva_stream_from_socket(); also with the error of the
 * system if `fd` cannot be copied or read. Thread: any. Clauses: DA-16. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_file(struct uva_runtime *runtime, int fd,
                     const struct uva_ipc_source *options);

#ifdef __cplusplus
}
#endif

#endif
