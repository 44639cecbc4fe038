/* SPDX-License-Identifier: Apache-2.0 */
/* A whole server in this process. During each kind of request, each of its
 * allocations fails once, in the server, the library, the parser of JSON, and
 * under TLS in OpenSSL. The answer is whole, an error, or cut, and the next
 * request is answered as if the failure had not been. The sanitizers find
 * leaks. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

#define FOLDER UVA_TEST_BUILD "/serve_memory"

enum { PATIENCE_S = 600, ROOM = 1 << 20, TRIES = 3 };

/* ---- allocations that the linker does not wrap --------------------------- */

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

static void *ssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return malloc(size);
}

static void *ssl_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return realloc(old, size);
}

static void ssl_free(void *old, const char *file, int line)
{
    (void)file;
    (void)line;
    free(old);
}

/* ---- the server ---------------------------------------------------------- */

static pthread_t thread;
static int port, exit_code;
static SSL_CTX *context; /* of clients; NULL: plain */

static void *serve(void *args)
{
    (void)pthread_setname_np(pthread_self(), "server");
    exit_code = uva__serve_main(args);
    return NULL;
}

/* Starts it, and reads its port from its standard error. */
static void server_start(char **args)
{
    char line[256] = "";
    const int saved = dup(2);
    size_t size = 0;
    int ends[2];

    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], 2), 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, args), 0);
    while (size < sizeof(line) - 1 && read(ends[0], line + size, 1) == 1 &&
           line[size] != '\n')
        size++;
    ck_assert_int_eq(dup2(saved, 2), 2);
    (void)close(saved);
    (void)close(ends[0]);
    (void)close(ends[1]);
    ck_assert_msg(strstr(line, "listening at") != NULL, "%s", line);
    port = atoi(strrchr(line, ':') + 1);
}

static void server_stop(void)
{
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(exit_code, 0);
}

/* ---- a client ------------------------------------------------------------ */

struct answer {
    char text[ROOM]; /* head and body, ended by a NUL */
    size_t size;
    int status; /* 0: no answer */
};

static int client_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)),
                     0);
    return fd;
}

static long client_send(int fd, SSL *ssl, const char *data, size_t size)
{
    return ssl != NULL ? SSL_write(ssl, data, (int)size)
                       : send(fd, data, size, 0);
}

static long client_receive(int fd, SSL *ssl, char *data, size_t size)
{
    const long got =
        ssl != NULL ? SSL_read(ssl, data, (int)size) : recv(fd, data, size, 0);

    ck_assert_msg(got >= 0 || errno != EAGAIN, "the server hangs");
    return got;
}

/* Sends a request, and reads up to the end of the connection. */
static void ask(const char *request, struct answer *out)
{
    char text[1024];
    const int size = snprintf(text, sizeof(text), request, port);
    const int fd = client_connect();
    SSL *ssl = context != NULL ? SSL_new(context) : NULL;
    long got = -1;

    *out = (struct answer){.size = 0};
    if (ssl != NULL)
        (void)SSL_set_fd(ssl, fd);
    errno = 0;
    if (ssl == NULL || SSL_connect(ssl) == 1)
        got = client_send(fd, ssl, text, (size_t)size);
    while (got > 0 && out->size < ROOM - 1) {
        got = client_receive(fd, ssl, out->text + out->size,
                             ROOM - 1 - out->size);
        out->size += got > 0 ? (size_t)got : 0;
    }
    ck_assert_msg(errno != EAGAIN, "the server hangs");
    (void)sscanf(out->text, "HTTP/1.1 %d", &out->status);
    SSL_free(ssl);
    (void)close(fd);
}

static const char *body_of(const struct answer *answer)
{
    const char *end = strstr(answer->text, "\r\n\r\n");

    return end != NULL ? end + 4 : "";
}

static bool is_equal(const struct answer *a, const struct answer *b)
{
    const size_t head_a = (size_t)(body_of(a) - a->text);
    const size_t head_b = (size_t)(body_of(b) - b->text);

    return a->status == b->status && a->size - head_a == b->size - head_b &&
           memcmp(a->text + head_a, b->text + head_b, a->size - head_a) == 0;
}

/* Whether an answer lacks its end, or is missing. */
static bool is_cut(const struct answer *answer)
{
    const bool is_chunked =
        strstr(answer->text, "Transfer-Encoding: chunked") != NULL;
    const char *length = strstr(answer->text, "Content-Length: ");
    const char *last = "\r\n0\r\n\r\n";
    const size_t head = (size_t)(body_of(answer) - answer->text);

    if (answer->status == 0 || *body_of(answer) == '\0')
        return true;
    if (length != NULL)
        return answer->size - head < (size_t)atol(length + 16);
    return is_chunked &&
           memmem(answer->text, answer->size, last, strlen(last)) == NULL;
}

/* ---- requests ------------------------------------------------------------ */

#define HEAD "HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
#define SQL                                                                    \
    "WITH+RECURSIVE+n(i)+AS+(SELECT+1+UNION+ALL+SELECT+i%%2B1+FROM+n+WHERE+i"  \
    "%%3C3000)+SELECT+i,'some+text'+AS+t+FROM+n"
#define JSON                                                                   \
    "{\"sql\":\"SELECT ? AS a_number, ? AS a_text, ? AS none\","               \
    "\"parameters\":[1234567,\"a text that is not short\",null],"              \
    "\"format\":\"csv\"}"

