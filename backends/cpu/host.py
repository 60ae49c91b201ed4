"""What machine code depends on beside the program it was made from: processor, compiler, settings, sources.

In: this machine and this installation. Out: the target that LLVM compiles for, and keys under which what
depends on it is kept on disk. Stage: before rendering, and again when code is looked up.

To name a processor and its features as LLVM does takes LLVM. Its answer is kept on disk, so that a process
whose programs all come from there does without; it is asked for by what is cheap to find out.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jitcore import __version__
from jitcore.backends.cpu import objects
from jitcore.dispatch import disk_cache

__all__ = ["Target", "find_target", "make_key", "recall", "stamp_sources"]

# Counts the changes of what is stored; files of another number are not found.
_FORMAT = 1
_COMPILERS = ("llvmlite", "numba")
_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_OPT")
_NUMBA_FILE = ".numba_config.yaml"  # settings of the folder a process was started in
_PROCESSOR_FILE = Path("/sys/devices/system/cpu/modalias")  # vendor, family, model and features
_CPUINFO_FILE = Path("/proc/cpuinfo")
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
    from jitcore.backends.cpu import native

    return "\n".join(native.describe_target())


def recall(name: str, find_out: Callable[[], str]) -> str:
    """A text about this installation that takes a compiler to find out: from disk, if it is there."""
    identity, cache = _identify(), disk_cache.open_cache()
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
    identity = _identify()
    if identity is None:
        return None
    return hashlib.sha256(identity + "\0".join((*find_target(), *parts)).encode()).digest()


@functools.cache
def _identify() -> bytes | None:
    """A digest of all that is common to the code of this process; None where that cannot be told."""
    processor = _read_processor()
    if processor is None or not objects.can_link():
        return None
    settings = [f"{name}={os.environ.get(name)}" for name in _SETTINGS]
    return hashlib.sha256(repr((_FORMAT, _INSTALLED, processor, settings)).encode()).digest()


def _read_processor() -> bytes | None:
    """What Linux says of the processor, or None."""
    try:
        return _PROCESSOR_FILE.read_bytes()
    except OSError:
        pass
    try:
        first = _CPUINFO_FILE.read_bytes().split(b"\n\n", 1)[0]
    except OSError:
        return None
    lines = first.splitlines()
    return b"\n".join(line for line in lines if line.split(b":")[0].strip() not in _VARYING_FACTS)


def _read_version(name: str) -> bytes:
    """What tells a package's versions apart: the file in which it states its own, which is fast to read."""
    spec = importlib.util.find_spec(name)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        try:
            return Path(folder, "_version.py").read_bytes()
        except OSError:
            continue
    try:
        return importlib.metadata.version(name).encode()
    except importlib.metadata.PackageNotFoundError:  # compiling says what is missing
        return b""


def stamp_sources(root: str) -> list[tuple[str, int, int]]:
    """Name, size and time of change of each module below a folder."""
    stamps, folders = [], [root]
    for folder in folders:
        for item in os.scandir(folder):
            if item.is_dir():
                folders.append(item.path)
            elif item.name.endswith(".py"):
                state = item.stat()
                stamps.append((item.name, state.st_size, state.st_mtime_ns))
    return sorted(stamps)


#: The versions of what makes machine code, and its sources as they were when they were imported: somebody
#: may be editing them.
_INSTALLED = hashlib.sha256(
    repr((__version__, stamp_sources(os.path.dirname(__file__)), *map(_read_version, _COMPILERS))).encode()
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
