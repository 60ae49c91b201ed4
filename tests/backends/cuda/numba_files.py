"""Files for `numba.cuda`, run by Numba's simulator or compiled for a GPU that need not be there.

As a program: `python -m tests.backends.cuda.numba_files simulate|compile NAMES...` prints a JSON object with what
went wrong, "" for nothing, by the name of a program. Numba decides when it is imported whether it simulates.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from types import FunctionType, SimpleNamespace

import numpy as np

import jitcore
from jitcore import dtypes, tree_util
from jitcore.backends.cuda.numba_source import File, write_file
from jitcore.backends.cuda.target import CudaTarget
from jitcore.dispatch.backend import find_compiler
from jitcore.loopir.program import Program
from jitcore.schedule import lower_program


def schedule(function, args) -> tuple[Program, list[np.ndarray]]:
    """The loop program, and the inputs that it gets."""
    jitted = jitcore.jit(function)
    traced = jitted.trace(*args)
    program = traced.lower().make_program(find_compiler("cuda:sm_90"))
    avals = tree_util.tree_leaves(traced.in_avals)
    inputs = [np.asarray(x, aval.dtype) for x, aval in zip(tree_util.tree_leaves(args), avals)]
    return lower_program(program.compiled_jaxpr, CudaTarget), inputs


def write(function, args, arguments=()) -> File:
    return write_file(schedule(function, args)[0], arguments)


def as_words(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint16) if dtypes.is_half(x.dtype) else x


#: `math` as GPUs have it: no error says where a function is infinite.
QUIET = SimpleNamespace(**{name: getattr(np, alias, None) or np.vectorize(getattr(math, alias)) for name, alias in {
    **{name: name for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh sqrt copysign erf erfc".split()},
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "isfinite": "isfinite", "fmod": "fmod"}.items()},
    floor=math.floor, ceil=math.ceil, trunc=math.trunc)  # fmt: skip


def _log_gamma(x: float) -> float:
    try:
        return np.float64(math.lgamma(x))
    except (ValueError, OverflowError):
        return np.float64(np.inf)


QUIET.lgamma = _log_gamma


def simulate(function, args) -> list[np.ndarray]:
    """What the file computes, under the simulator."""
    program, inputs = schedule(function, args)
    file = write_file(program)
    space = {}
    exec(compile(file.text, "<file>", "exec"), space)
    space |= {"math": QUIET, **file.library}
    with np.errstate(all="ignore"):
        found = space["run"](*map(as_words, inputs))
    found = found if isinstance(found, tuple) else (found,)
    found = [np.asarray(x.copy_to_host()) for x in found]
    return [x.view(buffer.dtype) if dtypes.is_half(buffer.dtype) else x for x, buffer in zip(found, program.outputs)]


class _Memory(np.ndarray):
    """An array of the host that stands for one of a device. What it is asked for holds once."""

    def copy_to_host(self) -> np.ndarray:
        if self.dtype != np.bool_ or self.shape:
            return np.asarray(self)
        self.was_asked, answer = True, not getattr(self, "was_asked", False)
        return np.asarray(answer)


def compile_file(file: File, inputs) -> list[str]:
    """The PTX of each kernel, launched with these inputs: nothing runs."""
    from numba import cuda, types, typeof
    from numba.cuda import dispatcher

    # a device function asks for the device that it is compiled for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    texts = []

    def make_memory(shape, dtype):
        return np.zeros(shape, dtype).view(_Memory)

    def stand_for(kernel):
        def launch(*arguments):
            kinds = [types.Array(typeof(x.dtype.type(0)), x.ndim, "C") if isinstance(x, np.ndarray) else typeof(x)
                     for x in arguments]  # fmt: skip
            texts.append(cuda.compile(kernel.py_func, types.void(*kinds), cc=(9, 0), device=False, abi="numba",
                                      output="ptx")[0])  # fmt: skip

        return SimpleNamespace(**{"__getitem__": launch}) if False else _Launcher(launch)

    space = {}
    exec(compile(file.text, "<file>", "exec"), space)
    kernels = {name: stand_for(value) for name, value in space.items() if name.startswith("kernel")}
    host = SimpleNamespace(device_array=make_memory, to_device=lambda x: np.asarray(x).view(_Memory))
    run = FunctionType(space["run"].__code__, {**space, **kernels, "cuda": host, **file.library})
    with np.errstate(all="ignore"):
        run(*map(as_words, inputs))
    return texts


class _Launcher:
    def __init__(self, launch):
        self.launch = launch

    def __getitem__(self, sizes):
        return self.launch


def check_simulated(function, args) -> None:
    from tests.backends.python.test_functions import assert_agrees

    assert_agrees(simulate(function, args), jitcore.jit(function)(*args))


def check_compiled(function, args) -> None:
    program, inputs = schedule(function, args)
    for text in compile_file(write_file(program), inputs):
        assert ".visible .entry" in text


def main(action: str, names: list[str]) -> None:
    import time
    from tests.backends.cuda.programs import PROGRAMS

    check, found = {"simulate": check_simulated, "compile": check_compiled}[action], {}
    for name in names or PROGRAMS:
        t = time.time()
        try:
            check(*PROGRAMS[name])
            found[name] = ""
        except NotImplementedError as error:
            found[name] = f"NotImplementedError: {error}"
        except Exception:
            found[name] = traceback.format_exc()
        if os.environ.get("VERBOSE"): print(name, round(time.time() - t, 2), found[name][-1000:], file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
