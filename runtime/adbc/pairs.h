/* SPDX-License-Identifier: Apache-2.0 */
/* Options of drivers, of a program or kept: key, value, key, value, ...,
 * NULL. */
#ifndef UVA_ADBC_PAIRS_H
#define UVA_ADBC_PAIRS_H

#include "adbc/failure.h"
#include "uvarrow/base.h"

/* Whether no key or value has a NUL, as drivers take C strings. `given` may be
 * NULL, as below. */
bool uva__pairs_are_texts(const struct uva_pair *given);

/* Copies the options of a program, with the texts, into one block, which the
 * caller frees. NULL without memory. */
char **uva__pairs_read(const struct uva_pair *given);

/* Copies texts that are kept in the same way. NULL: gives no texts. */
char **uva__pairs_copy(const char *const *pairs);

/* Copies the first `size` characters of a text, which the caller frees. NULL
 * without memory. */
char *uva__pairs_text(const char *text, size_t size);

/* Gives the place of the value of a key, or NULL. */
char **uva__pairs_find(char **pairs, const char *key);

/* Sets each option by `set`, which belongs to `what`. 0 or an errno, with a
 * failure that names the option. */
typedef AdbcStatusCode uva__pairs_set_fn(void *object, const char *key,
                                         const char *value,
                                         struct AdbcError *error);
int uva__pairs_set(char *const *pairs, uva__pairs_set_fn *set, void *object,
                   const struct AdbcDriver *driver, const char *what,
                   struct uva__adbc_failure *failure);

/* Sets the options that `set` takes, and leaves the refused options in `pairs`.
 */
void uva__pairs_offer(char **pairs, uva__pairs_set_fn *set, void *object,
                      const struct AdbcDriver *driver);

#endif
