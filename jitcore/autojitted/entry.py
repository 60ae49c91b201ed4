"""Entries: one signature of a function, compiled: a program and the code of the calls that it serves.

In: a `Recording`. Out: a function of the arguments that checks them, runs the program, writes what the user's
function would have written and returns what it would have returned; `MISS` for calls of another signature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.reading import Matcher
from jitcore.autojitted.inputs.specs import ABSENT, ArraySpec, ScalarSpec, Spec, meets_place
from jitcore.autojitted.recording.error_state import is_silent, read_state, silent
from jitcore.autojitted.recording.printed import count_writes, without_repetition
from jitcore.autojitted.recording.recorder import Recording
from jitcore.core.source import raise_interruption
from jitcore.dispatch.backend import find_backend
from jitcore.dispatch.fast_call import Constants, compile_function
from jitcore.dispatch.options import JitOptions
from jitcore.dispatch.program import Program
from jitcore.rewriter.operations.printing import PRINT


class _Miss:
    """The class of what there is one of: where it was pickled with a dispatcher, it is found by name."""

    def __reduce__(self):
        return "MISS"


#: What the code of an entry returns for a call that it does not serve.
MISS = _Miss()
#: Work that `np.shares_memory` may spend on two arrays whose bounds overlap.
_OVERLAP_WORK = 10_000
#: Strides of an argument for which it is remembered whether its elements share memory.
_MAX_STRIDES = 100


class Entry:
    """Args:
        recording: of the call.
        specs: of the arguments.
        options: what compiles the program.
        plain: runs a call in plain Python.

    Attributes:
        call: function of the arguments.
        program: with its stages as text.
        failures: calls that had to be run in plain Python.
        is_local: whether all it does is to change arrays among the arguments, which it reaches in no other
            way, and to print: then it may be tried on copies.
        loops, prints: whether there is a loop in it, whether it prints.
        declines: whether `plain` leaves the call to the caller.
        on_failure: called with the entry when a call had to be run in plain Python.
    """

    def __init__(self, recording: Recording, specs: Sequence[Spec], options: JitOptions, plain: Callable,
                 on_failure: Callable, declines: bool = False):
        self.specs, self.plain, self.on_failure = tuple(specs), plain, on_failure
        self.declines = declines
        self.failures = 0
        effects, places = recording.effects, recording.places
        backend = find_backend(options.backend)
        self.donated = set() if hasattr(backend, "wrap") else _choose_donated(recording)
        donated = tuple(place in self.donated for place in recording.inputs)
        self.program = Program(recording.traced, donated, options, backend, options.sharding)
        self.run = self.program.bind_to_host(recording.traced.jaxpr.in_avals)
        done = recording.traced.jaxpr.effects
        self.prints = PRINT in done
        self.loops = any(eqn.primitive.name in ("scan", "while") for eqn in recording.traced.jaxpr.eqns)
        if self.prints:
            self.run = count_writes(self.run)
        self.call = _write_call(self, recording, specs)
        self.place_count = len(places)
        n_arguments = _count_places(specs)
        is_limited = all(place < n_arguments for place in effects.written)
        is_reached = any(meets_place(capture.spec, n_arguments) for capture in recording.captures)
        self.is_local = is_limited and not is_reached and not effects.writes and done <= {PRINT}

    def fail(self, *args: Any) -> Any:
        """Serves a call whose program met what only plain Python can do."""
        self.failures += 1
        self.on_failure(self)
        if not self.prints:
            return self.plain(*args)
        with without_repetition(is_limited=not self.declines):
            return self.plain(*args)


def _choose_donated(recording: Recording) -> set[int]:
    """Places of arrays whose memory the program may write: nothing has to be taken back later."""
    if recording.effects.failed is not None:
        return set()
    found = set()
    for place in recording.effects.written:
        spec = recording.places[place]
        if (spec.is_contiguous or spec.is_fortran) and spec.is_writeable:
            found.add(place)
    return found


def _count_places(specs: Sequence[Spec]) -> int:
    matcher = Matcher(Constants())
    for spec in specs:
        spec.write(matcher, "p")
    return len(matcher.places)


def write_checks(matcher: Matcher, specs: Sequence[Spec]) -> list[str]:
    """Lines that return MISS unless the arguments p0, p1, ... have these specs."""
    for i, spec in enumerate(specs):
        spec.write(matcher, f"p{i}")
    return matcher.lines


def _write_call(entry: Entry, recording: Recording, specs: Sequence[Spec]) -> Callable:
    effects = recording.effects
    constants = effects.constants
    matcher = Matcher(constants)
    write_checks(matcher, specs)
    for source, spec in recording.captures:
        spec.write(matcher, source.read.format(owner=constants.add(source.owner)))
    matcher.check_distinct()
    parameters = ", ".join(f"p{i}" for i in range(len(specs)))
    lines = _write_inputs(recording, parameters)
    values = ", ".join(f"v{place}" for place in recording.inputs)
    run = [f"outs = run({values})"]
    if not entry.donated:  # nothing was written yet: plain Python gives the result or the true error
        run = ["try:", f"    outs = run({values})", "except Exception as error:",
               "    raise_interruption(error)", "    outs = None",
               f"if outs is None: return fail({parameters})"]
    lines += run
    if effects.failed is not None:
        lines.append(f"if outs[{effects.failed}]: return fail({parameters})")
    lines += _write_arrays(recording, entry.donated)
    lines += effects.result + effects.writes
    checks = "".join(f"            {line}\n" for line in matcher.lines) or "            pass\n"
    body = "".join(f"        {line}\n" for line in lines)
    source = _CALL.format(
        constants=constants.names, parameters=parameters, checks=checks, body=body, value=effects.value
    )
    make = compile_function(source, "make_call", __name__)
    return make(
        MISS,
        ABSENT,
        np,
        read_state,
        silent,
        is_silent,
        object.__new__,
        raise_interruption,
        overlaps,
        settle,
        entry.run,
        entry.fail,
        entry.plain,
        *constants.values,
    )


_CALL = """\
def make_call(MISS, ABSENT, np, read_state, silent, is_silent, new, raise_interruption, overlaps, settle,
              run, fail, plain, {constants}):
    copyto = np.copyto

    def call({parameters}):
        try:
{checks}        except Exception as error:
            raise_interruption(error)
            return MISS
        if read_state() is not silent[0] and not is_silent(): return plain({parameters})
{body}        return {value}

    return call
