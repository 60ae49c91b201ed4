"""StableHLO as text: types, constants and attributes.

In: NumPy dtypes, shapes, values. Out: the strings of which `builder` makes a module.
Source: StableHLO specification, sections Types, Constants and Syntax.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitcore import dtypes

_ELEMENT_TYPES = {dtypes.bool_: "i1", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32",
                  dtypes.int64: "i64", dtypes.uint8: "ui8", dtypes.uint16: "ui16", dtypes.uint32: "ui32",
                  dtypes.uint64: "ui64", dtypes.float16: "f16", dtypes.bfloat16: "bf16",
                  dtypes.float32: "f32", dtypes.float64: "f64", dtypes.complex64: "complex<f32>",
                  dtypes.complex128: "complex<f64>",
                  **{np.dtype(name): kind for name, kind in dict(
                      float8_e3m4="f8E3M4", float8_e4m3="f8E4M3", float8_e4m3b11fnuz="f8E4M3B11FNUZ",
                      float8_e4m3fn="f8E4M3FN", float8_e4m3fnuz="f8E4M3FNUZ", float8_e5m2="f8E5M2",
                      float8_e5m2fnuz="f8E5M2FNUZ", int2="i2", int4="i4", uint2="ui2",
                      uint4="ui4").items()}}


def name_type(shape: Sequence[int], dtype: np.dtype) -> str:
    """`tensor<3x4xf32>`. Raises: TypeError for a dtype that XLA's CPU client does not take."""
    if dtype not in _ELEMENT_TYPES:
        raise TypeError(f"the backend xla has no arrays of dtype {np.dtype(dtype).name}")
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{_ELEMENT_TYPES[np.dtype(dtype)]}>"


def format_constant(value: np.ndarray) -> str:
    """`dense<...>` with the bits of the value, and its type. Elements that are all alike are written once."""
    kind = name_type(value.shape, value.dtype)
    if value.size == 0:
        return f"dense<> : {kind}"
    flat = np.ascontiguousarray(value).reshape(-1)
    bits = flat.view(np.uint8).reshape(flat.size, -1)
    if flat.size == 1 or bool((bits == bits[0]).all()):
        return f"dense<{_format_element(flat[0])}> : {kind}"
    if value.dtype == dtypes.bool_:
        return f"dense<{_format_nested(value)}> : {kind}"
    return f'dense<"0x{flat.tobytes().hex().upper()}"> : {kind}'


def _format_element(element: Any) -> str:
    kind = element.dtype.kind
    if kind == "b":
        return "true" if element else "false"
    if kind in "iu" or dtypes.is_narrow(element.dtype) and not dtypes.is_narrow_float(element.dtype):
        return str(int(element))
    if kind == "c":
        return f"({_format_element(element.real)}, {_format_element(element.imag)})"
    width = 2 * element.dtype.itemsize
    return f"0x{int(element.view(f'u{element.dtype.itemsize}')):0{width}X}"


def _format_nested(value: np.ndarray) -> str:
    if not value.shape:
        return _format_element(value[()])
    return f"[{', '.join(map(_format_nested, value))}]"


def format_attribute(value: Any) -> str:
    """Integers have 64 bits, tuples are arrays of these; strings are attributes as they stand."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return f"{value} : i64"
    if isinstance(value, str):
        return value
    return f"array<i64{': ' if len(value) else ''}{', '.join(map(str, value))}>"


def format_matrix(rows: Sequence[Sequence[int]]) -> str:
    """Pairs of integers, such as padding, as a tensor."""
    listed = ", ".join(f"[{low}, {high}]" for low, high in rows)
    return f"dense<{f'[{listed}]' if rows else ''}> : tensor<{len(rows)}x2xi64>"
