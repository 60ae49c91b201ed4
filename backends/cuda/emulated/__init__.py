"""A CUDA device in software: PTX is translated to machine code of this processor and runs on it.

In: PTX, launches. Out: what a GPU would have computed, or an error that says what is wrong with the code.

    device = EmulatedDevice()
    kernel = device.load(ptx).find_kernel("add")
    device.launch(kernel, (4, 1, 1), (256, 1, 1), np.array([x, y, n], np.uint64))

Loading: `ptx` (text to statements), `translate` with the rules of `arithmetic`, `movement` and `collectives`
(statements to LLVM), `machine_code`, `module`. Running: `launch`, `scheduler`, `races`, `memory`.

Modules:
    arithmetic    Rules of arithmetic: integers, floats, predicates, bits and conversions.
    collectives   Rules of what threads do together: operands go to the thread's record, which waits for the
                  scheduler.
    context       What a running kernel shares with the code around it: a record for each thread, one for the
                  launch.
    device        A CUDA device in software: allocates, copies, loads PTX and launches kernels, at once and in
                  this thread.
    errors        What the emulated device says when a kernel is wrong. Leaf module of the folder.
    launch        One launch: the records and tables that a kernel needs, its blocks one after the other, what
                  went wrong.
    machine_code  LLVM's text in, machine code of this process out: the last stage of loading a module.
    memory        Memory of an emulated device: allocations, and what a wrong address is near to.
    module        Modules: PTX that is loaded on a device, with memory for its variables, and the kernels in
                  it.
    movement      Rules of moves, memory, jumps and calls.
    ptx           PTX text in, `Assembly` out: its functions as lists of statements, its variables. The first
                  stage.
    races         Every access to memory: where it goes, whether it may, whether it races. Called by
                  translated code.
    scheduler     Runs the threads of a block, one after the other, each up to its next suspension.
    translate     A function of PTX in, LLVM's text out. Between `ptx` and `machine_code`.
"""

from jitcore.backends.cuda.emulated.device import EmulatedDevice
from jitcore.backends.cuda.emulated.errors import DeviceError

__all__ = ["DeviceError", "EmulatedDevice"]
