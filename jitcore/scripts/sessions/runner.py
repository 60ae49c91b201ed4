"""Runs programs as `python SCRIPT` and `python -m MODULE` would, and scripts as `runpy.run_path` does.

In: a path or a name, and arguments. Out: whatever the program does. Its hot loops are compiled while it runs:
a `Session` prepares its code and samples it. In other threads than the main one, and where there is no
processor to spare, it runs as it is.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType

from jitcore.scripts.sessions.imports import Hook
from jitcore.scripts.tracers import is_traced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from jitcore.scripts.sampling import Sampler

__all__ = ["Session", "run_module", "run_path", "run_script"]

class Session:
    """The time in which programs run whose hot loops are compiled. One for all that run inside of each other.

    Args: folders of the program's own modules; whether programs are only compared with Python.

    Attributes:
        sampler: None as long as there is nothing to sample.
    """

    current: Session | None = None

    def __init__(self, folders: Iterable[str], checks: bool = False):
        self.sampler: Sampler | None = None
        self._checks = checks
        self._path = sys.path[:]
        self._hook = Hook(folders, self._prepare)

    def __enter__(self) -> Session:
        Session.current = self
        self._hook.install()
        return self

    def __exit__(self, *exception: object) -> None:
        """Ends the sampling, and keeps what it found out."""
        Session.current = None
        self._hook.remove()
        if self.sampler is not None:
            self.sampler.stop()
            self.sampler.keep()
            self.sampler.leave()

    def prepare(self, code: CodeType, source: bytes, path: str) -> CodeType:
        """The code of a script with entries."""
        if not has_units(code):
            return code
        return self._prepare(lambda: (code, source), path, source)

    def _prepare(self, *given: Any) -> CodeType:
        code = self._find_sampler().prepare(*given)
        self.start()
        return code

    def _find_sampler(self) -> Sampler:
        if self.sampler is None:
            from jitcore.scripts.sampling import Sampler

            self.sampler = Sampler(self._path, self._checks)
        return self.sampler

    def add(self, code: CodeType, source: bytes) -> CodeType:
        """The same of a cell, which is another one each time. source: by which later runs know it."""
        from jitcore.scripts.texts import write_record

        return self._find_sampler().add(write_record(code, source))

    @property
    def is_over(self) -> bool:
        return self.sampler is not None and self.sampler.is_over

    def start(self) -> None:
        """Begins to sample, where there is something."""
        if self.sampler is not None and self.sampler.units:
            self.sampler.start()

    def pause(self) -> None:
        """Samples no more for now, and keeps what was found out."""
        if self.sampler is not None:
            self.sampler.pause()
            self.sampler.keep()

    def abandon(self) -> None:
        """In a child that was forked: it goes on in plain Python."""
        Session.current = None
        self._hook.remove()
        if self.sampler is not None:
            self.sampler.abandon()


def _abandon_current() -> None:
    if Session.current is not None:
        Session.current.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_current)


def has_units(code: CodeType) -> bool:
    """Whether there is a loop or a function in the code of a module."""
    if any(isinstance(const, CodeType) for const in code.co_consts):
        return True
    from opcode import opmap

    backward = {number for name, number in opmap.items() if "BACKWARD" in name}
    return not backward.isdisjoint(code.co_code[::2])


def can_sample() -> bool:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threading = sys.modules.get("threading")
    is_main = threading is None or threading.current_thread() is threading.main_thread()
    # Windows lacks the last, as it does signals.
    return cores > 1 and is_main and not is_traced() and hasattr(os, "posix_spawn")


def open_session(path: str = "", checks: bool = False) -> Session | None:
    """A session for a script, or a folder with `__main__`; None inside of another one, and where nothing can
    be sampled."""
    if Session.current is not None or not can_sample():
        return None
    path = os.path.realpath(path)
    return Session([path if os.path.isdir(path) else os.path.dirname(path), os.path.realpath("")], checks)


# -- programs -----------------------------------------------------------------------------------------------
def run_script(source: bytes, path: str, arguments: Sequence[str], session: Session | None) -> None:
    """Runs source text as `python PATH` would: as the module `__main__` of the process, which it stays."""
    module, path = _become_main(path, arguments), os.path.abspath(path)
    module.__dict__.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    if not sys.flags.safe_path:  # else the first entry is not that of the process's own script
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    _run(session, lambda: _exec_script(source, path, module))


def _exec_script(source: bytes, path: str, module: ModuleType) -> None:
    code = compile(source, path, "exec", dont_inherit=True)
    if Session.current is not None and can_sample():
        code = Session.current.prepare(code, source, path)
    exec(code, module.__dict__)


def run_module(name: str, arguments: Sequence[str], session: Session | None) -> None:
    """Runs a module as `python -m NAME` would; see `run_script`."""
    _become_main("-m", arguments)
    # What the interpreter calls itself for `-m`: its errors, and how it names the module, are Python's.
    _run(session, functools.partial(runpy._run_module_as_main, name))


def _become_main(path: str, arguments: Sequence[str]) -> ModuleType:
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    sys.argv = [path, *arguments]
    return module


def _run(session: Session | None, run: Callable[[], object]) -> None:
    gc.freeze()  # the collector of garbage need not go through what was loaded here
    try:
        with session or contextlib.nullcontext():
            run()
    except SystemExit:
        raise
    except BaseException:
        sys.excepthook = functools.partial(_show, sys.excepthook)
        raise


def _show(hook: Any, kind: type, error: BaseException, trace: TracebackType | None) -> None:
    """What is called with an exception that ends the process: frames that the user did not write are left
    out."""
    sys.excepthook = hook
    trace = drop_own_frames(trace)
    if hasattr(sys, "last_traceback"):
        sys.last_traceback = trace
    hook(kind, error.with_traceback(trace), trace)


def drop_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that run the program, at its beginning, and those that stand between a
    frame of the script and what it does: a function that is tried out is another frame of the same code."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    start = next((number for number, one in enumerate(frames) if _is_own(one)), 0)
    while start < len(frames) and _is_own(frames[start]):
        start += 1
    kept: list[TracebackType] = []
    for before, one in zip([None, *frames[start:]], frames[start:]):
        if _is_own(one, "jitcore.scripts."):
            continue
        if kept and before is not kept[-1] and _find_place(kept[-1]) == _find_place(one):
            kept.pop()
        kept.append(one)
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    return kept[0] if kept else None


def _is_own(trace: TracebackType, prefix: str = "jitcore.") -> bool:
    names = trace.tb_frame.f_globals
    return (names.get("__name__") or "").startswith(prefix) or names.get("__package__") == prefix[:-1]


def _find_place(trace: TracebackType) -> tuple[str, int]:
    code = trace.tb_frame.f_code
    return code.co_filename, code.co_firstlineno


# -- inside of a process ------------------------------------------------------------------------------------
def run_path(path: str | os.PathLike, init_globals: Mapping[str, Any] | None = None,
             run_name: str = "__main__", argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs a script in this process, and compiles its hot loops and functions meanwhile.

    Same as: `runpy.run_path(path, init_globals, run_name)`, sooner: what `python -m jitcore run` does, with
    the globals as the result. Signal handlers, timers and `sys` are afterwards what they were before; the
    functions among the globals run in plain Python then. In other threads than the main one the script runs
    in plain Python from the start.

    Args:
        path: of a file, or of a folder or archive with a `__main__`.
        init_globals: variables that the script finds.
        run_name: its `__name__`.
        argv: its arguments, `sys.argv[1:]`; None for those of the process.

    Returns: the globals of the script at its end.
    Raises: OSError, SyntaxError; whatever the script raises, SystemExit among it.

        names = jitcore.run_path("heat.py", argv=["--steps", "1000"])
        print(names["u"].mean())
    """
    path = os.fspath(path)
    before = sys.argv
    sys.argv = [path, *(sys.argv[1:] if argv is None else argv)]
    try:
        with open_session(path) or contextlib.nullcontext():
            return _run_path(path, init_globals, run_name)
    finally:
        sys.argv = before


def _run_path(path: str, init_globals: Mapping[str, Any] | None, run_name: str) -> dict[str, Any]:
    if os.path.isdir(path) or path.endswith(".pyc"):
        return runpy.run_path(path, init_globals, run_name)
    with io.open_code(os.path.abspath(path)) as file:
        source = file.read()
    if source.startswith(b"PK"):  # an archive
        return runpy.run_path(path, init_globals, run_name)
    module, before = ModuleType(run_name), sys.modules.get(run_name)
    module.__dict__.update(init_globals or {})
    module.__dict__.update(__name__=run_name, __file__=path, __cached__=None, __doc__=None, __loader__=None,
                           __package__=run_name.rpartition(".")[0], __spec__=None)
    sys.modules[run_name] = module
    try:
        _exec_script(source, path, module)
    finally:
        if before is None:
            sys.modules.pop(run_name, None)
        else:
            sys.modules[run_name] = before
    return module.__dict__.copy()
