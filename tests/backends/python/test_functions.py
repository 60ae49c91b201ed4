"""The loop program as a Python function: what it gives as it stands and under Numba, against the jaxpr as it was
recorded, run by NumPy; and how it reads."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax, tree_util
from jitcore.backends.python import load_numba, load_python, write_function, write_numba
from jitcore.loopir import program as loopir
from jitcore.loopir.expr import Axis, Buffer, Graph, Index
from jitcore.loopir.traversal import flatten, list_outermost
from tests.backends.python.programs import PROGRAMS
from tests.loop_program import schedule

#: Relative and, of the largest element, absolute difference, by the bytes of a real number.
TOLERANCES = {2: 2e-2, 4: 3e-5, 8: 1e-11}


def assert_agrees(found, expected, name=""):
    found, expected = tree_util.tree_leaves(found), tree_util.tree_leaves(expected)
    assert len(found) == len(expected)
    for number, (one, other) in enumerate(zip(found, expected)):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype), (name, number)
        if other.dtype.kind in "biu":
            np.testing.assert_array_equal(one, other, err_msg=f"{name} {number}")
            continue
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        tolerance = TOLERANCES[other.dtype.itemsize // (2 if other.dtype.kind == "c" else 1)]
        one, other = one.astype(wide), other.astype(wide)
        finite = np.abs(other[np.isfinite(other)])
        np.testing.assert_allclose(one, other, tolerance, tolerance * (finite.max() if finite.size else 1),
                                   err_msg=f"{name} {number}")


def compile_with(function, codegen):
    return jitcore.jit(function, compiler_options={"codegen": codegen})


def check_program(name, codegen):
    function, args = PROGRAMS[name]
    expected = jitcore.jit(function, backend="reference")(*args)
    assert_agrees(compile_with(function, codegen)(*args), expected, name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python(name):
    check_program(name, "python")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (place % 3 > 0))
                                  for place, name in enumerate(PROGRAMS)])
def test_by_numba(name):
    check_program(name, "numba")


@pytest.mark.parametrize("codegen", ["python", "numba"])
@pytest.mark.filterwarnings("error")
def test_orders_of_polygamma_that_there_are_not(codegen):
    import scipy.special.basic  # noqa: F401  (warns of being asked for what it has)

    m, x = np.array([1.0, 2.5, -1.0, 0.0, 300, 300, 3, 2]), np.array([0.5, 1.5, 2.5, 1.2, 0.1, 100, -1.5, 0])
    found = compile_with(lax.polygamma, codegen)(m, x)
    np.testing.assert_allclose(found, jitcore.jit(lax.polygamma, backend="reference")(m, x), rtol=1e-12)


#: Sums of many numbers: name -> shape, function, numbers.
LONG_SUMS = {
    "all": ((60_000,), lambda x: x.sum(), 60_000),
    "no whole blocks": ((9_999,), lambda x: x.sum(), 9_999),
    "pairs": ((200,), lambda x: (x[:, None] + 0 * x).sum(), 40_000),
    "rows of blocks": ((30, 2000), lambda x: x.sum(), 60_000),
    "short rows": ((20_000, 3), lambda x: (x * x[0, 0] / x[:, :1]).sum(), 60_000),
    "beside an extreme": ((60_000,), lambda x: jnp.stack([x.sum(), x.sum() + x.max() - x.min()]), 60_000),
    "up to a place": ((60_000,), lambda x: jnp.where(jnp.arange(60_000) < 50_000 * x[0] / x[1], x, 0).sum(), 50_000),
    "running": ((60_000,), lambda x: jnp.cumsum(x)[-1], 60_000),
    "running back": ((9_999,), lambda x: jnp.cumsum(x[::-1])[-1], 9_999),
    "running to the first": ((9_999,), lambda x: lax.cumsum(x, reverse=True)[0], 9_999),
}


@pytest.mark.parametrize(("name", "dtype"), [
    (name, dtype) for name in LONG_SUMS for dtype in ("float32", "complex64", "float64")
    if dtype != "complex64" or name not in ("beside an extreme", "up to a place")])
def test_long_sums_are_in_blocks(name, dtype):
    """Of numbers that all round in one direction."""
    shape, function, count = LONG_SUMS[name]
    x = np.full(shape, 0.1, dtype)
    jitted = compile_with(function, "python")
    error = np.max(abs(np.asarray(jitted(x)).astype("complex128") / (count * complex(x.flat[0])) - 1))
    assert error < (5e-6 if np.finfo(dtype).eps > 1e-9 else 1e-14)
    text = jitted.inspect("numba")
    assert "+= part" in text
    assert ("wide_total" in text) == (dtype != "float64")


def test_short_sums_are_not():
    for function, shape in ((lambda x: x.sum(), (1000,)), (lambda x: x.sum(1), (500, 70)), (jnp.cumsum, (100,))):
        jitted = jitcore.jit(function)
        jitted(np.ones(shape, np.float32))
        assert "part" not in jitted.inspect("numba")
    jitted = jitcore.jit(lambda x: x.sum())
    jitted(np.ones(60_000, np.int32))
    assert "part" not in jitted.inspect("numba")


@pytest.mark.parametrize("name", ["up to a place", "running to the first"])
def test_long_sums_by_numba(name):
    shape, function, _ = LONG_SUMS[name]
    x = np.random.default_rng(0).random(shape, np.float32)
    results = [compile_with(function, codegen)(x) for codegen in ("python", "numba")]
    np.testing.assert_array_equal(*results)


def list_statements(program):
    found = flatten(list_outermost(program.steps))
    return [*found, *(store for s in found if isinstance(s, loopir.Reduce) for store in s.stores)]


def list_features(statement) -> list[str]:
    """What of the language a statement uses."""
    kind, marks = type(statement).__name__, []
    for mark in (
        "bounds",
        "block_results",
        "stores",
        "mask",
        "combine",
        "in_order",
        "packed",
        "reverse",
        "swaps",
        "epilogue",
    ):
        if getattr(statement, mark, None):
            marks.append(f"{kind} {mark}")
    return [kind, *marks]


def test_the_programs_have_every_statement():
    found = collections.Counter()
    for function, args in PROGRAMS.values():
        for statement in list_statements(schedule(function, args)):
            found.update(list_features(statement))
    expected = {"Kernel", "Loop", "Reduce", "Reduce bounds", "Reduce block_results", "Reduce stores", "Scan", "Scan reverse",
                "Scan block_results", "Store", "Store mask", "Store combine", "Store in_order", "Store packed", "Repeat", "While",
                "While swaps", "Switch", "Call", "Call epilogue", "LibraryCall"}
    assert expected <= found.keys(), expected - found.keys()


# -- the text -------------------------------------------------------------------------------------------------
READABLE = ("selu", "softmax", "layernorm", "stencil", "jacobi", "scan", "while_loop", "collatz", "running sums", "masked",
            "mandelbrot", "scatter-add", "gather", "halves", "special")


@pytest.mark.parametrize("name", READABLE)
def test_a_copied_file_runs(name):
    """What `inspect` shows needs nothing else."""
    function, args = PROGRAMS[name]
    jitted = jitcore.jit(function)
    expected = tree_util.tree_leaves(jitted(*args))
    text = jitted.inspect("numba")
    space: dict = {}
    exec(text.replace('@njit(error_model="numpy")\n', ""), space)
    kernel = space["kernel"]
    given = [
        np.asarray(arg, leaf.dtype)
        for arg, leaf in zip(args, tree_util.tree_leaves(jitted.trace(*args).in_avals))
    ]
    given = [arg.view(np.uint16) if arg.dtype.itemsize == 2 else arg for arg in given]
    with np.errstate(all="ignore"):
        found = kernel(*given)
    found = found if isinstance(found, tuple) else (found,)
    for one, other in zip(found, map(np.asarray, expected)):
        assert_agrees(np.asarray(one).view(other.dtype) if other.dtype.itemsize == 2 else one, other)
    assert len(text.splitlines()) < 60 or name in ("halves", "special")
    assert max(map(len, text.splitlines())) <= 110


def test_selu_reads_as_written_by_hand():
    def selu(x, alpha=1.67):
        return jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    jitted = jitcore.jit(selu)
    jitted(np.zeros(1000))
    assert (
        jitted.inspect("numba")
        == """import numpy as np
