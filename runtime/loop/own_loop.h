/* SPDX-License-Identifier: Apache-2.0 */
/* A libuv loop that the library owns. The first loop of a process opens
 * descriptors for which libuv ends the process where the system refuses them.
 */
#ifndef UVA_LOOP_OWN_LOOP_H
#define UVA_LOOP_OWN_LOOP_H

#include <uv.h>

#include "uvarrow/base.h"

/* As uv_loop_init(), after as many descriptors were tried as that may open.
 * 0; EMFILE, ENFILE, ENOMEM or another code of the system, and there is no
 * loop. Other threads may take the tried descriptors meanwhile. Thread: any. */
UVA_MUST_CHECK int uva__own_loop_init(uv_loop_t *loop);

#endif
