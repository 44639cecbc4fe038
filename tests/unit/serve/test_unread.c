/* SPDX-License-Identifier: Apache-2.0 */
/* A client that sends requests, and reads no answer: the answers that wait take
 * no more memory than is meant for them, however small they are; and each is
 * there once the client reads. */
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "support/check_suite.h"

enum {
    STILL = 50,      /* turns without an effect, after which there is none */
    MOST = 262144,   /* meant for answers that wait */
    LEAST_EACH = 400 /* of memory that an answer of 3 bytes takes */
};

static const char TEXT[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

static struct uva__http http;
static uv_loop_t loop;
static long requests;   /* that were answered */
static size_t most;     /* writes that waited at one time */
static bool has_closed; /* on_closed was called */

/* ---- the server ---------------------------------------------------------- */

static void on_request(void *ctx, struct uva__connection *connection)
{
    (void)ctx;
    requests++;
    uva__connection_answer(connection, 200, "text/plain", NULL, NULL, "yes", 3);
    if (http.all.first != NULL && http.all.first->transport.writes > most)
        most = http.all.first->transport.writes;
}

static void on_closed(void *ctx)
{
    (void)ctx;
    has_closed = true;
}

static void set_up(void)
{
    static struct uva__limits limits;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct uva__http_handler handler = {.requests.on_request = on_request,
                                              .on_closed = on_closed};
    struct uva_error error;

    uva__limits_init(&limits);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uva__http_open(&http, &loop,
                                    (const struct sockaddr *)&address, NULL,
                                    &limits, &handler, &error),
                     0);
}

static void tear_down(void)
{
    uva__http_close(&http);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert(has_closed);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* ---- the client ---------------------------------------------------------- */

/* The part of a request that was not sent. */
static const char *rest = TEXT;

static void make_small(int fd)
{
    const int small = 4096;

    ck_assert_int_eq(
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
    ck_assert_int_eq(
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
}

/* Connects, with little room in the system. */
static int client(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)uva__http_port(&http)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    make_small(fd);
    make_small(http.fd); /* its connections have the same */
    ck_assert_int_eq(
        connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Sends as many requests as the system takes. Returns the number of whole
 * ones. */
static long send_all(int fd)
{
    long count = 0;
    ssize_t size;

    while ((size = send(fd, rest, strlen(rest), MSG_DONTWAIT)) > 0) {
        rest += size;
        count += *rest == '\0';
        rest = *rest == '\0' ? TEXT : rest;
    }
    ck_assert_int_eq(errno, EAGAIN);
    return count;
}

/* Returns how many answers begin in the bytes that are there. */
static long read_all(int fd)
{
    static const char MARK[] = "HTTP/1.1 200";
    static size_t seen;
    char data[4096];
    long count = 0;
    ssize_t size;

    while ((size = recv(fd, data, sizeof(data), MSG_DONTWAIT)) > 0)
        for (ssize_t i = 0; i < size; i++) {
            seen = data[i] == MARK[seen] ? seen + 1 : data[i] == MARK[0];
            if (MARK[seen] == '\0') {
                seen = 0;
                count++;
            }
        }
    return count;
}

START_TEST(small_answers_that_are_not_read_have_a_limit)
{
    const int fd = client();
    long sent = 0, answers = 0;
    int still = 0;

    while (still < STILL) {
        const long before = sent + requests;

        sent += send_all(fd);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        still = sent + requests > before ? 0 : still + 1;
    }
    ck_assert_uint_le(most, MOST / LEAST_EACH);
    ck_assert_uint_ge(most, 100);     /* they did wait */
    ck_assert_int_gt(sent, requests); /* and so did requests */
    while (answers < sent) {
        answers += read_all(fd);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert_int_eq(answers, requests);
    ck_assert_uint_le(most, MOST / LEAST_EACH);
    (void)close(fd);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("unread");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, small_answers_that_are_not_read_have_a_limit);
    return suite_main("serve_unread", NULL, NULL, tc, NULL);
}
