"""Programs as files for `numba.cuda`: how they read; what they compute in Numba's simulator, against the CPU backend; and
that Numba compiles them for a GPU."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax
from jitcore.backends.python.cuda import write_file
from jitcore.backends.python.operations import SPECIAL
from jitcore.loopir import program as loopir
from jitcore.loopir.expr import Axis, Buffer, Graph, Index
from tests.backends.cpu.test_primitives import elementwise_cases
from tests.backends.cuda.programs import DEVICE_PROGRAMS, LONG, OF_PYTHON, PROGRAMS, REFUSED
from tests.backends.python.cuda.numba_files import Quiet, write

ROOT = Path(__file__).parents[4]


def show(function, *args):
    """What a user sees."""
    return jitcore.jit(function).lower(*args).compile(target="cuda:sm_90").as_text("numba.cuda")


def start(action: str, **environment) -> Iterator[Callable[[str, str], str]]:
    """A process that checks programs, by kind and name."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.backends.python.cuda.numba_files", action]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:

        def check(kind: str, name: str) -> str:
            print(kind, name, file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert answer, "the process ended"
            return json.loads(answer)

        yield check
        process.stdin.close()


def list_parameters(names: Iterable[str]) -> list:
    """Every eighth is run by default: the simulator has a thread of Python for each thread of a GPU."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (place % 16 > 0)) for place, name in enumerate(names)]


# -- what they compute ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def simulator():
    pytest.importorskip("numba.cuda")
    yield from start("simulate", NUMBA_ENABLE_CUDASIM="1")


@pytest.mark.parametrize("name", list_parameters([name for name in PROGRAMS if name not in LONG]))
def test_in_the_simulator(simulator, name):
    """Places behind the ends of arrays raise there, as memory is NumPy's."""
    assert simulator("file", name) == ""


@pytest.fixture(scope="module")
def compiler():
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    yield from start("compile", NUMBA_ENABLE_CUDASIM="0")


@pytest.mark.parametrize("name", PROGRAMS)
def test_numba_compiles_them(compiler, name):
    assert compiler("file", name) == ""


# -- how they read --------------------------------------------------------------------------------------------
def test_selu_reads_as_written_by_hand():
    def selu(x, alpha=1.67):
        return jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    assert (
        show(selu, np.zeros(1000))
        == """import math
import numpy as np
from numba import cuda


@cuda.jit
def kernel0(x, result):
    i = cuda.grid(1)
    if i < x.shape[0]:
        t0 = x[i]
        result[i] = t0 if t0 > 0.0 else 1.67 * math.exp(t0) - 1.67


def run(x):
    x = cuda.to_device(x)
    result = cuda.device_array((1000,), np.float64)
    kernel0[8, 128](x, result)
    return result
"""
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_files_are_whole(name):
    text = write(*PROGRAMS[name])
    tree = ast.parse(text)
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert len(set(functions)) == len(functions) and functions[-1] == "run"
    assert text.count("@cuda.jit") == len(functions) - 1
    for function in functions[:-1]:
        assert re.search(rf"\b{function}[\[(]", text.replace(f"def {function}(", "")), f"nothing calls {function}"
    helpers = [ast.unparse(node.body) for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list
               and isinstance(node.decorator_list[0], ast.Call)]
    assert len(set(helpers)) == len(helpers), "a function is there twice"
    for line in text.splitlines():
        assert len(line) <= 110 or line.lstrip().startswith(("def", "kernel", "for"))
    for module in ("math", "cmath"):
        assert (f"import {module}\n" in text) == bool(re.search(rf"\b{module}\.", text))


def test_simple_programs_are_short():
    names = "selu", "stencil", "jacobi", "while_loop", "scan", "cond", "gather", "full sum", "select", "mean of columns", "cumsum"
    lengths = {name: len(write(*PROGRAMS[name]).splitlines()) for name in names}
    assert statistics.median(lengths.values()) < 40, lengths


def test_arguments_keep_their_names():
    def f(cuda, params, divmod, s, out):
        return cuda[:, None] * params["w"] + out * divmod + s

    text = show(f, np.ones(40), {"w": np.ones(30)}, 2.0, 3, np.ones((40, 30)))
    assert "def run(cuda0, params_w, divmod0, s, out0):" in text
    assert "i, j = divmod(cuda.grid(1), out0.shape[1])\n    if i < out0.shape[0]:\n" in text


def test_numbers_are_passed_by_value():
    text = show(lambda y, a: y * a, np.ones(5, np.float32), np.float32(2))
    assert "    a = np.float32(a)\n" in text and "result[i] = y[i] * a\n" in text
    assert "def kernel0(y, a, result):" in text


def test_loops_count_on_the_host():
    def f(x):
        return lax.scan(lambda c, v: (c + v, c * v), x[0], x)

    text = show(f, np.ones(20))
    assert "for s in range(20):" in text
    assert text.count("@cuda.jit") == 2, "what one thread does is one kernel"


def test_scalars_of_one_kernel_are_variables():
    text = show(lambda a: lax.while_loop(lambda x: abs(x * x - a) > 1e-6, lambda x: 0.5 * (x + a / x), a), 2.0)
    assert text.count("device_array") == 2  # the result, and what the loop asks


def test_teams_join_what_they_found_in_shared_memory():
    text = write(*PROGRAMS["softmax of 1000"])
    assert text.count("cuda.shared.array") == 1
    assert text.count("def reduce_max(") == text.count("def reduce_add(") == 1
    assert "for j in range(t, x.shape[1], 64):" in text


def test_columns_lie_side_by_side():
    text = write(*PROGRAMS["mean of columns"])
    assert "cuda.shared.array((16, 32), np.float32)" in text and "kernel0[2, (32, 16)](" in text


def test_running_sums_of_many_rounds_are_wide():
    assert "wide_total = np.float64(-0.0)" in show(jnp.cumsum, np.ones(300_000, np.float32))
    assert "wide_total" not in show(jnp.cumsum, np.ones(30_000, np.float32))


def test_updates_of_whole_numbers_are_atomic():
    assert "cuda.atomic.add(result_flat, " in write(*PROGRAMS["count"])
    assert re.search(r"cuda.atomic.add\(result, \(\w+, \w+\), ", write(*PROGRAMS["add to rows"]))
    assert "cuda.atomic.max(" in write(*PROGRAMS["extremes"])


def test_inspect_writes_what_it_can():
    jitted = jitcore.jit(lambda x: lax.digamma(x) + 1)
    compiled = jitted.lower(np.ones(5)).compile(target="cuda:sm_90")
    with pytest.raises(NotImplementedError, match="numba.cuda, whose kernels have no function 'digamma'"):
        compiled.as_text("numba.cuda")
    assert ".visible .entry" in compiled.as_text()


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_are_refused(name):
    with pytest.raises(NotImplementedError, match=REFUSED[name]):
        write(*OF_PYTHON[name])


#: What kernels of Numba have no function for.
MISSING = {*SPECIAL, "nextafter", "complex exp2", "complex expm1", "complex log1p", "complex log2", "complex sign"} - {"erf_inv"}


def test_every_other_function_is_there():
    missing = set()
    for primitive, dtype in elementwise_cases():
        operands = [np.ones(3, dtype)] * primitive.traits["arity"]
        try:
            write(lambda *operands, primitive=primitive: primitive.bind(*operands), operands)
        except NotImplementedError as error:
            missing.add(str(error).split("'")[1])
    assert missing == MISSING


# -- kernels that hold only if ---------------------------------------------------------------------------------
def make_choice(extent: int = 40):
    """out[i] = x[i] where a number is positive, else -x[i]."""
    graph = Graph()
    x, number = Buffer("in0", (extent,), np.float64, "in"), Buffer("in1", (), np.float64, "in")
    goal = Buffer("out0", (extent,), np.float64, "out")

    def fill(negate):
        axis = Axis(extent)
        value = graph.load(x, Index.of(axis))
        store = loopir.Store(goal, Index.of(axis), graph.op("neg", value) if negate else value)
        return loopir.Loop(axis, [store])

    condition = graph.op("gt", graph.load(number, Index()), graph.const(0.0, np.float64), dtype=np.bool_)
    kernel = loopir.Kernel([loopir.Choice(condition, [fill(False)], [fill(True)])], parallel=True)
    return loopir.Program([x, number], [goal], [], [loopir.Native([kernel])])


class Serial:
    """A stand-in for `numba.cuda` that runs one thread after the other: there are no barriers."""

    def __init__(self):
        self.place = 0

    def jit(self, function=None, device=False):
        if device or function is None:
            return lambda function: function

        class Launcher:
            def __getitem__(_, sizes):
                def run(*arguments):
                    for self.place in range(sizes[0] * sizes[1]):
                        function(*arguments)

                return run

        return Launcher()

    def grid(self, dimensions):
        return self.place

    def to_device(self, x):
        return x

    def device_array(self, shape, dtype):
        return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("number", [-1.0, 2.0])
def test_choices_are_kernels_that_return(number):
    text = write_file(make_choice(), ["x", "number"]).text
    assert "    if not number > 0.0:\n        return\n" in text and "    if number > 0.0:\n        return\n" in text
    space = {}
    exec(text.replace("from numba import cuda", ""), space := {"cuda": Serial(), "math": Quiet()})
    x = np.arange(40.0)
    np.testing.assert_array_equal(space["run"](x, number), x if number > 0 else -x)


# -- device functions -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", DEVICE_PROGRAMS)
def test_somebodys_kernel_calls_a_device_function(simulator, name):
    assert simulator("call", name) == ""


@pytest.mark.parametrize("name", DEVICE_PROGRAMS)
def test_numba_compiles_calls_of_device_functions(compiler, name):
    assert compiler("call", name) == ""


def test_a_device_function_reads_as_written_by_hand():
    def selu(x, alpha=1.67):
        return jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)

    assert jitcore.jit(selu).as_numba_cuda(np.float32(1), 1.0).text.endswith("""
@cuda.jit(device=True)
def selu(x, alpha):
    x = np.float32(x)
    alpha = np.float32(alpha)
    result = x if x > C0 else alpha * math.exp(x) - alpha
    return result
""")


@pytest.mark.parametrize(("function", "args", "named"), [
    (lambda x: jnp.sort(x), [np.ones(9)], "sort"),
    (lambda x: jnp.linalg.eigvalsh(x), [np.ones((3, 3))], "eigh"),
    (lambda x: jitcore.scipy.special.digamma(x), [2.0], "digamma"),
    (lambda x: x + 1, [np.float16(1)], "float16"),
])
def test_what_a_thread_cannot_do_is_named(function, args, named):
    with pytest.raises(NotImplementedError, match=named):
        jitcore.jit(function).as_numba_cuda(*args)
