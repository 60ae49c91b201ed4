"""Arrays of compiled programs lie between guards: what writes behind its output or before it ends the test run.

    python -m pytest -p tests.guarded tests/lax tests/backends/cpu tests/numpy tests/autojit

In: a test run. Out: the same, each output and each block of temporaries of a native program with bytes around it that are
looked at behind the call. Outputs are views then, so that tests of who owns memory fail; only the guards count.
"""

from __future__ import annotations

import functools
import os

import numpy as np

from jitcore.backends.cpu.runtime import launch

GUARD, FILL = 256, 0x55
_guarded: list[tuple[np.ndarray, int]] = []


def make(shape, dtype=np.uint8) -> np.ndarray:
    dtype, shape = np.dtype(dtype), (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = dtype.itemsize * int(np.prod(shape))
    memory = np.empty(nbytes + 2 * GUARD + 64, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 64
    memory[:start] = memory[start + nbytes :] = FILL
    _guarded.append((memory, start))
    memory[start : start + nbytes] = 0xA5
    _sizes[id(memory)] = nbytes
    return memory[start : start + nbytes].view(dtype).reshape(shape)


_sizes: dict[int, int] = {}


def check(text: str) -> None:
    while _guarded:
        memory, start = _guarded.pop()
        nbytes = _sizes.pop(id(memory))
        if not ((memory[:start] == FILL).all() and (memory[start + nbytes :] == FILL).all()):
            behind = int((memory[start + nbytes :] != FILL).sum())
            os.write(2, f"\n{os.environ.get('PYTEST_CURRENT_TEST')}: {behind} bytes behind an output of {nbytes}, "
                        f"{int((memory[:start] != FILL).sum())} before it\n{text}\n".encode())
            os._exit(77)


def write_arena(size: int, names: dict) -> str:
    names |= {"make_arena": make, "arena_dtype": np.dtype(np.uint8)}
    return f"arena = make_arena({size}, arena_dtype)"


def write_call(plan, compiled, given_outputs=()):
    run = right(plan, compiled, given_outputs)

    @functools.wraps(run)
    def guarded(*arguments):
        _guarded.clear()
        result = run(*arguments)
        check(str(plan))
        return result

    return guarded


right = launch.write_call
launch.make_allocator = lambda shape, dtype: functools.partial(make, shape, dtype)
launch.choose_allocator = lambda nbytes: np.empty
launch.write_arena = write_arena
