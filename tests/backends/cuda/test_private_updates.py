"""Updates of few elements in tables of blocks and of warps, on the device in software: kinds of updates, odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.gpu.tuning import Tuning
from jitcore.tree_util import tree_leaves
from tests.backends.cuda.kernel_faults import Fault, Subject

DEVICE = "cuda:emulated"
RNG = np.random.default_rng(5)
COUNTS = (2048, 4099, 20_001)
#: Of places from -3 to 49, of which arrays have fewer.
PROGRAMS = {
    "add": lambda i: jnp.full(40, 7, "int32").at[i].add(2),
    "add of what is read": lambda i: jnp.zeros(40, "uint32").at[i].add(i.astype("uint32")),
    "long": lambda i: jnp.zeros(40, int).at[i].add(i * 5_000_000_000),
    "less": lambda i: jnp.full(40, 7, "int32").at[i].add(-3),
    "maximum": lambda i: jnp.full(40, 2, "int32").at[i].max(i.astype("int32") % 5 - 2),
    "minimum": lambda i: jnp.full(40, 2, "uint32").at[i].min((i % 5).astype("uint32")),
    "of short places": lambda i: jnp.zeros(40, "int32").at[i.astype("int8")].add(1),
    "rows": lambda i: jnp.zeros((40, 3), "int32").at[i].add(jnp.arange(3, dtype="int32")),
    "planes": lambda i: jnp.zeros((7, 9), "int32").at[i % 7, i % 9].add(1),
    "of one": lambda i: jnp.zeros(1, "int32").at[i * 0].add(1),
    "counts": lambda i: jnp.bincount(jnp.maximum(i, 0), length=50),
    "short numbers": lambda i: jnp.full(40, 3, "int8").at[i].add(i.astype("int8")),
    "halves": lambda i: jnp.zeros(40, "float16").at[i].add(0.5),
    "floats": lambda i: jnp.full(40, 0.1, "float32").at[i].add(jnp.sin(i).astype("float32")),
    "doubles": lambda i: jnp.zeros(40).at[i].add(jnp.sin(i)),
    "less doubles": lambda i: jnp.ones(40).at[i].subtract(jnp.where(i > 7, jnp.cos(i), 2)),
    "complex64": lambda i: jnp.zeros(40, "complex64").at[i].add((i + 1j).astype("complex64")),
    "complex128": lambda i: jnp.zeros(40, complex).at[i].add(i * 1j + 0.1),
    "greatest floats": lambda i: jnp.full(40, -jnp.inf).at[i].max(jnp.where(i == 11, jnp.nan, jnp.sin(i))),
    "bool": lambda i: jnp.zeros(40, bool).at[i].max(i % 3 == 0),
    "products": lambda i: jnp.full(40, 3, "uint32").at[i].multiply(i.astype("uint32") | 1),
    "rows of floats": lambda i: jnp.zeros((40, 5), "float32").at[i].add(jnp.sin(i)[:, None].astype("float32")),
    "histogram by weight": lambda i: jnp.histogram(jnp.sin(i), bins=23, range=(-0.9, 0.95), weights=jnp.cos(i))[0],
    "histogram": lambda i: jnp.histogram(jnp.sin(i), bins=23, range=(-0.9, 0.95))[0],
    "histogram of given edges": lambda i: jnp.histogram(i, bins=jnp.array([-2, 0.5, 3, 3.5, 20])),
    "where": lambda i: jnp.zeros(40, "int32").at[jnp.where(i > 3, i[::-1][i], i)].add(1),
}
#: One table of a block; few blocks; one access at a time; no tables.
TUNINGS = {"a warp": Tuning(private_warps=1), "two blocks": Tuning(private_blocks=2, private_batch=3),
           "one": Tuning(private_batch=1, private_block=64), "no tables": Tuning(private_bytes=0)}


def check(function, x):
    f = jit(function, backend=DEVICE)
    for one, other in zip(tree_leaves(f(x)), tree_leaves(jit(function, backend="reference")(x)), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        size = one.dtype.itemsize // (2 if one.dtype.kind == "c" else 1)
        tolerance = {2: 1e-2, 4: 1e-4}.get(size, 1e-10) if one.dtype.kind in "fc" else 0
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    return f.lower(x).compile().runtime_executable().texts()["mapping"]()


@pytest.mark.parametrize("name", PROGRAMS)
def test_equals_the_reference(name):
    for count in COUNTS:
        assert "private" in check(PROGRAMS[name], RNG.integers(-3, 50, count))


@pytest.mark.parametrize("tuning", TUNINGS)
@pytest.mark.parametrize("name", ["add", "minimum", "rows", "floats", "complex128", "histogram"])
def test_tunings(name, tuning, use_tuning):
    use_tuning(TUNINGS[tuning])
    mapping = check(PROGRAMS[name], RNG.integers(-3, 50, 5003))
    assert ("private" in mapping) == (tuning != "no tables")


@pytest.mark.parametrize("function", [
    lambda i: jnp.zeros(40).at[i].set(i),
    lambda i: jnp.zeros(20_000, "int32").at[i].add(1),
    lambda i: jnp.zeros(20_000, "float32").at[i].add(0.5),
], ids=range(3))
def test_others_keep_their_way(function):
    assert "private" not in check(function, RNG.integers(-3, 50, 3001))


def test_sums_have_the_same_bits_in_any_order_of_threads():
    x = RNG.standard_normal(6001).astype("float32")
    subject = Subject("", lambda x: jnp.zeros(30, "float32").at[(x * 99).astype(int) % 7].add(x), (x,))
    assert not subject.judge(Fault("", "", 0, subject.ptx.splitlines()[0], subject.ptx.splitlines()[0]))


def test_few_updates():
    for count in (0, 1, 31, 33, 511):
        check(PROGRAMS["add"], RNG.integers(-3, 50, count))
