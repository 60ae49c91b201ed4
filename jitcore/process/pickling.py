"""How what decorators return is pickled: by name where it is a global, as plain functions are.

In: an object with the module and qualified name of the function that it stands for. Out: the name under which
pickle finds it, or None where it has to be sent with its contents; a hash of these, for Dask.
"""

from __future__ import annotations

import hashlib
import io
import sys
import types
from typing import Any

from jitcore.process.lazy import LazyModule

cloudpickle = LazyModule("cloudpickle")

# Libraries that send what `__main__` defines with its contents, as other processes may have another one.
_SENDERS_OF_MAIN = frozenset({"cloudpickle", "dill"})


def find_global_name(thing: Any) -> str | None:
    name = getattr(thing, "__module__", None)
    if name not in sys.modules or name == "__main__" and _sends_main():
        return None
    module = found = sys.modules[name]
    path = getattr(thing, "__qualname__", "")
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is thing:
        return path
    # Lambdas and what `grad` and its like give have another name there than their own.
    return next((key for key, value in list(vars(module).items()) if value is thing), None)


def _sends_main() -> bool:
    """Whether one of those libraries is pickling; joblib and others bring copies of them."""
    frame, module = sys._getframe(1), "jitcore"
    while frame is not None and module.partition(".")[0] in ("jitcore", "pickle"):
        module, frame = frame.f_globals.get("__name__", ""), frame.f_back
    return not _SENDERS_OF_MAIN.isdisjoint(module.split("."))


def hash_contents(thing: Any) -> str:
    """The same in each process, whatever was called before: what jitcore keeps in attributes of functions,
    their rewritten forms, is left out. It takes cloudpickle."""

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, one):
            reduced = super().reducer_override(one)
            if isinstance(one, types.FunctionType) and isinstance(reduced, tuple):
                made, arguments, (attributes, slots), *rest = reduced
                kept = {key: value for key, value in attributes.items() if not key.startswith("__jitcore_")}
                return made, arguments, (kept, slots), *rest
            return reduced

    out = io.BytesIO()
    Pickler(out, protocol=5).dump(thing)
    return hashlib.sha256(out.getbuffer()).hexdigest()
