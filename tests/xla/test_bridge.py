"""The XLA bridge: where programs run and arrays lie, types, donation, errors, what stands for one primitive."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import jit, lax
from jitcore.array import ConcreteArray, DeviceArray
from jitcore.core.primitive import registry
from jitcore.lax import integrals

pytest.importorskip("jax")


def run(function, *args, **options):
    return jit(function, backend="xla", **options)(*args)


def put(value):
    return jitcore.device_put(value, jitcore.devices("xla")[0])


# -- where programs run -------------------------------------------------------------------------------------
def test_results_stay_on_the_device_and_later_calls_follow_them():
    first = run(lambda x: 2 * x + 1, np.arange(3, dtype=np.float32))
    assert isinstance(first, DeviceArray) and isinstance(first, jitcore.Array)
    assert first.devices() == {jitcore.devices("xla")[0]} and first.device.backend == "xla"
    assert isinstance(first.sharding, jitcore.SingleDeviceSharding)
    for second in (
        jit(jnp.sum)(first),
        jit(lambda a, b: a + b)(first, 1.0),
        jit(lambda a, b: a * b)(np.ones(3, "f"), first),
    ):
        assert isinstance(second, DeviceArray) and second.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(jit(lambda x: x - 1)(first)), [0, 2, 4])


@pytest.mark.parametrize("apply", [
    lambda x: x + 1, lambda x: 1 - x, lambda x: -x, lambda x: x[1], lambda x: x[::-1], lambda x: x.at[0].set(5.0),
    lambda x: jnp.where(x > 0, x, 0), lambda x: jnp.concatenate([x, x]), lambda x: x @ x, lambda x: x.astype(int),
    lambda x: x.reshape(3, 1), lambda x: next(iter(x)), lambda x: jitcore.grad(lambda v: (v * v).sum())(x),
    lambda x: jitcore.vmap(jnp.sin)(x), lambda x: jnp.full((2,), x[0]), lambda x: lax.cumsum(x),
])
def test_eager_operations_run_where_their_operands_lie(apply):
    value = np.array([1.0, -2.0, 3.0], np.float32)
    found, expected = apply(put(value)), apply(jnp.asarray(value))
    assert isinstance(found, DeviceArray)
    assert (found.dtype, found.weak_type) == (expected.dtype, expected.weak_type)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_a_named_backend_comes_before_that_of_the_arguments():
    found = jit(lambda x: x + 1, backend="cpu")(put(np.ones(2, np.float32)))
    assert type(found) is ConcreteArray
    np.testing.assert_array_equal(found, [2, 2])


def test_a_result_of_the_default_device_traces_nothing_anew():
    step = jit(lambda x: x * 0.5, backend="xla")
    x = step(np.ones(3, np.float32))
    for _ in range(5):
        x = step(x)
    assert step.cache_info().traces == 1 and step.cache_info().compiles == 1


def test_host_arrays_are_lent_without_a_copy_and_stay_as_they_are():
    value = jnp.asarray(np.arange(1 << 16, dtype=np.float32))
    doubled = run(lambda x: 2 * x, put(value))
    np.testing.assert_array_equal(np.asarray(doubled), 2 * np.asarray(value))
    assert float(value[3]) == 3.0


def test_results_are_read_where_they_lie():
    found = run(lambda x: x + 1, np.zeros(1000, np.float32))
    assert np.asarray(found).ctypes.data == found.buffer.unsafe_buffer_pointer()


# -- types --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_64_bits_are_exact_whatever_jax_is_told(dtype):
    value = np.array([1, 3, 7]).astype(dtype) / (np.array(3).astype(dtype) if dtype[0] in "fc" else 1)
    value = value.astype(dtype) + (1 << 40)
    for given in (value, put(value)):
        found = run(lambda x: x * x - x, given)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found), value * value - value)


def test_weak_types_survive():
    found = run(lambda x: x * 2, 3.0)
    assert found.weak_type and found.dtype == np.float32
    assert run(lambda x: x * 2, np.float32(3)).weak_type is False


# -- life of arrays -----------------------------------------------------------------------------------------
def test_donated_arrays_raise_when_used():
    x = put(np.ones(4, np.float32))
    y = jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted() and repr(x) == "Array(shape=(4,), dtype=float32) # deleted"
    np.testing.assert_array_equal(np.asarray(y), [2] * 4)
    with pytest.raises(jitcore.errors.DonatedArrayError):
        jit(lambda v: v + 1)(x)


def test_arrays_copy_pickle_and_go_to_the_host():
    import copy
    import pickle

    x = put(np.arange(3, dtype=np.int32))
    for other in (
        copy.copy(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        jitcore.device_put(x, jitcore.devices("cpu")[0]),
    ):
        np.testing.assert_array_equal(np.asarray(other), [0, 1, 2])
    assert isinstance(jitcore.device_get(x), np.ndarray) and x.block_until_ready() is x


# -- Python in programs -------------------------------------------------------------------------------------
def test_callbacks_in_order_in_loops_and_their_errors(capfd):
    seen = []

    def note(i):
        seen.append(int(i))
        if i == 3:
            raise KeyError("three")

    def loop(n):
        return lax.fori_loop(0, n, lambda i, c: (jitcore.debug.callback(note, i), c + i)[1], 0)

    assert int(run(loop, 3)) == 3 and seen == [0, 1, 2]
    with pytest.raises(KeyError, match="three"):
        run(loop, 5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64", "bool"])
def test_python_functions_get_and_give_their_types(dtype):
    value = np.array([1, 0, 2]).astype(dtype)

    def program(x):
        shape = jitcore.ShapeDtypeStruct(x.shape, x.dtype)
        return jitcore.pure_callback(lambda v: np.asarray(v) * np.asarray(v), shape, x)

    found = run(program, value)
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(found), value * value)


def test_an_exception_under_a_traced_condition():
    def root(x):
        if x < 0:
            raise ValueError("negative")
        return jnp.sqrt(x)

    rooted = jit(root, backend="xla", rewrite=True)
    assert float(rooted(4.0)) == 2.0
    with pytest.raises(ValueError, match="negative"):
        rooted(-1.0)


# -- rules --------------------------------------------------------------------------------------------------
#: What JAX or the host runs.
WITHOUT_RULE = {
    "cholesky", "triangular_solve", "lu", "qr", "eigh", "eig", "schur", "svd", "lu_pivots_to_permutation", "top_k",
    "igamma", "igammac", "igamma_grad_a", "regularized_incomplete_beta", "pure_callback", "io_callback",
    "debug_callback", "call_exported", "sharding_constraint", "inspect_sharding", "draw",
    *integrals.__all__,
    "check",  # which `checkify` takes out of a program
}


def test_every_primitive_has_a_rule_or_a_reason():
    from jitcore.backends.xla.lower import is_elementwise

    missing = {name for name, primitive in registry.items()
               if not callable(primitive.hlo) and not is_elementwise(primitive)
               and not {"inline", "expand", "collective", "on_words"} & primitive.traits.keys()}
    assert missing - WITHOUT_RULE == {"custom_lin"}  # which exists in traces only


def test_a_wrong_module_is_told_by_its_operation():
    from jitcore.backends.xla.bridge import check_module

    with pytest.raises(RuntimeError, match="stablehlo.no_such"):
        check_module(
            'module { func.func @main(%x: tensor<f32>) { "stablehlo.no_such"(%x) : (tensor<f32>) -> ()\n func.return } }'
        )


def test_without_jax_the_error_says_what_to_install():
    source = """
