"""References as arguments of jitted and mapped functions, and as variables around them, against JAX: results, and
what the references hold afterwards."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest

import jitcore
from jitcore import grad, jit, lax, new_ref, numpy as jnp, vmap

from tests.jax_answers import ask  # isort: skip


def make(jax, shape=(3,)):
    return jax.new_ref(jax.numpy.arange(float(np.prod(shape))).reshape(shape))


def write(jax):
    r = make(jax)

    def f(r, x):
        r[0] += x
        r[1:] = r[1:] * 2
        return r[...].sum()

    f = jax.jit(f)
    return f(r, 5.0), f(r, 7.0), r[...]


def write_all(jax):
    r, s = make(jax), jax.new_ref(jax.numpy.ones(3))

    def exchange(a, b):
        kept = a[...]
        a[...] = b[...]
        b[...] = kept

    jax.jit(exchange)(r, s)
    return r[...], s[...]


def read(jax):
    r, s = make(jax), jax.new_ref(jax.numpy.ones(3))
    kept, f = r[...], jax.jit(lambda r, x: (r[...] + x, r[0], r.shape[0]))
    found = f(r, kept), f(s, kept)
    r[0] = 9.0
    return found, f(r, 1.0), kept


def in_pytrees(jax):
    r, s = make(jax), make(jax, (2, 2))

    def f(tree, *rest, key=None):
        tree["a"][0][1] = tree["a"][1]
        key[1][0, 1] = rest[0] * tree["b"]
        return {"sum": key[1][...].sum(), "none": None}

    f = jax.jit(f)
    trees = [f({"a": [r, x], "b": 2}, 3.0, key=(None, s)) for x in (1.5, 2.5)]
    return trees, r[...], s[...]


def beside_static_and_donated(jax):
    r, f = make(jax), lambda n, r, x: (r.__setitem__(0, x[0]), x * n)[1]
    results = [jax.jit(f, static_argnums=0, donate_argnums=2)(2, r, jax.numpy.ones(3)),
               jax.jit(f, static_argnames="n", donate_argnames=("r", "x"))(3, r, jax.numpy.ones(3) * 5)]
    return results, r[...]


def in_loops(jax):
    r, s = make(jax), jax.new_ref(0.0)

    def f(r, s, n):
        def body(i, c):
            r[i] += c
            return c * 2

        def step(c, x):
            s[...] += x
            return c + r[0], s[...]

        def double():
            r[...] = r[...] * 2

        total = jax.lax.fori_loop(0, 3, body, n), jax.lax.scan(step, 0.0, jax.numpy.arange(3.0))
        jax.lax.cond(n > 0, double, lambda: None)
        return total

    return jax.jit(f)(r, s, 1.0), r[...], s[...]


def nested(jax):
    r, kept = make(jax), make(jax)

    def add(r, x):
        r[0] += x
        kept[1] += r[0]
        return r[1]

    add = jax.jit(add)

    def outer(r, x):
        y = add(r, x)
        return y + add(r, y) + r[0] + kept[1]

    return jax.jit(outer)(r, 1.0), r[...], kept[...], add(r, 2.0), r[...], kept[...]


def captured(jax):
    r = make(jax)

    def f(x):
        r[0] += x
        return r[...] * 2

    f, g = jax.jit(f), jax.jit(lambda: r[0])
    found = [f(2.0), g(), f(2.0), g(), f(jax.numpy.ones(())), r[...]]
    r[0] = -1.0
    return found, g(), f(1.0)


def captured_once(jax):
    r, s = make(jax), make(jax)
    holder = [r]

    def f():
        holder[0][0] += 1.0

    f = jax.jit(f)
    f()
    holder[0] = s
    f()
    return r[...], s[...]


def captured_under_vmap(jax):
    r = make(jax)

    def f(x):
        first = jax.vmap(lambda v: v * r[1])(x)
        r[1] = x[0]
        return first, jax.vmap(lambda v: v * r[1])(x)

    return jax.jit(f)(jax.numpy.array([2.0, 3.0])), r[...]


def mapped(jax):
    found = []
    for axis, values in [(0, [1.0, 2.0]), (1, [1.0, 2.0, 3.0]), (-1, [1.0, 2.0, 3.0])]:
        r, s = make(jax, (2, 3)), make(jax)

        def f(r, s, x):
            r[0] += x * s[0]
            r[1] = 7.0
            return r[...].sum() + s[1]

        for way in (lambda f: f, jax.jit):
            results = way(jax.vmap(f, in_axes=(axis, None, 0)))(r, s, jax.numpy.array(values))
            found.append((results, r[...], s[...]))
        jax.vmap(jax.jit(f), in_axes=(axis, None, 0))(r, s, jax.numpy.array(values))
        found.append(r[...])
    return found


def differentiated(jax):
    r = make(jax)
    f = jax.jit(lambda r, x: x * x * r[1])
    g = jax.jit(lambda x: x * x * r[2])
    return [jax.grad(lambda x: f(r, x))(3.0), jax.grad(g)(3.0), jax.jvp(g, (2.0,), (1.0,)), jax.vjp(g, 2.0)[1](1.0)]


def operands_of_branches(jax):
    r, s = make(jax), make(jax)

    def f(r, n):
        def yes(r, tree):
            r[0] = tree[1][0] * 2
            return r[1], tree[0]

        def no(r, tree):
            tree[1][1] = -r[0]
            return r[0], tree[0]

        first = jax.lax.cond(n > 0, yes, no, r, (n, s))
        return first, jax.lax.switch(n, [lambda r: r[0], lambda r: (r.__setitem__(2, 9.0), r[2])[1]], r)

    f = jax.jit(f)
    found = [(f(r, n), r[...], s[...]) for n in (1, 0)]
    jax.lax.cond(True, lambda r: r.__setitem__(0, 5.0), lambda r: None, r)
    return found, r[...]


def recomputed(jax):
    r = make(jax)
    f = jax.checkpoint(lambda x: jax.numpy.sin(x) * r[1])
    return jax.grad(f)(1.0), jax.jit(jax.grad(f))(1.0), jax.jit(f)(1.0), f(2.0)


def given_up(jax):
    r = make(jax)

    def f(r):
        r[0] = 7.0
        raise KeyError

    try:
        jax.jit(f)(r)
    except KeyError:
        return r[...]


PROGRAMS = [write, write_all, read, in_pytrees, beside_static_and_donated, in_loops, nested, captured, captured_once,
            captured_under_vmap, mapped, differentiated, operands_of_branches, recomputed, given_up]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    def run(jax):
        return [(np.asarray(x), np.asarray(x).dtype) for x in jax.tree.leaves(program(jax))]

    for (one, dtype), (other, other_dtype) in zip(run(jitcore), ask(run), strict=True):
        assert dtype == other_dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)


R = new_ref(jnp.arange(3.0))
REFUSED = [
    (lambda: jit(lambda a, b: a[...] + b[...])(R, R), ValueError,
     "only one reference .* appeared at both a and b"),
    (lambda: jit(lambda a, k: a[0])(R, k={"x": R}), ValueError, r"appeared at both a and k\['x'\]"),
    (lambda: jit(lambda a: a[...] + R[...])(R), ValueError, "both closed over and passed as the argument a"),
    (lambda: jit(lambda a, b: a[...] + R[...])(1.0, b=(R,)), ValueError, r"passed as the argument b\[0\]"),
    (lambda: jit(lambda a: a)(R), ValueError, "returned a mutable array reference"),
    (lambda: jit(lambda: (1, new_ref(1.0)))(), ValueError, "returned a mutable array reference"),
    (lambda: jit(lambda: R)(), ValueError, "returned a mutable array reference"),
    (lambda: jit(lambda a: a.__setitem__(0, 1))(R), ValueError, "Invalid dtype for `swap`"),
    (lambda: vmap(lambda a, b: a[...], in_axes=0)(R, R), ValueError, "only one reference"),
    (lambda: vmap(lambda a, x: a.__setitem__(0, x), in_axes=(None, 0))(R, jnp.ones(2)), Exception,
     "performing a set/swap operation"),
    (lambda: vmap(jit(lambda x: R.__setitem__(0, x)))(jnp.ones(2)), Exception, "performing a set/swap operation"),
    (lambda: grad(lambda x: jit(lambda r, x: r.__setitem__(0, x) or x)(R, x))(1.0), Exception,
     "performing a set/swap operation"),
    (lambda: lax.cond(True, lambda a, b: 1, lambda a, b: 2, R, R), ValueError, "only one reference"),
    (lambda: jit(lambda a: 1).lower(R), TypeError, "Ref"),
    (lambda: jit(lambda: R[0]).lower(), NotImplementedError, "in which it was not made"),
    (lambda: lax.scan(lambda c, x: (c, x), R, jnp.ones(2)), TypeError, "Ref"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call()
    np.testing.assert_array_equal(R[...], [0, 1, 2])


def test_programs_are_compiled_once():
    calls = []

    def f(r, x):
        calls.append(x)
        r[0] += x
        return r[0]

    f, refs = jit(f), [new_ref(jnp.zeros(3)) for _ in range(4)]
    for r in refs:
        for _ in range(3):
            f(r, 1.0)
    assert len(calls) == 1
    assert f.cache_info() == (11, 1, 1, f.cache_info().compiles) and "f32[3]" in f.inspect("jaxpr")
    assert [float(r[0]) for r in refs] == [3.0] * 4
    f.clear_cache()
    f(refs[0], 1.0)
    assert len(calls) == 2


def test_captured_references_are_found_by_one_more_trace():
    r, calls = new_ref(jnp.zeros(3)), []

    def f(x):
        calls.append(x)
        r[0] += x

    f = jit(f)
    for _ in range(5):
        f(1.0)
    assert len(calls) == 2 and r[0] == 5


def test_functions_and_references_are_let_go():
    def run():
        r = new_ref(jnp.zeros(3))
        f = lambda a, x: a.__setitem__(0, x)  # noqa: E731
        jit(f)(r, 1.0)
        jit(lambda: r[0])()
        return weakref.ref(r), weakref.ref(f)

    found = run()
    gc.collect()
    assert [one() for one in found] == [None, None]


def test_bound_methods_and_partials():
    class Counter:
        def __init__(self):
            self.count = new_ref(jnp.zeros(()))

        def add(self, r, x):
            r[...] += x
            self.count[...] += 1
            return r[...]

    counter, r = Counter(), new_ref(jnp.zeros(()))
    add = jit(counter.add)
    assert [float(add(r, 2.0)), float(add(r, 2.0))] == [2, 4]
    assert float(jit(partial(counter.add, x=1.0))(r)) == 5
    assert counter.count[...] == 3
