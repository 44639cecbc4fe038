/* SPDX-License-Identifier: Apache-2.0 */
/* Options as they are kept, and as drivers get them: one after the other, until
 * one is refused. */
#include "adbc/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool uva__pairs_are_whole(const char *const *pairs)
{
    for (; pairs != NULL && pairs[0] != NULL; pairs += 2)
        if (pairs[1] == NULL)
            return false;
    return true;
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
