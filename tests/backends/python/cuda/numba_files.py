"""Files for `numba.cuda`, run by Numba's simulator or compiled for a GPU that need not be there.

As a program: `python -m tests.backends.python.cuda.numba_files simulate|compile` reads "file" or "call" (a device function)
and the name of a program, and answers each by what went wrong, as JSON, "" for nothing. Numba decides when it is
imported whether it simulates.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterable
from types import FunctionType, SimpleNamespace

import numpy as np

import jitcore
from jitcore import dtypes, tree_util
from jitcore.backends.cuda.target import CudaTarget
from jitcore.backends.python.cuda import File, write_file
from jitcore.dispatch.backend import find_compiler
from jitcore.loopir.program import Program
from jitcore.schedule import lower_program


def schedule(function: Callable, args) -> tuple[Program, list[np.ndarray], list[str]]:
    """The loop program, its inputs and their names."""
    traced = jitcore.jit(function).trace(*args)
    program = traced.lower().make_program(find_compiler("cuda:sm_90"))
    leaves = [np.asarray(x, aval.dtype) for x, aval in zip(*map(tree_util.tree_leaves, (args, traced.in_avals)))]
    values = [*map(np.asarray, program.const_values), *leaves]
    return (lower_program(program.compiled_jaxpr, CudaTarget()), [values[i] for i in program.kept],
            program.argument_names)


def write(function: Callable, args) -> str:
    program, _, names = schedule(function, args)
    return write_file(program, names).text


def as_words(inputs: Iterable[np.ndarray]) -> list[np.ndarray]:
    return [x.view(np.uint16) if dtypes.is_half(x.dtype) else x for x in inputs]


# -- the simulator --------------------------------------------------------------------------------------------
def find_log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


#: Python's names for NumPy's functions.
ALIASES = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")}
WITHOUT_ERRORS = {"lgamma": find_log_gamma, **{name: getattr(math, name) for name in ("erf", "erfc", "floor", "ceil", "trunc")}}


class Quiet:
    """`math` and `cmath` as GPUs have them: no error says where a function is infinite."""

    def __getattr__(self, name: str) -> Callable:
        return WITHOUT_ERRORS.get(name) or getattr(np, ALIASES.get(name, name))


def simulate(function: Callable, args) -> list[np.ndarray]:
    program, inputs, _ = schedule(function, args)
    file, space = write_file(program), {}
    exec(compile(file.text, "<file>", "exec"), space)
    space |= {"math": Quiet(), "cmath": Quiet(), **file.library}
    with np.errstate(all="ignore"):
        found = space["run"](*as_words(inputs))
    found = [np.asarray(x.copy_to_host()) for x in (found if isinstance(found, tuple) else (found,))]
    return [x.view(buffer.dtype) if dtypes.is_half(buffer.dtype) else x for x, buffer in zip(found, program.outputs)]


def check_simulated(function: Callable, args) -> None:
    from tests.backends.python.test_functions import assert_agrees

    assert_agrees(simulate(function, args), jitcore.jit(function)(*args))


# -- the compiler ---------------------------------------------------------------------------------------------
class Memory(np.ndarray):
    """An array of the host that stands for one of a device. A bool is true when it is first asked for."""

    was_asked = False

    def copy_to_host(self) -> np.ndarray:
        if self.dtype != np.bool_ or self.shape:
            return np.asarray(self)
        self.was_asked, was_asked = True, self.was_asked
        return np.asarray(not was_asked)


class Launcher:
    """A kernel that is compiled and does not run."""

    def __init__(self, kernel, texts: list[str]):
        self.kernel, self.texts = kernel, texts

    def __getitem__(self, sizes) -> Callable:
        return self.compile

    def compile(self, *arguments) -> None:
        from numba import cuda, typeof, types

        kinds = [types.Array(typeof(x.dtype.type(0)), x.ndim, "C") if isinstance(x, np.ndarray) else typeof(x)
                 for x in arguments]
        text, _ = cuda.compile(self.kernel.py_func, types.void(*kinds), cc=(9, 0), device=False, abi="numba", output="ptx")
        self.texts.append(text)


def compile_file(file: File, inputs: Iterable[np.ndarray]) -> list[str]:
    """The PTX of the kernels, in the order of their launches."""
    from numba.cuda import dispatcher

    # a device function asks which device it is for
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    space, texts = {}, []
    exec(compile(file.text, "<file>", "exec"), space)
    kernels = {name: Launcher(value, texts) for name, value in space.items() if name.startswith("kernel")}
    host = SimpleNamespace(device_array=lambda *sizes: np.zeros(*sizes).view(Memory), to_device=lambda x: np.asarray(x).view(Memory))
    run = FunctionType(space["run"].__code__, {**space, **kernels, "cuda": host, **file.library})
    with np.errstate(all="ignore"):
        run(*as_words(inputs))
    return texts


def check_compiled(function: Callable, args) -> None:
    program, inputs, _ = schedule(function, args)
    for text in compile_file(write_file(program), inputs):
        assert ".visible .entry" in text


# -- device functions -----------------------------------------------------------------------------------------
def make_caller(function: Callable, args) -> tuple[Callable, list[np.ndarray], int]:
    """A kernel whose only thread calls the device function of a program; its arguments, of which so many of the last
    are results."""
    from numba import cuda

    called = jitcore.jit(function).as_numba_cuda(*args)
    leaves = tree_util.tree_leaves(args)
    expected = [np.asarray(x) for x in tree_util.tree_leaves(jitcore.jit(function)(*args))]
    goals = [np.zeros(x.shape or (1,), x.dtype) for x in expected]
    names = [f"a{k}" if np.shape(x) else f"a{k}[0]" for k, x in enumerate(leaves)]
    names += [f"r{k}" for k, x in enumerate(expected) if x.shape]
    numbers = "".join(f"r{k}[0], " for k, x in enumerate(expected) if not x.shape).removesuffix(", ")
    parameters = [*(f"a{k}" for k in range(len(leaves))), *(f"r{k}" for k in range(len(expected)))]
    call = f"called({', '.join(names)})"
    text = f"@cuda.jit\ndef caller({', '.join(parameters)}):\n    {f'{numbers} = {call}' if numbers else call}\n"
    space = {"cuda": cuda, "called": called}
    exec(compile(text, "<caller>", "exec"), space)
    kinds = [aval.dtype for aval in tree_util.tree_leaves(jitcore.jit(function).trace(*args).in_avals)]
    values = [np.atleast_1d(np.asarray(x, kind)) for x, kind in zip(leaves, kinds)]
    return space["caller"], [*values, *goals], len(goals)


def check_called(function: Callable, args) -> None:
    """In the simulator."""
    caller, values, count = make_caller(function, args)
    with np.errstate(all="ignore"):
        caller[1, 1](*values)
    expected = tree_util.tree_leaves(jitcore.jit(function)(*args))
    for found, other in zip(values[len(values) - count :], expected, strict=True):
        np.testing.assert_allclose(found.reshape(other.shape), np.asarray(other), rtol=2e-6, atol=1e-6)


def check_call_compiled(function: Callable, args) -> None:
    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
    texts: list[str] = []
    caller, values, _ = make_caller(function, args)
    Launcher(caller, texts).compile(*values)
    assert ".visible .entry" in texts[0]


def main(action: str) -> None:
    from tests.backends.cuda.programs import DEVICE_PROGRAMS, PROGRAMS

    check, check_call = {"simulate": (check_simulated, check_called),
                         "compile": (check_compiled, check_call_compiled)}[action]
    for line in sys.stdin:
        kind, _, name = line.strip().partition(" ")
        try:
            with contextlib.redirect_stdout(sys.stderr):
                check(*PROGRAMS[name]) if kind == "file" else check_call(*DEVICE_PROGRAMS[name])
            error = ""
        except Exception:
            error = traceback.format_exc()
        print(json.dumps(error), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
