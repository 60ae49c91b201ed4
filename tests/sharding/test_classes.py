"""Meshes, specs and shardings, of devices that nobody has; and what one device of the CPU backend does with them."""

import pickle

import numpy as np
import pytest

import jitcore
from jitcore import jit, lax, shard_map
from jitcore.sharding import (AxisType, Device, Mesh, NamedSharding, P, PositionalSharding,
                              SingleDeviceSharding)

DEVICES = np.array([Device("cpu", i, backend="nowhere") for i in range(8)])
GRID = Mesh(DEVICES.reshape(4, 2), ("x", "y"))


def test_texts():
    assert (
        repr(P()) == "P()"
        and repr(P("x")) == "P('x',)"
        and repr(P(None, ("x", "y"))) == "P(None, ('x', 'y'))"
    )
    assert repr(P(("x",), ())) == "P('x', None)"
    assert repr(GRID) == "Mesh(axis_sizes=(4, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))"
    assert str(Mesh(DEVICES, "x", AxisType.Explicit)) == "Mesh('x': 8, axis_types=(Explicit,))"
    text = (
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('y',), memory_kind=device)"
    )
    assert repr(NamedSharding(GRID, P("y"))) == text
    assert (
        repr(SingleDeviceSharding(DEVICES[3]))
        == "SingleDeviceSharding(device=CpuDevice(id=3), memory_kind=device)"
    )


def test_specs_are_sequences():
    spec = P("x", None, ("x", "y"))
    assert list(spec) == ["x", None, ("x", "y")] and len(spec) == 3 and spec[1:] == (None, ("x", "y"))
    assert P("x") + P(None) == P("x", None) == ("x", None) and hash(P("x")) == hash(P(("x",)))
    assert spec.index("x") == 0 and spec.count(None) == 1 and P("x") != P("x", None)


def test_values_compare_hash_and_pickle():
    for make in (lambda: Mesh(DEVICES.reshape(4, 2), ("x", "y")), lambda: P("x", P.UNCONSTRAINED),
                 lambda: NamedSharding(GRID, P("x")), lambda: PositionalSharding(DEVICES).reshape(2, 4).replicate(0),
                 lambda: SingleDeviceSharding(DEVICES[0])):
        assert make() == make() == pickle.loads(pickle.dumps(make())) and hash(make()) == hash(make())
    assert Mesh(DEVICES, "x") != Mesh(DEVICES[::-1], "x") != Mesh(DEVICES[::-1], "y")


@pytest.mark.parametrize("spec, part, replicas", [
    ((), (16, 8), 8), (("x",), (4, 8), 2), (("x", "y"), (4, 4), 1), (("y", "x"), (8, 2), 1),
    ((("x", "y"),), (2, 8), 1), ((("y", "x"), None), (2, 8), 1), ((None, "y"), (16, 4), 4)])
def test_parts(spec, part, replicas):
    sharding = NamedSharding(GRID, P(*spec))
    assert sharding.shard_shape((16, 8)) == part and sharding.is_fully_replicated == (replicas == 8)
    counts = np.zeros((16, 8), int)
    for index in sharding.devices_indices_map((16, 8)).values():
        assert counts[index].shape == part
        counts[index] += 1
    assert (counts == replicas).all()
    assert sharding.is_equivalent_to(NamedSharding(GRID, P(*spec, *[None] * (2 - len(spec)))), 2)
    assert sharding.is_equivalent_to(NamedSharding(GRID, P("y", "x")), 2) == (spec == ("y", "x"))
    assert sharding.num_devices == len(sharding.device_set) == len(sharding.addressable_devices) == 8


def test_the_order_of_names_is_that_of_parts():
    first = {
        names: NamedSharding(GRID, P(names)).devices_indices_map((8,))[DEVICES[1]]
        for names in (("x", "y"), ("y", "x"))
    }
    assert first == {("x", "y"): (slice(1, 2),), ("y", "x"): (slice(4, 5),)}


