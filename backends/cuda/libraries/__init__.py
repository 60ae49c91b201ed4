"""NVIDIA's libraries, where they are installed: cuBLAS, cuSOLVER, cuFFT.

In: equations that a library computes. Out: calls of its routines, with kernels around them.

Modules:
    bindings  NVIDIA's libraries: cuBLAS, cuSOLVER and cuFFT, by bindings that somebody has installed.
    programs  Programs by NVIDIA's libraries: what stands around a routine so that it computes a primitive.
    routines  Routines of NVIDIA's libraries: which functions are called for one operation on matrices or
              signals.
"""
