/* SPDX-License-Identifier: Apache-2.0 */
/* The file that --output names. The output goes into a new file beside it,
 * which replaces it at the end: until then, and after a failure, the old one is
 * as it was. tools/output.h writes the bytes. */
#ifndef UVA_TOOLS_TARGET_H
#define UVA_TOOLS_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "guard.h"
#include "options.h"
#include "uvarrow/base.h"

/* Zeroes, then uva__target_open(). */
struct uva__target {
    struct uva__guard *guard; /* borrows: removes the new file if all else
                                 fails */
    const char *name; /* borrows: as the user has it; NULL: standard output */
    char *path;    /* owns: with symbolic links resolved; NULL: it is written to
                      itself */
    char *fresh;   /* owns: path of the new file */
    int fd;        /* owns: of the new file; -1: not open */
    bool is_named; /* the new file is in its folder */
    bool replaces; /* there was an old file */
};

/* Returns 0 unless the output is something that the command reads: by any path,
 * a link or standard input; or the file of a database, as far as its path is
 * known. Otherwise EINVAL with an error that names both. Opens no file.
 * Thread: any. */
UVA_MUST_CHECK int uva__target_check(const struct uva__options *options,
                                     struct uva_error *error);

/* Makes the new file. An output that is not a plain file (a pipe, a device) is
 * written to itself, and so is any with --in-place. An old file keeps its mode,
 * and its owner if that is allowed. Returns 0: end it by uva__target_keep() or
 * uva__target_drop(); otherwise an errno with an error, without anything to
 * undo. Thread: loop. */
UVA_MUST_CHECK int uva__target_open(struct uva__target *target,
                                    const struct uva__options *options,
                                    struct uva__guard *guard,
                                    struct uva_error *error);

/* Replaces the old file by the new one, after all was written, and ends it.
 * No other effect before an open. Returns 0; an errno with an error, and the
 * old file is as it was. Waits for the disk if there was one. Thread: loop. */
UVA_MUST_CHECK int uva__target_keep(struct uva__target *target,
                                    struct uva_error *error);

/* Ends it without: the old file is as it was. Thread: loop. */
void uva__target_drop(struct uva__target *target);

#endif
