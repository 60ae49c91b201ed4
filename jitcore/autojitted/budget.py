"""Budgets: what compiling a function may cost, and when it is tried.

In: the seconds that calls have taken in plain Python, and the steps (`effort.py`) that attempts have cost.
Out: whether one may be made, and its limit. A function and its loops have one `Account`: something is free,
and beyond that attempts may cost a share of what the calls have cost so far. An attempt that used up its
limit multiplies the price of the next one: what never succeeds costs that share in the end, and no more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any

from jitcore.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, sub_jaxprs
from jitcore.effort import SLACK, STEPS_PER_SECOND, Meter, TooMuchEffort, metered
from jitcore.watched import Pool

#: Seconds of work that are free for a function without arrays, which plain Python runs well as long as it is
#: short; and for one with arrays.
FREE, FREE_WITH_ARRAYS = 0.25, 4.0
#: The share of the calls' seconds that attempts may cost beyond that; and when it is known that the function
#: can be traced.
SHARE, SHARE_WHEN_TRACED = 0.1, 0.25
#: Seconds that have to be there for an attempt; by how much that is more behind one that came to nothing.
LEAST, RISE = 0.02, 4.0
#: Seconds of plain Python below which a program is short, and beyond which it does not matter how long it is.
SHORT, LONG = 0.03, 2.0


class Account:
    """Args: seconds that are free; the share of the calls' seconds; what other functions draw from too.

    Attributes:
        seconds: that calls have taken in plain Python; spent: that attempts have cost, as counted, and at
            least a share of what they took.
        price: seconds that have to be there before the next attempt.
    """

    def __init__(self, free: float = FREE, share: float = SHARE, pool: Pool | None = None):
        self.free, self.share, self.pool = free, share, pool
        self.spent = self._ended = 0.0
        self.price = LEAST
        self._started: float | None = None

    @property
    def seconds(self) -> float:
        running = self._started
        return self._ended + (0.0 if running is None else perf_counter() - running)

    def note_call(self, seconds: float) -> None:
        self._ended += seconds

    def time_call(self, function: Callable, *args: Any) -> Any:
        """Runs a call in plain Python. What attempts take meanwhile is not the call's."""
        if self._started is not None:  # recursion, another thread: the time is that of the call around
            return function(*args)
        self._started = perf_counter()
        try:
            return function(*args)
        finally:
            self._ended, self._started = self.seconds, None

    @property
    def funds(self) -> float:
        """Seconds that attempts may cost now."""
        own = self.free + self.share * self.seconds - self.spent
        return own if self.pool is None else min(own, self.pool.funds)

    def can_afford(self) -> bool:
        return self.funds >= self.price

    @contextlib.contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """Within, work is counted. Raises: TooMuchEffort where it exceeds the limit."""
        start, processor = perf_counter(), process_time()
        with metered(self.funds / 2 * STEPS_PER_SECOND) as meter:
            attempt = Attempt(self, meter)
            try:
                yield attempt
            except TooMuchEffort:
                wanted = meter.spent / STEPS_PER_SECOND
                self.price = wanted if attempt.is_traced else RISE * wanted
                self.share = max(self.share, SHARE_WHEN_TRACED) if attempt.is_traced else self.share
                raise
            finally:
                counted = min(meter.spent, meter.limit) / STEPS_PER_SECOND
                self.spent += max(counted, meter.seconds_of_work / SLACK)  # not everything is counted
                if self._started is not None:
                    self._started += perf_counter() - start  # no time of the call's
                if self.pool is not None:
                    self.pool.spent += process_time() - processor


class Attempt:
    """One attempt. Half of the funds is for tracing, so that something is left for the loops of a function
    that cannot be traced. A traced program may cost the rest, and half of what it saves in its first call;
    but for one that is known to be short no compiler is loaded before its calls have taken long.

    is_traced: whether the program is known."""

    def __init__(self, account: Account, meter: Meter):
        self._account, self._meter = account, meter
        self.is_traced = False

    def note_traced(self, jaxpr: Jaxpr) -> None:
        self.is_traced = True
        saved = min(estimate_python(jaxpr), LONG)
        if self._account.pool is not None:
            saved = 0.0
        elif saved < SHORT:
            return
        self._meter.extend((self._account.funds / 2 + saved / 2) * STEPS_PER_SECOND)


#: Seconds that plain Python needs for a scalar operation, for a call of NumPy, and for an element of it; and
#: iterations of a loop of which the number is not known.
_SCALAR, _CALL, _ELEMENT, _ITERATIONS = 4e-8, 1e-6, 1e-9, 1_000_000


def estimate_python(jaxpr: Jaxpr) -> float:
    """The seconds that plain Python would need for a program, roughly."""
    return sum(map(_estimate_equation, jaxpr.eqns))


def _estimate_equation(eqn) -> float:
    inner = [estimate_python(sub.jaxpr) for sub in sub_jaxprs(eqn.params) if isinstance(sub, ClosedJaxpr)]
    if eqn.primitive.name == "scan":
        return sum(inner) * eqn.params["length"]
    if eqn.primitive.name == "while":
        return sum(inner) * _ITERATIONS
    if inner:
        return sum(inner) / len(inner)
    size = max((atom.aval.size for atom in eqn.invars if not isinstance(atom, Literal)), default=0)
    return _SCALAR if size <= 1 else _CALL + size * _ELEMENT
