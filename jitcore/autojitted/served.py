"""What is known of one signature, and the code that finds it.

In: specs of arguments. Out: `Served`; functions of the arguments that try signatures one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitcore.autojitted.entry import MISS, Entry, write_checks
from jitcore.autojitted.inputs.reading import Matcher
from jitcore.autojitted.inputs.specs import Spec
from jitcore.autojitted.tiers.ways import Reason, Tier
from jitcore.core.source import filter_traceback
from jitcore.dispatch.fast_call import Constants, compile_function


class Served:
    """A signature that is known.

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


def make_dispatch(count: int, recent: list[Callable], serve: Callable) -> Callable:
    """A function of so many values that tries the calls of a list, then `serve(values)`."""
    values = ", ".join(f"p{i}" for i in range(count))
    source = _DISPATCH.format(values=values, tuple=f"({values},)" if values else "()")
    return compile_function(source, "make_dispatch", __name__)(recent, MISS, serve, filter_traceback)


def write_checked_call(specs: Sequence[Spec], run: Callable) -> Callable:
    """`run`, a function of the values, for calls of this signature."""
    matcher = Matcher(Constants())
    checks = "".join(f"        {line}\n" for line in write_checks(matcher, specs))
    values = ", ".join(f"p{i}" for i in range(len(specs)))
    source = _PLAIN.format(constants=matcher.constants.names, values=values, checks=checks)
    return compile_function(source, "make_call", __name__)(MISS, run, *matcher.constants.values)


_DISPATCH = """\
def make_dispatch(recent, MISS, serve, filter_traceback):
    def dispatch({values}):
        try:
            for call in recent:
                result = call({values})
                if result is not MISS:
                    return result
            return serve({tuple})
        except Exception as error:
            filter_traceback(error)
            raise

    return dispatch
"""

_PLAIN = """\
def make_call(MISS, plain, {constants}):
    def call({values}):
{checks}        return plain({values})

    return call
"""
