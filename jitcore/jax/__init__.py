"""JAX's package under one name: `import jitcore.jax as jax`, and nothing of JAX's.

In: the imports of a program that was written for JAX, with `jitcore.jax` where it says `jax`. Out: the
modules and functions of jitcore that have these names: `jitcore.jax.numpy` is `jitcore.numpy` itself,
`jitcore.jax.jit` is `jitcore.jit`. Nothing is patched, and nothing is loaded before it is used: a name is
looked up when it is asked for, and a module is imported under its own name.

    import jitcore.jax as jax
    import jitcore.jax.numpy as jnp
    from jitcore.jax import grad, lax, random
    from jitcore.jax.scipy.special import logsumexp

What of JAX's is here, and what is not and why, is in docs/features.md. Names of jitcore that JAX does not
have (`autojit`, `rewrite`) are not here. Type checkers read the stubs beside this file.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import jitcore

#: The version of JAX whose names are followed.
__version__ = "0.10.2"
__version_info__ = tuple(map(int, __version__.split(".")))

#: The modules; their own submodules go with them.
_MODULES = ("ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "distributed", "dtypes",
            "errors", "experimental", "export", "flatten_util", "image", "lax", "nn", "numpy", "ops",
            "random", "scipy", "sharding", "stages", "test_util", "tree", "tree_util", "typing")
#: Names of jitcore's own.
_ELSEWHERE = {"AutojitWarning", "api", "autojit", "compare", "load_ipython_extension", "rewrite", "run_path",
              "unload_ipython_extension"}

__all__ = [*_MODULES, *(name for name in jitcore.__all__ if name not in {*_MODULES, *_ELSEWHERE})]


class _Modules:
    """Finds `jitcore.jax.X` as the module `jitcore.X`; both names are the same object then."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith(f"{__name__}.") and name.split(".")[2] in _MODULES:
            return ModuleSpec(name,
                              self)  # type: ignore[arg-type]  # as a loader is used, not as it is declared
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """Python makes a module, which is replaced at once."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        own = f"jitcore.{name.removeprefix(__name__ + '.')}"
        try:
            sys.modules[name] = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not own.startswith(error.name):
                raise
            raise ModuleNotFoundError(f"No module named {name!r}, as jitcore has no {own!r}: see "
                                      "docs/features.md", name=name) from None


# In front of the finder of files, which would load those of jitcore a second time, under other names.
sys.meta_path.insert(0, _Modules())  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(jitcore, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
