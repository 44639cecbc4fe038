/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded data that a scripted producer gives to a consumer: schemas and arrays
 * that record how they are used. Each lies on its own pages, which are unmapped
 * by its release, so that reading it later crashes. */
#ifndef UVA_TCK_GUARDED_DATA_H
#define UVA_TCK_GUARDED_DATA_H

#include "tck/case_run.h"

/* How an array differs from an ordinary one. */
enum uva__guarded_data_kind {
    UVA__GUARDED_DATA_PLAIN = 0,
    UVA__GUARDED_DATA_UNKNOWN_DEVICE, /* on a device of an unknown type */
    UVA__GUARDED_DATA_SEALED,         /* likewise, and not to be read here */
    UVA__GUARDED_DATA_FUTURE,         /* with reserved bytes in use */
    UVA__GUARDED_DATA_FIRST, /* device_id 0, as older peers write for the CPU */
    UVA__GUARDED_DATA_BARE,  /* no struct: a plain array of int32 */
    UVA__GUARDED_DATA_SLICED /* a slice, of a column that is a slice itself */
};

/* Counts of given data. */
struct uva__guarded_data {
    struct uva__case_run *run;
    struct uva__atomic64 given;    /* arrays and schemas */
    struct uva__atomic64 released; /* how many of these */
    struct uva__atomic64 unknown;  /* live arrays on unknown devices */
};

/* Gives batch `ordinal`. Writes all 128 bytes. Thread: any. */
void uva__guarded_data_array(struct uva__guarded_data *books, int64_t ordinal,
                             enum uva__guarded_data_kind kind,
                             struct ArrowDeviceArray *out);

/* Gives the schema; `bare`: the schema of arrays of the kind BARE. Thread: any.
 */
void uva__guarded_data_schema(struct uva__guarded_data *books, bool bare,
                              struct ArrowSchema *out);

/* Returns whether all given data has been released; `ctx` is a struct
 * uva__guarded_data. For waits. */
bool uva__guarded_data_is_released(void *ctx);

#endif
