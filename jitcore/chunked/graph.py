"""The graph of tasks: from a call with arrays of Dask to lazy arrays.

In: a jitted function and its arguments. Out: its result, with an array of Dask for each array in it. Raises
for what cannot be done chunk by chunk, with the operation and the user's line.
"""

from __future__ import annotations

import itertools
import math
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitcore.array import Array
from jitcore.chunked.programs import Target, Writer, count_results, write_join
from jitcore.chunked.windows import Box, Rule, find_rule
from jitcore.core.jaxpr import (Atom, ClosedJaxpr, Equation, Literal, ShapeDtypeStruct, Var, slice_eqns,
                                sub_jaxprs)
from jitcore.core.source import format_snippet
from jitcore.core.trace import Tracer
from jitcore.errors import arguments
from jitcore.passes.inline import inline_calls
from jitcore.passes.walk import Walk, rewrite_equations
from jitcore.process.lazy import LazyModule
from jitcore.tree_util import tree_flatten, tree_unflatten

base = LazyModule("dask.base")
highlevelgraph = LazyModule("dask.highlevelgraph")

#: How many results of parts one task joins.
_FAN_IN = 8
#: Loops of at most so many equations in all their rounds are written out: chunks then need wider margins.
_MOST_UNROLLED = 1000

#: Where an axis is cut: for each cut the first and the last position that operands ask for.
Cuts = list[tuple[int, int]]


def call_on_chunks(wrapped: Callable, args: tuple, kwargs: dict) -> Any:
    """The result of a jitted function. Raises: JitcoreTypeError for what needs more than chunks have."""
    da = sys.modules["dask.array"]
    given, structure = tree_flatten((args, kwargs))
    described, arrays = list(given), {}
    for i, leaf in enumerate(given):
        if isinstance(leaf, Tracer):
            raise arguments.traced_chunks_error(wrapped.__name__)
        if isinstance(leaf, da.Array) or isinstance(leaf, np.ndarray | Array) and leaf.shape:
            if any(map(math.isnan, leaf.shape)):
                raise arguments.unknown_chunks_error(wrapped.__name__)
            described[i] = ShapeDtypeStruct(leaf.shape, leaf.dtype)
            arrays[id(described[i])] = leaf
    args, kwargs = tree_unflatten(structure, described)
    call, program = wrapped._read_program(args, kwargs)
    closed = _unroll_loops(inline_calls(program.closed_jaxpr))
    values = dict(zip(closed.jaxpr.invars, [arrays.get(id(leaf), leaf) for leaf in call.leaves]))
    values |= dict(zip(closed.jaxpr.constvars, closed.consts))
    values = {var: one if isinstance(one, da.Array) else da.from_array(np.asarray(one), chunks=-1)
              if var.aval.shape else np.asarray(one)[()] if isinstance(one, Array) else one
              for var, one in values.items()}
    known = [repr(one) if isinstance(one, ShapeDtypeStruct) else one for one in described]
    origin = base.tokenize(wrapped, repr(structure), known)
    graph = _Graph(wrapped.__name__, origin, closed, values)
    return program.traced.unflatten(graph.make_outputs(da))


