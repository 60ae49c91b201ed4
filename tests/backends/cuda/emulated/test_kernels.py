"""Kernels that LLVM compiles to PTX, against NumPy, in several orders of threads and blocks."""

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.backends.cuda.emulated.kernels import PROGRAMS
from tests.backends.cuda.emulated.programs import launch, to_ptx


def test_llvmlite_has_the_target():
    llvm.initialize_all_targets()
    assert llvm.Target.from_triple("nvptx64-nvidia-cuda").name == "nvptx64"


@pytest.mark.parametrize("seed", [None, 0, 1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name, seed):
    program = PROGRAMS[name]
    results = launch(to_ptx(program.ir_text), program.arguments, program.grid, program.block, seed=seed)
    for got, want in zip(results, program.expected, strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-7)
