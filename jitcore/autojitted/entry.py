"""Entries: one signature of a function, compiled: a program and the code of the calls that it serves.

In: a `Recording`. Out: a function of the arguments that checks them, runs the program, writes what the user's
function would have written and returns what it would have returned; `MISS` for calls of another signature.
And functions of the arguments that try the known signatures one after the other.

The code asks for NumPy's floating-point error state, which `np.errstate` and `np.seterr` set: compiled code,
which computes inf and nan without a word, serves no call where errors raise, are printed or call a function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jitcore.autojitted.inputs.matching import Matcher
from jitcore.autojitted.inputs.specs import (ArraySpec, GeneratorSpec, ScalarSpec, Spec, meets_place,
                                             order_arguments)
from jitcore.autojitted.recording.recorder import Recording, count_writes, without_repetition
from jitcore.autojitted.tiers.report import Reason, Tier
from jitcore.config import config
from jitcore.core.source import raise_interruption
from jitcore.dispatch.backend import Backend, find_backend
from jitcore.dispatch.call_facts import ABSENT, FLAGS, MISS, ArrayFacts, Scalars, tell_nothing
from jitcore.dispatch.generated_calls import (TAKEN, SelfOverlaps, any_overlap, is_silent, overlaps,
                                              read_state, settle, silent, state_variable)
from jitcore.dispatch.options import JitOptions
from jitcore.dispatch.program import Program
from jitcore.process.concurrency import Lock, drop_oldest
from jitcore.process.generated import Constants
from jitcore.process.streams import are_apart, find_memory
from jitcore.rewriter.operations.redirects import PRINT

#: Signatures that a call tries one after the other before its arguments are read in general.
MAX_RECENT = 8
#: Pairs of an array that is written and any other that are looked at one by one.
MAX_PAIRS = 16


class Entry:
    """Args:
        recording: of the call.
        specs: of the arguments.
        options: what compiles the program.
        plain: runs a call in plain Python.

    Attributes:
        call: function of the arguments. source: its parameters, its lines, and what these name c0, c1, ...
        arrays, codes: what native code can check: facts of arrays, and functions with the code of each.
        program: with its stages as text. scalars: inputs and outputs that are numbers.
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
        backend = find_backend(options.backend)
        self.program = Program(recording.traced, (), options, backend, options.sharding)
        recording = self._drop_failure(recording)
        effects, places = recording.effects, recording.places
        self.donated = set() if hasattr(backend, "wrap") else _choose_donated(recording)
        self.program.donated = tuple(place in self.donated for place in recording.inputs)
        targets = {leaf: effects.written[place] for leaf, place in enumerate(recording.inputs)
                   if place in self.donated}
        self.scalars = _find_scalars(recording)
        self.run = self.program.bind_to_host(recording.traced.jaxpr.in_avals, targets, self.scalars)
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
        is_limited &= not _list_drawn(recording)
        self.is_local = is_limited and not is_reached and not effects.writes and done <= {PRINT}

    def _drop_failure(self, recording: Recording) -> Recording:
        """The recording; without the flag where passes show that the program never fails."""
        failed = recording.effects.failed
        if failed is None or not self.program.is_never(failed):
            return recording
        self.program = self.program.without_output(failed)
        return recording._replace(traced=self.program.traced, effects=recording.effects.without_failure())

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
        if spec.is_dense and spec.is_writeable:
            found.add(place)
    return found


def _find_scalars(recording: Recording) -> Scalars | None:
    specs = [recording.places[place] for place in recording.inputs]
    takes = tuple(spec.kind if isinstance(spec, ScalarSpec) and spec.kind in TAKEN else None
                  for spec in specs)
    gives = tuple(map(recording.effects.scalars.get, range(len(recording.effects.outputs))))
    return Scalars(takes, gives) if any(takes) or any(gives) else None


def _count_places(specs: Sequence[Spec]) -> int:
    matcher = Matcher(Constants())
    for spec in specs:
        spec.write(matcher, "p")
    return len(matcher.places)


def _write_checks(matcher: Matcher, specs: Sequence[Spec]) -> None:
    """Lines that return MISS unless the arguments p0, p1, ... have these specs."""
    for i in order_arguments(specs):
        specs[i].write(matcher, f"p{i}")


