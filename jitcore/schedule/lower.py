"""Lowering: the equations of a jaxpr become statements.

In: a jaxpr without constvars, a backend's target, and the transformations to apply. Out: the steps of a
`Program`. Equations are visited once, in order. Elementwise and shape operations become `Computed` values
that are inlined where they are read; what has to be in memory joins a fusion group; control flow becomes
native `While` and `Switch` statements; what the backend cannot render becomes a library call of the
primitive's NumPy/SciPy implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from jitcore import dtypes
from jitcore.core.jaxpr import ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var, sub_jaxprs
from jitcore.loopir.builder import Builder
from jitcore.loopir.expr import Buffer, Expr, Graph, Index, linearize
from jitcore.loopir.program import Call, LibraryCall, Native, Switch, While
from jitcore.loopir.values import (ROOTS, Computed, Packed, Reduction, Regions, Running, Stored, Value, is_in,
                                   is_scalar)
from jitcore.process.effort import spend
from jitcore.schedule.aliasing import fills_ranges, find_operand, settle_region
from jitcore.schedule.fusion import FusionGroup, is_trivial, kept_dimensions, scan_kernel, squeeze
from jitcore.schedule.index_set_splitting import join_on_write
from jitcore.schedule.loop_per_element import (ElementBuilder, NotElementwiseError, choose_batch,
                                               finish_kernel, is_scalar_code)
from jitcore.schedule.regions import copy_around, join_kernels, regions_kernels, store_rows
from jitcore.schedule.target import Routine, Target, find_function
from jitcore.schedule.uses import Uses, find_inner_uses, is_direct


class Lowering(Builder):
    """The state of one lowering: buffers made, steps emitted, the open fusion group.

    stages: transformations by what they are given. features: what the program has, by name: primitives and
    their traits, "Call" where there are routines, "temporary" and "donated", what loops of kernels have."""

    def __init__(self, equations: Sequence[Equation], target: Target, donated: Sequence[bool],
                 stages: Mapping[str, Sequence]):
        super().__init__(Graph())
        self.tuning, self.donated, self.stages = target.tuning, donated, stages
        whole = [eqn for eqn in equations if eqn.primitive.traits.get("family") != "elementwise"]
        self.routines = {id(eqn): routine for eqn in whole
                         if not eqn.effects and (routine := target.find_routine(eqn)) is not None}
        self.rendered = {id(eqn) for eqn in equations if target.can_render(eqn)}
        self.features = {name for primitive in {eqn.primitive for eqn in equations}
                         for name in (primitive.name, *primitive.traits)}
        if self.routines:
            self.features.add("Call")
        if any(donated):
            self.features.add("donated")
        self.uses_inside: dict[Jaxpr, Uses] = {}  # of bodies whose results may take the memory of inputs
        self.goals: Sequence[Buffer | None] = ()  # where the results of the equation being lowered shall be
        self.spare: set[Buffer] = set()  # memory of its operands that nothing else reads any more
        self.temps: list[Buffer] = []
        self.origins: dict[Buffer | Call, Equation] = {}  # whose results buffers hold, or calls compute
        self.equation: Equation | None = None  # the one being lowered
        self.steps: list = []
        self.groups: list[FusionGroup] = []  # open ones, in the order in which their kernels will run
        self.group: FusionGroup | None = None  # the one that a value is being evaluated for
        self.nested: list[list] = []  # statement lists of the control flow being lowered, innermost last

    def choose(self, at: str, features: Collection[str] | None = None) -> list:
        """The transformations that are about something with these features; the program's, unless given."""
        found = self.features if features is None else features
        return [stage for stage in self.stages[at] if stage.applies_to(found)]

    # -- jaxprs -------------------------------------------------------------------------------------------
    def lower_jaxpr(self, jaxpr: Jaxpr, env: dict[Var, Value], outputs: Sequence[Buffer | None],
                    uses: Uses | None = None) -> None:
        """Emits the equations and stores the outputs into the given buffers; None for one not wanted."""
        uses = uses or self.find_uses(jaxpr, False)
        target: dict[Var, Buffer] = {}
        for atom, buffer in zip(jaxpr.outvars, outputs):
            if isinstance(atom, Var) and buffer is not None:
                self.aim(atom, buffer, uses, env, target)
        for var in uses.list_updates():
            if var not in target and var not in env and uses.updated[var] not in env:
                self.aim(var, self.new_temp(var.aval.shape, var.aval.dtype), uses, env, target)
        for number, eqn in enumerate(jaxpr.eqns):
            spend(self.tuning.equation_steps)
            for stage in self.choose("equation"):
                stage.run(self, eqn, number, uses, env, target)
            operands = [self.value_of(atom, env) for atom in eqn.invars]
            goals = [target.get(var) for var in eqn.outvars]
            self.equation = eqn
            self.origins.update((goal, eqn) for goal in goals if goal is not None)
            outs = self.lower_equation(eqn, operands, goals)
            for var, out, goal in zip(eqn.outvars, outs, goals):
                if isinstance(var, DropVar):
                    continue
                for stage in self.choose("value", (out.__class__.__name__,)) if goal is None else ():
                    out = stage.run(self, out, var, uses)
                if goal is not None and not is_in(out, goal):
                    out = self.store_value(out, goal)
                elif isinstance(out, ROOTS) or not isinstance(out, Stored) and uses.needs_store(var, out):
                    out = self.keep_ranges(var, self.store_value(out, None), uses, env)
                env[var] = out
        for atom, buffer in zip(jaxpr.outvars, outputs):
            value = self.value_of(atom, env)
            if buffer is not None and not is_in(value, buffer):
                self.store_value(value, buffer)

    def aim(self, var: Var, buffer: Buffer, uses: Uses, env, target: dict[Var, Buffer]) -> None:
        """Chooses the buffer of an output; what it is an update of is made there too, so that it happens in
        place."""
        while var not in env and var not in target:
            target[var] = buffer
            if uses.replaced_by(var) is None:
                break
            var = uses.replaced_by(var)

    def find_uses(self, jaxpr: Jaxpr, in_place: bool) -> Uses:
        if in_place:
            return find_inner_uses(jaxpr, self.is_call, self.tuning, self.uses_inside)
        return Uses(jaxpr, self.is_call, self.tuning, False, self.uses_inside)

    def keep_ranges(self, var: Var, stored: Value, uses: Uses, env: dict[Var, Value]) -> Value:
        """A mask in memory, and what it says about places alone: loops over such a range stay that."""
        for part in () if uses.is_kept(var) else uses.list_conjuncts(var):
            value = env.get(part)
            if isinstance(value, Computed) and value.work <= self.tuning.max_direct_work and all(
                    is_scalar(buffer.shape) for buffer in value.buffers):
                stored = self.map("and", value, stored)
        return stored

    def value_of(self, atom, env) -> Value:
        if isinstance(atom, Literal):
            return self.constant(atom.to_numpy(), atom.aval.dtype)
        return env[atom]

    def find_routine(self, eqn: Equation) -> Routine | None:
        """The backend's routine for an equation."""
        return self.routines.get(id(eqn))

    def is_call(self, eqn: Equation) -> bool:
        """Whether an equation reads and writes whole arrays in memory."""
        return id(eqn) in self.routines or self.is_library(eqn)

    def is_library(self, eqn: Equation) -> bool:
        """Whether an equation for which there is no routine becomes a library call.

        Control flow does not: what has no code in its bodies is called from there."""
        if sub_jaxprs(eqn.params):
            return eqn.primitive.lower is None
        prefers = eqn.primitive.traits.get("prefers_library")
        if prefers is not None and prefers(*[atom.aval for atom in eqn.invars], **eqn.params):
            return True
        return not self.is_native(eqn)

    def is_native(self, eqn: Equation) -> bool:
        """Whether there is code for an equation and for all that is inside of it."""
        if id(eqn) in self.routines:
            return True
        if eqn.effects or eqn.primitive.lower is None or id(eqn) not in self.rendered:
            return False
        needs_library = eqn.primitive.traits.get("needs_library")
        if needs_library is not None and needs_library(**eqn.params):
            return False
        return all(self.is_native(inner) for closed in sub_jaxprs(eqn.params) for inner in closed.eqns)

    def lower_equation(self, eqn: Equation, operands: list[Value], goals: list) -> list[Value]:
        routine = self.find_routine(eqn)
        if routine is not None:
            return self.call_routine(routine, eqn, operands, goals)
        if self.is_library(eqn):
            return self.call_library(eqn, operands, goals)
        self.goals = goals
        outs = eqn.primitive.lower(self, *operands, **eqn.params)
        return list(outs) if eqn.primitive.multiple_results else [outs]

    def call_routine(self, routine: Routine, eqn: Equation, operands: list, goals: list) -> list[Value]:
        """A native step that the backend's routine does on buffers."""
        operands = routine.prepare(self, *operands) if hasattr(routine, "prepare") else operands
        inputs = [find_operand(self, routine, value, goals) for value in operands]
        self.end_group()
        outputs = self.output_buffers(eqn, goals)
        scratch = [self.new_temp(shape, dtype) for shape, dtype in routine.scratch()]
        call = Call(routine, find_function(routine, eqn), inputs, outputs, scratch)
        self.origins[call] = eqn
        self.emit(call)
        return [self.stored(buffer) for buffer in outputs]

    def output_buffers(self, eqn: Equation, goals: list) -> list[Buffer]:
        avals = [var.aval for var in eqn.outvars]
        return [goal or self.new_temp(aval.shape, aval.dtype) for aval, goal in zip(avals, goals)]

    def call_library(self, eqn: Equation, operands: list[Value], goals: list) -> list[Value]:
        """Runs the primitive's implementation on ndarrays: a step of its own, or a call from native code."""
        inputs = [self.in_memory(value).buffer for value in operands]
        self.end_group()
        outputs = self.output_buffers(eqn, goals)
        call = LibraryCall(eqn.primitive, eqn.params, inputs, outputs, eqn.effects)
        if self.nested:
            self.emit(call)
        else:
            self.steps.append(call)
        return [self.stored(buffer) for buffer in outputs]

    # -- memory -------------------------------------------------------------------------------------------
    def new_temp(self, shape, dtype) -> Buffer:
        buffer = Buffer(f"tmp{len(self.temps)}", tuple(shape), dtype, "temp" if squeeze(shape) else "scalar")
        self.temps.append(buffer)
        if self.equation is not None:
            self.origins[buffer] = self.equation
        self.features.add("temporary")
        return buffer

    def stored(self, buffer: Buffer) -> Stored:
        return Stored(buffer, self.read)

    def read(self, buffer: Buffer, index: tuple[Index, ...]) -> Expr:
        if self.group is not None:
            forwarded = self.group.read(buffer, index)
            if forwarded is not None:
                return forwarded
        return self.graph.load(buffer, linearize(index, buffer.shape))

    def in_memory(self, value: Value) -> Stored:
        return value if isinstance(value, Stored) else self.store_value(value, None)

    def store(self, value: Value) -> Value:
        return value if is_direct(value, self.tuning) else self.in_memory(value)

    def store_value(self, value: Value, goal: Buffer | None) -> Stored:
        """Puts a value into `goal` or a new temporary and returns it as read from there."""
        buffer = goal or self.new_temp(value.shape, value.dtype)
        for stage in self.choose("store"):
            value = stage.run(self, value, buffer)
        if isinstance(value, Running):
            self.end_group()
            self.emit(scan_kernel(self, value, buffer))
        elif isinstance(value, Regions):
            self.store_regions(value, buffer)
        elif isinstance(value, Reduction) and is_trivial(value):
            self.join_group(self.drop_trivial_axes(value), buffer)
        else:
            self.join_group(value, buffer)
        return self.stored(buffer)

    def drop_trivial_axes(self, value: Reduction) -> Value:
        if value.op in ("argmax", "argmin"):
            return self.fill(value.shape, self.constant(0, value.dtype))
        return self.reshape(value.operand, value.shape)

    def join_group(self, value: Value, buffer: Buffer) -> None:
        """Puts a value into the latest open group that takes it and runs after all that the value needs."""
        for group in reversed(self.groups):
            if self.try_group(group, value, buffer):
                return
            if group.precedes(value, buffer):
                break
        if len(self.groups) == self.tuning.max_open_groups:
            self.emit_group(self.groups.pop(0))
        if isinstance(value, (Reduction, Packed)):
            layout, kept = squeeze(value.operand.shape), kept_dimensions(value)
        else:
            layout = squeeze(value.shape)
            kept = tuple(range(len(layout)))
        self.groups.append(FusionGroup(self, layout, kept))
        if not self.try_group(self.groups[-1], value, buffer):
            raise AssertionError(f"{value!r} does not fit an empty fusion group")

    def try_group(self, group: FusionGroup, value: Value, buffer: Buffer) -> bool:
        self.graph.epoch += 1  # what is read from where differs from group to group
        self.group = group
        joined = group.try_add(value, buffer)
        self.group = None
        return joined

    def end_group(self) -> None:
        """Closes the open groups: what comes next reads and writes memory itself."""
        groups, self.groups = self.groups, []
        self.graph.epoch += 1
        for group in groups:
            self.emit_group(group)

    def emit_group(self, group: FusionGroup) -> None:
        self.graph.epoch += 1
        latest = self.latest_statements()
        if not any(stage.run(self, group, latest or []) for stage in self.choose("group")):
            for kernel in group.to_kernels():
                self.emit(kernel)

    def latest_statements(self) -> list | None:
        """The statements of native code to which the next one will be added; None where there are none."""
        if self.nested:
            return self.nested[-1]
        return self.steps[-1].body if self.steps and isinstance(self.steps[-1], Native) else None

    def emit(self, statement) -> None:
        latest = self.latest_statements()
        if latest is None:
            self.steps.append(Native([statement]))
        else:
            latest.append(statement)

    def store_regions(self, value: Regions, buffer: Buffer) -> None:
        regions, around = value.regions, None
        if any(piece.is_joined for piece in value.pieces):
            joined = join_on_write(self, value, buffer)
            if joined is not None:
                return self.join_group(joined, buffer)
            # from memory: their own loops are not split
            regions = [r.replace_value(self.in_memory(r.value)) if r.value.is_joined else r for r in regions]
        if value.base is not None and not is_in(value.base, buffer):
            if not value.base.is_joined and len(regions) == 1 and regions[0].value.ndim == value.ndim:
                self.end_group()
                around = copy_around(self, value.base, regions[0])
            if around is None:
                self.join_group(value.base, buffer)
            else:
                regions = [*around, *regions]
        self.end_group()
        regions = [settle_region(self, region, buffer) for region in regions]
        kernels = regions_kernels(self, value, regions, buffer)
        for kernel in join_kernels(self.graph, kernels) if around else kernels:
            self.emit(kernel)

    # -- control flow ---------------------------------------------------------------------------------------
    def nest(self, lower: Callable[[], None]) -> list:
        """The statements that `lower` emits, kept apart."""
        self.end_group()
        self.nested.append([])
        lower()
        self.end_group()
        return self.nested.pop()

    def carry_buffers(self, values: Sequence[Value], goals: Sequence[Buffer | None]) -> list[Stored]:
        """A buffer of its own for each initial value of a loop, with the value stored in it."""
        spare, stored = self.spare, []
        for value, goal in zip(values, goals):
            if isinstance(value, Stored) and (value.buffer is goal or goal is None and value.buffer in spare):
                stored.append(value)
            else:
                stored.append(self.store_value(value, goal or self.new_temp(value.shape, value.dtype)))
        self.end_group()
        return stored

    def run_body(self, closed: ClosedJaxpr, operands: Sequence[Value], outputs: Sequence[Buffer | None],
                 uses: Uses | None = None) -> None:
        if closed.consts:
            raise AssertionError("inner jaxprs carry no constants")
        uses = uses or self.find_uses(closed.jaxpr, True)
        self.lower_jaxpr(closed.jaxpr, dict(zip(closed.jaxpr.invars, operands)), outputs, uses=uses)

    def advance(self, closed: ClosedJaxpr, operands, carry: list[Stored], extra: Sequence[Buffer] = (),
                running: Stored | None = None) -> list[tuple[Buffer, Buffer]]:
        """Runs a loop body and moves what it returns into the carry, all of it after all of it is computed.

        What the body hands on unchanged stays where it is. running: bools, one for each member of the leading
        dimensions; the carry of the others stays as it is. Returns: arrays that are not moved, pairs of the
        carry's buffer and the one that holds its next value, whose memory is to change places."""
        slot_of = {var: operand for var, operand in zip(closed.jaxpr.invars, operands)}
        uses = self.find_uses(closed.jaxpr, running is None)
        outputs, moves, swaps = [], [], []
        for atom, slot in zip(closed.jaxpr.outvars, carry):
            if slot_of.get(atom) is slot:
                outputs.append(None)
            elif running is None and slot_of.get(uses.origin(atom)) is slot:  # updated in place
                outputs.append(slot.buffer)
            else:
                outputs.append(self.new_temp(slot.shape, slot.dtype))
                new = self.stored(outputs[-1])
                if running is not None:
                    moves.append((self.keep_ended(running, new, slot), slot.buffer))
                elif outputs[-1].kind == "scalar":
                    moves.append((new, slot.buffer))
                else:
                    swaps.append((slot.buffer, outputs[-1]))
        self.run_body(closed, operands, [*outputs, *extra], uses)
        self.end_group()
        for value, buffer in moves:
            self.join_group(value, buffer)
        self.end_group()
        return swaps

    def loop_per_element(self, kind: str, loop: tuple, init, goals, predicate_shape: tuple,
                      *streams) -> list[Value] | None:
        """The carry after a loop done in registers by one kernel; None where its body does not allow it."""
        self.end_group()
        body, consts = loop[2:] if kind == "while_loop" else (loop[0], loop[3])
        jaxpr, batch = body.jaxpr, choose_batch(init, predicate_shape, self.tuning)
        if not predicate_shape and (is_scalar_code(jaxpr) or fills_ranges(jaxpr, consts, self.is_call)):
            return None
        can_inline = lambda eqn: id(eqn) not in self.routines and self.is_native(eqn)  # noqa: E731
        builder = ElementBuilder(self.graph, batch, can_inline, self.tuning)
        outputs = [goal or self.new_temp(value.shape, value.dtype) for value, goal in zip(init, goals)]
        try:
            results = getattr(builder, kind)(*loop, init, *streams)
            self.emit(finish_kernel(self, builder, results, outputs))
        except NotElementwiseError:
            return None
        return list(map(self.stored, outputs))

    def while_loop(self, cond_jaxpr, cond_consts, body_jaxpr, body_consts, init) -> list[Value]:
        goals = self.goals
        cond_consts, body_consts = list(map(self.in_loop, cond_consts)), list(map(self.in_loop, body_consts))
        loop = (cond_jaxpr, cond_consts, body_jaxpr, body_consts)
        in_registers = self.loop_per_element("while_loop", loop, init, goals, cond_jaxpr.out_avals[0].shape)
        if in_registers is not None:
            return in_registers
        carry = self.carry_buffers(init, goals)
        predicate, running = self.new_temp((), dtypes.bool_), None
        if cond_jaxpr.out_avals[0].shape:
            running = self.stored(self.new_temp(cond_jaxpr.out_avals[0].shape, dtypes.bool_))

        def test():
            target = predicate if running is None else running.buffer
            self.run_body(cond_jaxpr, [*cond_consts, *carry], [target])
            if running is not None:
                self.store_value(self.reduce("or", running, range(running.ndim)), predicate)

        cond = self.nest(test)
        operands, swaps = [*body_consts, *carry], []
        body = self.nest(lambda: swaps.extend(self.advance(body_jaxpr, operands, carry, running=running)))
        self.emit(While(cond, predicate, body, swaps))
        return carry

    def keep_ended(self, running: Stored, new: Value, old: Value) -> Value:
        """`new` in the members that run, `old` in those that ended; members are the leading dimensions."""
        mask = self.view(running, new.shape, lambda index: index[: running.ndim])
        return self.select(mask, old, new)

    def scan(self, jaxpr, length, reverse: bool, consts, init, xs) -> list[Value]:
        """A counted loop: element i of xs is read in place, element i of each ys stored in place."""
        goals = self.goals
        consts, xs = list(map(self.in_loop, consts)), list(map(self.in_loop, xs))
        out_avals = jaxpr.out_avals[len(init) :]
        stacks = [
            goal or self.new_temp((length, *aval.shape), aval.dtype)
            for aval, goal in zip(out_avals, goals[len(init) :])
        ]
        loop = (jaxpr, length, reverse, consts)
        in_registers = self.loop_per_element("scan", loop, init, goals, (), xs, stacks)
        if in_registers is not None:
            return [*in_registers, *map(self.stored, stacks)]
        counter, *carry = self.carry_buffers([self.constant(0, dtypes.int64), *init], [None, *goals])
        predicate = self.new_temp((), dtypes.bool_)

        def test():
            limit = self.pointwise([counter], dtypes.bool_, lambda i: self.graph.op(
                "lt", i, self.graph.index(Index((), length)), dtype=dtypes.bool_))
            self.store_value(limit, predicate)

        def step():
            def position():
                at = self.raw_index(counter.at(()))
                return (at * -1 + length) + -1 if reverse else at

            rows = [self.view(x, x.shape[1:], lambda index: (position(), *index), [counter]) for x in xs]
            rows_out = [self.new_temp(aval.shape, aval.dtype) for aval in out_avals]
            swaps.extend(self.advance(jaxpr, [*consts, *carry, *rows], carry, rows_out))
            if stacks:
                store_rows(self, self.nested[-1], list(map(self.stored, rows_out)), stacks, position)
            one = self.constant(1, dtypes.int64)
            self.join_group(self.map("add", counter, one), counter.buffer)

        swaps: list[tuple[Buffer, Buffer]] = []
        cond, body = self.nest(test), self.nest(step)
        self.emit(While(cond, predicate, body, swaps))
        return [*carry, *map(self.stored, stacks)]

    def switch(self, selector: Value, branches: Sequence[ClosedJaxpr],
               operands: Sequence[Value]) -> list[Value]:
        """Runs one branch; `selector` is an int32 or bool scalar, clamped to the branches."""
        goals, operands = self.goals, list(map(self.in_loop, operands))
        outputs = [goal if any(is_in(operand, goal) for operand in operands) else self.new_temp(
            aval.shape, aval.dtype) for aval, goal in zip(branches[0].out_avals, goals)]
        which = self.convert(selector, dtypes.int32)
        which = self.map("min", self.map("max", which, self.constant(0, dtypes.int32)),
                         self.constant(len(branches) - 1, dtypes.int32))
        chosen = self.store_value(which, self.new_temp((), dtypes.int32))
        self.end_group()
        bodies = [self.nest(lambda b=b: self.run_body(b, operands, outputs)) for b in branches]
        self.emit(Switch(chosen.buffer, bodies))
        return list(map(self.stored, outputs))

    def in_loop(self, value: Value) -> Value:
        """An operand of control flow: in memory, unless its elements are known by their positions."""
        return value if not value.buffers and is_direct(value, self.tuning) else self.in_memory(value)
