"""Describes this installation: versions, system, BLAS, backends, targets, machine, settings, caches.

In: nothing. Out: a report for people, with the problems at its end, or with `--json` an object for programs
and for
reports of bugs: titles, facts by name, problems; exit code 1 when there are any of these.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import textwrap
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import jitcore
from jitcore.config import ENVIRONMENT_PREFIX, FLAGS, config
from jitcore.dispatch.backend import describe_remedy, find_backend, list_backends, list_compilers
from jitcore.dispatch.disk_cache import open_cache
from jitcore.errors import BackendNotFoundError

HELP = "describe this installation"

#: Distributions whose versions matter; those of the second row may be absent.
REQUIRED = ("numpy", "scipy", "numba", "llvmlite", "optree", "ml_dtypes", "opt_einsum")
OPTIONAL = ("tbb", "jax", "jaxlib", "flatbuffers", "libtpu", "cuda-bindings", "nvidia-nvjitlink",
            "numba-cuda")

#: Environment variables that change what jitcore and the libraries below it do begin so.
ENVIRONMENT = (ENVIRONMENT_PREFIX, "JAX_", "XLA_", "OMP_", "KMP_", "GOMP_", "MKL_", "OPENBLAS_", "BLIS_",
               "VECLIB_", "NUMBA_", "TBB_", "CUDA_", "NVIDIA_", "LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_",
               "PYTHON", "XDG_CACHE_HOME", "CONDA_PREFIX", "VIRTUAL_ENV", "SLURM_")
#: Files of control groups, of version 2 and then of version 1: processors and memory for this process.
CGROUPS = {"cpu limit": ("cpu.max", "cpu/cpu.cfs_quota_us"),
           "cpu set": ("cpuset.cpus.effective", "cpuset/cpuset.cpus"),
           "memory limit": ("memory.max", "memory/memory.limit_in_bytes")}

Facts = Iterator[tuple[str, str | int | float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print an object of JSON instead of the report")


def execute(options: argparse.Namespace) -> int:
    """Prints the report. Returns: 1 when it found a problem, else 0."""
    problems: list[str] = []
    chapters = {
        "Versions": list_versions(problems), "System": list_system_facts(), "BLAS": list_blas(),
        "Backends": check_backends(problems), "Targets that need not be here": check_targets(),
        "Machine": list_machine_facts(), "Roofline": list_rooflines(), "Settings": list_settings(),
        "Environment": list_environment(), "Caches of compiled programs": list_caches()}
    if options.json:
        found = {title: dict(facts) for title, facts in chapters.items()}
        print(json.dumps(found | {"Problems": problems}, indent=2))
        return 1 if problems else 0
    for title, facts in chapters.items():
        print_facts(title, facts)
    print("\n".join(f"Problem: {problem}" for problem in problems) or "No problem found.")
    return 1 if problems else 0


def print_facts(title: str, facts: Facts) -> None:
    """A titled list; long texts continue below themselves."""
    print(title)
    for name, fact in facts:
        text = fact if isinstance(fact, str) else f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"
        print(textwrap.fill(text, 110, initial_indent=f"  {name:<16} ", subsequent_indent=" " * 19))
    print()


def list_system_facts() -> Facts:
    """What runs this process, and how much of the machine it may use."""
    yield "system", platform.platform()
    yield "libc", " ".join(platform.libc_ver()).strip() or "unknown"
    yield "processors", os.cpu_count() or 0
    if hasattr(os, "sched_getaffinity"):
        yield "usable", len(os.sched_getaffinity(0))
    yield from read_cgroup(Path("/sys/fs/cgroup"), find_cgroup())


def find_cgroup() -> str:
    """The control group of this process, below the root of the file system of groups; "" where it is not
    known."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return ""
    return next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")


def read_cgroup(root: Path, group: str) -> Facts:
    """Limits of a control group, as its files say; those of the root where a container sees only itself."""
    for name, files in CGROUPS.items():
        for path in (root / group / files[0], root / files[0], root / files[1]):
            try:
                yield name, path.read_text(encoding="utf-8").strip()
            except OSError:
                continue
            break


def list_blas() -> Facts:
    """The libraries of linear algebra that NumPy and SciPy were built with, and those loaded, if
    threadpoolctl is there."""
    for name in ("numpy", "scipy"):
        built = importlib.import_module(name).show_config(mode="dicts").get("Build Dependencies", {})
        for kind, facts in built.items():
            if kind in ("blas", "lapack"):
                text = " ".join(str(facts.get(key, "")) for key in ("name", "version"))
                yield f"{name} {kind}", text.strip()
    try:
        pools = importlib.import_module("threadpoolctl").threadpool_info()
    except ImportError:
        return
    for pool in pools:
        yield os.path.basename(pool["filepath"]), (f"{pool['internal_api']} {pool.get('version')}, "
                                                   f"{pool['num_threads']} threads")


