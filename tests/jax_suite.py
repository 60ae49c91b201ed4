"""JAX's own tests, run on jitcore from a checkout of JAX.

    python -m tests.jax_suite CHECKOUT lax_numpy_test.py linalg_test.py -k Solve

In: a checkout of jax-ml/jax at the version in `jitcore.jax.__version__`, file names in its folder `tests`, and
options of pytest. absl-py must be importable. Out: pytest's output, a table of counts, and with
`--reasons FILE` a line of JSON for each test that did not pass. `docs/conformance.md` has the results.

`jax` is `jitcore.jax` there. The tests also read JAX's private modules: what these have in public too is
taken from there, what tests need of them around the calls is stood in for below, and a test that uses
anything else of them is skipped as one of JAX's internals.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import importlib.util
import itertools
import json
import math
import os
import re
import sys
import types
import unittest
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import jitcore
import jitcore.jax as jax
from jitcore.config import FLAGS, config, find_flag
from jitcore.dtypes import inexact_dtype
from jitcore.errors import TypePromotionError

#: Modules that are read from the checkout: JAX's helpers for tests, and its libraries of examples.
_OF_CHECKOUT = ("jax._src.test_util", "jax._src.public_test_util", "jax._src.test_loader",
                "jax._src.test_warning_util", "jax._src.internal_test_util", "jax.example_libraries",
                "jax._src.hypothesis_test_util", "jax.experimental.sparse.test_util")
#: Where a name of a private module is looked for in public; () for those that have nothing public.
_PUBLIC = ("", "numpy", "lax", "dtypes", "tree_util", "errors", "random", "numpy.linalg", "scipy.special",
           "lax.linalg", "custom_derivatives", "custom_batching", "sharding", "typing", "nn", "stages", "debug",
           "ad_checkpoint", "api_util")


class Internal:
    """A name of JAX's internals: nothing while modules are read, and a skipped test when used in one."""

    def __init__(self, name: str):
        self.__dict__["__name__"] = self.__dict__["__qualname__"] = name

    def _use(self, *values: Any, **named: Any) -> Any:
        if _is_testing:
            raise unittest.SkipTest(f"internals: {self.__name__}")
        return values[0] if len(values) == 1 and callable(values[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return (lambda: None) if name == "cache_clear" else Internal(f"{self.__name__}.{name}")

    def __iter__(self):
        self._use()
        return iter(())

    def __bool__(self):
        self._use()
        return False

    def __len__(self):
        return int(bool(self))

    def __mro_entries__(self, bases):
        return ()

    def __repr__(self):
        return self.__name__

    __call__ = __getitem__ = __setitem__ = __setattr__ = __enter__ = __instancecheck__ = __or__ = __ror__ = _use
    __exit__ = __add__ = __sub__ = __lt__ = __gt__ = __subclasscheck__ = _use

    def __eq__(self, other):
        if self is not other:
            self._use()
        return self is other

    def __hash__(self):
        return id(self)


_is_testing, _checkout = False, Path()


# -- stand-ins for what tests do around the calls -----------------------------------------------------------------
class _Nothing(contextlib.nullcontext, contextlib.ContextDecorator):
    """A flag that is not there, set."""


class _Flag:
    """One of JAX's flags, as its tests read and set it; flags that jitcore does not have do nothing."""

    def __init__(self, name: str, default: Any = None):
        self.name, self.default = name.removeprefix("jax_"), default

    @property
    def value(self) -> Any:
        flag = _find_flag(self.name)
        value = self.default if flag is None else getattr(config, flag.name)
        return self.name not in _SWITCHES and value or bool(value)

    def __call__(self, value: Any = True) -> Any:
        flag = _find_flag(self.name)
        if flag is None or value is None or flag.name == "check_jaxprs" or flag.name == "traceback_filtering":
            return _Nothing()
        return config.override(**{flag.name: value})

    def __getattr__(self, name):
        return Internal(f"config.{self.name}.{name}")


_SWITCHES = ("enable_x64", "enable_checks", "disable_jit", "debug_nans", "debug_infs", "check_tracer_leaks")


def _find_flag(name: str) -> Any:
    try:
        return find_flag(name)
    except Exception:
        return None


class _Flags(dict):
    def __missing__(self, name):
        return self.setdefault(name, _Flag(name))


class _ConfigModule(types.ModuleType):
    """`jax._src.config`."""

    def __init__(self, name):
        super().__init__(name)
        self.config, self.config_states, self.values = self, _Flags(), {}

    def _read(self, name):
        return self.config_states[name].value

    def update(self, name, value):
        flag = _find_flag(name)
        if flag is not None and flag.name in FLAGS and value is not None:
            config.update(flag.name, value)

    def parse_flags_with_absl(self):
        pass

    def int_flag(self, name, default, *_, **__):
        return _Flag(name, default)

    bool_flag = string_flag = enum_flag = float_flag = int_flag

    def bool_env(self, name, default, *_):
        return os.environ.get(name, str(default)).lower() in ("1", "true")

    def int_env(self, name, default):
        return int(os.environ.get(name, default))

    FLAGS = property(lambda self: self)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(config, name) if name.startswith("jax_") and _find_flag(name) else self.config_states[name]


class _Device:
    platform, platform_version, device_kind = "cpu", "cpu", "cpu"


def _to_type(dtype: Any) -> Any:
    return dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)


def _canonicalize(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """As JAX does it. jitcore keeps what is given in 64 bits, which the tests do not mind then."""
    found = jax.dtypes.canonicalize_dtype(dtype)
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
    return found if config.enable_x64 else np.dtype(narrow.get(found.name, found))


def _default_types() -> dict[str, Any]:
    return {"b": lambda: np.dtype(bool), "i": lambda: jitcore.numpy.asarray(0).dtype,
            "u": lambda: _canonicalize("uint64"), "f": lambda: jitcore.numpy.asarray(0.).dtype,
            "c": lambda: jitcore.numpy.asarray(0j).dtype}


def _dtype_of(x: Any, **_: Any) -> np.dtype:
    python = {bool: "b", int: "i", float: "f", complex: "c"}
    kind = python.get(x if isinstance(x, type) else type(x))
    if kind is not None:
        return _default_types()[kind]()
    if hasattr(x, "dtype"):
        return x.dtype
    return np.dtype(x) if isinstance(x, (str, type)) else np.asarray(x).dtype


def _find_common(*values: Any) -> np.dtype:
    """As JAX's helpers find it, whatever the flag forbids users."""
    with config.override(numpy_dtype_promotion="standard"):
        return jitcore.numpy.result_type(*values)


def _promote(*values: Any) -> list[Any]:
    dtype = _find_common(*values)
    return [jitcore.numpy.asarray(v, dtype) for v in values]


def _promote_inexact(*values: Any) -> list[Any]:
    dtype = _find_common(*values)
    if not np.issubdtype(dtype, np.inexact) and dtype.kind in "biu":
        dtype = jitcore.numpy.asarray(0.).dtype
    return [jitcore.numpy.asarray(v, dtype) for v in values]


def _split(values: Any, counts: Any) -> list:
    values, parts = list(values), []
    for count in counts:
        parts.append(values[:count])
        values = values[count:]
    return [*parts, values]


def _zip(*lists: Any) -> list:
    lists = [list(each) for each in lists]
    assert len({len(each) for each in lists}) <= 1, f"length mismatch: {[len(each) for each in lists]}"
    return list(zip(*lists, strict=True))


def _replace(values: Any, pairs: Any) -> tuple:
    values = list(values)
    for place, value in pairs:
        values[place] = value
    return tuple(values)


def _concatenate(lists: Any) -> list:
    return list(itertools.chain.from_iterable(lists))


_cached = types.SimpleNamespace(cache_info=lambda: types.SimpleNamespace(misses=0, hits=0))
_STAND_INS: dict[str, dict[str, Any]] = {
    "core": {"reset_trace_state": lambda: True, "trace_state_clean": lambda: True, "Tracer": jax.core.Tracer
             if hasattr(jax, "core") else Internal("core.Tracer"), "TracerArrayConversionError":
             jax.errors.TracerArrayConversionError},
    "dispatch": {"xla_primitive_callable": _cached, "PmapPrimitive": ()},
    "compilation_cache": {"_cache": None},
    "deprecations": {"is_accelerated": lambda name: False},
    "xla_bridge": {"get_backend": lambda *_: _Device, "local_devices": jitcore.local_devices,
                   "device_count": lambda *_: 1, "process_count": lambda *_: 1},
    "cloud_tpu_init": {"running_in_cloud_tpu_vm": False, "is_libtpu_at_least": lambda *_: False},
    "lib": {"version": (0, 10, 2), "jaxlib_extension_version": 10**6, "cuda_versions": None},
    "dtypes": {"canonicalize_dtype": _canonicalize, "default_types": _default_types(), "dtype": _dtype_of,
               "float0": jax.dtypes.float0, "TypePromotionError": TypePromotionError,
               "default_int_dtype": _default_types()["i"], "default_float_dtype": _default_types()["f"],
               "finfo": jitcore.numpy.finfo, "iinfo": jitcore.numpy.iinfo,
               "python_scalar_types_to_dtypes": dict(zip((bool, int, float, complex), map(np.dtype, "bifF"))),
               "to_complex_dtype": lambda d: np.result_type(d, np.complex64), "to_inexact_dtype": inexact_dtype, "to_numeric_dtype": lambda d: np.dtype(np.int32)
               if np.dtype(d) == bool else np.dtype(d), "default_uint_dtype": _default_types()["u"],
               "default_complex_dtype": _default_types()["c"], "bfloat16": ml_dtypes.bfloat16, "_intn_dtypes": [], "_custom_float_dtypes": [], "bool_": np.dtype(bool),
               "_jax_dtype_set": {*map(np.dtype, "? b h i q B H I Q e f d F D".split())},
               "python_scalar_types": (bool, int, float, complex), "promote_types": jitcore.numpy.promote_types},
    "numpy.util": {"promote_dtypes": _promote, "promote_dtypes_inexact": _promote_inexact,
                   "promote_dtypes_complex": lambda *values: [jitcore.numpy.asarray(
                       v, _find_common(*values, np.complex64)) for v in values]},
    "util": {"safe_zip": _zip, "safe_map": lambda f, *lists: [f(*each) for each in _zip(*lists)],
             "unzip2": lambda pairs: tuple(map(tuple, zip(*pairs, strict=True))) or ((), ()), "split_list": _split,
             "concatenate": _concatenate, "NumpyComplexWarning": np.exceptions.ComplexWarning,
             "install_failure_signal_handler": lambda: None, "subvals": _replace, "tuple_insert": lambda t, i, v: (*t[:i], v, *t[i:]),
             "tuple_delete": lambda t, i: (*t[:i], *t[i + 1:]), "cache": lambda *a, **k: functools.cache,
             "foreach": lambda f, *lists: [f(*each) for each in _zip(*lists)] and None},
    "test_util": {},
}


class _Private(types.ModuleType):
    """A private module of JAX's: its stand-ins, what is public of it, and internals."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__ = []
        self._own = name.removeprefix("jax._src").lstrip(".")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        place = _checkout.joinpath(*self.__name__.split("."), name)
        if place.is_dir() or place.with_suffix(".py").exists():
            return importlib.import_module(f"{self.__name__}.{name}")
        table = _STAND_INS.get(self._own, {})
        if name in table:
            return table[name]
        for place in dict.fromkeys((self._own, *_PUBLIC)):
            with contextlib.suppress(ImportError, AttributeError):
                return getattr(importlib.import_module("jitcore.jax" + (place and "." + place)), name)
        return Internal(f"{self.__name__}.{name}")


class _Finder:
    """Finds `jax` and what is in it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.split(".")[0] not in ("jax", "jaxlib"):
            return None
        if name.startswith(_OF_CHECKOUT):
            place = _checkout.joinpath(*name.split("."))
            if place.is_dir():
                return importlib.util.spec_from_file_location(
                    name, place / "__init__.py", submodule_search_locations=[str(place)])
            if place.with_suffix(".py").exists():
                return importlib.util.spec_from_loader(
                    name, SourceFileLoader(name, str(place.with_suffix(".py"))))
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        if spec.name == "jax":
            return jax
        if spec.name == "jax._src.config":
            return _ConfigModule(spec.name)
        if spec.name.startswith(("jax._src", "jaxlib", "jax.extend", "jax.interpreters", "jax.lib")):
            return _Private(spec.name)
        try:
            return importlib.import_module("jitcore." + spec.name)
        except ModuleNotFoundError:
            return _Private(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _decorate(decorate: Any, kind: Any, cases: Any) -> Any:
    """absl's parametrizing of a test; of no cases, which absl refuses, no test."""
    cases = list(cases)
    if len(cases) == 1 and not isinstance(cases[0], (tuple, dict, str)):
        cases = list(cases[0])
    cases = [case if isinstance(case, (tuple, list, dict)) else (case,) for case in cases]
    return decorate(kind, cases) if cases else lambda function: None


def install(checkout: Path) -> None:
    """Have `import jax` give jitcore's names, in this process."""
    global _checkout
    _checkout = checkout
    sys.meta_path.insert(0, _Finder())
    sys.modules["jax"] = jax
    sys.modules["jitcore.backends.xla.client"] = None  # which would take jitcore for XLA
    for name in ("legacy_prng_key", "debug_key_reuse", "transfer_guard", "transfer_guard_host_to_device"):
        if not hasattr(jax, name):
            setattr(jax, name, lambda *_: _Nothing())
    for package in ("jax.experimental", "jax.experimental.sparse"):
        module = importlib.import_module(package)
        for place in checkout.joinpath(*package.split(".")).iterdir():
            if place.suffix in ("", ".py") and place.stem != "__init__" and not hasattr(module, place.stem):
                setattr(module, place.stem, importlib.import_module(f"{package}.{place.stem}"))
    jet = importlib.import_module("jitcore.experimental.jet")
    jet.fact, jet.zero_series = math.factorial, Internal("jet.zero_series")
    jax.config = importlib.import_module("jax._src.config")
    parameterized = importlib.import_module("absl.testing.parameterized")
    decorate = parameterized._parameter_decorator
    parameterized._parameter_decorator = lambda kind, cases: _decorate(decorate, kind, cases)
    helpers = importlib.import_module("jax._src.test_util")
    for name in ("count_events", "count_primitive_compiles", "count_subjaxpr_to_hlo_conversion",
                 "collect_lowered_jaxprs", "count_internal_device_puts"):
        setattr(helpers, name, Internal(f"test_util.{name}"))
    for name in dir(helpers):
        if name.startswith("count_") or name == "assert_num_jit_and_pmap_compilations":
            setattr(helpers, name, Internal(f"test_util.{name}"))
    helpers.iter_eqns = Internal("test_util.iter_eqns")


def _is_about_text(reason: str) -> bool:
    """Whether the right class of error came with other words than JAX's."""
    first = reason.split("\n")[0]
    return first.startswith("AssertionError: ") and " does not match " in reason


#: JAX's primitives, which are `jax.lax.add_p` and the like.
_PRIMITIVE = re.compile(r"has no attribute '\w+_p'")


class Plugin:
    """Tells whether a test is running, and counts."""

    def __init__(self, reasons: Path | None):
        self.counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        self.reasons = reasons and reasons.open("w")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        global _is_testing
        _is_testing = True
        try:
            return (yield)
        finally:
            _is_testing = False

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        file, _, test = report.nodeid.partition("::")
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message if crash else str(report.longrepr or "")
        outcome = report.outcome
        if "internals:" in reason or report.failed and _PRIMITIVE.search(reason.split("\n")[0]):
            outcome = "internals"
        if outcome == "failed" and _is_about_text(reason):
            outcome = "text"
        self.counts[Path(file).name][outcome] += 1
        if self.reasons and outcome != "passed":
            json.dump({"file": Path(file).name, "test": test, "outcome": outcome, "reason": reason}, self.reasons)
            self.reasons.write("\n")
            self.reasons.flush()

    def pytest_terminal_summary(self, terminalreporter):
        write = terminalreporter.write_line
        write("| file | collected | passed | failed | text | skipped | internals |\n|---|---|---|---|---|---|---|")
        for file, counts in sorted(self.counts.items()):
            numbers = [counts.total(), *(counts[each] for each in ("passed", "failed", "text", "skipped",
                                                                "internals"))]
            write(" | ".join([f"| {file}", *map(str, numbers)]) + " |")


def main(arguments: list[str]) -> int:
    """Run the named files of the checkout; see the module."""
    checkout, rest, reasons = Path(arguments[0]), arguments[1:], None
    if "--reasons" in rest:
        place = rest.index("--reasons")
        reasons = Path(rest[place + 1])
        del rest[place:place + 2]
    install(checkout)
    files = [str(checkout / "tests" / each) if each.endswith(".py") else each for each in rest]
    return pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(checkout), "-c", os.devnull,
                        "--tb=short", "-W", "ignore", *files], plugins=[Plugin(reasons)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
