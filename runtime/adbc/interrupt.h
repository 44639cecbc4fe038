/* SPDX-License-Identifier: Apache-2.0 */
/* The way to end a query of a driver without a cancel: a call of its database.
 */
#ifndef UVA_ADBC_INTERRUPT_H
#define UVA_ADBC_INTERRUPT_H

#include "adbc/sqlite/abi.h"
#include "uvarrow/adbc_abi.h"

/* Loads the extension into a connection of a driver that loads extensions,
 * as adbc/known.h has it, and gives its function there, which is valid until
 * the connection is released. Zeroes if the extension is not installed, or the
 * driver refuses it. Whether other extensions can be loaded is as before.
 * Thread: a worker. */
struct uva__interrupt uva__interrupt_find(struct AdbcConnection *connection);

#endif
