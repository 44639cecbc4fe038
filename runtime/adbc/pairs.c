/* SPDX-License-Identifier: Apache-2.0 */
/* Options as they are kept, and as drivers get them: one after the other, until
 * one is refused. */
#include "adbc/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t text_size(const char *text, size_t size)
{
    return size > 0 || text == NULL ? size : strlen(text);
}

bool uva__pairs_are_texts(const struct uva_pair *given)
{
    for (; given != NULL && given->key != NULL; given++)
        if (memchr(given->key, '\0', given->key_size) != NULL ||
            (given->value_size > 0 &&
             memchr(given->value, '\0', given->value_size) != NULL))
            return false;
    return true;
}

/* Adds a C string to the block that is filled in at `to`. */
static char *text_put(char *to, const char *text, size_t size)
{
    if (size > 0)
        memcpy(to, text, size);
    to[size] = '\0';
    return to + size + 1;
}

char **uva__pairs_read(const struct uva_pair *given)
{
    static const struct uva_pair none = {0};
    const struct uva_pair *const first = given != NULL ? given : &none;
    size_t count = 0, size = 0;
    char **copy, *text;

    for (const struct uva_pair *p = first; p->key != NULL; p++, count += 2)
        size += text_size(p->key, p->key_size) +
                text_size(p->value, p->value_size) + 2;
    copy = malloc((count + 1) * sizeof(*copy) + size);
    if (copy == NULL)
        return NULL;
    text = (char *)&copy[count + 1];
    for (size_t i = 0; i < count; i += 2) {
        const struct uva_pair *const p = &first[i / 2];

        copy[i] = text;
        copy[i + 1] = text_put(text, p->key, text_size(p->key, p->key_size));
        text =
            text_put(copy[i + 1], p->value, text_size(p->value, p->value_size));
    }
    copy[count] = NULL;
    return copy;
}

char **uva__pairs_copy(const char *const *pairs)
{
    size_t count = 0, size = 0, length;
    char **copy, *text;

    for (; pairs != NULL && pairs[count] != NULL; count++)
        size += strlen(pairs[count]) + 1;
    copy = malloc((count + 1) * sizeof(*copy) + size);
    if (copy == NULL)
        return NULL;
    text = (char *)&copy[count + 1];
    for (size_t i = 0; i < count; i++, text += length) {
        length = strlen(pairs[i]) + 1;
        copy[i] = memcpy(text, pairs[i], length);
    }
    copy[count] = NULL;
    return copy;
}

char *uva__pairs_text(const char *text, size_t size)
{
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

char **uva__pairs_find(char **pairs, const char *key)
{
    for (; pairs[0] != NULL; pairs += 2)
        if (strcmp(pairs[0], key) == 0)
            return &pairs[1];
    return NULL;
}

int uva__pairs_set(char *const *pairs, uva__pairs_set_fn *set, void *object,
                   const struct AdbcDriver *driver, const char *what,
                   struct uva__adbc_failure *failure)
{
    char text[160];
    int code = 0;

    for (; code == 0 && pairs[0] != NULL; pairs += 2) {
        struct AdbcError error =
            uva__adbc_error((struct AdbcDriver *)(uintptr_t)driver);

        (void)snprintf(text, sizeof(text),
                       "the driver refuses the option %.80s of the %s",
                       pairs[0], what);
        code = uva__adbc_failure_take(failure, text,
                                      set(object, pairs[0], pairs[1], &error),
                                      &error, driver);
    }
    return code;
}

void uva__pairs_offer(char **pairs, uva__pairs_set_fn *set, void *object,
                      const struct AdbcDriver *driver)
{
    char **rest = pairs;

    for (; pairs[0] != NULL; pairs += 2) {
        struct AdbcError error =
            uva__adbc_error((struct AdbcDriver *)(uintptr_t)driver);

        if (set(object, pairs[0], pairs[1], &error) != ADBC_STATUS_OK) {
            rest[0] = pairs[0];
            rest[1] = pairs[1];
            rest += 2;
        }
        uva__adbc_error_drop(&error);
    }
    rest[0] = NULL;
}
