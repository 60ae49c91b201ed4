"""The fast path: which calls it serves, and that it stays away from everything slow."""

from __future__ import annotations

import inspect
import weakref

import numpy as np
import optree
import pytest

import jitcore
from jitcore import lax
from jitcore.array import ConcreteArray
from jitcore.dispatch import fast_call, function


def make_array(n: int = 3, weak: bool = False) -> ConcreteArray:
    return ConcreteArray(np.ones(n, np.float32), weak)


@pytest.fixture
def only_fast(monkeypatch):
    """Call it to forbid the general path from then on."""

    def forbid():
        for place, name in ((function, "read_call"), (inspect, "signature"), (optree, "tree_flatten")):
            monkeypatch.setattr(
                place, name, lambda *args, **kwargs: pytest.fail("the general path was taken")
            )

    return forbid


SERVED = {
    "Array": lambda: (make_array(),), "weak Array": lambda: (make_array(weak=True),), "scalar Array":
    lambda: (ConcreteArray(np.array(1, np.float32)),), "ndarray": lambda: (np.ones((2, 2), np.float32),),
    "float": lambda: (1.0,), "int": lambda: (3,), "bool": lambda: (True,), "complex": lambda: (1j,),
    "numpy scalar": lambda: (np.float16(2),), "read-only": lambda: (np.broadcast_to(np.ones(3), (3,)),),
    "none": lambda: (), "mixed": lambda: (make_array(), 2, np.ones(3, np.float32), np.int8(1)),
}


@pytest.mark.parametrize("kind", SERVED)
def test_known_signatures_are_served_fast(kind, only_fast):
    fun = jitcore.jit(lambda *args: args[0] if args else 7)
    make = SERVED[kind]
    expected = fun(*make())
    only_fast()
    for count in (1, 2):
        out = fun(*make())
        assert isinstance(out, ConcreteArray)
        assert (out.dtype, out.weak_type, out.shape) == (expected.dtype, expected.weak_type, expected.shape)
        np.testing.assert_array_equal(np.asarray(out), np.asarray(expected))
        assert fun.cache_info()[:2] == (count, 1)


def test_static_positions_are_served_fast(only_fast):
    fun = jitcore.jit(lambda n, x, mode: lax.mul(x, float(n + len(mode))), static_argnums=(0, 2))
    assert float(fun(2, 3.0, "a")) == 9.0 and float(fun(3, 3.0, "a")) == 12.0
    only_fast()
    assert float(fun(2, 5.0, "a")) == 15.0 and float(fun(3, 3.0, "a")) == 12.0


def test_static_values_of_other_types_are_not_confused():
    fun = jitcore.jit(lambda n, x: lax.mul(x, 2.0) if n is True else x, static_argnums=0)
    for _ in range(2):
        assert (float(fun(1, 3.0)), float(fun(True, 3.0)), float(fun(1.0, 3.0))) == (3.0, 6.0, 3.0)


def test_several_results_are_served_fast(only_fast):
    fun = jitcore.jit(lambda x: {"a": x, "b": [x]})
    fun(1.0)
    only_fast()
    assert float(fun(2.0)["b"][0]) == 2.0


NOT_SERVED = {
    "another shape": (np.ones(4, np.float32),),
    "another dtype": (np.ones(3),),
    "strided": (np.ones(6, np.float32)[::2],),
    "swapped": (np.ones(3, ">f4"),),
    "weak": (make_array(weak=True),),
    "scalar": (1.0,),
    "list": ([1.0],),
    "unknown": ("text",),
    "too large": (2**40,),
    "subclass": (np.ones((1, 3), np.float32).view(np.matrix),),
}


@pytest.mark.parametrize("kind", NOT_SERVED)
def test_other_signatures_are_missed(kind):
    fun = jitcore.jit(lambda x: x)
    fun(make_array())
    dispatch = fun._function.fast.dispatchers[1]
    assert dispatch(make_array()) is not fast_call.MISS
    assert dispatch(*NOT_SERVED[kind]) is fast_call.MISS


def test_deleted_arrays_flags_and_traces_are_missed():
    fun = jitcore.jit(lambda x: x)
    array = make_array()
    fun(array)
    dispatch = fun._function.fast.dispatchers[1]
    with jitcore.enable_x64():
        assert dispatch(array) is fast_call.MISS
    in_trace = []
    jitcore.make_jaxpr(lambda x: in_trace.append(dispatch(array)) or x)(1.0)
    assert in_trace == [fast_call.MISS]
    array.delete()
    assert dispatch(array) is fast_call.MISS


def test_a_scalar_that_does_not_fit_is_missed():
    fun = jitcore.jit(lambda x: x)
    fun(1)
    assert fun._function.fast.dispatchers[1](2**40) is fast_call.MISS


def test_clearing_empties_the_fast_path():
    fun = jitcore.jit(lambda x: x)
    fun(1.0), fun(1.0)
    fun.clear_cache()
    assert not fun._function.fast.dispatchers
    assert float(fun(1.0)) == 1.0 and fun.cache_info().traces == 1


@pytest.mark.cpu
def test_donating_calls_are_served_fast_and_reuse_memory(only_fast):
    step = jitcore.jit(lambda state, x: {"n": lax.neg(state["n"]), "m": lax.add(state["m"], x)}, donate_argnums=0)
    state = step({"n": make_array(), "m": make_array()}, make_array())
    only_fast()
    before = state
    addresses = {name: array.data.ctypes.data for name, array in state.items()}
    state = step(state, make_array())
    assert all(array.is_deleted() for array in before.values())
    assert {name: array.data.ctypes.data for name, array in state.items()} == addresses
    np.testing.assert_array_equal(state["n"], np.ones(3))
    np.testing.assert_array_equal(state["m"], np.full(3, 3.0))
    assert step.cache_info()[:2] == (1, 1)


