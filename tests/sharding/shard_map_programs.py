"""Functions of parts of arrays, with collectives, loops and derivatives. See `on_devices`."""

from functools import partial

import numpy as np

X = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(16, 8, 8)).astype(np.float32)

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def make_meshes(jax):
    devices = np.array(jax.devices())
    kinds = jax.sharding
    return kinds.PartitionSpec, kinds.Mesh(devices, ("x",)), kinds.Mesh(devices.reshape(4, 2), ("x", "y"))


def ring(count, step=1):
    return [(k, (k + step) % count) for k in range(count)]


@program
def sums(jax, jnp):
    P, line, _ = make_meshes(jax)
    f = jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), mesh=line, in_specs=P("x"), out_specs=P())
    return f(X), jax.jit(f)(X), jax.jit(jax.grad(lambda x: f(x) ** 2))(X)


@program
def collectives(jax, jnp):
    P, _, grid = make_meshes(jax)
    lax = jax.lax
    cases = [
        (lambda x: lax.psum(x, ("x", "y")), P("x", "y"), P()),
        (lambda x: lax.pmean(x, "y"), P("x", "y"), P("x")),
        (lambda x: lax.pmax(x, "x") - lax.pmin(x, ("x",)), P("x"), P()),
        (lambda x: lax.psum(x > 0, "x"), P("x"), P()),
        (lambda x: lax.psum({"a": x, "b": (x[:1],)}, "x"), P("x"), P()),
        (lambda x: lax.psum_scatter(x, "x", tiled=True), P(None, "x"), P("x")),
        (lambda x: lax.all_to_all(x, "x", 0, 1, tiled=True), P(None, "x"), P("x")),
        (lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x")),
        (lambda x: lax.ppermute(x, "x", [(0, 2), (2, 1)]), P("x", "y"), P("x", "y")),
        (lambda x: lax.ppermute(x, ("x", "y"), ring(8)), P(("x", "y")), P(("x", "y"))),
        (lambda x: x + lax.axis_index(("x", "y")), P(("x", "y")), P(("x", "y"))),
        (lambda x: lax.psum(1, "x") + x * lax.axis_size(("x", "y")), P("x"), P("x")),
    ]
    gathers = [
        (lambda x: lax.all_gather(x, "x"), P("x"), P(None, "x")),
        (lambda x: lax.all_gather(x, ("x", "y"), tiled=True), P(("x", "y")), P()),
        (lambda x: lax.all_gather(x, "y", axis=1, tiled=True), P("x", "y"), P("x")),
    ]
    runs = [jax.jit(jax.shard_map(f, mesh=grid, in_specs=i, out_specs=o)) for f, i, o in cases]
    runs += [
        jax.jit(jax.shard_map(f, mesh=grid, in_specs=i, out_specs=o, check_vma=False)) for f, i, o in gathers
    ]
    return [run(X) for run in runs]


@program
def exchanges_index_by_index(jax, jnp):
    P, line, _ = make_meshes(jax)
    found = []
    for split, concat in ((1, 1), (1, 2), (2, 1), (1, 0), (2, 0)):
        f = jax.shard_map(
            lambda x: jax.lax.all_to_all(x, "x", split, concat), mesh=line, in_specs=P("x"), out_specs=P("x")
        )
        found.append(jax.jit(f)(Y))
    f = jax.shard_map(
        lambda x: jax.lax.psum_scatter(x, "x", scatter_dimension=1),
        mesh=line,
        in_specs=P("x"),
        out_specs=P("x"),
    )
    return found, jax.jit(f)(Y)


@program
def derivatives_of_collectives(jax, jnp):
    P, _, grid = make_meshes(jax)
    lax = jax.lax
    cases = [
        (lambda x: lax.all_gather(x, "x", tiled=True) * (1.0 + lax.axis_index("x")), P("x"), P("x")),
        (lambda x: lax.psum_scatter(x * x, "x", tiled=True), P(None, "x"), P("x")),
        (lambda x: lax.all_to_all(x * x, "x", 0, 1, tiled=True), P(None, "x"), P("x", None)),
        (lambda x: lax.psum(x * x, ("x", "y")) * x, P("x", "y"), P("x", "y")),
        (lambda x: lax.pmean(x * x, "y") * x, P("x", "y"), P("x", "y")),
        (lambda x: lax.ppermute(x * x, "x", [(0, 1), (1, 2)]), P("x", "y"), P("x", "y")),
    ]
    found = []
    for f, in_spec, out_spec in cases:
        for check in (True, False):
            g = jax.shard_map(f, mesh=grid, in_specs=in_spec, out_specs=out_spec, check_vma=check)
            found.append(jax.jit(jax.grad(lambda x: jnp.sum(g(x) * jnp.cos(g(x)))))(X))
    return found


@program
def derivatives_inside(jax, jnp):
    """By what is the same on all devices, the derivative adds up theirs; unchecked it is each device's own."""
    P, line, _ = make_meshes(jax)

    def step(w, x):
        def loss(w):
            return jnp.mean(jnp.tanh(x @ w) ** 2)

        value, slope = jax.value_and_grad(loss)(w)
        mean = jax.grad(lambda w: jax.lax.pmean(loss(w), "x"))(w)
        total = jax.grad(lambda w: jax.lax.psum(loss(w), "x"))(w)
        return (
            jax.lax.pmean(value, "x"),
            jax.lax.pmean(slope, "x"),
            jax.lax.pmean(mean, "x"),
            jax.lax.pmean(total, "x"),
        )

    options = {"mesh": line, "in_specs": (P(), P("x")), "out_specs": P()}
    return [jax.jit(jax.shard_map(step, **options, check_vma=check))(W, X) for check in (True, False)]


@program
def derivatives_outside(jax, jnp):
    P, line, _ = make_meshes(jax)
    found = []
    for check in (True, False):
        make = partial(jax.shard_map, mesh=line, in_specs=(P(), P("x")), check_vma=check)
        total = make(lambda w, x: jax.lax.psum(jnp.sum(jnp.sin(x @ w)), "x"), out_specs=P())
        parts = make(lambda w, x: jnp.sin(x @ w) * 2, out_specs=P("x"))
        for f in (total, lambda w, x: parts(w, x).sum()):
            found += [jax.grad(f, (0, 1))(W, X), jax.jit(jax.grad(f, (0, 1)))(W, X), jax.jvp(f, (W, X), (W, X)),
                      jax.vmap(f, (None, 0))(W, np.stack([X, 2 * X]))]
    return found


@program
def derivatives_of_calls_inside(jax, jnp):
    P, line, _ = make_meshes(jax)

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda x, t: (f(x[0]), jnp.cos(x[0]) * t[0]))

    @jax.custom_vjp
    def g(w, x):
        return x @ w

    g.defvjp(lambda w, x: (g(w, x), (w, x)), lambda r, ct: (jax.lax.psum(r[1].T @ ct, "x"), ct @ r[0].T))
    dense = jax.jit(lambda w, x: jnp.tanh(x @ w))

    def body(w, x):
        again = jax.checkpoint(lambda y: jnp.sin(y @ w))(x)
        return jax.lax.psum(
            jnp.sum(f(x @ w) + g(w, x) + again + dense(w, dense(w, x)) + dense(w, w).sum()), "x"
        )

    h = jax.shard_map(body, mesh=line, in_specs=(P(), P("x")), out_specs=P())
    return jax.jit(h)(W, X), jax.jit(jax.grad(h, (0, 1)))(W, X)


