"""Which loops and functions of a running script cost time.

In: a tick for each 10 ms of processor time, with the frame that runs. Out: hot units, for the `Workshop`.
Inclusive time goes to all loops around what runs. What has cost 50 ms is hot: of the innermost frame that is
in a loop the outermost one that can be compiled; what is around it when that did not help; and where no loop
can be, the innermost function.
"""

from __future__ import annotations

import _signal  # of which `signal` makes enumerations, which takes long to load
import functools
from _thread import get_ident
from types import CodeType, FrameType

from jitcore.process import lazy
from jitcore.scripts import texts
from jitcore.scripts.gates import Prepared
from jitcore.scripts.interrupts import Waiting, interrupt, is_plain_interrupt
from jitcore.scripts.learned import load_lessons, store_lessons
from jitcore.scripts.texts import DEBUG, Text
from jitcore.scripts.tracers import is_traced, watch
from jitcore.scripts.units import TICK, State, Uncollected, Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jitcore.scripts.workshop import Workshop

__all__ = ["Sampler"]

#: Ticks after which a unit is hot; in which nothing is to be done, after which they come more rarely: each
#: then stands for so many.
HOT, IDLE, SPAN = 5, 10, 5
#: Of loops in functions that call themselves, and of those that call such functions where there are no
#: arrays: with arrays, these may be traced.
RECURSION = "a function in it, or that it stands in, calls itself"


