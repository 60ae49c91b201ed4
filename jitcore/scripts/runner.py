"""Runs a script as `python SCRIPT` would.

In: its text, its path and its arguments. Out: whatever it does; its exit code. `Watched` prepares its code
and samples it while it runs, so that its hot loops are compiled; another preparation may take its place.
"""

from __future__ import annotations

import opcode
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, ModuleType

from jitcore.process.generated import drop_watching

__all__ = ["Watched", "run_source"]

_BACKWARD = frozenset(code for name, code in opcode.opmap.items() if "BACKWARD" in name)


Prepare = Callable[[bytes, str, ModuleType], CodeType | None]


def run_source(source: bytes, path: str, arguments: list[str], prepare: Prepare) -> int:
    """Runs source text as the module `__main__` of a process that was started for it. SystemExit passes.

    Args:
        prepare: gives the code of the module; None where there is something wrong, which it has told.

    Returns: 0; 1 after an exception, which is printed; 2 without code.
    """
    module = ModuleType("__main__")
    module.__file__ = path
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:  # else the first entry is not that of the process's own script
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.modules["__main__"] = module
    try:
        code = prepare(source, path, module)
        if code is None:
            return 2
        exec(code, module.__dict__)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("jitcore."):
            trace = trace.tb_next  # the first frames are none that the user wrote
        trace = drop_watching(trace)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before
    return 0


class Watched:
    """A script whose hot loops are compiled while it runs.

    Attributes:
        sampler: None where nothing is compiled: without a processor to spare, without signals, beside the
            main thread.
    """

    def __init__(self):
        self.sampler = None
        self._path = sys.path[:]

    def prepare(self, source: bytes, path: str, module: ModuleType) -> CodeType:
        code = compile(source, path, "exec", dont_inherit=True)
        if not can_sample() or not has_units(code):
            return code
        from jitcore.scripts.sampling import Sampler

        self.sampler = sampler = Sampler(self._path, source)
        code = sampler.prepare(code)
        if sampler.units:
            sampler.remember()
            sampler.start()
        return code

    def finish(self) -> None:
        """Ends the sampling, and keeps what it found out."""
        if self.sampler is not None and self.sampler.units:
            self.sampler.stop()
            self.sampler.keep()
            self.sampler.leave()


def has_units(code: CodeType) -> bool:
    """Whether there is a loop or a function in the code of a module."""
    return any(isinstance(const, CodeType) for const in code.co_consts) or not _BACKWARD.isdisjoint(
        code.co_code[::2])


def can_sample() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    is_main = threading.current_thread() is threading.main_thread()
    return cores > 1 and is_main and hasattr(signal, "setitimer") and hasattr(os, "posix_spawn")
