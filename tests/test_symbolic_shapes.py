"""`export` of functions of symbolic shapes, against JAX: the shapes of results, their values for several sizes, and
what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import jitcore
from jitcore import ShapeDtypeStruct, export, grad, jit, vmap
from jitcore.core.symbolic_text import solve_sizes
from jitcore.errors import InconclusiveDimensionOperation
from tests.jax_answers import ask

#: A function of (jax, *arrays), the shapes of these in symbols, and sizes.
CASES = {
    "elementwise": (lambda jax, x: x * 2 + 1, ["b, n"], dict(b=2, n=3)),
    "sums": (lambda jax, x: (x.sum(0), x.mean(), x.max(1)), ["b, n"], dict(b=2, n=3)),
    "flat": (lambda jax, x: x.reshape(-1), ["b, n"], dict(b=2, n=3)),
    "halves": (lambda jax, x: x.reshape(-1, 2), ["2*k"], dict(k=3)),
    "twice": (lambda jax, x: jax.numpy.concatenate([x, x]), ["b"], dict(b=3)),
    "product": (lambda jax, x, y: x @ y, ["b, n", "n, 2*b"], dict(b=2, n=3)),
    "softmax": (lambda jax, x: jax.nn.softmax(x @ x.T), ["b, 4"], dict(b=3)),
    "neighbours": (lambda jax, x: (x[1:] - x[:-1], x[::-1], x[0]), ["b"], dict(b=4)),
    "padded": (lambda jax, x: jax.numpy.pad(x, 1), ["b"], dict(b=2)),
    "scan": (lambda jax, x: jax.lax.scan(lambda c, v: (c + v, c), 0.0, x), ["b"], dict(b=3)),
    "loop": (lambda jax, x: jax.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), ["b"], dict(b=3)),
    "gradient": (lambda jax, x: jax.grad(lambda x: (x**3).sum())(x), ["b"], dict(b=3)),
    "rows": (lambda jax, x: jax.vmap(lambda x: x @ x)(x), ["b, n"], dict(b=2, n=3)),
    "sums of products": (lambda jax, x: jax.numpy.einsum("ij,kj->ik", x, x), ["b, n"], dict(b=2, n=3)),
    "one hot": (lambda jax, x: jax.nn.one_hot(x.argmax(1), x.shape[1]), ["b, n"], dict(b=2, n=3)),
    "size": (lambda jax, x: x.shape[0], ["b"], dict(b=3)),
    "size as array": (lambda jax, x: jax.numpy.asarray(x.shape[0]), ["b"], dict(b=3)),
    "size in numbers": (lambda jax, x: x * (1.0 / x.shape[0]) + 2.0 * x.shape[0] + x.size / 2, ["b"], dict(b=3)),
    "counts": (lambda jax, x: jax.numpy.where(jax.numpy.arange(x.shape[0]) < x.shape[0] // 2, x, 0), ["b"],
               dict(b=5)),
    "sorted": (lambda jax, x: (jax.numpy.sort(x), jax.numpy.cumsum(x), x.at[0].set(0.0)), ["b"], dict(b=4)),
    "draws": (lambda jax, x: x + jax.random.normal(jax.random.key(0), x.shape), ["b"], dict(b=4)),
    "branch": (lambda jax, x: jax.lax.cond(x[0] > 0, lambda: x, lambda: -x), ["b"], dict(b=2)),
    "structure": (lambda jax, x: {"a": (x[None], [x[:, None]])}, ["b"], dict(b=2)),
}


def draw(shape, sizes):
    extents = [eval(part, {}, sizes) for part in shape.split(",")]
    return np.random.default_rng(0).normal(size=extents).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_like_jax(name):
    function, shapes, sizes = CASES[name]
    arrays = [draw(shape, sizes) for shape in shapes]

    def run(jax, export, jit, struct):
        scope = export.SymbolicScope()
        specs = [struct(export.symbolic_shape(shape, scope=scope), np.float32) for shape in shapes]
        exported = export.export(jit(lambda *xs: function(jax, *xs)))(*specs)
        out = exported.call(*arrays)
        return [[str(n) for n in aval.shape] for aval in exported.out_avals], jitcore.tree.leaves(out)

    got_shapes, got = run(jitcore, export, jit, ShapeDtypeStruct)
    want_shapes, want = ask(lambda jax: run(jax, __import__("jax.export").export, jax.jit, jax.ShapeDtypeStruct))
    assert got_shapes == want_shapes
    for ours, theirs in zip(got, want, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5, atol=1e-6)


def test_traced_once_and_called_with_many_sizes():
    traces = []
    exported = export.export(jit(lambda x: traces.append(1) or x.sum()))(
        ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
    assert [float(exported.call(np.ones(n, np.float32))) for n in (1, 2, 5)] == [1, 2, 5] and traces == [1]
    x = np.arange(3, dtype=np.float32)
    square = export.export(jit(lambda x: (x * x).sum()))(ShapeDtypeStruct(export.symbolic_shape("b"), np.float32))
    assert list(grad(square.call)(x)) == [0, 2, 4]
    assert list(vmap(square.call)(np.ones((2, 3), np.float32))) == [3, 3]
    assert float(jit(lambda x: square.call(2 * x))(x)) == 20


REFUSED = [
    ((3, 4), np.float32, "Found inconsistency"), ((2,), np.float32, "Rank mismatch for args\\[0\\]"),
    ((3, 3), np.int32, "Dtype mismatch"), ((2, 2), np.float32, "Expected value >= 3"),
    ((9, 9), np.float32, "Expected value <= 8"),
]


@pytest.mark.parametrize("shape, dtype, text", REFUSED)
def test_sizes_that_do_not_fit(shape, dtype, text):
    (n,) = export.symbolic_shape("n", constraints=["n >= 3", "8 >= n"])
    exported = export.export(jit(lambda x: x @ x))(ShapeDtypeStruct((n, n), np.float32))
    assert exported.call(np.ones((3, 3), np.float32)).shape == (3, 3)
    with pytest.raises(ValueError, match=text):
        exported.call(np.ones(shape, dtype))


def test_what_scopes_know():
    (a, b, c) = export.symbolic_shape("a, b, c", constraints=["a >= 4", "b == 2*a", "mod(c, 4) == 0", "c >= 5"])
    assert a >= 4 and b == 2 * a and c % 4 == 0 and c >= 8
    halves = export.export(jit(lambda x: x.reshape(-1, 4)))(ShapeDtypeStruct((c,), np.float32))
    assert halves.call(np.ones(12, np.float32)).shape == (3, 4)
    with pytest.raises(InconclusiveDimensionOperation):
        assert a >= 5
    with pytest.raises(InconclusiveDimensionOperation):
        export.export(jit(lambda x: x if x.shape[0] > 9 else 2 * x))(ShapeDtypeStruct((a,), np.float32))
    assert solve_sizes([(2 * a + 1, 9), (a + b, 12)]) == {"a": 4}


TEXTS = ["b,, c", "b+", "...", "b, 4", "2.5", "f(b)", "b, ..., c", "_"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_cannot_be_read(text):
    with pytest.raises(ValueError, match="syntax error in symbolic shape"):
        export.symbolic_shape(text, like=(2, 3) if "4" in text else None)


def test_texts():
    assert list(map(str, export.symbolic_shape("(b, max(b, 3), floordiv(n, 2), b^2, mod(n, 3))"))) == [
        "b", "max(b, 3)", "floordiv(n, 2)", "b^2", "mod(n, 3)"]
    assert export.symbolic_shape("_, 3, ...", like=(2, 3, 4)) == (2, 3, 4) and export.symbolic_shape("") == ()
    for constraint, error in (("b", ValueError), ("b <= 0", ValueError), ("a >= b", NotImplementedError)):
        with pytest.raises(error):
            export.symbolic_shape("a, b", constraints=[constraint])
    specs = export.symbolic_args_specs((np.ones((2, 3)), {"y": np.ones(4)}), ("b, ...", {"y": "c"}))
    assert str(specs[0].shape) == "(b, 3)" and export.is_symbolic_dim(specs[1]["y"].shape[0])
