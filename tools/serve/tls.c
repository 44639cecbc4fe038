/* SPDX-License-Identifier: Apache-2.0 */
/* A session has a pair of memory BIOs for the two directions. */
#include "tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* Bytes that are encrypted at once. A memory BIO never shrinks, and is cleared
 * wholly whenever it is emptied. */
#define PIECE 65536

struct uva__tls {
    SSL_CTX *context; /* owns */
};

/* Room for an address in binary. */
enum { ADDRESS_ROOM = 16 };

struct uva__tls_session {
    SSL *ssl;          /* owns, with both BIOs */
    BIO *in, *out;     /* borrow */
    bool has_failed;   /* and can only be freed */
    unsigned long why; /* of OpenSSL; 0: unknown */
};

/* The ciphers of TLS 1.2 that keep past sessions secret when the key is stolen
 * later, and are authenticated as a whole; TLS 1.3 has no other ones. */
static const char CIPHERS[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

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
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(tls->context, CIPHERS) != 1)
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

int uva__tls_new_client(const char *authorities, struct uva__tls **out,
                        struct uva_error *error)
{
    struct uva__tls *tls = calloc(1, sizeof(*tls));
    int code = 0;

    if (tls == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    ERR_clear_error();
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context == NULL ||
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(tls->context, CIPHERS) != 1)
        code = tls_error(error, "TLS");
    else if ((authorities != NULL
                  ? SSL_CTX_load_verify_locations(tls->context, authorities,
                                                  NULL)
                  : SSL_CTX_set_default_verify_paths(tls->context)) != 1)
        code = tls_error(error, authorities != NULL
                                    ? authorities
                                    : "the certificates of the system");
    if (code != 0) {
        uva__tls_free(tls);
        return code;
    }
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_options(tls->context,
                              SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
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

static struct uva__tls_session *session_new(struct uva__tls *tls)
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
    return session;
}

struct uva__tls_session *uva__tls_session_new(struct uva__tls *tls)
{
    struct uva__tls_session *session = session_new(tls);

    if (session != NULL)
        SSL_set_accept_state(session->ssl);
    return session;
}

/* An address is not sent to the peer, and is another kind of name in its
 * certificate. */
static bool session_expect(struct uva__tls_session *session, const char *host)
{
    unsigned char address[ADDRESS_ROOM];

    if (uv_inet_pton(AF_INET, host, address) == 0 ||
        uv_inet_pton(AF_INET6, host, address) == 0)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl),
                                             host) == 1;
    SSL_set_hostflags(session->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(session->ssl, host) == 1 &&
           SSL_set_tlsext_host_name(session->ssl, host) == 1;
}

struct uva__tls_session *uva__tls_session_connect(struct uva__tls *tls,
                                                  const char *host)
{
    struct uva__tls_session *session = session_new(tls);

    if (session == NULL)
        return NULL;
    if (!session_expect(session, host)) {
        uva__tls_session_free(session);
        return NULL;
    }
    SSL_set_connect_state(session->ssl);
    return session;
}

bool uva__tls_session_is_ready(const struct uva__tls_session *session)
{
    return SSL_is_init_finished(session->ssl) != 0;
}

const char *uva__tls_session_why(const struct uva__tls_session *session)
{
    const long verified = SSL_get_verify_result(session->ssl);
    const char *text = ERR_reason_error_string(session->why);

    if (verified != X509_V_OK)
        return X509_verify_cert_error_string(verified);
    return text != NULL ? text : "the peer has closed the connection";
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
    session->why = ERR_peek_error();
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
