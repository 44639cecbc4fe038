/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own work on a GPU, for tests/programs: it fills columns on its
 * own stream, with an event each, and sums them up on another stream. It uses
 * CUDA's driver, from UVA_CUDA_LIBRARY or the default place, and no function of
 * uvarrow. A call of the driver that fails aborts. */
#ifndef UVA_SUPPORT_GPU_PROGRAM_H
#define UVA_SUPPORT_GPU_PROGRAM_H

#include "uvarrow/arrow_abi.h"

typedef struct CUstream_st *cuda_stream;

/* A scan gives this many batches of this many rows, with the shape and the
 * numbers of a query of support/world.h. */
enum { GPU_BATCHES = 20, GPU_ROWS = 1000 };

/* Returns a new stream for the program's work; NULL: there is no GPU. */
cuda_stream gpu_stream(void);

/* Gives a stream of arrays that are still being filled. 0; ENOMEM. */
int gpu_scan(struct ArrowDeviceArrayStream *out);

/* Queues work on `stream` that adds all numbers of a batch to `total`. The
 * batch must stay valid until that work is done. 0; ENOMEM. */
int gpu_sum_async(cuda_stream stream, const struct ArrowDeviceArray *batch,
                  double *total);

/* Waits until all work is done and everything has been released. */
void gpu_close(void);

#endif
