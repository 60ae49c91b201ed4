"""What TPUs cannot do, said before anything is compiled.

In: a jaxpr and the names of its inputs. Out: an error that names the argument or the user's line, or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitcore import dtypes
from jitcore.backends.xla.equations import needs_host
from jitcore.core.jaxpr import ClosedJaxpr, list_equations
from jitcore.core.source import format_snippet, summarize_source
from jitcore.errors import arguments as argument_errors

#: Types without arithmetic on TPUs. int64 has some: XLA makes it of pairs of 32 bits.
_DOUBLE = (dtypes.float64, dtypes.complex128)


def check_tpu(closed_jaxpr: ClosedJaxpr, arguments: Sequence[str]) -> None:
    """Raises: TypeError for double precision; NotImplementedError for an equation that runs on the host."""
    for name, aval in zip(arguments, closed_jaxpr.in_avals):
        if aval.dtype in _DOUBLE:
            what = f"argument {name!r}" if name else "a captured array"
            raise argument_errors.double_precision_error(aval.dtype.name, f"{what} is {aval.long()}")
    for eqn in list_equations(closed_jaxpr.jaxpr):
        wide = next((var.aval for var in eqn.outvars if var.aval.dtype in _DOUBLE), None)
        if wide is not None:
            raise argument_errors.double_precision_error(
                wide.dtype.name, f"{eqn.primitive} gives {wide.long()}", format_snippet(eqn.source_info))
        if needs_host(eqn, "tpu"):
            where = summarize_source(eqn.source_info)
            raise NotImplementedError(
                f"{eqn.primitive} runs on the host, which a TPU program cannot call"
                f"{f' ({where})' if where else ''}: use backend='cpu' or backend='xla' for this function.")
