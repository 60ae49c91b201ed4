"""Timelines: what jitcore did and for how long, as a file for Perfetto (https://ui.perfetto.dev).

In: events, between `start_trace` and `stop_trace`. Out: a JSON file: a slice for each event that lasts, an
instant for each other, by thread; of kernels with their bytes, operations, rates and threads. While no
timeline is on, kernels are not timed, and calls cost what they always cost.
Source: "Trace Event Format", Google; the names are those of `jax.profiler`.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from jitcore.events import publishing as events
from jitcore.events.publishing import Event
from jitcore.process.concurrency import Lock

#: Events that a timeline keeps; later ones are counted only: a forgotten one does not fill the memory.
MOST_EVENTS = 1_000_000


class Timeline:
    """What was read so far. path: of the file to be."""

    def __init__(self, path: str):
        self.path, self.start = path, perf_counter()
        self.events: list[tuple[Event, dict[str, Any], int, str]] = []  # with facts and thread
        self.dropped = 0

    def read(self, event: Event) -> None:
        if event.seconds is None:
            return
        if len(self.events) >= MOST_EVENTS:
            self.dropped += 1
            return
        thread = threading.current_thread()
        self.events.append((event, event.read_facts(), threading.get_native_id(), thread.name))

    def format(self) -> dict[str, Any]:
        """The JSON object of the trace event format."""
        process = os.getpid()
        threads = {number: name for *_, number, name in self.events}
        rows: list[dict[str, Any]] = [_name("process_name", process, 0, " ".join(sys.argv[:1]) or "python")]
        rows += [_name("thread_name", process, number, name) for number, name in threads.items()]
        rows += [self._format_event(event, dict(facts), process, number)
                 for event, facts, number, _ in self.events]
        return {"traceEvents": rows, "displayTimeUnit": "ms",
                "otherData": {"program": "jitcore", "started": time.strftime("%Y-%m-%dT%H:%M:%S"),
                              "dropped": self.dropped}}

    def _format_event(self, event: Event, facts: dict[str, Any], process: int, thread: int) -> dict[str, Any]:
        if event.place:
            facts["function"] = f"{event.name} ({event.place})"
        row = {"name": _title(event, facts), "cat": event.kind, "pid": process, "tid": thread,
               "ts": 1e6 * (event.start - self.start)}
        if not event.seconds:
            return row | {"ph": "i", "s": "t", "args": facts}
        for fact, rate in (("bytes", "GB/s"), ("flops", "Gflop/s")):
            if event.kind == "kernel" and facts.get(fact):
                facts[rate] = round(facts[fact] / event.seconds / 1e9, 3)
        return row | {"ph": "X", "dur": 1e6 * event.seconds, "args": facts}


def _name(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _title(event: Event, facts: dict[str, Any]) -> str:
    """What a slice shows: the kind and the function; of a kernel, what it is and where it comes from."""
    if event.kind == "annotation":
        return event.name
    if event.kind == "kernel":
        return f"{facts['what']} {facts.get('line') or event.name}"
    detail = facts.get("step") or facts.get("outcome") or event.name or facts.get("library")
    return f"{event.kind} {detail}" if detail else event.kind


_lock = Lock()
_timeline: Timeline | None = None


class ProfileOptions(types.SimpleNamespace):
    """What programs written for JAX say about its tracers (`host_tracer_level`): kept, without effect."""


def start_trace(path: str | os.PathLike, create_perfetto_link: bool = False,
                create_perfetto_trace: bool = False, profiler_options: Any = None) -> None:
    """Begins a timeline, which `stop_trace` writes.

    Args:
        path: of a file, `.json` or `.json.gz`; a folder gets `jitcore-PID.json`.
        create_perfetto_link, create_perfetto_trace, profiler_options: accepted for compatibility: the file
            is Perfetto's.

    Raises: RuntimeError where one is on: there is one at a time, of all threads."""
    global _timeline
    path = os.fspath(path)
    if not path.endswith((".json", ".json.gz")):
        path = os.path.join(path, f"jitcore-{os.getpid()}.json")
    with _lock:
        if _timeline is not None:
            raise RuntimeError(f"a timeline is on already, for {_timeline.path}: only one can be, "
                               "stop_trace() ends it")
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        _timeline = Timeline(path)
        events.add_reader(_timeline.read)
        events.time_kernels(True)


def stop_trace() -> str:
    """Ends the timeline and writes its file. Returns: the path of it. Raises: RuntimeError where none is
    on."""
    global _timeline
    with _lock:
        if _timeline is None:
            raise RuntimeError("no timeline is on: start_trace(path) begins one")
        ended, _timeline = _timeline, None
        events.time_kernels(False)
        events.remove_reader(ended.read)
    with (gzip.open if ended.path.endswith(".gz") else open)(ended.path, "wt") as file:
        json.dump(ended.format(), file)
    return ended.path


@contextlib.contextmanager
def trace(path: str | os.PathLike, create_perfetto_link: bool = False, create_perfetto_trace: bool = False,
          profiler_options: Any = None) -> Iterator[None]:
    """Within, what all threads do with jitcore is written into a timeline; see `start_trace`.

    >>> with jitcore.profiler.trace("step.json"):
    ...     step(params, batch)

    Kernels are called one by one meanwhile, and programs are compiled for that when they are first called:
    leave the first call of a function out, by calling it once before."""
    start_trace(path)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(contextlib.ContextDecorator):
    """A slice of the timeline that the user names: `with TraceAnnotation("load batch", size=32): ...`.

    Without a timeline it costs a microsecond."""

    def __init__(self, name: str, **facts: Any):
        self.name, self.facts = name, facts
        self._open: list[Any] = []

    def _recreate_cm(self) -> TraceAnnotation:
        return type(self)(self.name, **self.facts)

    def __enter__(self) -> TraceAnnotation:
        span = events.span("annotation", self.name, **self.facts)
        span.__enter__()
        self._open.append(span)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._open.pop().__exit__(*exception)


class StepTraceAnnotation(TraceAnnotation):
    """The same for a step of a loop: `with StepTraceAnnotation("train", step_num=step): ...`."""


def annotate_function(function: Callable | None = None, name: str | None = None, **facts: Any) -> Callable:
    """Decorator: each call of the function is a slice of the timeline, of its name unless another is
    given."""
    if function is None:
        return functools.partial(annotate_function, name=name, **facts)

    @functools.wraps(function)
    def annotated(*args, **kwargs):
        with TraceAnnotation(name or function.__qualname__, **facts):
            return function(*args, **kwargs)

    return annotated
