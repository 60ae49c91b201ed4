"""The loop program: loop nests over buffers, scalar expressions, native control flow, library calls.

In: fusion groups from `schedule`. Out: a `Program` that a backend renders to kernels. It assumes no
device: loops carry facts (parallel, vector axis), sizes are run-time values, library calls are named.
"""
