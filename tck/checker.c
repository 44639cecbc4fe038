/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the protocol checker to a case run. */
#include "tck/checker.h"

#include <stdlib.h>

/* The party under test. Lives as long as the check. */
struct charge {
    struct uva__trial *trial;
    enum uva_party party;
};

static void charge_report(void *ctx, const struct uva_breach *breach)
{
    const struct charge *charge = ctx;

    if (breach->severity == UVA_SEVERITY_NOTE ||
        (breach->party != charge->party && breach->party != UVA_PARTY_EITHER))
        uva__trial_note(charge->trial, "   (%s: %s)", breach->clause,
                        breach->message);
    else
        uva__trial_breach(charge->trial, breach->clause, "%s", breach->message);
}

static struct uva_check charge_new(struct uva__trial *trial,
                                   enum uva_party party)
{
    struct charge *charge = uva__trial_alloc(trial, sizeof(*charge));

    *charge = (struct charge){trial, party};
    return (struct uva_check){.report = charge_report,
                              .free_ctx = free,
                              .ctx = charge,
                              .name = "subject",
                              .deep = true,
                              .slow_extract_ms = 500};
}

struct ArrowAsyncDeviceStreamHandler *
uva__checker_front(struct uva__trial *trial, enum uva_party party,
                   struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncDeviceStreamHandler *front = NULL;
    struct uva_check how;
    struct uva_error error;

    if (!trial->checked)
        return handler;
    how = charge_new(trial, party);
    if (uva_check_handler(handler, &how, &front, &error) != 0)
        uva__trial_fail(trial, "it cannot be checked: %s", error.message);
    return front;
}

void uva__checker_wrap(struct uva__trial *trial,
                       struct ArrowDeviceArrayStream *stream)
{
    struct uva_check how;
    struct uva_error error;

    if (!trial->checked)
        return;
    how = charge_new(trial, UVA_PARTY_PRODUCER);
    if (uva_check_blocking(stream, &how, &error) != 0)
        uva__trial_fail(trial, "it cannot be checked: %s", error.message);
}

void uva__checker_look(struct uva__trial *trial,
                       const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array)
{
    const struct uva_check how = charge_new(trial, UVA_PARTY_PRODUCER);

    (void)uva_check_array(schema, array, &how, NULL);
}
