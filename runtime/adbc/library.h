/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers: found, loaded and initialised. */
#ifndef UVA_ADBC_LIBRARY_H
#define UVA_ADBC_LIBRARY_H

#include "adbc/failure.h"

/* Loads a driver by a file, or by a name that is looked for as the ADBC driver
 * manager does, and fills in `out`, which is cleared before. `entrypoint` NULL:
 * from a manifest, or guessed. The library stays loaded: drivers with a runtime
 * of their own (Go, .NET) do not survive that they are unloaded. 0 or an errno,
 * with a failure. Thread: any. */
int uva__adbc_driver_load(const char *driver, const char *entrypoint,
                          struct AdbcDriver *out,
                          struct uva__adbc_failure *failure);

#endif
