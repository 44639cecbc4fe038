# SPDX-License-Identifier: Apache-2.0
"""Tensors of other libraries as batches. Columns as tensors are in C."""
from . import _check, _core

_CPU = 1


def from_dlpack(tensor, /, name=""):
    """Returns a Batch of one column, which shares the data of a tensor.

    `tensor` is an array of numpy, JAX, PyTorch or any other object with
    `__dlpack__`, on the CPU, of integers or floating-point numbers that are
    contiguous. Its first dimension are the rows; further ones are lists of a
    fixed size. BufferError if it cannot be shared.
    """
    _check.text(name, "name")
    where = _check.method(tensor, "__dlpack_device__", "tensor")
    if where is None or _check.method(tensor, "__dlpack__", "tensor") is None:
        raise _check.refuse(tensor, "tensor", "an object with __dlpack__")
    device = _check.pair(where(),
                         "the result of __dlpack_device__() of tensor")
    if device[0] != _CPU:
        raise BufferError("uvarrow: the tensor is not on the CPU")
    try:
        capsule = tensor.__dlpack__(max_version=(1, 0))
    except TypeError: # older than DLPack 1.0
        capsule = tensor.__dlpack__()
    return _core.from_dlpack(capsule, name)
