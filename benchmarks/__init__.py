"""Workloads timed against other libraries in one process: `python -m benchmarks --help`.

`workload` and `programs` say what is computed, `workloads` lists it with the loops and formulas of the other
libraries, `peers` runs them, `agreement` compares results, `timing` takes turns. One module for each section
of the results: `run_time`, `compile_time`, `dispatch_time`, `autojitting`, `scaling`, `memory`, `rewriting`,
`plain`, `scripts`, `clusters`. `machine` measures what the machine can do at most, `bars` says what jitcore
wants to reach, `table` and `results_file` show and keep it.
"""
