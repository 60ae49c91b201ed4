"""Programs of parts: what a chunk of a result needs, and the program that computes it from that.

In: equations of whole arrays, arrays that are there, and parts of results. Out: the parts of the arrays that
these need, and a `Program` of them, the same object of two places where it is the same program: positions are
no part of it, but operands.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore.chunked.windows import (Box, Rule, find_rule, grow, is_empty, make_constant, measure,
                                     read_operands, whole)
from jitcore.core.jaxpr import Atom, Equation, Literal, Var
from jitcore.core.primitive import Primitive, registry
from jitcore.dispatch.options import DEFAULT_OPTIONS
from jitcore.jitted.wrapper import JitWrapped
from jitcore.process.lazy import LazyModule

dask_core = LazyModule("dask.array.core")

#: An operand of a step: the number of a value, or a constant.
Operand = int | Literal


class Step(NamedTuple):
    """An application of a primitive; its results get the next numbers."""

    primitive: Primitive
    operands: tuple[Operand, ...]
    params: dict[str, Any]

    def __repr__(self) -> str:
        operands = [(repr(one.value), one.aval) if isinstance(one, Literal) else one for one in self.operands]
        return f"{self.primitive.name}{operands}{sorted(self.params.items())}"


class Program:
    """Steps over numbered values, of which the inputs are the first. It travels to workers.

    key: programs of the same are the same."""

    def __init__(self, steps: Sequence[Step], outputs: Sequence[Operand], origin: str):
        self.steps, self.outputs = steps, outputs
        outs = Step(registry["copy"], tuple(outputs), {})
        self.key = origin + hashlib.sha256(repr([*steps, outs]).encode()).hexdigest()[:32]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.key == other.key

    def __call__(self, *inputs: Any) -> Any:
        """The output, or a tuple of them. inputs: arrays, nested lists of their pieces, tuples of arrays."""
        values: list = []
        for one in inputs:
            if isinstance(one, tuple):
                values += one
            else:
                values.append(dask_core.concatenate3(one) if isinstance(one, list) else one)
        found = tuple(map(np.asarray, _compile(self)(*values)))
        return found if len(found) > 1 else found[0]

    def run(self, *inputs: Any) -> list:
        values = list(inputs)

        def read(operand: Operand) -> Any:
            return operand.to_operand() if isinstance(operand, Literal) else values[operand]

        for primitive, operands, params in self.steps:
            values += primitive.bind_all(*map(read, operands), **params)
        return list(map(read, self.outputs))


@functools.lru_cache(maxsize=1024)
def _compile(program: Program) -> JitWrapped:
    """Once in a process, not once for each copy that arrives with a task."""
    return JitWrapped(program.run, DEFAULT_OPTIONS)


class Target(NamedTuple):
    """A part of an atom's value. eqn: instead of it, of the result of a reduction over a part of its axes,
    which `box` has too."""

    atom: Atom
    box: Box
    eqn: Equation | None = None


class _Application:
    """An equation for a part of its result, while it is written.

    Attributes:
        box: the part; shape: its extents, without axes that are swept.
        reads: the parts of operands."""

    def __init__(self, writer: Writer, eqn: Equation, rule: Rule, box: Box, reads: list[Box]):
        self._writer, self.eqn, self.rule, self.reads = writer, eqn, rule, reads
        self.bind, self.offset, self.fill, self.take = writer.bind, writer.offset, writer.fill, writer.take
        self.box, self.shape = box, measure(box)[:eqn.outvars[0].aval.ndim]

    def value(self, number: int) -> Operand:
        return self._writer.read(self.eqn.invars[number], self.reads[number])

    def apply(self, **params: Any) -> list[Operand]:
        """The equation of the parts, with other parameters where some change."""
        operands = [self.value(number) for number in range(len(self.reads))]
        params = self.eqn.params | params
        return self._writer.add(self.eqn.primitive, operands, params, len(self.eqn.outvars))


class Writer:
    """Writes one program.

    Args:
        eqns: those that the targets may need, in order.
        stored: variables that are there as chunks, or as numbers: inputs.

    Attributes:
        inputs: parts of variables, in the order of the program's inputs; behind them come `offsets`."""

    def __init__(self, eqns: Sequence[Equation], stored: Collection[Var]):
        self._eqns, self._stored = eqns, stored
        self.offsets: list[np.generic] = []
        self._steps: list[Step] = []
        self._values: dict[Var, list[tuple[Box, Operand]]] = defaultdict(list)

    def write(self, targets: Sequence[Target], origin: str) -> Program:
        parts, applications, needed = self._find_applications(targets)
        self.inputs = [(var, box) for var in self._stored for box in _merge(needed.get(var, ()))]
        self._n_values = len(self.inputs)
        for number, (var, box) in enumerate(self.inputs):
            self._values[var].append((box, number))
        for one in applications:
            shape = one.eqn.outvars[0].aval.shape
            for var, value in zip(one.eqn.outvars, one.rule.write(one)):
                box = one.box[:len(shape)] if var.aval.shape == shape else whole(var.aval.shape)
                self._values[var].append((box, value))
        outputs: list[Operand] = []
        for target, part in zip(targets, parts):
            outputs += [self.read(target.atom, target.box)] if part is None else self._write_part(part)
        return self._finish(outputs, origin)

    def _find_applications(self, targets: Sequence[Target]) -> tuple[list, list, dict]:
        """Of the targets that are parts of reductions, of other equations in order; what is needed of each
        variable."""
        needed: dict[Var, list[Box]] = defaultdict(list)

        def need(atom, box):
            if isinstance(atom, Var) and not is_empty(box):
                needed[atom].append(box)

        def apply(eqn, box):
            rule = find_rule(eqn)
            reads = read_operands(rule, eqn, box)
            for atom, read in zip(eqn.invars, reads):
                need(atom, read)
            return _Application(self, eqn, rule, box, reads)

        parts = [None if target.eqn is None else apply(target.eqn, target.box) for target in targets]
        for target in targets:
            if target.eqn is None:
                need(target.atom, target.box)
        found = []
        for eqn in reversed(self._eqns):
            shape = eqn.outvars[0].aval.shape
            boxes = [box if var.aval.shape == shape else whole(shape)
                     for var in eqn.outvars if var not in self._stored for box in needed.get(var, ())]
            found += [apply(eqn, box) for box in _merge(grow(find_rule(eqn), eqn, box) for box in boxes)]
        return parts, found[::-1], needed

    def _write_part(self, part: _Application) -> list[Operand]:
        (found,), kind = part.rule.write(part), part.rule.combine
        if count_results(part.eqn) == 1:
            return [found]
        # The extreme element itself, and its place in the whole.
        params = part.eqn.params
        extreme = self.bind(f"reduce_{kind}", part.value(0), axes=params["axes"])
        first = self.offset(part.box[-1][0], params["index_dtype"])
        return [extreme, self.bind("add", found, self.fill(first, part.shape))]

    # -- steps ----------------------------------------------------------------------------------------------
    def add(self, primitive: Primitive, operands: Sequence[Operand], params: dict,
            count: int) -> list[Operand]:
        self._steps.append(Step(primitive, tuple(operands), params))
        self._n_values += count
        return list(range(self._n_values - count, self._n_values))

    def bind(self, primitive: str, *operands: Operand, **params: Any) -> Operand:
        return self.add(registry[primitive], operands, params, 1)[0]

    def read(self, atom: Atom, box: Box) -> Operand:
        """The part of an atom's value."""
        if isinstance(atom, Literal):
            return atom
        if is_empty(box):
            return self.fill(make_constant(0, atom.aval), measure(box))
        around, value = next(found for found in self._values[atom] if _contains(found[0], box))
        if around == box:
            return value
        return self.take(value, tuple((low - first, high - first)
                                      for (low, high), (first, _) in zip(box, around)))

    def take(self, value: Operand, box: Box) -> Operand:
        """A part of a value."""
        lows, highs = zip(*box)
        return self.bind("slice", value, start_indices=lows, limit_indices=highs, strides=None)

    def fill(self, value: Operand, shape: tuple[int, ...]) -> Operand:
        """An array of one number."""
        return self.bind("broadcast_in_dim", value, shape=shape, broadcast_dimensions=()) if shape else value

    def offset(self, position: int, dtype: Any) -> Operand:
        """A position in the whole array: an input, so that chunks share their programs. Numbered from -1
        down, until it is known how many there are."""
        self.offsets.append(np.dtype(dtype).type(position))
        return -len(self.offsets)

    def _finish(self, outputs: Sequence[Operand], origin: str) -> Program:
        n_inputs, n_offsets = len(self.inputs), len(self.offsets)

        def number(operand: Operand) -> Operand:
            if isinstance(operand, Literal) or 0 <= operand < n_inputs:
                return operand
            return n_inputs - 1 - operand if operand < 0 else operand + n_offsets

        steps = [one._replace(operands=tuple(map(number, one.operands))) for one in self._steps]
        return Program(steps, list(map(number, outputs)), origin)


