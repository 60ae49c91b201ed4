"""Statements of the loop program.

A `Program` is buffers and a list of steps: `Native` blocks of statements and `LibraryCall`s between them.
Statements: `Kernel` (a fused nest) with `Loop`, `Reduce`, `Scan`, `Repeat`, `Choice` and `Store` inside;
`Call` of a routine; `While` and `Switch` around them, where a `LibraryCall` may stand too.

Each kind says of itself what is asked of any of them (`Statement`): `traversal` goes through all.

Statements run one after the other. In one body an expression is evaluated where it is first needed, once for
all of the body's statements: a load gives what the element held then, also behind a store to it. No element
is first read behind a store to it in the same body (`check`); the loops that follow may read it. Only the
marks about speed let iterations change places.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jitcore.loopir.expr import Axis, Buffer, Expr, Index, Result, walk
from jitcore.process.lazy import LazyModule

picture = LazyModule("jitcore.loopir.picture")

# (low, high) of an axis that is run over in part, None for an end itself; see `Loop`.
Ends = tuple[Expr | None, Expr | None]
# What a statement reads or writes: an element, or None for whole buffers.
Access = tuple[Buffer, Index | None]


class Statement:
    """What is asked of any statement. A kind defines what it has of it; here is what the others have.

    axes: what it runs over by itself, innermost last. bounds: the ends of those that it runs over in part.
    roots: expressions that it evaluates itself, in each of its iterations. values: those that it combines.
    stores: what it stores itself. results: what it defines for the statements after it in the same body.
    ends: the expressions that decide what it runs: the ends of its ranges, or which of its bodies.
    block_results: buffers for what blocks of it find. bodies: lists of the statements inside of it.
    ways: how it runs, as a target's rules decided."""

    __slots__ = ()

    axes: Sequence[Axis] = ()
    bounds: dict[Axis, Ends] = {}
    roots: Sequence[Expr] = ()
    values: Sequence[Expr] = ()
    stores: Sequence[Store] = ()
    results: Sequence[Result] = ()
    ends: Sequence[Expr] = ()
    block_results: Sequence[Buffer] = ()
    bodies: Sequence[list[Statement]] = ()
    ways: Mapping[str, Any] = MappingProxyType({})

    def change_bodies(self, change: Callable[[list], list]) -> None:
        """Puts what `change` makes of each body in its place."""

    @property
    def targets(self) -> list[Access]:
        """What it writes itself, but for those of blocks."""
        return [(store.buffer, store.offset) for store in self.stores]

    @property
    def loads(self) -> list[Access]:
        """What it reads itself."""
        nodes = walk([*self.roots, *self.ends])
        updated = [(store.buffer, store.offset) for store in self.stores if store.combine is not None]
        return [node.attr for node in nodes if node.op == "load"] + updated

    def map(self, rewrite) -> Statement:
        """A copy, for statements of kernels. rewrite: by `expr`, `end`, `axes`, `result`, `place` says what
        parts become, and by `statement` what the statements inside do; see `schedule.rewrite`."""
        raise NotImplementedError(type(self).__name__)


class _Block(Statement):
    """What has statements inside. inner: names of the slots that hold them."""

    __slots__ = ()
    inner: tuple[str, ...] = ("body",)

    @property
    def bodies(self) -> list[list[Statement]]:
        return [getattr(self, name) for name in self.inner]

    def change_bodies(self, change: Callable[[list], list]) -> None:
        for name in self.inner:
            setattr(self, name, change(getattr(self, name)))


class Store(Statement):
    """`buffer[offset] = value`, where `mask` (if any) holds. combine: None or the scalar op that merges old
    and new. in_order: lanes may store into one element, and do so one after the other.
    turns: (copies, distance) where the buffer holds copies of the elements so far apart, and an update may
    change any of them: updates that follow each other take different ones.
    packed: in a `Reduce` over one axis, the values of the iterations where `mask` holds go side by side, from
    `offset` on, in their order; the places up to the one of the iteration itself may take any value. It may
    be the memory that the values are read from."""

    __slots__ = ("buffer", "offset", "value", "mask", "combine", "in_order", "turns", "packed")

    def __init__(self, buffer: Buffer, offset: Index, value: Expr, mask: Expr | None = None,
                 combine: str | None = None, in_order: bool = False, turns: tuple | None = None,
                 packed: bool = False):
        self.buffer, self.offset, self.value, self.mask, self.combine = buffer, offset, value, mask, combine
        self.in_order, self.turns, self.packed = in_order, turns, packed

    @property
    def stores(self) -> Sequence[Store]:
        return (self,)

    @property
    def roots(self) -> list[Expr]:
        mask = () if self.mask is None else (self.mask,)
        return [self.value, *mask, *self.offset.exprs]

    def map(self, rewrite) -> Store:
        mask = None if self.mask is None else rewrite.expr(self.mask)
        place, value = rewrite.place(self.buffer, self.offset), rewrite.expr(self.value)
        return Store(*place, value, mask, self.combine, self.in_order, self.turns, self.packed)

    @property
    def is_update(self) -> bool:
        """Whether more happens than that a value is written to the element at `offset`."""
        return self.combine is not None or self.in_order or self.turns is not None or self.packed


