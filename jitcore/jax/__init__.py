"""JAX's package under one name: `import jitcore.jax as jax`, and nothing of JAX's.

In: the imports of a program that was written for JAX, with `jitcore.jax` where it says `jax`. Out: the
modules and functions of jitcore that have these names: `jitcore.jax.numpy` is `jitcore.numpy` itself,
`jitcore.jax.jit` is `jitcore.jit`. Nothing is patched, and nothing is loaded before it is used: a name is
looked up when it is asked for, and a module is imported under its own name. Of the environment, the variables
of JAX that set flags are read, such as `JAX_ENABLE_X64`.

    import jitcore.jax as jax
    import jitcore.jax.numpy as jnp
    from jitcore.jax import grad, lax, random
    from jitcore.jax.scipy.special import logsumexp

What of JAX's is here, and what is not and why, is in docs/features.md. Names of jitcore that JAX does not
have (`autojit`, `rewrite`) are not here. Type checkers read the stubs beside this file.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import jitcore

#: The version of JAX whose names are followed.
__version__ = "0.10.2"
__version_info__ = tuple(map(int, __version__.split(".")))

#: The modules; their own submodules go with them.
_MODULES = ("ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "distributed", "dtypes",
            "errors", "experimental", "export", "extend", "flatten_util", "image", "lax", "nn", "numpy",
            "ops", "profiler", "random", "ref", "scipy", "sharding", "stages", "test_util", "tree",
            "tree_util", "typing")
#: Names of jitcore's own.
_ELSEWHERE = {"AutojitWarning", "api", "autojit", "compare", "load_ipython_extension", "rewrite", "run_path",
              "unload_ipython_extension"}

#: Flags that are JAX's, by the same names and with the same values.
_OF_ENVIRONMENT = ("check_tracer_leaks", "debug_infs", "debug_nans", "default_matmul_precision",
                   "default_prng_impl", "disable_jit", "enable_custom_prng", "enable_x64", "log_compiles",
                   "num_cpu_devices", "numpy_dtype_promotion", "numpy_rank_promotion",
                   "threefry_partitionable")

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


def _read_environment(environment: Mapping[str, str]) -> None:
    """Sets flags that the environment names as JAX does, such as `JAX_ENABLE_X64=1`, and nobody set yet.

    XLA's own flag of the number of its devices counts, too."""
    given = {name: environment[f"JAX_{name.upper()}"] for name in _OF_ENVIRONMENT
             if f"JAX_{name.upper()}" in environment}
    said = re.search(r"--xla_force_host_platform_device_count=(\d+)", environment.get("XLA_FLAGS", ""))
    if said:
        given["num_cpu_devices"] = said[1]
    if not given:
        return
    from jitcore.config import ENVIRONMENT_PREFIX, FLAGS, config, parse_environment

    unset = {f"{ENVIRONMENT_PREFIX}{name.upper()}": text for name, text in given.items()
             if getattr(config, name) == FLAGS[name].default}
    for name, value in parse_environment(unset).items():
        config.update(name, value)


_read_environment(os.environ)

# In front of the finder of files, which would load those of jitcore a second time, under other names.
sys.meta_path.insert(0, _Modules())  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(jitcore, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