def write_join(reductions: Sequence[tuple[Equation, str]], count: int, origin: str) -> Program:
    """What joins results of parts of reductions; each input has those of all of them.

    Args:
        reductions: equations, and the `combine` of their rules."""
    steps: list[Step] = []
    n_inputs = count * sum(map(count_results, (eqn for eqn, _ in reductions)))

    def bind(name: str, *operands: Operand) -> Operand:
        steps.append(Step(registry[name], operands, {}))
        return n_inputs + len(steps) - 1

    def join_places(kind: str, extreme: int, place: int, other: int, other_place: int) -> list[Operand]:
        """The first one, and NaN before all else."""
        is_better = bind("gt" if kind == "max" else "lt", other, extreme)
        is_better = bind("or", is_better, bind("and", bind("ne", other, other), bind("eq", extreme, extreme)))
        return [bind("select_n", is_better, extreme, other), bind("select_n", is_better, place, other_place)]

    joined, width = list(range(n_inputs // count)), n_inputs // count
    for first in range(width, n_inputs, width):
        position = 0
        for eqn, combine in reductions:
            n = count_results(eqn)
            own, other = joined[position:position + n], range(first + position, first + position + n)
            joined[position:position + n] = [bind(combine, *own, *other)] if n == 1 else \
                join_places(combine, *own, *other)
            position += n
    return Program(steps, joined, origin)


def count_results(eqn: Equation) -> int:
    """Of a part of a reduction: the place of an extreme element comes behind this."""
    return 2 if eqn.primitive.name in ("argmax", "argmin") else 1


def _contains(around: Box, box: Box) -> bool:
    return all(first <= low and high <= last for (first, last), (low, high) in zip(around, box))


def _merge(boxes: Iterable[Box]) -> list[Box]:
    """Boxes that hold all of these: those that overlap or lie side by side become one, where not much is
    computed for nothing."""
    merged: list[Box] = []
    for box in boxes:
        changed = True
        while changed:
            changed = False
            for other in merged:
                hull = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(box, other))
                if 2 * math.prod(measure(hull)) <= 3 * (math.prod(measure(box)) + math.prod(measure(other))):
                    merged.remove(other)
                    box, changed = hull, True
                    break
        merged.append(box)
    return merged
