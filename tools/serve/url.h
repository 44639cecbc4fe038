/* SPDX-License-Identifier: Apache-2.0 */
/* The target of a request: a path, and parameters after a "?". */
#ifndef UVA_SERVE_URL_H
#define UVA_SERVE_URL_H

#include "uvarrow/base.h"

/* Most parameters of one target. */
#define UVA__URL_PARAMETERS 16

/* A target, decoded. */
struct uva__url {
    char *text;       /* owns: the text of the members below */
    const char *path; /* begins with "/" */
    int count;        /* number of parameters */
    struct {
        const char *name, *value;
    } parameters[UVA__URL_PARAMETERS]; /* in order */
};

/* Decodes a target. Returns 0: free it by uva__url_fini(); EINVAL for a target
 * that is no path, has a wrong escape, a NUL, a fragment, a parameter twice, or
 * too many of them; ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__url_init(struct uva__url *url, const char *target);

/* Thread: any. */
void uva__url_fini(struct uva__url *url);

/* Returns the value of a parameter, or NULL. Thread: any. */
const char *uva__url_get(const struct uva__url *url, const char *name);

#endif
