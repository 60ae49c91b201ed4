"""Describes this installation: versions, backends, processor, threads, settings, caches.

In: nothing. Out: a report for people; exit code 1 when no backend works.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
from collections.abc import Iterator

from jitcore import __version__
from jitcore.config import ENVIRONMENT_PREFIX, FLAGS, config
from jitcore.dispatch.backend import find_backend, list_backends
from jitcore.dispatch.program import executables

HELP = "describe this installation"

#: Distributions whose versions matter; those of the second row may be absent.
REQUIRED = ("numpy", "scipy", "numba", "llvmlite", "optree", "ml_dtypes", "opt_einsum")
OPTIONAL = ("tbb", "jax", "jaxlib", "numba-cuda", "cuda-core")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def execute(options: argparse.Namespace) -> int:
    """Prints the report. Returns: 1 when no backend works, else 0."""
    working, _ = list_backends()
    for title, lines in (
        ("Versions", list_versions()), ("Backends", list_backend_lines()), ("Machine", list_machine_facts()),
        ("Settings that differ from their defaults", list_settings()), ("Caches", list_caches()),
    ):  # fmt: skip
        print(title)
        for name, text in lines:
            print(f"  {name:<14} {text}")
        print()
    print("No problem found." if working else "Problem: no backend works, nothing can be compiled.")
    return 0 if working else 1


def list_versions() -> Iterator[tuple[str, str]]:
    """(distribution, version) of Python, jitcore and what they use."""
    yield "python", f"{platform.python_version()} ({platform.system()} {platform.machine()})"
    yield "jitcore", __version__
    for name in REQUIRED + OPTIONAL:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield name, "MISSING" if name in REQUIRED else "not installed"


def list_backend_lines() -> Iterator[tuple[str, str]]:
    """(backend, what it runs on or why it does not work)."""
    working, reasons = list_backends()
    default = find_backend().name if working else None
    for name, backend in working.items():
        devices = ", ".join(map(str, backend.devices()))
        yield name, devices + (" (default)" if name == default else "")
    for name, reason in reasons.items():
        yield name, f"does not work: {reason}"


def list_machine_facts() -> Iterator[tuple[str, str]]:
    """What the backends say of the hardware that they compile for."""
    working, _ = list_backends()
    for backend in working.values():
        if hasattr(backend, "describe"):
            yield from backend.describe().items()


def list_settings() -> Iterator[tuple[str, str]]:
    """(flag, value and the environment variable that can set it)."""
    changed = {name: value for name, value in config.values().items() if value != FLAGS[name].default}
    for name, value in changed.items():
        yield name, f"{value!r} (default {FLAGS[name].default!r}, {ENVIRONMENT_PREFIX}{name.upper()})"
    if not changed:
        yield "none", f"environment variables start with {ENVIRONMENT_PREFIX}"


def list_caches() -> Iterator[tuple[str, str]]:
    """(where compiled programs are kept, how many)."""
    yield "in memory", f"{len(executables)} compiled programs of at most {config.cache_size}"
    yield "on disk", config.cache_dir or "none (cache_dir is empty)"
