"""The module that code is written into.

In: what code is rendered for. Out: an `ir.Module` whose formulas know their target.
"""

from __future__ import annotations

from collections.abc import Collection

from llvmlite import ir


class TargetModule(ir.Module):
    """features: see `RenderOptions`."""

    def __init__(self, name: str, features: Collection[str] = ()):
        super().__init__(name)
        self.features = features
