/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the protocol checker to a case run. */
#include "tck/checker.h"

#include <stdlib.h>

#include "check/handler_check.h"

/* The party under test. Lives as long as the check. */
struct checked_party {
    struct uva__case_run *run;
    enum uva_party party;
};

static void checked_party_report(void *ctx, const struct uva_breach *breach)
{
    const struct checked_party *checked_party = ctx;

    if (breach->severity == UVA_SEVERITY_NOTE ||
        (breach->party != checked_party->party &&
         breach->party != UVA_PARTY_EITHER))
        uva__case_run_note(checked_party->run, "   (%s: %s)", breach->clause,
                           breach->message);
    else if (breach->severity == UVA_SEVERITY_WARNING)
        uva__case_run_shortfall(checked_party->run, breach->clause, "%s",
                                breach->message);
    else
        uva__case_run_breach(checked_party->run, breach->clause, "%s",
                             breach->message);
}

static struct uva_check checked_party_new(struct uva__case_run *run,
                                          enum uva_party party)
{
    struct checked_party *checked_party =
        uva__case_run_alloc(run, sizeof(*checked_party));

    *checked_party = (struct checked_party){run, party};
    return (struct uva_check){.report = checked_party_report,
                              .free_ctx = free,
                              .ctx = checked_party,
                              .name = "subject",
                              .deep = true};
}

struct ArrowAsyncDeviceStreamHandler *
uva__checker_front(struct uva__case_run *run, enum uva_party party,
                   struct ArrowAsyncDeviceStreamHandler *handler)
{
    static const struct uva__check_times times = {.slow_extract_ms = 500};
    struct ArrowAsyncDeviceStreamHandler *front = NULL;
    struct uva_check options;
    struct uva_error error;

    if (!run->checked)
        return handler;
    options = checked_party_new(run, party);
    if (uva__handler_check_within(&times, handler, &options, &front, &error) !=
        0)
        uva__case_run_fail(run, "it cannot be checked: %s", error.message);
    return front;
}

void uva__checker_wrap(struct uva__case_run *run,
                       struct ArrowDeviceArrayStream *stream)
{
    struct uva_check options;
    struct uva_error error;

    if (!run->checked)
        return;
    options = checked_party_new(run, UVA_PARTY_PRODUCER);
    if (uva_check_device_stream(stream, &options, &error) != 0)
        uva__case_run_fail(run, "it cannot be checked: %s", error.message);
}

void uva__checker_check_array(struct uva__case_run *run,
                              const struct ArrowSchema *schema,
                              const struct ArrowDeviceArray *array)
{
    const struct uva_check options = checked_party_new(run, UVA_PARTY_PRODUCER);

    (void)uva_check_array(schema, array, &options, NULL);
}
