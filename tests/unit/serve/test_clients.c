/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of clients, against a count by hand. */
#include "clients.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "network.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"

enum { CLIENTS = 3000, MOST = 2 };

static struct uva__clients clients;

static struct in6_addr address(const char *text)
{
    struct in6_addr out;

    ck_assert(uva__network_read(text, strlen(text), &out));
    return out;
}

static int enter(const char *text, enum uva__clients_kind kind,
                 struct uva__clients_entry *entry)
{
    const struct in6_addr one = address(text);

    *entry = (struct uva__clients_entry){0};
    return uva__clients_enter(&clients, kind, &one, entry);
}

static bool is_empty(void)
{
    for (int i = 0; i < UVA__CLIENTS_BUCKETS; i++)
        if (clients.buckets[i] != NULL)
            return false;
    return true;
}

static void set_up(void)
{
    memset(&clients, 0, sizeof(clients));
    clients.most[UVA__CLIENTS_CONNECTION] = MOST;
    clients.most[UVA__CLIENTS_QUERY] = 1;
}

START_TEST(a_client_has_as_many_as_it_may)
{
    struct uva__clients_entry a, b, c, query;

    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_CONNECTION, &a), 0);
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_CONNECTION, &b), 0);
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_CONNECTION, &c), EDQUOT);
    ck_assert_ptr_null(c.client);
    uva__clients_leave(&clients, &c); /* no effect */
    /* another kind, and another client, have their own */
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_QUERY, &query), 0);
    ck_assert_int_eq(enter("192.0.2.2", UVA__CLIENTS_CONNECTION, &c), 0);
    uva__clients_leave(&clients, &c);
    uva__clients_leave(&clients, &a);
    uva__clients_leave(&clients, &a); /* once */
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_CONNECTION, &a), 0);
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_CONNECTION, &c), EDQUOT);
    uva__clients_leave(&clients, &a);
    uva__clients_leave(&clients, &b);
    ck_assert(!is_empty());
    uva__clients_leave(&clients, &query);
    ck_assert(is_empty());
}
END_TEST

START_TEST(an_address_of_ipv6_counts_by_its_first_half)
{
    struct uva__clients_entry a, b;

    ck_assert_int_eq(enter("2001:db8::1", UVA__CLIENTS_QUERY, &a), 0);
    ck_assert_int_eq(enter("2001:db8::ffff:1", UVA__CLIENTS_QUERY, &b), EDQUOT);
    ck_assert_int_eq(enter("2001:db8:0:1::1", UVA__CLIENTS_QUERY, &b), 0);
    uva__clients_leave(&clients, &a);
    uva__clients_leave(&clients, &b);
    /* IPv4 whole, though its first half is that of all others */
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_QUERY, &a), 0);
    ck_assert_int_eq(enter("::ffff:192.0.2.1", UVA__CLIENTS_QUERY, &b), EDQUOT);
    ck_assert_int_eq(enter("192.0.2.2", UVA__CLIENTS_QUERY, &b), 0);
    uva__clients_leave(&clients, &a);
    uva__clients_leave(&clients, &b);
    ck_assert(is_empty());
}
END_TEST

START_TEST(without_a_limit_no_client_is_kept)
{
    struct uva__clients_entry a;

    clients.most[UVA__CLIENTS_QUERY] = 0;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_QUERY, &a), 0);
    ck_assert_ptr_null(a.client);
    ck_assert(is_empty());
}
END_TEST

START_TEST(a_client_that_cannot_be_kept_is_an_error)
{
    struct uva__clients_entry a;

    faulty_libc_fail(1);
    ck_assert_int_eq(enter("192.0.2.1", UVA__CLIENTS_QUERY, &a), ENOMEM);
    ck_assert(faulty_libc_stop());
    ck_assert(is_empty());
}
END_TEST

/* More clients than lists, which come and go in any order. */
START_TEST(many_clients_are_counted_each_by_itself)
{
    static struct uva__clients_entry entries[CLIENTS][MOST];
    static int counts[CLIENTS];

    srand(1);
    for (int step = 0; step < 40 * CLIENTS; step++) {
        const int which = rand() % CLIENTS;
        const bool enters = rand() % 2 == 0;
        struct in6_addr one = address("10.0.0.0");
        struct uva__clients_entry fresh = {0};
        int code;

        one.s6_addr[14] = (unsigned char)(which >> 8);
        one.s6_addr[15] = (unsigned char)which;
        if (enters) {
            code = uva__clients_enter(&clients, UVA__CLIENTS_CONNECTION, &one,
                                      &fresh);
            ck_assert_int_eq(code, counts[which] < MOST ? 0 : EDQUOT);
            if (code == 0)
                entries[which][counts[which]++] = fresh;
        } else if (counts[which] > 0) {
            uva__clients_leave(&clients, &entries[which][--counts[which]]);
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        while (counts[i] > 0)
            uva__clients_leave(&clients, &entries[i][--counts[i]]);
    ck_assert(is_empty());
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("clients");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, a_client_has_as_many_as_it_may);
    tcase_add_test(tc, an_address_of_ipv6_counts_by_its_first_half);
    tcase_add_test(tc, without_a_limit_no_client_is_kept);
    tcase_add_test(tc, a_client_that_cannot_be_kept_is_an_error);
    tcase_add_test(tc, many_clients_are_counted_each_by_itself);
    return suite_main("serve_clients", NULL, NULL, tc, NULL);
}
