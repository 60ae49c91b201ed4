"""Loops turned inside out: one kernel over a batch, and for each member the whole loop in registers.

In: a `while` or `scan` whose body works on each member (element of leading or trailing batch dimensions) by
itself, or on a few scalars altogether. Out: a kernel with a `Repeat`, in place of a loop of kernels that
would pass the carry through memory in every round. A member of a batched `while` ends when its own predicate
does.

The body is evaluated symbolically with the carry in registers. Each element read has to be one of the own
member's, at a position known now; what asks for anything else raises `NotElementwiseError`, and the loop is
lowered the general way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from jitcore import dtypes
from jitcore.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, sub_jaxprs
from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import OP_COST, Axis, Buffer, Expr, Graph, Index, Result, constant, linearize
from jitcore.loopir.program import Kernel, Repeat, Store
from jitcore.loopir.values import Packed, Reduction, Regions, Running, Value, is_scalar
from jitcore.schedule.nest import shape_kernel
from jitcore.schedule.tuning import Tuning


class NotElementwiseError(Exception):
    """The body needs another member's element, or too many elements."""


class Batch:
    """The batch dimensions and the loop axes that run over them; none for a loop on a few scalars.

    most: elements that a member may have of an array."""

    def __init__(self, extents: tuple, most: int):
        self.extents, self.most = extents, most
        self.axes = [Axis(extent) for extent in extents]
        self.index = tuple(map(Index.of, self.axes))

    def find_start(self, shape: tuple) -> int | None:
        """Where in a shape the batch dimensions are, or None."""
        width = len(self.extents)
        starts = range(len(shape) - width + 1) if width else ()
        return next((k for k in starts if tuple(shape[k : k + width]) == self.extents), None)

    def positions(self, shape: tuple) -> Iterator[tuple[tuple[int, ...], tuple[Index, ...]]]:
        """(key, index) of each element that a member has of an array.

        Raises: NotElementwiseError for too many."""
        start = self.find_start(shape)
        stop = None if start is None else start + len(self.extents)
        inner = shape if start is None else (*shape[:start], *shape[stop:])
        count = 1
        for extent in inner:
            count = count * extent
        if not isinstance(count, int) or count > self.most:
            raise NotElementwiseError
        for key in itertools.product(*map(range, inner)):
            index = list(map(constant, key))
            if start is not None:
                index[start:start] = self.index
            yield key, tuple(index)

    def key_of(self, index: tuple[Index, ...], start: int | None) -> tuple[int, ...]:
        """The key of an element; the inverse of `positions`.

        Raises: NotElementwiseError for another member's."""
        if start is not None:
            stop = start + len(self.extents)
            if index[start:stop] != self.index:
                raise NotElementwiseError
            index = (*index[:start], *index[stop:])
        if any(position.terms or not isinstance(position.const, int) for position in index):
            raise NotElementwiseError
        return tuple(position.const for position in index)


class ElementValue(Value):
    """A value of which every element that a member has is an expression."""

    __slots__ = ("builder", "elements")

    def __init__(self, builder: ElementBuilder, shape: tuple, dtype, elements: dict):
        self.shape, self.dtype, self.work, self.buffers = shape, dtype, 0, frozenset()
        self.builder, self.elements = builder, elements

    def at(self, index) -> Expr:
        """The element, or a choice among all that an index known at run time only may mean."""
        chosen = None
        for key, condition in self.builder.targets(index, self.shape):
            if key not in self.elements:
                raise NotElementwiseError
            element = self.elements[key]
            if condition is not None and chosen is not None:
                element = self.builder.graph.op("select", condition, element, chosen, dtype=self.dtype)
            chosen = element
        if chosen is None:
            raise NotElementwiseError
        return chosen


