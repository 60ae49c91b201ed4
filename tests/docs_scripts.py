"""Scripts of docs/, which are in no package, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"


def load_script(name: str) -> ModuleType:
    """name: of its file below docs/, without its ending."""
    spec = importlib.util.spec_from_file_location(name.rpartition("/")[2], DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
