"""Notes to XLA's compiler, where JAX's scripts import them from.

In: values or functions, and notes by name. Out: the same values and functions: nothing here reads the notes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["set_xla_metadata"]


class _Notes:
    """Notes on all that is computed within a `with` block, or by a decorated function."""

    def __enter__(self) -> None:
        """Nothing is noted."""

    def __exit__(self, *exception: object) -> None:
        """Nothing was noted."""

    def __call__(self, function: Any) -> Any:
        return function


def set_xla_metadata(x: Any = None, **notes: Any) -> Any:
    """`x`, a value or a function, as it is; without it a context manager and decorator.

    Source: jax.experimental.xla_metadata.set_xla_metadata."""
    return _Notes() if x is None else x
