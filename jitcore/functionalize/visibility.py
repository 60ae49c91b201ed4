"""Which values the current trace can use: its own, and those of the traces around it."""

from __future__ import annotations

from typing import Any

from jitcore.core.trace import Trace, Tracer, context


def is_current(trace: Trace) -> bool:
    """Whether a trace is the current one or around it."""
    found: Trace | None = context.trace
    while found is not None:
        if found is trace:
            return True
        found = found.parent
    return False


def is_visible(value: Any) -> bool:
    """Whether an Array can be used under the current trace."""
    return not isinstance(value, Tracer) or is_current(value.trace)