def list_rooflines() -> Facts:
    """What the backends' machines reach: measured once, and kept in the cache on disk."""
    working, _ = list_backends()
    for backend in working.values():
        if hasattr(backend, "measure_roofline"):
            found = backend.measure_roofline()
            yield "machine", found["machine"]
            yield "threads", found["threads"]
            yield "bandwidth", f"{found['bandwidth'] / 1e9:.1f} GB/s"
            for bits in (32, 64):
                yield f"float{bits}", f"{found[f'flops{bits}'] / 1e9:.0f} Gflop/s"


def list_environment() -> Facts:
    """(variable, value) of those that may change what happens."""
    found = sorted(name for name in os.environ if name.startswith(ENVIRONMENT))
    for name in found:
        yield name, os.environ[name]
    if not found:
        yield "none", "of the variables that are looked at is set"


def list_versions(problems: list[str]) -> Facts:
    """(distribution, version) of Python, jitcore and what they use."""
    yield "python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    yield "jitcore", jitcore.__version__
    for name in REQUIRED + OPTIONAL:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield name, "not installed"
            if name in REQUIRED:
                problems.append(f"{name} is not installed: pip install {name}")


def check_backends(problems: list[str]) -> Facts:
    """(backend, what it runs on and how a first program went, or why it does not work)."""
    working, reasons = list_backends()
    try:
        default = find_backend().name
    except BackendNotFoundError as error:
        default = ""
        problems.append(str(error).splitlines()[0])
    for name, backend in working.items():
        problem, seconds = check_backend(name)
        outcome = f"works, first program in {1e3 * seconds:.0f} ms" if not problem else problem
        devices = ", ".join(map(str, backend.devices()))
        yield name, f"{devices}: {outcome}{' (default)' if name == default else ''}"
        if problem:
            problems.append(f"backend {name}: {problem}")
    for name, reason in reasons.items():
        yield name, f"does not load: {reason}{describe_remedy(name)}"
        if name == "cpu":  # the others may lack a device, or a package that is optional
            problems.append(f"backend cpu does not load: {reason}")


def check_targets() -> Facts:
    """(target, how compiling a first program for it went, or what is missing)."""
    list_backends()
    for name, backend in list_compilers().items():
        target = f"{name}:{backend.machines[0]}"
        start = perf_counter()
        try:
            jitcore.jit(lambda x: x * 2 + 1).lower(np.arange(3, dtype=np.float32)).compile(target=target)
        except Exception as error:  # as for backends
            yield target, f"{type(error).__name__}: {error}"
        else:
            others = ", ".join(backend.machines[1:])
            yield target, f"works, first program in {1e3 * (perf_counter() - start):.0f} ms; also {others}"
    if not list_compilers():
        yield "none", "no backend that compiles for other machines loads"


def check_backend(name: str) -> tuple[str, float]:
    """(what is wrong with it or "", seconds to compile and run a small program)."""
    start = perf_counter()
    # Whatever goes wrong in a backend is what the report is there to tell.
    try:
        with config.override(disable_jit=False):
            program = jitcore.jit(lambda x: x * 2 + 1, backend=name)
            result = np.asarray(program(np.arange(3, dtype=np.float32)))
    except Exception as error:
        return f"a small program fails with {type(error).__name__}: {error}", 0.0
    is_right = result.tolist() == [1.0, 3.0, 5.0]
    return "" if is_right else f"a small program gives {result}", perf_counter() - start


def list_machine_facts() -> Facts:
    """What the backends say of the hardware that they compile for."""
    working, _ = list_backends()
    for backend in working.values():
        if hasattr(backend, "describe"):
            yield from backend.describe().items()


def list_settings() -> Facts:
    """(flag, value and the environment variable that can set it) of flags that differ from their defaults."""
    changed = {name: value for name, value in config.values().items() if value != FLAGS[name].default}
    for name, value in changed.items():
        variable = f"{ENVIRONMENT_PREFIX}{name.upper()}"
        yield name, f"{value!r} (default {FLAGS[name].default!r}, environment variable {variable})"
    if not changed:
        yield "all", "have their defaults"


def list_caches() -> Facts:
    """(where compiled programs are kept, how many of them)."""
    yield "in memory", f"at most {config.cache_size}, then the least recently used is dropped"
    cache = open_cache()
    if cache is None:
        yield "on disk", "none: config.cache_dir is empty"
    else:
        held = cache.count()
        yield "on disk", (f"{held.files} files with {held.size} bytes in {cache.folder}, "
                          f"at most {config.cache_disk_bytes} bytes")
