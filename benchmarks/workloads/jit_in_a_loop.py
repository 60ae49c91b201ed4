"""The tutorial's warning: `jit` called in a loop on a new partial, a new lambda, and the same function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.workload import TRACING_PEERS, Workload


def add_one(x):
    return x + 1


#: What the body of the loop hands to `jit`.
FORMS: dict[str, Callable[[], Callable]] = {
    "partial": lambda: partial(add_one),
    "lambda": lambda: lambda x: add_one(x),
    "cached": lambda: add_one,
}


def _make_program(make_body: Callable[[], Callable]):
    def make(api):
        def loop(x, n):
            i = 0
            while i < n:
                i = api.jit(make_body())(i)
            return x + i

        return loop

    return make


ROWS = tuple(Workload(f"jit in a loop, {form}", lambda size: (10, 20), _make_program(make_body),
                      peers=TRACING_PEERS, jitted=False)
             for form, make_body in FORMS.items())  # fmt: skip