"""


def _write_inputs(recording: Recording, parameters: str) -> list[str]:
    """Lines that make the program's inputs of the values at their places."""
    lines = []
    arrays = [place for place, spec in enumerate(recording.places) if isinstance(spec, ArraySpec)]
    written = recording.effects.written
    for place in written:
        spec = recording.places[place]
        if not (spec.is_contiguous or spec.is_fortran):
            meets = recording.effects.constants.add(SelfOverlaps(spec.shape, spec.dtype.itemsize))
            lines.append(f"if {meets}[x{place}.strides]: return plain({parameters})")
        others = [other for other in arrays if other != place and (other not in written or other < place)]
        for other in others:
            lines.append(f"if (x{place}.base is not None or x{other}.base is not None) "
                         f"and overlaps(x{place}, x{other}): return plain({parameters})")
    for place in recording.inputs:
        spec = recording.places[place]
        if isinstance(spec, ScalarSpec):
            dtype = recording.effects.constants.add(spec.dtype)
            lines.append(f"v{place} = array(x{place}, {dtype})")
        elif spec.is_contiguous or spec.is_fortran:
            lines.append(f"v{place} = x{place}{'' if spec.is_contiguous else '.T'}")
        else:
            lines.append(f"v{place} = np.array(x{place}, order='C')")
    return lines


def _write_arrays(recording: Recording, donated: set[int]) -> list[str]:
    """Lines that bring the new contents of written arrays into the caller's memory."""
    lines = []
    written = recording.effects.written
    if donated:
        found = " and ".join(f"outs[{written[place]}] is v{place}" for place in sorted(donated))
        pairs = "".join(f"({written[place]}, v{place}), " for place in sorted(donated))
        lines.append(f"if not ({found}): outs = settle(outs, ({pairs}))")
    for place, output in written.items():
        if place not in donated:
            turn = ".T" if recording.places[place].is_fortran else ""
            lines.append(f"copyto(x{place}{turn}, outs[{output}])")
    return lines


class SelfOverlaps(dict):
    """Strides -> whether elements of an array of one shape may share memory with each other: whether some
    axis steps over less than the axes inside of it take."""

    def __init__(self, shape: tuple[int, ...], itemsize: int):
        super().__init__()
        self.shape, self.itemsize = shape, itemsize

    def __missing__(self, strides: tuple[int, ...]) -> bool:
        taken, found = self.itemsize, False
        for stride, extent in sorted((abs(stride), n) for stride, n in zip(strides, self.shape) if n > 1):
            found |= stride < taken
            taken += stride * (extent - 1)
        if len(self) >= _MAX_STRIDES:
            self.clear()
        self[strides] = found
        return found


def overlaps(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays may share an element."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=_OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


def settle(outs: Sequence[np.ndarray], pairs: Sequence[tuple[int, np.ndarray]]) -> list[np.ndarray]:
    """Outputs of a program that put them into other memory of the caller than where they belong.

    pairs: (number of an output, the array whose contents it is)."""
    outs = list(outs)
    targets = dict(pairs)
    given = {id(array) for array in targets.values()}
    for k, out in enumerate(outs):
        if id(out) in given and out is not targets.get(k):
            outs[k] = out.copy()
    for k, array in pairs:
        if outs[k] is not array:
            np.copyto(array, outs[k])
            outs[k] = array
    return outs
