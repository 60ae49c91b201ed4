"""Patterns of `match`: what a value is asked, which may be traced, or a stand-in of another type.

In: a subject and a pattern's class, keys or names, from the stack. Out: what the interpreter's own
instruction would leave there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

#: Bits of `__flags__` of classes: what sequence and mapping patterns match; whose one positional pattern is
#: for the value itself.
_SEQUENCE, _MAPPING, _ITSELF = 1 << 5, 1 << 6, 1 << 22
_MISSING = object()
_NO_CLASS = f"called match pattern must be a {'type' if sys.version_info < (3, 12) else 'class'}"


class Matching:
    """Args: resolve: gives the rewritten form of a callable. read_attribute: of an object and a name."""

    def __init__(self, resolve: Callable[[Any], Any], read_attribute: Callable[[tuple], Any]):
        self.resolve, self.read_attribute = resolve, read_attribute

    def is_sequence(self, subject: Any) -> bool:
        return bool(self.resolve(type)(subject).__flags__ & _SEQUENCE)

    def is_mapping(self, subject: Any) -> bool:
        return bool(self.resolve(type)(subject).__flags__ & _MAPPING)

    def find_length(self, subject: Any) -> Any:
        return self.resolve(len)(subject)

    def match_keys(self, pair: tuple) -> tuple | None:
        """The values of these keys, if all are there."""
        subject, keys = pair
        if len(set(keys)) < len(keys):
            twice = next(key for place, key in enumerate(keys) if key in keys[:place])
            raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
        if not keys:
            return ()
        read = self.resolve(self.read_attribute((subject, "get")))
        found = tuple(read(key, _MISSING) for key in keys)
        return None if any(value is _MISSING for value in found) else found

    def define_class(self, count: int) -> Callable[[tuple], tuple | None]:
        """Of a pattern with so many positional ones: the attributes that these and the keywords are for."""

        def match_class(triple: tuple) -> tuple | None:
            subject, kind, names = triple
            if not isinstance(kind, type):
                raise TypeError(_NO_CLASS)
            if not self.resolve(isinstance)(subject, kind):
                return None
            places, found = self._list_positional(kind, count) if count else (), []
            if places is None:
                found, places = [subject], ()
            for place, name in enumerate(wanted := (*places, *names)):
                if name in wanted[:place]:
                    raise TypeError(f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}")
                try:
                    found.append(self.read_attribute((subject, name)))
                except AttributeError:
                    return None
            return tuple(found)

        return match_class

    def _list_positional(self, kind: type, count: int) -> tuple | None:
        """Names of attributes, or None for the subject itself."""
        try:
            names = self.read_attribute((kind, "__match_args__"))
        except AttributeError:
            names = ()
            if kind.__flags__ & _ITSELF:
                if count == 1:
                    return None
                names = ("itself",)
        if type(names) is not tuple:
            raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {type(names).__name__})")
        if count > (allowed := len(names)):
            allowed = f"{allowed} positional sub-pattern{'' if allowed == 1 else 's'}"
            raise TypeError(f"{kind.__name__}() accepts {allowed} ({count} given)")
        if odd := [name for name in names[:count] if type(name) is not str]:
            raise TypeError(f"__match_args__ elements must be strings (got {type(odd[0]).__name__})")
        return names[:count]
