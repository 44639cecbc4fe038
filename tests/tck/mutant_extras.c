/* SPDX-License-Identifier: Apache-2.0 */
/* The extra mutants: first what they do, then the tables. */
#include "tck/mutant_extras.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct reference_producer *watched;

void mutant_watch(struct reference_producer *producer)
{
    watched = producer;
}

int64_t mutant_made(void)
{
    return watched != NULL ? watched->next : 0;
}

void mutant_outcome(const struct reference_mutant *mutant,
                    struct uva_subject_outcome *out)
{
    (void)mutant;
    (void)out;
}

const struct reference_mutant *mutant_producer_extras(int *count)
{
    *count = 0;
    return NULL;
}

const struct reference_mutant *mutant_consumer_extras(int *count)
{
    *count = 0;
    return NULL;
}

const struct stream_mutant *mutant_stream_extras(int *count)
{
    *count = 0;
    return NULL;
}
