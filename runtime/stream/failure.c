/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps an error of a stream. The text has the size of a struct uva_error, so
 * it is allocated only with an error: without one, a failure is a code and a
 * pointer. */
#include "stream/failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arrow/vendor_error.h"
#include "base/error.h"
#include "base/memory.h"

static const char ended_silently[] =
    "the producer released its handler without an end or an error (ER-13)";

void uva__failure_set(struct uva__failure *failure,
                      const struct uva_allocator *allocator, int code,
                      const struct uva_error *error, const char *metadata)
{
    struct uva__failure_detail *detail;
    int left_out;

    if (failure->code != 0)
        return;
    failure->code = code != 0 ? code : EIO; /* Clauses: ER-01, ER-06. */
    if ((error == NULL || error->message[0] == '\0') && metadata == NULL)
        return;
    detail = uva__memory_new(allocator, sizeof(*detail));
    if (detail == NULL)
        return;
    if (error != NULL)
        detail->error = *error;
    detail->error.code = failure->code;
    if (metadata != NULL)
        left_out = uva__metadata_copy(allocator, metadata, &detail->metadata);
    else
        left_out = uva__vendor_error_to_metadata(allocator, &detail->error,
                                                 &detail->metadata);
    (void)left_out; /* there is no metadata then */
    failure->detail = detail;
}

void uva__failure_format_args(struct uva__failure *failure,
                              const struct uva_allocator *allocator, int code,
                              const char *format, va_list args)
{
    struct uva_error error = {0};

    (void)vsnprintf(error.message, sizeof(error.message), format, args);
    uva__failure_set(failure, allocator, code, &error, NULL);
}

void uva__failure_format(struct uva__failure *failure,
                         const struct uva_allocator *allocator, int code,
                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    uva__failure_format_args(failure, allocator, code, format, args);
    va_end(args);
}

void uva__failure_copy(const struct uva__failure *from, struct uva__failure *to,
                       const struct uva_allocator *allocator)
{
    uva__failure_set(to, allocator, from->code, uva__failure_error(from), NULL);
}

void uva__failure_move(struct uva__failure *from, struct uva__failure *to,
                       const struct uva_allocator *allocator)
{
    uva__failure_fini(to, allocator);
    *to = *from;
    *from = (struct uva__failure){0};
}

void uva__failure_name(struct uva__failure *failure,
                       const struct uva_allocator *allocator, const char *name)
{
    struct uva_error error = {0};

    if (failure->code == 0 || name == NULL)
        return;
    if (failure->detail == NULL)
        failure->detail = uva__memory_new(allocator, sizeof(*failure->detail));
    if (failure->detail == NULL)
        return;
    (void)uva__failure_get(failure, &error);
    uva__error_prefix(&error, name);
    failure->detail->error = error;
}

const struct uva_error *uva__failure_error(const struct uva__failure *failure)
{
    const struct uva__failure_detail *detail = failure->detail;

    return detail != NULL && detail->error.message[0] != '\0' ? &detail->error
                                                              : NULL;
}

void uva__failure_add_vendor(const struct uva__failure *failure,
                             struct uva_error *error)
{
    const struct uva_error *known = uva__failure_error(failure);

    if (known == NULL || known->code != error->code)
        return;
    error->vendor = known->vendor;
    error->vendor_code = known->vendor_code;
}

int uva__failure_end_silently(struct uva_error *error)
{
    return uva_error_set(error, ECONNABORTED, "%s", ended_silently);
}

bool uva__failure_is_silent_end(const struct uva__failure *failure)
{
    return failure->code == ECONNABORTED &&
           strcmp(uva__failure_message(failure), ended_silently) == 0;
}

const char *uva__failure_metadata(const struct uva__failure *failure)
{
    return failure->detail != NULL ? failure->detail->metadata.block : NULL;
}

const char *uva__failure_message(const struct uva__failure *failure)
{
    const struct uva_error *error = uva__failure_error(failure);

    return error != NULL ? error->message : strerror(failure->code);
}

int uva__failure_get(const struct uva__failure *failure,
                     struct uva_error *error)
{
    const struct uva_error *known = uva__failure_error(failure);

    if (error == NULL || failure->code == 0)
        return failure->code;
    if (known == NULL)
        return uva_error_set(error, failure->code, "%s",
                             strerror(failure->code));
    *error = *known;
    return failure->code;
}

void uva__failure_fini(struct uva__failure *failure,
                       const struct uva_allocator *allocator)
{
    struct uva__failure_detail *detail = failure->detail;

    if (detail != NULL)
        uva__metadata_fini(&detail->metadata, allocator, NULL);
    uva__memory_free(allocator, detail, sizeof(*detail));
    *failure = (struct uva__failure){0};
}
