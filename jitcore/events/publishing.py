"""Events: what jitcore does, told to whoever reads along.

In: `publish` and `span`, at the few places where something happens. Out: an `Event`, given to each reader: to
those that were added (a timeline), and to those that the configuration asks for. Without readers nothing is
computed, and no module of a reader is imported.

Kinds, by the place that tells them:
    first call   a call of a new signature, all of the following inside of it
    miss         why no known signature served it (reason)
    trace        one run of the Python function on tracers
    build        passes, schedule and compile of one program, by a backend
    passes, pass, schedule
    compile      LLVM makes machine code
    load         machine code is put into memory, new or from disk
    disk cache   an entry is found, is not, or is written (outcome, bytes)
    fallback     a function goes on in a lower tier (reason)
    kernel       a kernel has run, told while a timeline is on
    annotation   what the user named
"""

from __future__ import annotations

import gc
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from jitcore.config import config
from jitcore.process.concurrency import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Event", "add_reader", "add_timer", "compiling", "publish", "remove_reader", "span",
           "time_kernels"]


class Event:
    """name, place: of the user's function, "" where it is not known. start: on the clock of `perf_counter`;
    seconds: that it took, 0 for what takes none, None while it lasts. facts: what belongs to the kind; a
    function among them gives its value when somebody wants to know."""

    __slots__ = ("kind", "name", "place", "start", "seconds", "facts")

    def __init__(self, kind: str, name: str, place: str, facts: dict[str, Any], start: float | None = None,
                 seconds: float | None = None):
        self.kind, self.name, self.place, self.facts = kind, name, place, facts
        self.start, self.seconds = perf_counter() if start is None else start, seconds

    def read_facts(self) -> dict[str, Any]:
        """The facts that are texts or numbers, those computed that wait for it."""
        found = [(name, fact() if callable(fact) else fact) for name, fact in self.facts.items()]
        return {name: value for name, value in found if isinstance(value, str | int | float) and value != ""}


#: Called with an event when it begins, if it lasts, and when it has ended.
Reader = Callable[[Event], None]

_lock = Lock()
_added: tuple[Reader, ...] = ()


class _Current(threading.local):
    """What this thread works on: name and place of a function."""

    name = place = ""


_current = _Current()


def add_reader(reader: Reader) -> None:
    global _added
    with _lock:
        _added = (*_added, reader)


def remove_reader(reader: Reader) -> None:
    global _added
    with _lock:
        _added = tuple(other for other in _added if other != reader)


# -- kernels ------------------------------------------------------------------------------------------------
# A call of a program tells nothing: who can time its kernels is told when somebody wants that.
_timers: list[Callable[[bool], None]] = []
is_timing = False


def add_timer(switch: Callable[[bool], None]) -> None:
    """switch: lets kernels be timed and publish events, or lets them run as ever."""
    with _lock:
        _timers.append(switch)


def time_kernels(wanted: bool) -> None:
    global is_timing
    with _lock:
        is_timing, timers = wanted, list(_timers)
    for switch in timers:
        switch(wanted)


# -- telling ------------------------------------------------------------------------------------------------
def _is_logged() -> bool:
    """Whether lines are asked for: by the flag, or of Python's `logging`, which who asks has imported."""
    logging = sys.modules.get("logging")
    return bool(config.log) or config.log_compiles or config.explain_cache_misses or (
        logging is not None and logging.getLogger("jitcore").isEnabledFor(logging.INFO))


def _shows_progress() -> bool:
    """Whether somebody sits in front of it: of a terminal, or of a notebook."""
    if not config.announce_compiles:
        return False
    ipython = sys.modules.get("IPython.core.getipython")
    try:
        return ipython is not None and hasattr(ipython.get_ipython(), "kernel") or sys.stderr.isatty()
    except (AttributeError, ValueError):  # a program with windows only has none; or it is closed
        return False


#: Readers that the configuration asks for: when, and the module whose `read` it is.
_STANDING = ((_is_logged, "jitcore.events.logbook"), (_shows_progress, "jitcore.events.progress"),
             (lambda: bool(config.code_map), "jitcore.profiler.code_map"))


def _list_readers() -> tuple[Reader, ...]:
    standing = [importlib.import_module(module).read for is_wanted, module in _STANDING if is_wanted()]
    return (*_added, *standing)


def publish(kind: str, name: str = "", place: str = "", start: float | None = None, seconds: float = 0.0,
            **facts: Any) -> None:
    """Tells that something has happened. name, place: those that this thread works on, unless given."""
    if readers := _list_readers():
        event = Event(kind, name or _current.name, place or _current.place, facts, start, seconds)
        for reader in readers:
            reader(event)


@contextmanager
def span(kind: str, name: str = "", place: str = "", **facts: Any) -> Iterator[dict[str, Any]]:
    """Tells of what happens within. Gives its facts, to which more may be added."""
    readers = _list_readers()
    if not readers:
        yield facts
        return
    outer = _current.name, _current.place
    _current.name, _current.place = name or outer[0], place or (outer[1] if not name else "")
    event = Event(kind, _current.name, _current.place, facts)
    try:
        for reader in readers:
            reader(event)
        yield facts
    finally:
        event.seconds = perf_counter() - event.start
        _current.name, _current.place = outer
        for reader in readers:
            reader(event)


#: Objects after which Python looks for garbage among the young ones meanwhile. Programs are tens of thousands
#: of them, and Python would go through all the modules of the process, too, again and again: a fifth of a
#: first call.
_YOUNG = 100_000


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Within, and in all threads as it is the process's: Python looks for garbage less often, not never.

    What the user has set stays: a collector that is off, thresholds that are higher, others set meanwhile."""
    before = gc.get_threshold()
    if not 0 < before[0] < _YOUNG:
        yield
        return
    gc.set_threshold(_YOUNG, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == _YOUNG:
            gc.set_threshold(*before)


@contextmanager
def compiling(kind: str, name: str, place: str = "", **facts: Any) -> Iterator[None]:
    """`span`, in which Python looks for garbage rarely."""
    with collect_rarely(), span(kind, name, place, **facts):
        yield
