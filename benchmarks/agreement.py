"""Whether a peer's result is the right one.

In: results as pytrees of arrays, and the reference. Out: a sentence about the first difference, or "".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.programs import NUMPY_API
from benchmarks.workload import Inputs, Workload

#: By the word that ends a row's name; relative to the largest value of the result.
TOLERANCES = {"f32": 2e-5, "c64": 2e-5, "f64": 1e-11, "c128": 1e-11, "i32": 0.0, "u32": 0.0}
_WIDE = {np.dtype("float32"): np.float64, np.dtype("complex64"): np.complex128}


def list_leaves(result: Any) -> Iterator[np.ndarray]:
    """The arrays of nested tuples, lists and mappings, in order."""
    if isinstance(result, Mapping):
        for key in sorted(result):
            yield from list_leaves(result[key])
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from list_leaves(part)
    else:
        yield np.asarray(result)


def widen_inputs(inputs: Any) -> Any:
    """The same inputs with single precision made double."""
    if isinstance(inputs, Mapping):
        return {key: widen_inputs(value) for key, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(map(widen_inputs, inputs))
    dtype = getattr(inputs, "dtype", None)
    return inputs.astype(_WIDE[dtype]) if dtype in _WIDE else inputs


def find_numpy_function(workload: Workload) -> Any:
    """The function of a workload for NumPy."""
    return workload.numpy or workload.program(NUMPY_API)


def compute_reference(workload: Workload, inputs: Inputs) -> Any:
    """The right result, in float64 where the workload does not state another one."""
    with np.errstate(all="ignore"):
        if workload.reference is not None:
            return workload.reference(*inputs)
        return find_numpy_function(workload)(*widen_inputs(inputs))


def find_difference(workload: Workload, result: Any, reference: Any) -> str:
    """What is wrong with the result; "" if nothing is."""
    if workload.summarize is not None:
        result, reference = workload.summarize(result), workload.summarize(reference)
    ours, right = list(list_leaves(result)), list(list_leaves(reference))
    if len(ours) != len(right):
        return f"{len(ours)} results instead of {len(right)}"
    tolerance = TOLERANCES[workload.dtype] if workload.tolerance is None else workload.tolerance
    for mine, wanted in zip(ours, right):
        if mine.shape != wanted.shape:
            return f"shape {mine.shape} instead of {wanted.shape}"
        if difference := _compare(mine, wanted, tolerance, workload.mismatches):
            return difference
    return ""


def _compare(mine: np.ndarray, wanted: np.ndarray, tolerance: float, mismatches: float) -> str:
    if mine.dtype.kind in "iub" and wanted.dtype.kind in "iub":
        wrong = np.count_nonzero(mine != wanted)
        return f"{wrong} of {wanted.size} elements differ" if wrong > mismatches * wanted.size else ""
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.max()) if finite.size else 1.0
    mine = mine.astype(np.complex128 if mine.dtype.kind == "c" else np.float64)
    if np.allclose(mine, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"off by up to {np.nanmax(np.abs(mine - wanted)):.3g}, where the largest value is {scale:.3g}"