@program
def loops_inside(jax, jnp):
    P, line, _ = make_meshes(jax)

    def repeat(x, w):
        def body(c, t):
            c = jnp.tanh(c @ w) + jax.lax.pmean(c, "x")
            return c, jax.lax.psum((c * c).sum(), "x")

        return jax.lax.scan(body, x, jnp.arange(3.0))

    def until(x):
        def body(state):
            x, _, i = state
            x = x * 0.5
            return x, jax.lax.psum((x * x).sum(), "x"), i + 1

        x, rest, i = jax.lax.while_loop(lambda s: s[1] > 1.0, body, (x, jax.lax.psum((x * x).sum(), "x"), 0))
        one = jax.lax.cond(i > 3, lambda x: x + jax.lax.pmax(x, "x"), lambda x: x - jax.lax.pmean(x, "x"), x)
        own = jax.lax.cond(jax.lax.axis_index("x") == 0, lambda x: x, lambda x: -x, x)
        return one, own, rest, i

    s = jax.shard_map(repeat, mesh=line, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
    u = jax.shard_map(until, mesh=line, in_specs=P("x"), out_specs=(P("x"), P("x"), P(), P()))

    def loss(x, w):
        last, sums = s(x, w)
        return (last**2).sum() + sums.sum()

    return (
        jax.jit(s)(X, W),
        jax.jit(jax.grad(loss, (0, 1)))(X, W),
        jax.grad(loss, (0, 1))(X, W),
        jax.jit(u)(X),
    )


@program
def loops_outside(jax, jnp):
    P, line, _ = make_meshes(jax)
    f = jax.shard_map(
        lambda x: x + jax.lax.pmean(x.mean(), "x"), mesh=line, in_specs=P("x"), out_specs=P("x")
    )
    jitted = jax.jit(f)
    return (jax.lax.fori_loop(0, 3, lambda i, x: f(x), X), jax.grad(lambda x: (jitted(x) ** 2).sum())(X),
            jax.lax.scan(lambda c, _: (f(c), c.sum()), X, None, length=2), jax.vmap(jitted)(np.stack([X, X + 1])),
            jax.jacfwd(lambda s: jitted(X * s).sum())(1.0),
            jax.value_and_grad(lambda x: jax.checkpoint(f)(x).sum())(X))


@program
def ring_products(jax, jnp):
    """A matrix product whose factor goes round, and attention whose keys and values do."""
    P, line, _ = make_meshes(jax)

    def product(a, b):
        count, place = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = jax.lax.pcast(jnp.zeros((a.shape[0], b.shape[1])), "x", to="varying")

        def body(k, carry):
            total, b = carry
            start = (place + k) % count * b.shape[0]
            total = total + jax.lax.dynamic_slice_in_dim(a, start, b.shape[0], 1) @ b
            return total, jax.lax.ppermute(b, "x", ring(count, -1))

        return jax.lax.fori_loop(0, count, body, (total, b))[0]

    def attend(q, k, v):
        count = jax.lax.axis_size("x")

        def body(carry, _):
            k, v, out, weight, top = carry
            scores = q @ k.T / jnp.sqrt(8.0)
            new_top = jnp.maximum(top, scores.max(-1))
            p, shrink = jnp.exp(scores - new_top[:, None]), jnp.exp(top - new_top)
            out, weight = out * shrink[:, None] + p @ v, weight * shrink + p.sum(-1)
            return (*(jax.lax.ppermute(y, "x", ring(count)) for y in (k, v)), out, weight, new_top), None

        start = [
            jax.lax.pcast(y, "x", to="varying")
            for y in (jnp.zeros(q.shape[0]), jnp.full(q.shape[0], -jnp.inf))
        ]
        _, _, out, weight, _ = jax.lax.scan(body, (k, v, jnp.zeros_like(q), *start), None, length=count)[0]
        return out / weight[:, None]

    f = jax.shard_map(product, mesh=line, in_specs=P("x"), out_specs=P("x"))
    g = jax.shard_map(attend, mesh=line, in_specs=P("x"), out_specs=P("x"))
    return (jax.jit(f)(X, W), jax.jit(jax.grad(lambda a: (f(a, W) ** 2).sum()))(X), jax.jit(g)(X, X + 1, X * 2),
            jax.jit(jax.grad(lambda *a: (g(*a) * W[0]).sum(), (0, 1, 2)))(X, X + 1, X * 2))


@program
def vmap_inside_and_outside(jax, jnp):
    P, line, _ = make_meshes(jax)
    f = jax.shard_map(
        lambda x: x - jax.lax.pmean(x.mean(), "x"), mesh=line, in_specs=P("x"), out_specs=P("x")
    )
    g = jax.shard_map(lambda x: jax.vmap(lambda r: r / jax.lax.psum(r.sum(), "x"))(x), mesh=line,
                      in_specs=P(None, "x"), out_specs=P(None, "x"))
    return jax.vmap(f)(np.stack([X, X + 1])), jax.jit(g)(X)


@program
def vmap_alone(jax, jnp):
    """The same exchanges along an axis of `vmap`."""
    values, lax, found = Y[:, :4, :4].reshape(4, 4, 4, 4), jax.lax, []
    for f in (lambda x: lax.ppermute(x, "i", ring(4)), lambda x: lax.pshuffle(x, "i", [1, 2, 3, 0]),
              lambda x: lax.psum_scatter(x, "i"), lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
              lambda x: lax.all_to_all(x, "i", 0, 0), lambda x: lax.all_to_all(x, "i", 0, 2),
              lambda x: lax.all_to_all(x, "i", 2, 0), lambda x: lax.all_to_all(x, "i", 1, 2, tiled=True),
              lambda x: lax.all_to_all(x, "i", 2, 1, tiled=True), lambda x: lax.all_gather(x, "i", axis=1)):
        mapped = jax.vmap(f, axis_name="i")
        weights = np.arange(mapped(values).shape[-1], dtype=np.float32)
        found += [mapped(values), jax.grad(lambda v: (mapped(v) ** 2 * weights).sum())(values)]
    return found


@program
def pytrees_closures_and_no_arguments(jax, jnp):
    P, line, grid = make_meshes(jax)
    f = jax.shard_map(
        lambda d, *rest: {"s": jax.lax.psum(d["a"][0], ("x", "y")), "t": (d["b"] + jax.lax.axis_index("x"), rest[0])},
        mesh=grid, in_specs=({"a": (P("x", "y"),), "b": P("x")}, P()), out_specs={"s": P(), "t": (P("x"), P())})
    values = {"a": (X,), "b": X}

    def outer(w, x):
        return (
            jax.shard_map(lambda x: x @ w + jnp.ones(8), mesh=line, in_specs=P("x"), out_specs=P("x"))(x) ** 2
        ).sum()

    number = jax.shard_map(
        lambda: jax.lax.axis_index("x")[None] * 2, mesh=line, in_specs=(), out_specs=P("x")
    )
    return (
        f(values, W),
        jax.jit(f)(values, W),
        jax.jit(jax.grad(outer, (0, 1)))(W, X),
        number(),
        jax.jit(number)(),
    )


@program
def one_axis_by_hand(jax, jnp):
    P, _, grid = make_meshes(jax)
    f = jax.jit(jax.shard_map(lambda x, w: jax.lax.psum(x @ w, "x"), mesh=grid, in_specs=(P("x"), P()), out_specs=P(),
                              axis_names={"x"}))
    return f(X, W), jax.jit(jax.grad(lambda w: f(X, w).sum()))(W)


@program
def current_mesh(jax, jnp):
    P, _, grid = make_meshes(jax)
    with jax.set_mesh(grid):
        f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "y"), in_specs=P("x", "y"), out_specs=P("x")))
        return f(X), jax.jit(
            lambda x: jax.lax.with_sharding_constraint(x + 1, P("x")), out_shardings=P("x", "y")
        )(X)


