/* SPDX-License-Identifier: Apache-2.0 */
/* The places of a partition of Flight SQL, and their order. A partition may
 * come from anywhere, so what is no such message is passed on as it is. */
#include "adbc/replicas.h"

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "support/check_suite.h"

enum { ROOM = 512 };

/* A message that is written. */
struct message {
    uint8_t bytes[ROOM];
    size_t size;
};

static void put(struct message *to, const void *bytes, size_t size)
{
    ck_assert_uint_le(to->size + size, ROOM);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void put_varint(struct message *to, uint64_t value)
{
    for (; value > 127; value >>= 7)
        put(to, &(uint8_t){(uint8_t)(value | 128)}, 1);
    put(to, &(uint8_t){(uint8_t)value}, 1);
}

static void put_bytes(struct message *to, int number, const void *bytes,
                      size_t size)
{
    put_varint(to, (uint64_t)number << 3 | 2);
    put_varint(to, size);
    put(to, bytes, size);
}

static void put_message(struct message *to, int number,
                        const struct message *inner)
{
    put_bytes(to, number, inner->bytes, inner->size);
}

static void put_location(struct message *to, const char *uri)
{
    struct message location = {.size = 0};

    put_bytes(&location, 1, uri, strlen(uri));
    put_message(to, 2, &location);
}

/* A FlightInfo with one endpoint, of a ticket, these locations, with a field of
 * another kind among them, and more. */
static struct message partition(const char *const *uris)
{
    struct message whole = {.size = 0}, endpoint = {.size = 0};

    put_bytes(&endpoint, 1, "the ticket", 10);
    for (int i = 0; uris[i] != NULL; i++) {
        put_location(&endpoint, uris[i]);
        if (i == 0) { /* a number, and fixed ones */
            put(&endpoint,
                "\x20\x96\x01\x29"
                "12345678"
                "\x35"
                "1234",
                17);
        }
    }
    put_bytes(&whole, 1, "a schema", 8);
    put_message(&whole, 3, &endpoint);
    put(&whole, "\x20\x05", 2);
    return whole;
}

static void hosts_are(const struct message *m, const char *expected)
{
    char text[64];

    uva__replicas_hosts(m->bytes, m->size, text, sizeof(text));
    ck_assert_str_eq(text, expected);
}

static void rotated_are(const struct message *m, size_t first,
                        const char *expected)
{
    struct message out = {.size = m->size};

    uva__replicas_rotate(m->bytes, m->size, first, out.bytes);
    hosts_are(&out, expected);
}

static const char *const THREE[] = {
    "grpc://one:8815", "grpc+tls://me@two:1/a/b", "grpc://three?x=1", NULL};

START_TEST(hosts_are_parts_of_the_locations)
{
    static const char *const none[] = {NULL};
    static const char *const odd[] = {"", "four", "grpc://a\nb:5", NULL};
    const struct message three = partition(THREE), no = partition(none),
                         strange = partition(odd);

    hosts_are(&three, "one:8815 or two:1 or three");
    hosts_are(&no, "");
    hosts_are(&strange, "four or a");
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut)
{
    const struct message m = partition(THREE);
    char text[12];

    for (size_t room = 1; room <= sizeof(text); room++) {
        memset(text, '#', sizeof(text));
        uva__replicas_hosts(m.bytes, m.size, text, room);
        ck_assert_uint_lt(strlen(text), room);
        ck_assert_int_eq(strncmp("one:8815 or two", text, strlen(text)), 0);
    }
}
END_TEST

START_TEST(each_location_comes_first_in_turn)
{
    static const char *const one[] = {"grpc://one:8815", NULL};
    const struct message m = partition(THREE), alone = partition(one);

    for (size_t round = 0; round < 9; round += 3) {
        rotated_are(&m, round, "one:8815 or two:1 or three");
        rotated_are(&m, round + 1, "two:1 or three or one:8815");
        rotated_are(&m, round + 2, "three or one:8815 or two:1");
    }
    rotated_are(&alone, 1, "one:8815");
}
END_TEST

/* The other fields stay, and another rotation gives the message back. */
START_TEST(nothing_else_changes)
{
    const struct message m = partition(THREE);
    struct message once = m, back = m;

    uva__replicas_rotate(m.bytes, m.size, 1, once.bytes);
    ck_assert_int_ne(memcmp(m.bytes, once.bytes, m.size), 0);
    uva__replicas_rotate(once.bytes, once.size, 2, back.bytes);
    ck_assert_mem_eq(m.bytes, back.bytes, m.size);
}
END_TEST

static bool is_permuted(const struct message *m)
{
    struct message out = {.size = m->size};
    unsigned sums[2] = {0};

    uva__replicas_rotate(m->bytes, m->size, 1, out.bytes);
    for (size_t i = 0; i < m->size; i++) {
        sums[0] += m->bytes[i];
        sums[1] += out.bytes[i];
    }
    return sums[0] == sums[1];
}

/* Run under a sanitizer, it shows that no byte beyond is read or written. */
START_TEST(broken_messages_are_passed_on)
{
    const struct message whole = partition(THREE);
    struct message m;
    char text[64];

    for (size_t size = 0; size < whole.size; size++) {
        m = whole;
        m.size = size;
        uva__replicas_hosts(m.bytes, m.size, text, sizeof(text));
        ck_assert(is_permuted(&m));
    }
    for (size_t at = 0; at < whole.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            m = whole;
            m.bytes[at] ^= (uint8_t)(1 << bit);
            uva__replicas_hosts(m.bytes, m.size, text, sizeof(text));
            ck_assert(is_permuted(&m));
        }
}
END_TEST

START_TEST(two_endpoints_are_not_taken_for_one)
{
    struct message m = partition(THREE);
    const struct message other = partition(THREE);

    put(&m, other.bytes, other.size);
    hosts_are(&m, "");
    rotated_are(&m, 1, "");
    hosts_are(&(struct message){.size = 0}, "");
    hosts_are(&(struct message){.bytes = "rows 3", .size = 6}, "");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("replicas");

    suite_add(tests, hosts_are_parts_of_the_locations,
              a_text_that_is_too_long_is_cut, each_location_comes_first_in_turn,
              nothing_else_changes, broken_messages_are_passed_on,
              two_endpoints_are_not_taken_for_one, NULL);
    return suite_main("replicas", NULL, NULL, tests, NULL);
}