def _write_call(entry: Entry, recording: Recording, specs: Sequence[Spec]) -> Callable:
    effects = recording.effects
    constants = effects.constants
    matcher = Matcher(constants)
    _write_checks(matcher, specs)
    codes = []
    for source, spec in recording.captures:
        if source.read == "{owner}.__code__" and isinstance(source.owner, FunctionType):
            codes.append((source.owner, spec))
        else:
            spec.write(matcher, source.read.format(owner=constants.add(source.owner)))
    matcher.check_distinct()
    checks = matcher.take_lines()
    # Where native code knows the call, Python need not look.
    checks += [f"known = is_known({', '.join(matcher.arrays)})", "if known < 2:", "    if not known:",
               "        pass"]
    written = {f"x{place}" for place in effects.written}
    matcher.check_arrays(written)
    for function, spec in codes:
        spec.write(matcher, f"{constants.add(function)}.__code__")
    checks += matcher.take_lines(2)
    matcher.check_distinct_arrays()
    checks += matcher.take_lines(1)
    parameters = _list_parameters(len(specs))
    lines = ["try:", *(f"    {line}" for line in checks),
             "except Exception as error:", "    raise_interruption(error)", "    return MISS",
             "if not known and read_state() is not silent[0] and not is_silent(): "
             f"return plain({parameters})"]
    lines += _write_inputs(recording, parameters)
    part = [f"outs = run({', '.join(f'v{place}' for place in recording.inputs)})"]
    wrong = [] if effects.failed is None else [f"outs[{effects.failed}]"]
    if not entry.donated:  # nothing was written yet: plain Python gives the result or the true error
        part = ["try:", f"    {part[0]}", "except Exception as error:", "    raise_interruption(error)",
                "    outs = None"]
        wrong = ["outs is None", *wrong]
    writes, plain = _write_arrays(recording, entry.donated), f"return fail({parameters})"
    drawn = _list_drawn(recording)
    if drawn:
        lines += _write_drawing(drawn, constants, part, " or ".join(wrong) or "False", writes, plain)
    else:
        lines += [*part, *(f"if {one}: {plain}" for one in wrong), *writes]
    lines += [*effects.result, *effects.writes, f"return {effects.value}"]
    entry.source = parameters, lines, constants.values
    entry.arrays = [ArrayFacts(spec.dtype, spec.shape, spec.flags, x in written)
                    for x, spec in matcher.arrays.items()]
    entry.codes = [(owner, spec.value) for owner, spec in codes]
    is_known = _make_check(entry.program.backend, entry.arrays, entry.codes)
    return constants.define("call", parameters, lines, __name__, **_NAMES, run=entry.run, fail=entry.fail,
                            plain=entry.plain, is_known=is_known)


def _make_check(backend: Backend, arrays: Sequence[ArrayFacts],
                codes: Sequence[tuple[FunctionType, CodeType]]) -> Callable[..., int]:
    """What knows calls of a signature."""
    if state_variable is None or not hasattr(backend, "make_check"):
        return tell_nothing
    return backend.make_check(arrays, FLAGS, codes, (state_variable, silent)) or tell_nothing


def _list_parameters(count: int) -> str:
    return ", ".join(f"p{i}" for i in range(count))


def _write_drawing(drawn: Sequence[int], constants: Constants, part: Sequence[str], wrong: str,
                   writes: Sequence[str], plain: str) -> list[str]:
    """Lines that run a part of a call while nobody else draws from its generators."""
    names = [f"h{place}" for place in drawn]
    generators = ", ".join(f"x{place}" for place in drawn)
    find = constants.add(find_memory)
    apart = f"if not {constants.add(are_apart)}({generators}): {plain}"
    return [*([apart] if len(drawn) > 1 else []),
            *(f"h{place} = {find}(x{place})" for place in drawn), f"with {', '.join(names)}:",
            *(f"    {line}" for line in part), f"    is_wrong = {wrong}", "    if not is_wrong:",
            *(f"        {line}" for line in (*writes, *(f"{name}.write()" for name in names))),
            f"if is_wrong: {plain}"]


def _list_drawn(recording: Recording) -> list[int]:
    """Places of generators that are drawn from: their words, which follow, are written."""
    return [place for place, spec in enumerate(recording.places)
            if isinstance(spec, GeneratorSpec) and place + 1 in recording.effects.written]


def _write_inputs(recording: Recording, parameters: str) -> list[str]:
    """Lines that make the program's inputs of the values at their places."""
    lines = []
    arrays = [place for place, spec in enumerate(recording.places) if isinstance(spec, ArraySpec)]
    written = recording.effects.written
    for place in written:
        spec = recording.places[place]
        if not spec.is_dense:
            meets = recording.effects.constants.add(SelfOverlaps(spec.shape, spec.dtype.itemsize))
            lines.append(f"if {meets}[x{place}.strides]: return plain({parameters})")
    read = [place for place in arrays if place not in written]
    if len(written) * len(arrays) > MAX_PAIRS:
        names = [f"({''.join(f'x{place}, ' for place in places)})" for places in (written, read)]
        lines.append(f"if known < 2 and any_overlap({', '.join(names)}): return plain({parameters})")
    else:
        for place in written:
            for other in (*read, *(other for other in written if other < place)):
                lines.append(f"if known < 2 and (x{place}.base is not None or x{other}.base is not None) "
                             f"and overlaps(x{place}, x{other}): return plain({parameters})")
    for place in recording.inputs:
        spec = recording.places[place]
        if isinstance(spec, ScalarSpec) and spec.kind in TAKEN:
            lines.append(f"v{place} = x{place}")
        elif isinstance(spec, ScalarSpec):
            dtype = recording.effects.constants.add(spec.dtype)
            lines.append(f"v{place} = array(x{place}, {dtype})")
        elif spec.is_dense:
            lines.append(f"v{place} = x{place}{spec.turn}")
        else:
            copy = "array" if place in written else "asarray"
            lines.append(f"v{place} = np.{copy}(x{place}{spec.turn}, order='C')")
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
            lines.append(f"copyto(x{place}{recording.places[place].turn}, outs[{output}])")
    return lines


