"""jitcore against JAX, call by call: a table of calls for each namespace, and JAX's recorded answers to them.

In: the calls of `tables`, each a line of Python in which `f32[2, 3]` is an array drawn from the line itself, and
`tests/answers/differential.*.xz`. Out: one test for each public function, which tells all calls that differ.

| module | what for |
|---|---|
| `draw` | the arguments: `f32[2, 3]`, `i8.special[9]` |
| `table` | calls by function: the usual ones of a unary function, of a reduction, ... |
| `tables` | the calls, one module for each namespace |
| `compare` | what differs between a result and JAX's answer |
| `differences` | what differs on purpose, and why |
| `run` | a call, evaluated by jitcore and by JAX |
| `test_differential` | the tests; `pytest -m jax -p no:xdist tests/differential` asks JAX anew and records |

`python -m tests.differential numpy "add(f32[3], 1)"` shows what both give for a line.
"""
