"""Programs that call Python: order, values, exceptions, memory; between native steps and inside of loops."""

import sys
import threading

import numpy as np
import pytest

import jitcore.numpy as jnp
from jitcore import ShapeDtypeStruct, config, debug, jit, lax, pure_callback
from jitcore.backends.cpu.runtime.host_calls import adopt, adopt_all
from jitcore.experimental import io_callback

# SciPy transforms arrays whose length has a large prime factor.
X = np.random.default_rng(0).standard_normal(17).astype(np.complex64)
SCALAR = ShapeDtypeStruct((), np.float32)


def loop_program(function, *args) -> str:
    function(*args)
    return str(function.inspect("loop program"))


def assert_is_native(function, *args) -> None:
    """All of the program is one native step, with calls of Python inside."""
    lines = loop_program(function, *args).splitlines()
    assert sum(line.startswith("    native:") for line in lines) == 1
    assert not any(line.startswith("    call ") for line in lines)
    assert any(line.lstrip().startswith("call ") for line in lines)


# -- values -------------------------------------------------------------------------------------------------
def transform_often(x):
    return lax.fori_loop(0, 5, lambda i, c: jnp.fft.fft(c) * 0.1 + i, x)


def test_a_transform_within_a_counted_loop():
    function = jit(transform_often)
    assert_is_native(function, X)
    expected = X.astype(complex)
    for i in range(5):
        expected = np.fft.fft(expected) * 0.1 + i
    np.testing.assert_allclose(function(X), expected, rtol=1e-5, atol=1e-5)


def test_a_while_loop_with_a_call_in_its_condition():
    @jit
    def function(x):
        def holds(c):
            return pure_callback(lambda v: np.float32(np.asarray(v).sum()), SCALAR, c) < 100

        return lax.while_loop(holds, lambda c: c * 2, x)

    x = np.ones(3, np.float32)
    assert_is_native(function, x)
    np.testing.assert_array_equal(function(x), np.full(3, 64, np.float32))


def test_scan_stacks_what_the_host_computes():
    @jit
    def function(xs):
        def step(carry, x):
            spectrum = jnp.fft.rfft(x)
            return carry + jnp.abs(spectrum).sum(), spectrum

        return lax.scan(step, np.float32(0), xs)

    xs = np.random.default_rng(1).standard_normal((7, 34)).astype(np.float32)
    assert_is_native(function, xs)
    total, spectra = function(xs)
    np.testing.assert_allclose(spectra, np.fft.rfft(xs), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total, np.abs(np.fft.rfft(xs)).sum(), rtol=1e-5)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_branches_call_only_what_is_chosen(which):
    seen = []

    @jit
    def function(k, x):
        branches = [
            lambda x: jnp.fft.fft(x),
            lambda x: x * 2,
            lambda x: (debug.callback(seen.append, x.real[0]), jnp.fft.ifft(x))[1],
        ]
        return lax.switch(k, branches, x)

    expected = [np.fft.fft(X), X * 2, np.fft.ifft(X)][which]
    np.testing.assert_allclose(function(np.int32(which), X), expected, rtol=1e-4, atol=1e-5)
    assert len(seen) == (which == 2)


def test_loops_within_loops_and_branches():
    @jit
    def function(x):
        def inner(j, c):
            return lax.cond(j % 2 == 0, lambda c: jnp.fft.fft(c) / 4, lambda c: c + j, c)

        return lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(0, i + 2, inner, c) * (1 + i), x)

    assert_is_native(function, X)
    expected = X.astype(complex)
    for i in range(3):
        for j in range(i + 2):
            expected = np.fft.fft(expected) / 4 if j % 2 == 0 else expected + j
        expected = expected * (1 + i)
    np.testing.assert_allclose(function(X), expected, rtol=1e-4, atol=1e-4)


def test_new_sizes_share_the_code():
    function = jit(transform_often)
    for size in (17, 19, 34):
        x = np.ones(size, np.complex64)
        np.testing.assert_allclose(function(x), transform_often(x), rtol=1e-4, atol=1e-4)
    assert function.cache_info().compiles <= 1


def test_empty_arrays_reach_the_host():
    @jit
    def function(x):
        def body(i, c):
            got = pure_callback(lambda v: np.asarray(v) + 1, ShapeDtypeStruct((0,), np.float32), c)
            return got * 2

        return lax.fori_loop(0, 3, body, x)

    assert function(np.zeros(0, np.float32)).shape == (0,)


