"""Casts of floats to integers give what NumPy's give on this machine, for what the integers do not hold too."""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import autojit, jit

OUTSIDE = np.array([0.5, -0.5, -1.7, 127.5, 128, 256, 300, -129, 65537, 2.0**31 - 0.5, 2.0**31, -(2.0**31) - 0.5,
                    3e9, -3e9, 2.0**32 + 7, 1e10, 2.0**63, -(2.0**63), 1.5 * 2.0**63, 2.0**64 - 4096, 2.0**64, 1e20,
                    -1e30, 1e300, np.inf, -np.inf, np.nan])


def cast(x, dtype):
    stored = np.zeros(x.shape, dtype)
    stored[...] = x
    return x.astype(dtype), stored, x[3].astype(dtype), x[::2].astype(dtype), np.full(2, x[-1], dtype)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("source", ["f8", "f4", "f2"])
def test_casts_agree_with_numpy(source):
    compiled = autojit(cast, strict=True)
    values = OUTSIDE.astype(source)
    for target in map(np.dtype, "bBhHiIlL?"):
        for x in (values, np.tile(values, 9), np.arange(-40, 40).astype(source) / 3):
            for expected, found in zip(cast(x, target), compiled(x, target)):
                assert type(found) is type(expected) and found.dtype == target
                np.testing.assert_array_equal(found, expected)


def test_casts_of_jit_saturate():
    found = jit(lambda x: x.astype(np.int32))(np.array([np.nan, np.inf, -1e10, 1.5], np.float32))
    assert np.asarray(found).tolist() == [0, 2**31 - 1, -(2**31), 1]
