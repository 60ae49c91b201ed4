"""The fast path: which calls it serves, and that it stays away from everything slow."""

from __future__ import annotations

import inspect

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
}  # fmt: skip


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


def test_donating_and_long_calls_take_the_general_path():
    step = jitcore.jit(lambda x: lax.neg(x), donate_argnums=0)
    step(make_array())
    assert not step._function.fast.dispatchers
    many = jitcore.jit(lambda *args: args[-1])
    values = range(fast_call.MAX_ARGUMENTS + 1)
    assert int(many(*values)) == int(many(*values)) == values[-1]
    assert not many._function.fast.dispatchers


def test_errors_of_a_program_are_not_taken_for_misses():
    fun = jitcore.jit(lambda x: x)
    fun(1.0)
    ((table, _),) = fun._function.fast._tables.values()

    def fail(*values):
        raise KeyError("from the program")

    for key, entry in table.items():
        table[key] = (fail, *entry[1:])
    with pytest.raises(KeyError, match="from the program"):
        fun(1.0)
