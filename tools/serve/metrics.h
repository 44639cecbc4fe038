/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the server as Prometheus reads it. */
#ifndef UVA_SERVE_METRICS_H
#define UVA_SERVE_METRICS_H

#include "bytes.h"
#include "site.h"

/* The media type of the text. */
#define UVA__METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends the metrics. Returns 0 or ENOMEM. Thread: loop. */
UVA_MUST_CHECK int uva__metrics_add(const struct uva__site *site,
                                    struct uva__bytes *out);

#endif
