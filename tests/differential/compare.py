"""What differs between a result and JAX's answer to the same call.

In: a result or an exception of jitcore, an answer as `tests.jax_answers` keeps it, and how near values have to be.
Out: pairs of a kind ("refused", "accepted", "class", "structure", "shape", "dtype", "weak_type", "value") and a text; none where both
are the same.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from jitcore.array import Array
from tests.differential.table import Row

Difference = tuple[str, str]


def compare(result: Any, answer: dict, row: Row, read: Callable[..., np.ndarray]) -> list[Difference]:
    """read: the array of what an answer from a file has in its place."""
    with np.errstate(all="ignore"):
        return list(_compare(result, answer, row, read))


def _compare(result: Any, answer: dict, row: Row, read: Callable[..., np.ndarray]) -> Iterator[Difference]:
    kind, content = next(iter(answer.items()))
    if isinstance(result, Exception) or kind == "raised":
        yield from _compare_errors(result, answer)
    elif kind == "array":
        want = read(*content) if isinstance(content, list) else content
        yield from _compare_arrays(result, want, row)
    elif kind in ("list", "tuple", "named"):
        if not isinstance(result, (list, tuple)) or len(result) != len(content):
            yield "structure", f"{_describe(result)}, not a {kind} of {len(content)}"
            return
        for one, other in zip(result, content):
            yield from _compare(one, other, row, read)
    elif kind == "dict":
        if not isinstance(result, dict) or list(result) != list(content):
            yield "structure", f"{_describe(result)}, not a dict of {list(content)}"
            return
        for key in content:
            yield from _compare(result[key], content[key], row, read)
    elif kind in ("dtype", "type"):
        if isinstance(result, Array) or np.dtype(result) != np.dtype(content):
            yield "dtype", f"{_describe(result)}, not {content}"
    elif kind in ("value", "complex"):
        want = complex(*content) if kind == "complex" else content
        if isinstance(result, Array) or not _is_same_value(result, want):
            yield "structure" if isinstance(result, Array) else "value", f"{_describe(result)}, not {want!r}"


def _is_same_value(got: Any, want: Any) -> bool:
    if isinstance(want, (str, type(None), bool)) or isinstance(got, (str, type(None))):
        return got == want
    return bool(np.isclose(got, want, rtol=1e-6, equal_nan=True))


def _compare_errors(result: Any, answer: dict) -> Iterator[Difference]:
    if "raised" not in answer:
        yield "refused", f"raises {type(result).__name__}: {str(result).strip().splitlines()[:1]}"
        return
    bases = answer["raised"][1]
    kind = next(kind for kind in (getattr(builtins, base, None) for base in bases) if isinstance(kind, type))
    if not isinstance(result, Exception):
        yield "accepted", f"{_describe(result)}, where JAX raises {bases[0]}: {answer['raised'][2]}"
    elif not isinstance(result, kind):
        text = str(result).strip().splitlines()[:1]
        yield "class", f"raises {type(result).__name__}, no {kind.__name__}: {text}; JAX: {answer['raised'][2]}"


def _compare_arrays(result: Any, want: np.ndarray, row: Row) -> Iterator[Difference]:
    try:
        got = np.asarray(result)
    except Exception:
        yield "structure", f"{_describe(result)}, not an array"
        return
    if got.shape != want.shape:
        yield "shape", f"{got.shape}, not {want.shape}"
    if got.dtype != want.dtype:
        yield "dtype", f"{got.dtype}, not {want.dtype}"
    weak = bool(getattr(result, "weak_type", False))
    if weak != want.weak_type and got.dtype != bool:  # bools are never weak here; nothing depends on it
        yield "weak_type", f"{weak}, not {want.weak_type}"
    if got.shape == want.shape and got.dtype == want.dtype:
        yield from _compare_values(got, np.asarray(want), row)


def _compare_values(got: np.ndarray, want: np.ndarray, row: Row) -> Iterator[Difference]:
    if not _is_inexact(want.dtype) or not want.size:
        is_same = np.full(want.shape, True) if want.dtype.names else got == want
    elif want.dtype.kind == "c":
        # Parts are equal, or finite and near each other in the plane. JAX's nan says nothing: of complex numbers
        # that are not finite it is mostly what the formula that it takes comes to.
        parts = [_is_equal(a, b, row) for a, b in ((got.real, want.real), (got.imag, want.imag))]
        is_same = (parts[0] & parts[1]) | _is_near(got, want, row) | np.isnan(want) | (np.isinf(got) & np.isinf(want))
    else:
        is_same = _is_equal(got, want, row) | _is_near(got, want, row)
    is_same = np.asarray(is_same)
    if not is_same.all():
        places = np.argwhere(~is_same)
        first = tuple(places[0])
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        at = f" at {[int(i) for i in first]}" if first else ""
        yield "value", f"{got[first]!s}, not {want[first]!s}{at}{more}{_tell_distance(got, want, is_same)}"


def _is_inexact(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def _is_equal(got: np.ndarray, want: np.ndarray, row: Row) -> np.ndarray:
    """Subnormal numbers are zeros, as is the least normal one: JAX has none. Signs of zeros count where values are exact, and real."""
    tiny = float(ml_dtypes.finfo(want.dtype).tiny)
    is_zero = (np.abs(want) <= tiny) & (np.abs(got) <= tiny)
    same = (got == want) | (np.isnan(got) & np.isnan(want)) | is_zero
    return same & ~(is_zero & (row.ulps == 0) & (np.signbit(got) != np.signbit(want)))


def _is_near(got: np.ndarray, want: np.ndarray, row: Row) -> np.ndarray:
    ulps = max(row.ulps, 2 * (want.dtype.kind == "c"))  # products of complex numbers may be fused
    if not ulps:
        return np.zeros(want.shape, bool)
    finite = np.isfinite(got) & np.isfinite(want)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = np.where(finite, got, 0).astype(wide), np.where(finite, want, 0).astype(wide)
    info = ml_dtypes.finfo(want.dtype)
    size = np.maximum(np.abs(b), float(info.tiny))
    size = np.max(size, initial=row.at_least) if row.of_largest else size
    return finite & (np.abs(a - b) <= ulps * float(info.eps) * size)


def _tell_distance(got: np.ndarray, want: np.ndarray, is_same: np.ndarray) -> str:
    """The largest distance of finite values in units of the last place."""
    if not _is_inexact(want.dtype):
        return ""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    chosen = ~is_same & np.isfinite(a) & np.isfinite(b) & (b != 0)
    if not chosen.any():
        return ""
    distance = np.abs(a[chosen] - b[chosen]) / np.abs(b[chosen]) / float(ml_dtypes.finfo(want.dtype).eps)
    return f" ({distance.max():.3g} ulps)"


def _describe(result: Any) -> str:
    if isinstance(result, Array):
        return f"{result.dtype}{list(result.shape)}"
    return f"{type(result).__name__} {' '.join(str(result).split())[:60]}"
