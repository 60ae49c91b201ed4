"""Backends: a loop program (or a Jaxpr) comes in, an executable for one kind of device goes out.

Installed as `jitcore.backends`. `BACKENDS` names those that are here; a package of somebody else adds one by
an entry point of the group `jitcore.backends`.

Modules:
    cpu/        The CPU backend: loop programs rendered to explicit-vector LLVM IR, compiled by Numba's code
                generator.
    cuda/       The CUDA backend: loop programs as kernels of NVIDIA GPUs.
    gpu/        What backends for GPUs share: which threads run what.
    llvm/       What backends that write LLVM IR share: scalar expressions, running values, complex numbers,
                functions.
    python/     The loop program as Python: the text of a function of NumPy arrays, to read, to interpret and
                to compile.
    reference/  The reference backend: runs a jaxpr equation by equation through each primitive's NumPy
                implementation.
    xla/        The XLA bridge: programs as StableHLO, compiled and run by XLA's clients for CPUs and TPUs.
"""

#: Module and class of each backend, by its name.
BACKENDS = {
    "cpu": "jitcore.backends.cpu.backend:CpuBackend",
    "cuda": "jitcore.backends.cuda:CudaBackend",
    "cuda-emulated": "jitcore.backends.cuda:EmulatedBackend",
    "reference": "jitcore.backends.reference:ReferenceBackend",
    "tpu": "jitcore.backends.xla:TpuBackend",
    "xla": "jitcore.backends.xla:XlaBackend",
}
