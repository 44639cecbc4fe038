/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a vendor's call in an error, and in the metadata that goes with
 * one: vendor, code, and the name of the call. An error has no member for that
 * name; it is in a text that begins with a name and "failed". */
#ifndef UVA_ARROW_VENDOR_ERROR_H
#define UVA_ARROW_VENDOR_ERROR_H

#include "arrow/metadata.h"
#include "uvarrow/base.h"

/* Fills `error` (may be NULL) with a text, which begins with the name of a call
 * and "failed", and with the vendor's name (static) and code; 0: no code.
 * Returns `code`. Thread: any. */
int uva__vendor_error_set(struct uva_error *error, int code, const char *vendor,
                          int vendor_code, const char *format, ...)
    UVA_PRINTF(5, 6);

/* Gives the vendor's part of `error` in `out`, as metadata, empty if `error`
 * names no vendor. Returns 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int
uva__vendor_error_to_metadata(const struct uva_allocator *allocator,
                              const struct uva_error *error,
                              struct uva__metadata *out);

/* Adds the vendor and its code from `metadata` (may be NULL or malformed) to
 * `error`, if this library knows that vendor. Thread: any. */
void uva__vendor_error_from_metadata(const char *metadata,
                                     struct uva_error *error);

#endif
