"""What becomes of a loop of the script: plain Python, a program that is checked, and then that program.

In: frames that come to the loop's head. Out: what the loop's entry is told (see `entries`): to go on there,
or where the program has left the loop.

A program earns its place. On copies of what it works on it does one iteration, Python does the same one, and
both must agree (`trial`). Then it runs for as long as Python would take 10 ms, and must not be slower. What
is found out is kept for later runs (`learned`).
"""

from __future__ import annotations

import functools
import math
from operator import length_hint
from time import perf_counter, thread_time
from types import FrameType
from typing import TYPE_CHECKING, Any

from jitcore.rewriter.bytecode.instructions import INDEX, LIMIT
from jitcore.scripts.fates import AGAIN, ENTRY, FEW_ENTRIES, SHORT, TRIALS, FrameFate
from jitcore.scripts.frames import write_variables
from jitcore.scripts.gates import HEAD, WATCH
from jitcore.scripts.iterators import ANY_STEP, ROOM, Ahead, look_ahead
from jitcore.scripts.trial import Trial
from jitcore.scripts.units import State, Unit, find_loading_time

if TYPE_CHECKING:
    from jitcore.scripts.regions import Region
    from jitcore.scripts.workshop import Workshop

__all__ = ["LoopFate"]

#: Seconds of plain Python in whose place a program runs first.
PART = 0.01
#: Seconds of the iterations that a program does at once, about: signals are seen to between them.
QUICK = 0.05
#: Iterations that may be of another kind than those behind them.
FIRST = 2
#: Iterations that are looked at where a loop is left soon; and that are timed, for so many seconds at most,
#: so many times.
FEW, LITTLE, SERIES = 16, 1e-3, 3
#: Iterations that are timed where each takes little: to begin and to end takes about as long as 50 of them.
MANY = 256
#: Seconds of an iteration that need not be timed more than once.
LONG = 0.02
#: Seconds that entries may take before they must have been worth it.
SETTLING = 0.01
#: Seconds of entries after which it is asked again what an iteration takes; then four times as long.
TRUSTED = 0.1


