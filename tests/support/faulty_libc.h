/* SPDX-License-Identifier: Apache-2.0 */
/* The C library without memory, or threads, on cue: for what lives longer than
 * runtimes, and so has no allocator of the user's. A program that uses this has
 * those calls wrapped at its link: uva_faulty_libc() in CMakeLists.txt. */
#ifndef UVA_SUPPORT_FAULTY_LIBC_H
#define UVA_SUPPORT_FAULTY_LIBC_H

#include <stdbool.h>
#include <stddef.h>

/* The `n`-th allocation from now on fails; 0: none. */
void faulty_libc_fail(long n);

/* How many are left until one fails. */
long faulty_libc_left(void);

/* Go on with that many, and forget nothing. */
void faulty_libc_resume(long n);

/* Only those of that size count; 0: all do. */
void faulty_libc_only(size_t size);

/* Only those of the thread of that name count; NULL: of any. */
void faulty_libc_only_thread(const char *name);

/* Whether one has failed since. */
bool faulty_libc_has_failed(void);

/* The same, and none does any more. */
bool faulty_libc_stop(void);

/* Whether there are threads to be had. */
void faulty_libc_threads(bool some);

#endif
