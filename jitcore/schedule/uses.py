"""How each value of a jaxpr is used: what decides whether it is stored or recomputed where it is read."""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict

from jitcore import dtypes
from jitcore.core.jaxpr import Jaxpr, Literal, Var, find_dependent
from jitcore.lax.indexing.windows import find_window, is_part
from jitcore.loopir.builder import is_few
from jitcore.loopir.expr import Axis, Dynamic
from jitcore.loopir.values import Computed, Scalar, Value, any_index, is_scalar
from jitcore.schedule.aliasing import find_replaced, list_handed_on
from jitcore.schedule.tuning import Tuning

_POINTWISE = ("pointwise",)


class Uses:
    """Consumers of each variable of one jaxpr (not of those inside its control flow).

    is_call: whether an equation reads its operands from memory, whole. in_place: whether results may take the
    memory of inputs. inner: uses that are known of jaxprs inside of control flow, with in_place."""

    def __init__(self, jaxpr: Jaxpr, is_call, tuning: Tuning, in_place: bool, inner: dict[Jaxpr, Uses]):
        self.tuning = tuning
        self.kinds: dict[Var, set] = defaultdict(set)
        self.little: dict[Var, set] = defaultdict(set)  # of the kinds, those that read a small part
        self.forced: set[Var] = set()
        self.parts: set[Var] = set()  # of arrays that are about to change
        self.recomputed: dict[Var, int] = {}  # for how many outer iterations of a broadcast
        self.spread: set[Var] = set()  # read otherwise than as columns of indices
        self.folded: dict[Var, int] = {}  # few elements that become one number -> how many
        self.masks = {eqn.outvars[0]: eqn.variables for eqn in jaxpr.eqns  # two bools together -> these
                      if eqn.primitive.name == "and" and eqn.outvars[0].aval.dtype == dtypes.bool_}
        self.readers = Counter(var for eqn in jaxpr.eqns for var in eqn.variables)  # how many operands it is
        self.outputs = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
        self.inputs = {*jaxpr.constvars, *jaxpr.invars}
        self.last: dict[Var, int] = {}  # number of the last equation that reads a variable
        passes = _Passes(jaxpr, is_call)
        for number, eqn in enumerate(jaxpr.eqns):
            force = is_call(eqn)
            for position, atom in enumerate(eqn.invars):
                if isinstance(atom, Literal):
                    continue
                kind = _kind_of(eqn, number, position)
                if kind == _POINTWISE:
                    kind = passes.kind_of(atom, eqn)
                self.kinds[atom].add(kind)
                if _reads_little(eqn, atom, tuning.part):
                    self.little[atom].add(kind)
                self.last[atom] = number
                if not _is_index(eqn, position):
                    self.spread.add(atom)
                if _folds(eqn):
                    self.folded[atom] = math.prod(atom.aval.shape)
                if force or kind[0] == "stored":
                    self.forced.add(atom)
                if eqn.primitive.name == "broadcast_in_dim":
                    self.recomputed[atom] = max(_count_outer(atom, eqn), self.recomputed.get(atom, 1))
        self.last |= dict.fromkeys(self.outputs, len(jaxpr.eqns))
        self.sweeps = self._find_sweeps(jaxpr)
        self.row_values = self._find_row_values(jaxpr)
        self._covering: set[Var] = set()  # results of updates of most of an array
        self._scattered = self._find_scattered(jaxpr)
        self.replaced: dict[Var, Var] = {}  # as `updated`, of other equations
        self.updated = self._find_updates(jaxpr)
        self._find_replaced(jaxpr, is_call, in_place, inner)

    def _find_sweeps(self, jaxpr: Jaxpr) -> dict[Var, set]:
        """By variable, the kinds of loops that read it, or what is computed from it where it is read. Updates
        in order and packed elements have loops of their own."""
        found: dict[Var, set] = defaultdict(set)
        for number, eqn in reversed(list(enumerate(jaxpr.eqns))):
            is_kept = any(map(self.is_kept, eqn.outvars))
            later = {_POINTWISE} if is_kept else set().union(*(found.get(var, ()) for var in eqn.outvars))
            own = _list_own_sweeps(eqn, number)
            for position, atom in enumerate(eqn.invars):
                if isinstance(atom, Var):
                    is_passed_on = own is None or eqn.primitive.name == "gather" and _is_index(eqn, position)
                    found[atom].update(later if is_passed_on else own)
        return found

    def _find_row_values(self, jaxpr: Jaxpr) -> set[Var]:
        """What a sweep down many columns needs once for each row, and so would compute in scalar code."""
        # axes of the reductions of a variable, or of what is computed from it
        reduced: dict[Var, set] = defaultdict(set)
        found: set[Var] = set()
        for eqn in reversed([eqn for eqn in jaxpr.eqns if len(eqn.outvars) == 1]):
            family, out = eqn.primitive.traits.get("family"), eqn.outvars[0]
            operands = eqn.variables
            if eqn.primitive.name == "broadcast_in_dim" and operands:
                rows = frozenset(eqn.params["broadcast_dimensions"])
                columns = frozenset(range(len(out.aval.shape))) - rows
                is_inner = bool(rows and columns) and max(rows) < min(columns)
                is_down = any(rows <= axes and not columns <= axes for axes in reduced.get(out, ()))
                if is_inner and is_down and not is_few([out.aval.shape[d] for d in columns]):
                    found.add(operands[0])
            elif family == "reduction" and operands:
                reduced[operands[0]].add(frozenset(eqn.params["axes"]))
            elif family == "elementwise":
                for atom in operands:
                    if atom.aval.shape == out.aval.shape:
                        reduced[atom] |= reduced.get(out, set())
        return found

    def list_conjuncts(self, var: Var) -> list[Var]:
        """Bools that all hold where a mask does, which is not one of them."""
        found: list[Var] = []
        for part in self.masks.get(var, ()):
            found += self.list_conjuncts(part) if part in self.masks else [part]
        return found

    def reads_columns(self, var: Var) -> bool:
        """Whether an array is read as the indices of gathers and scatters only, of elements one by one."""
        return not self.is_kept(var) and var not in self.spread

    def _find_updates(self, jaxpr: Jaxpr) -> dict[Var, Var]:
        """Result -> operand of each update (`x.at[i].set(v)`) that is the last to read its operand, but for
        those that are joined with it where they are read."""
        found: dict[Var, Var] = {}
        computed: set[Var] = set()  # where each is read
        for number, eqn in enumerate(jaxpr.eqns):
            if eqn.primitive.traits.get("updates_operand"):
                operand, *others = eqn.invars
                is_joined = operand in computed and self.can_join(eqn.outvars[0]) and _sets_edge(eqn)
                if self.last.get(operand) == number and operand not in others and not is_joined and (
                        not _is_rebuilt(jaxpr, number)):
                    found[eqn.outvars[0]] = operand
                    window = find_window(eqn)
                    if window is not None and window.covers_most:
                        self._covering.add(eqn.outvars[0])
            if _walks(eqn) and eqn.outvars[0] not in found:
                computed.update(var for var in eqn.outvars if not self.is_kept(var))
        return found

    def _find_scattered(self, jaxpr: Jaxpr) -> set[Var]:
        """What is read, from this or what is computed of it, otherwise than by loops of stores that walk
        through it."""
        found: set[Var] = set()
        for eqn in reversed(jaxpr.eqns):
            if not _walks(eqn) or any(var in found and not self.is_kept(var) for var in eqn.outvars):
                found.update(eqn.variables)
        return found

    def is_kept(self, var: Var) -> bool:
        """Whether a variable is in memory, whatever it costs to compute."""
        return var in self.outputs or var in self.forced or var in self.parts

    def _count_repeats(self, var: Var) -> int:
        """How often most elements are evaluated again after the first time, unless they are stored."""
        return max(len(self.kinds.get(var, ())) - len(self.little.get(var, ())) - 1, 0)

    def can_join(self, var: Var, work: int = 0) -> bool:
        """Whether an array that is made of others, at this inline cost, may be joined where it is read."""
        again = self._count_repeats(var)
        is_cheap = again * work <= self.tuning.broadcast_limit
        return not self.is_kept(var) and var not in self._scattered and is_cheap

    def _find_replaced(self, jaxpr: Jaxpr, is_call, in_place: bool, inner: dict[Jaxpr, Uses]) -> None:
        """Result -> operand of each loop's carry, of what branches hand on, and of each choice between an
        input and something else, where nothing reads the operand later."""

        def find_origin(branch: Jaxpr, atom):
            return find_inner_uses(branch, is_call, self.tuning, inner).origin(atom)

        found = self.replaced
        for number, eqn in enumerate(jaxpr.eqns):
            has_jaxprs = eqn.primitive.traits.get("control_flow")
            for result, operand in list_handed_on(eqn, find_origin) if has_jaxprs else ():
                if self.last.get(operand) == number and eqn.invars.count(operand) == 1:
                    found[result] = operand
            if in_place and eqn.primitive.name == "select_n" and len(eqn.invars) == 3:
                cases = [case for case in eqn.invars[1:] if self.last.get(case) == number
                         and eqn.invars.count(case) == 1 and self.origin(case) in self.inputs]
                choice = find_replaced(jaxpr, number, cases, is_call)
                if choice is not None:
                    found[eqn.outvars[0]] = choice[0]
                    self.parts |= choice[1]

    def replaced_by(self, var: Var) -> Var | None:
        """The operand whose memory a result takes, or None."""
        return self.updated.get(var) or self.replaced.get(var)

    def list_replaced(self, eqn) -> list[tuple[Var, Var]]:
        """(result, operand) of what an equation does in memory of an operand, if that is where it goes."""
        if eqn.primitive.traits.get("updates_operand"):
            return [(eqn.outvars[0], eqn.invars[0])]
        return [(result, self.replaced[result]) for result in eqn.outvars if result in self.replaced]

    def list_updates(self) -> list[Var]:
        """Results that are worth a buffer for themselves and what they are updates of: of a small part, and
        not updated in turn. A window that covers most of its operand is written together with the rest."""
        operands = set(self.updated.values())
        return [var for var in self.updated if var not in operands and var not in self._covering]

    def origin(self, var) -> Var:
        """Where a chain of updates that ends in var began; var itself when it is no update."""
        while self.replaced_by(var) is not None:
            var = self.replaced_by(var)
        return var

    def is_read_from(self, var: Var, number: int) -> bool:
        """Whether equation `number` or a later one, or the end, reads the variable."""
        return self.last.get(var, -1) >= number

    def needs_store(self, var: Var, value: Value) -> bool:
        """Whether a computed value has to be in memory."""
        if var not in self.outputs and is_direct(value, self.tuning):
            return var in self.parts
        work, tuning = value.work, self.tuning
        if self.is_kept(var):
            return True
        times = self.recomputed.get(var, 1)
        is_often = times >= tuning.often and value.dtype != dtypes.bool_
        if times > 1 and work > (tuning.repeated_limit if is_often else tuning.broadcast_limit):
            return True
        if work > tuning.broadcast_limit and var in self.row_values:
            return True
        repeated = value.choices * self._count_repeats(var)
        if value.choices > tuning.max_choices or repeated > tuning.max_repeated_choices:
            return True
        if work > tuning.broadcast_limit and self.readers[var] > 1 and self._has_ordered_sweeps(var):
            return True
        if work * self.folded.get(var, 0) > tuning.recompute_limit:
            return True
        return work * (len(self.kinds.get(var, ())) - 1) > tuning.recompute_limit

    def _has_ordered_sweeps(self, var: Var) -> bool:
        """Whether several loops, which cannot be one, need a variable."""
        sweeps = self.sweeps.get(var, ())
        return len(sweeps) > 1 and any(kind[0] == "in order" for kind in sweeps)


