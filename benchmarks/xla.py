"""Section of the XLA bridge: the same programs through the bridge and by JAX itself, on XLA's CPU client.

In: names of rows of the run-time section. Out: their table: seconds of first and of warm calls, which take
turns, and whether results agree with the reference; then what a call costs that computes nothing. Both sides
get arrays that lie on the device, and wait for the result.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import compute_reference, find_difference
from benchmarks.fresh_process import run_fresh
from benchmarks.measured import Section
from benchmarks.table import align_cells, format_ratio, format_seconds
from benchmarks.timing import Call, Effort, time_in_turns, time_once
from benchmarks.workloads import ROWS

TITLE = "The XLA bridge: jitcore's programs and JAX's own, on XLA's CPU client"
_ROW_OF_NAME = {row.name: row for row in ROWS}
_EFFORT = Effort(seconds=0.4, rounds=60, batch_seconds=2e-3, compiles=1, processes=1, longest=2.0)


def list_names() -> list[str]:
    return list(_ROW_OF_NAME)


def run_section(
    names: Sequence[str], peers: Sequence, effort: Effort, show: Callable[[str], None]
) -> Section:
    """Measures the rows with these names. `show` is told the name of each before it starts."""
    lines = [["row", "first call", "JAX's", "ratio", "warm call", "JAX's", "ratio", "result"]]
    failed, found = False, []
    environment = {"JITCORE_CACHE_DIR": "", "JAX_PLATFORMS": "cpu"}
    for name in names:
        show(name)
        try:
            row = run_fresh(measure, name, environment=environment)
        except RuntimeError as error:
            failed = True
            lines.append([name, *[""] * 6, str(error)])
            continue
        failed |= bool(row["problem"])
        found.append(row)
        cells = []
        for ours, theirs in zip(row["bridge"], row["jax"]):
            cells += [format_seconds(ours), format_seconds(theirs), format_ratio(ours / theirs)]
        lines.append([name, *cells, row["problem"] or "right"])
    show("calls")
    calls = run_fresh(measure_calls, environment=environment)
    rows = [["call", "jitcore", "JAX", "ratio"]]
    rows += [[name, format_seconds(ours), format_seconds(theirs), format_ratio(ours / theirs)]
             for name, (ours, theirs) in calls.items()]
    text = f"{align_cells(lines)}\n\n{_summarize(found)}\n\n{align_cells(rows)}"
    return Section(TITLE, text, failed)


def _summarize(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "no rows"
    first, warm = ([row["bridge"][k] / row["jax"][k] for row in rows] for k in range(2))
    slow = sum(ratio > 1.05 for ratio in warm)
    return (f"{len(rows)} rows; medians: first calls {statistics.median(first):.2f} of JAX's, warm ones "
            f"{statistics.median(warm):.2f}; {slow} of them above 1.05")


def measure(name: str) -> dict[str, Any]:
    """Of one row: for each side the seconds of a first and of a warm call; what is wrong."""
    import jax

    import jitcore

    row = _ROW_OF_NAME[name]
    inputs = row.make_inputs(row.size)
    jax.config.update("jax_enable_x64", row.dtype in ("f64", "c128", "i64", "float64"))
    placed = {
        "bridge": jitcore.device_put(inputs, jitcore.devices("xla")[0]),
        "jax": jax.device_put(inputs),
    }
    functions = {"bridge": jitcore.jit(row.program(jitcore), backend="xla"), "jax": jax.jit(row.program(jax))}
    jitcore.jit(lambda x: x + 1, backend="xla")(np.ones(3, np.float32)).block_until_ready()
    jax.jit(lambda x: x + 1)(np.ones(3, np.float32)).block_until_ready()
    found: dict[str, Any] = {"problem": ""}
    calls = {}
    for side, module in (("jax", jax), ("bridge", jitcore)):

        def call(side=side, module=module):
            return module.block_until_ready(functions[side](*placed[side]))

        seconds, result = time_once(call)
        found[side], calls[side] = [seconds], Call(call)
        if side == "bridge":
            found["problem"] = find_difference(row, result, compute_reference(row, inputs))
    for side, seconds in time_in_turns(calls, _EFFORT).items():
        found[side].append(seconds)
    return found


def measure_calls() -> dict[str, list[float]]:
    """Seconds of calls of small programs that are cached: by jitcore and by JAX."""
    import jax

    import jitcore

    x = np.ones(4, np.float32)
    on_xla, on_jax = jitcore.device_put(x, jitcore.devices("xla")[0]), jax.device_put(x)
    found = {}
    kinds = (
        ("1 array of the device", 1, on_xla, on_jax),
        ("4 arrays of the device", 4, on_xla, on_jax),
        ("1 ndarray", 1, x, x),
    )
    for name, count, ours, theirs in kinds:
        functions = [jit(lambda *values: values[0] * 2 + 1, **options) for jit, options in
                     ((jitcore.jit, {"backend": "xla"}), (jax.jit, {}))]
        calls = {str(k): Call(lambda f=f, given=(given,) * count: f(*given)) for k, (f, given) in
                 enumerate(zip(functions, (ours, theirs)))}
        for call in calls.values():
            for _ in range(3):
                call.run()
        found[name] = list(time_in_turns(calls, _EFFORT).values())
    return found
