"""NumPy's functions over handles against NumPy: values, dtypes, kinds of results, and mutated arguments."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numpy_semantics.function_cases import ANY, BYTES, FLOAT, INEXACT, INTEGER, REAL, SOURCE
from tests.numpy_semantics.tracing import check

DTYPES = {"ANY": "f8 f4 i8 i4 u1 b1 c16".split(), "REAL": "f8 f4 i8 i4 u1".split(),
          "INEXACT": "f8 f4 c16".split(), "FLOAT": "f8 f4".split(), "SOURCE": ["f8"],
          "INTEGER": "i8 i4 u1 b1".split(), "BYTES": "f8 f4 i8 u4 i2 u1 c16 c8".split()}
TABLES = {"ANY": ANY, "REAL": REAL, "INEXACT": INEXACT, "FLOAT": FLOAT, "SOURCE": SOURCE, "INTEGER": INTEGER,
          "BYTES": BYTES}
CASES = [pytest.param(function, shapes, dtype, id=f"{name}-{dtype}")
         for table, cases in TABLES.items() for name, (function, *shapes) in cases.items()
         for dtype in DTYPES[table]]


def make_operand(shape: tuple, dtype: np.dtype, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return generator.integers(0 if dtype.kind == "u" else -4, 5, shape).astype(dtype)
    values = generator.normal(size=shape)
    if dtype.kind == "c":
        values = values + 1j * generator.normal(size=shape)
    return values.astype(dtype)


@pytest.mark.parametrize(("function", "shapes", "dtype"), CASES)
def test_functions_agree_with_numpy(function, shapes, dtype):
    operands = [make_operand(shape, np.dtype(dtype), seed) for seed, shape in enumerate(shapes)]
    check(function, *operands)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float32])
def test_sums_are_of_the_dtype_that_was_asked_for(dtype):
    def reduce(a):
        return np.sum(a, dtype=dtype), a.sum(0, dtype), np.prod(a, dtype=dtype), np.cumsum(a, dtype=dtype)

    check(reduce, np.arange(90, 102, dtype=np.int64).reshape(3, 4))
