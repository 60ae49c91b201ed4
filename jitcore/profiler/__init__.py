"""Looking into a running program: timelines of what jitcore does, and names of its code.

In: events (`process.events`). Out: files that other tools open. The public names are those of `jax.profiler`.

Modules:
    code_map  Names of compiled code for profilers and debuggers: a perf map, a JITDUMP file, and GDB's
              registration.
    timeline  Timelines: what jitcore did and for how long, as a file for Perfetto (https://ui.perfetto.dev).
"""

from __future__ import annotations

from jitcore.profiler.timeline import (ProfileOptions, StepTraceAnnotation, TraceAnnotation,
                                       annotate_function, start_trace, stop_trace, trace)

__all__ = ["ProfileOptions", "StepTraceAnnotation", "TraceAnnotation", "annotate_function", "start_trace",
           "stop_trace", "trace"]
