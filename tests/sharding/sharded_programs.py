"""Programs on whole arrays that lie on several devices. See `on_devices`."""

from functools import partial

import numpy as np

from tests.sharding.shard_map_programs import W, X

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def make_mesh(jax):
    """Specs, and shardings on a grid of 4 by 2."""
    kinds = jax.sharding
    mesh = kinds.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    return (
        kinds.PartitionSpec,
        mesh,
        lambda *entries: kinds.NamedSharding(mesh, kinds.PartitionSpec(*entries)),
    )


@program
def jit_with_shardings(jax, jnp):
    P, mesh, on = make_mesh(jax)
    f = jax.jit(
        lambda t, x: {"a": t["w"] @ x, "b": x.sum()}, in_shardings=({"w": on("x", "y"), "v": None}, on("y"))
    )
    g = jax.jit(lambda p, x: jax.tree_util.tree_map(lambda q: q - 0.1 * x.mean(), p), in_shardings=(on(), on("x")),
                out_shardings=on())
    with mesh:
        h = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, P(None, "y")), in_shardings=on("x"),
                    out_shardings=on("x", "y"))(X)
    k = jax.jit(lambda x: x, out_shardings=on(None, ("x", "y")))(X)

    @partial(jax.jit, in_shardings=(on("x"),), out_shardings=on("x"), donate_argnums=0)
    def relu(x):
        return jnp.maximum(x, 0)

    outs = f({"w": X, "v": W}, W), g({"a": X, "b": W}, X), h, k, relu(jax.device_put(X, on("x")))
    return outs, [str(out.sharding.spec) for out in (h, k, outs[4])]


@program
def nested_jit(jax, jnp):
    _, _, on = make_mesh(jax)
    inner = jax.jit(lambda x: jnp.sin(x), in_shardings=on("x"), out_shardings=on("y"))
    return (
        jax.jit(lambda x: inner(x) * 2)(X),
        jax.grad(lambda x: (inner(x) ** 2).sum())(X),
        jax.vmap(inner)(X[None]),
    )


@program
def operations(jax, jnp):
    _, _, on = make_mesh(jax)
    x = jax.device_put(X, on("x", "y"))
    outs = [jnp.sin(x), x.T, x @ W, x.sum(0), x.sum(), jnp.concatenate([x, x]), x[0], x[:4], x.reshape(8, 16),
            jnp.where(x > 0, x, 0), x.at[0].set(1.0), jnp.sort(x, 0), jnp.argmax(x, 1), jnp.cumsum(x, 0),
            jnp.linalg.norm(x), x.astype("int32"), jnp.einsum("ij,kj->ik", x, x), jnp.fft.fft(x)]
    for i in range(3):
        x = x * 1.1 + i
    return outs, [str(out.sharding.spec) for out in outs[:3]], x, float(x.sum()), [float(v) for v in x[0]]


@program
def parts(jax, jnp):
    _, mesh, on = make_mesh(jax)
    found = []
    for spec in ((), ("x",), (None, "y"), ("y", "x"), (("x", "y"),)):
        sharding = on(*spec)
        x = jax.device_put(X, sharding)
        found += [(shard.device.id, tuple(s.indices(16)[:2] for s in shard.index), shard.replica_id)
                  for shard in x.addressable_shards]
        found += [shard.data for shard in x.addressable_shards] + [x.addressable_data(3)]
        found += [x.is_fully_addressable, x.is_fully_replicated, len(x.global_shards), len(x.devices())]
        found += [repr(sharding), str(sharding.spec), tuple(sharding.shard_shape(X.shape)), sharding.num_devices,
                  len(sharding.addressable_devices), len(sharding.device_set), sharding.is_fully_addressable,
                  [tuple(s.indices(16)[:2] for s in index) for index in sharding.devices_indices_map(X.shape).values()],
                  sharding.is_equivalent_to(on("x"), 2), sharding == on("x"), x.sharding == sharding]
    return found, repr(mesh), str(mesh), dict(mesh.shape), mesh.size, tuple(mesh.axis_names), mesh.device_ids


@program
def arrays_of_parts(jax, jnp):
    _, _, on = make_mesh(jax)
    sharding = on("x", "y")
    pieces = [
        jax.device_put(X[index], device)
        for device, index in sharding.addressable_devices_indices_map(X.shape).items()
    ]
    made = [jax.make_array_from_callback(X.shape, sharding, lambda index: X[index]),
            jax.make_array_from_single_device_arrays(X.shape, sharding, pieces),
            jax.make_array_from_process_local_data(sharding, X), jax.make_array_from_process_local_data(on(), X, X.shape),
            jnp.zeros((8, 8), device=sharding), jnp.full((8, 8), 2.0, device=sharding), jnp.asarray(X, device=sharding),
            *jax.device_put((X, W), (on("x"), on("y")))]
    return made, [str(array.sharding.spec) for array in made]


@program
def what_nobody_placed(jax, jnp):
    """Results of programs on one device meet arrays on eight."""
    _, _, on = make_mesh(jax)
    p = jax.jit(lambda key: jax.random.normal(key, (8, 8)))(jax.random.PRNGKey(0))
    x = jax.device_put(X, on("x"))
    return (
        x @ p,
        jax.jit(lambda p, x: x @ p + p[0])(p, x),
        jnp.dot(x, jnp.ones((8, 8))) + p[0],
        jax.jit(lambda x: x @ p)(x),
    )


@program
def keys(jax, jnp):
    """Arrays of keys in parts: put, made of parts, drawn from, computed, moved."""
    P, mesh, on = make_mesh(jax)
    whole = jax.random.split(jax.random.key(0), 8)
    parts = jax.device_put(whole, on("x"))
    made = [parts, jax.make_array_from_callback((8,), on("y"), lambda index: whole[index]),
            jax.make_array_from_single_device_arrays((8,), on("x"), [shard.data for shard in parts.addressable_shards]),
            jax.jit(jax.vmap(jax.random.split))(parts), jax.jit(lambda keys: keys[::-1], out_shardings=on("y"))(parts)]
    draw = jax.vmap(lambda key: jax.random.bits(key, (3,)))
    return ([jax.random.key_data(array) for array in made], [str(array.dtype) for array in made], draw(parts),
            jax.jit(draw)(parts),
            jax.shard_map(draw, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts))


@program
def training(jax, jnp):
    _, _, on = make_mesh(jax)
    params = {"w1": jnp.array(W), "b1": jnp.zeros(8), "w2": jnp.array(W[:, :1]), "b2": jnp.zeros(1)}

    def loss(p, x, y):
        return jnp.mean((jax.nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"] - y) ** 2)

    @jax.jit
    def step(p, x, y):
        value, slope = jax.value_and_grad(loss)(p, x, y)
        return jax.tree_util.tree_map(lambda a, b: a - 0.05 * b, p, slope), value

    params = jax.device_put(params, on())
    x, y = (jax.device_put(value, on("x")) for value in (X, X[:, :1] * 2))
    for _ in range(4):
        params, value = step(params, x, y)
    return params, value


@program
def products(jax, jnp):
    _, _, on = make_mesh(jax)

    @jax.jit
    def f(x, a, b):
        h = jax.lax.with_sharding_constraint(jax.nn.gelu(x @ a), on("x", "y"))
        return jax.lax.with_sharding_constraint(h @ b, on("x", None))

    x, a, b = jax.device_put((X, W, W), (on("x"), on(None, "y"), on("y", None)))
    return f(x, a, b), jax.jit(jax.grad(lambda a, b: f(x, a, b).sum(), (0, 1)))(a, b)
