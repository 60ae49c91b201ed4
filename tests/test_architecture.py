"""One direction of imports: a module imports only what stands before it in the data flow."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: The layers, lowest first; the names in one row may import each other.
LAYERS = (
    ("errors",),
    ("process",),
    ("docstrings",),
    ("hypertext",),
    ("config",),
    ("caches",),
    ("events",),
    ("profiler",),
    ("sharding",),
    ("dtypes",),
    ("tree_util", "tree"),
    ("array", "typing"),
    ("core",),
    ("transforms",),
    ("lax",),
    ("numpy",),
    ("random", "nn", "ops", "image", "scipy", "flatten_util", "einops", "test_util"),
    ("debug", "distributed", "ref", "ad_checkpoint", "custom_batching", "custom_derivatives"),
    ("rewriter",),
    ("numpy_semantics",),
    ("passes",),
    ("loopir",),
    ("schedule",),
    ("dispatch",),
    ("device",),
    ("experimental",),
    ("stages",),
    ("jitted", "chunked"),
    ("export",),
    ("extend",),
    ("autojitted",),
    ("api",),
    ("scripts",),
    ("notebooks",),
    ("jax",),
    ("cli", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

#: Imports upwards inside a function, run when it is first called, with the reason.
LAZY_EXCEPTIONS = {
    ("array", "device"): "an Array knows the device that it is on",
    ("core", "dispatch"): "an operation on a device is a program there",
}

#: Modules whose functions import, with the reason; all others import at their top, what is optional or takes long to
#: load as a `LazyModule`.
FUNCTIONS_IMPORT = {
    "backends.cpu.backend": "files for Numba are rarely asked for",
    "backends.cpu.compiler": "rendering loads llvmlite; what there is code for is kept on disk",
    "backends.cpu.machine.host": "what LLVM knows of the machine is kept on disk",
    "backends.cpu.routines": "what libraries need of routines is registered before they are loaded",
    "backends.cuda": "LLVM and the device in software are loaded where they are used",
    "backends.cuda.render.nvvm": "Numba's CUDA target is optional",
    "backends.cuda.runtime.driver": "cuda-bindings are optional",
    "backends.cuda.runtime.linking": "nvjitlink is optional",
    "backends.llvm.options": "a process without compiler reads options",
    "backends.python.running": "Numba is optional, and compiles code with SciPy's functions",
    "backends.xla.client": "JAX has these modules in different places",
    "jitcore.__main__": "a script that is run needs no parser of arguments",
    "jitcore.api": "autojit and rewrite read bytecode, and are loaded where they are asked for",
    "jitcore.array": "an Array knows the device that it is on",
    "jitcore.jax": "flags are loaded where the environment sets one by JAX's name",
    "jitcore.cli.run": "a script of which nothing is told needs neither",
    "jitcore.core.trace": "an operation on a device is a program of dispatch",
    "jitcore.dispatch.backend": "entry points take long to load",
    "jitcore.dispatch.tracing": "rewriting reads bytecode, and is loaded where it is asked for",
    "jitcore.distributed": "JAX is optional",
    "jitcore.scripts.sessions.runner": "a script that cannot be watched needs no sampler",
    "jitcore.scripts.running": "only exceptions need it",
    "jitcore.scripts.sampling": "the workshop is loaded when something is hot",
    "jitcore.scripts.worker": "the compiler is loaded when the process says that it is there",
}
MOST_IMPORTS_IN_FUNCTIONS = 40


def list_modules() -> list[Path]:
    return sorted((ROOT / "jitcore").rglob("*.py"))


class RemoveTypeChecking(ast.NodeTransformer):
    """Drops the blocks that only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else node


@functools.cache
def find_imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """(module of jitcore, whether it is imported inside a function) for each import that a file executes."""
    tree = RemoveTypeChecking().visit(ast.parse(path.read_text(encoding="utf-8")))
    lazy = {id(inner) for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for inner in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in lazy) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the layer"
            for alias in node.names:
                name = f"jitcore.{alias.name}" if node.module == "jitcore" else node.module or ""
                found.append((name, id(node) in lazy))
    return tuple(found)


