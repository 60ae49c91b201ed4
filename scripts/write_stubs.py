"""Stubs for type checkers (`*.pyi`), written from the functions: `python scripts/write_stubs.py`.

In: the signatures of the public functions, and `stub_tables.py` for what they do not say; a parameter without
a type is an error. Out: a stub beside each namespace. `tests/test_stubs.py` tells when one is out of date.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import tomllib
import types
import typing
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

import stub_tables as tables  # noqa: E402

MODULES = ("array", "numpy", "numpy.linalg", "numpy.fft", "lax", "random", "nn", "nn.initializers", "ops",
           "scipy.special")
WIDTH = 110

#: What stubs may name, and the import of it.
IMPORTS = {
    "Any": "typing", "ClassVar": "typing", "Literal": "typing", "NamedTuple": "typing", "Protocol": "typing",
    "TypeAlias": "typing", "TypeVar": "typing", "overload": "typing", "Callable": "collections.abc",
    "Collection": "collections.abc", "Iterator": "collections.abc", "Sequence": "collections.abc",
    "EllipsisType": "types",
    "Array": "jitcore.array", "ArrayLike": "jitcore.typing", "AxisLike": "jitcore.typing",
    "DTypeLike": "jitcore.typing", "NestedArrayLike": "jitcore.typing", "ShapeLike": "jitcore.typing",
    "Device": "jitcore.sharding", "ShapedArray": "jitcore.core.jaxpr",
    "KeyDtype": "jitcore.dtypes", "UniqueAll": "jitcore.numpy.sets",
    "UniqueCounts": "jitcore.numpy.sets", "UniqueInverse": "jitcore.numpy.sets",
    "NamespaceInfo": "jitcore.numpy.namespace_info", "Iterable": "collections.abc",
    "PythonUfunc": "jitcore.numpy.vectorizing", "Token": "jitcore.lax.barrier",
}
DEFINITIONS = {
    "_Arrays": "_Arrays: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]] | Sequence[NestedArrayLike]",
    "_KeyLike": "_KeyLike: TypeAlias = Array | np.ndarray[Any, np.dtype[Any]]",
    "_Index": "_Index: TypeAlias = ArrayLike | slice | EllipsisType | tuple[Any, ...] | None",
    "_Number": "_Number: TypeAlias = complex | np.generic | np.ndarray[Any, np.dtype[Any]]",
    "_Container": "_Container: TypeAlias = tuple[Any, ...] | list[Any] | dict[Any, Any]",
    "_C": '_C = TypeVar("_C", bound=_Sized)',
    "_D": '_D = TypeVar("_D", bound=_Dataclass | _PytreeNode | None)',
    **{name: f'{name} = TypeVar("{name}")' for name in ("_T", "_S", "_X", "_Y", "_K")},
}
#: What stands in one stub besides its functions.
EXTRA = {
    "numpy": '''
class ufunc:
    nin: int
    nout: int
    nargs: int
    identity: Any
    __name__: str
    def reduce(self, a: ArrayLike, axis: AxisLike = 0, dtype: DTypeLike | None = None, out: None = None,
               keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array: ...
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None,
                   out: None = None) -> Array: ...
    def outer(self, a: ArrayLike, b: ArrayLike, /) -> Array: ...
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *,
           inplace: bool = True) -> Array: ...
    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None,
                 out: None = None) -> Array: ...

class _Ranges:
    def __getitem__(self, key: Any) -> Array: ...

class _Grids:
    def __getitem__(self, key: Any) -> Any: ...

class _Unary(ufunc):
    def __call__(self, x: ArrayLike, /) -> Array: ...

class _Binary(ufunc):
    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...

class ScalarType(type):
    dtype: np.dtype[Any]
    def __call__(cls, x: NestedArrayLike = 0) -> Array: ...
''',
    "lax": '''
class _Sized(Protocol):  # arrays, tuples, lists, dicts, but no numbers
    def __len__(self) -> int: ...

class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]

class _PytreeNode(Protocol):
    def tree_flatten(self) -> Any: ...
''',
    "nn.initializers": '''
class Initializer(Protocol):
    def __call__(self, key: _KeyLike, shape: ShapeLike, dtype: DTypeLike | None = ...) -> Array: ...
''',
}


def wrap(head: str, parameters: list[str], tail: str) -> str:
    """A signature in lines that go on below the opening parenthesis, or by four spaces if that is too far."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= WIDTH:
        return line
    indent = " " * (len(head) + 1)
    if len(indent) + max(map(len, parameters)) + 1 > WIDTH:
        indent = " " * 4
    lines = [f"{head}("]
    for i, one in enumerate(parameters):
        one += ", " if i < len(parameters) - 1 else f"){tail}"
        if len(lines[-1]) + len(one.rstrip()) > WIDTH:
            lines[-1] = lines[-1].rstrip()
            lines.append(indent)
        lines[-1] += one
    return "\n".join(lines)