class Kernel(_Block):
    """One fused loop nest group: what a backend compiles to one kernel.

    body: statements; a leading `Loop` over the outermost axis may be split over threads when `parallel`.
    vector: the axis whose iterations may run in lanes, or None.
    grain: iterations of the outermost loop (blocks, for a split reduction) that one thread should get at
    least.
    tile: (rows, columns), the axes of the two innermost loops where both run in blocks, because some of what
    is read lies along the one and some along the other; `vector` is the columns, and the body is stores.
    far: buffers that are read or updated at places found at run time, and too large for caches.
    others: axes beside `vector` whose iterations may run in lanes, of loops that stand side by side with its.
    ways: what a target's rules decided; see `ways`."""

    __slots__ = ("body", "vector", "parallel", "grain", "tile", "far", "others", "ways")

    def __init__(self, body: list, vector: Axis | None = None, parallel: bool = False, grain=1,
                 tile: tuple[Axis, Axis] | None = None, far: tuple[Buffer, ...] = (),
                 others: tuple[Axis, ...] = ()):
        self.body, self.vector, self.parallel, self.grain = body, vector, parallel, grain
        self.tile, self.far, self.others = tile, far, others
        self.ways: dict[str, Any] = {}

    @property
    def is_scalar(self) -> bool:
        """Whether it has no loops, and so is scalar code."""
        return all(isinstance(statement, Store) for statement in self.body)

    def map(self, rewrite) -> Kernel:
        """The same over the same axes."""
        kernel = copy.copy(self)
        kernel.body = list(map(rewrite.statement, self.body))
        return kernel


class Loop(_Block):
    """`for axis in range(extent)`, or `range(low, high)`: int64 expressions of at least 0, and of at most the
    extent, on what is known where the loop begins; None for the end itself. Empty where low >= high."""

    __slots__ = ("axis", "body", "low", "high", "ways")

    def __init__(self, axis: Axis, body: list, low: Expr | None = None, high: Expr | None = None):
        self.axis, self.body, self.low, self.high = axis, body, low, high
        self.ways: dict[str, Any] = {}

    @property
    def axes(self) -> Sequence[Axis]:
        return (self.axis,)

    @property
    def bounds(self) -> dict[Axis, Ends]:
        return {} if self.low is None and self.high is None else {self.axis: (self.low, self.high)}

    @property
    def ends(self) -> list[Expr]:
        return [end for end in (self.low, self.high) if end is not None]

    def map(self, rewrite) -> Loop:
        body, axes = list(map(rewrite.statement, self.body)), rewrite.axes(self.axes)
        if len(axes) == 1:
            return Loop(axes[0], body, *map(rewrite.end, (self.low, self.high)))
        for axis in reversed(axes):
            body = [Loop(axis, body)]
        return body[0]


class Reduce(Statement):
    """Combines values over `axes` (innermost last) into results, one per entry of `parts`; `stores` run
    each iteration.

    parts: (result, op, expr): op is a monoid's name ("add", "mul", "max", "min", "and", "or", "xor"), or
    "argmax"/"argmin": then the result is the first position along the (single) axis where expr is extreme.
    block_results: arena buffers, one per part, when the reduction may be split over blocks of the first axis
    (`block` iterations each); the combination order does not depend on the number of threads.
    bounds: axis -> (low, high), where not all of the axis is swept; see `Loop`.
    is_long: whether it adds up so many numbers that it takes short runs of them."""

    __slots__ = ("axes", "parts", "stores", "block_results", "block", "bounds", "is_long", "ways")

    def __init__(self, axes: tuple[Axis, ...], parts: list, stores: list,
                 bounds: dict[Axis, Ends] | None = None):
        self.axes, self.parts, self.stores, self.bounds = axes, parts, stores, bounds or {}
        self.block_results: list[Buffer] = []
        self.block = None
        self.is_long = False
        self.ways: dict[str, Any] = {}

    @property
    def roots(self) -> list[Expr]:
        return self.values + [root for store in self.stores for root in store.roots]

    @property
    def values(self) -> list[Expr]:
        return [expr for _, _, expr in self.parts]

    @property
    def results(self) -> list[Result]:
        return [result for result, _, _ in self.parts]

    @property
    def ends(self) -> list[Expr]:
        return [end for ends in self.bounds.values() for end in ends if end is not None]

    @property
    def finds_places(self) -> bool:
        """Whether a result is the position of an extreme."""
        return any(op.startswith("arg") for _, op, _ in self.parts)

    def map(self, rewrite) -> Reduce:
        parts = [(rewrite.result(result), op, rewrite.expr(expr)) for result, op, expr in self.parts]
        stores = list(map(rewrite.statement, self.stores))
        bounds = {axis: tuple(map(rewrite.end, ends)) for old, ends in self.bounds.items()
                  for axis in rewrite.axes((old,))}
        return _keep_blocks(self, Reduce(tuple(rewrite.axes(self.axes)), parts, stores, bounds))


