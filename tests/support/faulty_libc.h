/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the C library's allocations and threads fail on request: for objects
 * that outlive runtimes, and so do not use an allocator of the user. A program
 * that uses this has the calls wrapped at link time: uva_faulty_libc() in
 * CMakeLists.txt. */
#ifndef UVA_SUPPORT_FAULTY_LIBC_H
#define UVA_SUPPORT_FAULTY_LIBC_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the `n`-th allocation from now on fail; 0: none. */
void faulty_libc_fail(long n);

/* Returns how many allocations are left until one fails. */
long faulty_libc_left(void);

/* Continues with that many, without resetting anything. */
void faulty_libc_resume(long n);

/* Counts only allocations of that size; 0: all. */
void faulty_libc_only(size_t size);

/* Counts only allocations of the thread of that name; NULL: of any. */
void faulty_libc_only_thread(const char *name);

/* Returns whether one has failed since. */
bool faulty_libc_has_failed(void);

/* Returns whether one has failed since, and lets none fail any more. */
bool faulty_libc_stop(void);

/* Sets whether threads can be created. */
void faulty_libc_threads(bool some);

#endif
