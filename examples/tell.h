/* SPDX-License-Identifier: Apache-2.0 */
/* What programs do with an error: they print it. */
#ifndef EXAMPLES_TELL_H
#define EXAMPLES_TELL_H

#include "uvarrow/uvarrow.h"

/* Prints the error. Returns 1, for the exit code of a program. */
int tell(const struct uva_error *error);

/* An on_done: prints the error of the stream, and stores its code in an int. */
void tell_end(void *code, const struct uva_outcome *outcome);

#endif