class Choice(_Block):
    """Inside of kernels: runs `body` where `condition` holds, a bool that is known there, and else `other`,
    which stores the same and defines the same results."""

    __slots__ = ("condition", "body", "other")
    inner = ("body", "other")

    def __init__(self, condition: Expr, body: list, other: list):
        self.condition, self.body, self.other = condition, body, other

    @property
    def ends(self) -> list[Expr]:
        return [self.condition]

    @property
    def results(self) -> list[Result]:
        return [result for statement in self.body for result in statement.results]

    def map(self, rewrite) -> Choice:
        bodies = [list(map(rewrite.statement, body)) for body in self.bodies]
        return Choice(rewrite.expr(self.condition), *bodies)


class Scan(Statement):
    """Running combination along `axis`: `buffer[offset] = accumulator = op(accumulator, value)`.

    block_results: arena buffers for the totals of the blocks of `block` iterations that the scan may be split
    into, and for what comes before each, for every iteration of the loops around it; the blocks do not depend
    on the number of threads. is_long: see `Reduce`."""

    __slots__ = ("axis", "op", "value", "buffer", "offset", "reverse", "block_results", "block", "is_long",
                 "ways")

    def __init__(self, axis: Axis, op: str, value: Expr, buffer: Buffer, offset: Index, reverse: bool):
        self.axis, self.op, self.value, self.buffer, self.offset = axis, op, value, buffer, offset
        self.reverse = reverse
        self.block_results: list[Buffer] = []
        self.block = None
        self.is_long = False
        self.ways: dict[str, Any] = {}

    @property
    def axes(self) -> Sequence[Axis]:
        return (self.axis,)

    @property
    def values(self) -> list[Expr]:
        return [self.value]

    @property
    def roots(self) -> list[Expr]:
        return [self.value, *self.offset.exprs]

    @property
    def targets(self) -> list[Access]:
        return [(self.buffer, self.offset)]

    def map(self, rewrite) -> Scan:
        """The same along the same axis."""
        value, place = rewrite.expr(self.value), rewrite.place(self.buffer, self.offset)
        return _keep_blocks(self, Scan(self.axis, self.op, value, *place, self.reverse))


def _keep_blocks(sweep: Reduce | Scan, copied: Reduce | Scan) -> Reduce | Scan:
    copied.block_results, copied.block, copied.is_long = sweep.block_results, sweep.block, sweep.is_long
    return copied


class Repeat(_Block):
    """Runs `body` (stores, repeats) and sets the registers to their `updates`, while `condition` holds.

    registers: `Result`s that start as `initial`. A register whose axes hold a loop's axis has a value for
    each iteration of that loop; where the condition depends on the axis too, each iteration ends by itself.
    trips: rounds to expect, a number that decides about threads only."""

    __slots__ = ("registers", "initial", "condition", "body", "updates", "trips")

    def __init__(self, registers: list, initial: list[Expr], condition: Expr, body: list, updates: list[Expr],
                 trips: int):
        self.registers, self.initial, self.condition = registers, initial, condition
        self.body, self.updates, self.trips = body, updates, trips

    @property
    def roots(self) -> list[Expr]:
        return [*self.initial, self.condition, *self.updates]

    @property
    def results(self) -> list[Result]:
        return self.registers

    def map(self, rewrite) -> Repeat:
        return Repeat(list(map(rewrite.result, self.registers)), list(map(rewrite.expr, self.initial)),
                      rewrite.expr(self.condition), list(map(rewrite.statement, self.body)),
                      list(map(rewrite.expr, self.updates)), self.trips)


