"""What `autojit` is asked for."""

from __future__ import annotations

from typing import Any, NamedTuple

from jitcore.autojitted.tiers.tuning import Tuning
from jitcore.dispatch.options import JitOptions

__all__ = ["Options"]


class Options(NamedTuple):
    """strict: raise instead of taking a lower tier; verbose: tell on the error stream what is compiled.
    fastmath, contract, thread_work: see `dispatch.backend.CompileOptions`. placement: where programs run, as
    options of `jit`. prints: whether programs print; else plain Python does calls that do. tuning: by which
    tiers are chosen."""

    strict: bool = False
    static_argnames: tuple[str, ...] = ()
    verbose: bool = False
    fastmath: bool = False
    contract: bool = False
    placement: tuple[tuple[str, Any], ...] = ()
    thread_work: int | None = None
    prints: bool = True
    tuning: Tuning = Tuning()

    @property
    def of_program(self) -> JitOptions:
        """What compiles a traced program."""
        given = (("contract", self.contract or self.fastmath), ("fastmath", self.fastmath),
                 ("thread_work", self.thread_work))
        return JitOptions(compiler_options=given, **dict(self.placement))
