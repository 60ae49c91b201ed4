"""What holds for every test: nothing comes from disk, so that compiles can be counted, and nothing stays there.

Processes that tests start inherit it; tests of the disk cache name a folder of their own.
"""

import ctypes
import gc
import os
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest

os.environ["JITCORE_CACHE_DIR"] = ""
os.environ["JITCORE_RAISE_DEFECTS"] = "1"  # else one of ours is a loop that is unrolled, a call that Python runs
# Idle threads of OpenBLAS sleep. As they are, they keep the processors from the other test processes.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

# Examples of a test that does not say how many: compiling takes long.
hypothesis.settings.register_profile("default", max_examples=40, deadline=None, database=None)
hypothesis.settings.load_profile("default")

_STATM = Path("/proc/self/statm")
_RISE = 1_000_000_000  # bytes by which a test process may grow before it drops what JAX has compiled
_most_resident = 1_500_000_000


def pytest_addoption(parser):
    parser.addoption("--backend", default="", help="the default backend of all tests, such as xla")


def pytest_configure(config):
    name = config.getoption("--backend")
    if name:
        from jitcore.config import config as settings

        os.environ["JITCORE_DEFAULT_BACKEND"] = name  # of processes that tests start
        settings.update("default_backend", name)


def pytest_collection_finish():
    freeze()
    for module in [module for name, module in sys.modules.items() if name.startswith("tests.")]:
        for value in vars(module).values():
            if isinstance(value, np.random.Generator):
                _generators.append((value.bit_generator, value.bit_generator.state))


#: Random generators of test modules, with the states that they began with.
_generators: list = []


def freeze() -> None:
    """Collections of garbage, which many tests ask for, need not look at what is there: tens of thousands of
    tests, libraries, results."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """What a test draws does not depend on the tests before it."""
    for generator, state in _generators:
        generator.state = state


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Bounds the memory of test processes: JAX, the reference of many tests, keeps about a megabyte for each
    of its thousands of operations and shapes, and programs for the CUDA device in software take several; and
    what was frozen while it was needed is not collected."""
    global _most_resident
    if nextitem is None or nextitem.path != item.path:
        freeze()
    if _STATM.exists() and count_resident() > _most_resident:
        for name in ("jax", "jitcore"):
            if name in sys.modules:
                sys.modules[name].clear_caches()
        gc.unfreeze()
        gc.collect()
        if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)
        _most_resident = max(_most_resident, count_resident() + _RISE)


def count_resident() -> int:
    """Bytes of memory that this process holds. Linux tells."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- JAX's answers ----------------------------------------------------------------------------------------------
#: Tests of the CPU backend, of what it alone gets, and of processes and memory as they are with it.
_OF_CPU = ("tests/backends", "tests/schedule", "tests/loopir", "tests/passes", "tests/autojit", "tests/numpy_semantics",
           *(f"tests/test_{name}.py" for name in (
               "benchmarks", "cli", "docs_examples", "memory", "numba_export", "oracles", "pickling", "processes")))


def _is_left_out(item) -> bool:
    """Whether a test is one of the CPU backend, and another one is tested."""
    path = item.nodeid.partition("::")[0]
    is_of_cpu = path.startswith(_OF_CPU) and not path.endswith("test_primitives.py")
    return bool(item.config.getoption("--backend")) and (is_of_cpu or item.get_closest_marker("cpu") is not None)


def pytest_collection_modifyitems(config, items):
    """Tests that ask JAX by `tests.jax_answers` are marked: `-m jax` asks it anew."""
    left_out = [item for item in items if _is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _is_left_out(item)]
    known: dict[object, bool] = {}
    for item in items:
        module = getattr(item, "module", None)
        if module not in known:
            known[module] = _uses_answers(module)
        if known[module]:
            item.add_marker("jax")


def _uses_answers(module) -> bool:
    """Whether a module, or a helper of the tests that it imports from, has `jax` of `tests.jax_answers`."""
    values = list(vars(module).values()) if module is not None else []
    helpers = {getattr(value, "__module__", "") for value in values if callable(value)}
    helpers = {name for name in helpers if isinstance(name, str) and name.startswith("tests.")}
    values += [value for name in helpers for value in vars(sys.modules.get(name, sys)).values()]
    return any(type(value).__name__ == "_Jax" for value in values)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    if item.get_closest_marker("jax") is None:
        return (yield)
    from tests.jax_answers import asked

    module = Path(item.nodeid.partition("::")[0]).with_suffix("").as_posix().replace("/", ".")
    is_drawn = getattr(item.obj, "is_hypothesis_test", False)  # what is asked differs from run to run
    test = "" if is_drawn else _name_test(item)
    asked.begin(module.removeprefix("tests."), test, is_drawn or _asks_jax(item.config))
    try:
        return (yield)
    finally:
        asked.end()


def _name_test(item) -> str:
    """A test without the file, and without what `tests.codegens` adds: JAX is asked the same."""
    name, params = item.nodeid.partition("::")[2], getattr(getattr(item, "callspec", None), "params", {})
    codegen = params.get("codegen", "")
    return name.replace(f"[{codegen}-", "[").replace(f"[{codegen}]", "") if codegen else name


def _asks_jax(config) -> bool:
    return "jax" in config.option.markexpr.split()


def pytest_sessionfinish(session):
    """Stores what JAX answered. Of a module that ran as a whole, answers of tests that are gone are dropped."""
    if not _asks_jax(session.config) or hasattr(session.config, "workerinput"):
        return
    from tests.jax_answers import asked

    for module in asked.modules.values():
        if module.is_new:
            module.write(set(module.answers))
