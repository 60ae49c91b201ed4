"""Loops outside of every trace: short ones run at once, long ones are compiled, with the same results."""

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import config, grad, hessian, jvp, lax, random, tree, vmap
from jitcore.lax.control_flow import control

ROWS = {
    "while": lambda: lax.while_loop(lambda c: c[0] < 60, lambda c: (c[0] + 1, jnp.sin(c[1]) * c[0]), (0, 1.0)),
    "while of constants": lambda: lax.while_loop(lambda c: c < jnp.float32(90), lambda c: c + jnp.ones(()), 0.0),
    "while of a batch": lambda: vmap(lambda n: lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) + c[0]), (0, 1.0)))(jnp.array([1, 80, 7])),
    "while of keys": lambda: lax.while_loop(lambda key: random.uniform(key) < 0.98,
                                            lambda key: random.split(key)[0], random.key(1)),
    "while that ends at once": lambda: lax.while_loop(lambda c: c < 0, lambda c: c + 1, 0),
    "fori": lambda: lax.fori_loop(0, 70, lambda i, c: c * 0.9 + i, np.float64(1)),
    "scan": lambda: lax.scan(lambda c, x: (jnp.sin(c) * x, {"before": c}), 1.0, jnp.arange(50.0)),
    "scan from the end": lambda: lax.scan(lambda c, x: (c - x, c), 1, np.arange(50), reverse=True),
    "scan of nothing": lambda: lax.scan(lambda c, _: (c + 1, None), 0, None, length=100),
    "scan of keys": lambda: lax.scan(lambda c, key: (c + random.normal(key), c), jnp.float32(0),
                                     random.split(random.key(0), 9)),
    "scan of a scan": lambda: lax.scan(
        lambda c, x: (lax.scan(lambda d, _: (d * 0.9 + x, None), c, None, length=9)[0], c), 1.0, jnp.ones(9)),
    "scan of bools": lambda: lax.scan(lambda c, b: (c ^ b, c.astype(jnp.bfloat16)), False,
                                      jnp.arange(40) % 3 == 0),
    "map": lambda: lax.map(jnp.linalg.norm, jnp.ones((30, 3))),
    "slope of scan": lambda: grad(lambda x: lax.scan(
        lambda c, t: (jnp.sin(c) * t + c, c), x, jnp.linspace(0, 1, 40))[1].sum())(1.0),
    "curvature of scan": lambda: hessian(lambda x: lax.scan(
        lambda c, t: (jnp.sin(c) * t + c, c), x, jnp.linspace(0, 1, 40))[0].sum())(jnp.ones(2)),
    "slope of while": lambda: grad(lambda x: lax.while_loop(
        lambda c: c[1] < 40, lambda c: (jnp.sin(c[0]) + c[0], c[1] + 1), (x, 0))[0])(0.5),
    "tangent of while": lambda: jvp(lambda x: lax.while_loop(
        lambda c: c < 9, lambda c: c + 0.2 + jnp.sin(c) ** 2, x), (1.0,), (1.0,)),
}


def describe(x):
    return type(x), x.shape, x.dtype, x.weak_type


@pytest.mark.parametrize("name", ROWS)
def test_compiled_loops_give_what_others_give(name, monkeypatch):
    expected, structure = tree.flatten(ROWS[name]())
    monkeypatch.setattr(control, "MOST_EAGER_EQUATIONS", 30)
    found, found_structure = tree.flatten(ROWS[name]())
    assert found_structure == structure and list(map(describe, found)) == list(map(describe, expected))
    for one, other in zip(found, expected):
        if jnp.issubdtype(one.dtype, jitcore.dtypes.prng_key):
            one, other = random.key_data(one), random.key_data(other)
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=1e-4)


def count_programs(monkeypatch, run) -> int:
    from jitcore.dispatch.function import run_compiled

    counted = []
    monkeypatch.setattr("jitcore.dispatch.function.run_compiled",
                        lambda *args: (counted.append(1), run_compiled(*args))[1])
    run()
    return len(counted)


@pytest.mark.parametrize("length, compiled", [(10, 0), (30_000, 1)])
@pytest.mark.parametrize("loop", [
    lambda n: lax.scan(lambda c, _: (jnp.sin(c) + 1, None), 1.0, None, length=n),
    lambda n: lax.while_loop(lambda c: c < n, lambda c: c + 1, 0),
], ids=["scan", "while"])
def test_long_ones_are_compiled(loop, length, compiled, monkeypatch):
    assert count_programs(monkeypatch, lambda: loop(length)) == compiled


def test_none_is_compiled_where_nothing_shall_be(monkeypatch):
    monkeypatch.setattr(control, "MOST_EAGER_EQUATIONS", 10)
    slope = grad(lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=30)[0])
    for flag in ("disable_jit", "no_tracing"):
        with config.override(**{flag: True}):
            assert count_programs(monkeypatch, lambda: slope(1.0)) == 0


def test_prints_of_a_long_loop_stay_in_order(monkeypatch, capsys):
    monkeypatch.setattr(control, "MOST_EAGER_EQUATIONS", 10)

    def step(count):
        jitcore.debug.print("{}", count, ordered=True)
        return count + 1

    lax.while_loop(lambda count: count < 30, step, 0)
    assert capsys.readouterr().out.split() == [str(count) for count in range(30)]
