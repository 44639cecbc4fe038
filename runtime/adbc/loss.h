/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a failure, besides its query: each driver states them in its
 * own way. */
#ifndef UVA_ADBC_LOSS_H
#define UVA_ADBC_LOSS_H

#include "uvarrow/adbc_abi.h"

enum uva__loss {
    UVA__LOSS_NONE = 0,
    UVA__LOSS_CONNECTION, /* it is dead, and so may be others to the server */
    UVA__LOSS_UNUSED,     /* so, too, and it was seen before anything was
                             executed */
    UVA__LOSS_DATABASE    /* no connection to it can be used any more */
};

/* Reads a driver's report of a failure, which is not the text of a query.
 * Thread: any. */
enum uva__loss uva__loss_of(AdbcStatusCode status,
                            const struct AdbcError *error);

#endif
