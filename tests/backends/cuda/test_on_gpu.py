"""What only a GPU shows: that the driver takes the calls, and that results are right. Skipped where there is none."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.backends.cuda import CudaBackend
from jitcore.backends.cuda.libraries.bindings import BINDINGS
from jitcore.backends.cuda.runtime import linking
from jitcore.backends.cuda.runtime.driver import CudaMemoryError
from jitcore.backends.cuda.runtime.gpu import HALF, GpuRuntime
from jitcore.config import config
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.cells import get, numbers, put

WANTS_LIBRARIES = True
ROOT, ONE = Path(__file__).parents[3], (1, 1, 1)
PTX = """
.version 6.3
.target sm_75
.address_size 64
.visible .entry add (.param .u64 to, .param .u64 step)
{
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [to]; ld.param.u64 %d2, [step]; cvta.to.global.u64 %d1, %d1;
    ld.global.u64 %d3, [%d1]; add.s64 %d4, %d3, %d2; st.global.u64 [%d1], %d4; ret;
}
.visible .entry check (.param .u64 to, .param .u64 from, .param .u64 limit)
{
    .reg .pred %p; .reg .b16 %h; .reg .b32 %r; .reg .b64 %d<5>;
    ld.param.u64 %d1, [to]; ld.param.u64 %d2, [from]; ld.param.u64 %d3, [limit];
    cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2; ld.global.u64 %d4, [%d2];
    setp.lt.s64 %p, %d4, %d3; selp.u32 %r, 1, 0, %p; cvt.u16.u32 %h, %r; st.global.u8 [%d1], %h; ret;
}
"""


@pytest.fixture(scope="module")
def runtime():
    backend = CudaBackend()
    try:
        return backend.open(backend.devices()[0])
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def kernels(runtime):
    module = runtime.load(PTX)
    return {name: (module.find_kernel(name), ONE, ONE) for name in ("add", "check")}


@pytest.mark.parametrize("nbytes", [1, 4096, HALF + 1, 9 * HALF + 5])
def test_copies(runtime, nbytes):
    value = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    given, first, second = value.copy(), runtime.allocate(nbytes), runtime.allocate(nbytes)
    assert first % 256 == second % 256 == 0
    runtime.copy_in(first, given)
    given[:] = 0
    runtime.copy(second, first, nbytes)
    found = np.empty_like(value)
    runtime.copy_out(found, second)
    np.testing.assert_array_equal(found, value)
    runtime.free(first)
    runtime.free(second)


@pytest.mark.parametrize("version", ["", None])
def test_launches_by_both_translators(runtime, monkeypatch, version):
    if version is not None:
        monkeypatch.setattr(linking, "find_version", lambda: version)
    kernel = GpuRuntime(0).load(PTX).find_kernel("add")
    other, x = kernel.module.runtime, put(runtime, 3)
    runtime.synchronize()
    other.launch(kernel, ONE, ONE, numbers(x, 4))
    other.synchronize()
    assert get(runtime, x) == 7


def test_graphs_and_loops(runtime, kernels):
    x, y, predicate = put(runtime, 0), put(runtime, 0), runtime.allocate(1)
    graph = runtime.make_graph([kernels["add"]] * 3)
    for steps in ((1, 2, 3), (1, 2, 3), (4, 2, 5)):
        graph.launch([numbers(x, step) for step in steps])
    assert get(runtime, x) == 23
    loop = runtime.make_loop([kernels["check"]], [kernels["add"]])
    for limit in (1000, 1000, 5000):
        loop.launch([numbers(predicate, x, limit)], [numbers(x, 1)], (predicate, 1))
        assert get(runtime, x) == limit
    loop.launch([numbers(predicate, y, 100)], [numbers(x, 1)], (predicate, 1), [(y, x, 8)])
    assert get(runtime, y) == 5001


def test_threads(runtime, kernels):
    found = []

    def work(number):
        for _ in range(200):
            x = put(runtime, number)
            runtime.launch(*kernels["add"], numbers(x, 10))
            found.append(get(runtime, x) == number + 10)
            runtime.free(x)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800 and all(found)


def test_memory_comes_back(runtime):
    facts = runtime.facts()
    with pytest.raises(CudaMemoryError, match="has no room for"):
        runtime.allocate(2 * facts["bytes"])
    for _ in range(3):  # more than there is, one after the other
        runtime.free(runtime.allocate(facts["free"] // 2))
    runtime.trim()
    assert runtime.facts()["held"] == facts["held"] and runtime.facts()["free"] >= facts["free"] - (64 << 20)


def test_the_limit_holds(runtime):
    before = config.gpu_memory_limit
    config.update("gpu_memory_limit", 256 << 20)
    try:
        limited = GpuRuntime(0)
        limited.free(limited.allocate(100 << 20))
        with pytest.raises(CudaMemoryError, match="gpu_memory_limit is 268435456"):
            limited.allocate(300 << 20)
    finally:
        config.update("gpu_memory_limit", before)


@pytest.mark.parametrize("script, words", [
    ("runtime.launch(kernel, (1, 1, 1), (1, 1, 1), np.array([8, 1], np.uint64))",
     ["ILLEGAL_ADDRESS", "The kernel launched last is add", "An earlier error has made the GPU unusable"]),
    ("import os\nif os.fork(): os.wait(); os._exit(0)", ["This process was forked", "This process was forked"]),
])
def test_errors_that_stay(runtime, script, words):
    code = f"""if True:
        import numpy as np
        from jitcore.backends.cuda.runtime.gpu import GpuRuntime
        from tests.backends.cuda.test_on_gpu import PTX
        runtime = GpuRuntime(0)
        kernel = runtime.load(PTX).find_kernel("add")
{chr(10).join("        " + line for line in script.splitlines())}
        for _ in range(2):
            try:
                runtime.synchronize()
            except Exception as error:
                print(error, flush=True)
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert all(word in done.stdout for word in words) and not done.stderr, done.stdout + done.stderr


