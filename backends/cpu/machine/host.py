"""Facts about this machine: its processor, and what else machine code depends on beside its program.

In: what LLVM, the operating system and this installation say. Out: name, features, vector width and cache
sizes; the target that LLVM compiles for, and keys under which what depends on all that (compiler, settings,
sources) is kept on disk. Every fact is found once per process, but for the cores that it may use now. Stage:
before scheduling (tile sizes) and rendering (vector width), and again when code is looked up.

To name a processor and its features as LLVM does takes LLVM. Its answer is kept on disk, so that a process
whose programs all come from there does without; it is asked for by what is cheap to find out.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import os
import re
import sys
from collections.abc import Callable
from typing import NamedTuple

from jitcore import __version__
from jitcore.backends.cpu.machine.tuning import Tuning
from jitcore.backends.cpu.native import objects
from jitcore.dispatch import disk_cache
from jitcore.process.lazy import LazyModule

np = LazyModule("numpy")  # scripts that do without it need not load it
dtypes = LazyModule("jitcore.dtypes")  # which takes 5 ms to load

_CACHE_FOLDER = "/sys/devices/system/cpu/cpu0/cache"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class CacheSizes(NamedTuple):
    """Bytes of data cache that one core sees: first two levels its own, the third as a rule shared."""

    l1: int
    l2: int
    l3: int


# What the smallest common 64-bit processors have, for systems that do not tell.
_DEFAULT_SIZES = CacheSizes(l1=32 << 10, l2=512 << 10, l3=4 << 20)


@functools.cache
def cpu_features() -> frozenset[str]:
    """Names of the instruction-set features that kernels may use, in LLVM's spelling, such as "avx512f".

    They are the features of Numba's target, so settings such as NUMBA_ENABLE_AVX=0 count."""
    listed = find_target().features.split(",")
    return frozenset(feature[1:] for feature in listed if feature.startswith("+"))


@functools.cache
def cpu_name() -> str:
    """LLVM's name of the processor kernels are compiled for, such as "znver4"; "generic" where unknown."""
    return find_target().cpu


def is_zen() -> bool:
    """Whether kernels are compiled for one of AMD's Zen cores."""
    return cpu_name().startswith("znver")


@functools.cache
def native_vector_bytes() -> int:
    """Bytes of the widest vector register: 64 with AVX-512, 32 with AVX, else 16 (SSE2, NEON)."""
    features = cpu_features()
    if "avx512f" in features:
        return 64
    return 32 if "avx" in features else 16


@functools.cache
def list_fused_operations() -> tuple[str, ...]:
    """Operations on arrays of complex numbers of which NumPy makes multiply-adds on this processor."""
    x = np.array([1 + 2.0**-30 + 1j])
    is_rounded = (x * x).real[0] == 2.0**-29  # the square of the real part has one bit more
    return () if is_rounded else ("mul", "square")


@functools.cache
def cache_sizes() -> CacheSizes:
    """Sizes of the data caches from Linux's sysfs; typical ones elsewhere and for levels it does not list."""
    return read_cache_sizes(_CACHE_FOLDER)


