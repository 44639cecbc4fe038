/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded data that a scripted producer gives to a consumer: schemas and arrays
 * that record what is done to them. Each lies on pages of its own, which are
 * unmapped by its release, so that reading it later crashes. */
#ifndef UVA_TCK_RATION_H
#define UVA_TCK_RATION_H

#include "tck/case_run.h"

/* How an array differs from an ordinary one. */
enum uva__ration_kind {
    UVA__RATION_PLAIN = 0,
    UVA__RATION_ALIEN,  /* on a device of an unknown type */
    UVA__RATION_FUTURE, /* with reserved bytes in use */
    UVA__RATION_FIRST   /* device_id 0, as older peers write for the CPU */
};

/* Counts of all that was given. */
struct uva__rations {
    struct uva__trial *trial;
    struct uva__word given;    /* arrays and schemas */
    struct uva__word released; /* how many of these */
};

/* Gives batch `ordinal`. Writes all 128 bytes. Thread: any. */
void uva__ration_array(struct uva__rations *books, int64_t ordinal,
                       enum uva__ration_kind kind,
                       struct ArrowDeviceArray *out);

/* Gives the schema. Thread: any. */
void uva__ration_schema(struct uva__rations *books, struct ArrowSchema *out);

/* Returns whether all that was given has been released; `ctx` is a struct
 * uva__rations. For waits. */
bool uva__rations_are_back(void *ctx);

#endif
