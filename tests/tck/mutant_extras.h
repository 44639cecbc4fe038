/* SPDX-License-Identifier: Apache-2.0 */
/* More ways to break a clause, which the suite detects and a check between two
 * peers does not: wrong data, false outcomes, memory left behind. */
#ifndef UVA_TCK_MUTANT_EXTRAS_H
#define UVA_TCK_MUTANT_EXTRAS_H

#include "support/reference_mutant.h"
#include "support/reference_stream.h"
#include "uvarrow/tck.h"

const struct reference_mutant *mutant_producer_extras(int *count);
const struct reference_mutant *mutant_consumer_extras(int *count);
const struct stream_mutant *mutant_stream_extras(int *count);

/* The acts of a mutant on a handler, and the false outcome it reports. */
void mutant_handler(const struct reference_mutant *mutant,
                    struct ArrowAsyncDeviceStreamHandler *handler);
void mutant_outcome(const struct reference_mutant *mutant,
                    struct uva_subject_outcome *out);

#endif
