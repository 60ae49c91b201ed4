"""Programs whose results are kept in a file: `python -m tests.backends.cpu.other_numbers FILE`, by other numbers."""

import sys

import numpy as np

import jitcore.numpy as jnp
from jitcore import jit
from jitcore.backends.cpu.machine import host
from jitcore.tree_util import tree_leaves
from tests.backends.cpu.tuning import make_machine

NUMBERS = {
    "loops": {"strips": (2,), "jams": (3, 2), "stretch": 3, "column_bytes": 1 << 9, "combined_rows": 3, "longest_row": 2,
              "listed_updates": 32, "unrolled_updates": 2, "updates_ahead": 8, "min_rows": 2, "near_bytes": 1 << 8,
              "max_inlined_calls": 0, "min_peeled_vectors": 2, "max_tile_lanes": 4},
    "product": {"loop_work": 16, "loop_steps": 1, "block_steps": 24, "left_share": 64, "chunk_bytes": 1 << 12,
                "stretch_steps": 64, "pair_rows": 2, "rows_per_pointer": 2, "summed_rows": (4, 2, 1)},
    "linalg": {"block_sides": range(8, 513), "panel": 24, "tiny_solution": 0, "tiny_factorisation": 0},
    "fft": {"inner_bytes": 1 << 12, "outer_bytes": 1 << 14, "shared_points": 1 << 8},
    "sort": {"block": 16, "group_vectors": 2, "shared": 64, "well_sampled": 64, "gathered": 16},
    "runtime": {"release_bytes": 0, "many_grains": 2, "pieces_each": 3, "large_bytes": 1 << 14, "max_kept_bytes": 1 << 20},
}
PROGRAMS = {
    "softmax": lambda x: jnp.exp(x - x.max(1, keepdims=True)).sum(1),
    "columns": lambda x: (jnp.sqrt(x * x + 1).sum(0), jnp.cumsum(x, 0), x.T + 1, jnp.argmin(x, 1)),
    "stencil": lambda x: x.ravel()[2:] + x.ravel()[1:-1] * 0.5 - x.ravel()[:-2],
    "updates": lambda x: jnp.zeros(1000).at[(x[:20] * 250).astype(int).ravel()].add(x[:20].ravel()),
    "products": lambda x: (x @ x.T, x @ x[0], x[:7, :9] @ x[:9], x[:, :3].T @ x),
    "linalg": lambda x: (jnp.linalg.solve(x.T @ x, x[:230, :5]), jnp.linalg.cholesky(x.T @ x)),
    "fft": lambda x: (jnp.abs(jnp.fft.rfft(x)), jnp.fft.fft(x[:2].ravel()).real),
    "sort": lambda x: (jnp.sort(x, 1), jnp.argsort(x.ravel()), jnp.partition(x, 9, 1)[:, 9]),
}


def save_results(path) -> None:
    x = np.random.default_rng(0).normal(size=(300, 230))
    leaves = {name: tree_leaves(jit(program)(x)) for name, program in PROGRAMS.items()}
    np.savez(path, **{f"{name}{k}": leaf for name, found in leaves.items() for k, leaf in enumerate(found)})


if __name__ == "__main__":
    host.MACHINE = make_machine(NUMBERS)
    save_results(sys.argv[1])
