/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of the buffers of a body, and the opposite for one buffer, by
 * liblz4 and libzstd where the library was built with them. */
#ifndef UVA_IO_IPC_COMPRESS_H
#define UVA_IO_IPC_COMPRESS_H

#include "io/ipc_write_body.h"

/* Codecs, as enum uva_compression counts them. */
enum uva__ipc_codec {
    UVA__IPC_PLAIN = 0, /* not compressed */
    UVA__IPC_LZ4,       /* frames of LZ4 */
    UVA__IPC_ZSTD
};

/* Returns 0 if buffers can be compressed by `codec`; ENOTSUP if it was not
 * there when the library was built; EINVAL for an unknown one. Thread: any. */
UVA_MUST_CHECK int uva__ipc_compress_check(int32_t codec,
                                           struct uva_error *error);

/* Compresses each buffer of the body; a buffer that would not become smaller is
 * sent as it is. Returns 0; ENOMEM; EIO if the codec fails. Thread: any one at
 * a time. */
UVA_MUST_CHECK int uva__ipc_compress_body(struct uva__ipc_body *body,
                                          int32_t codec,
                                          struct uva_error *error);

/* Fills `to` with exactly `room` bytes, of which `from` is the compressed form.
 * Returns 0; EPROTO if it is not; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__ipc_decompress(int32_t codec, void *to, size_t room,
                                       const void *from, size_t size,
                                       struct uva_error *error);

#endif
