"""Every flag of jitcore, once: its name, type, default, meaning and whether it changes a trace.

In: `JITCORE_*` environment variables (read once, at import), `config.update` (all threads) and
`config.override` (this thread, inside a `with`). Out: plain attribute reads such as `config.enable_x64`, and
`config.trace_key`, which every cache of traced programs puts into its keys. Stage: before all others; this
module imports only the lock that its values need.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import namedtuple
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from operator import attrgetter

from jitcore.process.concurrency import Lock
from jitcore.process.lazy import LazyModule

TYPE_CHECKING = False  # as `typing` has it, which takes long to load
if TYPE_CHECKING:
    from typing import Any

difflib = LazyModule("difflib")

__all__ = ["FLAGS", "Config", "Flag", "check_tracer_leaks", "checking_leaks",
           "config", "debug_infs", "debug_nans", "default_matmul_precision", "default_prng_impl",
           "disable_jit", "enable_checks", "enable_custom_prng", "enable_x64", "explain_cache_misses",
           "log_compiles", "no_tracing", "numpy_dtype_promotion", "numpy_rank_promotion",
           "threefry_partitionable"]


_FIELDS = "name type default affects_trace doc choices aliases process_wide"


class Flag(namedtuple("Flag", _FIELDS, defaults=((), (), False))):
    """One row of the flag table.

    `affects_trace`: a program traced or compiled under one value must not be reused under another.
    `choices`: the accepted strings of a `str` flag, empty when any string is accepted.
    `aliases`: other names under which JAX's scripts set the same thing.
    `process_wide`: the flag rules something that all threads share, so that no thread can override it."""

    __slots__ = ()

    def describe_accepted(self) -> str:
        """The accepted values in words, for error messages."""
        if self.type is bool:
            return f"True or False (in the environment: {', '.join(_TRUE_TEXTS + _FALSE_TEXTS)})"
        if self.type is int:
            return "an integer of at least 0"
        return " or ".join(map(repr, self.choices)) if self.choices else "a string"


_ROWS = (
    Flag("enable_x64", bool, False, True,
         "Python scalars and creation functions default to 64 bits instead of 32."),
    Flag("disable_jit", bool, False, True,
         "jit runs the Python function itself, operation by operation."),
    Flag("check_tracer_leaks", bool, False, True,
         "After each trace, raise when a tracer of it is still reachable."),
    Flag("threefry_partitionable", bool, True, True,
         "A random number is a hash of its position, as in JAX; off: of counters, as in JAX before 0.5."),
    Flag("rewrite", bool, False, True,
         "jit compiles plain Python if/while/for on traced values; jit(..., rewrite=...) overrides it."),
    Flag("check_bounds", bool, False, True,
         "A dynamic index outside its axis raises IndexError instead of being clamped or dropped."),
    Flag("check_jaxprs", bool, False, False,
         "Run the specification of each intermediate form before and after every pass.",
         aliases=("enable_checks",)),
    Flag("raise_defects", bool, False, False,
         "An error inside jitcore is raised while code is rewritten, where else Python's own way is taken."),
    Flag("debug_nans", bool, False, True,
         "Raise FloatingPointError as soon as an operation or a compiled function produces a NaN."),
    Flag("debug_infs", bool, False, True,
         "Raise FloatingPointError as soon as an operation or a compiled function produces an infinity."),
    Flag("no_tracing", bool, False, False,
         "jit raises RuntimeError where it would trace a function; what is compiled already runs."),
    Flag("num_threads", int, 0, False,
         "Threads of a parallel kernel; 0: OMP_NUM_THREADS, else one for each core this process may use.",
         process_wide=True),
    Flag("default_backend", str, "", True,
         "Backend of calls that name none, or several with commas; empty means the best one found.",
         aliases=("platform_name", "platforms", "default_device")),
    Flag("num_cpu_devices", int, 1, True,
         "Devices that the processor is shown as; several are XLA's, whose backend serves it then."),
    Flag("codegen", str, "llvm", True,
         "What makes code of loop programs where compiler_options do not say; 'python' compiles nothing.",
         choices=("llvm", "numba", "python")),
    Flag("cache_size", int, 4096, False,
         "Compiled programs kept in memory; beyond it the least recently used one is dropped."),
    Flag("loop_checkpoint_bytes", int, 256 << 20, True,
         "Bytes that reverse mode may keep of the states of one loop; beyond it they are computed again."),
    Flag("cache_dir", str, "auto", False,
         "Folder for compiled programs; 'auto' is the system's place for caches, empty means none."),
    Flag("cache_disk_bytes", int, 256 << 20, False,
         "Bytes that this folder may hold; beyond it the least recently used files go."),
    Flag("gpu_memory_limit", int, 0, False,
         "Bytes that arrays may take of a GPU, from its first use on; 0: all that is free.",
         process_wide=True),
    Flag("gpu_memory_kept", int, 4 << 30, False,
         "Bytes of a GPU kept for later arrays, from its first use on; at most a quarter of its memory.",
         process_wide=True),
    Flag("gpu_libraries", bool, True, False,
         "Whether cuSOLVER, cuBLAS and cuFFT compute on GPUs what they have, where bindings are installed.",
         process_wide=True),
    Flag("announce_compiles", bool, True, False,
         "Who waits in a terminal or notebook for more than 2 s sees what is compiled, until it is done."),
    Flag("log", str, "", False,
         "Lines on standard error about what is compiled and why: 'info', or 'debug' for all; '' for none.",
         choices=("", "info", "debug")),
    Flag("log_compiles", bool, False, False,
         "What is traced and compiled is logged as warnings, which Python shows unless told otherwise."),
    Flag("explain_cache_misses", bool, False, False,
         "Why no known signature served a call is logged as a warning."),
    Flag("code_map", str, "", False,
         "How profilers and debuggers learn names of compiled code: 'perf' writes /tmp/perf-PID.map, "
         "'jitdump' ./jit-PID.dump, 'gdb' registers it with GDB, 'all' does all of it; '' nothing.",
         choices=("", "perf", "jitdump", "gdb", "all"), process_wide=True),
    Flag("traceback_filtering", bool, True, False,
         "Tracebacks that reach the user show no frames of jitcore or of the compiler."),
    Flag("numpy_dtype_promotion", str, "standard", True,
         "'strict' refuses to promote implicitly between different dtypes.", choices=("standard", "strict")),
    Flag("numpy_rank_promotion", str, "allow", True,
         "What happens where arrays of different ranks are broadcast: nothing, a warning or a ValueError.",
         choices=("allow", "warn", "raise")),
    Flag("default_matmul_precision", str, "", True,
         "The precision of products that name none, on TPUs and of NVIDIA's libraries; processors have one.",
         choices=("", "default", "high", "highest", "bfloat16", "tensorfloat32", "float32")),
    Flag("default_prng_impl", str, "threefry2x32", True,
         "How keys that name no implementation draw: by Threefry, or by XLA's generator of bits.",
         choices=("threefry2x32", "rbg", "unsafe_rbg")),
    Flag("enable_custom_prng", bool, False, True, "`random.PRNGKey` gives typed keys, as `random.key` does."),
)

FLAGS: dict[str, Flag] = {flag.name: flag for flag in _ROWS}
#: Options of JAX about its compiler, caches, transfers and logs. No value depends on them: they are accepted.
_ACCEPTED = frozenset("""
    captured_constants_warn_bytes compilation_cache_dir compilation_cache_max_size
    cpu_collectives_implementation cpu_enable_async_dispatch cuda_visible_devices debug_key_reuse
    disable_most_optimizations dump_ir_modes dump_ir_to enable_compilation_cache enable_pgle
    include_debug_info_in_dumps include_full_tracebacks_in_locations legacy_prng_key logging_level
    persistent_cache_enable_xla_caches persistent_cache_min_compile_time_secs
    persistent_cache_min_entry_size_bytes pprint_use_color raise_persistent_cache_errors
    softmax_custom_jvp traceback_in_locations_limit transfer_guard use_shardy_partitioner xla_backend
    """.split())
_FLAG_OF_NAME = {name: flag for flag in _ROWS for name in (flag.name, *flag.aliases)}
#: What a trace depends on. `mesh` is no flag: `sharding.Mesh` and `set_mesh` set the current one.
_TRACE_FLAGS = (*(flag.name for flag in _ROWS if flag.affects_trace), "mesh")
_TRUE_TEXTS, _FALSE_TEXTS = ("1", "true", "on", "yes"), ("0", "false", "off", "no")
_BOOL_OF_TEXT = dict.fromkeys(_TRUE_TEXTS, True) | dict.fromkeys(_FALSE_TEXTS, False)
_TRACEBACK_WORDS = ("off", "auto", "tracebackhide", "remove_frames", "quiet_remove_frames")
_PREFIXES = ("jitcore_", "jax_")
ENVIRONMENT_PREFIX = "JITCORE_"


def _shorten(name: str) -> str:
    """A name without its prefix."""
    short = name.lower()
    for prefix in _PREFIXES:
        short = short.removeprefix(prefix)
    return short


def find_flag(name: str) -> Flag:
    """The row of `name`, which may carry the prefix `jax_` or `jitcore_`.

    Raises: AttributeError naming close matches."""
    short = _shorten(name)
    if (flag := _FLAG_OF_NAME.get(short)) is not None:
        return flag
    close = difflib.get_close_matches(short, _FLAG_OF_NAME, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the flags are {', '.join(FLAGS)}."
    raise AttributeError(f"Unrecognized config option: {name}; {hint}")


def check_value(flag: Flag, value: Any, source: str) -> bool | int | str:
    """`value` as the flag's type. `source` says in an error where the value came from.

    JAX's values too: None for the default of a text, a device for its backend, words for tracebacks.
    Raises: ValueError naming the flag, the value and what is accepted."""
    if flag.name == "traceback_filtering" and value in _TRACEBACK_WORDS:
        value = value != "off"
    elif flag.type is str:
        value = flag.default if value is None else getattr(value, "backend", value)
    if flag.type is bool:
        # An int other than 0 and 1 is more likely a mistake than a truth value.
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
    elif flag.type is int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return int(value)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str) and (not flag.choices or text in flag.choices):
            return text
    raise ValueError(f"{source}: config flag {flag.name} does not accept {value!r}; "
                     f"it takes {flag.describe_accepted()}.")


def parse_environment(environment: Mapping[str, str]) -> dict[str, bool | int | str]:
    """Flag values set by `JITCORE_<FLAG>` variables; an empty variable counts as absent, except where any
    text will do.

    Variables of that prefix that name no flag are left alone: other parts of jitcore, and packages built on
    it, may have their own.
    Raises: ValueError naming the variable, its value and what is accepted."""
    values: dict[str, bool | int | str] = {}
    for flag in _ROWS:
        variable = ENVIRONMENT_PREFIX + flag.name.upper()
        text = environment.get(variable, "").strip()
        if text or (variable in environment and flag.type is str and not flag.choices):
            value: Any = text
            if flag.type is bool:
                value = _BOOL_OF_TEXT.get(text.lower(), text)
            elif flag.type is int and text.isdecimal():
                value = int(text)
            values[flag.name] = check_value(flag, value, f"{variable}={text}")
    return values


class Config(threading.local):
    """The flags as attributes: `config.enable_x64`.

    Global values are class attributes and this thread's overrides are instance attributes of a
    `threading.local`, so that a read is one ordinary attribute look-up and an override hides the global value
    in its own thread only. There is no `__getattr__`, which alone would double the cost of every read.

    Reads accept JAX's spelling too: `config.jax_enable_x64`."""

    mesh: Any = None
    """The current mesh (`sharding.Mesh`), or None."""

    trace_key: int
    """A number that differs whenever a flag with `affects_trace` differs, and is the same again when all of
    them are; it has a meaning in this process only."""

    def update(self, name: str, value: Any) -> None:
        """Set a flag in all threads. `name` may carry JAX's prefix: `config.update("jax_enable_x64", True)`.

        A thread inside `override` of the same flag keeps its own value until it leaves the `with`. Options of
        JAX on which no value depends, such as where compiled programs lie, are accepted and do nothing.
        Raises: AttributeError for an unknown flag, ValueError for a value that the flag does not take."""
        if _shorten(name) in _ACCEPTED:
            return
        flag = find_flag(name)
        _set_global(flag.name, check_value(flag, value, f"config.update({name!r}, ...)"))

    def read(self, name: str) -> Any:
        """The value of a flag, whose name may carry JAX's prefix. Raises: AttributeError for an unknown
        one."""
        return getattr(self, find_flag(name).name)

    def config_with_absl(self) -> None:
        """Does nothing: flags are no options of the command line, which JAX asks absl for."""

    parse_flags_with_absl = config_with_absl

    def override(self, **values: Any) -> AbstractContextManager[None]:
        """Context manager and decorator: set flags in this thread, and set them back at the end.

        Raises: as `update`, when called rather than when entered."""
        checked = {}
        for name, value in values.items():
            flag = find_flag(name)
            if flag.process_wide:
                raise ValueError(
                    f"config.{flag.name} holds for the whole process and cannot be overridden in one thread: "
                    f"write config.update({flag.name!r}, {value!r})")
            checked[flag.name] = check_value(flag, value, f"config.override({name}=...)")
        return Override(checked)

    def subscribe(self, name: str, function: Callable[[Any], None]) -> None:
        """Calls function(value) now and after each `update` of a flag that something outside Python obeys."""
        flag = find_flag(name)
        with _lock:
            _subscribers.setdefault(flag.name, []).append(function)
        function(getattr(self, flag.name))

    def __reduce__(self):
        return "config"  # each process has its own

    def values(self) -> dict[str, bool | int | str]:
        """All flags and their values in this thread, in the order of the table."""
        return {name: getattr(self, name) for name in FLAGS}

    if TYPE_CHECKING:  # The attributes come from the table, which a type checker does not see.

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        # An assignment could mean all threads or this one.
        raise AttributeError(f"config.{name} cannot be assigned: write config.update({name!r}, {value!r}) "
                             f"or with config.override({name}={value!r}).")

    def __repr__(self) -> str:
        return "Config(" + ", ".join(f"{name}={value!r}" for name, value in self.values().items()) + ")"


