/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the server, as JSON. */
#ifndef UVA_SERVE_STATE_H
#define UVA_SERVE_STATE_H

#include <jansson.h>

#include "site.h"

/* Returns all of it, a reference; NULL: there is no memory. Thread: loop, as
 * all here. */
json_t *uva__state_json(const struct uva__site *site);

/* The same of the queries under way, with their texts. */
json_t *uva__state_queries_json(const struct uva__answers *answers);

#endif
