/* SPDX-License-Identifier: Apache-2.0 */
/* The keys have the library's prefix. A code is written in decimal. */
#include "arrow/vendor_error.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "uvarrow/arrow.h"

enum { CODE_SIZE = 12 }; /* of INT_MIN, with its NUL */

static const char KEY_VENDOR[] = "uvarrow.vendor";
static const char KEY_CODE[] = "uvarrow.vendor_code";
static const char KEY_CALL[] = "uvarrow.vendor_call";

/* ---- in errors ---------------------------------------------------------- */

int uva__vendor_error_set(struct uva_error *error, int code, const char *vendor,
                          int vendor_code, const char *format, ...)
{
    char text[sizeof(error->message) + 4]; /* uva_error_set() cuts it to fit */
    va_list args;

    if (error == NULL)
        return code;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)uva_error_set(error, code, "%s", text);
    error->vendor = vendor;
    error->vendor_code = vendor_code;
    return code;
}

/* The size of the name of the call with which a text begins, possibly of C++; 0
 * if it begins with no name. */
static size_t vendor_call(const char *text)
{
    static const char marks[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz"
                                "0123456789_:";
    const size_t size = strspn(text, marks);

    return strncmp(text + size, " failed", 7) != 0 ||
                   (size > 0 && text[size - 1] == ':')
               ? 0
               : size;
}

/* ---- in metadata -------------------------------------------------------- */

int uva__vendor_error_to_metadata(const struct uva_allocator *allocator,
                                  const struct uva_error *error,
                                  struct uva__metadata *out)
{
    struct uva_pair pairs[4] = {{0}};
    char code[CODE_SIZE];
    size_t count = 0, call = vendor_call(error->message);

    *out = (struct uva__metadata){0};
    if (error->vendor == NULL)
        return 0;
    (void)snprintf(code, sizeof(code), "%d", error->vendor_code);
    pairs[count++] =
        (struct uva_pair){.key = KEY_VENDOR, .value = error->vendor};
    if (error->vendor_code != 0)
        pairs[count++] = (struct uva_pair){.key = KEY_CODE, .value = code};
    if (call != 0)
        pairs[count] = (struct uva_pair){
            .key = KEY_CALL, .value = error->message, .value_size = call};
    if (uva_metadata_encode(pairs, NULL, &out->size) == EMSGSIZE)
        out->block = uva__memory_new(allocator, out->size);
    if (out->block == NULL) {
        out->size = 0;
        return ENOMEM;
    }
    return uva_metadata_encode(pairs, out->block, &out->size);
}

/* Our own constant for a vendor's name; NULL: an unknown vendor. */
static const char *vendor_known(const struct uva_pair *name)
{
    static const char *const known[] = {"cuda",   "hip",  "opencl",
                                        "vulkan", "sycl", "uv"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (name->value_size == strlen(known[i]) &&
            memcmp(name->value, known[i], name->value_size) == 0)
            return known[i];
    return NULL;
}

/* Returns 0 also if the text is not a number or too large for a code. */
static int vendor_number(const struct uva_pair *pair)
{
    char text[CODE_SIZE] = "";
    char *end;
    long long number;

    if (pair->value_size == 0 || pair->value_size >= sizeof(text))
        return 0;
    memcpy(text, pair->value, pair->value_size);
    number = strtoll(text, &end, 10);
    if (end != text + pair->value_size || number < INT_MIN || number > INT_MAX)
        return 0;
    return (int)number;
}

void uva__vendor_error_from_metadata(const char *metadata,
                                     struct uva_error *error)
{
    struct uva_pair pair;
    const char *vendor;

    if (uva_metadata_get(metadata, KEY_VENDOR, &pair) != 0)
        return;
    vendor = vendor_known(&pair);
    if (vendor == NULL)
        return;
    error->vendor = vendor;
    if (uva_metadata_get(metadata, KEY_CODE, &pair) == 0)
        error->vendor_code = vendor_number(&pair);
}
