/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a producer under test, as a source in two halves. */
#include <stdlib.h>
#include <time.h>

#include "tck_rows.h"
#include "uvarrow/tck.h"

struct plan {
    enum uva_subject_plan plan;
    int64_t batches, at, next;
};

static int plan_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    if (((struct plan *)ctx)->plan == UVA_SUBJECT_FAILS_FIRST)
        return uva_error_set(error, EIO, "there is no schema");
    return tck_schema(out);
}

/* An item is the number of a batch, from 1. */
static int plan_next(void *ctx, void **item, const char **metadata,
                     struct uva_error *error)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    struct plan *p = ctx;

    (void)metadata;
    if (p->plan == UVA_SUBJECT_SLOW)
        (void)nanosleep(&pause, NULL);
    if (p->next < p->batches || p->plan == UVA_SUBJECT_ENDLESS)
        *item = (void *)(intptr_t)++p->next;
    else if (p->plan == UVA_SUBJECT_FAILS)
        return uva_error_set(error, EIO, "the source failed");
    return 0;
}

static int plan_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                        struct uva_error *error)
{
    const int64_t ordinal = (intptr_t)item - 1;
    const struct plan *p = ctx;

    if (out == NULL) /* the data is not wanted */
        return 0;
    if (p->plan == UVA_SUBJECT_TASK_FAILS && ordinal == p->at)
        return uva_error_set(error, EIO, "the batch cannot be made");
    return tck_batch(ordinal, out);
}

struct uva_stream *tck_stream(int32_t plan, int64_t batches, int64_t at)
{
    struct plan *p = plan <= UVA_SUBJECT_TASK_FAILS ? malloc(sizeof(*p)) : NULL;
    struct uva_runtime *rt;

    if (p == NULL || uva_runtime_open(NULL, NULL, &rt, NULL) != 0) {
        free(p);
        return NULL;
    }
    *p = (struct plan){(enum uva_subject_plan)plan, batches, at, 0};
    return uva_stream_from_tasks(
        rt, &(struct uva_task_source){.schema = plan_schema,
                                      .next = plan_next,
                                      .extract = plan_extract,
                                      .free_ctx = free,
                                      .ctx = p});
}
