"""Single numbers in the memory of a device, and arguments of launches."""

import numpy as np


def put(runtime, value):
    address = runtime.allocate(8)
    runtime.copy_in(address, np.int64([value]))
    return address


def get(runtime, address):
    found = np.empty(1, np.int64)
    runtime.copy_out(found, address)
    return int(found[0])


def numbers(*values):
    return np.array(values, np.uint64)