class Override:
    """The `with` block of `Config.override`; also usable as a decorator.

    One object may be entered again, also while it is active, by one thread at a time; a decorated function
    may run in several threads."""

    __slots__ = ("_saved", "_values")

    def __init__(self, values: dict[str, Any]):
        self._values = values
        # A stack of what each entry must restore, so that one object may be entered while it is active.
        self._saved: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        local = config.__dict__
        with _lock:
            self._saved.append(dict(local))
            local.update(self._values)
            _publish_overrides(local)

    def __exit__(self, *exception: object) -> None:
        local = config.__dict__
        with _lock:
            saved = self._saved.pop()
            for name in self._values:
                if name in saved:
                    local[name] = saved[name]
                else:
                    local.pop(name, None)
            _publish_overrides(local)

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with Override(self._values):
                return function(*args, **kwargs)

        return wrapper


_lock = Lock()
_key_of_values: dict[tuple, int] = {}
# The instance dictionaries of threads that are inside an override: a global update must refresh their key.
_overriding: dict[int, dict[str, Any]] = {}
_subscribers: dict[str, list[Callable[[Any], None]]] = {}


def _find_key(local: Mapping[str, Any]) -> int:
    """The number of the trace-affecting values seen by a thread whose overrides are `local`."""
    values = tuple(local.get(name, Config.__dict__[name]) for name in _TRACE_FLAGS)
    return _key_of_values.setdefault(values, len(_key_of_values))