def find_layer(module: str) -> str | None:
    """The row name of a module of jitcore; None for others and for the package itself."""
    parts = module.split(".")
    return parts[1] if parts[0] == "jitcore" and len(parts) > 1 else None


@pytest.mark.parametrize("path", list_modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    own = find_layer(".".join(path.relative_to(ROOT).with_suffix("").parts))
    if own == "__init__":  # the package names its public objects lazily
        assert not [module for module, lazy in find_imports(path) if module.startswith("jitcore")]
        return
    assert own in LEVEL, f"{own} has no layer: add it to LAYERS"
    for module, lazy in find_imports(path):
        target = find_layer(module)
        if target is None or target == "__version__" or module == "jitcore.backends":  # their table
            continue
        assert target != "backends", f"{path} imports a backend; they are found by their names"
        assert target in LEVEL, f"{path} imports {module}, which has no layer"
        if LEVEL[target] > LEVEL[own]:
            assert lazy and (own, target) in LAZY_EXCEPTIONS, f"{path} imports upwards: {module}"


def test_no_exception_is_left_over():
    found = set()
    for path in list_modules():
        own = find_layer(".".join(path.relative_to(ROOT).with_suffix("").parts))
        found |= {(own, find_layer(module)) for module, lazy in find_imports(path) if lazy}
    assert set(LAZY_EXCEPTIONS) <= found


def test_backends_import_no_public_layer():
    for path in sorted((ROOT / "backends").rglob("*.py")):
        for module, _ in find_imports(path):
            assert find_layer(module) not in ("api", "jitted", "stages"), f"{path} imports {module}"


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_imports_are_sorted():
    """As `isort .` leaves them."""
    isort = pytest.importorskip("isort")
    config = isort.Config(settings_path=str(ROOT))
    paths = [path for room in ("jitcore", "backends", "tests", "benchmarks", "docs") for path in (ROOT / room).rglob("*.py")]
    assert not [path for path in paths if not config.is_skipped(path) and not isort.check_file(path, config=config)]


def count_imports_in_functions(path: Path) -> int:
    """Of statements that are executed."""
    tree = RemoveTypeChecking().visit(ast.parse(path.read_text(encoding="utf-8")))
    return len({inner for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom))})


def test_functions_import_for_a_reason():
    paths = [*list_modules(), *sorted((ROOT / "backends").rglob("*.py"))]
    found = {name_module(path): count_imports_in_functions(path) for path in paths
             if path.relative_to(ROOT).parts[:2] != ("jitcore", "backends")}
    assert {name for name, count in found.items() if count} == set(FUNCTIONS_IMPORT)
    assert sum(found.values()) <= MOST_IMPORTS_IN_FUNCTIONS


