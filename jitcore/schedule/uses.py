"""How each value of a jaxpr is used: what decides whether it is stored or recomputed where it is read."""

from __future__ import annotations

import math

from jitcore.core.jaxpr import Jaxpr, Literal, Var

# A value dearer than this (in multiply-adds) is stored when loops of several kinds read it.
RECOMPUTE_LIMIT = 32
# A value dearer than this is stored when a broadcast would recompute it for each outer iteration.
BROADCAST_LIMIT = 8

_TRANSPARENT = ("reshape", "squeeze", "expand_dims", "copy", "copy_p", "stop_gradient")


class Uses:
    """Consumers of each variable of one jaxpr (not of those inside its control flow).

    is_call: whether an equation reads its operands from memory, whole."""

    def __init__(self, jaxpr: Jaxpr, is_call):
        self.kinds: dict[Var, set] = {}
        self.forced: set[Var] = set()
        self.recomputed: set[Var] = set()
        self.outputs = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
        self.inputs = {*jaxpr.constvars, *jaxpr.invars}
        self.last: dict[Var, int] = {}  # number of the last equation that reads a variable
        for number, eqn in enumerate(jaxpr.eqns):
            force = is_call(eqn)
            for position, atom in enumerate(eqn.invars):
                if isinstance(atom, Literal):
                    continue
                kind = _kind_of(eqn, number, position)
                self.kinds.setdefault(atom, set()).add(kind)
                self.last[atom] = number
                if force or kind[0] == "stored":
                    self.forced.add(atom)
                if eqn.primitive.name == "broadcast_in_dim" and _repeats_work(atom, eqn):
                    self.recomputed.add(atom)
        self.last |= dict.fromkeys(self.outputs, len(jaxpr.eqns))
        self._covering: set[Var] = set()  # results of updates of most of an array
        self.updated = self._find_updates(jaxpr)

    def _find_updates(self, jaxpr: Jaxpr) -> dict[Var, Var]:
        """Result -> operand of each update (`x.at[i].set(v)`) that is the last to read its operand."""
        found = {}
        for number, eqn in enumerate(jaxpr.eqns):
            if eqn.primitive.traits.get("updates_operand"):
                operand, *others = eqn.invars
                if self.last.get(operand) == number and operand not in others and not _is_rebuilt(
                        jaxpr, number):  # fmt: skip
                    found[eqn.outvars[0]] = operand
                    if eqn.primitive.name == "dynamic_update_slice" and covers_most(
                            operand.aval.shape, others[0].aval.shape):  # fmt: skip
                        self._covering.add(eqn.outvars[0])
        return found

    def list_updates(self) -> list[Var]:
        """Results that are worth a buffer for themselves and what they are updates of: of a small part, and
        not updated in turn. A window that covers most of its operand is written together with the rest."""
        operands = set(self.updated.values())
        return [var for var in self.updated if var not in operands and var not in self._covering]

    def origin(self, var) -> Var:
        """Where a chain of updates that ends in var began; var itself when it is no update."""
        while var in self.updated:
            var = self.updated[var]
        return var

    def is_read_from(self, var: Var, number: int) -> bool:
        """Whether equation `number` or a later one, or the end, reads the variable."""
        return self.last.get(var, -1) >= number

    def needs_store(self, var: Var, work: int) -> bool:
        """Whether a computed value of this inline cost has to be in memory."""
        if var in self.outputs or var in self.forced:
            return True
        if work > BROADCAST_LIMIT and var in self.recomputed:
            return True
        return work > RECOMPUTE_LIMIT and len(self.kinds.get(var, ())) > 1


def _kind_of(eqn, number: int, position: int) -> tuple:
    """How an equation reads one of its operands. Equal kinds can share one evaluation of each element."""
    name, traits = eqn.primitive.name, eqn.primitive.traits
    if traits.get("family") == "elementwise" or name in _TRANSPARENT:
        return ("pointwise",)
    if position in traits.get("stored_operands", ()) or name in ("while", "scan", "cond"):
        return ("stored", number)
    reads_once = traits.get("reads_once")
    if reads_once is not None and position in reads_once(**eqn.params):
        return ("pointwise",)
    return (name, number)


def _repeats_work(atom: Var, eqn) -> bool:
    """Whether the broadcast adds an axis outside of one of the operand's own (not hoistable)."""
    dims = eqn.params["broadcast_dimensions"]
    own = [d for d, n in zip(dims, atom.aval.shape) if not (isinstance(n, int) and n == 1)]
    if not own:
        return False
    shape = eqn.params["shape"]
    return any(d not in own and not (isinstance(shape[d], int) and shape[d] == 1) for d in range(max(own)))


def _is_rebuilt(jaxpr: Jaxpr, number: int) -> bool:
    """Whether an update replaces most of its operand by what is computed from the operand itself.

    In place, all of the new values would have to be kept until the old ones are no longer needed; a new array
    of the window and what is around it is written in one pass."""
    eqn = jaxpr.eqns[number]
    if eqn.primitive.name != "dynamic_update_slice":
        return False
    operand, update = eqn.invars[:2]
    if isinstance(update, Literal) or not covers_most(operand.aval.shape, update.aval.shape):
        return False
    derived = {operand}
    for earlier in jaxpr.eqns[:number]:
        if not derived.isdisjoint(atom for atom in earlier.invars if isinstance(atom, Var)):
            derived.update(earlier.outvars)
    return update in derived


def covers_most(extents: tuple, sizes: tuple) -> bool:
    """Whether a window is at least half of an array; taken for granted where sizes are not known."""
    total, part = math.prod(extents), math.prod(sizes)
    return not (isinstance(total, int) and isinstance(part, int)) or 2 * part >= total
