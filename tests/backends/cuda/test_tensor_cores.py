"""Products of matrices of 16 bits by tensor cores: values against float64, mappings, machine code."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda.runtime.executable import CudaExecutable, describe_functions
from jitcore.tree_util import tree_leaves

DEVICE = "cuda:emulated"
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
#: Batches last in one factor and first in the other.
MIXED = (((1,), (1,)), ((2,), (0,)))


def to_float32(x, y):
    return jnp.matmul(x, y, preferred_element_type=np.float32)


def plain(product):
    return product


#: (product, what follows it, shapes, mappings of its kernels, how often 16 bits are rounded to on the way).
CASES = {
    **{f"{m} x {k} x {n}": (to_float32, plain, [(m, k), (k, n)], "tiles", 0) for m, k, n in (
        (9, 17, 9), (16, 16, 16), (15, 17, 33), (16, 31, 40), (17, 32, 17), (32, 33, 32), (33, 64, 31), (40, 130, 72),
        (63, 65, 65), (9, 200, 100))},
    "rounded once": (jnp.matmul, plain, [(50, 70), (70, 40)], "tiles", 1),
    "batches": (to_float32, plain, [(3, 20, 16), (3, 16, 24)], "tiles", 0),
    "one factor for all": (to_float32, plain, [(3, 20, 16), (16, 24)], "tiles", 0),
    "large tiles": (to_float32, plain, [(44, 65, 36), (44, 36, 130)], "tiles", 0),
    "left transposed": (lambda x, y: to_float32(x.T, y), plain, [(40, 35), (40, 50)], "tiles", 0),
    "right transposed": (lambda x, y: to_float32(x, y.T), plain, [(35, 80), (50, 80)], "tiles", 0),
    "both transposed": (lambda x, y: to_float32(x.T, y.T), plain, [(80, 40), (56, 80)], "tiles", 0),
    "batches last": (lambda x, y: lax.dot_general(x, y, MIXED, preferred_element_type=np.float32), plain,
                     [(24, 16, 3), (3, 16, 24)], None, 0),
    "windows": (lambda x, y: to_float32(x[1:], y[:, 3:]), plain, [(41, 24), (24, 43)], "tiles", 0),
    "every other row": (lambda x, y: to_float32(x[::2], y), plain, [(41, 24), (24, 40)], "tiles", 0),
    "computed on the way in": (lambda x, y: to_float32(-x, jnp.abs(y)), plain, [(40, 24), (24, 40)], "flat flat tiles", 0),
    "an epilogue": (jnp.matmul, lambda p, b: jnp.tanh(p + b), [(40, 24), (24, 40), (40,)], "tiles", 3),
    "in float32": (to_float32, lambda p, b: jnp.maximum(p * 0.5 + b, 0), [(40, 24), (24, 40), (40,)], "tiles", 0),
}
#: What has no product of small matrices: (function, dtypes, shapes).
OTHERS = {
    "a vector": (to_float32, ["float16"] * 2, [(40, 64), (64,)]),
    "a vector from the left": (to_float32, ["bfloat16"] * 2, [(64,), (64, 40)]),
    "two dtypes": (jnp.matmul, ["float16", "bfloat16"], [(40, 24), (24, 40)]),
    "float32": (jnp.matmul, ["float32"] * 2, [(40, 24), (24, 40)]),
    "to float64": (lambda x, y: jnp.matmul(x, y, preferred_element_type=np.float64), ["float16"] * 2, [(40, 24), (24, 40)]),
    "few rows": (to_float32, ["float16"] * 2, [(3, 24), (24, 40)]),
}


def draw(shapes, dtypes):
    random = np.random.default_rng(11)
    return [
        random.standard_normal(shape).astype(HALVES.get(dtype, dtype)) for shape, dtype in zip(shapes, dtypes)
    ]


def compile_for(arch, function, args):
    """What an architecture would run, on the device in software."""
    found = jit(function, backend=DEVICE).lower(*args).compile().runtime_executable()
    return CudaExecutable(found.closed_jaxpr, found.options, arch, found.runtime, found.device)


def compute(function, *args):
    return np.asarray(jit(function, backend="reference")(*args), np.float64)


@pytest.mark.parametrize("arch", ["sm_90", "sm_75"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", CASES)
def test_values_are_as_near_as_sums_in_float32(name, dtype, arch):
    """Those of tensor cores, and those of an architecture that lacks them, by the same bound."""
    product, follow, shapes, kinds, roundings = CASES[name]
    args = draw(shapes, [dtype] * len(shapes))
    executable = compile_for(arch, lambda x, y, *rest: follow(product(x, y), *rest), args)
    (found,) = executable.bind(executable.closed_jaxpr.in_avals)(*args)
    assert found.dtype == (HALVES[dtype] if roundings else np.float32)
    x, y, *rest = (arg.astype(np.float64) for arg in args)
    want = compute(lambda x, y, *rest: follow(product(x, y), *rest), x, y, *rest)
    scale = abs(compute(product, abs(x), abs(y)))
    terms = abs(compute(product, np.ones_like(x), np.ones_like(y))).max()
    bound = terms * 2.0**-24 * scale + roundings * float(ml_dtypes.finfo(dtype).eps) / 2 * (scale + 1)
    error = abs(np.asarray(found).astype(np.float64) - want)
    assert (error <= bound).all() and (roundings or error.max() <= 1e-5 * abs(want).max())
    if kinds is not None:
        mapping = describe_functions(executable.read_latest())
        assert re.findall(r": (\w+)", mapping) == kinds.split()
        assert mapping.endswith("tensor cores") == (arch != "sm_75")


@pytest.mark.parametrize("name", OTHERS)
def test_what_tensor_cores_do_not_compute(name):
    function, dtypes, shapes = OTHERS[name]
    args = draw(shapes, dtypes)
    compiled = jit(function, backend=DEVICE).lower(*args).compile()
    assert "tensor" not in compiled.as_text("mapping") and "mma" not in compiled.as_text("ptx")
    wide = [arg.astype(np.float64) for arg in args]
    (found,) = tree_leaves(compiled(*args))
    np.testing.assert_allclose(np.asarray(found), compute(function, *wide), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype, kind", [("float16", "f16"), ("bfloat16", "bf16")])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_architectures(arch, dtype, kind):
    """Which ones have the instruction, and what becomes of it, where NVIDIA's tools are."""
    compiled = (
        jit(jnp.matmul).lower(*draw([(1000, 520), (520, 800)], [dtype] * 2)).compile(target=f"cuda:{arch}")
    )
    instruction = f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"
    assert (instruction in compiled.as_text("ptx")) == (arch != "sm_75")
    if compiled.as_text("resources"):
        assert " 0 bytes spilled" in compiled.as_text("resources")
    if "not available" not in compiled.as_text("sass"):
        assert ("HMMA.16816.F32" in compiled.as_text("sass")) == (arch != "sm_75")
