/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the role producer that do something out of the way. */
#include "tck/cases.h"
const struct uva__tck_table uva__producer_probes = {0};
const struct uva__tck_table uva__producer_unseen = {0};
const struct uva__tck_table uva__handler_cases = {0};
const struct uva__tck_table uva__handler_unseen = {0};
const struct uva__tck_table uva__stream_cases = {0};
const struct uva__tck_table uva__stream_unseen = {0};
