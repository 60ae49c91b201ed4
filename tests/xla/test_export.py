"""Programs as artifacts: what this writes runs in a process with JAX alone, and what JAX writes runs here."""

import os
import subprocess
import sys

import numpy as np
import pytest

import jitcore
from jitcore import ShapeDtypeStruct, jit, lax, numpy as jnp

jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers", reason='JAX writes artifacts by flatbuffers: pip install "jitcore[xla]"')

from jitcore.export import Exported, deserialize, export  # noqa: E402

X = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
PARAMS = {"w": np.arange(12, dtype=np.float32).reshape(3, 4) / 10, "b": np.ones(4, np.float32)}


def model(params, x, *, gain=2.0):
    y = jnp.tanh(x @ params["w"] + params["b"]) * gain
    return {"y": y, "rest": (lax.erf(y).sum(0), lax.scan(lambda c, v: (c + v, c * v), y[0], y)[1])}


def assert_alike(got, wanted):
    got, wanted = jitcore.tree.leaves(got), jitcore.tree.leaves(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("platforms", [None, ["cpu", "tpu"]])
def test_there_and_back(platforms):
    exported = export(jit(model), platforms=platforms)(PARAMS, X, gain=np.float32(3))
    assert exported.fun_name == "model" and exported.platforms == tuple(platforms or ["cpu"])
    assert [aval.shape for aval in exported.in_avals] == [(4,), (3, 4), (5, 3), ()]
    assert "stablehlo.tanh" in exported.mlir_module()
    loaded = deserialize(exported.serialize())
    assert isinstance(loaded, Exported) and loaded.in_avals == exported.in_avals
    wanted = jit(model)(PARAMS, X, gain=3.0)
    for one in (exported, loaded):
        assert_alike(one.call(PARAMS, X, gain=3.0), wanted)


def test_types_alone_are_enough_and_static_arguments_are_fixed():
    power = jit(lambda x, n: x**n, static_argnums=1)
    exported = export(power)(ShapeDtypeStruct((3,), np.float32), 3)
    np.testing.assert_array_equal(exported.call(np.arange(3, dtype=np.float32)), [0, 1, 8])


def test_captured_arrays_unused_arguments_and_double_precision():
    table = np.linspace(0, 1, 3)
    exported = export(jit(lambda x, unused: (x + table, x.astype(np.int64))))(np.ones(3), np.ones(7))
    sums, counts = deserialize(exported.serialize()).call(np.ones(3), np.ones(7))
    assert sums.dtype == np.float64 and counts.dtype == np.int64
    np.testing.assert_array_equal(sums, 1 + table)


@pytest.mark.parametrize("backend", ["cpu", "reference", "xla"])
def test_calls_within_programs(backend):
    loaded = deserialize(export(jit(model))(PARAMS, X, gain=np.float32(3)).serialize())

    def twice(x):
        inner = lambda i, x: x + loaded.call(PARAMS, x, gain=3.0)["y"][:, :3]  # noqa: E731
        return lax.fori_loop(0, 2, inner, x) * 2

    wanted = X
    for _ in range(2):
        wanted = wanted + np.asarray(model(PARAMS, wanted, gain=3.0)["y"])[:, :3]
    np.testing.assert_allclose(np.asarray(jit(twice, backend=backend)(X)), wanted * 2, rtol=1e-5)


def test_vmap_calls_it_for_each():
    loaded = deserialize(export(jit(lambda x: x.sum() * x))(X[0]).serialize())
    np.testing.assert_allclose(jitcore.vmap(loaded.call)(X), X.sum(1, keepdims=True) * X, rtol=1e-6)


def test_a_process_with_jax_alone_runs_it(tmp_path):
    artifact, inputs, outputs = (tmp_path / name for name in ("program", "in.npz", "out.npy"))
    artifact.write_bytes(export(jit(model), platforms=["cpu", "tpu"])(PARAMS, X).serialize())
    np.savez(inputs, x=X, **PARAMS)
    code = f"""if True:
        import sys
        import numpy as np
        from jax import export
        program, data = export.deserialize(bytearray(open({str(artifact)!r}, "rb").read())), np.load({str(inputs)!r})
        y = program.call({{"w": data["w"], "b": data["b"]}}, data["x"])["y"]
        np.save({str(outputs)!r}, y)
        assert not any(name.startswith("jitcore") for name in sys.modules)
    """
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, cwd=tmp_path, check=True)
    np.testing.assert_allclose(np.load(outputs), np.asarray(model(PARAMS, X)["y"]), rtol=2e-6)


# -- what JAX wrote ----------------------------------------------------------------------------------------------
def export_by_jax(function, *arguments):
    return deserialize(jax.export.export(jax.jit(function))(*arguments).serialize())


def test_what_jax_exported_is_called():
    struct = jax.ShapeDtypeStruct
    loaded = export_by_jax(
        lambda x, n: {"sine": jax.numpy.sin(x) * n}, struct((3,), "float32"), struct((), "int32")
    )
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(loaded.call(x, 2)["sine"], np.sin(x) * 2, rtol=1e-6)
    np.testing.assert_allclose(jit(lambda x: loaded.call(x, 2)["sine"] + 1)(x), np.sin(x) * 2 + 1, rtol=1e-6)


def test_sizes_that_are_symbols():
    (n,) = jax.export.symbolic_shape("n")
    loaded = export_by_jax(lambda x: x - x.mean(), jax.ShapeDtypeStruct((n,), "float32"))
    for size in (3, 5):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_allclose(loaded.call(x), x - x.mean(), rtol=1e-6)
        np.testing.assert_allclose(
            jit(lambda x: loaded.call(x) * 2, backend="xla")(x), 2 * (x - x.mean()), rtol=1e-6
        )


