/* SPDX-License-Identifier: Apache-2.0 */
/* One table. The names are those of the clauses that the tests go by. */
#include "adapters/breaches.h"

#include <string.h>

static const struct {
    const char *clause;
    const char *text;
} BREACHES[] = {
    {"AH-03", "on_schema came before the producer was set"},
    {"AH-05", "on_schema must come first, and once"},
    {"AH-07", "on_schema came without a schema"},
    {"AH-08", "only release may follow a refused schema"},
    {"AH-11", "only release may follow the end"},
    {"AH-12", "release came without an end or an error before it"},
    {"AH-17", "only release may follow an error"},
    {"AH-21", "release came twice"},
    {"AH-22", "nothing may follow release"},
    {"AH-24", "a copy of the handler was called"},
    {"AH-33", "an error followed the end, though no extraction failed"},
    {"AP-01", "the producer has no device type"},
    {"AP-04", "a callback came inside request"},
    {"AP-05", "release came inside request"},
    {"AP-06", "a task came that was not requested"},
    {"AP-13", "a callback other than on_error came inside cancel"},
    {"AP-28", "request or cancel does not return: it is left behind"},
    {"AT-01", "a task cannot be extracted"},
    {"AT-05", "an extraction said success and gave no array"},
    {"AT-16", "a batch is of another device type than its stream"},
    {"AT-17", "a batch does not fit the schema"},
    {"ER-06", "on_error came with code 0"},
    {"MD-05", "metadata is malformed: left out"},
    {"TH-01", "callbacks overlap"},
};

const char *uva__breaches_text(const char *clause)
{
    size_t i;

    /* not covered: all that can be found are here */
    for (i = 0; i < sizeof(BREACHES) / sizeof(BREACHES[0]); i++)
        if (strcmp(BREACHES[i].clause, clause) == 0)
            return BREACHES[i].text;
    return "a rule was broken"; /* not covered: the same */
}

void uva__breaches_count(struct uva__hub *hub, const char *clause)
{
    if (!uva__hub_is_shut(hub))
        uva__hub_breach(hub, NULL, clause, uva__breaches_text(clause));
    else
        uva__word_add(&hub->counts.peer_breaches, 1);
}
