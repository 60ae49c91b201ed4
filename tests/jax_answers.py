"""JAX, as tests ask it: its answers are data, so that tests need not wait for it.

    from tests.jax_answers import jax

`jax` is used like the package; `ask(lambda jax: ...)` is for operators and methods of its arrays. By default each call gives what JAX gave when the answers were recorded; the arguments
are not looked at, and JAX is not imported. `pytest -m jax` asks JAX itself, compares, and records anew.

In: calls, in the order in which a test makes them. Out: arrays with `weak_type`, numbers, containers of these,
exceptions; functions and contexts that JAX returns are again asked by calls. `tests/answers/` has a file for each
test module, which says the version of JAX. A test without answers asks JAX, or is skipped where there is none.
"""

from __future__ import annotations

import builtins
import collections
import functools
import importlib
import inspect
import json
import lzma
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16
import numpy as np
import pytest

FOLDER = Path(__file__).parent / "answers"


class Answer(np.ndarray):
    """An array that JAX returned."""

    weak_type = False

    def __array_finalize__(self, source: Any) -> None:
        self.weak_type = getattr(source, "weak_type", False)


# -- what is being asked -----------------------------------------------------------------------------------------
class _Asked:
    """The test that is running, and its answers.

    Attributes:
        is_live: whether JAX is asked; depth: of calls of JAX, in which everything is JAX's.
        answers: those of the test, in order; place: how many were given."""

    def __init__(self):
        self.is_live, self.depth = False, 0
        self.test, self.module = "", ""
        self.answers: list = []
        self.place = 0
        self.modules: dict[str, _Module] = {}

    def begin(self, module: str, test: str, is_live: bool) -> None:
        self.module, self.test, self.place = module, test, 0
        known = self.open(module).answers.get(test)
        self.is_live = is_live or known is None
        self.answers = [] if self.is_live else known

    def end(self) -> None:
        if self.is_live and self.answers and self.test:
            self.open(self.module).add(self.test, self.answers)
        self.answers = []

    def open(self, module: str) -> _Module:
        if module not in self.modules:
            self.modules[module] = _Module(FOLDER / f"{module}.xz")
        return self.modules[module]

    def next(self) -> Any:
        if self.place == len(self.answers):
            raise LookupError(f"JAX was not asked so often by {self.test}: run pytest -m jax")
        self.place += 1
        return self.answers[self.place - 1]


asked = _Asked()


class _Module:
    """The answers of one test module. A file is a line of JSON and the bytes of all arrays, compressed."""

    def __init__(self, file: Path):
        self.file, self.answers, self.bytes = file, {}, b""
        self.is_new = False
        if file.exists():
            head, _, self.bytes = lzma.decompress(file.read_bytes()).partition(b"\n")
            self.answers = json.loads(head)["answers"]

    def add(self, test: str, answers: list) -> None:
        self.answers[test], self.is_new = answers, True

    def read(self, offset: int, dtype: str, shape: list, weak_type: bool) -> Answer:
        if dtype == "void":  # of derivatives by integers, which say nothing
            return np.zeros(shape, [("float0", np.void, 0)]).view(Answer)
        dtype = np.dtype(dtype)
        count = int(np.prod(shape, dtype=int))
        found = np.frombuffer(self.bytes, dtype, count, offset).reshape(shape).copy().view(Answer)
        found.weak_type = weak_type
        return found

    def write(self, tests: set[str]) -> None:
        """Stores the answers of these tests: others are gone."""
        blob = bytearray()
        kept = {test: [_pack(answer, blob, self) for answer in answers]
                for test, answers in sorted(self.answers.items()) if test in tests}
        head = json.dumps({"jax": importlib.import_module("jax").__version__, "answers": kept})
        FOLDER.mkdir(exist_ok=True)
        self.file.write_bytes(lzma.compress(head.encode() + b"\n" + bytes(blob)))


def _pack(answer: Any, blob: bytearray, module: _Module) -> Any:
    """An answer with its arrays in the blob."""
    if isinstance(answer, dict) and "array" in answer:
        array = answer["array"]
        if isinstance(array, list):  # as it was read
            array = module.read(*array)
        place = [len(blob), array.dtype.name, list(array.shape), bool(getattr(array, "weak_type", False))]
        blob += np.ascontiguousarray(array).tobytes()
        return {"array": place}
    if isinstance(answer, dict):
        return {key: _pack(value, blob, module) for key, value in answer.items()}
    return [_pack(one, blob, module) for one in answer] if isinstance(answer, list) else answer


