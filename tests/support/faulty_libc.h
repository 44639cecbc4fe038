/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the C library's allocations and its creation of threads fail on
 * request: for objects that outlive runtimes, and therefore use no allocator of
 * the user. A program that uses this has the calls wrapped at link time by
 * uva_faulty_libc() in CMakeLists.txt. */
#ifndef UVA_SUPPORT_FAULTY_LIBC_H
#define UVA_SUPPORT_FAULTY_LIBC_H

#include <stdbool.h>
#include <stddef.h>

/* Makes the `n`-th allocation from now on fail; 0: no failure. */
void faulty_libc_fail(long n);

/* Returns how many allocations are left until one fails. */
long faulty_libc_left(void);

/* Continues with `n` allocations left, and without a further reset. */
void faulty_libc_resume(long n);

/* Sets whether later allocations fail, too, not only the one. */
void faulty_libc_always(bool all);

/* Counts only allocations of this size; 0: all. */
void faulty_libc_only(size_t size);

/* Counts only allocations of the thread with this name; NULL: of any thread. */
void faulty_libc_only_thread(const char *name);

/* Returns whether an allocation has failed since faulty_libc_fail(). */
bool faulty_libc_has_failed(void);

/* Returns whether an allocation has failed, and ends the failures. */
bool faulty_libc_stop(void);

/* Sets whether threads can be created. */
void faulty_libc_threads(bool some);

#endif