def _unroll_loops(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Loops of a known number of rounds, written out as far as they are short."""
    return rewrite_equations(closed, _unroll)


def _unroll(walk: Walk, eqn: Equation) -> list[Atom] | None:
    write = {"scan": _unroll_scan, "cond": _compute_branches}.get(eqn.primitive.name)
    return None if write is None else write(walk, eqn)


def _unroll_scan(walk: Walk, eqn: Equation) -> list[Atom] | None:
    body, n_consts, n_rounds = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["length"]
    n_before = n_consts + eqn.params["num_carry"]
    if n_rounds * len(body.eqns) > _MOST_UNROLLED or n_rounds == 0:
        return None
    consts, carried, columns = eqn.invars[:n_consts], eqn.invars[n_consts:n_before], eqn.invars[n_before:]
    rounds = range(n_rounds)
    made: dict[int, list[Atom]] = {}
    for number in reversed(rounds) if eqn.params["reverse"] else rounds:
        rows = [_read_row(walk, column, number) for column in columns]
        results = walk.splice(body, [*consts, *carried, *rows])
        carried, made[number] = results[:len(carried)], results[len(carried):]
    return [*carried, *(_stack(walk, [made[number][place] for number in rounds])
                        for place in range(len(eqn.outvars) - len(carried)))]


def _read_row(walk: Walk, column: Atom, number: int) -> Atom:
    extents = column.aval.shape[1:]
    row = walk.bind("slice", column, start_indices=(number, *[0] * len(extents)),
                    limit_indices=(number + 1, *extents), strides=None)
    return walk.bind("squeeze", row, dimensions=(0,))


def _stack(walk: Walk, rows: Sequence[Atom]) -> Atom:
    wide = [walk.bind("broadcast_in_dim", row, shape=(1, *row.aval.shape),
                      broadcast_dimensions=tuple(range(1, row.aval.ndim + 1))) for row in rows]
    return walk.bind("concatenate", *wide, dimension=0)


def _compute_branches(walk: Walk, eqn: Equation) -> list[Atom] | None:
    """All branches, and a choice among their results: but not a loop, which may not end where it is not to be
    entered."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    if eqn.effects or any(sub_jaxprs(one.params) for branch in branches for one in branch.eqns):
        return None
    results = [walk.splice(branch, operands) for branch in branches]
    if len(branches) == 1:
        return results[0]
    if len(branches) == 2 and index.aval.dtype != bool:
        [index] = walk.spell(lambda place: [place != 0], [index])
    return [walk.bind("select_n", index, *cases) for cases in zip(*results)]


class _Chunks(NamedTuple):
    """An array of chunks, as keys of tasks name it; extents of chunks along each axis."""

    name: str
    sizes: tuple[tuple[int, ...], ...]


class _Reduction(NamedTuple):
    """A reduction over cut axes. combine: the primitive that joins results of parts.

    parts: for each axis of the result, and each that is swept, where its parts lie."""

    eqn: Equation
    combine: str
    parts: list[list[tuple[int, int]]]


class _Graph:
    """The tasks of one call.

    Args:
        origin: the same for calls of a function with arguments of these types.
        values: arrays of Dask and numbers, of inputs and constants."""

    def __init__(self, function: str, origin: str, closed: ClosedJaxpr, values: dict[Var, Any]):
        self._function, self._origin, self._values = function, origin, values
        names = [getattr(one, "name", one) for one in values.values()]
        self._name = f"{function}-{base.tokenize(origin, names)}"
        self._tasks: dict[Any, Any] = {}
        self._stored = {var: _Chunks(one.name, one.chunks) if hasattr(one, "chunks") else one
                        for var, one in values.items()}
        self._cuts = {var: tuple([(low, low) for low, _ in _list_parts(sizes)[1:]] for sizes in one.sizes)
                      for var, one in self._stored.items() if isinstance(one, _Chunks)}
        self._outvars = closed.jaxpr.outvars
        self._eqns, _ = slice_eqns(closed.eqns, self._outvars, keep_effects=True)

    # -- where results are cut ------------------------------------------------------------------------------
    def _find_stages(self) -> list[list[_Reduction]]:
        """Those of one stage are computed by the same tasks. Finds the cuts of all variables."""
        levels: dict[Atom, int] = defaultdict(int)
        stages: dict[tuple, list[_Reduction]] = defaultdict(list)
        for eqn in self._eqns:
            if eqn.effects:
                raise self._refuse(eqn)
            rule, (out, *_) = find_rule(eqn), eqn.outvars
            level = max([levels[var] for var in eqn.variables], default=0)
            extents = [*out.aval.shape, *rule.sweeps(eqn)]
            cuts = self._find_cuts(eqn, rule, extents)
            kept = cuts[:out.aval.ndim]
            parts = [_list_parts(_list_sizes(own, size)) for own, size in zip(cuts, extents)]
            if any(len(own) > 1 for own in parts[out.aval.ndim:]):
                grid = [tuple(tuple(own) for own in axes if len(own) > 1)
                        for axes in (parts[:out.aval.ndim], parts[out.aval.ndim:])]
                stages[level, *grid].append(_Reduction(eqn, rule.combine, parts))
                level += 1
                kept = [[(low, low) for low, _ in own[1:]] for own in parts[:out.aval.ndim]]
            for var in eqn.outvars:
                levels[var] = level
                self._cuts[var] = tuple(kept) if var.aval.shape == out.aval.shape else ((),) * var.aval.ndim
        return [stages[key] for key in sorted(stages, key=operator.itemgetter(0))]

    def _find_cuts(self, eqn: Equation, rule: Rule, extents: list[int]) -> list[Cuts]:
        """Of the result of an equation, and of the axes that it sweeps. Raises: for an axis that is cut, and
        of which each element of the result needs all."""
        wishes: list[list[Cuts]] = [[] for _ in extents]
        for atom, axes in zip(eqn.invars, rule.find(eqn)):
            for cuts, along, own in zip(self._cuts.get(atom, ()), axes, atom.aval.shape):
                if along is None and len(_list_sizes(cuts, own)) > 1:
                    raise self._refuse(eqn)
                if along is not None and cuts:
                    size = extents[along.axis]
                    placed = [tuple(sorted(min(max(along.place(end), 0), size) for end in cut))
                              for cut in cuts]
                    wishes[along.axis].append(sorted(placed))
        if eqn.primitive.name == "concatenate":
            dimension = eqn.params["dimension"]
            wishes[dimension] = [self._cut_at_seams(eqn.invars, dimension)]
        return list(map(_join_cuts, wishes))

    def _cut_at_seams(self, pieces: Sequence[Atom], dimension: int) -> Cuts:
        """Cuts of all pieces, and seams between chunks that are not much smaller than others."""
        cuts: Cuts = []
        largest = offset = 0
        seams = []
        for piece in pieces:
            own, size = self._cuts.get(piece, ((),) * piece.aval.ndim)[dimension], piece.aval.shape[dimension]
            cuts += [(low + offset, high + offset) for low, high in own if 0 < (low + high) // 2 < size]
            largest = max([largest, *(_list_sizes(own, size) if own else ())])
            seams.append(offset)
            offset += size
        ends = sorted({*seams, offset, *(low for low, _ in cuts)})
        for seam in seams if cuts else ():
            number = ends.index(seam)
            if 0 < seam < offset and 2 * min(ends[number + 1] - seam, seam - ends[number - 1]) >= largest:
                cuts.append((seam, seam))
        return sorted(set(cuts))

    def _refuse(self, eqn: Equation) -> Exception:
        name = eqn.primitive.name
        if name == "scan":
            name = f"a loop (scan, fori_loop or map) of {eqn.params['length']} rounds"
        elif name == "while":
            name = "a loop until a condition (while_loop)"
        return arguments.chunks_error(self._function, name, format_snippet(eqn.source_info))

    # -- tasks ----------------------------------------------------------------------------------------------
    def make_outputs(self, da: Any) -> list:
        """The arrays of Dask of all results."""
        for number, stage in enumerate(self._find_stages()):
            self._add_stage(f"{self._name}-{number}", stage)
        found: dict[Atom, Any] = {}
        together: dict[tuple, list[Var]] = defaultdict(list)
        for atom in self._outvars:
            if isinstance(atom, Literal):
                found[atom] = da.from_array(atom.to_numpy())
            elif atom in self._values:
                value = self._values[atom]
                found[atom] = value if isinstance(value, da.Array) else da.from_array(np.asarray(value))
            elif atom not in self._stored:
                together[tuple(map(_list_sizes, self._cuts[atom], atom.aval.shape))].append(atom)
        for number, (sizes, group) in enumerate(together.items()):
            self._add_results(f"{self._name}-out{number}", sizes, list(dict.fromkeys(group)))
        inputs = [one for one in self._values.values() if isinstance(one, da.Array)]
        graph = highlevelgraph.HighLevelGraph.from_collections(self._name, self._tasks, dependencies=inputs)
        return [found[atom] if atom in found else self._make_array(da, graph, atom) for atom in self._outvars]

    def _make_array(self, da: Any, graph: Any, var: Var) -> Any:
        """A layer that has the array's keys alone, as Dask wants it."""
        chunks = self._stored[var]
        name = f"{chunks.name}-array"
        tasks = {(name, *index): (_get, (chunks.name, *index)) for index in _list_indices(chunks.sizes)}
        layers, dependencies = graph.layers | {name: tasks}, graph.dependencies | {name: {self._name}}
        graph = highlevelgraph.HighLevelGraph(layers, dependencies)
        return da.Array(graph, name, chunks.sizes, meta=np.empty((0,) * len(chunks.sizes), var.aval.dtype))

    def _add_stage(self, name: str, stage: list[_Reduction]) -> None:
        """A task for each chunk, and a tree of tasks that join what these give."""
        operands = [atom for one in stage for atom in one.eqn.invars]
        eqns, _ = slice_eqns(self._eqns, operands, set(self._stored))
        rank = stage[0].eqn.outvars[0].aval.ndim
        n_kept = sum(len(own) > 1 for own in stage[0].parts[:rank])
        counts = [len(own) for own in stage[0].parts if len(own) > 1]
        keys: dict[tuple, list] = defaultdict(list)
        for index in _list_indices(counts):
            targets = [Target(one.eqn.outvars[0], _choose(one.parts, index), one.eqn) for one in stage]
            keys[index[:n_kept]].append(self._add_program((f"{name}-part", *index), eqns, targets))
        joined = {index: self._join(f"{name}-join", index, parts, stage) for index, parts in keys.items()}
        ends = list(itertools.accumulate(count_results(one.eqn) for one in stage))
        for one, end in zip(stage, ends):
            out = one.eqn.outvars[0]
            sizes = tuple(tuple(high - low for low, high in own) for own in one.parts[:out.aval.ndim])
            self._store(f"{name}-{end - 1}", out, sizes, joined, end - 1, ends[-1])

    def _join(self, name: str, index: tuple, keys: list, stage: list[_Reduction]) -> Any:
        for level in itertools.count():
            if len(keys) == 1:
                return keys[0]
            batches = [keys[first:first + _FAN_IN] for first in range(0, len(keys), _FAN_IN)]
            keys = []
            for number, batch in enumerate(batches):
                key = batch[0]
                if len(batch) > 1:
                    key = (f"{name}{level}", *index, number)
                    join = write_join([one[:2] for one in stage], len(batch), self._origin)
                    self._tasks[key] = join, *batch
                keys.append(key)

    def _add_results(self, name: str, sizes: tuple, group: list[Var]) -> None:
        """Variables of the same chunks: a task for each chunk gives all of them."""
        eqns, _ = slice_eqns(self._eqns, group, set(self._stored))
        parts, keys = list(map(_list_parts, sizes)), {}
        for index in _list_indices([len(own) for own in parts if len(own) > 1]):
            box = _choose(parts, index)
            keys[index] = self._add_program((name, *index), eqns, [Target(var, box) for var in group])
        for position, var in enumerate(group):
            self._store(f"{name}-{position}", var, sizes, keys, position, len(group))

    def _store(self, name: str, var: Var, sizes: tuple, keys: dict, position: int, width: int) -> None:
        """The chunks of a variable. keys: of tasks whose results, tuples if `width` is not 1, have them."""
        for index in _list_indices(sizes):
            key = keys[tuple(i for i, own in zip(index, sizes) if len(own) > 1)]
            self._tasks[(name, *index)] = (operator.getitem, key, position) if width > 1 else (_get, key)
        self._stored[var] = _Chunks(name, sizes)

    def _add_program(self, key: tuple, eqns: list[Equation], targets: list[Target]) -> tuple:
        writer = Writer(eqns, self._stored)
        program = writer.write(targets, self._origin)
        self._tasks[key] = program, *(self._read(var, box) for var, box in writer.inputs), *writer.offsets
        return key

    def _read(self, var: Var, box: Box) -> Any:
        """A part of what is stored: a key, or nested lists of keys of its pieces."""
        chunks = self._stored[var]
        if not isinstance(chunks, _Chunks):
            return chunks

        def nest(done: list, rest: list) -> Any:
            if not rest:
                return self._read_chunk(chunks.name, done)
            return [nest([*done, piece], rest[1:]) for piece in rest[0]]

        pieces = [[(number, max(low - first, 0), min(high, last) - first, last - first)
                   for number, (first, last) in enumerate(_list_parts(sizes)) if low < last and first < high]
                  for sizes, (low, high) in zip(chunks.sizes, box)]
        if all(len(own) == 1 for own in pieces):
            return self._read_chunk(chunks.name, [own[0] for own in pieces])
        return nest([], pieces)

    def _read_chunk(self, name: str, pieces: list[tuple[int, int, int, int]]) -> tuple:
        """pieces: number of the chunk, first and last position in it, and its extent, along each axis."""
        key = (name, *(number for number, *_ in pieces))
        if all(low == 0 and high == size for _, low, high, size in pieces):
            return key
        part = (f"{self._name}-of-{name}", *itertools.chain(*(piece[:3] for piece in pieces)))
        self._tasks[part] = operator.getitem, key, tuple(slice(low, high) for _, low, high, _ in pieces)
        return part


def _get(value: Any) -> Any:
    return value


def _list_indices(axes: Sequence) -> Iterator[tuple[int, ...]]:
    """axes: how many there are along each, or those themselves."""
    return itertools.product(*(range(one if isinstance(one, int) else len(one)) for one in axes))


def _choose(parts: list[list[tuple[int, int]]], index: tuple[int, ...]) -> Box:
    """index: numbers for the axes with several parts."""
    numbers = iter(index)
    return tuple(own[next(numbers) if len(own) > 1 else 0] for own in parts)


def _list_parts(sizes: Sequence[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(itertools.accumulate(sizes, initial=0)))


def _list_sizes(cuts: Cuts, size: int) -> tuple[int, ...]:
    """Of the chunks that lie between cuts."""
    middles = sorted({min(max((low + high) // 2, 0), size) for low, high in cuts} | {0, size})
    return tuple(high - low for low, high in itertools.pairwise(middles)) or (0,)


def _join_cuts(wishes: list[Cuts]) -> Cuts:
    """Those of most; where several have as many, what all of them ask for."""
    most = max(map(len, wishes), default=0)
    chosen = [wish for wish in wishes if len(wish) == most]
    return [(min(low for low, _ in cut), max(high for _, high in cut)) for cut in zip(*chosen)]
