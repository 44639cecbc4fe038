/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that print what comes, of streams of readings. They do not use
 * `ctx`. */
#ifndef EXAMPLES_SHOW_H
#define EXAMPLES_SHOW_H

#include "uvarrow/uvarrow.h"

/* Prints how many readings a batch has, and its first one: an on_batch. */
int show_batch(void *ctx, struct uva_batch *batch);

/* Prints how a stream has ended: an on_done. */
void show_end(void *ctx, const struct uva_outcome *outcome);

#endif
