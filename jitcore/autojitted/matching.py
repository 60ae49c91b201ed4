"""Matching: what specs write and build.

In: specs, which are asked one after the other. Out: `Matcher`: the lines of a call that check its values and
name their places; `Builder`: the stand-ins that are traced in their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitcore.autojitted.specs import DictSpec, ScalarSpec, SequenceSpec, Spec
from jitcore.dispatch.tree_code import Constants


# -- from specs to code ------------------------------------------------------------------------------------
class Matcher:
    """Writes the part of a call that checks values. In the code, `x3` is the value at place 3.

    Attributes:
        places: the spec at each place.
        variables: names of dicts, those of attributes among them.
    """

    def __init__(self, constants: Constants):
        self.constants = constants
        self.lines: list[str] = []
        self.places: list[Spec] = []
        self.variables: list[str] = []
        self._temporaries = 0

    def name(self, value: str, spec: Spec) -> str:
        x = f"x{len(self.places)}"
        self.places.append(spec)
        self.lines.append(f"{x} = {value}")
        return x

    def temporary(self, value: str) -> str:
        self._temporaries += 1
        self.lines.append(f"t{self._temporaries} = {value}")
        return f"t{self._temporaries}"

    def check(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return MISS")

    def check_distinct(self) -> None:
        """No object stands at two places, and no dict of attributes is that of two objects."""
        self._check_names(self.variables)
        self._check_names([f"x{i}" for i, spec in enumerate(self.places)
                           if not (isinstance(spec, (ScalarSpec, DictSpec))
                                   or isinstance(spec, SequenceSpec) and spec.kind is not list)])

    def _check_names(self, names: list[str]) -> None:
        if len(names) > 4:
            self.check(f"len({{{', '.join(f'id({x})' for x in names)}}}) == {len(names)}")
            return
        for i, x in enumerate(names):
            for y in names[:i]:
                self.lines.append(f"if {x} is {y}: return MISS")


# -- from specs to what is traced --------------------------------------------------------------------------
class Builder:
    """Makes the stand-ins.

    Args:
        make_leaf: of an array or scalar; make_object: of what is taken as it is.
        note_instance: is told of the stand-in of an object of a user's class.

    Attributes:
        places, stand_ins: spec and stand-in of each place.
    """

    def __init__(self, make_leaf: Callable[[Spec], Any], make_object: Callable[[Any], Any],
                 note_instance: Callable[[Any], None]):
        self.make_leaf, self.make_object, self.note_instance = make_leaf, make_object, note_instance
        self.places: list[Spec] = []
        self.stand_ins: list[Any] = []
        self._ids: set[int] = set()

    def add(self, spec: Spec, stand_in: Any) -> Any:
        self.places.append(spec)
        self.stand_ins.append(stand_in)
        self._ids.add(id(stand_in))
        return stand_in

    def has_made(self, value: Any) -> bool:
        """Whether a value is a stand-in."""
        return id(value) in self._ids

    def reserve(self, spec: Spec) -> int:
        """The place of what is made of others, whose places follow."""
        self.add(spec, None)
        return len(self.places) - 1

    def fill(self, place: int, stand_in: Any) -> Any:
        self.stand_ins[place] = stand_in
        return stand_in
