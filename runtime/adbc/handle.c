/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls for pools and sessions. */
#include "adbc/handle.h"

void uva_adbc_pool_release(struct uva_adbc_pool *pool)
{
    if (pool != NULL && !uva__handle(pool)->is_forked(pool))
        uva__handle(pool)->release(pool);
}

void uva_adbc_pool_get_stats(const struct uva_adbc_pool *pool,
                             struct uva_adbc_pool_stats *out)
{
    *out = (struct uva_adbc_pool_stats){0};
    if (pool != NULL && !uva__handle(pool)->is_forked(pool))
        uva__handle(pool)->get_stats(pool, out);
}
