"""`vmap` itself: axes, structures, closures, keys, composition with `jit`, errors against JAX's."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import jitcore
from jitcore import Array, debug, errors, jit, lax, make_jaxpr, numpy as jnp, pure_callback, random, vmap
from jitcore.core.jaxpr import ClosedJaxpr, Var

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONES = np.ones(3, np.float32)


# -- axes and structures ------------------------------------------------------------------------------------
@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -2, -3])
def test_axes_as_in_jax(in_axis, out_axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    ours = vmap(lambda a: a * a.sum(), in_axis, out_axis)(x)
    theirs = jax.vmap(lambda a: a * a.sum(), in_axis, out_axis)(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_pytrees_of_axes():
    def f(d, pair, z, *, k):
        return {"s": d["a"] + d["b"] + pair[0] * pair[1], "z": z}, k

    d = {"a": X, "b": X.T.copy()}
    arguments = (d, (np.float32(2), X), 5.0)
    options = {"in_axes": ({"a": 0, "b": 1}, (None, 0), None), "out_axes": ({"s": 1, "z": None}, 0)}
    ours = vmap(f, **options)(*arguments, k=np.arange(2))
    theirs = jax.vmap(f, **options)(*arguments, k=np.arange(2))
    np.testing.assert_allclose(ours[0]["s"], theirs[0]["s"])
    assert ours[0]["z"] == 5.0 and isinstance(ours[0]["z"], float)
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_list_in_axes_is_a_tuple():
    np.testing.assert_array_equal(vmap(lambda a, b: a + b, in_axes=[0, None])(X, ONES), X + 1)


def test_one_axis_for_a_subtree():
    out = vmap(lambda pair, y: pair[0] + pair[1] + y, in_axes=(1, None))((X, X), 1.0)
    np.testing.assert_array_equal(out, 2 * X.T + 1)


def test_unmapped_arguments_arrive_unchanged():
    seen = []
    vmap(lambda x, *rest: seen.append(rest) or x, in_axes=(0, None, None, None))(X, "text", 2.5, ONES)
    assert seen[0][:2] == ("text", 2.5) and seen[0][2] is ONES


def test_results_are_arrays_of_their_own():
    x = X.copy()
    y = vmap(lambda a: a)(x)
    x[:] = 0
    assert isinstance(y, Array)
    np.testing.assert_array_equal(y, X)


def test_constant_results_repeat():
    out = vmap(lambda x: (1, jnp.ones(2), None), out_axes=(0, 1, 0))(X)
    assert out[0].weak_type and out[0].shape == (2,) and out[1].shape == (2, 2) and out[2] is None


def test_axis_size_without_mapped_arguments():
    assert vmap(lambda: 1, axis_size=3)().shape == (3,)
    assert vmap(lambda x: x, in_axes=None, axis_size=2)(ONES).shape == (2, 3)


def test_nested():
    table = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    ours = vmap(vmap(lambda a, b: a * b + 1, (0, None)), (None, 0))(table[:, 0], table[0])
    np.testing.assert_allclose(ours, np.outer(table[0], table[:, 0]) + 1, rtol=1e-6)


def test_name_and_documentation():
    def rule(x):
        """What it does."""
        return x

    mapped = vmap(rule)
    assert mapped.__name__ == "rule" and mapped.__wrapped__ is rule
    assert mapped.__doc__ == jax.vmap(rule).__doc__


def test_tracer_looks_like_jax():
    ours, theirs = [], []
    vmap(lambda x: ours.append(repr(x)) or x)(X)
    jax.vmap(lambda x: theirs.append(repr(x)) or x)(X)
    assert ours == theirs


def test_operators_and_methods_see_one_element():
    out = vmap(lambda x: (x.shape, x.ndim, len(x), (x[0] + x.at[1].set(9.0).sum()) * np.sin(x)))(X)[3]
    expected = [(x[0] + x[0] + 9 + x[2]) * np.sin(x) for x in X]
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_dtypes_are_kept(dtype):
    with jitcore.enable_x64():
        x = jnp.asarray(np.arange(6).reshape(2, 3) % 2).astype(dtype)
        out = vmap(lambda a: a, 0, 1)(x)
        assert out.dtype == x.dtype
        np.testing.assert_array_equal(
            np.asarray(out).astype(np.complex64), np.asarray(x).astype(np.complex64).T
        )


def test_nan_inf_and_signed_zero():
    x = np.array([[np.nan, -0.0], [np.inf, 1.0]], np.float32)
    out = np.asarray(vmap(lambda a: (-a).max())(x))
    np.testing.assert_array_equal(out, np.array([np.nan, -1.0], np.float32))
    assert np.signbit(np.asarray(vmap(lambda a: a * 1)(x))[0, 1])


# -- Python inside ------------------------------------------------------------------------------------------
def test_python_control_flow_on_what_is_the_same_for_all():
    def f(x, n, flag):
        for _ in range(int(n)):
            x = x + 1 if flag > 0 else x - 1
        return x

    np.testing.assert_array_equal(vmap(f, (0, None, None))(X, jnp.array(3), jnp.array(1.0)), X + 3)


def test_closure_over_tracers_of_jit_and_vmap():
    @jit
    def outer(x, y):
        return vmap(lambda a: vmap(lambda b: a * b + x)(y))(y)

    y = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(outer(2.0, y), np.outer(y, y) + 2)


def test_loop_body_closes_over_an_element():
    def f(x):
        return lax.scan(lambda carry, _: (carry * x, carry), jnp.float32(1), None, length=3)

    last, stack = vmap(f)(np.float32([2, 3]))
    np.testing.assert_array_equal(last, [8, 27])
    np.testing.assert_array_equal(stack, [[1, 2, 4], [1, 3, 9]])


def test_leaked_tracer():
    seen = []
    vmap(lambda x: seen.append(x) or x)(X)
    for use in (lambda: seen[0] + 1, lambda: jit(lambda: seen[0] + 1)(), lambda: bool(seen[0])):
        with pytest.raises(errors.UnexpectedTracerError, match="unexpected tracer"):
            use()
    with pytest.raises(errors.LeakedTracerError), jitcore.checking_leaks():
        vmap(lambda x: seen.append(x) or x)(X)


@pytest.mark.parametrize("convert, error", [
    (bool, errors.TracerBoolConversionError), (float, errors.ConcretizationTypeError),
    (np.asarray, errors.TracerArrayConversionError),
    ([1, 2].__getitem__, errors.TracerIntegerConversionError),
])
def test_values_of_elements_are_not_known(convert, error):
    with pytest.raises(error, match="while tracing the function .* for vmap") as caught:
        vmap(convert)(np.arange(3))
    assert len(str(caught.value).splitlines()) <= 8


# -- with jit -----------------------------------------------------------------------------------------------
def softmax(x):
    e = jnp.exp(x - x.max())
    return e / e.sum()


def test_jit_of_vmap_and_vmap_of_jit():
    inner = jit(softmax)
    expected = np.stack([np.asarray(inner(row)) for row in X])
    for f in (vmap(softmax), jit(vmap(softmax)), vmap(inner), jit(vmap(inner))):
        np.testing.assert_allclose(f(X), expected, rtol=1e-6)
    for f in (vmap(vmap(inner)), vmap(jit(vmap(softmax))), jit(vmap(jit(vmap(inner))))):
        np.testing.assert_allclose(f(X[None])[0], expected, rtol=1e-6)


def test_eager_vmap_of_jit_compiles_once():
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return jnp.sin(x) + x

    for _ in range(3):
        np.testing.assert_allclose(vmap(f)(X), np.sin(X) + X, rtol=1e-6)
    assert len(traces) == 1
    vmap(f, 1)(X)
    assert len(traces) == 2  # an element of another shape


def test_unmapped_result_of_jit_stays_unmapped():
    f = jit(lambda x, y: (x + 1, y * 2))
    out = vmap(f, (0, None), (0, None))(X, 3.0)
    assert out[1] == 6.0


def test_jaxpr_has_no_trace_of_vmap():
    closed = make_jaxpr(vmap(lambda x: jnp.sin(x) * 2, 1, 1))(X)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["transpose", "sin", "mul", "transpose"]
    assert [aval.shape for aval in closed.out_avals] == [(2, 3)]


def test_vector_product_needs_no_transpose():
    w = np.ones((4, 3), np.float32)
    closed = make_jaxpr(vmap(lambda x: w @ x))(X)
    assert [eqn.primitive.name for eqn in closed.eqns] == ["dot_general"]


def test_abstract_axis():
    f = jit(vmap(lambda x: x * x.sum()), abstracted_axes=("n", None))
    for size in (2, 5):
        x = np.ones((size, 3), np.float32)
        np.testing.assert_array_equal(f(x), 3 * x)


def test_disable_jit():
    with jitcore.disable_jit():
        out = vmap(jit(lambda x: lax.fori_loop(0, 3, lambda i, v: v + x, x)))(X)
    np.testing.assert_array_equal(out, 4 * X)


# -- loops whose length differs -----------------------------------------------------------------------------
def collatz(n):
    return lax.while_loop(
        lambda c: c[0] > 1, lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0)
    )[1]


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_each_element_leaves_the_loop_by_itself(wrap):
    steps = wrap(vmap(collatz))(np.arange(1, 28, dtype=np.int32))
    assert steps.tolist() == [int(collatz(n)) for n in range(1, 28)]
    assert steps[26] == 111


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_loops_with_lanes_in_two_directions(wrap):
    n = np.arange(1, 7, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(wrap(vmap(vmap(collatz)))(n), [[int(collatz(v)) for v in row] for row in n])
    inside = wrap(vmap(lambda n, k: vmap(collatz)(n) + k, (None, 0)))
    np.testing.assert_array_equal(inside(n[0], n[0]), np.asarray(vmap(collatz)(n[0])) + n[0][:, None])

    # The outer axis changes a carry and not the condition.
    def run(n, x):
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + x), (n, x))[1]

    out = wrap(vmap(vmap(run, (0, None)), (None, 0)))(n[0], np.float32([1, 10]))
    np.testing.assert_array_equal(out, np.outer([1, 10], n[0] + 1))


def test_stopped_lanes_keep_their_carry_bitwise():
    def run(n, x):
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, jnp.log(c[1]) / 0.0), (n, x))[1]

    out = np.asarray(vmap(run)(np.int32([0, 1, 0]), np.float32([-0.0, -1.0, 7.0])))
    assert np.signbit(out[0]) and out[0] == 0 and np.isnan(out[1]) and out[2] == 7


def test_scan_inside_a_loop_with_lanes():
    def run(n):
        def body(c):
            total, _ = lax.scan(lambda a, x: (a + x, None), c[1], jnp.arange(3.0))
            return c[0] - 1, total

        return lax.while_loop(lambda c: c[0] > 0, body, (n, 0.0))[1]

    np.testing.assert_array_equal(jit(vmap(run))(np.int32([0, 2, 5])), [0, 6, 15])


def test_lanes_form_is_checked():
    closed = make_jaxpr(vmap(collatz))(np.arange(3))
    (eqn,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "while"]
    assert eqn.params["cond_jaxpr"].out_avals[0].shape == (3,)
    assert all(aval.shape[:1] == (3,) for aval in eqn.params["body_jaxpr"].out_avals)
    params = eqn.params
    with pytest.raises(TypeError, match="does not begin with the axes of"):
        eqn.primitive.aval(
            *[aval.update(shape=(4,)) for aval in params["body_jaxpr"].in_avals],
            **params | {name: with_shape(params[name], (4,)) for name in ("body_jaxpr", "cond_jaxpr")},
        )


def with_shape(closed, shape):
    """The jaxpr with inputs that say they had this shape."""
    invars = [Var(var.aval.update(shape=shape)) for var in closed.jaxpr.invars]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars))


# -- conditions ---------------------------------------------------------------------------------------------
def test_condition_that_is_the_same_for_all_stays_a_cond():
    def f(p, x):
        return lax.cond(p, lambda v: v + 1, lambda v: v * 0.0, x)

    names = [eqn.primitive.name for eqn in make_jaxpr(vmap(f, (None, 0)))(True, X).eqns]
    assert "cond" in names and "select_n" not in names
    names = [eqn.primitive.name for eqn in make_jaxpr(vmap(f))(X[:, 0] > 0, X).eqns]
    assert "cond" not in names and "select_n" in names


# -- keys ---------------------------------------------------------------------------------------------------
def test_keys_are_mapped_by_their_own_axes():
    keys = random.split(random.key(0), (2, 3))
    out = vmap(lambda k: random.normal(k[1]), in_axes=-1)(keys)
    np.testing.assert_array_equal(out, [random.normal(keys[1, i]) for i in range(3)])
    turned = vmap(lambda k: k, in_axes=0, out_axes=-1)(keys)
    np.testing.assert_array_equal(random.key_data(turned), np.swapaxes(random.key_data(keys), 0, 1))
    with pytest.raises(ValueError, match=r"rank should be at least 1, but is only 0 \(its shape is \(\)\)"):
        vmap(random.normal)(random.key(0))
    with pytest.raises(ValueError, match=r"axis 0 of argument b of type key<fry>\[2,3\]"):
        vmap(lambda a, b: a)(ONES, keys)


@pytest.mark.parametrize("draw", ["normal", "uniform", "bernoulli", "gumbel", "exponential"])
def test_draws_equal_those_of_single_keys(draw):
    keys = random.split(random.key(3), 4)
    function = getattr(random, draw)
    expected = np.stack([np.asarray(function(key, shape=(5,))) for key in keys])
    np.testing.assert_array_equal(vmap(lambda k: function(k, shape=(5,)))(keys), expected)


# -- callbacks ----------------------------------------------------------------------------------------------
def test_what_a_callback_gets():
    shapes, result_type = [], jitcore.ShapeDtypeStruct((3,), np.float32)

    def note(*xs):
        shapes.append(tuple(x.shape for x in xs))
        return np.zeros(np.broadcast_shapes(*[x.shape for x in xs]), np.float32)

    def run(method):
        shapes.clear()
        f = functools.partial(pure_callback, note, result_type, vmap_method=method)
        assert vmap(f, (0, None))(X, ONES).shape == (2, 3)
        return list(shapes)

    assert run("sequential") == [((3,), (3,))] * 2
    assert run("expand_dims") == [((2, 3), (1, 3))]
    assert run("broadcast_all") == [((2, 3), (2, 3))]
    assert run("legacy_vectorized") == [((2, 3), (3,))]
    with pytest.raises(
        NotImplementedError, match="vmap is only supported for the pure_callback primitive when"
    ):
        run(None)


def test_prints_come_for_each_element(capfd):
    vmap(lambda x: debug.print("x = {}", x))(np.arange(3))
    assert capfd.readouterr().out == "x = 0\nx = 1\nx = 2\n"
    vmap(lambda x, y: debug.print("y = {}", y), (0, None))(np.arange(3), 5)
    assert capfd.readouterr().out == "y = 5\n"


def test_effects_that_cannot_be_mapped():
    from jitcore.experimental import io_callback

    spec = jitcore.ShapeDtypeStruct((), np.float32)
    call = lambda x: io_callback(lambda v: v, spec, x)  # noqa: E731
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback."):
        vmap(lambda x: io_callback(lambda v: v, spec, x, ordered=True))(ONES)
    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-cond."):
        vmap(lambda x: lax.cond(x > 0, call, lambda v: v, x))(ONES)
    with pytest.raises(NotImplementedError, match="IO effect not supported in vmap-of-while."):
        vmap(lambda x: lax.while_loop(lambda v: v < 0, call, x))(ONES)


# -- errors -------------------------------------------------------------------------------------------------
KEYWORDS = {"b": ONES}
ERRORS = {
    "in_axes text": lambda vmap: vmap(lambda a: a, in_axes="x"),
    "in_axes float": lambda vmap: vmap(lambda a: a, in_axes=(1.0,)),
    "out_axes text": lambda vmap: vmap(lambda a: a, out_axes="q"),
    "in_axes length": lambda vmap: vmap(lambda a, b: a, in_axes=(0,))(X, X),
    "sizes": lambda vmap: vmap(lambda a, b: a)(X, ONES),
    "sizes, several": lambda vmap: vmap(lambda a, b, c, d: a)(X, ONES, ONES, X),
    "sizes, keyword": lambda vmap: vmap(lambda a, b: a)(X, **KEYWORDS),
    "sizes, pytree": lambda vmap: vmap(lambda a: a)({"u": X, "v": ONES, "w": ONES}),
    "sizes, varargs": lambda vmap: vmap(lambda a, *rest: a)(X, X, ONES),
    "sizes, three": lambda vmap: vmap(lambda a, *rest: a)(*[X] * 7, ONES, np.ones(4, np.float32)),
    "sizes, axis": lambda vmap: vmap(lambda a, b: a, in_axes=(1, -1))(X, np.ones((3, 4), np.float32)),
    "sizes, axis_size": lambda vmap: vmap(lambda a: a, axis_size=3)(X),
    "scalar": lambda vmap: vmap(lambda a: a)(1.0),
    "second scalar": lambda vmap: vmap(lambda a, b: a)(X, 1.0),
    "axis too large": lambda vmap: vmap(lambda a: a, in_axes=2)(X),
    "axis too small": lambda vmap: vmap(lambda a: a, in_axes=-3)(X),
    "nothing mapped": lambda vmap: vmap(lambda a: a, in_axes=None)(X),
    "no arguments": lambda vmap: vmap(lambda: 1)(),
    "mapped output without axis": lambda vmap: vmap(lambda a: a, out_axes=None)(X),
    "mapped output without axis, nested": lambda vmap: vmap(lambda a: (1, {"k": a}), out_axes=(0, None))(X),
    "output axis too large": lambda vmap: vmap(lambda a: a, out_axes=3)(X),
    "text argument": lambda vmap: vmap(lambda a: a)("hello"),
    "text output": lambda vmap: vmap(lambda a: "x")(X),
    "not callable": lambda vmap: vmap(3),
}
PREFIX_ERRORS = {
    "out_axes": lambda vmap: vmap(lambda a: (a, a), out_axes=(0, 0, 0))(X),
    "in_axes of a leaf": lambda vmap: vmap(lambda a: a, in_axes=((0, 0),))(X),
    "in_axes of a tuple": lambda vmap: vmap(lambda a: a[0], in_axes=((0, 0, 0),))((X, X)),
    "in_axes of a dict": lambda vmap: vmap(lambda a: a["u"], in_axes=({"u": 0, "q": None},))({"u": X}),
}


def catch(run, function) -> Exception:
    with pytest.raises(Exception) as caught:
        run(function)
    return caught.value


@pytest.mark.parametrize("run", ERRORS.values(), ids=ERRORS.keys())
def test_errors_as_in_jax(run):
    ours, theirs = catch(run, vmap), catch(run, jax.vmap)
    assert type(ours) is type(theirs)
    expected = str(theirs).replace("JAX type", "jitcore type").splitlines()
    assert str(ours).splitlines()[: len(expected)] == expected
    assert len(str(ours).splitlines()) <= errors.MAX_LINES


@pytest.mark.parametrize("run", PREFIX_ERRORS.values(), ids=PREFIX_ERRORS.keys())
def test_axes_that_are_no_prefix(run):
    ours, theirs = catch(run, vmap), catch(run, jax.vmap)
    assert type(ours) is type(theirs) is ValueError
    assert str(ours).startswith(str(theirs).splitlines()[0].split(";")[0])


def test_names_of_arguments_that_have_none():
    with pytest.raises(ValueError, match=r"axis 0 of args\[1\]\['k'\] of type float32\[3\]"):
        vmap(lambda x, *rest: x)(X, {"k": ONES})


def test_many_sizes_stay_within_eight_lines():
    with pytest.raises(ValueError) as caught:
        vmap(lambda *xs: xs)(*[np.ones(n) for n in range(1, 9)])
    lines = str(caught.value).splitlines()
    assert len(lines) <= errors.MAX_LINES and "size 8" in str(caught.value)


def test_exceptions_of_the_function_pass_through():
    with pytest.raises(KeyError):
        vmap(lambda x: {}["missing"])(X)
    np.testing.assert_array_equal(vmap(lambda x: x + 1)(X), X + 1)  # the trace before is current again