class While(_Block):
    """Runs `cond` (statements), tests the bool in scalar buffer `predicate`, runs `body`, again.

    swaps: pairs of buffers whose memory changes places at the end of each round. After the loop each is at
    home again, and the first of a pair holds what it held then; the second is of no more use."""

    __slots__ = ("cond", "predicate", "body", "swaps")
    inner = ("cond", "body")

    def __init__(self, cond: list, predicate: Buffer, body: list, swaps: list[tuple[Buffer, Buffer]]):
        self.cond, self.predicate, self.body, self.swaps = cond, predicate, body, swaps

    @property
    def moving(self) -> list[Buffer]:
        """The buffers whose memory changes places."""
        return [buffer for pair in self.swaps for buffer in pair]

    @property
    def targets(self) -> list[Access]:
        return [(buffer, None) for buffer in self.moving]

    @property
    def loads(self) -> list[Access]:
        return [(buffer, None) for buffer in (self.predicate, *self.moving)]


class Switch(Statement):
    """Runs the branch whose number is in the int32 scalar buffer `selector` (already in range)."""

    __slots__ = ("selector", "branches")

    def __init__(self, selector: Buffer, branches: list[list]):
        self.selector, self.branches = selector, branches

    @property
    def bodies(self) -> list[list[Statement]]:
        return self.branches

    def change_bodies(self, change: Callable[[list], list]) -> None:
        self.branches = list(map(change, self.branches))

    @property
    def loads(self) -> list[Access]:
        return [(self.selector, None)]


class _OfBuffers(Statement):
    """Whole buffers to whole buffers."""

    __slots__ = ()
    inputs: list[Buffer]
    outputs: list[Buffer]
    scratch: Sequence[Buffer] = ()

    @property
    def targets(self) -> list[Access]:
        return [(buffer, None) for buffer in (*self.outputs, *self.scratch)]

    @property
    def loads(self) -> list[Access]:
        return [(buffer, None) for buffer in (*self.inputs, *self.scratch)]


class Call(_OfBuffers):
    """A routine of the backend on whole buffers, entered from native code: sorting, matrix products, LAPACK.

    routine: the backend's object; its text names it with all parameters but sizes. Numbers that it has to
    be told at each call and that buffers' extents do not give are its `sizes`.
    function: what it computes, of ndarrays: the inputs, as they lie there, to the outputs in any shape.
    scratch: temporaries that hold nothing before and after.
    epilogue: None, or what is done to the result while it is computed: a `Kernel` of a loop over rows around
    one over columns, run on ranges of both as soon as they are finished."""

    __slots__ = ("routine", "function", "inputs", "outputs", "scratch", "epilogue")

    def __init__(self, routine, function: Callable, inputs: list[Buffer], outputs: list[Buffer],
                 scratch: list[Buffer]):
        self.routine, self.function = routine, function
        self.inputs, self.outputs, self.scratch = inputs, outputs, scratch
        self.epilogue: Kernel | None = None

    @property
    def bodies(self) -> list[list[Statement]]:
        return [] if self.epilogue is None else [[self.epilogue]]

    def change_bodies(self, change: Callable[[list], list]) -> None:
        self.epilogue = next((kernel for body in self.bodies for kernel in change(body)), None)


class Native(_Block):
    """Consecutive statements that become one native function."""

    __slots__ = ("body",)

    def __init__(self, body: list):
        self.body = body


class LibraryCall(_OfBuffers):
    """`outputs = function(*inputs)` on ndarrays: BLAS, LAPACK, FFT, sorting, Python callbacks.

    primitive, params: of the equation; function: the primitive's implementation."""

    __slots__ = ("primitive", "params", "function", "inputs", "outputs", "effects")

    def __init__(self, primitive, params: dict, inputs: list[Buffer], outputs: list[Buffer],
                 effects=frozenset()):
        self.primitive, self.params = primitive, params
        self.function = functools.partial(primitive.impl, **params)
        self.inputs, self.outputs, self.effects = inputs, outputs, effects

    @property
    def name(self) -> str:
        return self.primitive.name


class Roots(Statement):
    """Expressions that stand for a statement, where bodies are asked what they evaluate."""

    __slots__ = ("roots",)

    def __init__(self, *roots: Expr):
        self.roots = roots


class Program:
    """inputs, outputs: buffers in order. temps: buffers of the arena and of the stack. steps: what runs, in
    order. aliases: outputs that live in the memory of a donated input. origins: the equation whose result a
    buffer holds or a `Call` computes, for who tells people about it."""

    __slots__ = ("inputs", "outputs", "temps", "steps", "aliases", "origins")

    def __init__(self, inputs: list[Buffer], outputs: list[Buffer], temps: list[Buffer], steps: list):
        self.inputs, self.outputs, self.temps, self.steps = inputs, outputs, temps, steps
        self.aliases: dict[Buffer, Buffer] = {}
        self.origins: dict[Buffer | Call, Any] = {}

    def _repr_html_(self) -> str:
        return picture.show_program(self)
