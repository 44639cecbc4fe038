/* SPDX-License-Identifier: Apache-2.0 */
/* The common lines of the handlers of consumers, of stages and for foreign
 * producers; each of these handlers is a separate object. */
#include "stream/handler_base.h"

#include <errno.h>
#include <string.h>

static const char ENDED_SILENTLY[] =
    "the producer released its handler without an end or an error (ER-13)";

void uva__handler_base_keep_error(struct uva__failure *failure,
                                  const struct uva__producer *driver, int code,
                                  const char *message, const char *metadata)
{
    struct uva_error error;

    (void)uva_error_set(&error, code, "%s", message);
    uva__failure_add_vendor(uva__producer_failure(driver), &error);
    uva__failure_set(failure, &driver->rt->allocator, code, &error, metadata);
}

int uva__handler_base_ended_silently(struct uva_error *error)
{
    return uva_error_set(error, ECONNABORTED, "%s", ENDED_SILENTLY);
}

bool uva__handler_base_has_ended_silently(const struct uva__failure *failure)
{
    return failure->code == ECONNABORTED &&
           strcmp(uva__failure_message(failure), ENDED_SILENTLY) == 0;
}
