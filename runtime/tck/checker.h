/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol checker, put between a subject and the suite: what it reports of
 * the subject is a breach of the case. What it says of the suite itself, which
 * breaks rules where a case has it do so, is a line of the transcript. */
#ifndef UVA_TCK_CHECKER_H
#define UVA_TCK_CHECKER_H

#include "tck/trial.h"
#include "uvarrow/check.h"

/* The handler to hand out in place of `handler`: itself, unless the trial is
 * checked. `party` is the subject's. Thread: any. */
struct ArrowAsyncDeviceStreamHandler *
uva__checker_front(struct uva__trial *trial, enum uva_party party,
                   struct ArrowAsyncDeviceStreamHandler *handler);

/* Puts a check around the subject's stream, if the trial is checked.
 * Thread: any. */
void uva__checker_wrap(struct uva__trial *trial,
                       struct ArrowDeviceArrayStream *stream);

/* Has an array of the subject's looked at alone, checked or not. Thread: any.
 */
void uva__checker_look(struct uva__trial *trial,
                       const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array);

#endif