def test_donated_inputs_and_updates_in_place():
    @jit
    def function(x):
        def body(i, c):
            value = pure_callback(lambda v: np.float32(v) * 2, SCALAR, c[i])
            return c.at[i].set(value)

        return lax.fori_loop(0, x.shape[0], body, x)

    x = np.arange(20, dtype=np.float32)
    np.testing.assert_array_equal(function(x), 2 * x)
    np.testing.assert_array_equal(x, np.arange(20))


# -- effects ------------------------------------------------------------------------------------------------
def test_ordered_effects_of_loops_happen_in_order(capfd):
    @jit
    def function(x):
        def body(i, c):
            debug.print("before {} {}", i, c, ordered=True)
            c = lax.cond(c > 2, lambda c: c - 1, lambda c: c + 2, c)
            debug.print("after {} {}", i, c, ordered=True)
            return c

        debug.print("first", ordered=True)
        out = lax.fori_loop(0, 3, body, x)
        debug.print("last {}", out, ordered=True)
        return out

    assert float(function(np.float32(1))) == 4
    lines = capfd.readouterr().out.split("\n")
    assert lines[:-1] == ["first", "before 0 1.0", "after 0 3.0", "before 1 3.0", "after 1 2.0",
                          "before 2 2.0", "after 2 4.0", "last 4.0"]


def test_io_callback_within_scan_keeps_state():
    drawn = iter(range(100))

    @jit
    def function():
        def step(carry, _):
            value = io_callback(lambda: np.float32(next(drawn)), SCALAR, ordered=True)
            return carry + value, value

        return lax.scan(step, np.float32(0), None, length=5)

    total, values = function()
    assert float(total) == 10
    assert np.asarray(values).tolist() == [0, 1, 2, 3, 4]


def test_callbacks_may_keep_what_they_get():
    kept = []
    jit(lambda x: lax.fori_loop(0, 4, lambda i, c: (debug.callback(kept.append, c), c * 2)[1], x))(
        np.ones(3, np.float32))
    assert [np.asarray(value).tolist() for value in kept] == [[2.0**k] * 3 for k in range(4)]


# -- exceptions ---------------------------------------------------------------------------------------------
class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError("too large"), KeyboardInterrupt(), Stop(), SystemExit(3)])
def test_an_exception_ends_the_loop_at_once(error):
    seen = []

    def check(value):
        seen.append(float(value))
        if value > 6:
            raise error

    @jit
    def function(x):
        return lax.fori_loop(0, 1000, lambda i, c: (debug.callback(check, c), c * 2)[1], x)

    for _ in range(3):
        seen.clear()
        with pytest.raises(type(error)) as caught:
            function(np.float32(1))
        assert caught.value is error
        assert seen == [1, 2, 4, 8]
    assert not sys.exc_info()[0]


def test_the_program_works_after_an_exception():
    limit = [3.0]

    def check(value):
        if value > limit[0]:
            raise ValueError("too large")

    function = jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (debug.callback(check, c), c * 2)[1], x))
    with pytest.raises(ValueError, match="too large"):
        function(np.float32(1))
    limit[0] = 100.0
    assert float(function(np.float32(1))) == 8


def test_wrong_results_of_callbacks_are_named():
    @jit
    def function(x):
        return lax.fori_loop(0, 3, lambda i, c: pure_callback(lambda v: np.ones(2), SCALAR, c), x)

    with pytest.raises(RuntimeError, match="Incorrect output shape for return value #0"):
        function(np.float32(0))


def test_the_traceback_shows_the_callback():
    def failing(value):
        raise RuntimeError("here")

    function = jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (debug.callback(failing, c), c + 1)[1], x))
    with pytest.raises(RuntimeError) as caught:
        function(np.float32(0))
    assert caught.traceback[-1].name == "failing"