def wrap_import(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= WIDTH else wrap(f"from {module} import ", names, "")


def write_default(value) -> str:
    simple = value is None or type(value) in (bool, int, str) or type(value) is tuple and not value
    simple = simple or isinstance(value, float) and len(repr(value)) < 8
    return repr(value) if simple else "..."


def find_type(function: str, name: str, parameter: inspect.Parameter) -> str:
    """The type of a parameter: the function's own, or that of its name."""
    found = parameter.annotation
    if found is inspect.Parameter.empty:
        found = tables.PARAMETERS.get(f"{function}.{name}") or tables.PARAMETERS.get(name)
    if found is None:
        raise LookupError(f"{function}: scripts/stub_tables.py has no type for the parameter {name}")
    found = tables.SPELLINGS.get(found, found)
    if parameter.default is None and "None" not in found and found not in ("Any", "AxisLike"):
        found += " | None"
    return found


def write_parameters(function: str, signature: inspect.Signature, given: dict[str, str]) -> list[str]:
    """The parameters, with types; `given` has those of some in full."""
    out, kind = [], None
    for parameter in signature.parameters.values():
        if parameter.name == "_dot_general":
            continue
        if kind is parameter.POSITIONAL_ONLY and parameter.kind is not kind:
            out.append("/")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        is_first = kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        if parameter.kind is parameter.KEYWORD_ONLY and is_first:
            out.append("*")
        kind = parameter.kind
        name = star + parameter.name
        text = f"{name}: {given.get(name) or find_type(function, name, parameter)}"
        if parameter.default is not inspect.Parameter.empty and name not in given:
            text += f" = {write_default(parameter.default)}"
        out.append(text)
    if kind is inspect.Parameter.POSITIONAL_ONLY:
        out.append("/")
    return out


def find_result(function: str, signature: inspect.Signature) -> str:
    found = signature.return_annotation
    found = "Array" if found is inspect.Signature.empty else found.strip("'")
    return tables.RESULTS.get(function) or tables.SPELLINGS.get(found, found)


def write_function(module: str, name: str, function, head: str = "def ") -> str:
    path = f"{module}.{name}"
    signature = inspect.signature(function)
    head += name
    if path in tables.SIGNATURES:
        texts = tables.SIGNATURES[path]
        for text in texts:
            check_names(path, text, signature)
        parts = [rewrap(head, text) for text in texts]
        return "\n".join(f"@overload\n{part}" if len(parts) > 1 else part for part in parts)
    if path in tables.FLAGS:
        return write_flag(path, head, signature)
    parameters = write_parameters(path, signature, {})
    return wrap(head, parameters, f" -> {find_result(path, signature)}: ...")


def write_flag(path: str, head: str, signature: inspect.Signature) -> str:
    """Overloads of a function whose result depends on a flag."""
    flag, *results = tables.FLAGS[path]
    default = signature.parameters[flag].default
    others = [one for one in signature.parameters.values() if one.name != flag]
    keyword = signature.parameters[flag].replace(kind=inspect.Parameter.KEYWORD_ONLY,
                                                 default=inspect.Parameter.empty)
    by_keyword = signature.replace(parameters=[*others, keyword])
    parts = []
    for value in (default, not default):
        given = {flag: f"Literal[{value}]" + (f" = {value}" if value is default else "")}
        chosen = signature if value is default else by_keyword
        parameters = write_parameters(path, chosen, given)
        parts.append("@overload\n" + wrap(head, parameters, f" -> {results[value]}: ..."))
    parameters = write_parameters(path, by_keyword, {flag: "bool"})
    return "\n".join([*parts, "@overload\n" + wrap(head, parameters, " -> Any: ...")])


def check_names(path: str, text: str, signature: inspect.Signature) -> None:
    """Raises ValueError for a signature of the table with parameters that the function does not have."""
    arguments = ast.parse(f"def f{text}: ...").body[0].args
    found = {one.arg for one in ast.walk(arguments) if isinstance(one, ast.arg)}
    collected = {one.name for one in signature.parameters.values() if one.kind is one.VAR_POSITIONAL}
    unknown = found - set(signature.parameters)
    if unknown and not (collected and len(unknown) == 1):
        raise ValueError(f"{path} has no parameter {unknown}")
    missing = set(signature.parameters) - found - collected
    if any(signature.parameters[name].default is inspect.Parameter.empty for name in missing):
        raise ValueError(f"the signature of {path} lacks {missing}")


def rewrap(head: str, text: str) -> str:
    """A signature of the tables in lines."""
    node = ast.parse(f"def f{text}: ...").body[0]
    inside = ast.unparse(node.args)
    parameters, depth, start = [], 0, 0
    for i, letter in enumerate(inside):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parameters.append(inside[start:i].strip())
            start = i + 1
    parameters.append(inside[start:].strip())
    parameters = [re.sub(r"(\w: .*?[^ ])=(?!=)", r"\1 = ", one) for one in parameters]
    return wrap(head, [one for one in parameters if one], f" -> {ast.unparse(node.returns)}: ...")


def list_names(module) -> list[str]:
    """The public names of a namespace, in order."""
    if hasattr(module, "__all__"):
        return list(dict.fromkeys(module.__all__))
    return [name for name, value in sorted(vars(module).items())
            if not name.startswith("_") and not isinstance(value, types.ModuleType)]


def write_name(module: str, name: str, value) -> str:
    if isinstance(value, types.ModuleType):
        return f"from {value.__name__.rpartition('.')[0]} import {name} as {name}"
    if name in ("ufunc", "ScalarType"):  # in EXTRA
        return ""
    if name in ("c_", "mgrid", "ogrid", "r_"):
        return f"{name}: {'_Grids' if name == 'ogrid' else '_Ranges'}"
    if type(value).__name__ == "ScalarType":
        return f"{name}: ScalarType"
    if typing.get_origin(value) is not None or isinstance(value, types.UnionType):
        return f"from {tables.ALIASES[name]} import {name} as {name}"
    if name == "ndarray":
        return "ndarray: TypeAlias = Array"
    if isinstance(value, type):
        of = f"{value.__name__} as {name}"
        return f"from {value.__module__} import {of}"
    if type(value).__name__ == "Ufunc" and value.nout == 1:
        return f"{name}: {'_Unary' if value.nin == 1 else '_Binary'}"
    if callable(value):
        return write_function(module, name, value)
    if value is None or isinstance(value, (float, str)):
        return f"{name}: {type(value).__name__.replace('NoneType', 'None')}"
    return f"from {type(value).__module__.partition('.')[0]} import {name} as {name}"


def write_classes(module: types.ModuleType) -> list[str]:
    """Results with names that the module defines."""
    return ["\n    ".join([f"\nclass {one.__name__}(NamedTuple):", *(f"{it}: Array" for it in one._fields)])
            for one in vars(module).values()
            if hasattr(one, "_fields") and one.__module__ == module.__name__]


def write_namespace(name: str) -> str:
    module = importlib.import_module(f"jitcore.{name}")
    names = list_names(module)
    lines = [write_name(name, one, getattr(module, one)) for one in names]
    lines = [line for line in lines if line]
    imports = [line for line in lines if line.startswith("from ")]
    body = [line for line in lines if not line.startswith("from ")]
    extra = [*write_classes(module), EXTRA.get(name, "")]
    # Functions call some names of types their own.
    return finish("\n".join([*extra, "", *body]), imports, {"bool", "complex"} & set(names))


def write_array() -> str:
    from jitcore.array import ConcreteArray
    from jitcore.numpy.arrays.methods import METHODS
    from jitcore.numpy.indexing.update import IndexUpdateRef

    update = ["indices_are_sorted: bool = False", "unique_indices: bool = False", "mode: Any = None"]
    first = {"get": [], "apply": ["function: Callable[[Array], ArrayLike]"]}
    ref = ["", "class _IndexUpdateRef:"]
    for name in (one for one in vars(IndexUpdateRef) if not one.startswith("_")):
        value = getattr(IndexUpdateRef, name)
        if inspect.isfunction(value):
            fill = ["fill_value: ArrayLike | None = None"] if name == "get" else []
            parameters = ["self", *first.get(name, ["values: ArrayLike"]), "*", *update, *fill]
            ref.append(wrap(f"    def {name}", parameters, " -> Array: ..."))
    out = [*ref, "", "class _IndexUpdateHelper:",
           "    def __getitem__(self, index: _Index) -> _IndexUpdateRef: ...", "",
           "class Array:", "    __hash__: ClassVar[None]  # type: ignore[assignment]"]
    for name, kind in tables.PROPERTIES.items():
        out += ["    @property", f"    def {name}(self) -> {kind}: ..."]
    for name, text in tables.ARRAY.items():
        line = rewrap(f"    def {name}", text)
        ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        out.append(line + ignored)
    for name in sorted(set(METHODS) - set(tables.ARRAY)):
        signature = inspect.signature(getattr(ConcreteArray, name))
        own = "ravel" if name == "flatten" else name
        rest = signature.replace(parameters=list(signature.parameters.values())[1:])
        parameters = ["self", *write_parameters(f"numpy.{own}", rest, {})]
        if "/" in parameters:
            parameters.remove("/")
        result = find_result(f"numpy.{own}", signature)
        out.append(wrap(f"    def {name}", parameters, f" -> {result}: ..."))
    out += ["", "class ConcreteArray(Array):",
            f"    def __init__(self, data: {tables.NDARRAY}, weak_type: bool = False) -> None: ...", "",
            "class DeviceArray(ConcreteArray):",
            "    def __init__(self, buffer: Any, form: Any) -> None: ...", "",
            "def __getattr__(name: str) -> Any: ..."]
    return finish("\n".join(out), [], set())


def finish(body: str, imports: list[str], shadowed: set[str]) -> str:
    """A stub: imports of what its body names, its definitions, the body."""
    def shadow(text: str) -> str:
        for name in shadowed:
            text = re.sub(rf"(?<!def )(?<=[ \[(]){name}\b", f"_{name}", text)
        return text

    body = shadow(body)
    definitions = [shadow(text) for name, text in DEFINITIONS.items() if re.search(rf"\b{name}\b", body)]
    everything = "\n".join([*definitions, body])
    wanted: dict[str, list[str]] = {}
    defined = set(re.findall(r"^class (\w+)", body, re.MULTILINE)) | {line.split()[-1] for line in imports}
    for name, module in IMPORTS.items():
        if re.search(rf"\b{name}\b", everything) and name not in defined:
            wanted.setdefault(module, []).append(name)
    if shadowed:
        wanted["builtins"] = [f"{name} as _{name}" for name in sorted(shadowed)]
    for line in imports:
        _, module, _, names = line.split(" ", 3)
        wanted.setdefault(module, []).append(names)
    lines = {module: wrap_import(module, sorted(set(names))) for module, names in sorted(wanted.items())}
    ours = [line for module, line in lines.items() if module.startswith("jitcore")]
    third = ["import numpy as np"] if re.search(r"\bnp\.", everything) else []
    third += [line for module, line in lines.items() if module.partition(".")[0] == "numpy"]
    standard = [line for module, line in lines.items()
                if module.partition(".")[0] not in ("numpy", "jitcore")]
    blocks = ["\n".join(block) for block in (standard, third, ours, definitions) if block]
    text = "\n\n".join(['"""Written by scripts/write_stubs.py."""', *blocks, body.strip("\n")])
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


def find_path(name: str) -> Path:
    base = ROOT / "jitcore" / name.replace(".", "/")
    return base / "__init__.pyi" if base.is_dir() else base.with_suffix(".pyi")


def write_facade() -> dict[Path, str]:
    """The stubs of `jitcore.jax`: its modules hold what those of jitcore do."""
    from jitcore import jax

    compared = tomllib.loads((ROOT / "tests" / "names.toml").read_text())["least"]
    modules = {*jax._MODULES, *(name.removeprefix("jax.") for name in compared if name != "jax")}
    modules = {name for name in modules if not name.startswith("scipy.stats.")}  # attributes there
    modules |= {name.rpartition(".")[0] for name in modules if "." in name}
    stubs = {}
    for name in sorted(modules):
        inner = sorted(other for other in modules if other.rpartition(".")[0] == name)
        lasts = [other.rpartition(".")[2] for other in inner]
        lines = ["# ruff: noqa: F403, I001", f"from jitcore.{name} import *",
                 *(f"from jitcore.jax.{name} import {last} as {last}" for last in lasts)]
        path = ROOT / "jitcore" / "jax" / name.replace(".", "/")
        stubs[path / "__init__.pyi" if inner else path.with_suffix(".pyi")] = "\n".join(lines) + "\n"
    names = [name for name in jax.__all__ if name not in jax._MODULES]
    lines = ["# ruff: noqa: I001", "__version__: str", "__version_info__: tuple[int, ...]", "",
             *(f"from jitcore import {name} as {name}" for name in names),
             *(f"from jitcore.jax import {name} as {name}" for name in jax._MODULES)]
    stubs[ROOT / "jitcore" / "jax" / "__init__.pyi"] = "\n".join(lines) + "\n"
    return stubs


def render() -> dict[Path, str]:
    """The text of each stub, by its path."""
    own = {find_path(name): write_array() if name == "array" else write_namespace(name) for name in MODULES}
    return own | write_facade()


if __name__ == "__main__":
    for path, text in render().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