def is_direct(value: Value, tuning: Tuning) -> bool:
    """Whether an element takes no longer to compute than to read from memory: of a scalar, of what depends on
    its position only, and of a window of an array."""
    if not isinstance(value, Computed) or value.work > tuning.max_window_work:
        return isinstance(value, Scalar)
    if is_scalar(value.shape) or not value.buffers:
        return value.work <= tuning.max_direct_work
    element = value.at(any_index(value.shape))
    return element.op == "load" and all(
        isinstance(atom, Axis) or isinstance(atom, Dynamic) and not atom.expr.axes
        for atom, _ in element.attr[1].terms)


def find_inner_uses(jaxpr: Jaxpr, is_call, tuning: Tuning, known: dict[Jaxpr, Uses]) -> Uses:
    """Those of a jaxpr inside of control flow, whose results may take the memory of its inputs; made once."""
    if jaxpr not in known:
        known[jaxpr] = Uses(jaxpr, is_call, tuning, True, known)
    return known[jaxpr]


class _Passes:
    """Which readers of a variable have to wait for totals of it: `y * (1 + y.sum())` goes through y twice,
    and so does what is computed from it on the way.

    Sets of equations that make such totals are ints with a bit for each."""

    def __init__(self, jaxpr: Jaxpr, is_call):
        self._before: dict[Var, int] = {}  # those that a variable is made of
        self._behind: dict[Var, int] = {}  # those that are made of a variable
        self._depth: dict[Var, int] = {}  # how many of them, one after the other, a variable needs
        totals: dict[int, int] = {}
        for eqn in jaxpr.eqns:
            operands = eqn.variables
            before, depth = 0, 0
            for atom in operands:
                before |= self._before.get(atom, 0)
                depth = max(depth, self._depth.get(atom, 0))
            if eqn.primitive.traits.get("family") == "reduction" or is_call(eqn):
                totals[id(eqn)] = 1 << len(totals)
                before, depth = before | totals[id(eqn)], depth + 1
            if before:
                self._before |= dict.fromkeys(eqn.outvars, before)
                self._depth |= dict.fromkeys(eqn.outvars, depth)
        for eqn in reversed(jaxpr.eqns) if totals else ():
            behind = totals.get(id(eqn), 0)
            for var in eqn.outvars:
                behind |= self._behind.get(var, 0)
            if behind:
                for atom in eqn.variables:
                    self._behind[atom] = self._behind.get(atom, 0) | behind

    def kind_of(self, operand: Var, eqn) -> tuple:
        """How an equation reads an operand, whose elements it takes one by one."""
        out = eqn.outvars[0]
        waits = self._before.get(out, 0) & self._behind.get(operand, 0)
        return ("pointwise", self._depth[out]) if waits else _POINTWISE


