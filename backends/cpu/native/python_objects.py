"""Where native code finds the fields of Python's objects. `launch.layout_is_known` compares these numbers
with what this process has.

In: nothing. Out: offsets in bytes, and names of symbols. Stage: run time.
"""

#: The symbols of the type of ndarrays, of NumPy's scalars, of ctypes' numbers, and of `True`.
NDARRAY, GENERIC = "jitcore_ndarray_type", "jitcore_generic_type"
CELL, TRUE = "jitcore_cell_type", "jitcore_true"

TYPE_OFFSET = 8  # PyObject.ob_type
DATA_OFFSET = 16  # PyArrayObject.data, the first field after PyObject, which is the value of a number
NDIM_OFFSET, SHAPE_OFFSET, DTYPE_OFFSET, FLAGS_OFFSET = 24, 32, 56, 64  # its nd, dimensions, descr, flags
SIZE_OFFSET, ITEMS_OFFSET = 16, 24  # PyListObject.ob_size, ob_item
CODE_OFFSET = 48  # PyFunctionObject.func_code
