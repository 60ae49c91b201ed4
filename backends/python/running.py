"""Functions made of written source.

In: `Source`. Out: a function of ndarrays, as Python or compiled by Numba; the text of a file that a person
can copy and run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from jitcore import dtypes
from jitcore.backends.python.writer import Source, join_file, write_function
from jitcore.loopir.program import Program

_DECORATOR = '@njit(error_model="numpy")'


def load_python(source: Source, program: Program) -> Callable[..., list[np.ndarray]]:
    """The function as it stands. Places outside of arrays raise IndexError; new memory holds NaN, or numbers
    that stand out."""
    namespace = {"np": _CheckedNumpy(), "math": _Math, "objmode": _NoCompiler, **source.library}
    function = _execute(source, "", namespace)

    def run(*inputs: np.ndarray) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            return _run_words(lambda *words: function(*(x.view(_Checked) for x in words)), program, inputs)

    return run


def load_numba(source: Source, program: Program) -> Callable[..., list[np.ndarray]]:
    """The function compiled by Numba at its first call."""
    import numba

    namespace = {"np": np, "math": math, "njit": numba.njit, "objmode": numba.objmode, **source.library}
    function = _execute(source, f"{_DECORATOR}\n", namespace)
    return lambda *inputs: _run_words(function, program, inputs)


def _execute(source: Source, decorator: str, namespace: dict) -> Callable:
    parts = [*(decorator + helper for helper in source.helpers), *source.constants, decorator + source.text]
    text = "\n\n".join(parts)
    if "special." in text:
        import scipy.special

        namespace["special"] = scipy.special
    exec(compile(text, f"<jitcore {source.name}>", "exec"), namespace)
    return namespace[source.name]


def _run_words(function: Callable, program: Program, inputs) -> list[np.ndarray]:
    """A call whose 16-bit and narrow dtypes are words. What lies in an input's memory is that input."""
    given = [x.view(f"u{x.dtype.itemsize}") if _is_word(x.dtype) else x for x in inputs]
    results = function(*given)
    results = map(np.asarray, results if isinstance(results, tuple) else (results,))
    results = [result.view(buffer.dtype) if _is_word(buffer.dtype) else result
               for result, buffer in zip(results, program.outputs)]
    if not program.aliases:
        return results
    donated = {_address(x): x for x, b in zip(inputs, program.inputs) if b in program.aliases.values()}
    return [donated.get(_address(result), result) for result in results]


def _is_word(dtype: np.dtype) -> bool:
    return dtypes.is_half(dtype) or dtypes.is_narrow(dtype)


def _address(x: np.ndarray) -> int:
    """Where an array lies. Loops may have swapped the memory of outputs."""
    return x.__array_interface__["data"][0]


def write_numba(program: Program, arguments: Sequence[str] = ()) -> str:
    """A file with the function and all that it needs, decorated by `njit`; what library functions do is told
    in words. arguments: as for `write_function`."""
    source = write_function(program, arguments=arguments)
    functions = [f"{_DECORATOR}\n{function}" for function in (*source.helpers, source.text)]
    names = "njit, objmode" if any("objmode" in function for function in functions) else "njit"
    imports = {r"math\.": "import math", "": "import numpy as np", "njit": f"from numba import {names}",
               r"special\.": "from scipy import special"}
    library = [f"{name}(inputs..., outputs...)" for name in source.library]
    return join_file(imports, library, source.constants, functions)


# -- checked memory ------------------------------------------------------------------------------------------
class _Checked(np.ndarray):
    """Memory whose places are not counted from the end."""

    def _check(self, key) -> None:
        for place in key if isinstance(key, tuple) else (key,):
            if place is not Ellipsis and place < 0:
                raise IndexError(f"place {key} of an array of shape {self.shape}")

    def __getitem__(self, key):
        self._check(key)
        found = super().__getitem__(key)
        return found[()] if key.__class__ is tuple and not key else found

    def __setitem__(self, key, value) -> None:
        self._check(key)
        super().__setitem__(key, value)


class _CheckedNumpy(SimpleNamespace):
    """NumPy, whose `empty` makes memory that is checked, and shows where it was not written."""

    def __getattr__(self, name: str):
        found = getattr(np, name)
        setattr(self, name, found)
        return found

    @staticmethod
    def empty(shape, dtype) -> np.ndarray:
        memory = np.empty(shape, dtype)
        memory[...] = np.nan if memory.dtype.kind in "fc" else 77 if memory.dtype.kind in "iu" else True
        return memory.view(_Checked)


class _Math:
    """`math` as Numba has it: no error says where a function is infinite."""

    erf, erfc = staticmethod(math.erf), staticmethod(math.erfc)

    @staticmethod
    def lgamma(x: float) -> float:
        try:
            return math.lgamma(x)
        except (ValueError, OverflowError):
            return math.inf


class _NoCompiler:
    """`objmode` where all is Python."""

    def __init__(self, **types):
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error) -> None:
        pass
