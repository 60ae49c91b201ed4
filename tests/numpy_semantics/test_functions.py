"""NumPy's functions over handles against NumPy: values, dtypes, kinds of results, and mutated arguments."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numpy_semantics.function_cases import ANY, BYTES, FLOAT, INEXACT, INTEGER, REAL, SOURCE
from tests.numpy_semantics.tracing import check, run_traced

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
def test_functions_agree_with_numpy(function, shapes, dtype, request):
    name = request.node.callspec.id.rpartition("-")[0]
    if name in ("count_nonzero", "matvec", "vecmat") and np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("NumPy before 2.4 lacks it, or computes it itself")
    operands = [make_operand(shape, np.dtype(dtype), seed) for seed, shape in enumerate(shapes)]
    check(function, *operands)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.float32])
def test_sums_are_of_the_dtype_that_was_asked_for(dtype):
    def reduce(a):
        return np.sum(a, dtype=dtype), a.sum(0, dtype), np.prod(a, dtype=dtype), np.cumsum(a, dtype=dtype)

    check(reduce, np.arange(90, 102, dtype=np.int64).reshape(3, 4))


VIEW_ERRORS = {
    "moveaxis": lambda a: np.moveaxis(a, 0, (0, 1)), "moveaxis absent": lambda a: np.moveaxis(a, 5, 0),
    "fliplr": lambda a: np.fliplr(a[0]), "flip": lambda a: np.flip(a, 1.5), "twice": lambda a: np.flip(a, (0, 0)),
    "rot90": lambda a: np.rot90(a, 1, (0, 1, 0)), "split": lambda a: np.split(a, 7),
    "dsplit": lambda a: np.dsplit(a, 2), "array_split": lambda a: np.array_split(a, 0),
    "squeeze": lambda a: np.squeeze(a, 0), "squeeze method": lambda a: a.squeeze(1),
    "expand_dims": lambda a: np.expand_dims(a, (0, 0)), "rollaxis": lambda a: np.rollaxis(a, 0, 9),
    "swapaxes": lambda a: np.swapaxes(a, 0, 4), "unstack": lambda a: np.unstack(a, axis=4),
    "matrix_transpose": lambda a: np.matrix_transpose(a[0]),
}


@pytest.mark.parametrize("name", VIEW_ERRORS)
@pytest.mark.parametrize("shape", [(3, 4), (30, 41)])
def test_views_raise_what_numpy_raises(name, shape):
    a = np.zeros(shape)
    with pytest.raises(Exception) as expected:  # noqa: PT011  whatever NumPy has
        VIEW_ERRORS[name](a)
    with pytest.raises(type(expected.value)) as found:
        run_traced(VIEW_ERRORS[name], [a])
    assert str(found.value).splitlines()[0] == str(expected.value)


def test_views_share_memory():
    def change(a):
        np.rot90(a, 0)[0] = 1
        np.flip(a, 1)[1, 0] = 2
        np.split(a, [1, 2])[2][0, 0] = 3
        np.hsplit(a, 2)[1][0, 1] = 4
        np.moveaxis(a, 0, 1)[2, 2] = 5
        np.flip(m=a)[0, 0] = 2
        np.swapaxes(a, axis1=0, axis2=1)[1, 0] = 3
        np.atleast_3d(a)[0, 2, 0] = 4
        np.squeeze(a[None])[2, 2] = 5
        np.expand_dims(a, 1)[1, 0, 1] = 6
        np.unstack(a, axis=1)[3][1] = 7

    check(change, np.arange(12.0).reshape(3, 4))
