"""Shows what jitcore and JAX give for one call: `python -m tests.differential numpy "add(f32[3], 1)"`."""

import sys

from jitcore.config import config
from tests.differential import tables  # noqa: F401  fills TABLES
from tests.differential.run import evaluate
from tests.differential.table import TABLES


def main(namespace: str, *texts: str) -> None:
    import jax

    jax.config.update("jax_platforms", "cpu")
    for text in texts:
        is_wide_on, call = not text.startswith("narrow: "), text.removeprefix("narrow: ")
        with jax.enable_x64(is_wide_on), config.override(enable_x64=is_wide_on):
            for package in ("jitcore", "jax"):
                result = evaluate(package, TABLES[namespace], call)
                print(f"{package:8}{type(result).__name__ + ' ' if isinstance(result, Exception) else ''}{result!r}")


main(*sys.argv[1:])
