/* SPDX-License-Identifier: Apache-2.0 */
/* Sources for uvarrow's own streams that follow a plan of the test suite: a
 * blocking stream, a source of tasks, arrays in memory, a pushing thread. */
#ifndef UVA_TCK_SUBJECT_SOURCE_H
#define UVA_TCK_SUBJECT_SOURCE_H

#include "tck/subject_data.h"
#include "uvarrow/uvarrow.h"

/* The plan to follow. Copied. */
struct subject_plan {
    struct subject_books *books; /* borrows; never freed */
    enum uva_subject_plan plan;
    int64_t batches;
    int64_t at;
};

/* Return a stream, or NULL if this kind of source cannot follow the plan. */
struct uva_stream *subject_from_device_stream(struct uva_runtime *runtime,
                                              const struct subject_plan *plan);
struct uva_stream *subject_from_tasks(struct uva_runtime *runtime,
                                      const struct subject_plan *plan);
struct uva_stream *subject_from_arrays(struct uva_runtime *runtime,
                                       const struct subject_plan *plan);
struct uva_stream *subject_from_pusher(struct uva_runtime *runtime,
                                       const struct subject_plan *plan);

#endif