class Sampler:
    """Args: sys.path of the process, for the one that compiles; whether programs are only compared with what
    Python does.

    Attributes:
        texts: of the script; units: their loops and functions.
        n_ticks: number of ticks so far.
        is_busy: whether ticks do nothing; is_over: whether all is left to Python; has_learned: whether there
            is something to keep for later runs.
    """

    def __init__(self, path: list[str], checks: bool = False):
        self.path, self.checks = path, checks
        self.texts: list[Text] = []
        self.units: list[Unit] = []
        self._codes: dict[int, tuple[Text, int]] = {}
        self._units: dict[tuple[int, int], Unit] = {}
        self.is_busy = self.has_learned = False
        self.is_over = False
        self.n_ticks = 0
        self._before: tuple | None = None
        self._thread = get_ident()
        self._n_idle, self._span = 0, 1

    @functools.cached_property
    def workshop(self) -> Workshop:
        is_busy, self.is_busy = self.is_busy, True  # a tick meanwhile would find half of the module
        try:
            with Uncollected():
                from jitcore.scripts.workshop import Workshop  # takes 10 ms to load

                return Workshop(self, self.path)
        finally:
            self.is_busy = is_busy

    # -- the script's code -----------------------------------------------------------------------------------
    def prepare(self, make: Callable[[], tuple[CodeType, bytes]], *parts: object) -> CodeType:
        """The code of a text with entries, and what earlier runs found out about it. make: gives its code and
        its source, where its record is not on disk yet; parts: that name the record."""
        return self.add(texts.open_record(make, *parts))

    def add(self, record: bytes) -> CodeType:
        """The code of a text, by its record."""
        text = Text(self, record)
        self.texts.append(text)
        self.units += text.units
        self._codes |= {id(code): (text, number) for number, code in text.codes.items()}
        self._units |= {(id(text.codes[unit.key[0]]), unit.key[1]): unit for unit in text.units}
        if text.names_tracers:
            watch(self.stop)
        lessons = load_lessons(text.key) if text.units and not self.is_over else {}
        for unit in text.units if lessons else ():
            if unit.key in lessons:
                unit.learn(lessons[unit.key])
        return text.code

    def find(self, code: CodeType) -> Prepared | None:
        """What is known of code with entries."""
        found = self._codes.get(id(code))
        return None if found is None else found[0].find(found[1])

    def restore(self, code: CodeType) -> CodeType:
        """The code as the script has it, with all functions in it."""
        prepared = self.find(code)
        if prepared is not None:
            return prepared.original
        consts = tuple([self.restore(one) if type(one) is CodeType else one for one in code.co_consts])
        return code.replace(co_consts=consts)

    @property
    def seconds(self) -> float:
        """Of processor time that the script has run."""
        return self.n_ticks * TICK

    @property
    def differs(self) -> bool:
        """Whether a program did not do what Python does."""
        return any(unit.fate is not None and unit.fate.differs for unit in self.units)

    def keep(self) -> None:
        """Keeps what was found out for later runs."""
        for text in self.texts if self.has_learned else ():
            lessons = [(unit.key, unit.describe()) for unit in text.units]
            if any(unit.fate or unit.lesson or unit.late for unit in text.units):
                store_lessons(text.key, {key: lesson for key, lesson in lessons if lesson is not None})
        self.has_learned = False

    # -- ticks -----------------------------------------------------------------------------------------------
    def start(self) -> None:
        if self._before is None and not self.is_over:
            timer = self._set_span(1)
            self._before = _signal.signal(_signal.SIGPROF, self.tick), timer
            _signal.siginterrupt(_signal.SIGPROF, False)

    def _set_span(self, span: int) -> tuple[float, float]:
        """Has each signal stand for so many ticks. Returns: the timer's former setting."""
        self._n_idle, self._span = 0, span
        return _signal.setitimer(_signal.ITIMER_PROF, span * TICK, span * TICK)

    def stop(self) -> None:
        """Leaves all units to Python."""
        self.is_over = True
        watch(None)
        for unit in self.units:
            unit.gate.close()
        self.pause()

    def pause(self) -> None:
        """Takes the signals back."""
        if self._before is not None:
            handler, timer = self._before
            self._before = None
            _signal.setitimer(_signal.ITIMER_PROF, 0)
            _signal.signal(_signal.SIGPROF, _signal.SIG_IGN)  # one that is on its way would end the process
            if handler is not None:
                _signal.signal(_signal.SIGPROF, handler)
            if timer[0]:
                _signal.setitimer(_signal.ITIMER_PROF, *timer)
        if "workshop" in self.__dict__:
            self.workshop.disarm()

    def leave(self) -> None:
        """Lets the process that compiles end by itself."""
        if "workshop" in self.__dict__:
            self.workshop.leave()

    def abandon(self) -> None:
        """Leaves everything to Python, in a child of the process that was sampled."""
        self.is_busy, self.is_over, self.has_learned, self._before = True, True, False, None
        watch(None)
        for unit in self.units:
            unit.gate.close()
        self.units = []

    def may_enter(self) -> bool:
        """Whether a program may run in the place of Python: not in another thread, nor under a debugger."""
        if get_ident() != self._thread or self.is_over:
            return False
        if is_traced():
            self.stop()
        return not self.is_over

    def tick(self, number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True  # IPython and pytest leave the frame out of what a handler raises
        if self.is_busy:
            return
        waiting = None
        try:
            self.is_busy, waiting = True, Waiting()
            if is_traced():
                self.stop()
            elif self._look(frame):
                self._n_idle = 0
                if self._span > 1:
                    self._set_span(1)
            elif self._span == 1:
                self._n_idle += 1
                if self._n_idle == IDLE:
                    self._set_span(SPAN)
        except KeyboardInterrupt:  # Ctrl-C, before handlers waited
            if not is_plain_interrupt():
                raise
            interrupt()
        except Exception:
            if DEBUG:
                raise
            self.stop()
        finally:
            self.is_busy = False
            if waiting is not None:
                waiting.hand_on()

    def _look(self, frame: FrameType | None) -> bool:
        """Returns: whether there is something that is compiled, or may become so."""
        self.n_ticks += self._span
        running = list(self._list_running(frame))
        for unit, repeats in {unit: repeats for _, units, repeats in running for unit in units}.items():
            unit.ticks += self._span
            unit.repeats |= repeats
        if "workshop" in self.__dict__ and self.workshop.look_after(frame):
            return True
        may_try = "workshop" not in self.__dict__ or self.workshop.can_afford()
        waits = False
        for around, units, _ in running:
            for unit in units:
                is_left = unit.state in (State.DEAD, State.RESTING)
                if is_left or unit.fate is not None and unit.fate.misses:
                    continue
                if unit.late and 2 * unit.late > self.workshop.patience:
                    continue
                if unit.state == State.COMPILING:
                    return True
                is_hot = may_try and unit.state == State.COLD and unit.ticks >= HOT and self._is_free
                if is_hot and (unit.repeats and not lazy.is_loaded("numpy") or is_recursive(around)):
                    unit.give_up(RECURSION)
                    continue
                is_ready = unit.state == State.READY and unit.earns
                if is_hot or is_ready and (may_try or unit.fate is None or not unit.fate.is_attempt):
                    self.workshop.arm(around, unit)
                    return True
                waits = True
                break
        return not may_try or self._look_at_functions(frame) or waits or not self._is_free

    @property
    def _is_free(self) -> bool:
        """Whether nothing is compiled at the moment."""
        return "workshop" not in self.__dict__ or self.workshop.current is None

    def _look_at_functions(self, frame: FrameType | None) -> bool:
        """Where no loop can be compiled: calls of the innermost function. Returns: see `_look`."""
        seen: set[Unit] = set()
        waits = False
        while frame is not None:
            unit = self._units.get((id(frame.f_code), -1))
            if unit is not None and unit not in seen:
                seen.add(unit)
                unit.ticks += self._span
                waits |= unit.state not in (State.DEAD, State.RESTING)
                is_ready = unit.state == State.READY and unit.fate is None and unit.earns
                if is_ready or unit.state == State.COLD and unit.ticks >= HOT and self._is_free:
                    unit.gate.open()
                    return True
            frame = frame.f_back
        return waits

    def _list_running(self, frame: FrameType | None) -> Iterator[tuple[FrameType, list[Unit], bool]]:
        """(frame, loops that it is in, outer ones first, whether a function in there calls itself), inner
        frames first; of a function that calls itself the innermost one."""
        counts: dict[int, int] = {}
        repeats = False
        while frame is not None:
            number = id(frame.f_code)
            counts[number] = count = counts.get(number, 0) + 1
            repeats |= count > 2  # a decorator may stand around two of them
            prepared = self.find(frame.f_code) if count == 1 else None
            if prepared is not None:
                offset = prepared.locate(frame.f_lasti)
                heads = [loop.head for loop in prepared.loops if offset in loop.span]
                units = [self._units[number, head] for head in heads]
                if units:
                    yield frame, units, repeats
            frame = frame.f_back


def is_recursive(frame: FrameType) -> bool:
    """Whether one that it returns to runs the same code."""
    code, around = frame.f_code, frame.f_back
    while around is not None and around.f_code is not code:
        around = around.f_back
    return around is not None
