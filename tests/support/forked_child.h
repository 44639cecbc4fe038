/* SPDX-License-Identifier: Apache-2.0 */
/* A child of the test's process, forked while things are under way: what it
 * runs there it reports by a number, as Check's own assertions would speak for
 * the parent. */
#ifndef UVA_SUPPORT_FORKED_CHILD_H
#define UVA_SUPPORT_FORKED_CHILD_H

/* Forks, has the child call `run`, and checks that it came back with 0. A child
 * that hangs is ended, and has failed. */
void forked_child_run(int (*run)(void *ctx), void *ctx);

#endif
