/* SPDX-License-Identifier: Apache-2.0 */
/* Each error that accept() knows, in a server with a double of accept(): errors
 * of the waiting connection have no effect, and lasting errors stop the
 * listening for a moment, during which the loop is idle, one client is answered
 * by the descriptor in reserve, and the server can be ended. */
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "support/check_suite.h"

enum { FOR_EVER = 1 << 30, TURNS = 50 };

/* ---- the double ---------------------------------------------------------- */

static struct uva__http http;
static int calls;        /* of accept() */
static int failures;     /* that are still to come */
static int failure;      /* their errno */
static bool spares_do;   /* no spare descriptor while the reserve is closed */
static int starved;      /* calls of on_starved */
static int starved_code; /* the errno of the last one */
static int requests;     /* that were answered */
static bool was_spare;   /* the last one */
static bool has_closed;  /* on_closed was called */
static uv_loop_t loop;   /* turned by the tests */

int __real_accept(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_accept(int fd, struct sockaddr *address, socklen_t *size)
{
    const bool is_spare = spares_do && http.reserve < 0;

    calls++;
    if (failures == 0 || is_spare)
        return __real_accept(fd, address, size);
    failures -= failures != FOR_EVER;
    errno = failure;
    return -1;
}

/* ---- the server ---------------------------------------------------------- */

static void on_request(void *ctx, struct uva__connection *connection)
{
    (void)ctx;
    requests++;
    was_spare = connection->is_spare;
    uva__connection_answer(connection, 200, "text/plain", NULL, NULL, "yes", 3);
}

static void on_starved(void *ctx, int code)
{
    (void)ctx;
    starved++;
    starved_code = code;
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
                                              .on_starved = on_starved,
                                              .on_closed = on_closed};
    struct uva_error error;

    calls = failures = starved = requests = 0;
    spares_do = has_closed = false;
    memset(&http, 0, sizeof(http));
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

static int client(void)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)uva__http_port(&http)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(send(fd, text, sizeof(text) - 1, 0), sizeof(text) - 1);
    return fd;
}

