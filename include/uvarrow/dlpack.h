/* SPDX-License-Identifier: Apache-2.0 */
/* Columns as tensors of DLPack, and tensors as columns, without copying: the
 * way to PyTorch, JAX, CuPy and NumPy. The structs of DLPack 1.0 are written
 * out under its guard, so that another copy of its header may be included as
 * well; if that is newer and more of it is needed, include it before this file.
 */
#ifndef UVARROW_DLPACK_H
#define UVARROW_DLPACK_H

#include <stdint.h>

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/dlpack_abi.h"
#include "uvarrow/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most dimensions of a tensor that is a column. */
#define UVA_DLPACK_DIMS 8

/** The stream for which nothing is synchronised. */
#define UVA_DLPACK_NO_SYNC (-1)

/** Gives a column as a tensor. The format of `schema` is that of an integer or
 * a floating-point number, or of lists of a fixed size of these, one in the
 * other: each adds a dimension. Nothing is copied; the tensor is read-only, and
 * takes `array`, which its deleter releases, on any thread.
 *
 * `stream` is the stream on which the consumer uses the tensor, as the protocol
 * of Python's `__dlpack__` numbers it: in CUDA 1 is the legacy default stream,
 * in ROCm 0; otherwise it is the address of the stream. It is made to wait for
 * the event of `array`, and is borrowed for the call. With UVA_DLPACK_NO_SYNC
 * it is not, and the consumer has to wait. On the CPU `stream` is ignored.
 *
 * Borrows `schema`. `runtime` is used if a stream has to wait, and may be NULL
 * otherwise. Returns 0 with `out`, to be released by its deleter; EINVAL if
 * there is no array or it does not fit the schema, or if `stream` is not
 * allowed; ENOTSUP, with what cannot be a tensor: another type, nulls, a null
 * count that is not known, or a device of which streams cannot wait; EOVERFLOW
 * for a shape that cannot be counted; ENOMEM; ESHUTDOWN; the error of the
 * device. On failure nothing was taken. Thread: any; may open the device's
 * library. Clauses: EV-01, DA-20. */
UVA_API UVA_MUST_CHECK int uva_array_to_dlpack(struct uva_runtime *runtime,
                                               const struct ArrowSchema *schema,
                                               struct ArrowDeviceArray *array,
                                               int64_t stream,
                                               DLManagedTensorVersioned **out,
                                               struct uva_error *error);

/** Gives a tensor as a column without nulls, and its schema without a name;
 * each dimension but the first is a list of a fixed size. Nothing is copied.
 * Takes `tensor`: its deleter is called when the array and all children moved
 * out of it are released, on the thread that does so.
 *
 * `stream` is the stream on which the producer was asked to make the data
 * ready, numbered as above: an event that completes with what is queued there
 * is stored in array->sync_event, as by uva_array_record(). With
 * UVA_DLPACK_NO_SYNC the data is ready, and there is no event. On the CPU
 * `stream` is ignored.
 *
 * `runtime` is used if an event is recorded, and may be NULL otherwise. Returns
 * 0 with `schema` and `array`; EINVAL for an impossible tensor or stream;
 * ENOTSUP, with what cannot be a column: another type, vectors, more than
 * UVA_DLPACK_DIMS dimensions or none, elements that are not one behind the
 * other, another major version, or a device of which events cannot be recorded;
 * EOVERFLOW for a shape that cannot be counted; ENOMEM; ESHUTDOWN; the error of
 * the device. On failure nothing was taken, and `schema` and `array` are
 * released.
 * Thread: any; may open the device's library.
 * Clauses: EV-01, DA-20. */
UVA_API UVA_MUST_CHECK int
uva_array_from_dlpack(struct uva_runtime *runtime,
                      DLManagedTensorVersioned *tensor, int64_t stream,
                      struct ArrowSchema *schema,
                      struct ArrowDeviceArray *array, struct uva_error *error);

#ifdef __cplusplus
}
#endif

#endif
