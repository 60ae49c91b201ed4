"""Looking into a running program: timelines of what jitcore does, and names of its code.

In: events (`process.events`). Out: files that other tools open. The public names are those of `jax.profiler`.

"""

from __future__ import annotations

from jitcore.profiler.timeline import (StepTraceAnnotation, TraceAnnotation, annotate_function, start_trace, stop_trace,
                                       trace)

__all__ = ["StepTraceAnnotation", "TraceAnnotation", "annotate_function", "start_trace", "stop_trace", "trace"]
