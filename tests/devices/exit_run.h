/* SPDX-License-Identifier: Apache-2.0 */
/* A program that copies batches to a GPU and back, and then exits in several
 * ways. It is a program, and a module that a program opens. */
#ifndef UVA_TESTS_EXIT_RUN_H
#define UVA_TESTS_EXIT_RUN_H

/* Runs it, and returns its exit status: 0, 1 if a row is wrong, 2 for a way
 * that is not known; or exits. exits.c lists the ways. */
__attribute__((visibility("default"))) int exit_run(const char *way);

#endif