@pytest.mark.parametrize("make, kind, text", [
    (lambda: Mesh(DEVICES, ("x", "y")), ValueError, "ndim"),
    (lambda: Mesh(DEVICES.reshape(4, 2), ("x", "x")), ValueError, "different"),
    (lambda: Mesh(np.array([1, 2]), "x"), TypeError, "takes devices"),
    (lambda: Mesh(DEVICES[[0, 0]], "x"), ValueError, "each device once"),
    (lambda: NamedSharding(GRID, P("z")), ValueError, "Resource axis: z of P('z',) is not found in mesh: ('x', 'y')."),
    (lambda: NamedSharding(GRID, P("x", "x")), ValueError, "duplicate entries for `x`"),
    (lambda: NamedSharding(GRID, "x"), TypeError, "PartitionSpec"),
    (lambda: NamedSharding(GRID, P("x")).shard_shape((6,)), ValueError, "partitioned 4 times, but the dimension size is 6"),
    (lambda: NamedSharding(GRID, P("x", None)).shard_shape((8,)), ValueError, "rank at least 2"),
    (lambda: jitcore.make_mesh((2, 4), ("x", "y"), devices=DEVICES[:6]), ValueError, "Number of devices 6"),
    (lambda: jitcore.make_mesh((2, 4), ("x",)), ValueError, "equal"),
    (lambda: jitcore.set_mesh("x"), ValueError, "takes a Mesh"),
    (lambda: NamedSharding(GRID, P()).with_memory_kind("pinned_host"), ValueError, "memory kind"),
])
def test_errors(make, kind, text):
    with pytest.raises(kind) as caught:
        make()
    assert text in str(caught.value)


def test_the_current_mesh():
    assert jitcore.sharding.get_mesh() is None
    with GRID:
        assert jitcore.sharding.get_mesh() == GRID
        with jitcore.set_mesh(Mesh(DEVICES, "z")) as inner:
            assert jitcore.sharding.get_mesh() is inner
        assert jitcore.sharding.get_mesh() == GRID
    assert jitcore.sharding.get_mesh() is None
    jitcore.set_mesh(GRID)
    assert jitcore.sharding.get_mesh() is GRID
    jitcore.set_mesh(None)
    assert jitcore.sharding.get_mesh() is None


# -- one device of the CPU backend ------------------------------------------------------------------------------
def test_one_device_takes_shardings_of_one():
    mesh = Mesh(np.array([jitcore.devices("cpu")]), ("x", "y"))
    x, sharding = np.arange(6, dtype=np.float32).reshape(2, 3), NamedSharding(mesh, P("x"))
    assert (jitcore.device_put(x, sharding) == x).all()
    assert (jit(lambda x: x + 1, in_shardings=sharding, out_shardings=sharding)(x) == x + 1).all()
    assert (jit(lambda x: lax.with_sharding_constraint(x, sharding) * 2)(x) == x * 2).all()
    assert (jitcore.make_array_from_callback((2, 3), sharding, lambda index: x[index]) == x).all()
    (shard,) = jitcore.numpy.asarray(x).addressable_shards
    assert (shard.data == x).all() and shard.replica_id == 0 and shard.device == jitcore.devices("cpu")[0]

    def body(x):
        return (lax.psum(x, "x"), lax.pmean(x, ("x", "y")), lax.all_gather(x, "x"), lax.all_gather(x, "y", tiled=True),
                lax.ppermute(x, "x", [(0, 0)]), lax.ppermute(x, "x", []), lax.axis_index(("x", "y")),
                lax.all_to_all(x, "x", 0, 1, tiled=True), lax.psum_scatter(x, "x", tiled=True))

    run = shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())
    for outs in (run(x), jit(run)(x)):
        for out, expected in zip(outs, (x, x, x[None], x, x, 0 * x, np.int32(0), x, x), strict=True):
            np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(jitcore.grad(lambda x: (run(x)[0] ** 2).sum())(x), 2 * x)


@pytest.mark.cpu
def test_several_devices_of_the_cpu_backend():
    mesh = Mesh(np.array([Device("cpu", i) for i in range(8)]), ("x",))
    sharding = NamedSharding(mesh, P("x"))
    x = np.ones(8, np.float32)
    for run in (
        lambda: jitcore.device_put(x, sharding),
        lambda: jit(lambda x: x, in_shardings=sharding)(x),
        lambda: jit(lambda x: lax.with_sharding_constraint(x, sharding))(x),
        lambda: shard_map(lambda x: x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x),
        lambda: jitcore.make_array_from_callback((8,), sharding, lambda index: x[index]),
    ):
        with pytest.raises(ValueError, match=r"backend='xla'"):
            run()
    with pytest.raises(ValueError, match=r"devices\('xla'\)"):
        jitcore.make_mesh((8,), ("x",), devices=None)