def _publish_overrides(local: dict[str, Any]) -> None:
    """Make `local`'s trace key agree with its overrides; the caller holds the lock."""
    local.pop("trace_key", None)
    if local:
        local["trace_key"] = _find_key(local)
        _overriding[id(local)] = local
    else:
        _overriding.pop(id(local), None)


def _set_global(name: str, value: bool | int | str) -> None:
    with _lock:
        setattr(Config, name, value)
        Config.trace_key = _find_key({})
        for local in _overriding.values():
            local["trace_key"] = _find_key(local)
        subscribers = list(_subscribers.get(name, ()))
    for function in subscribers:
        function(value)


def set_mesh_everywhere(mesh: Any) -> None:
    """Makes a mesh the current one in all threads."""
    _set_global("mesh", mesh)


def _load_initial_values(environment: Mapping[str, str]) -> None:
    for name, value in ({flag.name: flag.default for flag in _ROWS} | parse_environment(environment)).items():
        setattr(Config, name, value)
    Config.trace_key = _find_key({})


def _define_prefixed_reads() -> None:
    for name, flag in _FLAG_OF_NAME.items():
        for prefix in _PREFIXES:
            setattr(Config, prefix + name, property(attrgetter(flag.name)))
    Config.x64_enabled = property(attrgetter("enable_x64"))  # JAX's older name


