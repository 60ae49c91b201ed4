"""The errors about tracers that outlived their trace.

In: facts as plain strings. Out: an exception instance for the caller to raise, laid out by the eight-line
rule of `errors`, which holds the classes and is the only import. The first line is JAX's.
"""

from __future__ import annotations

from jitcore.errors import LeakedTracerError, Lines, Origin, UnexpectedTracerError, build_error


def leaked_tracer_error(aval_text: str, origin: Origin | None = None, where: Lines = (), *,
                        while_tracing: bool = False) -> Exception:
    """A tracer was used after its trace had ended. origin: of that trace; where: the line that made it.

    while_tracing: the leak was found when the trace ended, the tracer has not been used."""
    detail = ""
    if origin is not None:
        made = ". The value was made here:" if where else "."
        detail = (
            f"The function being traced when the value leaked was {origin.function} "
            f"traced for {origin.transform}{made}")
    fix = "return the value instead of storing it"
    if while_tracing:
        headline = f"Leaked trace. Leaked tracer with type {aval_text}."
        return build_error(LeakedTracerError, headline, detail=detail, where=where, fix=f"{fix}.")
    headline = (
        "Encountered an unexpected tracer. A traced function had a side effect, allowing for a reference to "
        f"an intermediate value with type {aval_text} to escape the scope of the transformation.")
    fix = f"{fix}; with jitcore.checking_leaks() the leak itself raises."
    return build_error(UnexpectedTracerError, headline, detail=detail, where=where, fix=fix)