import sys
sys.modules["jax"] = None
import jitcore
try:
    jitcore.jit(lambda x: x, backend="xla")(1.0)
except jitcore.errors.BackendNotFoundError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    assert 'pip install "jitcore[xla]"' in told and "cpu" in told


# -- comparison ---------------------------------------------------------------------------------------------
def test_compare_tells_backends_apart():
    def program(x):
        return jnp.exp(x).sum(axis=0), x.astype(jnp.int32)

    found = jitcore.compare(program, np.ones((4, 3), np.float32), backends=("cpu", "reference", "xla"))
    assert [row.backend for row in found.rows] == ["cpu", "reference", "xla"] and found.ulp <= 4
    assert found.rows[0].kernels == 2 and found.rows[2].kernels >= 1
    assert repr(found).splitlines()[1].split("  ")[0] == "backend" and "<table>" in found._repr_html_()
    wrong = jitcore.compare(lambda x: x.no_such, np.ones(2), backends=("cpu",))
    assert "AttributeError" in repr(wrong)


# -- arrays of the caller's --------------------------------------------------------------------------------------
def make_ones(size, is_aligned):
    """At an address that XLA reads where it lies, or at one from which it copies, perhaps later."""
    memory = np.empty(size + 32, np.float32)
    start = -memory.ctypes.data % 64 // 4 + (not is_aligned)
    found = memory[start : start + size]
    found[:] = 1
    return found


@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("size", [3, 5000, 1 << 20])
def test_arrays_may_be_changed_after_a_call(size, is_aligned):
    device = jitcore.devices("xla")[0]
    both = jitcore.jit(lambda x: (x, jnp.sin(x) - jnp.sin(x) + x + 1), backend="xla")
    for function, last in ((lambda x: both(x)[0], 1), (lambda x: both(x)[1], 2),
                           (lambda x: jitcore.device_put(x, device), 1)):
        for _ in range(12):
            x = make_ones(size, is_aligned)
            y = function(x)
            x[:] = 7
            assert np.all(np.asarray(y) == last)
