/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that the parser of JSON lacked memory. It reports that as it reports
 * a malformed text; and it can even drop a character of a string and go on, so
 * that another query would be executed. */
#ifndef UVA_SERVE_JSON_MEMORY_H
#define UVA_SERVE_JSON_MEMORY_H

#include <stdbool.h>

/* Has jansson allocate here; once for the process, before it is used.
 * Thread: loop. */
void uva__json_memory_init(void);

/* Forgets the failures on this thread. Thread: any. */
void uva__json_memory_reset(void);

/* Returns whether an allocation has failed on this thread since then.
 * Thread: any. */
bool uva__json_memory_has_failed(void);

#endif
