"""How often functions are traced and programs compiled, and what is said about it."""

from __future__ import annotations

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import jitcore
from jitcore import lax
from jitcore.array import ConcreteArray
from jitcore.config import config
from jitcore.dispatch.program import ExecutableCache, executables
from jitcore.process.effort import counters


@pytest.fixture(autouse=True)
def start_with_empty_caches():
    jitcore.clear_caches()
    yield
    jitcore.clear_caches()


def add_one(x):
    return lax.add(x, 1.0)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_one_trace_and_one_compile_serve_equal_signatures():
    fun = jitcore.jit(add_one)
    for _ in range(3):
        fun(ones(3))
    fun(ConcreteArray(ones(3)))
    assert fun.cache_info() == (3, 1, 1, 1)


@pytest.mark.parametrize("first, second", [
    (ones(3), ones(4)), (ones(3), ones(3).astype(np.float64)), (1.0, np.float32(1)), (1.0, ones()), (1, 1.0),
    (1.0, 1j), (np.float32(1), np.float64(1)), (ones(2), ones(1, 2)),
])
def test_another_shape_dtype_or_weak_type_is_traced_again(first, second):
    fun = jitcore.jit(lambda x: x)
    fun(first), fun(second), fun(first), fun(second)
    assert fun.cache_info()[:3] == (2, 2, 2)


def test_equal_signatures_of_different_kinds_share_an_entry():
    fun = jitcore.jit(lambda x: x)
    for value in (1.0, ConcreteArray(np.array(1, np.float32), True), 2.0):
        fun(value)
    assert fun.cache_info()[:3] == (2, 1, 1)


def test_two_jits_of_one_function_share_their_cache():
    jitcore.jit(add_one)(1.0)
    assert jitcore.jit(add_one).cache_info().traces == 1
    jitcore.jit(add_one)(2.0)
    assert jitcore.jit(add_one).cache_info() == (1, 1, 1, 1)
    assert jitcore.jit(add_one, inline=True).cache_info() == (0, 0, 0, 0)


def add_odd_number(x, odd):
    return lax.add(x, odd)


# No other test may use these numbers: the CPU backend remembers kernels that other tests compiled.
@pytest.mark.parametrize("make", [lambda: functools.partial(add_odd_number, odd=17.25),
                                  lambda: lambda x: lax.neg(lax.sub(lax.neg(x), 17.25))])
def test_equal_lambdas_and_partials_compile_once(make):
    before = counters.compiles, counters.traces
    i = 0.0
    for _ in range(20):
        i = jitcore.jit(make())(i)
    assert float(i) == 20 * 17.25
    assert counters.compiles - before[0] == 1
    assert counters.traces - before[1] == 20


def test_programs_that_differ_in_captured_arrays_share_a_compile():
    before = counters.compiles
    for factor in (2.0, 3.0):
        captured = np.full(3, factor, np.float32)
        out = jitcore.jit(lambda x: lax.mul(x, captured))(ones(3))  # noqa: B023
        np.testing.assert_array_equal(np.asarray(out), captured)
    assert counters.compiles - before == 1


def test_programs_that_differ_in_literals_do_not_share():
    assert float(jitcore.jit(lambda x: lax.mul(x, 2.0))(1.0)) == 2.0
    assert float(jitcore.jit(lambda x: lax.mul(x, 3.0))(1.0)) == 3.0
    assert float(jitcore.jit(lambda x: lax.mul(x, 3.0), backend="reference")(1.0)) == 3.0


def test_compiler_options_are_part_of_the_key():
    before = counters.compiles
    for options in ({}, {"fastmath": True}, {"fastmath": True}):
        jitcore.jit(lambda x: lax.sin(x), backend="reference", compiler_options=options)(ones(3))
    assert counters.compiles - before == 2


def test_clear_cache_traces_again_and_clear_caches_compiles_again():
    fun = jitcore.jit(lambda x: lax.sin(lax.add(x, 5.0)), backend="reference")
    fun(ones(3))
    fun.clear_cache()
    assert fun.cache_info() == (0, 0, 0, 0)
    fun(ones(3))
    assert fun.cache_info() == (0, 1, 1, 0)
    jitcore.clear_caches()
    fun(ones(3))
    assert fun.cache_info() == (0, 1, 1, 1)


def test_a_function_dies_with_its_last_reference():
    def make():
        captured = ConcreteArray(ones(3))
        fun = jitcore.jit(lambda x: lax.add(x, captured))
        fun(ones(3)), fun.lower(ones(3)), jitcore.make_jaxpr(fun)(ones(3))
        return weakref.ref(fun.__wrapped__), weakref.ref(captured)

    references = make()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_functions_without_weak_references_have_their_own_cache():
    class Slotted:
        __slots__ = ()

        def __call__(self, x):
            return lax.neg(x)

    class Unhashable:
        __hash__ = None

        def __call__(self, x):
            return lax.neg(x)

    for function in (Slotted(), Unhashable()):
        fun = jitcore.jit(function)
        assert float(fun(2.0)) == float(fun(2.0)) == -2.0
        assert fun.cache_info()[:2] == (1, 1)
        assert jitcore.jit(function).cache_info()[:2] == (0, 0)


