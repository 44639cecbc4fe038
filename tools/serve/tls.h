/* SPDX-License-Identifier: Apache-2.0 */
/* TLS by OpenSSL, which reads and writes memory alone: bytes of the socket go
 * in and out of a session as the transport moves them. */
#ifndef UVA_SERVE_TLS_H
#define UVA_SERVE_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "bytes.h"
#include "uvarrow/base.h"

struct uva__tls;         /* a certificate and its key, or those trusted */
struct uva__tls_session; /* of one connection */

/* Loads a chain of certificates and a key, both PEM. TLS 1.2 and later.
 * Returns 0 and gives `out`, freed by uva__tls_free(), whose sessions stay;
 * EINVAL with a text. Thread: any; the others loop. */
UVA_MUST_CHECK int uva__tls_new(const char *certificate, const char *key,
                                struct uva__tls **out, struct uva_error *error);

/* Makes the context of a client: the certificates in the file `authorities`,
 * PEM, are trusted, or with NULL the system's. Otherwise as above. */
UVA_MUST_CHECK int uva__tls_new_client(const char *authorities,
                                       struct uva__tls **out,
                                       struct uva_error *error);

/* NULL is allowed. */
void uva__tls_free(struct uva__tls *tls);

/* Returns the session of a server; NULL without memory. */
struct uva__tls_session *uva__tls_session_new(struct uva__tls *tls);

/* Returns the session of a client, which begins with its first read; NULL
 * without memory. The certificate of the peer must be for `host`, a name or an
 * address. */
struct uva__tls_session *uva__tls_session_connect(struct uva__tls *tls,
                                                  const char *host);

/* Returns whether both sides have agreed, so that it can write. */
bool uva__tls_session_is_ready(const struct uva__tls_session *session);

/* Returns why the session has failed; static. */
const char *uva__tls_session_why(const struct uva__tls_session *session);

/* NULL is allowed. */
void uva__tls_session_free(struct uva__tls_session *session);

/* Takes bytes that the socket has received. Returns 0 or ENOMEM. */
UVA_MUST_CHECK int uva__tls_session_put(struct uva__tls_session *session,
                                        const void *data, size_t size);

/* Reads decrypted bytes. Returns their number; 0: no more for now; -1: the
 * session has failed or its peer has closed it. */
int uva__tls_session_read(struct uva__tls_session *session, void *data,
                          size_t size);

/* Encrypts, and appends the records. Returns 0; EPROTO if the session cannot
 * write; ENOMEM. */
UVA_MUST_CHECK int uva__tls_session_write(struct uva__tls_session *session,
                                          const void *data, size_t size,
                                          struct uva__bytes *out);

/* Announces the end of the written data: a reader knows that it was not cut. */
void uva__tls_session_end(struct uva__tls_session *session);

/* Appends the bytes for the socket: records, replies of the handshake. Returns
 * 0 or ENOMEM. */
UVA_MUST_CHECK int uva__tls_session_take(struct uva__tls_session *session,
                                         struct uva__bytes *out);

#endif
