"""How each value of a jaxpr is used: what decides whether it is stored or recomputed where it is read."""

from __future__ import annotations

from jitcore.core.jaxpr import Jaxpr, Literal, Var

# A value dearer than this (in multiply-adds) is stored when loops of several kinds read it.
RECOMPUTE_LIMIT = 32
# A value dearer than this is stored when a broadcast would recompute it for each outer iteration.
BROADCAST_LIMIT = 8

_TRANSPARENT = ("reshape", "squeeze", "expand_dims", "copy", "copy_p", "stop_gradient")


class Uses:
    """Consumers of each variable of one jaxpr (not of those inside its control flow)."""

    def __init__(self, jaxpr: Jaxpr, is_library):
        self.kinds: dict[Var, set] = {}
        self.forced: set[Var] = set()
        self.recomputed: set[Var] = set()
        self.outputs = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
        for number, eqn in enumerate(jaxpr.eqns):
            kind = _kind_of(eqn, number)
            force = kind[0] == "stored" or is_library(eqn)
            for atom in eqn.invars:
                if isinstance(atom, Literal):
                    continue
                self.kinds.setdefault(atom, set()).add(kind)
                if force:
                    self.forced.add(atom)
                if eqn.primitive.name == "broadcast_in_dim" and _repeats_work(atom, eqn):
                    self.recomputed.add(atom)

    def needs_store(self, var: Var, work: int) -> bool:
        """Whether a computed value of this inline cost has to be in memory."""
        if var in self.outputs or var in self.forced:
            return True
        if work > BROADCAST_LIMIT and var in self.recomputed:
            return True
        return work > RECOMPUTE_LIMIT and len(self.kinds.get(var, ())) > 1


def _kind_of(eqn, number: int) -> tuple:
    name = eqn.primitive.name
    if eqn.primitive.traits.get("family") == "elementwise" or name in _TRANSPARENT:
        return ("pointwise",)
    if eqn.primitive.traits.get("stores_operands") or name in ("while", "scan", "cond"):
        return ("stored", number)
    return (name, number)


def _repeats_work(atom: Var, eqn) -> bool:
    """Whether the broadcast adds an axis outside of one of the operand's own (not hoistable)."""
    dims = eqn.params["broadcast_dimensions"]
    own = [d for d, n in zip(dims, atom.aval.shape) if not (isinstance(n, int) and n == 1)]
    if not own:
        return False
    shape = eqn.params["shape"]
    return any(d not in own and not (isinstance(shape[d], int) and shape[d] == 1) for d in range(max(own)))