def test_inner_functions_are_traced_once_for_each_signature():
    inner = jitcore.jit(add_one)
    outer = jitcore.jit(lambda x: lax.add(inner(x), inner(lax.neg(x))))
    outer(ones(3)), outer(ones(3)), outer(ones(4))
    assert inner.cache_info().traces == 2
    assert outer.cache_info().traces == 2


def test_inner_functions_that_capture_tracers_are_traced_for_each_outer_trace():
    def outer(x):
        return jitcore.jit(inner)(1.0, x)

    captured = []

    def inner(y, x):
        return lax.mul(y, captured[-1])

    def wrapper(x):
        captured.append(x)
        return outer(x)

    assert float(jitcore.jit(wrapper)(3.0)) == 3.0
    assert float(jitcore.jit(lambda x: wrapper(lax.neg(x)))(3.0)) == -3.0


# -- the cache of executables --------------------------------------------------------------------------------


class FakeExecutable:
    compiles = 1


def test_the_executable_cache_is_bounded():
    cache, built = ExecutableCache(), []

    def build():
        built.append(FakeExecutable())
        return built[-1]

    with config.override(cache_size=2):
        first = cache.find_or_build(("a",), build)
        cache.find_or_build(("b",), build)
        assert cache.find_or_build(("a",), build) is first  # now the most recently used
        cache.find_or_build(("c",), build)
        assert len(cache) == 2
        assert cache.find_or_build(("a",), build) is first
        cache.find_or_build(("b",), build)
    assert len(built) == 4


def test_threads_that_miss_one_key_build_once():
    cache, built, start = ExecutableCache(), [], threading.Barrier(4)
    finish = threading.Event()

    def build():
        finish.wait(10)
        built.append(1)
        return FakeExecutable()

    def work():
        start.wait(10)
        cache.find_or_build(("key",), build)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    finish.set()
    for thread in threads:
        thread.join(20)
    assert built == [1]


def test_a_failing_build_leaves_the_cache_usable():
    cache = ExecutableCache()

    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError):
        cache.find_or_build(("key",), fail)
    assert isinstance(cache.find_or_build(("key",), FakeExecutable).executable, FakeExecutable)


def test_an_executable_is_bound_once_for_each_shape():
    program = jitcore.jit(lambda x: lax.tan(x), backend="reference").lower(ones(3))._program
    shared = program._shared
    first, second = (shared.bind(program.traced.jaxpr.in_avals)[0] for _ in range(2))
    assert first is second


def test_the_structural_cache_is_filled_by_what_is_computed():
    jitcore.jit(lambda x: lax.cos(x))(1.0)
    size = len(executables)
    jitcore.jit(lambda renamed: lax.cos(renamed))(2.0)
    assert len(executables) == size


def test_signatures_are_bounded_too():
    fun = jitcore.jit(lambda x, n: lax.add(x, float(n)), static_argnums=1, backend="reference")
    with config.override(cache_size=3):
        for n in range(8):
            assert float(fun(1.0, n)) == 1.0 + n
        inner = fun._function
        (variant,) = inner.fast.list_variants()
        table = variant.table
        assert [len(kept) for kept in (inner._entries, inner._programs, table)] == [3, 3, 3]
        assert float(fun(1.0, 7)) == 8.0 and inner.info().misses == 8
        assert float(fun(1.0, 0)) == 1.0 and inner.info().misses == 9


# -- explanations --------------------------------------------------------------------------------------------


def explain(fun, *calls) -> str:
    for args, kwargs in calls:
        fun(*args, **kwargs)
    return fun.explain_last_miss()


def test_explain_before_and_after_the_first_call():
    fun = jitcore.jit(lambda x: x)
    assert "no miss" in fun.explain_last_miss()
    assert "first call" in explain(fun, ((1.0,), {}))


@pytest.mark.parametrize("calls, text", [
    ([((ones(3), 1.0), {}), ((ones(4), 1.0), {})], "argument x: shape was (3,), is (4,)"),
    ([((ones(3), 1.0), {}), ((ones(3), 1), {})], "argument n: dtype was float32, is int32"),
    ([((ones(3), 1.0), {}), ((ones(3), np.float32(1)), {})], "argument n: weak_type was True, is False"),
    ([((ones(3), 1.0), {}), ((ones(3),), {"n": 1.0})], "structure of (args, kwargs): was "),
    ([(({"a": ones(3)}, 1), {}), (({"a": ones(2)}, 1), {})], "argument x['a']: shape was (3,), is (2,)"),
])
def test_explanations_name_argument_and_change(calls, text):
    lines = explain(jitcore.jit(lambda x, n: n), *calls).splitlines()
    assert len(lines) == 2
    assert lines[1].strip().startswith(text)


def test_explanations_of_static_values_flags_and_the_closest_call():
    fun = jitcore.jit(lambda x, mode="a": x, static_argnames="mode")
    text = explain(fun, ((1.0,), {"mode": "a"}), ((1, "c"), {}), ((1.0,), {"mode": "b"}))
    assert text.splitlines()[1:] == ["  static argument mode: value was 'a', is 'b'"]
    assert "static argument mode: value was 'c', is 'd'" in explain(fun, ((1, "d"), {}))
    with jitcore.enable_x64():
        assert "config flag enable_x64: was False, is True" in explain(fun, ((ones(3),), {}), ((1, "d"), {}))
