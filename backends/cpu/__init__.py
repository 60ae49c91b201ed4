"""The CPU backend: loop programs rendered to explicit-vector LLVM IR, compiled by Numba's code generator.

In: a jaxpr without constants. Out: an `Executable`. Stages: `schedule.lower_program` (loop program),
`entry` and
`kernel` (LLVM IR), `native` (machine code), `backend` (buffers of a call).

Modules:
    backend    The CPU backend and its executables: what a call of a compiled program does with ndarrays.
    compiler   From loop program to machine code: rendering, and the caches of compiled code by canonical
               text.
    machine/   The machine that code is made for.
    mapping/   How loops run on this processor: in which lanes, side by side, ahead, past the caches.
    native/    From LLVM IR to machine code in memory and on disk.
    render/    Kernels and entry points of a loop program as LLVM IR.
    routines/  Routines: native code on whole buffers for primitives that loops would compute badly.
    runtime/   Running machine code: calls from Python, memory, threads, signals.
    timing     Programs kernel by kernel, timed, while a timeline is on.
"""
