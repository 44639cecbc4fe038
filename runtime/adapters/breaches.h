/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that a foreign producer can break: in words, and counted. */
#ifndef UVA_ADAPTERS_BREACHES_H
#define UVA_ADAPTERS_BREACHES_H

#include "uv/hub.h"

/* What breaking `clause` means. Static text, never NULL. Thread: any. */
const char *uva__breaches_text(const char *clause);

/* Counts a breach, and logs it while the runtime is open: what the log borrows
 * may be gone after that. Thread: any. */
void uva__breaches_count(struct uva__hub *hub, const char *clause);

#endif
