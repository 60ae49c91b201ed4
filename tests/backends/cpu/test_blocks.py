"""Memory of large arrays: where it begins, who may use it again, and how much waits for that."""

import ctypes
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.runtime import memory

LARGE = host.MACHINE.tuning.runtime.large_bytes
allocate = memory.choose_allocator(LARGE)

if allocate is np.empty:
    pytest.skip("NumPy allocates all arrays here", allow_module_level=True)


@pytest.fixture
def no_blocks():
    """No block is kept, and the limit is what it was."""
    gc.collect()
    memory.drop_blocks()
    limit = memory._cells.limit
    yield
    memory._cells.limit = limit
    memory.drop_blocks()


def read_address(array):
    return array.ctypes.data


def is_ours(array):
    """Whether an ndarray's memory comes from the module, by the name that NumPy knows."""
    multiarray = getattr(np, "_core", None) or np.core
    return multiarray.multiarray.get_handler_name(array) == "jitcore"


@pytest.mark.parametrize("nbytes", [LARGE, LARGE + 1, 100_000, 1 << 20, (1 << 22) - 64, 1 << 22, 10_000_000])
def test_arrays_begin_at_lines_and_own_their_memory(no_blocks, nbytes):
    arrays = [allocate((nbytes,), np.uint8) for _ in range(3)]
    for number, array in enumerate(arrays):
        assert read_address(array) % 64 == 0 and array.flags.owndata and array.base is None
        array[...] = number
    assert [np.unique(array).tolist() for array in arrays] == [[0], [1], [2]]


def test_small_arrays_and_others_of_the_process_are_numpys():
    assert memory.choose_allocator(LARGE - 1) is np.empty
    allocate((LARGE,), np.uint8)
    assert not is_ours(np.empty(LARGE, np.uint8))


def test_outputs_copies_and_temporaries_are_ours(no_blocks):
    x = np.random.default_rng(0).normal(size=20_000)
    y = jitcore.device_put(x)
    for array in (y, jnp.array(x), jitcore.jit(lambda x: x * 2)(x), jitcore.jit(jnp.sort)(x)):
        data = array._data
        assert is_ours(data) and read_address(data) % 64 == 0
    np.testing.assert_array_equal(np.asarray(y), x)


def test_a_result_stays_when_later_calls_reuse_memory(no_blocks):
    f = jitcore.jit(lambda x: x + 1)
    x = np.zeros(50_000, np.float32)
    first = f(x)
    view = np.asarray(first)[10:]
    del first
    for k in range(3):
        f(x + k)
    assert np.all(view == 1)


def test_free_blocks_serve_later_arrays_of_about_their_size(no_blocks):
    array = allocate((100_000,), np.uint8)
    place = read_address(array)
    del array
    assert memory.count_kept_bytes() >= 100_000
    again = allocate((98_000,), np.uint8)
    assert read_address(again) == place and memory.count_kept_bytes() == 0
    other = allocate((40_000,), np.uint8)
    assert read_address(other) != place


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(no_blocks):
    memory._cells.limit = 500_000
    sizes = (100_000, 150_000, 200_000, 250_000)
    for size in sizes:
        allocate((size,), np.uint8)
        assert memory.count_kept_bytes() <= 500_000
    kept = [memory._cells.blocks[2 * k + 1] for k in range(memory._cells.count)]
    assert len(kept) == 2 and kept[0] >= 200_000 and kept[1] >= 250_000
    allocate((600_000,), np.uint8)  # larger than the limit: given back at once
    assert memory._cells.count == 2
    jitcore.clear_caches()
    assert memory.count_kept_bytes() == 0


def test_there_are_not_more_blocks_than_places(no_blocks):
    arrays = [allocate((LARGE + 5000 * k,), np.uint8) for k in range(100)]
    del arrays
    assert memory._cells.count == memory._MAX_BLOCKS


def test_an_array_can_be_resized(no_blocks):
    array = allocate((10_000,), np.int64)
    array[...] = np.arange(10_000)
    array.resize((100_000,), refcheck=False)
    assert is_ours(array) and np.array_equal(array[:10_000], np.arange(10_000)) and not array[10_000:].any()
    array.resize((10,), refcheck=False)
    assert array.tolist() == list(range(10))


def test_zeroed_memory_is_zero(no_blocks):
    used = allocate((LARGE,), np.uint8)
    used[...] = 255
    del used
    calloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(
        memory._handler.calloc)
    free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(memory._handler.free)
    place = calloc(None, LARGE // 8, 8)
    assert ctypes.string_at(place, LARGE) == bytes(LARGE)
    free(None, place, LARGE)


def test_errors_leave_numpy_as_it_was():
    with pytest.raises(MemoryError):
        allocate((1 << 60,), np.uint8)
    with pytest.raises(TypeError):
        allocate(("x",), np.uint8)
    assert not is_ours(np.empty(LARGE, np.uint8))


def test_threads_allocate_and_free_at_a_time(no_blocks):
    failures = []

    def work(seed):
        sizes = np.random.default_rng(seed).integers(LARGE, 8 * LARGE, 300)
        held = []
        for number, size in enumerate(sizes):
            array = allocate((size,), np.uint8)
            array[...] = (number + seed) % 251
            held.append((array, (number + seed) % 251))
            if len(held) > 5:
                old, value = held.pop(0)
                if not (old[0] == value and old[-1] == value and np.all(old == value)):
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


ENDING = """
import sys, os
import numpy as np
import jitcore
x = jitcore.jit(lambda x: x * 2)(np.ones(100_000))
sys.kept = [np.asarray(x)]  # freed when modules are gone
child = os.fork()
if not child:
    y = jitcore.jit(lambda x: x * 2)(np.ones(100_000))
    os._exit(0 if y[5] == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
print("done")
"""


def test_arrays_outlive_modules_and_forks():
    done = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
