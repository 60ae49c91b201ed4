"""The part of a call that checks values, as code.

In: specs, each of which writes its checks by the methods of a `Matcher`. Out: lines of code, and what stands
at which place.
"""

from __future__ import annotations

from collections.abc import Container

from jitcore.autojitted.inputs.specs import ArraySpec, DictSpec, NumbersSpec, ScalarSpec, SequenceSpec, Spec
from jitcore.process.generated import Constants
from jitcore.process.objects import are_apart

__all__ = ["Matcher"]


class Matcher:
    """Writes the part of a call that checks values. In the code, `x3` is the value at place 3.

    Attributes:
        places: the spec at each place. arrays: those of arrays, by name; checked at the end, all at once.
        variables: names of dicts, those of attributes among them. groups: (name, extent) of sequences of
            objects, and of dicts, of which none may be met in another way; stacks: names of lists of arrays.
    """

    def __init__(self, constants: Constants):
        self.constants = constants
        self.lines: list[str] = []
        self.places: list[Spec] = []
        self.arrays: dict[str, ArraySpec] = {}
        self.variables: list[str] = []
        self.groups: list[tuple[str, int]] = []
        self.stacks: list[str] = []
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

    def check_arrays(self, written: Container[str] | None = None) -> None:
        """written: names of those that a program writes, or None for all."""
        for x, spec in self.arrays.items():
            spec.check(self, x, written is None or x in written)

    def check_distinct_arrays(self) -> None:
        self._check_names(list(self.arrays))

    def check_distinct(self) -> None:
        """No object but an array stands at two places, and no dict of attributes is that of two objects."""
        if self.stacks:
            stacked, others = (f"({''.join(f'{x}, ' for x in names)})"
                               for names in (self.stacks, self.arrays))
            self.check(f"{self.constants.add(are_apart)}({stacked}, {others})")
        names = [f"x{i}" for i, spec in enumerate(self.places)
                 if not (isinstance(spec, (ArraySpec, ScalarSpec, DictSpec))
                         or isinstance(spec, SequenceSpec) and spec.kind is not list)]
        nested = [(f"x{i}", spec.shape[0]) for i, spec in enumerate(self.places)
                  if isinstance(spec, NumbersSpec) and len(spec.shape) > 1]
        if self.groups:
            nested, names = nested + self.groups, names + self.variables
        else:
            self._check_names(self.variables)
        if not nested or len(names) < 2:
            self._check_names(names)
            return
        parts = [f"id({x})" for x in names] + [f"*map(id, {x})" for x, _ in nested]
        count = len(names) + sum(extent for _, extent in nested)
        self.check(f"len({{{', '.join(parts)}}}) == {count}")

    def take_lines(self, indent: int = 0) -> list[str]:
        """The lines so far, each check once, which are no longer there then."""
        lines, self.lines = [f"{'    ' * indent}{line}" for line in dict.fromkeys(self.lines)], []
        return lines

    def _check_names(self, names: list[str]) -> None:
        if len(names) > 4:
            self.check(f"len({{{', '.join(f'id({x})' for x in names)}}}) == {len(names)}")
            return
        for i, x in enumerate(names):
            for y in names[:i]:
                self.lines.append(f"if {x} is {y}: return MISS")