static void turn_until_answered(int wanted)
{
    while (requests < wanted)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

/* Returns in how many of some turns accept() was called. */
static int turns_with_calls(void)
{
    int count = 0;

    for (int i = 0; i < TURNS; i++) {
        const int before = calls;

        (void)uv_run(&loop, UV_RUN_NOWAIT);
        count += calls > before;
    }
    return count;
}

/* ---- the errors ---------------------------------------------------------- */

static const int PASSING[] = {
    EINTR,  ECONNABORTED, ENETDOWN,   EPROTO,    ENOPROTOOPT, EHOSTDOWN,
    ENONET, EHOSTUNREACH, EOPNOTSUPP, ETIMEDOUT, ENETUNREACH};

static const int LASTING[] = {EMFILE, ENFILE,          ENOBUFS,        ENOMEM,
                              EPERM,  EACCES,          ENOSYS,         ENOSR,
                              EINVAL, ENOTSOCK,        EBADF,          EFAULT,
                              ENODEV, EPROTONOSUPPORT, ESOCKTNOSUPPORT};

#define COUNT(list) (int)(sizeof(list) / sizeof(*(list)))

START_TEST(an_error_of_a_connection_is_ignored)
{
    const int fd = client();

    failure = PASSING[_i];
    failures = 3;
    turn_until_answered(1);
    ck_assert_int_eq(starved, 0);
    ck_assert(!was_spare);
    (void)close(fd);
}
END_TEST

START_TEST(nobody_waiting_is_no_error)
{
    const int fd = client();

    failure = _i == 0 ? EAGAIN : EWOULDBLOCK;
    failures = 1;
    turn_until_answered(1);
    ck_assert_int_eq(starved, 0);
    (void)close(fd);
}
END_TEST

/* The last ones are errors of connections, for ever. */
START_TEST(an_error_that_lasts_neither_spins_nor_is_reported_twice)
{
    const int lasts = COUNT(LASTING);
    const int fd = client();
    int once;

    failure = _i < lasts ? LASTING[_i] : PASSING[_i - lasts];
    failures = FOR_EVER;
    while (starved == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_int_eq(starved_code, failure);
    once = calls;
    ck_assert_int_lt(turns_with_calls(), TURNS);
    while (calls < 3 * once) /* it is tried again, by a timer */
        (void)uv_run(&loop, UV_RUN_ONCE);
    ck_assert_int_eq(starved, 1);
    failures = 0;
    turn_until_answered(1);
    ck_assert(!was_spare);
    (void)close(fd);
}
END_TEST

START_TEST(it_is_reported_anew_once_a_connection_was_accepted)
{
    int fds[2];

    failure = EMFILE;
    for (int i = 0; i < 2; i++) {
        failures = 4;
        fds[i] = client();
        turn_until_answered(i + 1);
        ck_assert_int_eq(starved, i + 1);
    }
    (void)close(fds[0]);
    (void)close(fds[1]);
}
END_TEST

START_TEST(the_reserve_answers_one_client_after_the_other)
{
    int fds[3];

    failure = EMFILE;
    failures = FOR_EVER;
    spares_do = true;
    for (int i = 0; i < 3; i++)
        fds[i] = client();
    for (int i = 0; i < 3; i++) {
        char text[512];

        turn_until_answered(i + 1);
        ck_assert(was_spare);
        ck_assert_int_gt(recv(fds[i], text, sizeof(text), 0), 0);
        (void)close(fds[i]);
    }
    ck_assert_int_eq(starved, 1);
}
END_TEST

START_TEST(a_server_that_accepts_nothing_can_be_ended)
{
    const int fd = client();

    failure = EMFILE;
    failures = FOR_EVER;
    while (starved == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    uva__http_drain(&http);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert(has_closed);
    (void)close(fd);
}
END_TEST

/* ---- the limits ---------------------------------------------------------- */

static void check_fit(int64_t most, int64_t connections, int64_t queries)
{
    struct uva__limits limits;
    struct uva_error error;

    uva__limits_init(&limits);
    limits.queries = 8;
    limits.connections = 1024;
    ck_assert_int_eq(uva__limits_fit(&limits, most, 10, &error), 0);
    ck_assert_int_eq(limits.connections, connections);
    ck_assert_int_eq(limits.queries, queries);
}

START_TEST(few_descriptors_lower_the_limits)
{
    struct uva__limits limits = {.connections = 1024, .queries = 8};
    struct uva_error error;

    check_fit(INT32_MAX, 1024, 8);
    check_fit(1024 + 16 + 64, 1024, 8);
    check_fit(1024 + 16 + 63, 1023, 8);
    check_fit(1024, 1024 - 16 - 64, 8);
    check_fit(16 + 128, 64, 8);
    check_fit(16 + 127, 127 - 56, 7);
    check_fit(16 + 16, 8, 1);
    check_fit(16 + 2, 1, 1);
    ck_assert_int_eq(uva__limits_fit(&limits, 17, 10, &error), EMFILE);
    ck_assert_str_eq(error.message,
                     "the limit of 17 open files is too low: the "
                     "server needs 18 at least");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("accept");

    tcase_add_loop_test(tc, an_error_of_a_connection_is_ignored, 0,
                        COUNT(PASSING));
    tcase_add_loop_test(tc, nobody_waiting_is_no_error, 0, 2);
    tcase_add_loop_test(tc,
                        an_error_that_lasts_neither_spins_nor_is_reported_twice,
                        0, COUNT(LASTING) + COUNT(PASSING));
    tcase_add_test(tc, it_is_reported_anew_once_a_connection_was_accepted);
    tcase_add_test(tc, the_reserve_answers_one_client_after_the_other);
    tcase_add_test(tc, a_server_that_accepts_nothing_can_be_ended);
    tcase_add_test(tc, few_descriptors_lower_the_limits);
    return suite_main("serve_accept", set_up, tear_down, tc, NULL);
}