def test_other_libraries(runtime):
    found = [pytest.importorskip(name) for name in ("cupy",)]
    (cupy,) = found
    theirs = cupy.arange(1000, dtype=cupy.float32)
    ours = jit(lambda x: x * 2 + 1)(theirs)
    theirs += 1  # after the call
    np.testing.assert_array_equal(np.asarray(ours), np.arange(1000) * 2 + 1)
    for export in (cupy.asarray, cupy.from_dlpack):
        back = export(ours)
        assert back.data.ptr == ours.buffer.address
        np.testing.assert_array_equal(cupy.asnumpy(back + 1), np.arange(1000) * 2 + 2)
    del back, ours
    gc.collect()
    torch = pytest.importorskip("torch")
    tensor = torch.arange(1000, dtype=torch.bfloat16, device="cuda")
    ours = jit(lambda x: x + 1)(tensor)
    assert torch.equal(torch.from_dlpack(ours), tensor + 1)


def test_large_arrays(runtime):
    x = np.random.default_rng(0).standard_normal(10_000_000).astype(np.float32)
    found = jit(lambda x: (jnp.tanh(x), x.sum(), jnp.cumsum(x)[-1]), backend="cuda")(x)
    np.testing.assert_allclose(found[0], np.tanh(x), rtol=1e-6)
    np.testing.assert_allclose(found[1:], [x.sum(dtype=np.float64)] * 2, atol=0.5)


def draw(*shape, dtype=np.float32):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def add_at(count, combine="add"):
    def run(i, x):
        return getattr(jnp.zeros(count, x.dtype).at[i], combine)(x)

    return run


PLACES = np.random.default_rng(2).integers(0, 1000, 3_000_000)
#: Programs whose blocks wait for each other, or are many: (function, arguments).
LARGE = {
    "sort": (jnp.sort, (np.random.default_rng(0).integers(0, 2**32, 5_000_000, np.uint32),)),
    "sort float64": (jnp.sort, (draw(1_000_000, dtype=np.float64),)),
    "argsort": (jnp.argsort, (np.round(draw(3_000_000), 3),)),
    "sort rows": (lambda x: jnp.sort(x, axis=0), (draw(20_000, 30),)),
    "unique": (lambda x: jnp.unique(x, size=2000), (np.random.default_rng(0).integers(0, 2000, 2_000_000),)),
    "cumlogsumexp": (lax.cumlogsumexp, (draw(3_000_000),)),
    "cumsum of long rows": (lambda x: jnp.cumsum(x, axis=1), (draw(3, 2_000_000),)),
    "cumsum reversed": (lambda x: lax.cumsum(x, 0, True), (draw(5_000_000, dtype=np.float64),)),
    "cumsum of columns": (lambda x: jnp.cumsum(x, axis=0), (draw(3000, 3000),)),
    "cumprod of whole numbers": (jnp.cumprod, (np.random.default_rng(0).integers(-3, 4, 2_000_000),)),
    "softmax": (jitcore.nn.softmax, (draw(3000, 1000),)),
    "softmax of columns": (lambda x: jitcore.nn.softmax(x, axis=0), (draw(3000, 1000),)),
    "variance of columns": (lambda x: x.var(0), (draw(300_000, 10),)),
    "argmax of columns": (lambda x: x.argmax(0), (draw(3001, 1000),)),
    "transposed": (lambda x, y: x + 2 * y.T, (draw(2000, 3000), draw(3000, 2000))),
    "counts": (add_at(1000), (PLACES, np.ones_like(PLACES))),
    "sums": (add_at(1000), (PLACES, draw(len(PLACES)))),
    "extremes": (add_at(1000, "max"), (PLACES, draw(len(PLACES), dtype=np.float64))),
    "last ones": (add_at(1000, "set"), (PLACES, draw(len(PLACES)))),
    "products": (lambda x, y: jnp.maximum(x @ y, 0), (draw(1000, 1001), draw(1001, 1100))),
    "products of halves": (lambda x, y: x @ y, (draw(1024, 512, dtype=np.float16), draw(512, 1024, dtype=np.float16))),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_programs(runtime, name):
    """They are those of the processor, and the same ones each time."""
    function, args = LARGE[name]
    run = jit(function, backend="cuda")
    found, expected = np.asarray(run(*args)), np.asarray(jit(function, backend="cpu")(*args))
    assert all(np.asarray(run(*args)).tobytes() == found.tobytes() for _ in range(3))
    if found.dtype.kind == "f":
        rtol = {2: 1e-2, 4: 1e-3, 8: 1e-9}[found.dtype.itemsize]
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    else:
        np.testing.assert_array_equal(found, expected)


def test_a_loop_of_many_kernels(runtime):
    def step(i, c):
        return 0.25 * (jnp.roll(c, 1) + jnp.roll(c, -1)) + c.mean()

    x = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    found, expected = (jit(lambda x: lax.fori_loop(0, 50, step, x), backend=name)(x) for name in ("cuda", "reference"))
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-4, atol=1e-5)