def read_cache_sizes(folder: str | os.PathLike) -> CacheSizes:
    """Sizes listed under `folder`, laid out as /sys/devices/system/cpu/cpu0/cache is."""
    found = {}
    for number in itertools.count():
        index = os.path.join(folder, f"index{number}")
        if not os.path.isdir(index):
            break
        try:
            kind, level, size = (_read(os.path.join(index, name)).decode().strip()
                                 for name in ("type", "level", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match and kind in ("Data", "Unified"):
            found[f"l{level}"] = int(match[1]) * _UNITS[match[2]]
    return _DEFAULT_SIZES._replace(**{level: found[level] for level in CacheSizes._fields if level in found})


def _read(path: str | os.PathLike) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# Counts the changes of what is stored; files of another number are not found.
_FORMAT = 2
_COMPILERS = ("llvmlite", "numba")
_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_OPT")
_NUMBA_FILE = ".numba_config.yaml"  # settings of the folder a process was started in
_PROCESSOR_FILE = "/sys/devices/system/cpu/modalias"  # vendor, family, model and features
_CPUINFO_FILE = "/proc/cpuinfo"
_VARYING_FACTS = (b"processor", b"cpu MHz", b"bogomips", b"core id", b"apicid", b"initial apicid")


class Target(NamedTuple):
    """What code is generated for, in LLVM's words; features as "+avx,-avx512f"."""

    triple: str
    cpu: str
    features: str


@functools.cache
def find_target() -> Target:
    """The target of this process. Cost: 0.1 ms when it is known on disk, else 0.2 s for loading LLVM."""
    return Target(*recall("target", _ask_compiler).split("\n"))


def _ask_compiler() -> str:
    from jitcore.backends.cpu.native import translate

    return "\n".join(translate.describe_target())


def recall(name: str, find_out: Callable[[], str]) -> str:
    """A text about this installation that takes a compiler to find out: from disk, if it is there."""
    identity, cache = identify(), disk_cache.open_cache()
    if identity is None or cache is None or not _settings_are_known():
        return find_out()
    key = hashlib.sha256(identity + name.encode()).digest()
    found = cache.find(key)
    if found is not None:
        return found.decode()
    text = find_out()
    if _settings_are_known():
        cache.add(key, text.encode())
    return text


def make_key(*parts: str) -> bytes | None:
    """The key of what is compiled here from these parts; None where code is not kept on disk."""
    identity = identify()
    if identity is None:
        return None
    texts = *find_target(), MACHINE.tuned, *parts
    return hashlib.sha256(identity + "\0".join(texts).encode()).digest()


@functools.cache
def identify() -> bytes | None:
    """A digest, of 32 bytes, of all that is common to the code of this process; None where that cannot be
    told."""
    processor = _read_processor()
    if processor is None or not objects.can_link():
        return None
    settings = [f"{name}={os.environ.get(name)}" for name in _SETTINGS]
    return hashlib.sha256(repr((_FORMAT, _INSTALLED, processor, settings)).encode()).digest()


def _read_processor() -> bytes | None:
    """What Linux says of the processor, or None."""
    try:
        return _read(_PROCESSOR_FILE)
    except OSError:
        pass
    try:
        first = _read(_CPUINFO_FILE).split(b"\n\n", 1)[0]
    except OSError:
        return None
    lines = first.splitlines()
    return b"\n".join(line for line in lines if line.split(b":")[0].strip() not in _VARYING_FACTS)


def _read_version(name: str) -> bytes:
    """What tells a package's versions apart: the file in which it states its own, which is fast to read."""
    for folder in sys.path:
        try:
            return _read(os.path.join(folder, name, "_version.py"))
        except OSError:
            continue
    metadata = importlib.import_module("importlib.metadata")  # which takes 20 ms to load
    try:
        return metadata.version(name).encode()
    except metadata.PackageNotFoundError:  # compiling says what is missing
        return b""


_BACKENDS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

#: The versions of what makes machine code, and its sources as they were when they were imported: somebody
#: may be editing them.
_INSTALLED = hashlib.sha256(
    repr((__version__, *(disk_cache.stamp_sources(os.path.join(_BACKENDS, name)) for name in ("cpu", "llvm")),
          *map(_read_version, _COMPILERS))).encode()
).digest()


def _settings_are_known() -> bool:
    """Whether Numba's settings are those of the environment; its modules and a file can change them too."""
    if os.path.exists(_NUMBA_FILE):
        return False
    config = sys.modules.get("numba.core.config")
    if config is None:
        return True
    read, enable_avx = os.environ.get, getattr(config, "ENABLE_AVX", 1)
    name, features = read("NUMBA_CPU_NAME"), read("NUMBA_CPU_FEATURES")
    if features is None and str(name).lower() == "generic":
        features = ""
    return (
        getattr(config, "CPU_NAME", name) == name
        and getattr(config, "CPU_FEATURES", features) == features
        and str(int(enable_avx)) == read("NUMBA_ENABLE_AVX", "1")
    )


def has_default_settings() -> bool:
    """Whether nobody has set what Numba compiles for."""
    is_set = "numba.core.config" in sys.modules or any(name in os.environ for name in _SETTINGS)
    return not is_set and not os.path.exists(_NUMBA_FILE)


class Machine:
    """This machine, for those who decide how code is made; each fact is found when it is asked for.

    tuned: the numbers as text, for keys of code."""

    def __init__(self, tuning: Tuning):
        self.tuning, self.loops, self.tuned = tuning, tuning.loops, repr(tuning)

    vector_bytes = property(lambda self: native_vector_bytes())
    caches = property(lambda self: cache_sizes())
    features = property(lambda self: cpu_features())
    name = property(lambda self: cpu_name())
    is_zen = property(lambda self: is_zen())
    processors = property(lambda self: os.cpu_count() or 1)

    @property
    def registers(self) -> int:
        """How many registers of vectors there are."""
        return 32 if self.vector_bytes == 64 else 16


#: What the backend hands on, and code of routines and of the run time is made with, which a process has once.
MACHINE = Machine(Tuning())


@functools.cache
def _list_math_calls(kind: str) -> dict[str, int]:
    """How many functions of the math library each operation on a kind of dtype calls. The table is code for a
    compiler that need not be loaded."""
    lines = recall(f"math calls {kind}", functools.partial(_describe_math_calls, kind)).splitlines()
    return {name: int(count) for name, count in map(str.split, lines)}


def _describe_math_calls(kind: str) -> str:
    from jitcore.backends.llvm import scalar_ops

    dtype = dtypes.complex128 if kind == "c" else dtypes.float64
    names = sorted(scalar_ops.list_operations()[kind])
    calls = {name: scalar_ops.count_math_calls(name, dtype) for name in names}
    return "\n".join(f"{name} {count}" for name, count in calls.items() if count)


def count_math_calls(name: str, dtype) -> int:
    """How many functions of the math library an operation on this dtype calls."""
    if dtype.kind != "c" and not dtypes.is_floating(dtype):
        return 0
    return _list_math_calls("c" if dtype.kind == "c" else "f").get(name, 0)
