"""Jitted functions in several threads, and what the caches need for them. `test_processes.py` has forks."""

import gc
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.backends.cpu.native import libraries, translate
from jitcore.config import config
from jitcore.process.concurrency import Lock, cached_attribute
from jitcore.process.effort import counters


def run_in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_one_function_in_eight_threads():
    f = jitcore.jit(lambda x: (jnp.sin(x) * 2, x.sum()))
    inputs = [np.random.default_rng(n).standard_normal(200_000).astype(np.float32) for n in range(8)]
    expected = [(np.sin(x.astype(np.float64)) * 2, x.astype(np.float64).sum()) for x in inputs]

    def work(number):
        for _ in range(20):
            doubled, total = f(inputs[number])
            np.testing.assert_allclose(np.asarray(doubled), expected[number][0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(float(total), expected[number][1], rtol=1e-3, atol=1e-1)

    run_in_threads(8, work)
    assert f.cache_info().compiles == 1


def test_threads_that_compile_at_once_compile_once():
    barrier = threading.Barrier(6)
    f = jitcore.jit(lambda x: jnp.tanh(x) * 1.2345678)

    def work(number):
        barrier.wait()
        np.testing.assert_allclose(np.asarray(f(np.ones(7, np.float32))), np.tanh(1) * 1.2345678, rtol=1e-6)

    before = counters.compiles
    run_in_threads(6, work)
    assert counters.compiles - before == 1


def test_threads_trace_apart():
    def work(number):
        for k in range(10):
            jaxpr = jitcore.make_jaxpr(lambda x: jnp.sin(x) + number * 10 + k)(1.0)
            assert len(jaxpr.eqns) == 3

    run_in_threads(6, work)


@pytest.mark.cpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_child_forked_after_a_parallel_call():
    script = """
        import os, numpy as np, jitcore, jitcore.numpy as jnp
        f = jitcore.jit(lambda x: (x * 2, x.sum()))
        x = np.ones(1_000_000, np.float32)
        f(x)
        pid = os.fork()
        if pid == 0:
            doubled, total = f(x)
            other = jitcore.jit(lambda x: jnp.cos(x).max())(x)
            good = float(total) == 1e6 and float(doubled.sum()) == 2e6 and abs(float(other) - 0.5403023) < 1e-6
            os._exit(0 if good else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert float(f(x)[1]) == 1e6
        raise SystemExit(status)
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=120, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


# -- many calls, many programs ------------------------------------------------------------------------------


def call_shared_functions(count):
    """Checks every result of `count` calls in each of 8 threads."""
    scale = jitcore.jit(lambda x, y: (x * 2 + y, (x * y).sum()))
    loop = jitcore.jit(lambda x, n: lax.fori_loop(0, n, lambda _, c: c + x, jnp.zeros_like(x)))
    is_right = []

    def work(number):
        for k in range(count):
            size = 5 + (7 * k + number) % 40
            x = np.full(size, number, np.float32)
            scaled, total = scale(x, np.float32(k % 100))
            assert float(total) == number * (k % 100) * size
            assert (np.asarray(scaled) == 2 * number + k % 100).all()
            if k % 10 == 0:
                assert (np.asarray(loop(x, k % 7)) == number * (k % 7)).all()
        is_right.append(number)

    run_in_threads(8, work)
    assert sorted(is_right) == list(range(8))


def test_shared_functions_in_eight_threads():
    call_shared_functions(500)


@pytest.mark.slow
def test_shared_functions_in_eight_threads_for_long():
    call_shared_functions(10_000)


@pytest.fixture
def frequent_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_threads_compile_different_programs_at_once(frequent_switches):
    def make(number):
        return lambda x: (jnp.sin(x) * (number + 1.5) + x.sum(0), jnp.sort(x, axis=-1))

    functions = [jitcore.jit(make(number)) for number in range(8)]

    def work(number):
        for k in range(8):
            which = (k + 3 * number) % 8
            x = np.random.default_rng(which).standard_normal((4, 5 + which % 2)).astype(np.float32)
            mixed, ordered = functions[which](x)
            expected = np.sin(x.astype(np.float64)) * (which + 1.5) + x.astype(np.float64).sum(0)
            np.testing.assert_allclose(np.asarray(mixed), expected, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(np.asarray(ordered), np.sort(x, axis=-1))

    run_in_threads(6, work)


def test_caches_are_cleared_while_threads_call():
    f = jitcore.jit(lambda x: jnp.tanh(x) + x.sum())
    is_done = threading.Event()

    def work(number):
        if number == 0:
            for _ in range(8):
                jitcore.clear_caches()
            is_done.set()
        while not is_done.is_set():
            for size in (3, 10, 100):
                np.testing.assert_allclose(np.asarray(f(np.zeros(size, np.float32))), 0)

    run_in_threads(4, work)


def test_a_program_that_runs_outlives_its_function_and_the_caches():
    def work(number):
        for k in range(5):
            f = jitcore.jit(lambda x: lax.fori_loop(0, 100, lambda _, c: c * 0.5 + k, x) + number)
            results = []
            runner = threading.Thread(target=lambda f=f: results.append(f(np.ones(20_000, np.float32))))
            runner.start()
            del f
            jitcore.clear_caches()
            runner.join()
            np.testing.assert_allclose(np.asarray(results[0]), 2 * k + number, rtol=1e-5, atol=1e-5)

    run_in_threads(3, work)


# -- errors ---------------------------------------------------------------------------------------------------

FOUR = jitcore.ShapeDtypeStruct((4,), np.float32)


def test_an_error_in_a_callback_reaches_the_thread_that_called():
    def refuse_three(x):
        if x[0] == 3:
            raise ValueError("three")
        return np.asarray(x) * 2

    f = jitcore.jit(lambda x: jitcore.pure_callback(refuse_three, FOUR, x) + 1)

    def work(number):
        for _ in range(20):
            x = np.full(4, number, np.float32)
            if number == 3:
                with pytest.raises(ValueError, match="three"):
                    f(x)
            else:
                assert float(f(x)[0]) == 2 * number + 1

    run_in_threads(6, work)


def test_a_function_that_calls_itself_by_a_callback():
    @jitcore.jit
    def count_down(x, n):
        def step(x, n):
            return np.asarray(x) if n <= 0 else np.asarray(count_down(np.asarray(x), np.int32(n - 1))) + 1

        return jitcore.pure_callback(step, FOUR, x, n)

    def work(number):
        for n in range(4):
            x = np.full(4, number, np.float32)
            np.testing.assert_array_equal(np.asarray(count_down(x, np.int32(n))), number + n)

    run_in_threads(4, work)


@pytest.mark.cpu
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RecursionError])
@pytest.mark.parametrize(("room", "place"), [
    (translate, "optimize_ir"), (libraries, "_load_image"), (libraries, "find_or_compile"),
])
def test_an_interrupted_compile_leaves_the_caches_usable(monkeypatch, error, room, place):
    f = jitcore.jit(lambda x: jnp.arctan(x) * 3.21)
    x = np.zeros(6, np.float32)
    f(np.zeros((2, 2, 2), np.float32))  # opens what all programs share
    jitcore.clear_caches()

    def interrupt(*args, **kwargs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(room, place, interrupt)
        with pytest.raises(error):
            f(x)
    run_in_threads(3, lambda number: np.testing.assert_array_equal(np.asarray(f(x)), 0))


def test_an_interrupted_trace_leaves_the_function_usable():
    interrupts = [KeyboardInterrupt]

    @jitcore.jit
    def f(x):
        y = jnp.sin(x)
        if interrupts:
            raise interrupts.pop()
        return y + 1

    with pytest.raises(KeyboardInterrupt):
        f(np.zeros(3, np.float32))
    assert float(jnp.sin(0.0)) == 0  # this thread traces nothing any more
    np.testing.assert_array_equal(np.asarray(f(np.zeros(3, np.float32))), 1)


def test_a_tracer_in_another_thread_is_refused():
    found = []

    def f(x):
        def use():
            try:
                jnp.sin(x)
            except jitcore.errors.UnexpectedTracerError as error:
                found.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    jitcore.jit(f)(1.0)
    assert len(found) == 1


@pytest.mark.cpu
def test_one_of_many_threads_gets_a_donated_array():
    f, x, results = jitcore.jit(lambda x: x + 1, donate_argnums=0), jnp.ones(1000), []

    def work(number):
        try:
            results.append(float(f(x)[0]))
        except RuntimeError:
            results.append(None)

    run_in_threads(6, work)
    assert sorted(results, key=str) == [2.0, *[None] * 5]


# -- the garbage collector ------------------------------------------------------------------------------------


def test_a_finaliser_may_call_the_function_whose_cache_drops_it():
    f = jitcore.jit(lambda x, marker: x + 1, static_argnums=1)
    calls = []

    class Marker:
        def __init__(self, number):
            self.number = number

        def __hash__(self):
            return self.number

        def __eq__(self, other):
            return self is other

        def __del__(self):
            calls.append(float(f(np.zeros(3, np.float32), -self.number)[0]))

    def work(number):
        for k in range(1, 50):
            f(np.zeros(3, np.float32), Marker(100 * number + k))

    size = config.cache_size
    config.update("cache_size", 3)
    try:
        run_in_threads(2, work)
    finally:
        config.update("cache_size", size)
    assert len(calls) > 20 and set(calls) == {1.0}


def test_the_collector_runs_all_the_time():
    f = jitcore.jit(lambda x: lax.fori_loop(0, 4, lambda i, c: c * 0.5 + x[i], x.sum()))
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        assert float(f(np.ones(4, np.float32))) == 2.125
    finally:
        gc.set_threshold(*thresholds)


# -- the lock and the attribute -------------------------------------------------------------------------------


def test_lock_keeps_other_threads_out_and_lets_its_own_in():
    lock, inside = Lock(), []

    def work(number):
        for _ in range(200):
            with lock, lock:
                inside.append(number)
                assert len(inside) == 1
                inside.pop()

    run_in_threads(4, work)


class Waiting:
    """An object whose attribute takes as long as `wait` does."""

    def __init__(self, wait):
        self.wait = wait

    @cached_attribute
    def value(self):
        """What it is."""
        self.wait()
        return object()


def test_attribute_is_computed_once():
    waiting = Waiting(lambda: None)
    assert waiting.value is waiting.value
    assert Waiting.value.__doc__ == "What it is."


def test_attributes_of_two_objects_are_computed_at_once():
    barrier = threading.Barrier(2)
    run_in_threads(2, lambda number: Waiting(lambda: barrier.wait(60)).value)


def test_threads_that_compute_an_attribute_get_one_value():
    barrier, found = threading.Barrier(2), []
    waiting = Waiting(lambda: barrier.wait(60))
    run_in_threads(2, lambda number: found.append(waiting.value))
    assert found[0] is found[1]