class LoopFate(FrameFate):
    """Of a loop."""

    def __init__(self, workshop: Workshop, unit: Unit):
        super().__init__(workshop, unit)
        self._trial: tuple[FrameType, float, int, Trial] | None = None
        self._mark: tuple[Any, float, int] | None = None
        self._watched: tuple[Any, float, int] | None = None
        self._n_watched, self._paces = FEW, []
        self._begun: tuple[Any, float, int, int] | None = None
        self._n_short = 0
        self._room = self._most = ROOM
        self._n_missed = self._n_turned = 0  # misses, turns to other programs, one after the other
        self._form = ""
        self._n_checked = 1
        self._fixed = 0.0  # seconds of the shortest part that a program with lists has done
        self._cost, self._worth, self._done = 0.0, 0.0, 0  # seconds; of programs before; iterations
        self._known, self._trusted = 0.0, TRUSTED
        self._n_series = SERIES

    def enter(self, frame: FrameType, iterator: Any, was_stopped: bool) -> tuple[int, Any]:
        """A frame stands at the head. was_stopped: where it was in the loop for a tick at least."""
        now = perf_counter()
        self.load()
        if self.region is None:
            if self.state == State.COLD and not was_stopped and self._is_short(frame, iterator):
                return WATCH, iterator
            self.unit.gate.close()
            if self.state == State.COLD:
                self._submit(frame, iterator)
            return HEAD, iterator
        ahead = self._look_ahead(iterator)
        if ahead is None:
            return self._miss(frame, iterator)
        if self._trial is not None:
            self._judge(frame, ahead)
            if self.region is None:
                return HEAD, iterator
        self._use_mark(iterator, ahead)
        if self.checks:
            self._check(frame, ahead)
            return WATCH, iterator
        if self.untried and ahead.left > 1:
            self.untried -= 1
            if self._try(frame, ahead):
                return WATCH, iterator
        if not self.pace and self._measure(frame if iterator is None else iterator, now, ahead.left):
            return WATCH, iterator
        if self.region is None:
            return HEAD, iterator
        start, is_first = perf_counter(), not self.entries
        found = self._run(frame, iterator, ahead)
        self._weigh(perf_counter() - start, is_first)
        return found

    def _submit(self, frame: FrameType, iterator: Any) -> None:
        try:
            ahead = look_ahead(iterator)
        except TypeError as error:
            self.give_up(str(error))
            return
        is_known = ahead.step in (1, *self.unit.prepared.original.co_consts)
        if not is_known or self._n_vain and self._form not in ("", ahead.form):
            ahead.take_any_step()
        self._form = ahead.form
        self._mark = iterator, perf_counter(), ahead.left
        self.workshop.submit_loop(self, frame, ahead)

    def _weigh(self, seconds: float, is_first: bool) -> None:
        """Gives up where entries take longer than the iterations that they do would in Python. is_first: the
        first one loads this and that."""
        if not is_first:
            self._cost += seconds + ENTRY
        if self.region is None or not self.pace:
            return
        if self._cost > self.gained + SETTLING:
            self.rest(FEW_ENTRIES)
        elif self._cost > max(self._trusted, 2 * self.pace):  # iterations may have become shorter
            self._n_watched, self._n_series = max(1, min(FEW, int(LITTLE / self.pace))), SERIES
            if self.pace > LONG:
                self._n_series = 1
            self._known, self.pace, self._paces = self.pace, 0.0, []

    def _renew_pace(self, pace: float) -> None:
        """Takes over what an iteration takes in Python now, and weighs what was done meanwhile."""
        self.pace = min(pace, self._known or pace)
        if self._cost > self.gained + SETTLING:
            self.rest(FEW_ENTRIES)
        self._gained, self._worth, self._done, self._cost = self.replaced, 0.0, 0, 0.0
        self._trusted *= 4 if self._known else 1

    def _look_ahead(self, iterator: Any) -> Ahead | None:
        """None where there is nothing for the program."""
        try:
            ahead = look_ahead(iterator, self._room)
        except TypeError:
            return None
        if self.region.program.form == ANY_STEP:
            ahead.take_any_step()
        return ahead if ahead.left and ahead.form == self.region.program.form else None

    def _run(self, frame: FrameType, iterator: Any, ahead: Ahead) -> tuple[int, Any]:
        program, end = self.region.program, self.loop.end
        per_iteration, entries = self.pace if self.is_new else 0.0, self.entries
        part, longest, quick = PART, math.inf, QUICK * (4 if program.packs else 1)
        number, entered = HEAD, perf_counter()
        while True:
            if program.packs and self.pace and min(ahead.most, ahead.left) * self.pace < self._fixed:
                break  # copying takes longer
            count = min(ahead.most, ahead.left, self._most)
            if program.grown:
                count = min(count, self._room)
            if per_iteration:  # a part first: compiled code may be slower
                count = min(count, max(1, int(part / per_iteration)))
            start, begun = perf_counter(), thread_time()
            found = self.do(frame, ahead, count)
            seconds = perf_counter() - start
            if found is None and program.grown and self._room > 1:  # its lists outgrow their room
                self._room //= 8
                continue
            if found is None:
                self._room, self._most = ROOM, max(1, count // 8)  # what it cannot do may be rare
                return self._miss(frame, iterator)
            self.is_new, self.region.is_proven = False, True
            self.entries, self._n_missed, self._n_turned = entries + 1, 0, 0
            self.seconds += seconds
            number, results = found
            self.write(frame, results)
            is_part = number == HEAD or number < len(self.loop.exits) and self.loop.exits[number] == end
            done = count
            if not is_part and program.counter is not None:
                done = ahead.count_done(count, results[program.counter])
                iterator = ahead.advance(done)
            self._done += done
            if ahead.sources:
                self._room = min(ROOM, 4 * count) if is_part else max(FEW, 2 * done)
            if not is_part or count == ahead.left and ahead.is_bounded:
                break
            if per_iteration and seconds > per_iteration * count:
                if seconds > longest:  # it does not take longer because of what each entry takes
                    self.rest("its program takes longer than Python")
                    return HEAD, ahead.advance(count)
                is_first = longest == math.inf  # which loads this and that
                if not is_first:
                    part, longest = 4 * part, 2 * seconds
                else:  # to copy its lists may take longer than all that it is to do
                    part, longest = (max(part, 2 * seconds), 4 * seconds) if program.packs else (part, PART)
            else:
                per_iteration = 0.0
            if program.packs:  # what copying takes is no reason to do less
                busy = thread_time() - begun
                own = max(busy - self._fixed, busy / 64)
                self._fixed = min(self._fixed or busy, busy)
                quick, most = max(quick, self._fixed), 4 if own == busy else 64
            else:
                own, most = seconds, 4
            if not quick <= own <= 4 * quick:
                self._most = min(most * count, max(1, int(count * quick / (own or quick))))
            waits = self.workshop.waiting.arrived
            if waits and ahead.rest is not None and program.counter not in (None, INDEX, LIMIT):
                write_variables(frame, {program.counter: ahead.rest[count - 1]})
            if iterator is not None:
                iterator, number = ahead.advance(count), HEAD
                ahead = self._look_ahead(iterator)
            if waits or ahead is None:  # the next element may be one of another type
                number = WATCH
                break
            lost = self._cost + perf_counter() - entered - self.gained
            if self.pace and not per_iteration and lost > SETTLING + SERIES * self._fixed:
                break
        self.unit.gate.open()
        return number, iterator

    def _miss(self, frame: FrameType, iterator: Any) -> tuple[int, Any]:
        """The program is not for these values; it may be for those behind the first iterations, in which
        variables get their types."""
        if self._n_turned < len(self.others) and self.turn():
            self._n_turned += 1
            self._room = self._most = ROOM
            return WATCH, iterator
        self.miss()
        self._n_missed += 1
        patience = AGAIN if self.entries else FIRST
        if self.region is not None and self._n_missed > patience:
            self.renew()
            return HEAD, iterator
        return WATCH if self.misses <= FIRST or self.entries else HEAD, iterator

    @property
    def gained(self) -> float:
        return self._worth + self._done * (self.pace or self._known)

    def clear(self) -> None:
        super().clear()
        self._worth, self._cost, self._trusted = 0.0, 0.0, TRUSTED
        self._n_missed = self._n_short = 0
        self._begin()

    def _turn_to(self, region: Region) -> None:
        self._worth, self.region.pace = self.gained, self.pace or self._known
        super()._turn_to(region)
        self._begin()
        self.pace = region.pace

    def _begin(self) -> None:
        """Nothing is known of a program."""
        self._trial, self._watched, self._mark, self._begun = None, None, None, None
        self._n_watched, self._n_series, self._paces, self._n_checked = FEW, SERIES, [], 1
        self._done, self._fixed, self._known = 0, 0.0, 0.0

    # -- time ------------------------------------------------------------------------------------------------
    def _is_short(self, frame: FrameType, iterator: Any) -> bool:
        """Whether it takes little time from where it is begun, as far as one iteration says and then some
        more, or that is still to be seen. To ask takes some microseconds itself."""
        left, key = (Ahead.left, frame) if iterator is None else (length_hint(iterator, Ahead.left), iterator)
        begun, self._begun, count = self._begun, None, 0
        if begun is not None:
            of, start, left_then, watched = begun
            goes_on = of is key and (left < left_then or left in (0, Ahead.left))
            seconds = perf_counter() - start
            if goes_on and (seconds > SHORT or watched and without_asking(seconds / watched) * left > SHORT):
                return False
            if goes_on and not watched:
                count = max(1, min(FEW, left - 1))
            else:
                self._n_short += 1
        if self._n_short == SERIES:
            self.rest(FEW_ENTRIES)
            return False
        self.unit.n_passing = max(0, count - 1)
        self._begun = key, perf_counter(), left, count
        return True

    @property
    def is_due(self) -> bool:
        """Not where what is left of the loop that was to be compiled takes less than loading the program."""
        if self._arrived is None or self._mark is None or self._mark[0] is None or self.checks:
            return super().is_due
        iterator, start, left_then = self._mark
        left = length_hint(iterator)
        if not 0 < left < left_then:
            return super().is_due
        return (perf_counter() - start) / (left_then - left) * left > find_loading_time(self._arrived[0])

    @property
    def is_attempt(self) -> bool:
        return super().is_attempt or self._trial is None and 0 < self.untried < TRIALS

    def _use_mark(self, iterator: Any, ahead: Ahead) -> None:
        """Finds out the time of an iteration since it was marked."""
        mark, self._mark = self._mark, None
        if mark is not None and mark[0] is iterator and ahead.left < mark[2]:
            self.pace = (perf_counter() - mark[1]) / (mark[2] - ahead.left)

    def _measure(self, key: Any, now: float, left: int) -> bool:
        """Has Python do some iterations more, which are timed; fewer ones where the loop ends before. key:
        tells one way through the loop from others, as far as that can be told; now: when its head was
        reached; left: iterations. Returns: whether it does."""
        if self._watched is not None:
            (of, start, count), self._watched = self._watched, None
            if of is key:
                self._paces.append(without_asking((now - start) / count))
                self._n_watched = max(1, min(MANY, int(LITTLE / self._paces[-1])))
            else:
                self._n_watched //= 2
            if len(self._paces) == self._n_series:  # other processes take their time from some
                self._renew_pace(min(self._paces))
                return False
        if not self._n_watched:
            self.rest(FEW_ENTRIES)
        else:
            count = max(1, min(self._n_watched, left - 1))
            self.unit.n_passing = count - 1
            self._watched = key, perf_counter(), count
        return True

    # -- the first use ---------------------------------------------------------------------------------------
    def _check(self, frame: FrameType, ahead: Ahead) -> None:
        """Compares some iterations, of which Python does all: more each time, and few where the loop is left
        soon."""
        count = min(self._n_checked, ahead.most, ahead.left - 1)
        if count > 0 and self._try(frame, ahead, count):
            self.unit.n_passing = count - 1
            self._n_checked = min(4 * count, ROOM)
        else:
            self._n_checked = max(1, count // 4)

    def _try(self, frame: FrameType, ahead: Ahead, count: int = 1) -> bool:
        """Does iterations on copies, one at first. Returns: whether that is to be compared with what Python
        does next."""
        trial = self.rehearse(frame, ahead, count)
        if trial is None:
            return False
        self._trial = frame, perf_counter(), ahead.left - count, trial
        return True

    def _judge(self, frame: FrameType, ahead: Ahead) -> None:
        (of, start, left, trial), self._trial = self._trial, None
        seconds = perf_counter() - start
        if of is not frame or ahead.left not in (left, Ahead.left):
            return
        self._n_watched = max(1, min(FEW, int(LITTLE / seconds)))
        # of short ones other processes may have taken time; of many the first may be another kind
        if seconds > LONG and not MANY < left < Ahead.left:
            self.pace = self.pace or seconds
        self.compare(trial.find_difference(self.find_variables(frame)))

    def give_up(self, reason: str) -> None:
        super().give_up(reason)
        self._trial = None


def without_asking(seconds: float) -> float:
    """What an iteration that was watched takes when it is not."""
    return max(seconds - measure_asking(), seconds / 8)


@functools.cache
def measure_asking() -> float:
    """Seconds that an iteration takes to ask while it is watched."""
    unit, count = object.__new__(Unit), 50
    unit.n_asked = 0

    def ask() -> float:
        unit.n_passing, start = count, perf_counter()
        for _ in range(count):
            _, _ = unit.resume(None)
        return (perf_counter() - start) / count

    return min(ask() for _ in range(5))
