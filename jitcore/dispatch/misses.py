"""Why a call was not served from the cache: what differs from the signatures seen before.

In: the signature of each call that missed. Out: text, made when it is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from jitcore.config import config
from jitcore.dispatch.parameters import name_position
from jitcore.dispatch.signature import CallSignature, Part

_REMEMBERED = 32


class _Miss(NamedTuple):
    """A signature without the arrays, and the flags that were set."""

    structure: Any
    n_args: int
    statics: tuple
    parts: tuple[Part, ...]
    shardings: tuple
    flags: dict[str, Any]

    def restore_call(self) -> CallSignature:
        leaves = [None] * len(self.parts)
        return CallSignature(leaves, self.structure, self.n_args, self.statics, self.parts, ())


class MissLog:
    """The last signatures that missed."""

    def __init__(self):
        self._misses: deque[_Miss] = deque(maxlen=_REMEMBERED)

    def clear(self) -> None:
        self._misses.clear()

    def add(self, call: CallSignature) -> None:
        self._misses.append(_Miss(*call.key, config.values()))

    def explain(self, fun: Callable) -> str:
        """Which arguments of the last miss differ, and how, from the most similar earlier signature."""
        if not self._misses:
            return "There was no miss: the function has not been called since its cache was empty."
        *earlier, last = self._misses
        if not earlier:
            return "It was the first call: the cache was empty."
        of_same_structure = [miss for miss in earlier if miss.structure == last.structure] or earlier
        closest = min((_compare(fun, old, last) for old in reversed(of_same_structure)), key=len)
        if not closest:
            return "The same signature was traced twice: inside and outside another trace, or by two threads."
        return "Compared with the most similar earlier call:\n" + "\n".join(f"  {line}" for line in closest)


def _compare(fun: Callable, old: _Miss, new: _Miss) -> list[str]:
    lines = [f"config flag {name}: was {old.flags[name]!r}, is {value!r}"
             for name, value in new.flags.items() if old.flags[name] != value]
    if old.structure != new.structure:
        before, after = (miss.restore_call().make_in_tree() for miss in (old, new))
        lines.append(f"structure of (args, kwargs): was {before}, is {after}")
        return lines + _compare_statics(fun, old, new)
    names = new.restore_call().name_leaves(fun)
    for name, before, after in zip(names, old.parts, new.parts):
        lines += _compare_parts(name, before, after)
    lines += [f"argument {names[i]}: sharding was {dict(old.shardings).get(i)}, is {sharding}"
              for i, sharding in new.shardings if (i, sharding) not in old.shardings]
    return lines + _compare_statics(fun, old, new)


def _compare_parts(name: str, before: Part, after: Part) -> list[str]:
    return [
        f"argument {name}: {what} was {old}, is {new}"
        for what, old, new in zip(("shape", "dtype", "weak_type"), before, after)
        if old != new
    ]


def _compare_statics(fun: Callable, old: _Miss, new: _Miss) -> list[str]:
    before, after = ({place: (kind, value) for place, kind, value in miss.statics} for miss in (old, new))
    lines = []
    for place in dict.fromkeys((*before, *after)):
        if before.get(place) != after.get(place):
            name = place if isinstance(place, str) else name_position(fun, place)
            texts = [repr(values[place][1]) if place in values else "not given" for values in (before, after)]
            lines.append(f"static argument {name}: value was {texts[0]}, is {texts[1]}")
    return lines