@program
def other_dtypes(jax, jnp):
    P, line, _ = make_meshes(jax)
    f = jax.jit(jax.shard_map(lambda x: (jax.lax.psum(x, "x"), jax.lax.pmean(x, "x"), jax.lax.pmax(x, "x")), mesh=line,
                              in_specs=P("x"), out_specs=P()))
    values = [jnp.asarray(X).astype(dtype) for dtype in ("bfloat16", "float16", "int32", "uint8")]
    return [[out.astype("float32") for out in f(value)] for value in values]


@program
def library_routines(jax, jnp):
    P, line, _ = make_meshes(jax)
    a = np.eye(4, dtype=np.float32) * 3 + 0.1 * Y[:8, :4, :4]

    def body(a):
        det = jax.lax.pmean(jnp.linalg.det(a).mean(), "x")
        return jnp.linalg.solve(a, jnp.ones((1, 4, 1))), det, jnp.fft.rfft(a).real, jnp.sort(a, -1)

    f = jax.shard_map(body, mesh=line, in_specs=P("x"), out_specs=(P("x"), P(), P("x"), P("x")))
    return jax.jit(f)(a), jax.jit(jax.grad(lambda a: f(a)[1]))(a)


@program
def monte_carlo(jax, jnp):
    P, line, _ = make_meshes(jax)

    def estimate(key):
        points = jax.random.uniform(jax.random.fold_in(key, jax.lax.axis_index("x")), (500, 2))
        return 4.0 * jax.lax.pmean(jnp.mean((points**2).sum(1) < 1.0), "x")

    f = jax.jit(jax.shard_map(estimate, mesh=line, in_specs=P(), out_specs=P()))
    g = jax.jit(jax.shard_map(lambda keys: jax.vmap(lambda key: jax.random.normal(key, (3,)))(keys), mesh=line,
                              in_specs=P("x"), out_specs=P("x")))
    return f(jax.random.key(0)), f(jax.random.PRNGKey(1)), g(jax.random.split(jax.random.key(2), 16))
