/* SPDX-License-Identifier: Apache-2.0 */
/* A session has a pair of memory BIOs for the two directions. */
#include "tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

/* Bytes that are encrypted at once. A memory BIO never shrinks, and is cleared
 * wholly whenever it is emptied. */
#define PIECE 65536

struct uva__tls {
    SSL_CTX *context; /* owns */
};

struct uva__tls_session {
    SSL *ssl;        /* owns, with both BIOs */
    BIO *in, *out;   /* borrow */
    bool has_failed; /* and can only be freed */
};

static int tls_error(struct uva_error *error, const char *path)
{
    char text[256];

    ERR_error_string_n(ERR_get_error(), text, sizeof(text));
    ERR_clear_error();
    return uva_error_set(error, EINVAL, "cannot use %s: %s", path, text);
}

static int tls_load(SSL_CTX *context, const char *certificate, const char *key,
                    struct uva_error *error)
{
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return tls_error(error, certificate);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return tls_error(error, key);
    return 0;
}

int uva__tls_new(const char *certificate, const char *key,
                 struct uva__tls **out, struct uva_error *error)
{
    struct uva__tls *tls = calloc(1, sizeof(*tls));
    int code;

    if (tls == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    tls->context = SSL_CTX_new(TLS_server_method());
    if (tls->context == NULL ||
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1)
        code = tls_error(error, "TLS");
    else
        code = tls_load(tls->context, certificate, key, error);
    if (code != 0) {
        uva__tls_free(tls);
        return code;
    }
    (void)SSL_CTX_set_options(tls->context,
                              SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
    *out = tls;
    return 0;
}

void uva__tls_free(struct uva__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

struct uva__tls_session *uva__tls_session_new(struct uva__tls *tls)
{
    struct uva__tls_session *session = calloc(1, sizeof(*session));

    if (session == NULL)
        return NULL;
    session->ssl = SSL_new(tls->context);
    session->in = BIO_new(BIO_s_mem());
    session->out = BIO_new(BIO_s_mem());
    if (session->ssl == NULL || session->in == NULL || session->out == NULL) {
        SSL_free(session->ssl);
        BIO_free(session->in);
        BIO_free(session->out);
        free(session);
        return NULL;
    }
    SSL_set_bio(session->ssl, session->in, session->out);
    SSL_set_accept_state(session->ssl);
    return session;
}

void uva__tls_session_free(struct uva__tls_session *session)
{
    if (session == NULL)
        return;
    SSL_free(session->ssl);
    free(session);
}

int uva__tls_session_put(struct uva__tls_session *session, const void *data,
                         size_t size)
{
    if (size > INT_MAX || BIO_write(session->in, data, (int)size) != (int)size)
        return ENOMEM;
    return 0;
}

int uva__tls_session_read(struct uva__tls_session *session, void *data,
                          size_t size)
{
    int got, why;

    if (session->has_failed)
        return -1;
    ERR_clear_error();
    got = SSL_read(session->ssl, data, (int)size);
    if (got > 0)
        return got;
    why = SSL_get_error(session->ssl, got);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    session->has_failed = why != SSL_ERROR_ZERO_RETURN;
    ERR_clear_error();
    return -1;
}

int uva__tls_session_write(struct uva__tls_session *session, const void *data,
                           size_t size, struct uva__bytes *out)
{
    const char *at = data;
    int code = 0;

    ERR_clear_error();
    while (size > 0 && code == 0) {
        const int part = size < PIECE ? (int)size : PIECE;

        if (session->has_failed || SSL_write(session->ssl, at, part) != part) {
            session->has_failed = true;
            ERR_clear_error();
            return EPROTO;
        }
        code = uva__tls_session_take(session, out);
        at += part;
        size -= (size_t)part;
    }
    return code;
}

void uva__tls_session_end(struct uva__tls_session *session)
{
    if (session->has_failed || !SSL_is_init_finished(session->ssl))
        return;
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
}

int uva__tls_session_take(struct uva__tls_session *session,
                          struct uva__bytes *out)
{
    char *data;
    const long size = BIO_get_mem_data(session->out, &data);
    int code = 0;

    if (size > 0)
        code = uva__bytes_add(out, data, (size_t)size);
    (void)BIO_reset(session->out);
    return code;
}
