/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the protocol checker between a subject and the suite. A violation by the
 * subject is a breach of the case. A violation by the suite itself, which
 * breaks rules where a case requires it, becomes a line of the transcript. */
#ifndef UVA_TCK_CHECKER_H
#define UVA_TCK_CHECKER_H

#include "tck/case_run.h"
#include "uvarrow/check.h"

/* Returns the handler to hand out in place of `handler`; this is `handler`
 * itself, unless the run is checked. `party` is the subject's role. Thread:
 * any. */
struct ArrowAsyncDeviceStreamHandler *
uva__checker_front(struct uva__case_run *run, enum uva_party party,
                   struct ArrowAsyncDeviceStreamHandler *handler);

/* Puts a check around the subject's stream, if the run is checked. Thread:
 * any. */
void uva__checker_wrap(struct uva__case_run *run,
                       struct ArrowDeviceArrayStream *stream);

/* Checks a single array of the subject, whether or not the run is checked.
 * Thread: any. */
void uva__checker_check_array(struct uva__case_run *run,
                              const struct ArrowSchema *schema,
                              const struct ArrowDeviceArray *array);

#endif
