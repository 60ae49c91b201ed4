"""Every primitive on XLA against the reference backend: values, dtypes, weak types; alone and under `vmap`.

Programs hold many primitives each, as XLA takes long for every program, however short.
"""

from __future__ import annotations

import numpy as np
import pytest

from jitcore import jit, vmap
from jitcore.tree_util import tree_leaves
from tests.transforms.batching_cases import CASES, Case

pytest.importorskip("jax")

#: What gives other elements than the reference does where any will do, or is ordered by no number.
OPEN = {"compress", "empty", "eig", "schur"}
NAMES = [name for name in CASES if name not in OPEN]
#: Primitives of a program.
SIZE = 24


def list_groups():
    for first in range(0, len(NAMES), SIZE):
        group = NAMES[first : first + SIZE]
        yield pytest.param(group, marks=[pytest.mark.slow] * (first % (2 * SIZE) > 0), id=group[0])


def draw(cases: list[Case], batch: int | None) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(3)
    return [
        [operand.draw(rng, batch or 0, None if batch is None else 0) for operand in case.operands]
        for case in cases
    ]


@pytest.mark.parametrize("group", list_groups())
@pytest.mark.parametrize("batch", [None, pytest.param(3, marks=pytest.mark.slow)])
def test_equals_the_reference(group, batch):
    cases = [case for name in group for case in CASES[name] if case.operands]
    operands = draw(cases, batch)
    functions = [case.function if batch is None else vmap(case.function) for case in cases]

    def run(operands):
        return [tree_leaves(function(*given)) for function, given in zip(functions, operands)]

    found, expected = (jit(run, backend=name)(operands) for name in ("xla", "reference"))
    for case, ours, theirs in zip(cases, found, expected):
        for one, other in zip(ours, theirs, strict=True):
            assert (one.shape, one.dtype, one.weak_type) == (other.shape, other.dtype, other.weak_type), case
            one, other = np.asarray(one), np.asarray(other)
            if one.dtype.kind in "biu":
                np.testing.assert_array_equal(one, other, err_msg=str(case))
            else:
                wide = np.complex128 if one.dtype.kind == "c" else np.float64
                np.testing.assert_allclose(
                    one.astype(wide),
                    other.astype(wide),
                    10 * case.tolerance,
                    10 * case.tolerance,
                    err_msg=str(case),
                )
