"""Running on a GPU: the device, its driver, memory that others share, graphs, executables.

In: PTX and the steps of a program. Out: results in the memory of a device.

Modules:
    device      Devices: the protocol that a GPU and the device in software follow, and memory on them.
    driver      The CUDA driver: its calls, by the package `cuda.bindings`, and its errors as exceptions.
    executable  Executables: programs compiled for an architecture, and run on a device of it.
    gpu         A GPU: the implementation of `device.Runtime` for NVIDIA's driver.
    graphs      Kernels on a GPU, and CUDA graphs: several launches that are given to a GPU at once, and loops
                whose condition the GPU reads.
    interop     Arrays of other libraries on GPUs, used without a copy.
    linking     From PTX to machine code, where NVIDIA's linker is installed; what it made is kept on disk;
                and what kernels take of a GPU, as the linker says without one.
    protocols   What DLPack and `__cuda_array_interface__` say of an array on a GPU, read and written.
"""
