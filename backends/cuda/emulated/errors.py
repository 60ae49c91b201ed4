"""What the emulated device says when a kernel is wrong. Leaf module of the folder."""


class DeviceError(RuntimeError):
    """A kernel, its PTX or its launch is wrong; the message names kernel, block, thread, place and reason."""
