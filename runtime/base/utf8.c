/* SPDX-License-Identifier: Apache-2.0 */
/* Strict UTF-8: no form longer than needed, no surrogate, no code beyond the
 * last plane. */
#include "base/utf8.h"

#include <stdint.h>

/* The bytes that may follow a lead byte. */
struct utf8_lead {
    uint8_t from, to;  /* the lead bytes */
    uint8_t size;      /* of the character */
    uint8_t low, high; /* of its second byte; further bytes are 80 to BF */
};

static const struct utf8_lead UTF8_LEADS[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF},
    {0xE1, 0xEC, 3, 0x80, 0xBF}, {0xED, 0xED, 3, 0x80, 0x9F},
    {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};

static size_t utf8_match(const struct utf8_lead *lead,
                         const unsigned char *text)
{
    if (text[1] < lead->low || text[1] > lead->high)
        return 0;
    for (size_t i = 2; i < lead->size; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return lead->size;
}

size_t uva__utf8_size(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;

    if (bytes[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof(UTF8_LEADS) / sizeof(UTF8_LEADS[0]); i++)
        if (bytes[0] >= UTF8_LEADS[i].from && bytes[0] <= UTF8_LEADS[i].to)
            return utf8_match(&UTF8_LEADS[i], bytes);
    return 0;
}

bool uva__utf8_is_sound(const char *text)
{
    while (*text != '\0') {
        const size_t size = uva__utf8_size(text);
        if (size == 0)
            return false;
        text += size;
    }
    return true;
}
