"""How what decorators return is pickled: by name where it is a global, as plain functions are.

In: an object with the module and qualified name of the function that it stands for. Out: the name under which
pickle finds it, or None where it has to be sent with its contents.
"""

from __future__ import annotations

import sys
from typing import Any

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
