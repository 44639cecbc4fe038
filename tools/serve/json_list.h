/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of JSON whose members may lack memory. */
#ifndef UVA_SERVE_JSON_LIST_H
#define UVA_SERVE_JSON_LIST_H

#include <jansson.h>
#include <stddef.h>

/* Returns a list, which it takes, if `code` of its members is 0; otherwise
 * frees it, and returns NULL. Thread: any. */
static inline json_t *uva__json_list_end(json_t *list, int code)
{
    if (code == 0)
        return list;
    json_decref(list);
    return NULL;
}

#endif
