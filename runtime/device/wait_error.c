/* SPDX-License-Identifier: Apache-2.0 */
/* The failed call stands at the start of each text, where arrow/vendor_error reads it.
 */
#include "device/wait_error.h"

#include <errno.h>

#include "arrow/vendor_error.h"

int uva__notice_late(const struct uva_watch *watch, int64_t timeout_ms,
                     struct uva_error *error)
{
    const struct uva__dialect *dialect = watch->backend->dialect;
    const int said = (int)(int64_t)uva__word_load(&watch->pending);

    if (dialect == NULL)
        return uva_error_set(error, ETIMEDOUT,
                             "%s: an event was not complete within %lld ms",
                             watch->backend->ops->name, (long long)timeout_ms);
    return uva__vendor_say(error, ETIMEDOUT, dialect->vendor, said,
                           "%s failed to find an event complete within %lld "
                           "ms: it says %d",
                           dialect->asks, (long long)timeout_ms, said);
}

int uva__notice_told(const struct uva_watch *watch, struct uva_error *error)
{
    return uva__vendor_say(error, watch->told.code, watch->told.vendor,
                           watch->told.vendor_code,
                           "callback failed with %d: so has an event of %s",
                           watch->told.vendor_code, watch->backend->ops->name);
}

int uva__notice_cancelled(struct uva_error *error)
{
    return uva_error_set(error, ECANCELED, "the wait was cancelled");
}