#: Rooms whose numbers that only measurement explains stand in a module `tuning` and nowhere else, with the numbers
#: that stand where they are used, as something else explains them.
TUNED = {
    "jitcore/schedule": {},
    "backends/cpu": {
        "tables of operating systems, CPython, NumPy, ELF and TBB": {
            "_ABSOLUTE_64", "_ALLOC", "_ALLOCATED", "_CALL", "CODE_OFFSET", "_CONTIGUOUS", "DATA_OFFSET", "DTYPE_OFFSET", "_EXECUTABLE",
            "FLAGS_OFFSET", "ITEMS_OFFSET", "NDIM_OFFSET", "_NEW_ARRAY", "SHAPE_OFFSET", "SIZE_OFFSET", "TYPE_OFFSET", "_FIRST_RESERVED", "_FUNCTION", "_GLOBAL", "_JUMP_SIZE",
            "_METH_FASTCALL", "_NOBITS", "_OLDEST_TBB", "_PROGBITS", "_REL", "_RELA", "_RELATIVE_32", "_RELATIVE_64",
            "_RELOCATABLE", "_SET_HANDLER", "_SLOT_32", "_SYMTAB", "_THREAD_LOCAL", "_THREAD_LOCAL_SYMBOL",
            "_UNDEFINED", "_UNITS", "_WRITABLE", "_X86_64"},
        "forms of what is stored and called": {
            "DEFAULT_OPT_LEVEL", "FRAME_SIZE", "INSIDE_OFFSET", "MAX_ARRAYS", "PLACE_OFFSET", "RAISED", "_FORMAT"},
        "tables in memory that machine code reads: their fields, and how many rows there is room for": {
            "ITEM_BYTES", "ITEM_DIMS", "MAX_COMPARED", "MAX_THREADS", "MAX_WORKERS", "PACK_AT", "REST_BYTES", "SEGMENT_DIMS", "TILES_AT",
            "TILE_BYTES", "_MAX_BLOCKS", "_PLACE_BYTES", "_SLOTS"},
        "SEGMENT_BYTES: of a row of such a table; and pieces of registers, as AVX has them": {"SEGMENT_BYTES"},
        "cache lines, in bytes and words, and pages": {
            "LINE_BYTES", "_ALIGNMENT", "_BLOCK_UNIT", "_CACHE_LINE", "_CACHE_PAGE", "_HUGE_PAGE", "_LINE", "_LINES_BITS",
            "_LINE_BYTES"},
        "instruction sets: registers, their parts, masks, latency of multiply-adds": {
            "MIN_BYTES", "MIN_VECTOR_BYTES", "_EXCLUSIVE_OR", "_LATENCY_ROWS", "_MASKED_BYTES", "_MOST_ROWS", "_VECTORS"},
        "padding that holds a tile of registers": {"PADDED_UNIT", "PADDING", "PANEL_BYTES"},
        "LAPACK's letters and blocks": {"_BLOCK", "_SIZES"},
        "accuracy of long sums": {"MIN_ALONG", "MIN_DOWN"},
        "numbers that make arithmetic simpler": {"_SIMPLE"},
        "bits of a place beside a key": {"_PLACES"},
        "what the roofline is measured with": {"_LEAST_BYTES", "_MATRIX", "_MOST_BYTES", "_RUNS"},
    },
}


def is_number(node: ast.AST) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(node, (ast.Tuple, ast.Set, ast.Dict)):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
        return bool(parts) and all(map(is_number, parts))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
        return len(node.args) > 1  # with one, names are numbered
    return all(isinstance(part, (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
               or isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in ast.walk(node))


def list_numbers(path: Path) -> set[str]:
    """Names that a module gives to numbers."""
    nodes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body
             if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and is_number(node.value)]
    return {part.id for node in nodes for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for part in ast.walk(target) if isinstance(part, ast.Name)}


@pytest.mark.parametrize("room, others", TUNED.items())
def test_numbers_of_measurement_stand_in_one_record(room, others):
    paths = [path for path in sorted((ROOT / room).rglob("*.py")) if path.name != "tuning.py"]
    assert set().union(*map(list_numbers, paths)) == set().union(*others.values())


def test_tuning_of_processors_is_complete():
    """Each number is read, and says beside it what it is and how it was found."""
    path = ROOT / "backends/cpu/machine/tuning.py"
    text = path.read_text(encoding="utf-8")
    records = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    fields = [field.target.id for record in records for field in record.body if isinstance(field, ast.AnnAssign)]
    others = "\n".join(other.read_text(encoding="utf-8") for other in (ROOT / "backends/cpu").rglob("*.py") if other != path)
    read = set(re.findall(r"\.(\w+)", others))
    assert len(fields) > 100 and set(fields) - read <= {record.name.lower() for record in records}
    assert not re.search(r"^(?:from|import) (?!typing)", text, re.MULTILINE)
