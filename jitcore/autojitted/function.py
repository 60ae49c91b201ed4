"""The signatures of one function, and the tier that serves each.

In: calls, as one value for each parameter. Out: results. A call that no known signature serves is traced;
what cannot be traced runs in plain Python with its loops compiled (`loops.py`), as far as they can be; where
none can and calls take long, by Numba, if Numba gives the same.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from jitcore.autojitted.entry import Entry, Signature, Signatures, write_checked_call
from jitcore.autojitted.following import Following
from jitcore.autojitted.inputs.reading import (MAX_STATIC_VALUES, NumberPolicy, Reader, Unreadable,
                                               describe_path)
from jitcore.autojitted.inputs.specs import Spec
from jitcore.autojitted.options import Options
from jitcore.autojitted.recording.recorder import (Recording, call_inline, find_mixed_list, has_grown,
                                                   is_traced_call, record_call)
from jitcore.autojitted.tiers import native
from jitcore.autojitted.tiers.budget import (Account, Probe, find_hindrance, is_comparing, may_vary,
                                             uses_arrays)
from jitcore.autojitted.tiers.report import Reason, Tier, find_reason, warn_of
from jitcore.config import config
from jitcore.core.source import filter_traceback, format_place, raise_interruption
from jitcore.dispatch.call_facts import MISS
from jitcore.events.publishing import compiling, publish, span
from jitcore.numpy_semantics.errors import NotTraceable
from jitcore.process.effort import CacheInfo, TooMuchEffort
from jitcore.process.generated import (Dispatch, Parameters, make_dispatching_code, make_watching_code,
                                       make_wrapper)
from jitcore.rewriter.control_flow.raising import is_raised_defect

#: Seconds that may go into a function that has to be compiled.
UNLIMITED = 1e9


_all_functions: weakref.WeakSet[AutojitFunction] = weakref.WeakSet()


def clear_functions() -> None:
    """Empties the caches of every autojitted function that is alive."""
    for function in list(_all_functions):
        function.clear()


#: Calls of a function inside of each other, in plain Python, behind which it is left alone: until then each
#: takes several frames of those that Python allows.
MAX_PLAIN_DEPTH = 16


class AutojitFunction:
    """Args: a plain function; options; what finds the loops of a function that cannot be traced (`Loops`).

    Attributes:
        wrapper: what the user calls in its place.
        first_line: where messages say that it begins.
        wrapper_codes: that the wrapper was given here.
        loops: of a function that could not be traced, or None.
        account: what attempts have cost and may cost.
        long_call: seconds of a call in plain Python that were too many for programs given up as slower.
        signatures: those that are known.
        unrolled: why loops are none in a program, by file and line.
        packs: whether longer lists of numbers are arrays, see `Reader`.
    """

    #: Whether `plain` leaves a call to the code around it.
    declines = False

    def __init__(self, function: types.FunctionType, options: Options, outline: Callable | None = None,
                 account: Account | None = None):
        self.function, self.options = function, options
        self.tuning, free = options.tuning, UNLIMITED if options.strict else None
        self.account = Account(self.tuning, free) if account is None else account
        self.has_arrays = options.strict
        self.long_call = 0.0
        self.first_line = function.__code__.co_firstlineno
        self._outline, self._outlined, self.loops = outline, None, None
        self.parameters, self.following = Parameters(function.__code__), Following(self)
        self.policy = NumberPolicy(options.static_argnames)
        self.signatures = Signatures(self)
        self.reasons: list[Reason] = []
        self.unrolled: dict[tuple[str, int], Reason] = {}
        self.is_left, self.packs = False, True
        self.last_entry: Entry | None = None
        self._warned: set[Tier] = set()
        self._waiting_calls, self._unasked, self._plain_depth = 0, 0.0, 0
        self._python_calls = self._misses = self._traces = self._compiles = self._hits = 0
        self._numba_obstacle: str | None = None
        self.dispatch = Dispatch(self.signatures.recent, self.serve, MISS, filter_traceback)
        self.wrapper = make_wrapper(function, self.parameters, self.dispatch, self.following.serve)
        self.wrapper_codes = [self.wrapper.__code__]
        _all_functions.add(self)

    # What libraries pickle of a wrapper, its code and so its dispatcher, leads here. The object comes first,
    # as the function may know its wrapper; then what it is made of. What was compiled is found on disk.
    def __reduce__(self):
        return object.__new__, (type(self),), (self.function, self.options, self._outline)

    def __setstate__(self, made_of: tuple) -> None:
        self.__init__(*made_of)

    def plain(self, *values: Any) -> Any:
        """Runs a call in plain Python."""
        return self.parameters.call(self.function, values)

    @property
    def origin(self) -> tuple[str, str]:
        """Name and place of the function."""
        return self.function.__qualname__, format_place(self.function.__code__.co_filename, self.first_line)

    def describe(self, text: str) -> Reason:
        """A reason that concerns the whole function."""
        return Reason(self.function.__code__.co_filename, self.first_line, text)

    # -- a call that no recent signature serves --------------------------------------------------------------
    def serve(self, values: tuple) -> Any:
        """Raises: what the function raises; with `strict` also NotTraceable."""
        if config.disable_jit or is_comparing():
            return self.plain(*values)
        if self.following.has_other_parameters():
            return self.following.serve(values)
        if is_traced_call(values):
            return call_inline(self, values)
        reader = self._make_reader()
        problem = None
        try:
            specs = reader.read_all(self.parameters.names, values)
        except Unreadable as error:
            problem = str(error)
        if problem is not None:  # outside of the handler: what the function raises has its own context
            return self._run_unreadable(values, problem)
        for known in self.signatures.find(specs):
            result = known.call(*values)
            if result is not MISS:
                self._hits += 1
                self.signatures.remember(known)
                return result
        return self._serve_new(values, reader, specs)

    def _make_reader(self) -> Reader:
        return Reader(self.policy.is_static, self.packs, mixed=self.policy.mixed)

    def _run_unreadable(self, values: tuple, problem: str) -> Any:
        reason = self.describe(problem)
        if self.options.strict:
            raise reason.as_error()
        result = self._run_loops(values)
        self._note_fall(reason, Tier.PYTHON)
        self._count_python()
        return result

    def _serve_new(self, values: tuple, reader: Reader, specs: tuple[Spec, ...]) -> Any:
        self._misses += 1
        publish("miss", *self.origin,
                reason=lambda: self.signatures.explain_new(self.parameters.names, specs))
        exhausted = self.policy.find_exhausted(reader.number_paths)
        if exhausted is not None:
            text = f"{describe_path(exhausted)} has to be known and had more than {MAX_STATIC_VALUES} values"
            reason = self.describe(text)
            return self._fall(values, specs, reason.as_error(), reason)
        if not self.policy.may_make_version(specs):
            return self._run_loops(values)
        hindrance = "" if self._suits(specs) else find_hindrance(self.function, specs, self.tuning)
        if hindrance:
            self._numba_obstacle = hindrance
            return self._fall(values, specs, None, self.describe(hindrance))
        if not self.account.can_afford():
            return self._postpone(values, specs)
        refused, waits = None, False
        try:
            entry, specs = self._trace(values, reader, specs)
        except Exception as error:  # what tracing cannot do may raise anything; plain Python decides
            raise_interruption(error)
            if is_raised_defect(error):
                raise
            waits = isinstance(error, TooMuchEffort)
            if isinstance(error, RecursionError) and not self.options.strict:
                self._leave()
            refused = error if self.options.strict else None, find_reason(error, self.function)
        if refused is not None and reader.has_packed and not waits:
            self.packs = not Reader(self.policy.is_static).can_read(self.parameters.names, values)
            if not self.packs:  # lists are taken element by element
                return self.serve(values)
        if refused is not None:
            return self._fall(values, specs, *refused, waits)
        self.last_entry = entry
        new = Signature(entry.call, Tier.TRACED, specs, entry=entry)
        self.signatures.add(new)
        new.call = Probe(self, new, entry)
        result = new.call(*values)
        if result is MISS:  # another thread changed a captured variable meanwhile
            return self.plain(*values)
        self.signatures.remember(new)
        return result

    def _suits(self, specs: tuple[Spec, ...]) -> bool:
        """Whether arrays occur, for which more is spent, and which nothing else speaks against."""
        if not self.has_arrays and uses_arrays(self.function, specs):
            self.has_arrays = True
            if self.account.free == self.tuning.free:
                self.account.free = self.tuning.free_with_arrays
        return self.has_arrays

    def _trace(self, values: tuple, reader: Reader, specs: tuple[Spec, ...]
               ) -> tuple[Entry, tuple[Spec, ...]]:
        """An attempt. Raises: TooMuchEffort; whatever tracing raises."""
        start = perf_counter()
        with compiling("first call", *self.origin), self.account.attempt() as attempt:
            with span("trace"):
                recording, specs = self._record(values, reader, specs)
            attempt.note_traced(recording.traced.jaxpr)
            self.unrolled |= recording.unrolled
            options = self.options.of_program
            entry = Entry(recording, specs, options, self.plain, self._note_failure, self.declines)
        self._compiles += entry.program.take_compiles()
        self._say(f"traced and compiled in {1e3 * (perf_counter() - start):.0f} ms")
        return entry, specs

    def _record(self, values: tuple, reader: Reader, specs: tuple[Spec, ...]
                ) -> tuple[Recording, tuple[Spec, ...]]:
        """Traces, with more and more numbers as constants where their values are needed."""
        before, first, grows = self.policy.pinned, None, True
        while True:
            try:
                origins: list[tuple] = []
                call = self.parameters.call
                recording = record_call(self.function, call, specs, reader, origins, grows=grows,
                                        prints=self.options.prints)
                self._traces += 1
                return recording, specs
            except TooMuchEffort:
                self.policy.unpin(self.policy.pinned - before)
                raise
            except Exception as error:
                raise_interruption(error)
                mixed = find_mixed_list(error)
                grows = bool(mixed) or not has_grown(error)
                if grows and not mixed:
                    first = first or error
                    if self.policy.pinned.issuperset(origins):  # nothing would be different
                        self.policy.unpin(self.policy.pinned - before)
                        try:
                            raise first from None
                        finally:
                            first = None  # the exception knows this frame, and its arguments
                    self.policy.pin(origins)
                self.policy.mixed |= mixed
                reader = reader.renew(self.policy.mixed)
                specs = reader.read_all(self.parameters.names, values)

    # -- lower tiers -----------------------------------------------------------------------------------------
    def _fall(self, values: tuple, specs: tuple[Spec, ...], error: Exception | None, reason: Reason,
              waits: bool = False) -> Any:
        """Serves a call that was not traced. error: what tracing met, for `strict`; waits: whether it is
        tried again when calls have taken longer."""
        if self.options.strict and isinstance(error, NotTraceable):
            raise NotTraceable(str(error)).with_traceback(error.__traceback__) from None
        result = self._run_loops(values)  # raises where the call itself is at fault
        if self.options.strict and error is not None:
            is_own = type(error).__module__.partition(".")[0] == "jitcore"
            raise error if is_own else reason.as_error() from None  # Python did not raise it
        self._note_fall(reason, Tier.PYTHON)
        self._add_python(specs, reason, waits)
        return result

    def _postpone(self, values: tuple, specs: tuple[Spec, ...]) -> Any:
        """Serves a call for which compiling cannot be afforded yet."""
        reason = self.describe("compiling it again waits until its calls have taken longer")
        result = self._run_loops(values)
        self._add_python(specs, reason, waits=True)
        return result

    def _add_python(self, specs: tuple[Spec, ...], reason: Reason, waits: bool) -> None:
        call = write_checked_call(specs, self._run_waiting if waits else self._run_refused)
        new = Signature(call, Tier.PYTHON, specs, reason, waits=waits)
        self.signatures.add(new)
        self.signatures.remember(new)
        self._count_python()

    def _run_loops(self, values: tuple) -> Any:
        """Plain Python, with the loops compiled that can be."""
        if self.following.has_other_parameters():
            return self.following.serve(values)
        if self._outlined is not self.function.__code__:  # not yet, or its code was exchanged
            self._outlined = self.function.__code__
            self.loops = None if self._outline is None else self._outline(self)
        self._plain_depth += 1
        try:
            if self._plain_depth > MAX_PLAIN_DEPTH:
                self._leave()
            if self.loops is None or not (self.loops.is_open or self.loops.is_waiting):
                return self.account.time_call(self.plain, *values)
            return self.loops.call(*values)
        finally:
            self._plain_depth -= 1

    def _run_waiting(self, *values: Any) -> Any:
        """Serves a call of a signature that waits."""
        if self.account.can_afford():
            self.signatures.forget_waiting()
            return self.serve(values)
        self._waiting_calls += 1
        if self._waiting_calls >= self.tuning.calls_before_leaving:
            self.is_left = True
            self.leave_again()
        return self._run_refused(*values)

    def _run_refused(self, *values: Any) -> Any:
        """Serves a call of a signature that could not be traced."""
        self._count_python()
        if self.loops is not None and self.loops.has_compiled:
            return self._run_loops(values)
        if self._numba_obstacle is None:
            self._numba_obstacle = native.find_obstacle(self.function)
        if self._numba_obstacle:
            return self._run_loops(values)
        return self._run_patiently(values)

    def _run_small(self, *values: Any) -> Any:
        """Serves a call that takes less time in plain Python."""
        self._count_python()
        start = perf_counter()
        result = self.plain(*values)
        seconds = perf_counter() - start
        if seconds > self.long_call:
            self.take_up_again(seconds)
        return result

    def _run_patiently(self, values: tuple) -> Any:
        """Plain Python, until it has taken so long that Numba is tried."""
        if self.account.seconds >= self.tuning.patience:
            found = self._find_refused(values)
            if found is not None:
                return self._run_trial(found, values)
        return self._run_loops(values)

    def _find_refused(self, values: tuple) -> Signature | None:
        """The signature of a call that plain Python serves."""
        specs = self._make_reader().read_all(self.parameters.names, values)
        return next((one for one in self.signatures.find(specs) if one.tier is Tier.PYTHON), None)

    def _run_trial(self, old: Signature, values: tuple) -> Any:
        """Plain Python, and Numba on copies; later calls of the signature are Numba's if it gave the same."""
        trial = native.try_numba(self.function, self.parameters.call, values)
        if trial.compiled is None:
            self._numba_obstacle = trial.reason
        else:
            compiled, holds, invoke = trial.compiled, trial.frozen.holds, self.parameters.call
            run = lambda *given: invoke(compiled, given) if holds() else self.plain(*given)  # noqa: E731
            call = write_checked_call(old.specs, run)
            self.signatures.replace(old, Signature(call, Tier.NUMBA, old.specs, old.reason))
            self._say("compiled by Numba")
        return trial.result

    def demote(self, old: Signature, reason: Reason, run: Callable | None = None) -> None:
        """Serves a signature in plain Python from now on, or by `run`, a function of the values."""
        call = write_checked_call(old.specs, self._run_refused if run is None else run)
        self.signatures.replace(old, Signature(call, Tier.PYTHON, old.specs, reason))

    def give_way(self, old: Signature, seconds: float) -> None:
        """Serves a signature in plain Python, which takes less time than the `seconds` of its program; but
        for the time being: other arguments may make more work."""
        reason = self.describe("plain Python takes less time than compiled code for these small arguments")
        self.long_call = min(max(self.tuning.long_calls * seconds, 2 * self.long_call),
                             self.tuning.sure_seconds)
        call = write_checked_call(old.specs, self._run_small)
        self.signatures.replace(old, Signature(call, Tier.PYTHON, old.specs, reason, old.entry))

    def take_up_again(self, seconds: float) -> None:
        """Behind a call in plain Python that took long: programs that had given way serve again. Short of
        `sure_seconds`, which no chance makes of a short call, they are compared with plain Python again."""
        for old in [one for one in self.signatures if one.gave_way]:
            new = Signature(old.entry.call, Tier.TRACED, old.specs, entry=old.entry)
            if seconds < self.tuning.sure_seconds:
                new.call = Probe(self, new, old.entry)
            self.signatures.replace(old, new)
        if self.loops is not None:
            self.loops.take_up_again()
        self.serve_again()

    def serve_again(self) -> None:
        """Serves calls again, behind a time in which the function was left alone."""
        self._python_calls = self._waiting_calls = 0
        self.is_left = False
        code = make_dispatching_code(self.function, self.parameters, self.dispatch, self.following.serve)
        if self.wrapper.__code__ != code:
            self.wrapper.__code__ = code
            self.wrapper_codes.append(code)

    def _note_watched(self, seconds: float) -> None:
        """Told of calls while the function is left alone."""
        self.account.note_call(seconds)
        self._unasked += seconds
        if self.long_call and seconds > self.long_call:
            self.take_up_again(seconds)
        elif self._unasked > self.tuning.between_questions:
            self._unasked = 0.0
            if self._waits and self.account.can_afford():
                self.signatures.forget_waiting()
                self.serve_again()

    @property
    def _waits(self) -> bool:
        return any(one.waits for one in self.signatures)

    def _note_failure(self, entry: Entry) -> None:
        if entry.failures >= 3:
            for known in self.signatures.find(entry.specs):
                if known.entry is entry:
                    reason = self.describe("three calls met an exception or an index out of range")
                    self._note_fall(reason, Tier.PYTHON)
                    self.demote(known, reason)
                    return

    def _note_fall(self, reason: Reason, tier: Tier) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)
            publish("fallback", *self.origin, tier=tier.value, reason=str(reason))
        if tier not in self._warned:
            self._warned.add(tier)
            lines = [] if self.loops is None else self.loops.list_compiled()
            warn_of(reason, self.function.__qualname__, tier, lines)

    def _count_python(self) -> None:
        """Leaves the function alone when only plain Python serves its calls."""
        self._python_calls += 1
        tuning = self.tuning
        if self._python_calls < tuning.calls_before_leaving:
            return
        if self._numba_obstacle == "" and self.account.seconds < tuning.short_call * self._python_calls:
            self._numba_obstacle = "its calls are short"
        if self.signatures.tiers <= {Tier.PYTHON} and (self._numba_obstacle or self._numba_obstacle is None):
            is_hopeless = all(one.reason is not None for one in self.signatures)
            if is_hopeless or self._python_calls >= tuning.calls_before_leaving_traced:
                self._leave()

    def _leave(self) -> None:
        self.is_left = True
        self.leave_again()

    def leave_again(self) -> None:
        """Lets calls run the function itself, or that with gates, if it is left alone. They are watched where
        something waits for them to take longer."""
        if not self.is_left:
            return
        has_loops = self.loops is not None and self.loops.is_open
        run = self.loops.function if has_loops else self.function
        waits = self._waits
        gave_way = any(one.gave_way for one in self.signatures)
        if self.loops is not None and self.loops.gave_way:
            gave_way, self.long_call = True, self.long_call or self.tuning.sure_seconds
        if waits or gave_way and may_vary(self.function):
            limit = 0.0 if waits else self.long_call
            self.wrapper.__code__ = make_watching_code(
                self.function, self.parameters, self.following.serve, run, limit, self._note_watched)
        else:
            self.wrapper.__code__ = run.__code__  # at the cost of the function itself
        self.wrapper_codes.append(self.wrapper.__code__)

    def clear(self) -> None:
        """Forgets every signature."""
        self.signatures.clear()
        self.reasons.clear()
        self.unrolled.clear()
        if self.loops is not None:
            self.loops.clear()

    def info(self) -> CacheInfo:
        loops = () if self.loops is None else self.loops.loops
        own = CacheInfo(self._hits, self._misses, self._traces, self._compiles)
        return CacheInfo(*map(sum, zip(own, *(loop.info() for loop in loops))))

    def _say(self, text: str) -> None:
        if self.options.verbose:
            print(f"jitcore autojit: {self.function.__qualname__}: {text}", file=sys.stderr)