# -- threads, recursion -------------------------------------------------------------------------------------
def test_threads_run_one_program_at_a_time_each():
    function = jit(transform_often)
    expected = {k: np.asarray(function(X * k)) for k in range(1, 9)}
    wrong = []

    def work(k):
        for _ in range(30):
            if not np.array_equal(function(X * k), expected[k]):
                wrong.append(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in expected]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_errors_stay_in_their_thread():
    def check(value):
        if value < 0:
            raise ValueError(f"{float(value)}")

    function = jit(lambda x: lax.fori_loop(0, 20, lambda i, c: (debug.callback(check, c), c + 0)[1], x))
    results = {}

    def work(k):
        try:
            results[k] = float(function(np.float32(k)))
        except ValueError as error:
            results[k] = str(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(-6, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: str(float(k)) if k < 0 else float(k) for k in range(-6, 6)}


def test_a_callback_may_call_the_program_that_called_it():
    def deeper(value):
        return np.float32(function(np.float32(value - 1))) if value > 0 else np.float32(0)

    @jit
    def function(x):
        return lax.fori_loop(0, 1, lambda i, c: pure_callback(deeper, SCALAR, c) + c, x)

    assert float(function(np.float32(4))) == 10


# -- between native steps -----------------------------------------------------------------------------------
def test_steps_between_native_ones():
    function = jit(lambda x: jnp.abs(jnp.fft.ifft(jnp.fft.fft(x * 2) * 3)) + 1)
    text = loop_program(function, X)
    assert [line.split()[0] for line in text.splitlines() if line.startswith("    ") and line[4] != " "][-5:] == [
        "native:", "call", "native:", "call", "native:"]
    np.testing.assert_allclose(function(X), np.abs(X * 6) + 1, rtol=1e-5)


def test_results_of_the_host_are_not_shared():
    cached = np.arange(4, dtype=np.float32)
    kind = ShapeDtypeStruct((4,), np.float32)
    function = jit(lambda: pure_callback(lambda: cached, kind))
    first = np.asarray(function())
    assert not np.shares_memory(first, cached)
    update = jit(lambda: pure_callback(lambda: cached, kind).at[0].set(9))
    assert np.asarray(update()).tolist() == [9, 1, 2, 3]
    assert cached.tolist() == [0, 1, 2, 3]


def test_an_input_returned_by_the_host_is_copied():
    x = np.ones(5, np.float32)
    out = np.asarray(jit(lambda x: pure_callback(np.asarray, ShapeDtypeStruct((5,), np.float32), x))(x))
    assert not np.shares_memory(out, x)


def _fresh(kind):
    return {
        "array": lambda: np.ones((2, 3), np.float32),
        "scalar": lambda: np.float32(1),
        "list": lambda: [np.ones((2, 3), np.float32)],
        "transposed": lambda: np.ones((3, 2), np.float32).T,
        "other dtype": lambda: np.ones((2, 3)),
        "view": lambda: np.ones((4, 3), np.float32)[:2],
    }[kind]


@pytest.mark.parametrize("kind, is_kept", [("array", True), ("list", True), ("scalar", False),
                                           ("transposed", False), ("other dtype", False), ("view", False)])
def test_adopt_takes_fresh_arrays_and_copies_others(kind, is_kept):
    address = []

    def make():
        result = _fresh(kind)()
        array = result[0] if isinstance(result, list) else result
        address.append(getattr(array, "ctypes", None) and array.ctypes.data)
        return result

    got = adopt(make(), (2, 3), np.dtype(np.float32))
    assert got.dtype == np.float32 and got.flags.c_contiguous and got.flags.owndata
    assert (got == 1).all() and got.shape == (2, 3)
    assert (got.ctypes.data == address[0]) == is_kept


def test_adopt_copies_what_somebody_holds():
    held = np.ones(3, np.float32)
    assert adopt(held, (3,), held.dtype) is not held
    assert adopt([held], (3,), held.dtype) is not held
    locked = np.ones(3, np.float32)
    locked.flags.writeable = False
    address = locked.ctypes.data
    assert adopt(locked, (3,), np.dtype(np.float32)).ctypes.data != address
    first, second = adopt_all((held, np.zeros(2)), [((3,), held.dtype), ((2,), np.dtype(float))])
    assert first is not held and (first == held).all() and second.tolist() == [0, 0]


def test_temporaries_of_the_host_are_freed_early():
    size = 17 << 16

    @jit
    def function(x):
        for _ in range(8):
            x = jnp.fft.fft(x)
        return x.sum()

    import tracemalloc

    x = np.ones(size, np.complex64)
    function(x)
    tracemalloc.start()
    function(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * size * 8


def test_a_loop_program_is_checked():
    with config.override(check_jaxprs=True):
        np.testing.assert_allclose(jit(transform_often)(X), transform_often(X), rtol=1e-4, atol=1e-4)
