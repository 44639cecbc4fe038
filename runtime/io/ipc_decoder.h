/* SPDX-License-Identifier: Apache-2.0 */
/* Makes batches of messages, in two steps: the first takes each message in
 * order and keeps the dictionaries; the second makes the array, on any thread,
 * several at once. */
#ifndef UVA_IO_IPC_DECODER_H
#define UVA_IO_IPC_DECODER_H

#include "io/ipc_framer.h"

struct uva__ipc_decoder;
struct uva__ipc_item; /* a batch that is not made so far */

/* Makes a decoder. NULL without memory. Thread: any. */
struct uva__ipc_decoder *uva__ipc_decoder_new(int64_t max_bytes);

/* Raises the default to that for a file of `size` bytes, before it begins. */
void uva__ipc_decoder_fit(struct uva__ipc_decoder *decoder, int64_t size);

/* The limit: `max_bytes`, or the default for 0. Thread: any. */
int64_t uva__ipc_decoder_limit(const struct uva__ipc_decoder *decoder);

/* Frees it; its items are freed before. NULL is allowed. */
void uva__ipc_decoder_free(struct uva__ipc_decoder *decoder);

/* Reads the schema, once: from the first message of a stream, or from the
 * footer of a file. Returns 0; EPROTO, ENOTSUP, EMSGSIZE, ENOMEM. Thread: any
 * one at a time, except for the last two. */
UVA_MUST_CHECK int uva__ipc_decoder_begin(struct uva__ipc_decoder *decoder,
                                          const struct uva__message *message,
                                          struct uva_error *error);
UVA_MUST_CHECK int
uva__ipc_decoder_begin_file(struct uva__ipc_decoder *decoder,
                            const struct uva__ipc_footer *footer,
                            struct uva_error *error);

/* Gives a copy of the schema. Returns 0; ENOMEM. */
UVA_MUST_CHECK int
uva__ipc_decoder_schema(const struct uva__ipc_decoder *decoder,
                        struct ArrowSchema *out, struct uva_error *error);

/* Takes a message: gives `*item` for a batch, NULL for a dictionary. Returns as
 * the above. */
UVA_MUST_CHECK int uva__ipc_decoder_take(struct uva__ipc_decoder *decoder,
                                         struct uva__message *message,
                                         struct uva__ipc_item **item,
                                         struct uva_error *error);

/* How many bytes the item holds, without dictionaries. Thread: any. */
int64_t uva__ipc_item_size(const struct uva__ipc_item *item);

/* Gives the metadata of the batch, for free(), or NULL. */
char *uva__ipc_item_take_metadata(struct uva__ipc_item *item);

/* Whether the array borrows the body as it is: it is neither compressed nor of
 * the other byte order. Thread: any. */
bool uva__ipc_item_is_plain(const struct uva__ipc_item *item);

/* Makes the array. Returns 0; EPROTO, ENOTSUP, EMSGSIZE, ENOMEM. Thread: any
 * one for each item. */
UVA_MUST_CHECK int uva__ipc_item_decode(struct uva__ipc_item *item,
                                        struct ArrowDeviceArray *out,
                                        struct uva_error *error);

/* Frees an item. NULL is allowed. Thread: any. */
void uva__ipc_item_free(struct uva__ipc_item *item);

#endif