def _reads_little(eqn, operand: Var, part: int) -> bool:
    """Whether an equation reads so little of an array that computing this much again costs nothing."""
    return eqn.primitive.name == "slice" and is_part(eqn.outvars[0].aval.shape, operand.aval.shape, part)


def _folds(eqn) -> bool:
    """Whether an equation makes one number of few elements: in scalar code, so each costs as much as a vector
    of them does where they are stored."""
    is_reduction = eqn.primitive.traits.get("family") == "reduction" and eqn.outvars[0].aval.shape == ()
    return is_reduction and is_few(eqn.invars[0].aval.shape)


def _walks(eqn) -> bool:
    """Whether an equation reads its operands in the order of its result, or places them whole: there arrays
    can be joined."""
    traits = eqn.primitive.traits
    if traits.get("keeps_order"):
        shapes = ([n for n in atom.aval.shape if not (isinstance(n, int) and n == 1)]
                  for atom in (eqn.invars[0], eqn.outvars[0]))
        return operator.eq(*shapes)
    return traits.get("walks") or traits.get("family") == "elementwise"


def _list_own_sweeps(eqn, number: int) -> set[tuple] | None:
    """The kinds of loops in which an equation itself reads operands; None where those of its results do."""
    if _walks(eqn):
        return None
    if eqn.primitive.name == "compress":
        return {("in order", eqn.invars[1])}
    if eqn.primitive.traits.get("family") == "scatter":
        return {("in order", number)}
    return {(eqn.primitive.name,)}


