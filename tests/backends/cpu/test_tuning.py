"""Numbers of `Tuning`: another one makes another program, and another key."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu import routines
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.routines.fft.plan import Request, plan_transform
from jitcore.backends.cpu.runtime import threads
from jitcore.config import config
from jitcore.tree_util import tree_leaves
from tests.backends.cpu.tuning import tune


@pytest.fixture(autouse=True)
def nothing_is_kept():
    with config.override(cache_dir=""):
        jitcore.clear_caches()
        yield
    jitcore.clear_caches()


def text_of(function, stage, *args):
    f = jit(lambda *args: function(*args))
    f(*args)
    return f.inspect(stage)


def module_of(symbol):
    return str(routines._describe_module(symbol)["render"]())


X, M = np.arange(1000.0), np.eye(100) + 1.0


@pytest.mark.parametrize("find, numbers", [
    (lambda: text_of(lambda x: x.sum(0), "loop program", M), {"loops": {"strips": (2,)}}),
    (lambda: text_of(jnp.argmax, "kernel", X), {"loops": {"stretch": 3}}),
    (lambda: text_of(jnp.matmul, "loop program", M, M), {"product": {"loop_work": 1 << 30}}),
    (lambda: module_of("jitcore_product_multiply_f32"), {"product": {"grain_work": 1}}),
    (lambda: text_of(jnp.linalg.cholesky, "loop program", M), {"linalg": {"block_sides": range(0)}}),
    (lambda: module_of("jitcore_lapack64_blocklu_d"), {"linalg": {"panel": 24}}),
    (lambda: module_of("jitcore_sort_values_float32"), {"sort": {"grain": 1}}),
    (lambda: threads._describe_adapter()[2](), {"runtime": {"spins": 7}}),
    (lambda: host.make_key("program"), {"runtime": {"spins": 7}}),
], ids=lambda x: "-".join(x) if isinstance(x, dict) else "")
def test_a_number_changes_what_is_made(find, numbers, monkeypatch):
    known = find()
    jitcore.clear_caches()
    tune(monkeypatch, **numbers)
    assert find() != known


def test_a_number_changes_how_a_transform_is_cut(monkeypatch):
    def plan():
        return plan_transform(Request(1, (1 << 16,), 4, 16, False, "", host.MACHINE.tuning.fft)).temporary

    assert plan()
    tune(monkeypatch, fft={"shared_points": 1 << 20})
    assert not plan()


OTHERS = {
    "loops": {"strips": (3,), "jams": (3, 2), "stretch": 3, "column_bytes": 1 << 9, "combined_rows": 3,
              "listed_updates": 32, "unrolled_updates": 2, "updates_ahead": 8, "min_rows": 2, "near_bytes": 1 << 8,
              "max_inlined_calls": 0, "min_peeled_vectors": 2, "max_tile_lanes": 4, "longest_row": 2},
    "product": {"loop_work": 16, "loop_steps": 1, "block_steps": 24, "left_share": 64, "chunk_bytes": 1 << 12,
                "stretch_steps": 64, "pair_rows": 2, "rows_per_pointer": 2, "summed_rows": (4, 2, 1)},
    "linalg": {"block_sides": range(8, 513), "panel": 24, "tiny_solution": 0, "tiny_factorisation": 0},
    "fft": {"inner_bytes": 1 << 12, "outer_bytes": 1 << 14, "shared_points": 1 << 8},
    "sort": {"block": 16, "group_vectors": 2, "shared": 64, "well_sampled": 64, "gathered": 16},
    "runtime": {"release_bytes": 0, "many_grains": 2, "pieces_each": 3},
}
ROWS, PLACES = np.random.default_rng(0).normal(size=(300, 230)), np.random.default_rng(1).integers(0, 999, 5000)


@pytest.mark.parametrize("function, args", [
    (lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(1), (ROWS,)),
    (lambda x: (jnp.sqrt(x * x + 1).sum(0), jnp.cumsum(x, 0), x.T + 1, jnp.argmin(x, 1)), (ROWS,)),
    (lambda x: x[2:] + x[1:-1] * 0.5 - x[:-2], (ROWS.ravel(),)),
    (lambda p, x: jnp.zeros(1000).at[p].add(x), (PLACES, ROWS.ravel()[:5000])),
    (lambda x: (x @ x.T, x @ x[0], x[:7, :9] @ x[:9], x[:, :3].T @ x), (ROWS,)),
    (lambda x: (jnp.linalg.solve(x.T @ x, x[:230, :5]), jnp.linalg.cholesky(x.T @ x)), (ROWS,)),
    (lambda x: (jnp.abs(jnp.fft.rfft(x)), jnp.fft.fft(x[:2].ravel()).real), (ROWS,)),
    (lambda x: (jnp.sort(x, 1), jnp.argsort(x.ravel()), jnp.partition(x, 9, 1)[:, 9]), (ROWS,)),
], ids="softmax columns stencil updates products linalg fft sort".split())
def test_other_numbers_give_the_same_results(function, args, monkeypatch):
    known = jit(function)(*args)
    jitcore.clear_caches()
    tune(monkeypatch, **OTHERS)
    changed = jit(lambda *args: function(*args))(*args)
    for one, other in zip(tree_leaves(known), tree_leaves(changed), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
