"""Collectives over the ranks of MPI: three processes, each of which compares what it gets with `vmap` over all values."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("mpi4py", reason="mpi4py is not installed: jitcore[mpi]")
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
if MPIEXEC is None:
    pytest.skip("no MPI is installed", allow_module_level=True)

BEGIN = """
import numpy as np
import jitcore.numpy as jnp
from jitcore import distributed, grad, jit, jvp, lax, value_and_grad, vmap

rank, size = distributed.bind_ranks("ranks")
rng = np.random.default_rng(0)
ALL = rng.normal(size=(size, size, 2 * size))  # what all processes have
X = ALL[rank]

def check(f, values=ALL):
    whole = vmap(f, axis_name="ranks")(values)
    for run in (f, jit(f)):
        found = run(values[rank])
        assert found.dtype == whole.dtype, (found.dtype, whole.dtype)
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(whole[rank], float), rtol=1e-6)
"""

CASES = {
    "sums and extrema": """
for f in (lax.psum, lax.pmean, lax.pmax, lax.pmin):
    check(lambda x: f(x, "ranks"))
    check(lambda x: jnp.sin(f(jnp.cos(x), "ranks")).sum())
    for dtype in ("float32", "float16", "bfloat16", "int8", "int32", "uint64"):
        check(lambda x: f(x, "ranks"), (ALL * 10).astype(jnp.dtype(dtype)))
    with_nan = ALL.copy()
    with_nan[0, 1, 2] = np.nan
    check(lambda x: f(x, "ranks"), with_nan)
check(lambda x: lax.psum(1, "ranks") * x)
check(lambda x: lax.psum(x > 0, "ranks"))
np.testing.assert_allclose(jit(lambda x: lax.psum(x * 1j, "ranks"))(X), ALL.sum(0) * 1j)
""",
    "all values": """
for axis in (0, 1, 2, -1):
    check(lambda x: lax.all_gather(x, "ranks", axis=axis))
for axis in (0, 1):
    check(lambda x: lax.all_gather(x, "ranks", axis=axis, tiled=True))
    check(lambda x: lax.psum_scatter(x, "ranks", scatter_dimension=axis, tiled=True))
check(lambda x: lax.psum_scatter(x, "ranks"))
check(lambda x: lax.all_gather(x, "ranks"), ALL.astype(jnp.bfloat16))
check(lambda x: lax.all_gather(x[0, 0] > 0, "ranks"))
""",
    "exchanges": """
check(lambda x: lax.ppermute(x, "ranks", [(i, (i + 1) % size) for i in range(size)]))
check(lambda x: lax.ppermute(x, "ranks", [(0, 0), (1, 2)]))
for split in (0, 1):
    for concat in (0, 1):
        check(lambda x: lax.all_to_all(x, "ranks", split, concat, tiled=True))
check(lambda x: lax.all_to_all(x, "ranks", 0, 1))
check(lambda x: x * lax.axis_index("ranks"))
def step(u):  # a stencil over rows that all processes share
    up = lax.ppermute(u[-1:], "ranks", [(i, i + 1) for i in range(size - 1)])
    down = lax.ppermute(u[:1], "ranks", [(i + 1, i) for i in range(size - 1)])
    padded = jnp.concatenate([up, u, down])
    return padded[2:] + padded[:-2] - 2 * u
check(step)
check(lambda u: lax.fori_loop(0, 5, lambda i, u: u + 0.1 * step(u), u))
check(lambda u: lax.while_loop(lambda u: lax.psum(u.sum(), "ranks") < 100, lambda u: 2 * abs(u) + 1, u))
check(lambda u: vmap(lambda row: lax.psum(row, "ranks") - row)(u))
""",
    "derivatives": """
def loss(w, x):
    w = lax.pvary(w, "ranks")
    return lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), "ranks")
def whole_loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)
w = rng.normal(size=2 * size)
for transform in (jit, lambda f: f):
    value, slope = transform(value_and_grad(loss))(w, X)
    expected, expected_slope = value_and_grad(whole_loss)(w, ALL)
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(slope, expected_slope)
    np.testing.assert_allclose(transform(grad(loss, 1))(w, X), grad(whole_loss, 1)(w, ALL)[rank])
    np.testing.assert_allclose(transform(lambda w: jvp(lambda w: loss(w, X), (w,), (w,))[1])(w), expected_slope @ w)
def check_slope(f):  # of a mean over all that the processes give
    found = jit(grad(lambda x: lax.pmean(f(x).sum(), "ranks")))(X)
    whole = grad(lambda values: vmap(f, axis_name="ranks")(values).sum() / size)(ALL)
    np.testing.assert_allclose(found, whole[rank], atol=1e-12)
check_slope(lambda x: jnp.sin(x) * lax.ppermute(x, "ranks", [(i, (i + 1) % size) for i in range(size)]))
check_slope(lambda x: jnp.sin(lax.all_gather(x, "ranks")) * (1 + lax.axis_index("ranks")))
check_slope(lambda x: jnp.sin(lax.all_to_all(x, "ranks", 0, 1, tiled=True)) * (1 + lax.axis_index("ranks")))
check_slope(lambda x: jnp.sin(lax.psum_scatter(x, "ranks")) * (1 + lax.axis_index("ranks")))
found = jit(grad(lambda x: lax.pmax(x, "ranks").sum()))(X)
np.testing.assert_allclose(found, ALL[rank] == ALL.max(0))
curve = jit(grad(grad(lambda w: loss(w * jnp.ones(2 * size), X))))(0.5)
np.testing.assert_allclose(curve, grad(grad(lambda w: whole_loss(w * jnp.ones(2 * size), ALL)))(0.5), rtol=1e-5)
""",
    "communicators": """
from mpi4py import MPI
half = MPI.COMM_WORLD.Split(rank % 2)
assert distributed.bind_ranks("half", half) == (half.Get_rank(), half.Get_size())
found = jit(lambda x: lax.psum(lax.psum(x, "half"), "ranks"))(X)
groups = [ALL[i % 2::2].sum(0) for i in range(size)]
np.testing.assert_allclose(found, sum(groups))
assert distributed.bind_ranks("ranks") == (rank, size)
try:
    distributed.bind_ranks("ranks", half)
    raise AssertionError("the name is taken")
except ValueError as error:
    assert "another name" in str(error)
""",
}


@pytest.mark.parametrize("name", CASES)
def test_ranks(name, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(BEGIN + CASES[name])
    env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([MPIEXEC, "-n", "3", sys.executable, "-m", "mpi4py", str(script)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
