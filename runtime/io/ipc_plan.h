/* SPDX-License-Identifier: Apache-2.0 */
/* A schema as the encoder reads it for every batch: its fields in one vector,
 * a field before its children, without format strings. */
#ifndef UVA_IO_IPC_PLAN_H
#define UVA_IO_IPC_PLAN_H

#include "io/ipc_type.h"

/* A field. The fields of a dictionary's values are not among its children. */
struct uva__ipc_field {
    enum uva__ipc_kind kind; /* of the indices, if there is a dictionary */
    int32_t width;           /* see uva__ipc_kind */
    int32_t n_children;
    int32_t next;       /* index of the next field that is no child of this */
    int32_t dictionary; /* its number, which is its id; -1: no dictionary */
    const struct ArrowSchema *schema; /* borrows from the plan's schema */
};

/* A dictionary: the field of its values. */
struct uva__ipc_values {
    int32_t field;  /* its index */
    bool is_nested; /* the values have dictionaries of their own */
};

/* The plan. Field 0 is the root, a struct. */
struct uva__ipc_plan {
    struct ArrowSchema schema;            /* owns: a copy */
    struct uva__ipc_field *fields;        /* owns */
    struct uva__ipc_values *dictionaries; /* owns; those inside of another's
                                             values after it */
    int32_t n_fields;
    int32_t n_dictionaries;
};

/* Makes the plan of `schema`, which is copied. Returns 0; EINVAL for an invalid
 * schema; ENOTSUP for a schema that the format cannot express; ENOMEM; the text
 * names the field. Thread: any. */
UVA_MUST_CHECK int uva__ipc_plan_init(struct uva__ipc_plan *plan,
                                      const struct ArrowSchema *schema,
                                      struct uva_error *error);

/* Frees its content. A plan of zeroes is allowed. Thread: any. */
void uva__ipc_plan_fini(struct uva__ipc_plan *plan);

#endif
