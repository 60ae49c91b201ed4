"""Fourier transforms as native routines.

In: an equation `fft`. Out: a routine with its plan; the LLVM text of the functions that it calls.

Modules:
    butterflies  Passes of a Fourier transform over a block of lines: butterflies of one size, all lanes
                 alike.
    plan         Plans of Fourier transforms: tables that tell the native code of a dtype what to do.
    routine      The routine for `fft`: Fourier transforms of complex64 and complex128, and of float32 and
                 float64.
    rows         Blocks of lines that are rows of an array: transposing them into lanes and back, and real
                 spectra.
    stage        What the functions of Fourier transforms share: numbers of a stage, complex numbers in lanes.
    stages       Machine code of Fourier transforms: which module defines which symbol, and what runs the
                 stages.
"""
