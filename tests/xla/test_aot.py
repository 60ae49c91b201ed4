"""Programs for TPUs that are not there: as StableHLO, compiled, and the forms that functions have on them."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import jitcore
from jitcore import ShapeDtypeStruct, dtypes, jit, lax, numpy as jnp
from jitcore.core.interpret import run_jaxpr_numpy
from jitcore.core.jaxpr import ShapedArray
from jitcore.core.primitive import registry
from jitcore.errors import BackendNotFoundError
from jitcore.lax import integrals
from tests.transforms.batching_cases import CASES

jax = pytest.importorskip("jax")

has_libtpu = importlib.util.find_spec("libtpu") is not None
needs_libtpu = pytest.mark.skipif(
    not has_libtpu, reason='libtpu is not installed: pip install "jitcore[tpu]"'
)
no_tpu = pytest.mark.skipif(
    any(device.platform == "tpu" for device in jax.devices()), reason="this machine has a TPU")

TARGETS = ("tpu:v5e", "tpu:v6e")


def f32(*shape):
    return ShapeDtypeStruct(shape, np.float32)


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


# -- text, and targets that are here ---------------------------------------------------------------------------
def test_stablehlo_of_a_lowered_function():
    lowered = jit(selu).lower(f32(8, 128))
    text = lowered.as_text("stablehlo")
    assert "stablehlo.exponential" in text and "tensor<8x128xf32>" in text
    assert lowered.as_text() == lowered.as_text("jaxpr") != text
    with pytest.raises(ValueError, match="'jaxpr' or 'stablehlo'"):
        lowered.as_text("hlo")


@pytest.mark.parametrize("target", ["cpu", "reference", "xla"])
def test_another_backend_as_the_target(target):
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
    compiled = jit(selu).lower(x).compile(target=target)
    np.testing.assert_allclose(np.asarray(compiled(x)), np.asarray(jit(selu)(x)), rtol=2e-6)
    assert compiled.memory_analysis().argument_size_in_bytes == x.nbytes


def test_memory_of_a_program_of_xla():
    memory = jit(lambda x: (x @ x).sum(0), backend="xla").lower(f32(64, 64)).compile().memory_analysis()
    assert memory.temp_size_in_bytes >= 0 and memory.output_size_in_bytes == 256


@no_tpu
def test_the_absence_of_a_tpu_names_the_way_out():
    function = jit(selu, backend="tpu")
    for use in (lambda: function(np.ones(3, np.float32)), lambda: function.lower(f32(3)).compile(),
                lambda: jitcore.devices("tpu"), lambda: jit(selu).lower(f32(3)).compile(target="tpu")):
        with pytest.raises(BackendNotFoundError, match=r'compile\(target="tpu:v5e"\)'):
            use()


@pytest.mark.parametrize("target", ["tpu:v9", "tpu:v5e:2y2", "tpu:5", "cpu:v5e", "reference:x"])
def test_unknown_targets(target):
    with pytest.raises(ValueError, match="unknown target"):
        jit(selu).lower(f32(3)).compile(target=target)


@pytest.mark.skipif(has_libtpu, reason="libtpu is installed")
def test_without_libtpu_the_error_says_what_to_install():
    with pytest.raises(ImportError, match=r'pip install "jitcore\[tpu\]"'):
        jit(selu).lower(f32(3)).compile(target="tpu:v5e")


# -- what a TPU does not do ------------------------------------------------------------------------------------
def lower_for_tpu(function, *arguments):
    from jitcore.export import export

    return export(jit(function), platforms=["tpu"])(*arguments)


def widen(x):
    return x.astype(np.float64).sum()


def test_double_precision_is_refused_by_name():
    with pytest.raises(TypeError, match=r"float64: argument 'weights' is float64\[3\]"):
        lower_for_tpu(lambda x, weights: x @ weights, np.ones(3, np.float32), np.ones(3))
    with pytest.raises(TypeError, match="complex128: argument"):
        lower_for_tpu(lambda x: x * 2, np.ones(3, np.complex128))
    with pytest.raises(TypeError, match="float64: a captured array"):
        captured = np.ones(3)
        lower_for_tpu(lambda x: (x * captured).astype(np.float32), np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"(?s)gives float64\[3\].*test_aot.py.*astype\(np.float64\)"):
        lower_for_tpu(widen, np.ones(3, np.float32))


def test_long_integers_are_accepted():
    assert "xi64>" in lower_for_tpu(lambda x: x * 2 + 1, np.ones(3, np.int64)).mlir_module()


@needs_libtpu
@pytest.mark.parametrize("function", [lambda x: jnp.linalg.eig(x)[0],
                                      lambda x: jitcore.pure_callback(lambda v: v, x, x)])
def test_what_runs_on_the_host_is_refused_by_name(function):
    with pytest.raises(NotImplementedError, match=r"(eig|pure_callback) runs on the host.*test_aot.py:\d+"):
        jit(function).lower(f32(3, 3)).compile(target="tpu:v5e")


# -- the forms of functions on TPUs, run by XLA's client for CPUs ----------------------------------------------
def run_tpu_form(function, *values):
    """The program for a TPU, in a module that says that it is for CPUs."""
    from jitcore.backends.xla.bridge import make_function

    lowered = jit(function, backend="tpu").lower(*values)
    return jax.jit(make_function(lowered._program.compiled_jaxpr, "tpu", ("cpu",)))(*values)


@pytest.mark.parametrize("name", [name for name in sorted(CASES) if registry[name].traits.get("family") == "elementwise"
                                  and "f" in registry[name].traits.get("accepts", "")
                                  and name not in integrals.__all__])  # which run on the host
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_functions_in_single_precision(name):
    case, rng = CASES[name][0], np.random.default_rng(1)
    values = [operand.draw(rng, 1, None) for operand in case.operands]
    (got,) = run_tpu_form(case.function, *values)
    wanted = np.asarray(jit(case.function, backend="reference")(*values))
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=3e-5, atol=3e-6)
    assert "f64" not in jit(case.function, backend="tpu").lower(*values).as_text("stablehlo")


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_folds(name, reverse):
    x = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    for axis in (0, 1):
        function = getattr(lax, name)
        (got,) = run_tpu_form(lambda x, a=axis: function(x, a, reverse), x)
        np.testing.assert_allclose(
            np.asarray(got), np.asarray(function(x, axis, reverse)), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (6, 6), (2, 4, 3), (3, 3, 3)])
def test_qr_by_reflections_is_lapacks(dtype, shape):
    from jitcore.lax import linalg
    from jitcore.lax.linalg.qr_reflections import expand_qr

    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    x = (x if dtype == "complex64" else x.real).astype(dtype)
    for full in (False, True):
        expansion = expand_qr([ShapedArray(shape, np.dtype(dtype))], {"pivoting": True, "full_matrices": full})
        got = run_jaxpr_numpy(expansion, [x])
        wanted = linalg.qr(x, pivoting=True, full_matrices=full)
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=5e-6)


# -- compiled --------------------------------------------------------------------------------------------------
def train(w, x, y):
    loss = lambda w: ((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2).mean()  # noqa: E731
    return [p - 0.1 * g for p, g in zip(w, jitcore.grad(loss)(w), strict=True)]


def iterate(x):
    return lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, lax.erf(c[1]) + 1), (0, x))[1]


PROGRAMS = {
    "selu": (selu, f32(8, 128)),
    "softmax": (lambda x: jitcore.nn.softmax(x, axis=1), f32(64, 100)),
    "product": (lambda x, y: x @ y, f32(128, 64), f32(64, 256)),
    "training": (train, [f32(16, 32), f32(32, 4)], f32(8, 16), f32(8, 4)),
    "while": (iterate, f32(100)),
    "scan": (lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(8), x), f32(20, 8)),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x), lax.top_k(x, 5)), f32(1000)),
    "scatter": (lambda x, i: x.at[i].add(1.0), f32(100), ShapeDtypeStruct((30,), np.int32)),
    "linear algebra": (lambda x: (jnp.linalg.svd(x), jnp.linalg.eigh(x @ x.T), lax.linalg.qr(x, pivoting=True),
                                  jnp.linalg.solve(x, x[0])), f32(12, 12)),
    "fft": (lambda x: abs(jnp.fft.fft(x)) ** 2, f32(4, 64)),
    "special functions": (lambda x: (lax.lgamma(x), lax.erf_inv(x), jitcore.grad(lambda a: lax.igamma(a, 2.0))(x[0])), f32(64)),
    "random numbers": (lambda key: jitcore.random.normal(key, (1000,)), ShapeDtypeStruct((2,), np.uint32)),
    "running folds": (lambda x: (jnp.cumsum(x), lax.cumlogsumexp(x)), f32(1000)),
    "half precision": (lambda x: jnp.exp(x).sum(), ShapeDtypeStruct((1000,), dtypes.bfloat16)),
    "complex": (lambda x: (jnp.exp(x), jnp.sqrt(x), abs(x)), ShapeDtypeStruct((100,), np.complex64)),
    "long integers": (lambda x: (x * 3 + 1).sum(), ShapeDtypeStruct((100,), np.int64)),
}


@needs_libtpu
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
def test_programs_compile(name, target):
    function, *arguments = PROGRAMS[name]
    compiled = jit(function).lower(*arguments).compile(target=target)
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["bytes accessed"] > 0
    memory = compiled.memory_analysis()
    assert memory.generated_code_size_in_bytes > 0
    assert (
        memory.argument_size_in_bytes > 0
        and memory.output_size_in_bytes > 0
        and memory.temp_size_in_bytes >= 0
    )


@needs_libtpu
def test_half_precision_and_special_functions_of_all_widths():
    for name in ("erf", "lgamma", "polygamma", "acosh", "log2"):
        primitive = registry[name]
        operands = [[ShapeDtypeStruct((100,), kind)] * primitive.traits["arity"]
                    for kind in (dtypes.float16, dtypes.bfloat16, dtypes.float32)]
        jit(lambda groups, p=primitive: [p.bind(*group) for group in groups]).lower(operands).compile(
            target="tpu:v5e"
        )


@needs_libtpu
@no_tpu
def test_what_is_compiled_ahead_is_not_called():
    compiled = jit(selu, backend="tpu").lower(f32(8)).compile(target="tpu:v5e:2x2")
    with pytest.raises(RuntimeError, match="compiled for tpu:v5e:2x2 ahead of time.*does not run here"):
        compiled(np.ones(8, np.float32))


@needs_libtpu
@pytest.mark.parametrize("target", ["tpu:v5p", "tpu:v4", "tpu:v5e:2x4", "tpu:v6e:1x2", "tpu:v5p:2x2x2"])
def test_generations_and_topologies(target):
    assert jit(selu).lower(f32(8)).compile(target=target).cost_analysis()["flops"] > 0


@needs_libtpu
def test_a_topology_that_is_none():
    with pytest.raises(ValueError, match="there is no TPU topology 'v5e:3x5'"):
        jit(selu).lower(f32(8)).compile(target="tpu:v5e:3x5")


@needs_libtpu
def test_the_process_is_left_as_it_was():
    """Variables, devices and the default device of JAX; another process may compile at the same time."""
    code = """if True:
        import os
        import numpy as np
        from jitcore import jit
        before = dict(os.environ)
        jit(lambda x: x + 1).lower(np.ones(3, np.float32)).compile(target="tpu:v5e")
        assert dict(os.environ) == before
        import jax
        assert {device.platform for device in jax.devices()} == {"cpu"}
        assert jax.numpy.ones(3).device.platform == "cpu"
        print(input())
    """
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    processes = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], env=environment, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate("done\n")[0] for process in processes] == ["done\n"] * 2
