"""Lines about what jitcore does, by the logger `jitcore` of Python's `logging`.

In: events. Out: a record for each that has ended: of level INFO for what one wants to know of a program that
is slow (first calls, misses with their reasons, compiles, fallbacks), DEBUG for the rest. Records go where
the program sends them; under the flag `log` (`JITCORE_LOG=info` or `debug`) also to standard error. Of level
WARNING, which Python shows by itself, are traces and compiles under `log_compiles`, and misses under
`explain_cache_misses`.
"""

from __future__ import annotations

import logging
import sys

from jitcore.config import config
from jitcore.events.publishing import Event

logger = logging.getLogger("jitcore")
_COMPILING = frozenset(("first call", "trace", "compile"))
_INFORMING = frozenset(("first call", "miss", "compile", "fallback"))


class _Handler(logging.StreamHandler):
    """Writes to what is standard error at the time."""

    def __init__(self):
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d jitcore %(message)s", "%H:%M:%S"))

    def emit(self, record: logging.LogRecord) -> None:
        if sys.stderr is not None:
            self.stream = sys.stderr
            super().emit(record)


_handler = _Handler()


def read(event: Event) -> None:
    if event.seconds is None or event.kind == "kernel":
        return
    level = logging.INFO if event.kind in _INFORMING else logging.DEBUG
    if (config.log_compiles and event.kind in _COMPILING
            or config.explain_cache_misses and event.kind == "miss"):
        level = logging.WARNING
    if config.log and level >= logging.getLevelName(config.log.upper()):
        record = logger.makeRecord(logger.name, level, "", 0, format_event(event), (), None)
        _handler.handle(record)
    if logger.isEnabledFor(level) and (logger.hasHandlers() or not config.log):
        logger.log(level, "%s", format_event(event), extra={"event": event})


def format_event(event: Event) -> str:
    """One line: what happened, to which function, how long it took, and the facts."""
    who = f" {event.name}" if event.name else ""
    where = f" ({event.place})" if event.place else ""
    took = f" in {1e3 * event.seconds:.1f} ms" if event.seconds else ""
    rest = "; ".join(f"{name} {' '.join(str(value).split())}" for name, value in event.read_facts().items())
    return f"{event.kind}{who}{where}{took}{': ' if rest else ''}{rest}"
