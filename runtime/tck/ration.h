/* SPDX-License-Identifier: Apache-2.0 */
/* What a feeder gives to a consumer: schemas and arrays that watch what is done
 * to them. Each lies on pages of its own, which go away with its release, so
 * that reading it later is a crash. */
#ifndef UVA_TCK_RATION_H
#define UVA_TCK_RATION_H

#include "tck/trial.h"

/* How an array differs from what it should be. */
enum uva__ration_kind {
    UVA__RATION_PLAIN = 0,
    UVA__RATION_ALIEN,  /* of a device that nobody knows */
    UVA__RATION_FUTURE, /* with something in its reserved bytes */
    UVA__RATION_FIRST   /* device_id 0, as old peers say for the CPU */
};

/* Books of all that was given. */
struct uva__rations {
    struct uva__trial *trial;
    struct uva__word given;    /* arrays and schemas */
    struct uva__word released; /* of them */
};

/* Gives batch `ordinal`. All 128 bytes are written. Thread: any. */
void uva__ration_array(struct uva__rations *books, int64_t ordinal,
                       enum uva__ration_kind kind,
                       struct ArrowDeviceArray *out);

/* Gives the schema. Thread: any. */
void uva__ration_schema(struct uva__rations *books, struct ArrowSchema *out);

/* Whether all that was given has been released; `ctx` is the books. For waits.
 */
bool uva__rations_are_back(void *ctx);

#endif
