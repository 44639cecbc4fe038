/* SPDX-License-Identifier: Apache-2.0 */
/* The text is as large as an error can be, so it is allocated only when there
 * is one: streams that are well carry three words. */
#include "stream/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/metadata.h"

void uva__failure_set(struct uva__failure *failure,
                      const struct uva_allocator *allocator, int code,
                      const struct uva_error *error, const char *metadata)
{
    if (failure->code != 0)
        return;
    failure->code = code != 0 ? code : EIO; /* ER-01, ER-06 */
    if (error != NULL && error->message[0] != '\0')
        failure->detail = uva__memory_new(allocator, sizeof(*error));
    if (failure->detail != NULL) {
        *failure->detail = *error;
        failure->detail->code = failure->code;
    }
    if (uva__metadata_copy(allocator, metadata, &failure->metadata,
                           &failure->metadata_size) != 0)
        failure->metadata = NULL;
}

void uva__failure_say(struct uva__failure *failure,
                      const struct uva_allocator *allocator, int code,
                      const char *format, ...)
{
    struct uva_error error = {0};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error.message, sizeof(error.message), format, args);
    va_end(args);
    uva__failure_set(failure, allocator, code, &error, NULL);
}

void uva__failure_move(struct uva__failure *from, struct uva__failure *to,
                       const struct uva_allocator *allocator)
{
    uva__failure_fini(to, allocator);
    *to = *from;
    *from = (struct uva__failure){0};
}

const char *uva__failure_message(const struct uva__failure *failure)
{
    return failure->detail != NULL ? failure->detail->message
                                   : strerror(failure->code);
}

int uva__failure_get(const struct uva__failure *failure,
                     struct uva_error *error)
{
    if (error == NULL || failure->code == 0)
        return failure->code;
    if (failure->detail != NULL)
        *error = *failure->detail;
    else
        (void)uva_error_set(error, failure->code, "%s",
                            strerror(failure->code));
    return failure->code;
}

void uva__failure_fini(struct uva__failure *failure,
                       const struct uva_allocator *allocator)
{
    uva__memory_free(allocator, failure->detail, sizeof(*failure->detail));
    uva__memory_free(allocator, failure->metadata, failure->metadata_size);
    *failure = (struct uva__failure){0};
}
