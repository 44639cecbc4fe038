/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts the input into messages: a marker and the size of a header, of 4 bytes
 * each, the header, its body. Before Arrow 0.15 there was no marker. Exactly
 * the bytes that belong to the stream are wanted, and each lands where it
 * stays. */
#ifndef UVA_IO_IPC_FRAMER_H
#define UVA_IO_IPC_FRAMER_H

#include "io/ipc_read_header.h"
#include "io/shared_bytes.h"

/* A message; zeroes: empty. */
struct uva__message {
    struct uva__shared_bytes *head; /* owns */
    struct uva__shared_bytes *body; /* owns; NULL: an empty one */
    int64_t number;                 /* from 0 */
    int64_t offset;                 /* of its first byte */
    bool is_in_file;                /* of a file, not of a stream */
    int64_t head_size;              /* with the 4 or 8 bytes in front */
};

enum uva__ipc_framer_state {
    UVA__IPC_FRAMER_PREFIX, /* the bytes before a header are wanted */
    UVA__IPC_FRAMER_HEAD,   /* the header is */
    UVA__IPC_FRAMER_BODY,   /* the body is */
    UVA__IPC_FRAMER_FULL,   /* a message is complete: to be taken */
    UVA__IPC_FRAMER_OVER    /* the end was marked */
};

struct uva__ipc_framer {
    enum uva__ipc_framer_state state;
    int64_t max_bytes; /* the most that a message may have */
    int64_t offset;    /* of the next byte */
    size_t done;       /* bytes of the prefix, header or body */
    uint8_t prefix[8];
    bool is_file;                 /* began with the magic of files */
    bool is_unmarked;             /* the last message had no marker */
    bool is_lent;                 /* bodies are lent, not wanted */
    struct uva__kept_bytes *kept; /* owns: where bodies come from; NULL: each
                                     is a block of exactly its size */
    int64_t body_size;            /* of the message in work */
    struct uva__message message;  /* owns: the one in work */
};

/* Starts with the first byte of a stream or file. Thread: any one at a time. */
void uva__ipc_framer_init(struct uva__ipc_framer *framer, int64_t max_bytes);

/* Goes on with a message at another place. */
void uva__ipc_framer_seek(struct uva__ipc_framer *framer, int64_t offset);

/* Gives where the next bytes go, and how many: in the first three states, but
 * for a body that is lent. */
void uva__ipc_framer_want(struct uva__ipc_framer *framer, uint8_t **to,
                          size_t *size);

/* Notes that `size` bytes were put there. Returns 0; EPROTO, ENOTSUP; EMSGSIZE
 * for a message above the limit; ENOMEM. */
UVA_MUST_CHECK int uva__ipc_framer_add(struct uva__ipc_framer *framer,
                                       size_t size, struct uva_error *error);

/* How many bytes are wanted after a body that is wanted now; 0 before one. */
size_t uva__ipc_framer_behind(const struct uva__ipc_framer *framer);

/* Takes the body, of `body_size` bytes, for which the framer is in the state
 * UVA__IPC_FRAMER_BODY and `is_lent`. */
void uva__ipc_framer_lend(struct uva__ipc_framer *framer,
                          struct uva__shared_bytes *body);

/* Whether a message has ended, and no byte of another one has come. */
bool uva__ipc_framer_is_between(const struct uva__ipc_framer *framer);

/* Notes that there are no more bytes. Returns 0 if the end was marked; or
 * EPROTO. */
UVA_MUST_CHECK int uva__ipc_framer_end(const struct uva__ipc_framer *framer,
                                       struct uva_error *error);

/* Takes the message that is complete. */
void uva__ipc_framer_take(struct uva__ipc_framer *framer,
                          struct uva__message *out);

void uva__ipc_framer_fini(struct uva__ipc_framer *framer);

/* Releases the content of a message, and leaves zeroes. Thread: any. */
void uva__message_fini(struct uva__message *message);

/* Puts in front of an error's text which message it is about. Returns the code.
 */
int uva__message_fail(const struct uva__message *message,
                      struct uva_error *error);

#endif
