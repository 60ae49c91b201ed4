"""Numba's own forms: kernels as `numba.cuda` functions that people read, and PTX by its code generator.

In: a loop program, or LLVM IR. Out: a file of Python, a device function, or PTX.

Modules:
    codegen           PTX by Numba's own code generator for CUDA, below its front end:
                      `compiler_options={"codegen": "numba"}`.
    device_functions  A program as a device function of `numba.cuda`: what one thread of somebody's kernel
                      computes.
    kernels           Kernels as functions of `numba.cuda`, as a person would write them.
    names             Functions in kernels of Numba: which module has them, and device functions for what none
                      has.
    source            Programs as files for `numba.cuda`: kernels, and a function of the host that launches
                      them.
"""
