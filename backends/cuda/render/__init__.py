"""Kernels of a loop program as LLVM IR for a GPU.

In: a kernel. Out: which threads run what (`mapping`), and `__global__` functions.

Modules:
    columns          Sweeps down columns: items with sweeps inside, of which neighbours in memory belong to
                     neighbouring items.
    emitter          One CUDA kernel under construction.
    items            Items that threads share: how a team runs the statements of one, loop by loop.
    kernel           Rendering of kernels: one fused loop nest group becomes one or a few `__global__`
                     functions.
    loops            Control flow that one block of threads runs by itself, or one thread: no launch and no
                     copy for each round.
    nvvm             PTX by Numba's own code generator for CUDA, below its front end:
                     `compiler_options={"codegen": "numba"}`.
    private_updates  Updates of few elements at computed places, such as sums and counts, in tables of
                     threads.
    ptx              From LLVM IR to PTX.
    rows             Rows in registers: what a sweep of an item reads and computes stays there for the sweeps
                     after it.
    scans            Scans by tiles: a team reads a tile, combines what its threads have, and writes what
                     comes up to each place.
    team             Threads that share an item: what each finds is combined, in one order.
    tensor_cores     Products of matrices of 16 bits by tensor cores, which add products of small matrices in
                     float32.
    tiles            Products of matrices, by tiles in shared memory.
    turned           Kernels that read some arrays along the other axis, by tiles in shared memory.
    updates          Updates of elements at places that are found while they run, in their order, as of
                     `x.at[i].add(v)`.
"""
