"""The machine that code is made for.

In: what the operating system and LLVM say. Out: facts that scheduling, mapping and rendering decide by.

Modules:
    host      Facts about this machine: its processor, and what else machine code depends on beside its
              program.
    roofline  The roofline of this machine: how fast its memory and its processor are, measured once.
    tuning    Tuning: the numbers by which code for CPUs is made and shared out, and that only measurement
              explains.
"""
