"""A call of more arrays than a native launcher passes."""

import numpy as np

from jitcore import jit
from jitcore.backends.cpu.runtime.launch import MAX_ARRAYS


def test_more_arguments_than_a_launcher_passes():
    arrays = [np.full(2, k, np.float32) for k in range(MAX_ARRAYS + 5)]
    total = jit(lambda xs: xs[0] + xs[1] + xs[-1])
    np.testing.assert_array_equal(total(arrays), arrays[0] + arrays[1] + arrays[-1])
    assert total.cache_info().compiles == 1