# -- programs of symbolic shapes, and derivatives -----------------------------------------------------------------
def layers(w, x):
    h = jitcore.nn.softmax(jnp.tanh(x @ w + 1.0))
    sums, products = lax.scan(lambda c, v: (c + v, c * v), h[0], h)
    walk = lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jnp.zeros(3))
    return (jnp.concatenate([h, h[:1] * 2]).reshape(-1), sums, products, walk, jnp.sort(x, 0), jnp.cumsum(x, 0),
            jnp.arange(x.shape[0]), jnp.pad(x, 1), jnp.argmax(x), x.var(), x[:, [0, 1]], x.at[0].set(1.0),
            jnp.where(x > 0, x, 0).mean(0), jnp.round(x), x[1:], jnp.clip(x, -1, 1), x.at[:, 1].add(2.0), x)


@pytest.mark.parametrize("platforms", [["cpu"], ["cpu", "tpu"]])
def test_symbolic_shapes_are_written(platforms):
    (b,) = jitcore.export.symbolic_shape("b", constraints=["b >= 2"])
    w = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    structs = ShapeDtypeStruct((3, 4), np.float32), ShapeDtypeStruct((b, 3), np.float32)
    exported = export(jit(layers), platforms=platforms)(*structs)
    blob = exported.serialize()
    assert "stablehlo.dynamic" in exported.mlir_module()
    for loaded in (deserialize(blob), jax.export.deserialize(blob)):
        for size in (2, 5):
            assert_alike(jax.tree.leaves(loaded.call(w, X[:size])), jit(layers)(w, X[:size]))


def loss(w, x):
    return (jnp.tanh(x @ w) ** 2).mean()


@pytest.mark.parametrize("extent", ["b", "5"])
def test_derivatives_are_written_too(extent):
    w = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    shape = jitcore.export.symbolic_shape(f"{extent}, 3")
    exported = export(jit(loss))(ShapeDtypeStruct((3, 4), np.float32), ShapeDtypeStruct(shape, np.float32))
    blob, wanted = exported.serialize(vjp_order=2), jitcore.grad(loss, (0, 1))(w, X)
    loaded = deserialize(blob)
    for one, grad in ((exported, jitcore.grad), (loaded, jitcore.grad), (jax.export.deserialize(blob), jax.grad)):
        assert one.has_vjp()
        for got in (one.vjp().call(w, X, np.float32(1)), grad(one.call, (0, 1))(w, X)):
            assert_alike(jax.tree.leaves(got), wanted)
    twice = [jitcore.grad(lambda w: jitcore.grad(one)(w, X).sum())(w) for one in (loaded.call, loss)]  # noqa: B023
    np.testing.assert_allclose(*twice, rtol=1e-4, atol=1e-6)
    assert not deserialize(exported.serialize()).has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        loaded.vjp().vjp().vjp()
    with pytest.raises(ValueError, match="high-enough order"):
        loaded.serialize(vjp_order=3)


def test_derivatives_beside_integers():
    n, ones = np.arange(3, dtype=np.int32), np.ones(3, np.float32)
    there = jax.export.export(jax.jit(lambda x, n: (x * n, n + 1)))
    loaded = deserialize(there(jax.ShapeDtypeStruct((3,), "float32"), jax.ShapeDtypeStruct((3,), "int32")).serialize(1))
    np.testing.assert_array_equal(jitcore.grad(lambda x: loaded.call(x, n)[0].sum())(ones), n)
    zeros = np.zeros(3, jitcore.dtypes.float0)
    by_x, by_n = loaded.vjp().call(ones, n, ones, zeros)
    np.testing.assert_array_equal(by_x, n)
    assert by_n.dtype == zeros.dtype
    own = export(jit(lambda x, n: x * n))(ones, n)
    assert not own.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        own.serialize(vjp_order=1)


# -- refusals ----------------------------------------------------------------------------------------------------
def test_bytes_that_are_no_program():
    blob = bytes(export(jit(lambda x: x * 2))(X).serialize())
    for wrong in (b"", b"hello" * 20, blob[:99], blob[::-1]):
        with pytest.raises(ValueError, match="are no program that JAX"):
            deserialize(wrong)


def test_versions_are_checked(monkeypatch):
    blob = export(jit(lambda x: x * 2))(X).serialize()
    monkeypatch.setattr(jax.export, "maximum_supported_calling_convention_version", 1)
    with pytest.raises(ValueError, match="calling convention, and JAX .* knows"):
        deserialize(blob)


def test_other_arguments_and_platforms_are_refused():
    exported = export(jit(lambda x: x * 2))(X)
    with pytest.raises(ValueError, match="structure"):
        exported.call(X, X)
    with pytest.raises(ValueError, match="mismatch"):
        exported.call(X.astype(np.int32))
    with pytest.raises(ValueError, match="mismatch"):
        jit(exported.call)(X[:2])
    for_tpu = export(jit(lambda x: x * 2), platforms=["tpu"])(X)
    for backend in ("cpu", "xla"):
        with pytest.raises(ValueError, match="exported for platforms"):
            jit(for_tpu.call, backend=backend)(X)


def test_what_cannot_be_exported():
    with pytest.raises(ValueError, match="jitcore.jit"):
        export(lambda x: x)
    with pytest.raises(ValueError, match="platforms must be among"):
        export(jit(lambda x: x), platforms=["toaster"])
    with pytest.raises(NotImplementedError, match="calls Python"):
        export(jit(lambda x: jitcore.pure_callback(lambda v: v, x, x)))(X)
