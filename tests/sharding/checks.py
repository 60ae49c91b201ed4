"""Checks on eight devices: programs against one device, texts of programs, errors. See `on_devices`."""

import io
import pickle
from contextlib import redirect_stdout

import numpy as np

import jitcore
from jitcore import jit, lax, numpy as jnp, shard_map
from jitcore.sharding import Mesh, NamedSharding, P, PositionalSharding

X = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)

CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


def make_meshes() -> tuple[Mesh, Mesh]:
    devices = np.array(jitcore.devices("xla"))
    return Mesh(devices, ("x",)), Mesh(devices.reshape(4, 2), ("x", "y"))


def assert_close(found, expected):
    for a, b in zip(
        jitcore.tree_util.tree_leaves(found), jitcore.tree_util.tree_leaves(expected), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def read_hlo(f, *args) -> str:
    return f.lower(*args).compile().as_text()


def expect(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__} with {text!r}")


# -- programs ---------------------------------------------------------------------------------------------------
@check
def training():
    """Parameters on all devices, data in parts: the sums over devices are the only communication."""
    line, _ = make_meshes()

    def loss(params, x, y):
        (w, b), (v, c) = params
        return jnp.mean((jnp.tanh(x @ w + b) @ v + c - y) ** 2)

    @jit
    def step(params, x, y):
        value, slope = jitcore.value_and_grad(loss)(params, x, y)
        return jitcore.tree_util.tree_map(lambda p, s: p - 0.1 * s, params, slope), value

    start = (W, np.zeros(8, np.float32)), (W[:, :1], np.zeros(1, np.float32))
    one, spread = (start, X, X[:, :1]), (
        jitcore.device_put(start, NamedSharding(line, P())),
        *jitcore.device_put((X, X[:, :1]), NamedSharding(line, P("x"))))
    text = read_hlo(step, *spread)
    assert "all-reduce" in text and "all-gather" not in text
    for _ in range(4):
        params, value = step(*one)
        one = (params, *one[1:])
        spread_params, spread_value = step(*spread)
        spread = (spread_params, *spread[1:])
    assert_close((spread_params, spread_value), (params, value))


@check
def products():
    """A factor cut by columns, then one cut by rows: one sum over devices, nothing is gathered."""
    line, _ = make_meshes()
    f = jit(lambda x, a, b: jnp.tanh(x @ a) @ b)
    x, a, b = (jitcore.device_put(value, NamedSharding(line, spec))
               for value, spec in ((X, P()), (W, P(None, "x")), (W, P("x"))))
    assert_close(f(x, a, b), f(X, W, W))
    text = read_hlo(f, x, a, b)
    assert "all-reduce" in text and "all-gather" not in text
    assert a.sharding.spec == P(None, "x") and f(x, a, b).sharding.is_fully_replicated


def smooth(x):
    """A step of a stencil whose neighbours lie on other devices."""
    count = lax.axis_size("x")
    before = lax.ppermute(x[-1:], "x", [(k, (k + 1) % count) for k in range(count)])
    after = lax.ppermute(x[:1], "x", [(k, (k - 1) % count) for k in range(count)])
    wide = jnp.concatenate([before, x, after])
    return 0.5 * wide[1:-1] + 0.25 * (wide[2:] + wide[:-2])


@check
def stencil():
    line, _ = make_meshes()
    step = shard_map(smooth, mesh=line, in_specs=P("x"), out_specs=P("x"))
    run = jit(lambda x: lax.fori_loop(0, 5, lambda i, x: step(x), x))
    x = jitcore.device_put(X, NamedSharding(line, P("x")))
    expected = X
    for _ in range(5):
        expected = 0.5 * expected + 0.25 * (np.roll(expected, 1, 0) + np.roll(expected, -1, 0))
    assert_close(run(x), expected)
    assert run(x).sharding == x.sharding
    text = read_hlo(run, x)
    assert "collective-permute" in text and "all-gather" not in text and "all-reduce" not in text


@check
def monte_carlo():
    line, _ = make_meshes()

    def count(key):
        points = jitcore.random.uniform(key, (1000, 2))
        return jnp.sum((points**2).sum(1) < 1.0)

    keys = jitcore.random.split(jitcore.random.PRNGKey(0), 8)
    f = jit(
        shard_map(
            lambda k: 4.0 * lax.psum(count(k[0]), "x") / 8000, mesh=line, in_specs=P("x"), out_specs=P()
        )
    )
    assert_close(f(keys), 4.0 * sum(int(count(key)) for key in keys) / 8000)
    assert "all-gather" not in read_hlo(f, keys)


@check
def elementwise_stays_where_it_is():
    _, grid = make_meshes()
    x = jitcore.device_put(X, NamedSharding(grid, P("x", "y")))
    f = jit(lambda x: lax.scan(lambda c, _: (jnp.sin(c) * 2 + x, None), x, None, length=3)[0])
    text = read_hlo(f, x)
    assert not any(word in text for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute"))
    assert f(x).sharding == x.sharding and (x * 2 + 1).sharding == x.sharding


@check
def captured_arrays_stay_where_they_are():
    line, _ = make_meshes()
    x = jitcore.device_put(X, NamedSharding(line, P("x")))
    f = jit(lambda w: x @ w)
    assert_close(f(W), X @ W)
    assert f(W).sharding.spec == P("x") and "all-gather" not in read_hlo(f, W)


# -- arrays -----------------------------------------------------------------------------------------------------
@check
def calls_are_served_fast_for_each_sharding():
    line, grid = make_meshes()
    f = jit(lambda x: x + 1)
    places = [NamedSharding(line, P("x")), NamedSharding(grid, P("x", "y")), NamedSharding(line, P())]
    for sharding in places * 3:
        x = jitcore.device_put(X, sharding)
        assert f(x).sharding == sharding
    assert f.cache_info().misses == 3 and f.cache_info().hits == 6


@check
def positional_shardings():
    devices = jitcore.devices("xla")
    grid = PositionalSharding(devices).reshape(4, 2)
    for sharding, part in ((grid, (4, 4)), (grid.replicate(0), (16, 4)), (grid.replicate(1), (4, 8)), (grid.T, (8, 2)),
                           (grid.replicate(), (16, 8))):
        x = jitcore.device_put(X, sharding)
        assert x.sharding == sharding and sharding.shard_shape(X.shape) == part == x.addressable_data(0).shape
        assert_close(x, X)
        for shard in x.addressable_shards:
            assert_close(shard.data, X[shard.index])
    assert grid.replicate(keepdims=False).shape == () and grid.replicate().is_fully_replicated
    assert hash(grid) == hash(PositionalSharding(devices).reshape(4, 2)) and grid != grid.replicate(0)
    assert "{CPU 0, 1}" in repr(grid.replicate(1))


@check
def donated_parts():
    line, _ = make_meshes()
    x = jitcore.device_put(X, NamedSharding(line, P("x")))
    y = jit(lambda x: x * 2, donate_argnums=0)(x)
    assert x.is_deleted() and y.sharding.spec == P("x")
    expect(RuntimeError, "deleted", lambda: np.asarray(x))


@check
def sharding_of_traced_values():
    line, _ = make_meshes()
    found = []

    @jit
    def f(x):
        y = lax.with_sharding_constraint(jnp.sin(x), NamedSharding(line, P(None, "x")))
        jitcore.debug.inspect_array_sharding(y, callback=found.append)
        return y

    f(X)
    assert found[0].is_equivalent_to(NamedSharding(line, P(None, "x")), 2)
    x = jitcore.device_put(X, NamedSharding(line, P(None, "x")))
    text = io.StringIO()
    with redirect_stdout(text):
        jitcore.debug.visualize_array_sharding(x)
    assert text.getvalue().count("CPU") == 8 and text.getvalue().count("\n") == 3
    shown = x._repr_html_()
    assert shown.count("<td ") == 8 and all(f">CPU {number}</td>" in shown for number in range(8))
    assert pickle.loads(pickle.dumps(x.sharding)) == x.sharding


# -- errors -----------------------------------------------------------------------------------------------------
@check
def errors_of_placement():
    line, grid = make_meshes()
    half = Mesh(np.array(jitcore.devices("xla")[:4]), ("x",))
    on_line, on_half = NamedSharding(line, P("x")), NamedSharding(half, P("x"))
    x, y = jitcore.device_put(X, on_line), jitcore.device_put(X, on_half)
    expect(ValueError, "Received incompatible devices", lambda: jit(lambda x, y: x + y)(x, y))
    expect(ValueError, "Received incompatible devices", lambda: x + y)
    expect(ValueError, "Received incompatible devices", lambda: jit(lambda x: x, in_shardings=on_line)(y))
    expect(ValueError, "Received incompatible devices",
           lambda: jit(lambda x: lax.with_sharding_constraint(x, on_line))(y))
    expect(ValueError, "does not match the sharding on the respective arg",
           lambda: jit(lambda a: a, in_shardings=NamedSharding(line, P(None, "x")))(x))
    expect(ValueError, "axis 0 is partitioned 8 times", lambda: jitcore.device_put(X[:9], on_line))
    expect(ValueError, "axis 0 is partitioned 8 times", lambda: jit(lambda x: x, in_shardings=on_line)(X[:9]))
    expect(
        ValueError, "axis 0 is partitioned 8 times", lambda: jit(lambda x: x, out_shardings=on_line)(X[:9])
    )
    expect(
        ValueError, "rank at least 3", lambda: jitcore.device_put(X, NamedSharding(grid, P("x", None, "y")))
    )
    expect(ValueError, "kwargs", lambda: jit(lambda x, y: x, in_shardings=on_line)(X, y=X))
    expect(ValueError, "tree prefix", lambda: jit(lambda x, y: x, in_shardings=(on_line,))(X, X))
    expect(RuntimeError, "non-empty mesh in context", lambda: lax.with_sharding_constraint(X, P("x")))
    expect(
        ValueError,
        "backend 'cpu' cannot run",
        lambda: jit(lambda x: x, in_shardings=on_line, backend="cpu")(X),
    )
    expect(ValueError, "takes shardings and None", lambda: jit(lambda x: x, in_shardings="x"))


@check
def shard_map_reads_how_arrays_lie():
    line, _ = make_meshes()
    total = shard_map(lambda x, y, scale: lax.psum_scatter(x @ y * scale, "x", tiled=True), mesh=line,
                      out_specs=P("x"))
    x = jitcore.device_put(X.T @ X, NamedSharding(line, P(None, "x")))
    y = jitcore.device_put(X.T, NamedSharding(line, P("x")))
    np.testing.assert_allclose(total(x, y, np.float32(2)), 2 * (X.T @ X) @ X.T, rtol=1e-4)
    expect(ValueError, "not known of a traced value", lambda: jit(total)(x, y, 2.0))


@check
def errors_of_shard_map():
    line, _ = make_meshes()

    def run(f=lambda x: x, in_specs=P("x"), out_specs=P("x"), x=X, **options):
        return shard_map(f, mesh=line, in_specs=in_specs, out_specs=out_specs, **options)(x)

    expect(ValueError, "require replication which can't be statically inferred", lambda: run(out_specs=P()))
    expect(ValueError, "evenly divisible by 8", lambda: run(x=X[:9]))
    expect(ValueError, "Resource axis: z", lambda: run(in_specs=P("z")))
    expect(ValueError, "too long", lambda: run(in_specs=P(None, None, "x")))
    expect(ValueError, "too long", lambda: run(lambda x: x.sum(), out_specs=P("x")))
    expect(ValueError, "tree prefix", lambda: run(in_specs=(P("x"), P("x"))))
    expect(TypeError, "must be PartitionSpecs", lambda: run(in_specs="x"))
    expect(NameError, "unbound axis name: q", lambda: run(lambda x: lax.psum(x, "q")))
    expect(ValueError, "unique", lambda: run(lambda x: lax.ppermute(x, "x", [(0, 1), (0, 2)])))
    expect(ValueError, "all_to_all requires", lambda: run(lambda x: lax.all_to_all(x, "x", 0, 1)))
    expect(ValueError, "divisible by 8", lambda: run(lambda x: lax.psum_scatter(x, "x", tiled=True)))
    expect(ValueError, "takes a mesh", lambda: shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))(X))

    @jitcore.custom_vjp
    def f(w, x):
        return x @ w

    f.defvjp(lambda w, x: (f(w, x), (w, x)), lambda r, ct: (r[1].T @ ct, ct @ r[0].T))
    g = shard_map(lambda w, x: lax.psum(f(w, x).sum(), "x"), mesh=line, in_specs=(P(), P("x")), out_specs=P())
    expect(ValueError, "Custom VJP bwd rule", lambda: jitcore.grad(g)(W, X))
    assert run(lambda x: x[:1], out_specs=P(), check_vma=False).shape == (1, 8)
