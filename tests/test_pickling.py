"""Decorated functions of scripts and notebooks travel to other processes, by every library and start method,
and find there what was compiled."""

import os
import pickle
import subprocess
import sys
import textwrap
import types
import typing

import pytest

import jitcore.numpy as jnp

SCRIPT = """
import concurrent.futures, functools, multiprocessing, os, pickle, subprocess, sys
import numpy as np
import jitcore.numpy as jnp
from jitcore import autojit, custom_jvp, grad, hessian, jit, value_and_grad, vmap

X = np.arange(1.0, 5.0)

@jit
def norm(x):
    return jnp.sqrt((x * x).sum())

@autojit
def total(x):
    t = 0.0
    for v in x:
        t += v * v
    return t

@autojit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

@functools.partial(jit, static_argnames="n")
def power(x, n):
    return x ** n

@custom_jvp
def twice(x):
    return 2 * x

twice.defjvp(lambda primals, tangents: (2 * primals[0], 2 * tangents[0]))

class Scale:
    k = 2.0

    @autojit
    def plain(self, x):
        return x * self.k

    @functools.partial(jit, static_argnums=0)
    def traced(self, x):
        return x * 3

def make_closures(k):
    @jit
    def traced(x):
        return x * k

    @autojit
    def plain(x):
        return x + k

    return traced, plain

slope, lambda_, of_library, doubled = jit(grad(norm)), jit(lambda x: x + 1), jit(jnp.sin), jit(twice)
closures = make_closures(3.0)
scale = Scale()
#: What plain pickle takes, as it takes plain functions: globals, their methods and partials.
GLOBALS = {
    "jit": (norm, X), "autojit": (total, X), "recursive autojit": (fibonacci, 7), "partial": (functools.partial(power, n=2), X),
    "bound jit": (scale.traced, X), "bound autojit": (scale.plain, X), "jit of grad": (slope, X), "jit of a lambda": (lambda_, X),
    "jit of a function of jitcore": (of_library, X), "function of jitcore": (jnp.cumsum, X), "activation": (__import__("jitcore").nn.relu, X),
    "custom_jvp": (twice, X), "jit of custom_jvp": (doubled, X),
}
#: What only cloudpickle and dill take.
OTHERS = {
    "closure": (closures[0], X), "autojit closure": (closures[1], X), "grad": (grad(norm), X), "vmap": (vmap(norm), X.reshape(2, 2)),
    "value_and_grad": (value_and_grad(norm), X), "hessian": (hessian(norm), X), "jit of vmap": (jit(vmap(norm)), X.reshape(2, 2)),
    "autojit lambda": (autojit(lambda x: x - 1), X), "local jit": (jit(functools.partial(power, n=3)), X),
}

def call(function, x):
    # Several calls: those that a known signature serves too.
    results = [str(function(x)) for _ in range(4)]
    assert len(set(results)) == 1
    info = getattr(function, "cache_info", None)
    return results[0], info and info().compiles

def call_all(table):
    return {name: call(function, x) for name, (function, x) in table.items()}

def check(got, table):
    assert got.keys() == table.keys()
    for name, (result, compiles) in got.items():
        function, x = table[name]
        assert result == str(function(x)), name
        assert not compiles, (name, compiles)  # the disk has it
"""


RECEIVER = """
import pickle, sys

got = {}
for name, text in pickle.load(sys.stdin.buffer).items():
    function, x = pickle.loads(text)
    results = {str(function(x)) for _ in range(4)}
    info = getattr(function, "cache_info", None)
    got[name] = results.pop(), info and info().compiles
    assert not results, name
sys.stdout.buffer.write(pickle.dumps(got))
"""


def run_script(tmp_path, body, **environment):
    """Runs the script with a body as its main module. Returns: what it printed."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + "\nif __name__ == '__main__':\n" + textwrap.indent(textwrap.dedent(body), "    "))
    env = {**os.environ, "JITCORE_CACHE_DIR": str(tmp_path / "cache"), **environment}
    result = subprocess.run([sys.executable, path], timeout=200, capture_output=True, text=True, env=env, cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_processes_by_every_start_method(tmp_path):
    run_script(tmp_path, """
        call_all(GLOBALS)
        for method in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(1) as pool:
                got = {name: pool.apply_async(call, (function, x)).get(60) for name, (function, x) in GLOBALS.items()}
            if method == "fork":  # has counted what the parent compiled
                got = {name: (result, 0) for name, (result, _) in got.items()}
            check(got, GLOBALS)
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            assert [float(v) for v in pool.map(norm, [X, 2 * X])] == [float(norm(X)), float(norm(2 * X))]
            assert list(pool.map(total, [X, 2 * X])) == [total(X), total(2 * X)]
        """)


def test_a_process_without_the_script(tmp_path):
    """What a script sends by cloudpickle, another one, without these functions, runs."""
    pytest.importorskip("cloudpickle")
    (tmp_path / "receiver.py").write_text(RECEIVER)
    run_script(tmp_path, """
        import cloudpickle
        both = {**GLOBALS, **OTHERS}
        call_all(both)
        sent = {name: cloudpickle.dumps((function, x)) for name, (function, x) in both.items()}
        result = subprocess.run([sys.executable, "receiver.py"], input=pickle.dumps(sent), capture_output=True)
        assert result.returncode == 0, result.stderr.decode()
        check(pickle.loads(result.stdout), both)
        """)


def test_dill(tmp_path):
    """Copies, made in the process that has the script's globals: to another one dill does not send them."""
    pytest.importorskip("dill")
    run_script(tmp_path, """
        import dill, warnings
        warnings.simplefilter("ignore", dill.PicklingWarning)  # the class in __main__
        both = {**GLOBALS, **OTHERS}
        call_all(both)
        copies = {name: (dill.loads(dill.dumps(function)), x) for name, (function, x) in both.items()}
        got = call_all(copies)
        check({name: (result, 0) for name, (result, _) in got.items()}, both)
        """)


def test_joblib(tmp_path):
    pytest.importorskip("joblib")
    run_script(tmp_path, """
        import joblib
        both = {**GLOBALS, **OTHERS}
        call_all(both)
        for backend in ("loky", "threading", "multiprocessing"):
            table = GLOBALS if backend == "multiprocessing" else both
            jobs = (joblib.delayed(function)(x) for function, x in table.values())
            results = joblib.Parallel(n_jobs=2, backend=backend)(jobs)
            assert [*map(str, results)] == [str(function(x)) for function, x in table.values()]
        """)


def test_functions_of_the_library_are_found_by_name():
    from jitcore import lax, nn

    for module in (jnp, jnp.fft, lax, nn):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            is_type = isinstance(value, (type, types.GenericAlias, typing._GenericAlias))
            if callable(value) and not name.startswith("_") and not is_type:
                assert pickle.loads(pickle.dumps(value)) is value, name
