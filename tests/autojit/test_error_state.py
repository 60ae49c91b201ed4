"""Calls under another floating-point error state: who asked NumPy to raise is not left without an error."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import jitcore


def invert(x):
    return 1.0 / x


@pytest.fixture
def compiled():
    made = jitcore.autojit(invert, strict=True)
    made(np.ones(3000))
    return made


def call_silently(compiled, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return compiled(x)


def test_errors_raise_where_numpy_raises(compiled):
    x = np.arange(3000.0)
    for _ in range(2):
        assert np.isinf(call_silently(compiled, x)[0])  # the program, which warns of nothing
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            compiled(x)
        with np.errstate(divide="ignore"):
            assert np.isinf(compiled(x)[0])
    called = []
    with np.errstate(all="call", call=lambda *args: called.append(args)):
        compiled(x)
    assert called and compiled.cache_info().traces == 1


def test_seterr_counts_in_its_thread(compiled):
    x = np.arange(3000.0)
    before = np.seterr(all="raise")
    try:
        with pytest.raises(FloatingPointError):
            compiled(x)
        found = []
        thread = threading.Thread(target=lambda: found.append(call_silently(compiled, x)))
        thread.start()
        thread.join()
    finally:
        np.seterr(**before)
    assert np.isinf(call_silently(compiled, x)[0])
    assert len(found) == 1 and np.geterr() == before


def test_a_first_call_that_raises_is_no_verdict():
    made = jitcore.autojit(invert)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        made(np.zeros(3000))
    assert made(np.ones(3000)).sum() == 3000 and made.report().compiled == 100