#: What the code of calls refers to by name.
_NAMES = {"MISS": MISS, "ABSENT": ABSENT, "np": np, "ndarray": np.ndarray, "array": np.array,
          "copyto": np.copyto, "new": object.__new__, "read_state": read_state, "silent": silent,
          "is_silent": is_silent, "raise_interruption": raise_interruption, "overlaps": overlaps,
          "any_overlap": any_overlap, "settle": settle}


# -- the signatures of a function ---------------------------------------------------------------------------
class Signature:
    """A signature that is known, and how calls of it are served.

    Attributes:
        call: function of the values, giving MISS for another signature.
        tier, reason: how it is served, and why not better.
        entry: of a traced one, and of one whose program takes longer than plain Python.
        waits: whether compiling it has to wait until calls have taken longer.
    """

    __slots__ = ("call", "tier", "reason", "entry", "specs", "waits")

    def __init__(self, call: Callable, tier: Tier, specs: Sequence[Spec], reason: Reason | None = None,
                 entry: Entry | None = None, waits: bool = False):
        self.call, self.tier, self.specs, self.reason, self.entry = call, tier, tuple(specs), reason, entry
        self.waits = waits

    @property
    def gave_way(self) -> bool:
        """Whether plain Python takes less time than its program."""
        return self.tier is Tier.PYTHON and self.entry is not None


class RecentCalls(list):
    """The calls that the dispatcher of a function tries first; a constant of its code, and hashed as one."""

    __hash__ = object.__hash__

    def __init__(self, owner: Any):
        self._owner = owner

    def __reduce__(self):
        return operator.attrgetter("signatures.recent"), (self._owner,)


class Signatures:
    """Those of one function. Thread-safe.

    Attributes:
        recent: the calls of those that were met last."""

    def __init__(self, owner: Any):
        self._lock = Lock()
        self._known: dict[tuple, list[Signature]] = {}  # by the specs of the arguments
        self.recent = RecentCalls(owner)

    def __iter__(self) -> Iterator[Signature]:
        return iter([one for known in list(self._known.values()) for one in known])

    def __len__(self) -> int:
        return len(self._known)

    @property
    def tiers(self) -> set[Tier]:
        return {one.tier for one in self}

    def find(self, specs: tuple[Spec, ...]) -> Sequence[Signature]:
        """Those of arguments of these specs; captured variables tell them apart."""
        return self._known.get(specs, ())

    def explain_new(self, names: Sequence[str], specs: tuple[Spec, ...]) -> str:
        """Which arguments differ from those of the most similar signature."""
        if not self._known:
            return "It was the first call: the cache was empty."
        changes = [[(name, old, new) for name, old, new in zip(names, known, specs) if old != new]
                   for known in reversed(self._known)]
        closest = min(changes, key=len)
        texts = [f"{name} was {old}, is {new}" if str(old) != str(new) else f"{name} was {old!r}, is {new!r}"
                 for name, old, new in closest]
        return "; ".join(texts) or "captured variables differ"

    def add(self, new: Signature) -> None:
        with self._lock:
            known = self._known.setdefault(new.specs, [])
            known.insert(0, new)
            for old in known[MAX_RECENT:]:
                self._drop_recent(old)
            del known[MAX_RECENT:]
            drop_oldest(self._known, config.cache_size)

    def remember(self, signature: Signature) -> None:
        """Tries a signature first in later calls."""
        with self._lock:
            if signature.call not in self.recent:
                self.recent.insert(0, signature.call)
                del self.recent[MAX_RECENT:]

    def replace(self, old: Signature, new: Signature) -> None:
        with self._lock:
            known = self._known.setdefault(old.specs, [])
            if old in known:
                known[known.index(old)] = new
            self._replace_recent(old.call, new.call)

    def settle(self, signature: Signature, call: Callable) -> None:
        """Ends the probing of a program."""
        with self._lock:
            self._replace_recent(signature.call, call)
            signature.call = call

    def forget_waiting(self) -> None:
        with self._lock:
            for specs, known in list(self._known.items()):
                for one in [one for one in known if one.waits]:
                    known.remove(one)
                    self._drop_recent(one)
                if not known:
                    del self._known[specs]

    def clear(self) -> None:
        with self._lock:
            self._known.clear()
            self.recent.clear()

    def _replace_recent(self, old: Callable, new: Callable) -> None:
        if old in self.recent:
            self.recent[self.recent.index(old)] = new

    def _drop_recent(self, signature: Signature) -> None:
        if signature.call in self.recent:
            self.recent.remove(signature.call)


def write_checked_call(specs: Sequence[Spec], run: Callable) -> Callable:
    """`run`, a function of the values, for calls of this signature."""
    matcher, values = Matcher(Constants()), _list_parameters(len(specs))
    _write_checks(matcher, specs)
    matcher.check_arrays()
    lines = [*matcher.lines, f"return plain({values})"]
    return matcher.constants.define("call", values, lines, __name__, **_NAMES, plain=run)
