"""Kernels of a loop program as LLVM IR for a GPU.

In: a kernel. Out: which threads run what (`mapping`), and `__global__` functions.

Modules:
    emitter       One CUDA kernel under construction.
    items         Items that threads share: how a team runs the statements of one, loop by loop.
    kernel        Rendering of kernels: one fused loop nest group becomes one or a few `__global__` functions.
    loops         Control flow that one block of threads runs by itself, or one thread: no launch and no copy
                  for each round.
    nvvm          PTX by Numba's own code generator for CUDA, below its front end:
                  `compiler_options={"codegen": "numba"}`.
    ptx           From LLVM IR to PTX.
    rows          Rows in registers: what a sweep of an item reads and computes stays there for the sweeps
                  after it.
    team          Threads that share an item: what each finds is combined, in one order.
    tensor_cores  Products of matrices of 16 bits by tensor cores, which add products of small matrices in
                  float32.
    tiles         Tiles in shared memory: products of matrices, and kernels that read some arrays along the
                  other axis.
    updates       Updates of elements at places that are found while they run, in their order, as of
                  `x.at[i].add(v)`.
"""
