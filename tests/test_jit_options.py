"""Options of `jit`: donation, unused arguments, backends, compiler options, shardings, inlining, axes."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import jitcore
from jitcore import errors, lax
from jitcore.array import ConcreteArray
from jitcore.dispatch import placement
from jitcore.dispatch.backend import CompileOptions, find_backend, list_backends


def make_array(n: int = 4, value: float = 1.0) -> ConcreteArray:
    return ConcreteArray(np.full(n, value, np.float32))


def to_list(x) -> list:
    return np.asarray(x).tolist()


# -- donation ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"donate_argnums": 0}, {"donate_argnums": (-2,)}, {"donate_argnames": "x"}]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_a_donated_array_is_deleted(options, by_name):
    step = jitcore.jit(lambda x, y: lax.add(x, y), **options)
    for _ in range(3):
        x, y = make_array(), make_array(value=2.0)
        out = step(x=x, y=y) if by_name else step(x, y)
        assert to_list(out) == [3, 3, 3, 3]
        assert x.is_deleted() and not y.is_deleted()
        with pytest.raises(errors.DonatedArrayError, match=r"Array has been deleted with shape=float32\[4\]"):
            x.data  # noqa: B018
        with pytest.raises(errors.DonatedArrayError, match="Array has been deleted"):
            step(x, y)


def test_donation_of_leaves_of_a_container():
    step = jitcore.jit(
        lambda state, y: {"a": lax.add(state["a"], y), "b": lax.neg(state["b"])}, donate_argnums=0
    )
    state, y = {"a": make_array(), "b": make_array(2)}, make_array()
    out = step(state, y)
    assert to_list(out["a"]) == [2, 2, 2, 2]
    assert state["a"].is_deleted() and state["b"].is_deleted() and not y.is_deleted()


@pytest.mark.cpu
def test_donated_memory_is_reused_by_the_default_backend():
    step = jitcore.jit(lambda x: lax.mul(x, 2.0), donate_argnums=0)
    x = make_array(10_000)
    step(x)
    x = make_array(10_000)
    address = x.data.ctypes.data
    out = step(x)
    if find_backend().name != "reference":
        assert np.asarray(out).ctypes.data == address
    assert to_list(out)[:2] == [2, 2]


def test_unusable_donations_warn_and_stay_alive():
    step = jitcore.jit(lambda x: lax.eq(x, x), donate_argnums=0)
    x = make_array()
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[\d\]") as caught:
        step(x)
        step.lower(np.ones(5, np.float32))
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert not x.is_deleted()


def test_unread_donations_stay_alive_silently():
    step = jitcore.jit(lambda x, y: lax.neg(y), donate_argnums=0)
    x = make_array()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(x, make_array())
    assert not x.is_deleted()


def test_one_array_donated_and_passed_twice():
    x = make_array()
    for donated in (0, (0, 1)):
        step = jitcore.jit(lambda x, y: (lax.add(x, y), lax.sub(x, y)), donate_argnums=donated)
        with pytest.raises(
            errors.JitcoreRuntimeError, match="Attempt to use a buffer that was previously donated"
        ):
            step(x, x)
        assert not x.is_deleted()


def test_the_memory_of_others_is_never_overwritten():
    def claim(leaf):
        values = [leaf.data if isinstance(leaf, ConcreteArray) else leaf]
        before = values[0]
        address = before.ctypes.data
        del before
        placement.claim_donated((0,), [leaf], values)
        return values[0].ctypes.data == address

    alone = make_array()
    assert claim(alone)
    ndarray = np.ones(4, np.float32)
    assert not claim(ndarray)
    viewed = make_array()
    view = np.asarray(viewed)
    assert not claim(viewed)
    exported = make_array()
    capsule = exported.__dlpack__()
    assert not claim(exported)
    assert not claim(ConcreteArray(np.ones(8, np.float32)[2:6]))
    del view, capsule


def test_a_view_outlives_the_donated_array():
    step = jitcore.jit(lambda x: lax.mul(x, 2.0), donate_argnums=0)
    x = make_array(1000)
    view = np.asarray(x)
    step(x)
    assert x.is_deleted() and view[0] == view[-1] == 1.0


def test_donating_an_ndarray_leaves_it_unchanged():
    x = np.ones(4, np.float32)
    step = jitcore.jit(lambda x: lax.mul(x, 2.0), donate_argnums=0)
    assert to_list(step(x)) == to_list(step(x)) == [2, 2, 2, 2]
    assert x.tolist() == [1, 1, 1, 1]


# -- unused arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep, inputs", [(False, 1), (True, 3)])
def test_keep_unused(keep, inputs):
    fun = jitcore.jit(lambda x, y, z: lax.neg(y), keep_unused=keep)
    compiled = fun.lower(1.0, 2.0, 3.0)
    assert len(compiled._program.compiled_jaxpr.jaxpr.invars) == inputs
    assert float(fun(1.0, 2.0, 3.0)) == float(fun(1.0, 2.0, 3.0)) == -2.0


def test_which_arguments_are_read_does_not_matter_to_the_caller():
    for choose in (lambda a, b, c: (a, c), lambda a, b, c: (c,), lambda a, b, c: (), lambda a, b, c: (b, a)):
        fun = jitcore.jit(lambda a, b, c: [lax.neg(x) for x in choose(a, b, c)])  # noqa: B023
        for _ in range(2):
            assert list(map(float, fun(1.0, 2.0, 3.0))) == [-x for x in choose(1.0, 2.0, 3.0)]


# -- backends and devices ------------------------------------------------------------------------------------


def test_backends_by_name():
    fun = jitcore.jit(lambda x: lax.mul(x, 3.0), backend="reference")
    assert float(fun(2.0)) == 6.0
    assert set(fun.inspect()) == {"jaxpr", "optimized jaxpr"}
    with jitcore.config.override(default_backend="reference"):
        assert jitcore.devices()[0].backend == "reference"
    assert "reference" in list_backends()[0]


@pytest.mark.parametrize("name, install", [("gpu", 'pip install "jitcore\\[cuda\\]"'), ("nonsense", "")])
def test_absent_backends_are_named_with_those_present(name, install):
    if name == "gpu" and "cuda" in list_backends()[0]:
        pytest.skip("there is a GPU")
    fun = jitcore.jit(lambda x: x, backend=name)
    with pytest.raises(
        errors.BackendNotFoundError, match=f"(?s)Unknown backend {name}.*reference.*{install}"
    ):
        fun(1.0)
    with pytest.raises(errors.BackendNotFoundError, match=name):
        jitcore.devices(name)


def test_devices():
    (device,) = jitcore.devices("cpu")
    assert repr(device) == "CpuDevice(id=0)" and str(device) == "cpu:0" and device.platform == "cpu"
    assert jitcore.local_devices() == jitcore.devices()
    assert jitcore.device_count() == jitcore.local_device_count() == 1
    assert jitcore.default_backend() == "cpu"
    assert (jitcore.process_index(), jitcore.process_count()) == (0, 1)
    assert make_array().device == device and make_array().devices() == {device}
    assert make_array().sharding == jitcore.SingleDeviceSharding(device)
    assert float(jitcore.jit(lambda x: lax.neg(x), device=device)(1.0)) == -1.0
    with pytest.raises(ValueError, match="process_index"):
        jitcore.local_devices(3)


def test_shardings_of_one_device():
    sharding = jitcore.SingleDeviceSharding(jitcore.devices("reference")[0])
    for shardings in (
        {"in_shardings": sharding},
        {"in_shardings": (sharding, None)},
        {"out_shardings": sharding},
        {"in_shardings": None, "out_shardings": None},
    ):
        assert float(jitcore.jit(lambda x, y: lax.add(x, y), **shardings)(1.0, 2.0)) == 3.0


def test_contradictory_devices():
    cpu, reference = jitcore.devices("cpu")[0], jitcore.devices("reference")[0]
    with pytest.raises(ValueError, match="can't specify both a device and a backend"):
        jitcore.jit(lambda x: x, device=cpu, backend="cpu")
    with pytest.raises(ValueError, match="single device"):
        jitcore.jit(lambda x: x, in_shardings=jitcore.SingleDeviceSharding(cpu), device=reference)

    with pytest.raises(ValueError, match="takes shardings and None"):
        jitcore.jit(lambda x: x, out_shardings="cpu")


# -- compiler options ----------------------------------------------------------------------------------------


def test_compiler_options_reach_the_backend():
    given = {"fastmath": True, "opt_level": 2, "parallel": False, "num_threads": 1}
    fun = jitcore.jit(lambda x: lax.neg(x), compiler_options=given)
    assert fun.lower(1.0)._program.compile_options == CompileOptions((False,), **given)
    assert float(fun(1.0)) == -1.0


def test_every_option_is_a_field_of_compile_options():
    from jitcore.dispatch.options import COMPILER_OPTIONS

    assert {"donated", "sharding", *COMPILER_OPTIONS} == set(inspect.signature(CompileOptions).parameters)


@pytest.mark.parametrize(
    "option, value", [("fastmath", 1), ("opt_level", 4), ("opt_level", True), ("num_threads", 0)]
)
def test_option_values_are_checked(option, value):
    with pytest.raises(ValueError, match=f"compiler_options\\['{option}'\\] does not accept"):
        jitcore.jit(lambda x: x, compiler_options={option: value})


def test_unknown_options_name_close_matches():
    with pytest.raises(
        errors.UnknownCompilerOptionError, match="(?s)No such compile option: 'fast_math'.*'fastmath'"
    ):
        jitcore.jit(lambda x: x, compiler_options={"fast_math": True})


# -- inlining ------------------------------------------------------------------------------------------------


def test_inline_records_the_operations_themselves():
    captured = np.arange(3, dtype=np.float32)

    def inner(x):
        return lax.add(lax.mul(x, 2.0), captured)

    for inline, names in ((True, ["mul", "add", "neg"]), (False, ["jit", "neg"])):
        closed = jitcore.make_jaxpr(lambda x: lax.neg(jitcore.jit(inner, inline=inline)(x)))(captured)  # noqa: B023
        assert [eqn.primitive.name for eqn in closed.eqns] == names


# -- open axes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [("n",), (("n",),), ({0: "n"},), {0: "n"}])
def test_one_trace_serves_all_sizes_of_an_open_axis(axes):
    jitcore.clear_caches()
    fun = jitcore.jit(lambda x: lax.add(x, x), abstracted_axes=axes, backend="reference")
    for n in (3, 5, 3, 100):
        assert to_list(fun(make_array(n))) == [2.0] * n
    assert fun.cache_info() == (1, 3, 1, 1)
    assert str(fun.lower(make_array(7)).as_text()).startswith("{ lambda ; a:f32[n].")


def test_open_axes_of_pytrees_and_several_arguments():
    fun = jitcore.jit(
        lambda tree, y: (lax.add(tree["a"], y), lax.neg(tree["b"])),
        abstracted_axes=({"a": ("n",), "b": (None, "m")}, ("n",)),
        backend="reference",
    )
    for n, m in ((3, 4), (5, 6)):
        b = np.ones((2, m), np.float32)
        first, second = fun({"a": make_array(n), "b": b}, make_array(n))
        assert first.shape == (n,) and second.shape == (2, m)
    assert fun.cache_info().traces == 1
    fun({"a": make_array(3), "b": np.ones((3, 4), np.float32)}, make_array(3))
    assert fun.cache_info().traces == 2
    with pytest.raises(ValueError, match="the axis 'n' has size 3 in one argument and 4 in another"):
        fun({"a": make_array(3), "b": b}, make_array(4))


def test_size_one_is_traced_on_its_own():
    fun = jitcore.jit(lambda x: lax.neg(x), abstracted_axes=("n",), backend="reference")
    assert [to_list(fun(make_array(n))) for n in (2, 1, 3, 0)] == [[-1, -1], [-1], [-1, -1, -1], []]
    assert fun.cache_info().traces == 3


def test_open_axes_that_do_not_fit():
    fun = jitcore.jit(lambda x: x, abstracted_axes=((None, "n"),))
    with pytest.raises(ValueError, match="axis 1 of an argument of shape"):
        fun(make_array(3))
    with pytest.raises(ValueError, match="2 entries"):
        jitcore.jit(lambda x: x, abstracted_axes=({0: "n"}, {0: "m"}))(make_array(3))
