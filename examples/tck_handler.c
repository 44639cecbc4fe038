/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of Arrow's asynchronous interface, put to the test: this file
 * gives the test suite its handler, and reports what has become of the stream.
 *
 *     uvarrow tck libexample_tck_handler.so
 */
#include <stdlib.h>

#include "tck_consumer.h"

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* The last manner of tck.h when this was written: later ones are not asked for.
 * Of those before it, all but two are answered by UVA_SUBJECT_CANNOT below. */
int32_t uva_subject_knows(int32_t what)
{
    return what == UVA_SUBJECT_MANNERS ? UVA_SUBJECT_TAKES_BARE
                                       : UVA_SUBJECT_CANNOT;
}

int32_t uva_subject_consume(int32_t manner, int64_t k, int64_t *id,
                            struct ArrowAsyncDeviceStreamHandler **handler)
{
    struct consumer *c = calloc(1, sizeof(*c));
    int code;

    if (c == NULL || sem_init(&c->has_handler, 0, 0) != 0)
        return ENOMEM;
    c->k = k;
    c->cancels = manner == UVA_SUBJECT_CANCELS;
    c->outcome.tag_size = -1; /* not reported */
    code = manner == UVA_SUBJECT_TAKES_ALL || c->cancels ? consumer_start(c)
                                                         : UVA_SUBJECT_CANNOT;
    if (code != 0) {
        free(c);
        return code;
    }
    *id = (intptr_t)c;
    *handler = c->handler;
    return 0;
}

int32_t uva_subject_report(int64_t id, struct uva_subject_outcome *out)
{
    const struct consumer *c = (const struct consumer *)(intptr_t)id;

    if (!atomic_load(&c->is_over))
        return EAGAIN;
    *out = c->outcome;
    return 0;
}