# -- answers -------------------------------------------------------------------------------------------------------
def _encode(value: Any) -> Any:
    """A value as JSON, with arrays as they are; {"asked": ...} for what is asked by calls."""
    if value is None or isinstance(value, (bool, str)):
        return {"value": value}
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):  # also of a class of JAX's
        return {"value": (int if isinstance(value, int) else float)(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.dtype):
        return {"dtype": value.name}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"type": value.__name__}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(one) for key, one in value.items()}}
    if isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        return {
            type(value).__name__ if fields is None else "named": [_encode(one) for one in value],
            "fields": fields,
        }
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        try:
            array = np.asarray(value)
        except TypeError:  # keys of random numbers
            return {"asked": type(value).__name__, "shape": list(value.shape)}
        if array.dtype != object:
            array = array.view(Answer) if array.ndim else np.array(array).view(Answer)
            array.weak_type = bool(getattr(value, "weak_type", False))
            return {"array": array}
    if type(value).__name__ == "ShapeDtypeStruct":
        return {"type of": [list(value.shape), np.dtype(value.dtype).name, bool(value.weak_type)]}
    return {"asked": type(value).__name__}


def encode_result(value: Any) -> Any:
    """A value, or an exception that was raised, as it is kept; without the text of the exception."""
    if not isinstance(value, Exception):
        return _encode(value)
    kinds = [kind.__name__ for kind in type(value).__mro__]
    return {"raised": [type(value).__name__, kinds, str(value).split("\n")[0][:80]]}


def _decode(code: dict) -> Any:
    ((kind, content), *rest) = code.items()
    if kind == "value":
        return content
    if kind == "complex":
        return complex(*content)
    if kind == "dtype":
        return np.dtype(content)
    if kind == "type":
        return np.dtype(content).type
    if kind == "dict":
        return {key: _decode(one) for key, one in content.items()}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(_decode, content))
    if kind == "named":
        return collections.namedtuple("Answers", rest[0][1])(*map(_decode, content))
    if kind == "array":
        return asked.open(asked.module).read(*content)
    if kind == "type of":
        shape, dtype, weak_type = content
        return types.SimpleNamespace(shape=tuple(shape), dtype=np.dtype(dtype), weak_type=weak_type)
    if kind == "raised":
        raise _make_error(*content)
    found = _Jax(content)
    if rest:
        found.shape = tuple(rest[0][1])
    return found


def _make_error(name: str, bases: list[str], text: str) -> Exception:
    found = [kind for kind in (getattr(builtins, base, None) for base in bases) if isinstance(kind, type)]
    return (found[0] if found and bases[0] == name else type(name, tuple(found[:1]), {}))(text)


class _Jax:
    """A part of JAX, or something that it returned. real: itself, where JAX is asked."""

    def __init__(self, path: str, real: Any = None):
        self._path, self._found = path, real

    @property
    def _real(self) -> Any:
        if self._found is None:
            root = pytest.importorskip("jax")
            root.config.update("jax_platforms", "cpu")
            self._found = functools.reduce(_find, filter(None, self._path.split(".")), root)
        return self._found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._path and name == "Array":
            return self._real.Array if asked.is_live else Answer
        if asked.depth:
            return _find(self._real, name)
        if not asked.is_live:
            return _Jax(f"{self._path}.{name}" if self._path else name)
        found = _find(self._real, name)
        is_part = isinstance(found, types.ModuleType) or callable(found)
        return _Jax(f"{self._path}.{name}" if self._path else name, found) if is_part else found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not asked.is_live:
            return _decode(asked.next())
        args, kwargs = _unwrap(args), _unwrap(kwargs)
        if asked.depth:
            return self._real(*args, **kwargs)
        asked.depth += 1
        try:
            found = self._real(*args, **kwargs)
        except Exception as error:
            bases = [kind.__name__ for kind in type(error).__mro__]
            asked.answers.append({"raised": [type(error).__name__, bases, str(error)]})
            raise
        finally:
            asked.depth -= 1
        asked.answers.append(_encode(found))
        return _wrap(found)

    def __enter__(self) -> Any:
        return self._real.__enter__() if asked.is_live else None

    def __exit__(self, *error: Any) -> Any:
        return self._real.__exit__(*error) if asked.is_live else None


def ask(question: Callable[[Any], Any]) -> Any:
    """The answer of JAX to a question, a function of it: for what is more than one call."""
    return _Jax("ask", lambda: question(jax._real))()


def list_parameters(function: _Jax) -> list[str]:
    """The names of the parameters of a function of JAX's."""
    if not asked.is_live:
        return _decode(asked.next())
    found = list(inspect.signature(function._real).parameters)
    asked.answers.append(_encode(found))
    return found


def _wrap(value: Any) -> Any:
    """What JAX returned, with what is asked by calls, functions and contexts, as a part of JAX."""
    if type(value) in (list, tuple):
        return type(value)(map(_wrap, value))
    is_asked = "asked" in _encode(value) and not hasattr(value, "dtype")
    return _Jax(f"<{type(value).__name__}>", value) if is_asked else value


def _find(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        if not isinstance(owner, types.ModuleType):
            raise
        return importlib.import_module(f"{owner.__name__}.{name}")


def _unwrap(value: Any) -> Any:
    if isinstance(value, _Jax):
        return value._real
    if type(value) in (list, tuple):
        return type(value)(map(_unwrap, value))
    return {key: _unwrap(one) for key, one in value.items()} if type(value) is dict else value


jax = _Jax("")