_define_prefixed_reads()
_load_initial_values(os.environ)
config = Config()


def enable_x64(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: 64-bit defaults in this thread."""
    return config.override(enable_x64=enable)


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Context manager: `jit` runs Python functions as they are, in this thread."""
    return config.override(disable_jit=disable)


def check_tracer_leaks(check: bool = True) -> AbstractContextManager[None]:
    """Context manager: raise when a tracer outlives its trace, in this thread."""
    return config.override(check_tracer_leaks=check)


def checking_leaks() -> AbstractContextManager[None]:
    """Context manager: the same as `check_tracer_leaks(True)`."""
    return check_tracer_leaks(True)


def enable_checks(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: check each intermediate form against its specification, in this thread."""
    return config.override(check_jaxprs=enable)


def threefry_partitionable(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: JAX's partitionable random scheme in this thread."""
    return config.override(threefry_partitionable=enable)


def debug_nans(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: raise at the first NaN, in this thread."""
    return config.override(debug_nans=enable)


def debug_infs(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: raise at the first infinity, in this thread."""
    return config.override(debug_infs=enable)


def no_tracing(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: `jit` raises where it would trace, in this thread."""
    return config.override(no_tracing=enable)


def log_compiles(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: traces and compiles of this thread are logged as warnings."""
    return config.override(log_compiles=enable)


def explain_cache_misses(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: the reasons of this thread's cache misses are logged as warnings."""
    return config.override(explain_cache_misses=enable)


def default_matmul_precision(precision: str | None = None) -> AbstractContextManager[None]:
    """Context manager: the precision of products that name none, on devices that have several."""
    return config.override(default_matmul_precision=precision or "")


def default_prng_impl(impl: str = "threefry2x32") -> AbstractContextManager[None]:
    """Context manager: how keys draw; "threefry2x32" is the one way that there is."""
    return config.override(default_prng_impl=impl)


def enable_custom_prng(enable: bool = True) -> AbstractContextManager[None]:
    """Context manager: `random.PRNGKey` gives typed keys, in this thread."""
    return config.override(enable_custom_prng=enable)


def numpy_rank_promotion(mode: str = "allow") -> AbstractContextManager[None]:
    """Context manager: whether arrays of different ranks are broadcast, "allow", "warn" or "raise"."""
    return config.override(numpy_rank_promotion=mode)


def numpy_dtype_promotion(mode: str = "standard") -> AbstractContextManager[None]:
    """Context manager: how dtypes meet, "standard" or "strict", in this thread."""
    return config.override(numpy_dtype_promotion=mode)
