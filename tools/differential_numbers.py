"""What is special about the numbers of a Call: which of them are not finite or huge, which matrices have less than full rank."""

from __future__ import annotations

import re
from dataclasses import replace

import cresset
import numpy as np
from differential_calls import BITS, Call, count, kind_of

# Operators that factor or invert matrices: whether one of rank less than full is singular is decided by the last digit.
MATRICES = re.compile(r"linalg|inverse|solve|lu_|det|cholesky|lstsq|nuclear")


def extremes(call: Call) -> str:
    """Is a number of the call none or infinite ("not finite"), or so large that its powers leave their type ("huge")? Has one of the
    matrices that are factored less than full rank ("singular"), or one for cholesky a vector that it turns round ("indefinite")? Is one
    above 1000 ("large")? What an out holds before does not count."""
    outs = [name for name in call.written if name in call.kwargs]
    call = replace(call, kwargs={name: value for name, value in call.kwargs.items() if name not in outs})
    numbers = [complex(v) for v in call.leaves() if isinstance(v, (int, float, complex))]
    for view in call.views():
        memory = call.memories[view.memory]
        if memory.dtype not in BITS and count(view.shape):
            items = np.lib.stride_tricks.as_strided(memory.array[view.offset :], view.shape, [s * memory.array.itemsize for s in view.strides])
            numbers += [complex(v) for v in np.unique(items)]
        elif kind_of(memory.dtype) in "fc":
            values = cresset.from_numpy(memory.array.copy()).view(getattr(cresset, memory.dtype)).cfloat()
            numbers += [complex(v) for v in np.unique(values.as_strided(view.shape, view.strides, view.offset).numpy())]
    if not all(np.isfinite(v) for v in numbers):
        return "not finite"
    if any(abs(v) > 1e6 for v in numbers):
        return "huge"
    if MATRICES.search(call.operator):
        given = matrices(call)
        if any(map(deficient, given)) or ("lu_solve" in call.operator and any(map(zero_on_diagonal, given))):
            return "singular"
        if "cholesky" in call.operator and "solve" not in call.operator and any(map(indefinite, given)):
            return "indefinite"
    return "large" if any(abs(v) > 1e3 for v in numbers) else ""


def matrices(call: Call) -> list[np.ndarray]:
    """The floating tensors of a call that are matrices, or batches of them."""
    found = []
    for view in call.views():
        memory = call.memories[view.memory]
        if len(view.shape) >= 2 + (view.batch is not None) and count(view.shape) and kind_of(memory.dtype) in "fc" and memory.dtype not in BITS:
            items = np.lib.stride_tricks.as_strided(memory.array[view.offset :], view.shape, [s * memory.array.itemsize for s in view.strides])
            items = items if view.batch is None else np.moveaxis(items, view.batch, 0)
            if "linalg_tensor" in call.operator and view is call.views()[0]:  # a matrix of some grouping of its dimensions
                found += [m for k in range(1, items.ndim) if len(m := items.reshape(count(items.shape[:k]), -1)) == m.shape[1]]
            else:
                found.append(items)
    return found


def deficient(items: np.ndarray) -> bool:
    """Has a matrix less than full rank, up to the digits of single precision?"""
    sizes = np.linalg.svd(items.astype(np.complex128), compute_uv=False)
    return bool((sizes[..., -1] <= 1e-6 * sizes[..., 0]).any())


def zero_on_diagonal(items: np.ndarray) -> bool:
    """Are factors that were computed already those of a singular matrix?"""
    if items.shape[-1] != items.shape[-2]:
        return False
    sizes = np.abs(np.diagonal(items, axis1=-2, axis2=-1))
    return bool((sizes.min(-1) <= 1e-6 * np.abs(items).max((-2, -1))).any())


def indefinite(items: np.ndarray) -> bool:
    """Has a matrix, of either triangle, no Cholesky factor?"""
    if items.shape[-1] != items.shape[-2]:
        return False
    turned = lambda m: np.conj(np.swapaxes(m, -1, -2))  # noqa: E731
    halves = [part + turned(strict) for part, strict in ((np.tril(items), np.tril(items, -1)), (np.triu(items), np.triu(items, 1)))]
    return any(bool((np.linalg.eigvalsh(m.astype(np.complex128)) <= 1e-9).any()) for m in halves)
