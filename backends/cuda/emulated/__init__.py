"""A CUDA device in software: PTX is translated to machine code of this processor and runs on it.

    device = EmulatedDevice()
    kernel = device.load(ptx).find_kernel("add")
    device.launch(kernel, (4, 1, 1), (256, 1, 1), np.array([x, y, n], np.uint64))

Loading: `ptx` (text to statements), `translate` with the rules of `arithmetic`, `movement` and `collectives`
(statements to LLVM), `machine_code`, `module`. Running: `launch`, `scheduler`, `races`, `memory`.
"""

from jitcore.backends.cuda.emulated.device import EmulatedDevice
from jitcore.backends.cuda.emulated.errors import DeviceError

__all__ = ["DeviceError", "EmulatedDevice"]
