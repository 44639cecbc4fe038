/* SPDX-License-Identifier: Apache-2.0 */
/* A child of the test process, forked while streams run. It reports its result
 * by its exit code, because Check's own assertions would act for the parent. */
#ifndef UVA_SUPPORT_FORKED_CHILD_H
#define UVA_SUPPORT_FORKED_CHILD_H

/* Forks, calls `run` in the child, and checks that it returned 0. A child that
 * hangs is killed, which counts as a failure. */
void forked_child_run(int (*run)(void *ctx), void *ctx);

#endif
