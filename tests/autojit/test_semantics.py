"""Semantics of NumPy and Python that comparing results up to rounding does not show."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from jitcore import autojit
from tests.autojit import user_programs_semantics as programs


# -- errors ---------------------------------------------------------------------------------------------------
def cannot_be_traced(x, i):
    open("/dev/null").close()
    return x[i]


def can_be_traced(x, i):
    x[0] = 1
    return x[i]


@pytest.mark.filterwarnings("ignore::jitcore.errors.AutojitWarning")
@pytest.mark.parametrize("function", [cannot_be_traced, can_be_traced])
@pytest.mark.parametrize("x", [np.arange(3.0), np.arange(3.0).astype(object)])
def test_errors_have_no_context_of_ours(function, x):
    compiled = autojit(function)
    for i in (7, 8, 9, 7):
        with pytest.raises(IndexError) as caught:
            compiled(x, i)
        assert caught.value.__context__ is None and caught.value.__cause__ is None
    try:
        raise KeyError("of the caller")
    except KeyError as outer:
        with pytest.raises(IndexError) as caught:
            compiled(x, 7)
        assert caught.value.__context__ is outer


# -- lifetimes --------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::jitcore.errors.AutojitWarning")
@pytest.mark.parametrize("function", [lambda x: x * 2, lambda x: x + 1 if x[0] > 0 else None])
def test_arguments_are_let_go(function):
    compiled = autojit(function)
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            x = np.ones(1000)
            known = weakref.ref(x)
            compiled(x)
            del x
            assert known() is None
    finally:
        gc.enable()


# -- signs of zeros, dtypes of short ways, flags ------------------------------------------------------------------
ZEROS = np.array([complex(a, b) for a in (-0.0, 0.0, 2.0, -2.0) for b in (0.0, -0.0, 1.0)])


@pytest.mark.parametrize("function, x", [
    (lambda z: z**-1, ZEROS[2:]), (np.sign, ZEROS), (np.reciprocal, ZEROS), (lambda x: np.cumsum(x), np.array([-0.0, -0.0, 0.0])),
    (lambda x: x**2, np.array([True, False])), (lambda x: x**2, np.array([1, 2], np.int8))])
def test_bits_are_those_of_numpy(function, x):
    with np.errstate(all="ignore"):
        expected = function(x)
    found = autojit(lambda x: function(x), strict=True)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    numbers = [np.stack([a.real, a.imag]) for a in (found, expected)]
    known = ~np.isnan(numbers[1])
    np.testing.assert_array_equal(np.signbit(numbers[0])[known], np.signbit(numbers[1])[known])


def test_imaginary_part_of_reals_is_read_only():
    assert not autojit(lambda x: x.imag, strict=True)(np.ones(3)).flags.writeable


@pytest.mark.parametrize(
    "x", [np.ones((3, 4)), np.asfortranarray(np.ones((3, 4))), np.ones((2, 3, 4)).transpose(1, 2, 0)]
)
def test_results_lie_in_memory_as_those_of_numpy(x):
    def make(x):
        return (
            x * 2,
            x.T + 1,
            np.where(x > 0, x, 0),
            np.zeros_like(x),
            x.copy(),
            x.copy("F"),
            np.asfortranarray(x),
            x.astype("f4"),
        )

    expected, found = make(x), autojit(make)(x)
    assert [a.flags.c_contiguous for a in found] == [a.flags.c_contiguous for a in expected]
    assert [a.strides for a in found] == [a.strides for a in expected]


# -- attributes ---------------------------------------------------------------------------------------------------
def test_attributes_of_classes_and_functions_are_read_anew():
    compiled, x = autojit(programs.read_scale, strict=True), np.arange(2.0)
    for scale, special, factor in (
        (2.0, None, 3.0),
        (5.0, None, 3.0),
        (5.0, 7.0, 3.0),
        (5.0, None, 4.0),
        (2.0, None, 3.0),
    ):
        programs.set_back()
        programs.Counter.scale, programs.helper.factor = scale, factor
        if special is not None:
            programs.Special.scale = special
        np.testing.assert_array_equal(compiled(x), programs.read_scale(x))
    programs.set_back()


# -- einsum of one array --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text", ["ij", "ji", "ii->i", "ij->j", "ii", "...->...", "...ij->...ji", "i...->...i"]
)
def test_einsum_of_one_array_is_a_view_where_nothing_is_summed(text):
    def store(x):
        y = np.einsum(text, x)
        if y.ndim:
            y[0] = 77
        return y

    compiled = autojit(store, strict=True)
    ours, theirs = np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3)
    for _ in range(2):
        expected, found = store(theirs), compiled(ours)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(ours, theirs)
        assert np.shares_memory(found, ours) == np.shares_memory(expected, theirs)
        assert found.flags.writeable == expected.flags.writeable and found.strides == expected.strides
