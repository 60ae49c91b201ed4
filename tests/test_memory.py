"""Memory: what a call holds beyond its inputs and outputs, and what a process keeps of shapes and programs."""

import gc
import itertools
import os
import subprocess
import sys
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax, nn
from jitcore.backends.cpu.native.libraries import NativeProgram
from jitcore.backends.cpu.runtime import memory
from jitcore.config import config
from jitcore.dispatch.backend import clear_backends

# -- one call -----------------------------------------------------------------------------------------------

#: Bytes of the objects of a call that do not grow with its data.
SLACK = 20_000


def solve_jacobi(grid):
    def step(_, u):
        inner = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        return u.at[1:-1, 1:-1].set(inner)

    return lax.fori_loop(0, 3, step, grid)


def find_distances(points):
    difference = points[:, None, :] - points[None, :, :]
    return jnp.sqrt((difference * difference).sum(-1))


#: name -> function, shape of its argument, buffers of the size of its output that it may hold beside it.
#: Outputs are larger than the blocks that the arena keeps and rounds up.
PEAKS = {
    "selu": (nn.selu, (4_400_000,), 0),
    "softmax of rows": (lambda x: nn.softmax(x, axis=1), (2100, 2100), 0),
    "softmax of columns": (lambda x: nn.softmax(x, axis=0), (2100, 2100), 0),
    "softmax of all": (lambda x: nn.softmax(x, axis=(0, 1)), (2100, 2100), 0),
    "Jacobi": (solve_jacobi, (2100, 2100), 1),
    "distances": (find_distances, (2100, 3), 0.01),  # a copy of the points
}


@pytest.mark.parametrize("name", PEAKS)
def test_what_a_call_holds_beside_its_output(name):
    function, shape, buffers = PEAKS[name]
    f, x = jitcore.jit(function), jnp.ones(shape, np.float32)
    size = f(x).nbytes
    assert measure_peak(f, x) <= (1 + buffers) * size + SLACK


def test_sum_of_distances_holds_no_array():
    f, points = jitcore.jit(lambda points: find_distances(points).sum()), jnp.ones((2000, 3), np.float32)
    f(points)
    assert measure_peak(f, points) <= 4 * 2000 + SLACK


def measure_peak(f, *args):
    """The most bytes of arrays and objects that a call has at a time, its result included."""
    clear_backends()  # gives back the blocks that earlier calls left, which would not be counted
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        f(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


# -- many shapes, many programs ----------------------------------------------------------------------------


@pytest.fixture
def small_caches():
    size = config.cache_size
    jitcore.clear_caches()
    config.update("cache_size", 8)
    yield 8
    config.update("cache_size", size)
    jitcore.clear_caches()


def call_new_program(number):
    f = jitcore.jit(lambda x: jnp.sin(x * (1 + number / 8)) + number)
    assert f(np.zeros(3, np.float32))[0] == number


scale = jitcore.jit(lambda x, factor: x * factor, static_argnums=1)
total = jitcore.jit(lambda x: x.sum())


def call_with_new_static(number):
    assert scale(np.ones(3, np.float32), number / 4)[0] == number / 4


def call_with_new_shape(number):
    assert total(np.ones(10 + number, np.float32)) == 10 + number


def call_with_new_structure(number):
    assert total_of_dict({f"name{number}": np.ones(3, np.float32)}) == 3


total_of_dict = jitcore.jit(lambda values: sum(value.sum() for value in values.values()))


def call_batched(number):
    f = jitcore.jit(lambda x: jnp.cos(x) + number)
    np.testing.assert_allclose(np.asarray(jitcore.vmap(f)(np.zeros((2, 3), np.float32))), 1 + number)


KINDS = [call_new_program, call_with_new_static, call_with_new_shape, call_with_new_structure, call_batched]


@pytest.mark.parametrize("call", KINDS, ids=lambda call: call.__name__)
def test_full_caches_do_not_grow(small_caches, call):
    count, held = 10, []
    for number in range(count):
        call(number)
    tracemalloc.start()
    try:
        for start in range(count, 5 * count, count):
            for number in range(start, start + count):
                call(number)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # One entry takes 5 to 40 kB; the interpreter's free lists keep a little of each call. What leaks grows in
    # every round; a table of the process that is made larger does so in one.
    growth = min(after - before for before, after in itertools.pairwise(held))
    assert growth < 2000 * count


def count_native_programs():
    gc.collect()
    return sum(type(thing) is NativeProgram for thing in gc.get_objects())


def test_machine_code_goes_with_its_cache_entry(small_caches):
    before = count_native_programs()
    for number in range(40):
        call_new_program(number)
    assert count_native_programs() - before <= 2 * small_caches
    jitcore.clear_caches()
    assert count_native_programs() <= before


def test_a_function_in_use_outlives_its_cache_entry(small_caches):
    f = jitcore.jit(lambda x: jnp.exp(x) + 0.4321)
    x = np.zeros(5, np.float32)
    f(x)
    for number in range(40):
        call_new_program(number)
    np.testing.assert_allclose(np.asarray(f(x)), 1.4321, rtol=1e-6)
    assert f.cache_info().traces == 1


SCRIPT = """
from benchmarks.memory import measure_growth
print(*measure_growth(*{arguments}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell what a process holds")
@pytest.mark.parametrize("arguments", [("shapes", "10000"), ("programs", "2000")], ids=lambda pair: pair[0])
def test_resident_memory_is_bounded(arguments):
    root = str(Path(__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(arguments=arguments)], cwd=root, capture_output=True, text=True,
        timeout=900, env=os.environ | {"JITCORE_CACHE_SIZE": "400"},
    )
    assert result.returncode == 0, result.stderr
    start, middle, end = map(int, result.stdout.split())
    assert end - middle < 10e6
    assert end - start < 60e6


# -- what goes, goes whole ----------------------------------------------------------------------------------


def test_a_function_goes_with_what_it_captured():
    class Captured:
        value = 3.0

    def make():
        captured, constant = Captured(), np.ones(1000, np.float32)
        f = jitcore.jit(lambda x: x * constant + captured.value)
        argument = np.ones(1000, np.float32)
        assert f(argument)[0] == 4
        things = captured, constant, argument, f.__wrapped__, f._function
        return [weakref.ref(thing) for thing in things]

    left = make()
    gc.collect()
    assert [ref() for ref in left] == [None] * 5


def test_an_inner_function_goes():
    def make():
        inner = jitcore.jit(lambda x: jnp.sin(x) + 1)
        x = np.ones((2, 3), np.float32)
        jitcore.vmap(inner)(x)
        jitcore.jit(lambda x: inner(x) * 2)(x)
        jitcore.jit(jitcore.vmap(inner))(x)
        lax.fori_loop(0, 2, lambda _, x: inner(x), x)
        return weakref.ref(inner._function)

    left = make()
    gc.collect()
    assert left() is None


def test_clear_caches_gives_back_the_blocks_of_temporaries():
    f = jitcore.jit(solve_jacobi)
    x = np.ones((300, 300), np.float32)
    expected = np.asarray(f(x))
    assert memory.count_kept_bytes() > 0
    jitcore.clear_caches()
    assert memory.count_kept_bytes() == 0
    np.testing.assert_array_equal(np.asarray(f(x)), expected)
