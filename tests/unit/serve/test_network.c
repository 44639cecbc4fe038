/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and networks, and the client of a request that proxies have passed
 * on. */
#include "network.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "proxies.h"
#include "support/check_suite.h"

static struct in6_addr address(const char *text)
{
    struct in6_addr out;

    ck_assert(uva__network_read(text, strlen(text), &out));
    return out;
}

/* ---- networks ------------------------------------------------------------ */

static const struct {
    const char *network, *inside, *outside; /* NULL: there is none */
} networks[] = {
    {"10.0.0.0/8", "10.255.1.2", "11.0.0.0"},
    {"10.1.2.3/8", "10.0.0.0",
     "9.255.255.255"}, /* the other bits are ignored */
    {"192.0.2.128/25", "192.0.2.255", "192.0.2.127"},
    {"192.0.2.1", "192.0.2.1", "192.0.2.2"},
    {"192.0.2.1/32", "::ffff:192.0.2.1", "192.0.2.0"},
    {"0.0.0.0/0", "255.255.255.255", "::1"},
    {"::/0", "1.2.3.4", NULL},
    {"::1", "::1", "::2"},
    {"fd00::/8", "fdff::1", "fe00::"},
    {"2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"},
    {"::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"},
};

START_TEST(a_network_has_the_addresses_with_its_first_bits)
{
    struct uva__network network;
    struct in6_addr one;

    ck_assert(uva__network_parse(networks[_i].network, &network));
    one = address(networks[_i].inside);
    ck_assert(uva__network_has(&network, &one));
    if (networks[_i].outside == NULL)
        return;
    one = address(networks[_i].outside);
    ck_assert(!uva__network_has(&network, &one));
}
END_TEST

static const char *const nonsense[] = {
    "",
    "/8",
    "10.0.0.0/",
    "10.0.0.0/33",
    "::/129",
    "10.0.0/8",
    "10.0.0.0/8x",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "::1/ 8",
    "10.0.0.0/8/8",
    "host",
    "10.0.0.0/99999999999999999999",
    "[::1]",
    "1111111111222222222233333333334444444444555555555566666666667777/8"};

START_TEST(other_texts_are_no_network)
{
    struct uva__network network;

    ck_assert(!uva__network_parse(nonsense[_i], &network));
}
END_TEST

START_TEST(an_address_is_written_as_people_do)
{
    static const char *const TEXTS[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
        {"::", "::"}};
    char text[UVA__NETWORK_ROOM];
    struct in6_addr one;

    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(*TEXTS); i++) {
        one = address(TEXTS[i][0]);
        uva__network_name(&one, text);
        ck_assert_str_eq(text, TEXTS[i][1]);
    }
}
END_TEST

/* ---- proxies ------------------------------------------------------------- */

/* 10.0.0.0/8 and fd00::/8 are proxies. */
static const struct {
    const char *peer, *forwarded, *client;
} requests[] = {
    {"10.0.0.1", NULL, "10.0.0.1"},
    {"10.0.0.1", "", "10.0.0.1"},
    {"10.0.0.1", "192.0.2.1", "192.0.2.1"},
    {"::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"},
    {"fd00::1", "2001:db8::7", "2001:db8::7"},
    /* the peer is no proxy */
    {"192.0.2.9", "192.0.2.1", "192.0.2.9"},
    {"192.0.2.9", "10.0.0.1", "192.0.2.9"},
    /* the last one that is no proxy, whatever stands before it */
    {"10.0.0.1", "1.1.1.1, 192.0.2.1", "192.0.2.1"},
    {"10.0.0.1", "1.1.1.1,192.0.2.1 ,\t10.9.9.9", "192.0.2.1"},
    {"10.0.0.1", "nonsense, 192.0.2.1, fd12::1", "192.0.2.1"},
    {"10.0.0.1", "\x01\xff, 192.0.2.1", "192.0.2.1"},
    /* all are proxies: the first one has asked */
    {"10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"},
    {"10.0.0.1", ",10.0.0.3", "10.0.0.3"},
    /* ports */
    {"10.0.0.1", "192.0.2.1:4711", "192.0.2.1"},
    {"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
    {"10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"},
    /* the proxy that has written no address is all that is known */
    {"10.0.0.1", "1.1.1.1, unknown", "10.0.0.1"},
    {"10.0.0.1", "1.1.1.1, unknown, 10.0.0.2", "10.0.0.2"},
    {"10.0.0.1", "1.1.1.1, ", "10.0.0.1"},
    {"10.0.0.1", "1.1.1.1,", "10.0.0.1"},
    {"10.0.0.1", ",", "10.0.0.1"},
    {"10.0.0.1", "1.1.1.1 2.2.2.2", "10.0.0.1"},
    {"10.0.0.1", "[2001:db8::1", "10.0.0.1"},
    {"10.0.0.1", "[2001:db8::1]x", "10.0.0.1"},
    {"10.0.0.1", "[]", "10.0.0.1"},
    {"10.0.0.1", "999.1.1.1", "10.0.0.1"},
    {"10.0.0.1", ":80", "10.0.0.1"},
    {"10.0.0.1",
     "1111111111222222222233333333334444444444555555555566666666667777",
     "10.0.0.1"},
};

START_TEST(the_client_is_the_last_address_that_is_no_proxy)
{
    struct uva__proxies proxies = {.count = 2};
    const struct in6_addr peer = address(requests[_i].peer),
                          expected = address(requests[_i].client);
    struct in6_addr client;
    char text[UVA__NETWORK_ROOM];

    ck_assert(uva__network_parse("10.0.0.0/8", &proxies.networks[0]));
    ck_assert(uva__network_parse("fd00::/8", &proxies.networks[1]));
    client = uva__proxies_client(&proxies, &peer, requests[_i].forwarded);
    uva__network_name(&client, text);
    ck_assert_msg(memcmp(&client, &expected, sizeof(client)) == 0, "%s", text);
}
END_TEST

START_TEST(without_proxies_the_client_is_the_peer)
{
    const struct uva__proxies none = {0};
    const struct in6_addr peer = address("127.0.0.1");
    struct in6_addr client = uva__proxies_client(&none, &peer, "192.0.2.1");

    ck_assert_mem_eq(&client, &peer, sizeof(peer));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("network");

    tcase_add_loop_test(tc, a_network_has_the_addresses_with_its_first_bits, 0,
                        sizeof(networks) / sizeof(*networks));
    tcase_add_loop_test(tc, other_texts_are_no_network, 0,
                        sizeof(nonsense) / sizeof(*nonsense));
    tcase_add_test(tc, an_address_is_written_as_people_do);
    tcase_add_loop_test(tc, the_client_is_the_last_address_that_is_no_proxy, 0,
                        sizeof(requests) / sizeof(*requests));
    tcase_add_test(tc, without_proxies_the_client_is_the_peer);
    return suite_main("serve_network", NULL, NULL, tc, NULL);
}
