/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the Arrow structs before they are taken over, and copies of
 * schemas. Moving and releasing are inline in arrow.h; sharing an array is
 * share.h; whether an array fits its schema is layout.h. */
#ifndef UVA_ARROW_STRUCTS_H
#define UVA_ARROW_STRUCTS_H

#include <stddef.h>
#include <string.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* None of our functions goes deeper into children than this, or visits more of
 * them: valid schemas are smaller, and a foreign one may contain a cycle. */
#define UVA__STRUCTS_MAX_DEPTH 64
#define UVA__STRUCTS_MAX_NODES (1024 * 1024)

/* 0 if `stream` (borrows) is live and all its functions are set; otherwise
 * EINVAL, with the missing one named in `error` (may be NULL). Thread: any.
 * Clauses: AB-17. */
UVA_MUST_CHECK int
uva__structs_check_stream(const struct ArrowArrayStream *stream,
                          struct uva_error *error);

/* Checks a device stream in that way. Thread: any. */
UVA_MUST_CHECK int
uva__structs_check_device_stream(const struct ArrowDeviceArrayStream *stream,
                                 struct uva_error *error);

/* Checks a handler in that way, but not its `producer`. Thread: any.
 * Clauses: AH-02. */
UVA_MUST_CHECK int
uva__structs_check_handler(const struct ArrowAsyncDeviceStreamHandler *handler,
                           struct uva_error *error);

/* Checks a schema, but not its children: not NULL, live, with a format.
 * Thread: any. */
UVA_MUST_CHECK int uva__structs_check_schema(const struct ArrowSchema *schema,
                                             struct uva_error *error);

/* Gives the metadata of a producer (borrowed from it) by the released layout or
 * the printed one. Thread: any. Clauses: G-03. */
static inline const char *
uva__structs_producer_metadata(const struct ArrowAsyncProducer *producer,
                               bool printed_layout)
{
    const size_t printed = offsetof(struct ArrowAsyncProducer, private_data);
    const char *metadata = producer->additional_metadata;

    if (printed_layout)
        memcpy(&metadata, (const char *)producer + printed, sizeof(metadata));
    return metadata;
}

/* Whether `n_children` and the vector `children` are consistent. Thread: any.
 * Clauses: DA-25. */
static inline bool uva__structs_children_are_sound(int64_t n_children,
                                                   const void *children)
{
    return n_children >= 0 && n_children <= UVA__STRUCTS_MAX_NODES &&
           (n_children == 0 || children != NULL);
}

/* uva_schema_copy() with memory of `allocator`, which is copied and must stay
 * usable until the copy, and all children moved out of it, are released. Gives
 * `out`.
 * 0; ENOMEM; EMSGSIZE for metadata beyond the caps; EINVAL if `schema` is
 * released, has no format, bad metadata or an impossible number of children.
 * `out` is released on failure. Thread: any. */
UVA_MUST_CHECK int
uva__structs_copy_schema(const struct uva_allocator *allocator,
                         const struct ArrowSchema *schema,
                         struct ArrowSchema *out);

/* Whether `schema` has the contents of `copy`, which that call has made of
 * another one: the names, the metadata and the flags, too. The addresses mean
 * nothing here: another schema may lie where the first one did. False if the
 * call would refuse `schema`. Thread: any. */
bool uva__structs_is_like(const struct ArrowSchema *copy,
                          const struct ArrowSchema *schema);

#endif
