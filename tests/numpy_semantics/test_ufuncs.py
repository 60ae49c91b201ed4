"""Ufuncs on handles against NumPy: dtypes, values, kinds of results, for every pair of operand types."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from jitcore import autojit
from jitcore.numpy_semantics.errors import NotTraceable
from jitcore.numpy_semantics.functions.ufuncs import KERNELS
from tests.numpy_semantics.tracing import Static, check, check_error, run_traced

DTYPES = [np.dtype(name) for name in
          "bool int8 uint8 int16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()]
UNARY = [ufunc for ufunc in KERNELS if ufunc.nin == 1 and ufunc.signature is None]
BINARY = [ufunc for ufunc in KERNELS if ufunc.nin == 2 and ufunc.signature is None]


def make_array(dtype, size=7, seed=0):
    """Values that every ufunc takes: small, of both signs where the dtype has one."""
    values = np.random.default_rng(seed).uniform(-3, 3, size)
    values[: size // 2] = np.abs(values[: size // 2]) + 1
    if dtype.kind == "c":
        return (values + 0.5j).astype(dtype)
    return np.abs(values).astype(dtype) if dtype.kind in "bu" else values.astype(dtype)


def check_or_refuse(function, *args):
    """Compares both runs; where NumPy refuses the types, so must the traced run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with np.errstate(all="ignore"):
                function(*args)
        except (TypeError, ValueError, OverflowError):
            check_error(function, *args)
            return
        check(function, *args, rewrite=False, rtol=1e-11)


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_unary(ufunc):
    for dtype in DTYPES:
        x = make_array(dtype)
        x = np.where(x == 0, x.dtype.type(1), x) if ufunc is np.reciprocal else x  # undefined for the int 0
        check_or_refuse(lambda x: ufunc(x), x)
        check_or_refuse(lambda x: ufunc(x), x[0])
    for number in (2, 0.5, True):
        check_or_refuse(lambda x: ufunc(x), number)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_binary_of_every_pair_of_dtypes(ufunc):
    pairs = list(itertools.product(DTYPES, DTYPES))
    for one, other in pairs[
        :: 1 if ufunc in (np.add, np.true_divide, np.power, np.less, np.floor_divide) else 7
    ]:
        x, y = make_array(one), make_array(other, seed=1)
        if ufunc is np.power and y.dtype.kind in "iu":
            y = np.abs(y) % 4
        check_or_refuse(lambda x, y: ufunc(x, y), x, y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [3, -2, 2.5, 1 + 2j, True, 1000], ids=str)
def test_python_numbers_are_weak(dtype, number):
    for ufunc in (np.add, np.multiply, np.true_divide, np.less, np.maximum, np.remainder):
        x = make_array(dtype)
        for a, b in ((x, number), (x, Static(number)), (x[1], number), (x[1], Static(number))):
            if type(number) is int and dtype.kind in "iu" and not isinstance(b, Static) and \
                    not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
                continue  # whether it fits is found out when the program runs
            try:
                with np.errstate(all="ignore"):
                    ufunc(a, b.value if isinstance(b, Static) else b)
            except (OverflowError, TypeError):
                check_error(lambda a, b: ufunc(a, b), a, b)
            else:
                check(lambda a, b: (ufunc(a, b), ufunc(b, a)), a, b, rewrite=False)


def test_scalars_and_arrays():
    for a, b in itertools.combinations((np.float32(1.5), 2.5, np.int64(3), np.ones(3, np.float32), 4), 2):
        check(lambda a, b: (a + b, b * a, a / b, a - b, a > b, a == b), a, b)


