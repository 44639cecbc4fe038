/* SPDX-License-Identifier: Apache-2.0 */
/* A word in memory that a fork clears, so that a child notices that the threads
 * of its inherited objects are gone. */
#ifndef UVA_BASE_FORK_PAGE_H
#define UVA_BASE_FORK_PAGE_H

#include "base/atomic.h"
#include "base/list.h"
#include "uvarrow/base.h"

struct uva__fork_page {
    struct uva__atomic64 *word; /* owns: mapped. 1; 0 in a forked child */
    struct uva__link link;      /* among all pages */
};

/* 0, or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__fork_page_init(struct uva__fork_page *page);
void uva__fork_page_fini(struct uva__fork_page *page);

#endif
