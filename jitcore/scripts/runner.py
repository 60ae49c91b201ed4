"""Runs a script as `python SCRIPT` would, its hot loops compiled meanwhile."""

from __future__ import annotations

import os
import sys
import types

from jitcore.scripts.loops import LoopState
from jitcore.scripts.sampling import Sampler

__all__ = ["run_source"]


def run_source(source: bytes, path: str, arguments: list[str], report: bool = False) -> int:
    """Runs source text as the module `__main__` of a process that was started for it. SystemExit passes."""
    sampler = Sampler(sys.path[:], source)
    module = types.ModuleType("__main__")
    module.__file__ = path
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.modules["__main__"] = module
    try:
        code = sampler.prepare(compile(source, path, "exec", dont_inherit=True))
        sampler.remember()
        sampler.start()
        try:
            exec(code, module.__dict__)
        finally:
            sampler.stop()
            sampler.keep()
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
        if report:
            for state in sampler.loops:
                if state.ticks >= 2:
                    names = {LoopState.COLD: "cold", LoopState.COMPILING: "compiling", LoopState.READY: "compiled",
                             LoopState.DEAD: "python"}
                    print(f"line {state.loop.line}: {names[state.state]}, {state.ticks} ticks, {state.entries} entries, {state.seconds:.3f} s; "
                          f"{state.reason[:300]}", file=sys.stderr)
    return 0