def _sets_edge(eqn) -> bool:
    """Whether an update is of a window at a known place, with all of a dimension or near an end of it."""
    window = find_window(eqn) if eqn.primitive.traits.get("updates_operand") else None
    return window is not None and window.leaves_edges


def _kind_of(eqn, number: int, position: int) -> tuple:
    """How an equation reads one of its operands. Equal kinds can share one evaluation of each element."""
    name, traits = eqn.primitive.name, eqn.primitive.traits
    if traits.get("family") == "elementwise" or traits.get("keeps_order"):
        return _POINTWISE
    if traits.get("control_flow") or position in traits.get("stored_operands", ()) and not _sets_edge(eqn):
        return ("stored", number)
    reads_once = traits.get("reads_once")
    if reads_once is not None and position in reads_once(**eqn.params):
        return _POINTWISE
    return (name, number)


def _is_index(eqn, position: int) -> bool:
    """Whether an operand is the indices of a gather or scatter of elements, which reads each of them once."""
    if position != 1 or eqn.primitive.name != "gather" and eqn.primitive.traits.get("family") != "scatter":
        return False
    return position in eqn.primitive.traits["reads_once"](**eqn.params)


def _count_outer(atom: Var, eqn) -> int:
    """How many iterations a broadcast adds outside of the operand's own axes, so that what these need is not
    computed before them; of unknown extents, few."""
    dims = eqn.params["broadcast_dimensions"]
    own = [d for d, n in zip(dims, atom.aval.shape) if not (isinstance(n, int) and n == 1)]
    shape = eqn.params["shape"][: max(own, default=0)]
    return math.prod(n if isinstance(n, int) else 2 for d, n in enumerate(shape) if d not in own)


def _is_rebuilt(jaxpr: Jaxpr, number: int) -> bool:
    """Whether an update replaces most of its operand by what is computed from the operand itself.

    In place, all of the new values would have to be kept until the old ones are no longer needed; a new array
    of the window and what is around it is written in one pass."""
    window = find_window(jaxpr.eqns[number])
    if window is None or not window.covers_most:
        return False
    operand, update = jaxpr.eqns[number].invars[:2]
    return update in find_dependent(jaxpr.eqns[:number], [operand])
