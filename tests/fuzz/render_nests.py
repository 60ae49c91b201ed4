"""Runs the nests of `nests.py` with JAX and stores what they give: JAX compiles each for a second.

`python tests/fuzz/render_nests.py` writes nests_by_jax.json: for both kinds of nests the vectors by seed, in
float64.
"""

import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "nests_by_jax.json"
#: How many nests of each kind are stored: (of the first tables, of all).
COUNTS = (500, 150)


def run_jax(seed: int, more: bool = False) -> np.ndarray:
    """The value of a nest at its point."""
    import jax
    import jax.numpy

    from tests.fuzz.nests import Library, build_nest, make_nest, make_point

    library = Library(jax, jax.numpy, jax.lax, jax.checkpoint, wide_while=False)
    nest = make_nest(seed, more)
    with jax.enable_x64(True):
        return np.asarray(jax.jit(build_nest(nest, library))(make_point(nest, np.float64)))


def read_stored() -> list[list[np.ndarray]]:
    """The vectors of both kinds."""
    return [[np.asarray(values) for values in kind] for kind in json.loads(STORED.read_text())]


def write_stored(kinds) -> None:
    texts = [",\n".join(json.dumps(list(values)) for values in kind) for kind in kinds]
    STORED.write_text("[[\n" + "\n],[\n".join(texts) + "\n]]\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    write_stored([run_jax(seed, more) for seed in range(count)] for more, count in enumerate(COUNTS))
