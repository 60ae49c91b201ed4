"""From PTX to machine code, where NVIDIA's linker is installed; what it made is kept on disk.

In: PTX, and the architecture of the GPU. Out: a cubin, or None, and then the driver translates the PTX, which
takes as long. A cubin is loaded in a fifth of a millisecond.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
from typing import Any

from jitcore.dispatch.disk_cache import find_or_make

DISTRIBUTION = "nvidia-nvjitlink"


@functools.cache
def find_version() -> str:
    """Of the linker; "" where it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(DISTRIBUTION)
    return ""


def describe_linker() -> str:
    """For people: which one translates PTX."""
    if not find_version():
        return f"the driver's ({DISTRIBUTION} is not installed)"
    if _load_linker() is None:
        return f"the driver's (the library of {DISTRIBUTION} {find_version()} is not found)"
    return f"nvJitLink {find_version()}"


def find_cubin(ptx: str, machine: str) -> bytes | None:
    """Machine code of PTX for one architecture, such as "sm_90". None where nothing makes it."""
    if not find_version():
        return None
    facts = "\0".join(("cubin", find_version(), machine, ptx))
    return find_or_make(hashlib.sha256(facts.encode()).digest(), lambda: _link(ptx.encode(), machine)[0])


def link_and_report(ptx: str, machine: str) -> str:
    """What the assembler says of each kernel; "" where there is none."""
    return _link(ptx.encode(), machine, "-Xptxas=-v")[1]


def _link(ptx: bytes, machine: str, *options: str) -> tuple[bytes | None, str]:
    """(machine code, what the linker says). None for what it refuses: it may be older than the GPU; what is
    wrong with PTX the driver will say."""
    linker = _load_linker()
    if linker is None:
        return None, ""
    with contextlib.suppress(linker.nvJitLinkError):
        handle = linker.create(1 + len(options), [f"-arch={machine}", *options])
        try:
            linker.add_data(handle, linker.InputType.PTX, ptx, len(ptx), "jitcore")
            linker.complete(handle)
            cubin = bytearray(linker.get_linked_cubin_size(handle))
            linker.get_linked_cubin(handle, cubin)
            said = bytearray(linker.get_info_log_size(handle))
            linker.get_info_log(handle, said)
            return bytes(cubin), said.rstrip(b"\0").decode(errors="replace")
        finally:
            linker.destroy(handle)
    return None, ""


@functools.cache
def _load_linker() -> Any:
    """The module of its calls; None where its library is not found."""
    try:
        from cuda.bindings import nvjitlink

        nvjitlink.version()
    except (ImportError, RuntimeError):
        return None
    return nvjitlink
