/* SPDX-License-Identifier: Apache-2.0 */
/* Errors go to standard error: the output of a program may be data. */
#include "tell.h"

#include <stdio.h>

int tell(const struct uva_error *error)
{
    fprintf(stderr, "%s\n", error->message);
    return 1;
}

void tell_end(void *code, const struct uva_outcome *outcome)
{
    *(int *)code = outcome->error.code;
    if (outcome->error.code != 0)
        (void)tell(&outcome->error);
}
