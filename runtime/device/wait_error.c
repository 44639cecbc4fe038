/* SPDX-License-Identifier: Apache-2.0 */
/* Each text begins with the name of the failed call, which
 * arrow/vendor_error.c reads from there. */
#include "device/wait_error.h"

#include <errno.h>

#include "arrow/vendor_error.h"

int uva__wait_error_timeout(const struct uva_watch *watch, int64_t timeout_ms,
                            struct uva_error *error)
{
    const struct uva__vendor_info *vendor_info = watch->backend->vendor_info;
    const int notified = (int)(int64_t)uva__atomic64_load(&watch->pending);

    if (vendor_info == NULL)
        return uva_error_set(error, ETIMEDOUT,
                             "%s: an event was not complete within %lld ms",
                             watch->backend->ops->name, (long long)timeout_ms);
    return uva__vendor_error_set(
        error, ETIMEDOUT, vendor_info->vendor, notified,
        "%s failed to find an event complete within %lld "
        "ms: it returned %d",
        vendor_info->query_call, (long long)timeout_ms, notified);
}

int uva__wait_error_notified(const struct uva_watch *watch,
                             struct uva_error *error)
{
    return uva__vendor_error_set(
        error, watch->report.code, watch->report.vendor,
        watch->report.vendor_code,
        "callback failed with %d: so has an event of %s",
        watch->report.vendor_code, watch->backend->ops->name);
}

int uva__wait_error_cancelled(struct uva_error *error)
{
    return uva_error_set(error, ECANCELED, "the wait was cancelled");
}
