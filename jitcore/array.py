"""Arrays: the abstract `Array` and its concrete form, an immutable NumPy-backed buffer.

In: ndarrays that a backend or an eager operation produced. Out: `Array` values with JAX's printing, weak
types, deletion (donation) and NumPy, buffer and DLPack interoperation without copies. Operators and
methods (`x + y`, `x.sum()`, `x.at[i]`) are installed by `lax.operators` and `numpy.array_methods`.
"""

from __future__ import annotations

import numpy as np

from jitcore import dtypes
from jitcore.errors import arguments
from jitcore.process.lazy import LazyModule
from jitcore.sharding import SingleDeviceSharding

hypertext = LazyModule("jitcore.hypertext")

#: DLPack's number for memory of a GPU of NVIDIA's.
_DLPACK_CUDA = 2


class Array:
    """What operations take and return: concrete arrays and tracers alike (`isinstance(x, jitcore.Array)`)."""

    __slots__ = ("__weakref__",)
    __array_priority__ = 100
    __hash__ = None

    @property
    def aval(self):
        raise NotImplementedError

    @property
    def shape(self) -> tuple:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size = size * extent
        return size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]


class ConcreteArray(Array):
    """A value in memory. `data` is a C-contiguous ndarray that nobody writes to any more.

    Args:
        data: the ndarray; ownership passes to this object.
        weak_type: whether the dtype yields to what it meets (see `dtypes`)."""

    __slots__ = ("_data", "_weak_type", "_aval")

    def __init__(self, data: np.ndarray, weak_type: bool = False):
        self._data = data
        self._weak_type = weak_type

    # -- value ------------------------------------------------------------------------------------------
    @property
    def data(self) -> np.ndarray:
        """The buffer itself. Raises: DonatedArrayError after donation or `delete()`."""
        data = self._data
        if data.__class__ is tuple:
            raise arguments.deleted_array_error(self.aval.long())
        return data

    @property
    def _value(self) -> np.ndarray:
        return _read_only(self.data)

    @property
    def aval(self):
        try:
            return self._aval
        except AttributeError:
            self._aval = make_aval(self.shape, self.dtype, self._weak_type)
            return self._aval

    @property
    def shape(self) -> tuple:
        data = self._data
        return data[0] if data.__class__ is tuple else data.shape

    @property
    def dtype(self) -> np.dtype:
        data = self._data
        dtype = data[1] if data.__class__ is tuple else data.dtype
        return dtype if dtype.names is None else dtypes.of_ndarray(dtype)

    @property
    def weak_type(self) -> bool:
        return self._weak_type

    # -- life -------------------------------------------------------------------------------------------
    def delete(self) -> None:
        """Frees the buffer; later use raises DonatedArrayError. Shape and dtype stay readable."""
        data = self._data
        if data.__class__ is not tuple:
            self._data = (data.shape, data.dtype)

    def is_deleted(self) -> bool:
        return self._data.__class__ is tuple

    def block_until_ready(self):
        """Returns the array itself: a CPU call has finished when it returns."""
        self.data  # noqa: B018  a deleted array raises here
        return self

    def copy_to_host_async(self) -> None:
        """Does nothing: the buffer already is in host memory."""

    # -- parts ------------------------------------------------------------------------------------------
    @property
    def is_committed(self) -> bool:
        """Whether programs on the array have to run where it lies."""
        return False

    committed = property(lambda self: self.is_committed)
    _is_readable = True

    @property
    def addressable_shards(self) -> list:
        """The parts of the array on the devices of this process."""
        return load_device_layer().list_shards(self)

    @property
    def global_shards(self) -> list:
        """The parts of the array on all devices; those of other processes have no data."""
        return load_device_layer().list_shards(self, everywhere=True)

    def addressable_data(self, index: int):
        """The part with this number among those of this process."""
        return self.addressable_shards[index].data

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all parts."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all elements."""
        return self.sharding.is_fully_replicated

    def __copy__(self):
        return ConcreteArray(self.data, self._weak_type)

    def __deepcopy__(self, memo):
        return ConcreteArray(copy_data(self.data), self._weak_type)

    def __reduce__(self):
        return ConcreteArray, (np.asarray(self.data), self._weak_type)

    # -- Python scalars -----------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        self._reject_keys("key array cannot be converted to boolean.")
        if self.size == 1:
            return bool(self.data)
        if self.size == 0:
            raise ValueError("The truth value of an empty array is ambiguous. "
                             "Use `array.size > 0` to check that an array is not empty.")
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")

    def __int__(self) -> int:
        return int(self._scalar("integer"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.shape or not dtypes.is_integer(self.dtype):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return int(self.data)

    def _reject_keys(self, message: str) -> None:
        """Raises: TypeError for keys, which NumPy and Python have no values of."""
        if self.data.dtype.names is not None:
            raise TypeError(message)

    def _scalar(self, kind: str):
        self._reject_keys(f"key array cannot be converted to a Python {kind}.")
        if self.shape:
            raise TypeError("Only scalar arrays can be converted to Python scalars; "
                            f"got arr.ndim={self.ndim} where a Python {kind} is needed")
        return self.data[()]

    def item(self, *args):
        self._reject_keys(_NO_VALUES)
        return self.data.item(*args)

    def tolist(self):
        self._reject_keys(_NO_VALUES)
        return self.data.tolist()

    def tobytes(self, order="C") -> bytes:
        self._reject_keys(_NO_VALUES)
        return self.data.tobytes(order)

    def __format__(self, spec: str) -> str:
        if dtypes.is_key(self.dtype):
            return format(str(self), spec)
        return format(self.data[()] if not self.shape else self.data, spec)

    def __iter__(self):
        if not self.shape:
            raise TypeError(f"iteration over a 0-d {'key array' if dtypes.is_key(self.dtype) else 'array'}")
        data = self.data
        return (
            ConcreteArray(np.ascontiguousarray(row) if self.ndim > 1 else np.asarray(row), self._weak_type)
            for row in data)

    # -- interoperation ---------------------------------------------------------------------------------
    def __array__(self, dtype=None, copy=None):
        self._reject_keys(_NO_VALUES)
        data = self.data
        if dtype is not None and data.dtype != dtype:
            if copy is False:
                raise ValueError("a copy is needed to change the dtype")
            return data.astype(dtype)
        return data.copy() if copy else _read_only(data)

    def __buffer__(self, flags):
        self._reject_keys(_NO_VALUES)
        return memoryview(_read_only(self.data))

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Exports the buffer without a copy. DLPack cannot mark it read-only for older consumers: do not
        write."""
        return self.data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    @property
    def device(self):
        return load_device_layer().devices("cpu")[0]

    def devices(self):
        return {self.device}

    @property
    def sharding(self):
        return SingleDeviceSharding(self.device)

    # -- text -------------------------------------------------------------------------------------------
    def __repr__(self) -> str:
        if not self._is_readable:
            return f"Array(shape={self.shape}, dtype={self.dtype.name})"
        data = self._data
        if dtypes.is_key(self.dtype):
            words = "" if self.is_deleted() else f" overlaying:\n{_read_words(data)}"
            return f"Array({self.shape}, dtype={self.dtype}){words or ' # deleted'}"
        weak = ", weak_type=True" if self._weak_type else ""
        if data.__class__ is tuple:
            return f"Array(shape={data[0]}, dtype={data[1].name}{weak}) # deleted"
        name = "Array"
        if data.size == 0 or data.size >= np.get_printoptions()["threshold"]:
            body = np.array2string(data, separator=", ", prefix=f"{name}(")
            shape = f", shape={data.shape}" if data.size == 0 else ""
            return f"{name}({body}{shape}, dtype={data.dtype.name}{weak})"
        body = np.array2string(data, separator=", ", prefix=f"{name}(")
        tail = f"dtype={data.dtype.name}{weak})"
        last_line = body.rsplit("\n", 1)[-1]
        width = np.get_printoptions()["linewidth"]
        too_long = len(last_line) + len(tail) + (len(name) + 1 if "\n" not in body else 0) + 2 > width
        return f"{name}({body}," + ("\n" + " " * (len(name) + 1) if too_long else " ") + tail

    def __str__(self) -> str:
        return str(self.data) if self._is_readable and not dtypes.is_key(self.dtype) else repr(self)

    def _repr_html_(self) -> str:
        """What notebooks show: a line about the array, and its first and last elements."""
        if self.is_deleted() or not self._is_readable or dtypes.is_key(self.dtype):
            return hypertext.show_text(repr(self))
        weak = ", weakly typed" if self._weak_type else ""
        line = f"{self.dtype.name} {list(self.shape)} on {self.device}, {self.nbytes:,} bytes{weak}"
        elements = np.array2string(self.data, threshold=60, edgeitems=3)
        parts = self.sharding.show_cells(self.ndim) if self.sharding.num_devices > 1 else ""
        return f"<div>{hypertext.show_text(line)}{parts}{hypertext.show_text(elements, 4000)}</div>"


_NO_VALUES = ("Array with PRNGKey dtype cannot be converted to a NumPy array. Use "
              "jitcore.random.key_data(arr) if you wish to extract the underlying integer array.")


def _read_words(keys: np.ndarray) -> np.ndarray:
    """The words of keys, in a last axis."""
    (tag,) = keys.dtype.names
    return keys[tag]


class DeviceForm:
    """What arrays on devices have in common that look alike and lie alike. There is one object for each form,
    which says by its identity what an aval and a sharding would have to be compared for."""

    __slots__ = ("shape", "dtype", "weak_type", "sharding", "is_committed")

    def __init__(self, shape: tuple, dtype: np.dtype, weak_type: bool, sharding, is_committed: bool = True):
        self.shape, self.dtype, self.weak_type, self.sharding = shape, dtype, weak_type, sharding
        self.is_committed = is_committed


_forms: dict[tuple, DeviceForm] = {}


def find_form(shape: tuple, dtype: np.dtype, weak_type: bool, sharding,
              is_committed: bool = True) -> DeviceForm:
    key = shape, dtype, weak_type, sharding, is_committed
    return _forms.get(key) or _forms.setdefault(key, DeviceForm(*key))


class DeviceArray(ConcreteArray):
    """A value in the memory of a backend's device. It comes to the host when something there reads it.

    Args:
        buffer: what the backend's runtime has; with `delete()`, `block_until_ready()`,
            `copy_to_host_async()`, and for NumPy `__array__`.
        form: shape, dtype, weak type and sharding. `sharding.backend` is the name of the backend that
            computes with the array; `is_committed` whether somebody chose its devices."""

    __slots__ = ("_buffer", "_form", "_host")

    def __init__(self, buffer, form: DeviceForm):
        self._buffer, self._form = buffer, form

    @property
    def buffer(self):
        """Raises: DonatedArrayError after donation or `delete()`."""
        if self._buffer is None:
            raise arguments.deleted_array_error(self.aval.long())
        return self._buffer

    @property
    def _data(self):
        if self._buffer is None:
            return self._form.shape, self._form.dtype
        try:
            return self._host
        except AttributeError:
            pass
        if not self._is_readable:
            raise arguments.unaddressable_array_error(self.aval.long())
        data = np.ascontiguousarray(np.asarray(self._buffer)).reshape(self._form.shape)
        self._host = data.view(self._form.dtype.dtype) if dtypes.is_key(self._form.dtype) else data
        return self._host

    @property
    def _is_readable(self) -> bool:
        """Whether this process has all elements."""
        sharding = self._form.sharding
        return sharding.is_fully_addressable or sharding.is_fully_replicated

    @property
    def _weak_type(self) -> bool:
        return self._form.weak_type

    weak_type = _weak_type

    @property
    def shape(self) -> tuple:
        return self._form.shape

    @property
    def dtype(self) -> np.dtype:
        return self._form.dtype

    def delete(self) -> None:
        if self._buffer is not None:
            self._buffer.delete()
            form = self._form
            # a form of its own: nothing that knew the array finds it again
            self._buffer, self._form = None, DeviceForm(form.shape, form.dtype, form.weak_type, form.sharding)

    def is_deleted(self) -> bool:
        return self._buffer is None

    @property
    def aval(self):
        try:
            return self._aval
        except AttributeError:
            self._aval = make_aval(self._form.shape, self._form.dtype, self._form.weak_type)
            return self._aval

    def block_until_ready(self):
        """Waits until the value is computed; returns the array itself."""
        self.buffer.block_until_ready()
        return self

    def copy_to_host_async(self) -> None:
        """Begins to bring the value to the host."""
        self.buffer.copy_to_host_async()

    # -- interoperation: without a copy on a GPU, else with the elements on the host -------------------------
    def __dlpack__(self, **options):
        return self._find_exported().__dlpack__(**options)

    def __dlpack_device__(self):
        return self._find_exported().__dlpack_device__()

    def _find_exported(self):
        is_on_gpu = {device.platform for device in self._form.sharding.device_set} == {"gpu"}
        is_there = is_on_gpu and self.buffer.__dlpack_device__()[0] == _DLPACK_CUDA  # not so in software
        return self.buffer if is_there else self.data

    @property
    def __cuda_array_interface__(self):
        """Raises: AttributeError where the array is not on a GPU of NVIDIA's."""
        return self.buffer.__cuda_array_interface__

    def __copy__(self):
        return DeviceArray(self.buffer, self._form)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    @property
    def sharding(self):
        return self._form.sharding

    @property
    def is_committed(self) -> bool:
        return self._form.is_committed

    @property
    def device(self):
        """The device; of an array on several ones its sharding."""
        found = self._form.sharding.device_set
        return next(iter(found)) if len(found) == 1 else self._form.sharding

    def devices(self):
        return set(self._form.sharding.device_set)


def copy_data(data: np.ndarray) -> np.ndarray:
    """A C-contiguous copy with memory of its own."""
    copy = choose_allocator(data.nbytes)(data.shape, data.dtype)
    copy[...] = data
    return copy


def _read_only(data: np.ndarray) -> np.ndarray:
    if not data.flags.writeable:
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def choose_allocator(nbytes: int):
    """What makes arrays of about this size: a function of shape and dtype. A backend puts its own here."""
    return np.empty


def make_aval(shape, dtype, weak_type):
    """The aval of an Array. `core.aval` puts its own here: an aval is made of Arrays."""
    raise NotImplementedError


def load_device_layer():
    """It finds backends, which an Array alone does not need."""
    from jitcore import device

    return device