def test_donated_memory_that_is_seen_elsewhere_is_kept_by_the_fast_path():
    step = jitcore.jit(lambda x: lax.neg(x), donate_argnums=0)
    step(make_array())
    seen = make_array()
    view = np.asarray(seen)
    held = seen.data
    step(seen)
    np.testing.assert_array_equal(view, np.ones(3))
    np.testing.assert_array_equal(held, np.ones(3))
    own = np.ones(3, np.float32)
    step(own), step(own)
    np.testing.assert_array_equal(own, np.ones(3))
    assert step.cache_info()[:2] == (3, 1)


def test_donating_an_array_twice_is_refused_by_the_fast_path(only_fast):
    step = jitcore.jit(lambda x, y: lax.add(x, y), donate_argnums=0)
    step(make_array(), make_array())
    only_fast()
    both = make_array()
    with pytest.raises(RuntimeError, match="previously donated"):
        step(both, both)
    assert not both.is_deleted()


def test_many_arguments_are_served_fast(only_fast):
    many = jitcore.jit(lambda *args: args[-1])
    values = range(40)
    assert int(many(*values)) == 39
    only_fast()
    assert int(many(*range(1, 41))) == 40


def test_keywords_are_served_fast_in_any_order(only_fast):
    fun = jitcore.jit(lambda x, *, y, n, z=1.0: {"d": x - y * z, "n": n}["d" if n else "n"], static_argnames="n")
    x, y = make_array(), np.full(3, 2, np.float32)
    orders = [{"y": y, "n": 1, "z": 3.0}, {"z": 3.0, "y": y, "n": 1}, {"n": 1, "y": y, "z": 3.0}, {"y": y, "n": True}]
    for keywords in orders:
        fun(x, **keywords)
    misses = fun.cache_info().misses
    only_fast()
    for keywords in orders:
        np.testing.assert_array_equal(fun(x, **keywords), 1 - 2 * np.full(3, keywords.get("z", 1.0)))
    assert fun.cache_info().misses == misses == 2


def test_other_keywords_are_not_confused():
    fun = jitcore.jit(lambda **others: others)
    assert list(fun(a=1.0, b=2.0)) == ["a", "b"]
    assert list(fun(a=1.0, c=2.0)) == ["a", "c"]
    assert float(fun(b=1.0, a=2.0)["a"]) == 2.0 == float(fun(b=1.0, a=2.0)["a"])


def test_forms_and_variants_are_bounded(monkeypatch):
    monkeypatch.setattr(fast_call, "MAX_FORMS", 3)
    monkeypatch.setattr(fast_call, "MAX_VARIANTS", 2)
    fun = jitcore.jit(lambda *args: args)
    for _ in range(2):
        for n in range(1, 6):
            assert len(fun(*range(n))) == n
        for size in range(6):
            ((out,),) = (fun([1.0] * size),)
            assert [float(x) for x in out] == [1.0] * size
    assert len(fun._function.fast.dispatchers) == 3
    assert len(fun._function.fast.list_variants()) == 4


def test_errors_of_a_program_are_not_taken_for_misses():
    fun = jitcore.jit(lambda x: x)
    fun(1.0)
    (variant,) = fun._function.fast.list_variants()
    table = variant.table

    def fail(*values):
        raise KeyError("from the program")

    for key, entry in table.items():
        table[key] = (fail, *entry[1:])
    with pytest.raises(KeyError, match="from the program"):
        fun(1.0)


def test_errors_in_one_variant_do_not_lead_to_another():
    fun = jitcore.jit(lambda x: x)
    fun({"a": 1.0}), fun([1.0]), fun(1.0)
    calls = []

    def fail(*values):
        calls.append(values)
        raise KeyError("from the program")

    for variant in fun._function.fast.list_variants():
        for key, entry in variant.table.items():
            variant.table[key] = (fail, *entry[1:])
    with pytest.raises(KeyError, match="from the program") as caught:
        fun({"a": 1.0})
    assert len(calls) == 1 and caught.value.__context__ is None


def test_large_calls_wait_until_code_pays(monkeypatch, only_fast):
    monkeypatch.setattr(fast_call, "LEAVES_PER_CALL", 10)
    fun = jitcore.jit(lambda tree: tree["k0"])
    tree = {f"k{i}": float(i) for i in range(25)}
    for served in ([], [], [1]):
        fun(tree)
        assert list(fun._function.fast.dispatchers) == served
    fun(tree | {"k0": make_array()})
    assert len(fun._function.fast.list_variants()) == 1
    only_fast()
    assert float(fun({name: value + 1 for name, value in tree.items()})) == 1.0
    assert fun.cache_info()[:2] == (3, 2)


def test_each_object_has_a_call_of_its_own_that_does_not_keep_it_alive():
    fun = jitcore.jit(lambda x: x)
    fun(1.0)
    call, alive = fun.__call__, weakref.ref(fun)
    del fun
    assert alive() is None
    assert [float(call(1.0)), int(call(2)), float(call(x=3.0))] == [1.0, 2, 3.0]


def test_objects_of_one_function_share_what_was_learned(only_fast):
    def double(x):
        return x + x

    first, second = jitcore.jit(double), jitcore.jit(double)
    first(1.0), first(make_array()), first(x=1)
    only_fast()
    for fun in (first, second, jitcore.jit(double)):
        assert [float(fun(1.0)), fun(make_array()).tolist(), int(fun(x=2))] == [2.0, [2.0] * 3, 4]