def test_division_by_zero_of_numpy_s_scalars_is_silent():
    check(lambda x, y: (x / y, -x / y, y / y, x // y, x % y), np.float64(1), np.float64(0))
    check(lambda x, y: (x // y, x % y), np.array([1, -7, 0]), np.array([0, 0, 0]))
    check(lambda x, y: (x // y, x % y, divmod(x, y)), np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3]))
    floats = np.array([7.5, -7.5, 0.0, -0.0, np.inf, 3.0, 1e300])
    check(lambda x, y: (x // y, x % y), floats, np.array([2.0, 2.0, -1.0, 3.0, 2.0, np.inf, 1e-10]))


def test_signed_and_unsigned_integers_compare_by_value():
    x, y = np.array([-1, 0, 5]), np.array([2**63, 0, 4], np.uint64)
    check(lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, y < x), x, y)


def test_comparison_with_an_int_beyond_the_dtype():
    x = np.array([1, 200], np.uint8)
    check(lambda x: (x < 300, x > -1, x == 1000, 256 > x), x)


def test_out_where_dtype_and_casting():
    x, y, out = np.arange(4.0), np.ones(4), np.zeros(4)
    check(lambda x, y, out: np.add(x, y, out=out), x, y, out)
    check(lambda x, y, out: np.add(x, y, out), x, y, out)
    check(lambda x, y, out: np.add(x, y, out=out, where=x > 1), x, y, out)
    check(lambda x, y: np.add(x, y, dtype=np.float32, casting="same_kind"), x, y)
    check(lambda x, out: np.multiply(x, 2, out=out[:]), x, out)
    check(lambda x, out: np.modf(x, out, None), x, out)
    check_error(lambda x, y: np.add(x, y, out=np.zeros(4, int)), x, y)
    check_error(lambda x, out: np.add(x, x, out=out), np.ones((2, 4)), out)
    check_error(lambda x, y: np.add(x, y), np.ones(3), np.ones(4))


def test_in_place_operators_keep_the_dtype():
    def change(a, b):
        a += b
        a -= 1
        a *= 2
        a[1:] //= 2
        return a

    check(change, np.arange(5), np.arange(5))
    check(change, np.arange(5.0), np.arange(5))
    check(change, np.arange(5, dtype=np.float32), np.arange(5.0))

    def divide(a):
        a /= 2

    check(divide, np.ones(3))
    check_error(divide, np.ones(3, int))


def test_powers():
    check(lambda x: (x**2, x**3, x**0.5, x**-1, x**1, x**0, x**2.5, 2**x), np.array([1.0, 4.0, 0.25]))
    check(lambda x: (x**2, x**3, x**1, x**0, 2**x), np.array([1, 4, 7]))
    check(lambda x, y: x**y, np.array([1, 4, 7]), np.array([0, 3, 2]))
    check_error(lambda x: x**-1, np.array([1, 2]))
    check_error(lambda x, y: x**y, np.array([1, 2]), np.array([1, -1]))


@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.minimum, np.logical_or, np.bitwise_xor, np.subtract]
)
def test_reduce(ufunc):
    for x in (np.arange(1, 13).reshape(3, 4), np.arange(12.0).reshape(3, 4) + 0.5):
        if ufunc is np.bitwise_xor and x.dtype.kind == "f":
            continue
        check(lambda x: (ufunc.reduce(x), ufunc.reduce(x, axis=1), ufunc.reduce(x[0])), x)


def test_other_methods():
    x, y = np.arange(1.0, 5), np.arange(3.0)
    check(lambda x, y: (np.add.outer(x, y), np.multiply.outer(x, y[0]), np.less.outer(x, y)), x, y)
    check(lambda x: (np.add.accumulate(x), np.maximum.accumulate(x)), x)
    check(lambda x: np.add.reduceat(x, [0, 2, 1]), x)

    def update(x, i):
        np.add.at(x, i, 1)
        np.subtract.at(x, [0, 0], [1.0, 2.0])

    check(update, x, np.array([0, 1, 1, -1]))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_at_computes_in_the_wider_dtype(name, dtype):
    """And casts each sum of array and value, not the value."""
    for value in (-0.25, 2, np.float32(-1.5), np.array([200.7, -1.5]), np.array([1, 2**40])):
        def update(x, ufunc=getattr(np, name), value=value):
            ufunc.at(x, [-1, 1, 1, -1], np.resize(value, 4))
            return x

        found, expected = (run(np.array([1, 2, 3]).astype(dtype)) for run in (autojit(update), update))
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_what_is_not_traced_says_so():
    with pytest.raises(NotTraceable, match="longdouble|float128"):
        run_traced(lambda x: np.add(x, x, dtype=np.longdouble), [np.ones(2)])