from numba import njit


@njit(error_model="numpy")
def kernel(x):
    result = np.empty((1000,), np.float64)
    for i in range(1000):
        t0 = x[i]
        result[i] = t0 if t0 > 0.0 else 1.67 * np.exp(t0) - 1.67
    return result
"""
    )


def test_arguments_keep_their_names():
    def f(range, params, np):
        return range + params["w"] * np

    jitted = jitcore.jit(f)
    jitted(1.0, {"w": jnp.ones(3)}, 2.0)
    assert "def kernel(range0, params_w, np0):" in jitted.inspect("numba")


def test_captured_arrays_are_arguments():
    weights = np.arange(3.0)
    jitted = jitcore.jit(lambda x: x * weights)
    jitted(np.ones(3))
    assert "def kernel(const, x):" in jitted.inspect("numba")


def test_library_functions_are_told():
    jitted = jitcore.jit(lambda x: jnp.linalg.eigvals(x))
    jitted(np.eye(3))
    assert "with objmode():" in jitted.inspect("numba")
    assert "computed by NumPy or SciPy" in jitted.inspect("numba")


# -- what it notices -----------------------------------------------------------------------------------------
def make_copy(shift: int = 0, extent: int = 5):
    graph, axis = Graph(), Axis(extent)
    source, goal = Buffer("in0", (5,), np.float64, "in"), Buffer("out0", (5,), np.float64, "out")
    store = loopir.Store(goal, Index.of(axis), graph.load(source, Index.of(axis) + shift))
    kernel = loopir.Kernel([loopir.Loop(axis, [store])], axis)
    return loopir.Program([source], [goal], [], [loopir.Native([kernel])])


@pytest.mark.parametrize("shift", [1, -1])
def test_places_outside_of_arrays_raise(shift):
    program = make_copy(shift)
    with pytest.raises(IndexError):
        load_python(write_function(program), program)(np.zeros(5))


def test_what_is_not_written_shows():
    program = make_copy(extent=4)
    (found,) = load_python(write_function(program), program)(np.zeros(5))
    assert list(np.isnan(found)) == [False] * 4 + [True]


@pytest.mark.parametrize("loader", [load_python, load_numba])
@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_donated_memory_is_written(dtype, loader):
    """What lies there is the very array: callers look for it."""
    x = np.zeros(5, dtype)
    program = schedule(lambda x: x + 1, (x,), (True,))
    assert program.aliases
    (found,) = loader(write_function(program), program)(x)
    assert found is x
    np.testing.assert_array_equal(x, 1)
    assert "result = x" in write_numba(program, ["x"])


def test_it_serves_as_codegen():
    jitted = compile_with(lambda x: x * 2, "numba")
    for size in (3, 4):
        np.testing.assert_array_equal(jitted(np.ones(size)), 2 * np.ones(size))
    assert jitted.cache_info().compiles == 2
    symbolic = jitcore.jit(lambda x: x.sum(), abstracted_axes=("n",), compiler_options={"codegen": "python"})
    assert symbolic(np.ones(3)) == 3 and symbolic(np.ones(5)) == 5


def test_an_unknown_codegen_is_refused():
    with pytest.raises(ValueError, match="codegen"):
        jitcore.jit(lambda x: x, compiler_options={"codegen": "fortran"})
