"""Workloads timed against other libraries in one process: `python -m benchmarks --help`.

`workloads` says what is computed, `peers` who computes it, `measure` how it is timed and compared, `table`
how it is shown, `targets` what jitcore wants to reach.
"""
