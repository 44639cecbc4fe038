/* SPDX-License-Identifier: Apache-2.0 */
/* Dictionaries that were sent: copies of them, and whether a new one has the
 * same values. Which message follows from that is decided in encoder.c. */
#ifndef UVA_IO_IPC_DICTIONARY_H
#define UVA_IO_IPC_DICTIONARY_H

#include "io/ipc_write_body.h"

/* Gives a copy of a body with its buffers, freed by free(). NULL without
 * memory. Thread: any. */
struct uva__ipc_body *
uva__ipc_dictionary_keep(const struct uva__ipc_body *body);

/* Whether `next` begins with the values of `last`; both are of the field `at`,
 * and are not compressed. Values that are null may differ in their bytes; then
 * this may be false although they are equal. Thread: any. */
bool uva__ipc_dictionary_begins(const struct uva__ipc_plan *plan, int32_t at,
                                const struct uva__ipc_body *last,
                                const struct uva__ipc_body *next);

#endif