def choose_batch(carries: Sequence[Value], predicate_shape: tuple, tuning: Tuning) -> Batch:
    """The batch dimensions of a loop: the predicate's, or the first large ones of its carry."""
    if predicate_shape:
        return Batch(tuple(predicate_shape), tuning.max_registers)
    for value in carries:
        large = [d for d, extent in enumerate(value.shape)
                 if not isinstance(extent, int) or extent >= tuning.min_vector_extent]
        if large:
            return Batch(tuple(value.shape[large[0] : large[-1] + 1]), tuning.max_registers)
    return Batch((), tuning.max_registers)


def is_scalar_code(jaxpr: Jaxpr) -> bool:
    """Whether a body computes single numbers only. Its loop stays one: the carry is in registers anyhow, and
    of its branches only those run that are taken."""
    outs = (var for eqn in jaxpr.eqns for var in eqn.outvars)
    inner = (closed.jaxpr for eqn in jaxpr.eqns for closed in sub_jaxprs(eqn.params))
    return all(is_scalar(var.aval.shape) for var in outs) and all(map(is_scalar_code, inner))


class ElementBuilder(Builder):
    """Evaluates the equations of a loop's body for one member.

    can_inline: whether an equation's lowering rule may be used here."""

    def __init__(self, graph: Graph, batch: Batch, can_inline: Callable, tuning: Tuning):
        super().__init__(graph)
        self.batch, self.can_inline, self.tuning = batch, can_inline, tuning
        self.body: list = []  # statements of the innermost repeat so far
        self.last_expression = graph.count + tuning.max_expressions
        self.registers = 0

    # -- values -------------------------------------------------------------------------------------------
    def store(self, value: Value) -> Value:
        return self.settle(value)

    def settle(self, value: Value) -> Value:
        """The value with roots unrolled into expressions."""
        if isinstance(value, Reduction):
            positions = list(self.batch.positions(value.shape))
            self.check_terms(value, len(positions))
            elements = {key: self.fold_element(value, index) for key, index in positions}
        elif isinstance(value, Regions):
            elements = self.patch(value)
        elif isinstance(value, Running):
            elements = self.accumulate(value)
        elif isinstance(value, Packed):  # where an element goes depends on all others
            raise NotElementwiseError
        else:
            return value
        return ElementValue(self, value.shape, value.dtype, elements)

    def check_terms(self, value: Reduction, elements: int) -> None:
        """Raises: NotElementwiseError for a reduction over too many positions, before any is evaluated."""
        extents = [value.operand.shape[d] for d in value.reduced]
        if value.op in ("argmax", "argmin") or not all(isinstance(extent, int) for extent in extents):
            raise NotElementwiseError
        terms = math.prod(extents)
        count = self.graph.count + elements * (terms - 1)
        if not 0 < terms <= self.tuning.max_registers or count > self.last_expression:
            raise NotElementwiseError

    def fold_element(self, value: Reduction, index: tuple[Index, ...]) -> Expr:
        """One element of a reduction over a few positions."""
        extents, total = [value.operand.shape[d] for d in value.reduced], None
        for position in itertools.product(*map(range, extents)):
            full, kept = [], iter(index)
            inner = dict(zip(value.reduced, position))
            for d in range(len(value.operand.shape)):
                full.append(constant(inner[d]) if d in inner else next(kept))
            term = value.operand.at(tuple(full))
            total = term if total is None else self.graph.op(value.op, total, term, dtype=value.dtype)
        return total

    def accumulate(self, value: Running) -> dict:
        """The elements of a running reduction over a few positions."""
        elements: dict = {}
        positions = list(self.batch.positions(value.shape))
        for key, index in reversed(positions) if value.reverse else positions:
            term = value.operand.at(index)
            before = list(index)
            before[value.axis] = index[value.axis] + (1 if value.reverse else -1)
            start = self.batch.find_start(value.shape)
            earlier = elements.get(self.batch.key_of(tuple(before), start))
            elements[key] = term if earlier is None else self.graph.op(value.op, earlier, term)
        return elements

    def patch(self, value: Regions) -> dict:
        """The elements of a base that regions overwrite in order."""
        elements = {}
        if value.base is not None:
            elements = {key: value.base.at(index) for key, index in self.batch.positions(value.shape)}
        for region in value.regions:
            for _, index in self.batch.positions(region.value.shape):
                new = region.value.at(index)
                mask = None if region.mask is None else region.mask(index)
                for key, hit in self.targets(region.place(index), value.shape):
                    self.overwrite(elements, key, new, region.combine, self.all_of(
                        [condition for condition in (mask, hit) if condition is not None]))
        return elements

    def targets(self, place: tuple[Index, ...], shape: tuple):
        """(key, None) of the element at a place, or (key, condition) of each that it may be at run time."""
        try:
            yield self.batch.key_of(place, self.batch.find_start(shape)), None
            return
        except NotElementwiseError:
            pass
        for key, index in self.batch.positions(shape):
            conditions = []
            for wanted, own in zip(place, index):
                if wanted == own:
                    continue
                if wanted.axes() or own.terms:
                    raise NotElementwiseError
                conditions.append(self.graph.op(
                    "eq", self.graph.index(wanted), self.graph.index(own), dtype=dtypes.bool_))
            yield key, self.all_of(conditions)

    def overwrite(self, elements: dict, key, new: Expr, combine: str | None, condition: Expr | None) -> None:
        old = elements.get(key)
        if old is None:
            if combine is not None or condition is not None:
                raise NotElementwiseError
            elements[key] = new
            return
        if combine is not None:
            new = self.graph.op(combine, old, new, dtype=old.dtype)
        if condition is not None:
            new = self.graph.op("select", condition, new, old, dtype=old.dtype)
        elements[key] = new

    # -- equations ----------------------------------------------------------------------------------------
    def run(self, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """The results of a body's jaxpr for one member."""
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.invars, operands))

        def read(atom):
            if isinstance(atom, Literal):
                return self.constant(atom.to_numpy(), atom.aval.dtype)
            return env[atom]

        for eqn in jaxpr.eqns:
            if not self.can_inline(eqn) or self.graph.count > self.last_expression:
                raise NotElementwiseError
            outs = eqn.primitive.lower(self, *map(read, eqn.invars), **eqn.params)
            outs = outs if eqn.primitive.multiple_results else [outs]
            env.update(zip(eqn.outvars, map(self.settle, outs)))
        return list(map(read, jaxpr.outvars))

    def elements_of(self, value: Value) -> list[Expr]:
        found = [value.at(index) for _, index in self.batch.positions(value.shape)]
        if self.graph.count > self.last_expression:
            raise NotElementwiseError
        return found

    def make_register(self, dtype, is_batched: bool) -> Result:
        self.registers += 1
        if self.registers > self.tuning.max_registers:
            raise NotElementwiseError
        return Result(dtype, frozenset(self.batch.axes if is_batched else ()), self.registers)

    def carry_registers(self, value: Value) -> tuple[ElementValue, list[Result]]:
        """A carry in registers."""
        is_batched = self.batch.find_start(value.shape) is not None
        elements, registers = {}, []
        for key, _ in self.batch.positions(value.shape):
            registers.append(self.make_register(value.dtype, is_batched))
            elements[key] = self.graph.result(registers[-1])
        return ElementValue(self, value.shape, value.dtype, elements), registers

    # -- loops --------------------------------------------------------------------------------------------
    def repeat(self, init: Sequence[Value], condition: Callable, step: Callable, trips: int) -> list[Value]:
        """Adds a `Repeat`. condition(carry) -> Expr, step(carry) -> new carry; both get values."""
        made = [self.carry_registers(value) for value in init]
        carry = [value for value, _ in made]
        registers = [register for _, several in made for register in several]
        initial = [expr for value in init for expr in self.elements_of(value)]
        body, self.body = self.body, []
        going = condition(carry)
        updates = [expr for value in step(carry) for expr in self.elements_of(value)]
        self.body, inside = body, self.body
        for register, expr in zip(registers, updates):
            if not register.axes and expr.axes:
                raise NotElementwiseError
        self._check_shared_work([going, *updates])
        self.body.append(Repeat(registers, initial, going, inside, updates, trips))
        return carry

    def _check_shared_work(self, results: Sequence[Expr]) -> None:
        """Raises: NotElementwiseError where members would do the same: a loop of kernels does it once."""
        if not self.batch.axes:
            return
        reached, waiting = set(results), list(results)
        while waiting:
            found = set(waiting.pop().args) - reached
            reached |= found
            waiting += found
        changing: dict[Expr, bool] = {}  # whether an expression depends on a register
        for expr in sorted(reached, key=lambda expr: expr.serial):
            changing[expr] = expr.op == "result" or any(changing[arg] for arg in expr.args)
        work = {False: 0, True: 0}  # by whether it is a member's own
        for expr, changes in changing.items():
            work[bool(expr.axes)] += OP_COST.get(expr.op, 1) if changes else 0
        if work[False] > 2 * work[True] + self.tuning.max_common_work:
            raise NotElementwiseError

    def while_loop(self, cond_jaxpr, cond_consts, body_jaxpr, body_consts, init) -> list[Value]:
        def condition(carry):
            (predicate,) = self.run(cond_jaxpr, [*cond_consts, *carry])
            if predicate.shape not in ((), self.batch.extents):
                raise NotElementwiseError
            (going,) = self.elements_of(predicate)
            return going

        return self.repeat(init, condition, lambda carry: self.run(body_jaxpr, [*body_consts, *carry]),
                           self.tuning.usual_trips)

    def scan(self, jaxpr, length, reverse: bool, consts, init, xs, stacks: Sequence[Buffer] | None = None):
        """A counted loop. stacks: where the results of each round go; without them there must be none."""
        if len(jaxpr.out_avals) - len(init) != len(stacks or ()):
            raise NotElementwiseError
        counter = self.constant(0, dtypes.int64)

        def condition(carry):
            stop = self.graph.index(Index((), length))
            return self.graph.op("lt", carry[0].at(()), stop, dtype=dtypes.bool_)

        def step(carry):
            count, *carry = carry
            at = self.raw_index(count.at(()))
            at = (at * -1 + length) + -1 if reverse else at
            rows = [self.view(x, x.shape[1:], lambda index: (at, *index)) for x in xs]
            outs = self.run(jaxpr, [*consts, *carry, *rows])
            for value, stack in zip(outs[len(init) :], stacks or ()):
                for _, index in self.batch.positions(value.shape):
                    place = linearize((at, *index), stack.shape)
                    self.body.append(Store(stack, place, value.at(index)))
            return [self.map("add", count, self.constant(1, dtypes.int64)), *outs[: len(init)]]

        trips = length if isinstance(length, int) else self.tuning.usual_trips
        _, *carry = self.repeat([counter, *init], condition, step, trips)
        return carry

    def switch(self, selector: Value, branches: Sequence[ClosedJaxpr], operands) -> list[Value]:
        """All branches, and the chosen one's results: for branches without loops of their own."""
        before, is_inside = len(self.body), self.speculates
        self.speculates = True
        results = [self.run(branch, operands) for branch in branches]
        self.speculates = is_inside
        if len(self.body) != before:
            raise NotElementwiseError
        chosen = []
        for cases in zip(*results):
            which = selector if selector.dtype == dtypes.bool_ else self.convert(selector, dtypes.int32)
            chosen.append(self.settle(self.select(which, *cases)))
        return chosen


def finish_kernel(lowering, builder: ElementBuilder, results: Sequence[Value],
                  outputs: Sequence[Buffer]) -> Kernel:
    """The kernel over all members: the loop, then the carry's stores."""
    batch, body = builder.batch, [*builder.body]
    for value, buffer in zip(results, outputs):
        for _, index in batch.positions(value.shape):
            body.append(Store(buffer, linearize(index, buffer.shape), value.at(index)))
    return shape_kernel(lowering, batch.axes, [], body)
