"""What differs from JAX on purpose: docs/conformance.md explains the kinds.

In: the rows of `REASONS`. Out: `find_reason`, which knows the row of a difference. A row that no call of one of its
functions needs any more fails the test of that function; one of all functions, the test of rows.
"""

from __future__ import annotations

import dataclasses
import re

from tests.differential.reasons import COMPILED, ROWS


@dataclasses.dataclass(frozen=True)
class Reason:
    """Attributes:
        functions: with their namespaces, such as "numpy.sort"; "*" for all. kind: of differences. text: a regular
            expression that is found in "call: what differs". why: for readers."""

    functions: tuple[str, ...]
    kind: str
    text: str
    why: str

    def holds(self, function: str, kind: str, text: str) -> bool:
        is_named = self.functions == ("*",) or function in self.functions
        return is_named and kind == self.kind and re.search(self.text, text) is not None


REASONS, COMPILED_REASONS = ([Reason(tuple(functions.split()), kind, text, why) for functions, kind, text, why in rows]
                             for rows in (ROWS, COMPILED))


def find_reason(function: str, kind: str, text: str, is_compiled: bool = False) -> Reason | None:
    reasons = [*REASONS, *COMPILED_REASONS] if is_compiled else REASONS
    return next((reason for reason in reasons if reason.holds(function, kind, text)), None)


def list_reasons(function: str) -> list[Reason]:
    """The rows that name a function."""
    return [reason for reason in REASONS if function in reason.functions]