static const struct {
    const char *text;
    int status;
    bool is_fixed; /* the body never changes */
} REQUESTS[] = {
    {"GET /health " HEAD "\r\n", 200, true},
    {"GET /stats " HEAD "\r\n", 200, false},
    {"GET / " HEAD "\r\n", 200, true},
    {"GET /nowhere " HEAD "\r\n", 404, true},
    {"GET http://127.0.0.1:%d/health HTTP/1.1\r\nHost: x\r\nConnection: "
     "close\r\n\r\n",
     200, true},
    {"GET /x HTTP/1.1\r\nHost : a%d\r\n\r\n", 400, true},
    {"GET /query?format=csv&sql=" SQL " " HEAD "\r\n", 200, true},
    {"GET /query?format=arrow&sql=" SQL " " HEAD "\r\n", 200, true},
    {"GET /query?format=json&sql=" SQL " " HEAD "\r\n", 200, true},
    {"GET /query?format=csv&sql=SELECT+1+FROM+nowhere " HEAD "\r\n", 400, true},
    {"POST /query " HEAD "Content-Type: application/json\r\n"
     "Content-Length: 124\r\n\r\n" JSON,
     200, true},
    {"GET /tables?format=csv " HEAD "\r\n", 200, true},
    {"GET /metrics " HEAD "\r\n", 200, false},
    {"GET /openapi.json " HEAD "\r\n", 200, true},
    {"GET /queries " HEAD "\r\n", 200, true},
    {"DELETE /queries/1 " HEAD "\r\n", 404, true},
    {"GET /query?format=csv&sql=" SQL " " HEAD "Accept-Encoding: gzip\r\n\r\n",
     200, true},
    {"GET /query?format=json-array&sql=" SQL " " HEAD
     "Accept-Encoding: zstd\r\n\r\n",
     200, true},
};

enum { KINDS = sizeof(REQUESTS) / sizeof(*REQUESTS), HEALTH = 0, CSV = 6 };

static struct answer whole, given;

static void check_whole(int kind)
{
    ask(REQUESTS[kind].text, &given);
    if (REQUESTS[kind].is_fixed)
        ck_assert_msg(is_equal(&given, &whole), "%s", given.text);
    ck_assert_int_eq(given.status, REQUESTS[kind].status);
}

/* Checks the answer to a request during which the n-th allocation failed. */
static void check_faulty(int kind, long n)
{
    if (is_cut(&given) || given.status == 503 || given.status == 500)
        return;
    ck_assert_msg(given.status == REQUESTS[kind].status &&
                      (!REQUESTS[kind].is_fixed || is_equal(&given, &whole)),
                  "request %d, allocation %ld: %s", kind, n, given.text);
}

/* Workers make some of the allocations, so their order may change: a sweep ends
 * when no allocation has failed a few times. */
static void sweep(int kind)
{
    int without = 0;
    long n;

    ask(REQUESTS[kind].text, &whole);
    ck_assert_msg(whole.status == REQUESTS[kind].status, "%s", whole.text);
    check_whole(kind); /* all threads and connections are there */
    for (n = 1; without < TRIES; n++) {
        bool failed;

        faulty_libc_fail(n);
        ask(REQUESTS[kind].text, &given);
        failed = faulty_libc_stop();
        check_faulty(kind, n);
        check_whole(kind);
        without = failed ? 0 : without + 1;
    }
    ck_assert_int_gt(n, TRIES + 1);
}

START_TEST(every_allocation_of_a_request_may_fail)
{
    char *args[] = {"--driver", UVA_TEST_DRIVER,     "--listen", "127.0.0.1:0",
                    "--log",    FOLDER "/plain.log", ":memory:", NULL};

    server_start(args);
    sweep(_i);
    server_stop();
}
END_TEST

/* After a socket that is not accepted, no other one would be. */
START_TEST(a_server_without_memory_listens_on)
{
    char *args[] = {"--driver", UVA_TEST_DRIVER, "--listen", "127.0.0.1:0",
                    "--quiet",  ":memory:",      NULL};
    long n;

    server_start(args);
    ask(REQUESTS[HEALTH].text, &whole);
    for (n = 1; n < 20; n++) {
        faulty_libc_fail(n);
        faulty_libc_always(true);
        ask(REQUESTS[HEALTH].text, &given);
        ck_assert(faulty_libc_stop() || is_equal(&given, &whole));
        faulty_libc_always(false);
        check_whole(HEALTH);
    }
    server_stop();
}
END_TEST

START_TEST(every_allocation_under_tls_may_fail)
{
    static const int KINDS_HERE[] = {HEALTH, CSV};
    char *args[] = {"--driver",
                    UVA_TEST_DRIVER,
                    "--listen",
                    "127.0.0.1:0",
                    "--quiet",
                    "--tls-cert",
                    FOLDER "/cert.pem",
                    "--tls-key",
                    FOLDER "/key.pem",
                    ":memory:",
                    NULL};

    context = SSL_CTX_new(TLS_client_method());
    ck_assert_ptr_nonnull(context);
    server_start(args);
    faulty_libc_only_thread("server");
    sweep(KINDS_HERE[_i]);
    server_stop();
    SSL_CTX_free(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("serve_memory");
    TCase *tcase = suite_case(suite, "memory", NULL, NULL);

    if (access(UVA_TEST_DRIVER, R_OK) != 0)
        return 77;
    if (CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free) != 1 ||
        system("mkdir -p " FOLDER " && openssl req -x509 -newkey ec -pkeyopt "
               "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
               " -out " FOLDER "/cert.pem -keyout " FOLDER
               "/key.pem 2> /dev/null") != 0)
        return 77;
    suite_add_loops(tcase, 0, KINDS, every_allocation_of_a_request_may_fail,
                    NULL);
    suite_add(tcase, a_server_without_memory_listens_on, NULL);
    suite_add_loops(tcase, 0, 2, every_allocation_under_tls_may_fail, NULL);
    return suite_run(suite);
}
