/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers in the environments of people: of Python, of conda, and what `dbc`
 * installs there. Files are looked at; no Python is started. */
#ifndef UVA_ADBC_ENVIRONMENT_H
#define UVA_ADBC_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the driver `name`, and gives the path of its manifest or of its
 * library in `out`, which has room for `size` bytes. Whether there is one.
 * Thread: any. */
bool uva__adbc_environment_find(const char *name, char *out, size_t size);

/* Loads the library of Python that the module at `path` needs, as DuckDB's
 * driver is a module. Returns false for another file, and without that
 * library, whose name is in `needed` then. Thread: any. */
bool uva__adbc_environment_load_python(const char *path, char *needed,
                                       size_t size);

/* Writes where uva__adbc_environment_find() looks: "$VIRTUAL_ENV (not set), the
 * Python of PATH (/usr/bin/python3)". Thread: any. */
void uva__adbc_environment_places(char *out, size_t size);

/* Writes the commands that install a driver, one of which is enough. Thread:
 * any. */
void uva__adbc_environment_installs(const char *name, char *out, size_t size);

#endif
