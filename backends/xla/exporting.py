"""Programs as portable artifacts: what `jax.export` makes of a function, and what it wrote.

In: a jaxpr, or bytes. Out: a `jax.export.Exported`, whose StableHLO another process, or another version, loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitcore.backends.xla.bridge import make_function
from jitcore.backends.xla.client import allow_64_bits, list_avals, load_jax
from jitcore.core.jaxpr import ClosedJaxpr


def lower_text(closed_jaxpr: ClosedJaxpr, platform: str) -> str:
    """The module of a program. No device of the platform is asked for."""
    with allow_64_bits():
        run = load_jax().jit(make_function(closed_jaxpr, platform), keep_unused=True)
        lowered = run.trace(*list_avals(closed_jaxpr.in_avals)).lower(lowering_platforms=(platform,))
        return lowered.as_text("stablehlo")


def export_jaxpr(closed_jaxpr: ClosedJaxpr, platforms: Sequence[str]) -> Any:
    """A program of flat arguments and results."""
    jax = load_jax()
    with allow_64_bits():
        run = jax.jit(make_function(closed_jaxpr, platforms[0]), keep_unused=True)
        return jax.export.export(run, platforms=tuple(platforms))(*list_avals(closed_jaxpr.in_avals))