def test_programs(runtime):
    programs = pytest.importorskip("tests.backends.cuda.test_programs").PROGRAMS
    wrong = []
    for name, (function, args, _) in programs.items():
        found, expected = (tree_leaves(jit(function, backend=backend)(*args)) for backend in ("cuda", "reference"))
        for one, other in zip(found, expected, strict=True):
            one, other = np.asarray(one), np.asarray(other)
            tolerance = {2: 1e-3, 4: 2e-6}.get(one.dtype.itemsize, 1e-12) if one.dtype.kind in "fc" else 0
            if not np.allclose(one, other, rtol=tolerance, atol=10 * tolerance, equal_nan=True):
                wrong.append(name)
    assert not wrong


def test_libraries(runtime, use_tuning):
    """Each routine against the host, where the library is installed."""
    cases = pytest.importorskip("tests.backends.cuda.test_libraries")
    libraries = runtime.libraries
    if not any(map(libraries.find, BINDINGS)):
        pytest.skip(libraries.describe())
    use_tuning(cases.SMALL)
    wrong = {}
    for name, (function, args, unique, _) in cases.CASES.items():
        try:
            cases.compare(function, args, unique, slack=20)
        except (AssertionError, RuntimeError) as error:
            wrong[name] = error
    assert not wrong


@pytest.mark.parametrize("dtype, rtol", [(np.float32, 1e-5), (np.float64, 1e-13), (np.complex64, 1e-5), (np.float16, 1e-3)])
def test_large_products(runtime, dtype, rtol):
    if runtime.libraries.find("cublas") is None:
        pytest.skip(runtime.libraries.describe())
    x, y = (np.random.default_rng(n).uniform(0.5, 1, (1024, 1024)).astype(dtype) for n in (0, 1))
    multiply = jit(lambda x, y: x @ y.T, backend="cuda")
    found = np.asarray(multiply(x, y))
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    np.testing.assert_allclose(found, x.astype(wide) @ y.T.astype(wide), rtol=rtol)
    assert np.array_equal(found, np.asarray(multiply(x, y)))


def test_products_are_rounded_where_precision_says_so(runtime):
    if runtime.libraries.find("cublas") is None:
        pytest.skip(runtime.libraries.describe())
    x, y = (np.random.default_rng(n).standard_normal((1024, 1024), np.float32) for n in (0, 1))
    exact = x.astype(np.float64) @ y
    errors = {precision: np.abs(jit(functools.partial(jnp.matmul, precision=precision), backend="cuda")(x, y) - exact).max()
              for precision in (None, "highest", "tensorfloat32")}
    assert max(errors[None], errors["highest"]) < 1e-3 < errors["tensorfloat32"] < 0.5


@pytest.mark.parametrize("n", [3, 65, 700])
def test_large_matrices(runtime, n):
    x = np.random.default_rng(n).standard_normal((n, n))
    solve, invert = (jit(f, backend="cuda") for f in (jnp.linalg.solve, jnp.linalg.inv))
    np.testing.assert_allclose(solve(x, x @ np.ones(n)), np.ones(n), rtol=1e-6)
    np.testing.assert_allclose(x @ np.asarray(invert(x)), np.eye(n), atol=1e-7)
    values, vectors = jit(jnp.linalg.eigh, backend="cuda")(x + x.T)
    np.testing.assert_allclose(vectors * values @ np.asarray(vectors).T, x + x.T, atol=1e-9 * n)
    u, s, v = map(np.asarray, jit(jnp.linalg.svd, backend="cuda")(x))
    np.testing.assert_allclose(u * s @ v, x, atol=1e-9 * n)
    factor = jit(jnp.linalg.cholesky, backend="cuda")
    np.testing.assert_allclose(np.asarray(factor(x @ x.T)) @ np.asarray(factor(x @ x.T)).T, x @ x.T, atol=1e-9 * n)
    assert np.isnan(np.asarray(factor(-np.eye(n)))[np.tril_indices(n)]).all()


def test_doctor(runtime, capsys):
    from jitcore.__main__ import main

    main(["doctor"])
    out = capsys.readouterr().out
    assert "gpu 0" in out and "cublas" in out and "Problem: backend cuda:" not in out and jitcore.devices("gpu")
