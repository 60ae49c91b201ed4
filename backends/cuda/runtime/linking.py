"""From PTX to machine code, where NVIDIA's linker is installed; what it made is kept on disk; and what
kernels take of a GPU, as the linker says without one.

In: PTX, and the architecture of the GPU. Out: a cubin, or None, and then the driver translates the PTX, which
takes as long. A cubin is loaded in a fifth of a millisecond. Registers, spilled bytes, shared memory and
occupancy of each kernel; machine instructions where the disassembler is installed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jitcore.backends.cuda.architectures import find_occupancy
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


# -- resources ----------------------------------------------------------------------------------------------

class Resources(NamedTuple):
    """Of one kernel. occupancy: share of the threads that a multiprocessor could hold."""

    registers: int
    spilled_bytes: int
    stack_bytes: int
    shared_bytes: int
    occupancy: float

    def __str__(self) -> str:
        return (f"{self.registers} registers, {self.spilled_bytes} bytes spilled, {self.shared_bytes} bytes "
                f"of shared memory, occupancy {self.occupancy:.0%}")


def find_resources(ptx: str, arch: str, blocks: Mapping[str, int]) -> dict[str, Resources]:
    """By the kernel's name; {} where the linker is not installed. blocks: threads of a block of each."""
    found, name, spilled, stack = {}, "", 0, 0
    for line in link_and_report(ptx, arch).splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            name = entry.group(1)
        if frame := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line):
            stack, spilled = map(int, frame.groups())
        if used := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            counts = int(used.group(1)), int(shared.group(1)) if shared else 0
            occupancy = find_occupancy(arch, blocks.get(name, 1), *counts)
            found[name] = Resources(counts[0], spilled, stack, counts[1], occupancy)
    return found


def disassemble(ptx: str, arch: str) -> str:
    """Machine instructions; what is missing where they cannot be had."""
    tool, cubin = _find_disassembler(), find_cubin(ptx, arch)
    if tool is None or cubin is None:
        return 'not available: pip install "jitcore[cuda]" nvidia-cuda-nvdisasm'
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        return subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout


def _find_disassembler() -> str | None:
    found = shutil.which("nvdisasm")
    if found is None and (spec := importlib.util.find_spec("nvidia")) is not None:
        for folder in spec.submodule_search_locations or ():
            found = next(map(str, Path(folder).glob("*/bin/nvdisasm")), None) or found
    return found
