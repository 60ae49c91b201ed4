"""Types: stubs are up to date and have every public name, results are what they say, and users' files are judged
rightly by mypy (`tests/typing/check.py`; the tox environments `types` and `types-pyright` run it on the wheel)."""

import ast
import importlib
import os
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest

import jitcore
import jitcore.numpy as jnp
from jitcore import lax, ops, random
from jitcore.scipy import special

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
import write_stubs  # noqa: E402

STUBS = write_stubs.render()
NAMESPACES = write_stubs.MODULES[1:]


@pytest.mark.parametrize("path, text", STUBS.items(), ids=lambda x: str(x.relative_to(ROOT)) if isinstance(x, Path) else "")
def test_stubs_are_up_to_date(path, text):
    assert path.read_text(encoding="utf-8") == text, "run python scripts/write_stubs.py"


def read_stub(namespace):
    return ast.parse(write_stubs.find_path(namespace).read_text(encoding="utf-8"))


def list_names(tree):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_stub_has_every_public_name(namespace):
    module = importlib.import_module(f"jitcore.{namespace}")
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")]
    assert len(names) > 3 and set(names) <= set(list_names(read_stub(namespace)))


def test_stub_of_array_has_every_method():
    node = next(node for node in read_stub("array").body if getattr(node, "name", None) == "Array")
    names = {name for name in dir(jnp.zeros(3)) if not name.startswith("_")}
    assert {one.name for one in node.body if isinstance(one, ast.FunctionDef) if one.name[0] != "_"} == names


# -- results -------------------------------------------------------------------------------------------------
FLOATS = jnp.asarray(np.array([[2, 1], [1, 3]], np.float32))
VECTOR, INTEGERS, KEY = FLOATS[0], jnp.asarray([2, 1, 0]), random.key(0)
KERNEL = jnp.ones((1, 1, 4)), jnp.ones((1, 1, 4))
#: Arguments by the types of parameters, tried in order until a call succeeds.
SAMPLES = [{"ArrayLike": array, "NestedArrayLike": array, "AxisLike": 0, "int": 1, "ShapeLike": shape, "DTypeLike": dtype,
            "_KeyLike": KEY, "_Arrays": [array, array], "Sequence[int]": (0,), "Callable[..., Any]": lambda x, *rest: x,
            "int | Sequence[Any]": 1, "int | Sequence[int]": (0,), "Any": array, "_T": array, "_K": KEY, "float": 1.0, "int | ArrayLike": array,
            "int | Sequence[int] | Array | np.ndarray": 1, "Sequence[ArrayLike] | ArrayLike": (0,), "int | None": 0}
           for dtype in ("float32", "int32")
           for shape in ((2, 2), 0, (1,))
           for array in (FLOATS, VECTOR, VECTOR + 1j, INTEGERS, jnp.stack([INTEGERS] * 2), INTEGERS > 0, 1, 1 + 1j,
                         INTEGERS.astype("uint32"), random.key_data(KEY), jnp.ones((1, 1, 1)))]
#: Calls of functions that take arguments of a kind of their own.
CALLS = {
    "lax.after_all": lax.after_all, "lax.rng_bit_generator": lambda: lax.rng_bit_generator(jnp.zeros(4, "uint32"), (2,)),
    "numpy.compress": lambda: jnp.compress(VECTOR > 1, VECTOR), "numpy.einsum": lambda: jnp.einsum("ij->i", FLOATS),
    "numpy.einsum_path": lambda: jnp.einsum_path("ij->i", FLOATS), "numpy.frombuffer": lambda: jnp.frombuffer(b"12345678"),
    "numpy.fromstring": lambda: jnp.fromstring("1 2", sep=" "), "numpy.put": lambda: jnp.put(VECTOR, 0, 1, inplace=False),
    "numpy.fill_diagonal": lambda: jnp.fill_diagonal(FLOATS, 1, inplace=False),
    "numpy.place": lambda: jnp.place(VECTOR, VECTOR > 1, 1, inplace=False), "numpy.gradient": lambda: jnp.gradient(INTEGERS),
    "numpy.put_along_axis": lambda: jnp.put_along_axis(VECTOR, INTEGERS[1:], 1, 0, inplace=False),
    "numpy.piecewise": lambda: jnp.piecewise(VECTOR, [VECTOR > 1], [1.0, 2.0]), "numpy.clip": lambda: jnp.clip(VECTOR, 0, 1),
    "numpy.dsplit": lambda: jnp.dsplit(jnp.ones((1, 1, 2)), 2), "numpy.histogramdd": lambda: jnp.histogramdd(FLOATS),
    "numpy.unpackbits": lambda: jnp.unpackbits(VECTOR.astype("uint8")),
    "numpy.polydiv": lambda: jnp.polydiv(INTEGERS, VECTOR), "numpy.result_type": lambda: jnp.result_type(VECTOR, "int8"),
    "numpy.ravel_multi_index": lambda: jnp.ravel_multi_index((1, 1), (2, 2)), "numpy.unravel_index": lambda:
    jnp.unravel_index(1, (2, 2)), "numpy.linalg.tensorsolve": lambda: jnp.linalg.tensorsolve(FLOATS, VECTOR),
    "numpy.linalg.tensorinv": lambda: jnp.linalg.tensorinv(FLOATS, 1), "lax.fft": lambda: lax.fft(VECTOR + 1j, "fft", (2,)),
    "lax.dynamic_slice": lambda: lax.dynamic_slice(VECTOR, (0,), (1,)), "lax.bitcast_convert_type":
    lambda: lax.bitcast_convert_type(VECTOR, "int32"), "lax.convert_element_type": lambda:
    lax.convert_element_type(VECTOR, "int32"), "lax.pad": lambda: lax.pad(VECTOR, 0.0, [(1, 1, 0)]),
    "lax.dynamic_update_slice": lambda: lax.dynamic_update_slice(VECTOR, VECTOR[:1], (0,)),
    "lax.dynamic_update_slice_in_dim": lambda: lax.dynamic_update_slice_in_dim(VECTOR, VECTOR[:1], 0, 0),
    "lax.dynamic_update_index_in_dim": lambda: lax.dynamic_update_index_in_dim(VECTOR, VECTOR[0], 0, 0),
    "lax.dot_general": lambda: lax.dot_general(FLOATS, FLOATS, (((1,), (0,)), ((), ()))), "lax.select": lambda:
    lax.select(VECTOR > 1, VECTOR, VECTOR), "lax.select_n": lambda: lax.select_n(VECTOR > 1, VECTOR, VECTOR),
    "lax.split": lambda: lax.split(VECTOR, (1, 1)), "lax.slice_in_dim": lambda: lax.slice_in_dim(VECTOR, 0, 1),
    "lax.transpose": lambda: lax.transpose(FLOATS, (1, 0)), "lax.conv": lambda: lax.conv(*KERNEL, (1,), "SAME"),
    "lax.conv_general_dilated": lambda: lax.conv_general_dilated(*KERNEL, (1,), "SAME"),
    "lax.conv_transpose": lambda: lax.conv_transpose(*KERNEL, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH")),
    "lax.conv_with_general_padding": lambda: lax.conv_with_general_padding(*KERNEL, (1,), "SAME", None, None),
    "lax.conv_dimension_numbers": lambda: lax.conv_dimension_numbers((1, 1, 4), (1, 1, 4), ("NCW", "OIW", "NCW")),
    **{f"lax.reduce_window_{kind}": lambda kind=kind: getattr(lax, f"reduce_window_{kind}")(VECTOR, (1,), (1,))
       for kind in ("max", "min", "sum")},
    "lax.lu_pivots_to_permutation": lambda: lax.lu_pivots_to_permutation(INTEGERS, 3),
    "lax.dynamic_index_in_dim": lambda: lax.dynamic_index_in_dim(VECTOR, 0),
    "lax.dynamic_slice_in_dim": lambda: lax.dynamic_slice_in_dim(VECTOR, 0, 1), "lax.full": lambda: lax.full((2,), 1.0), "lax.raise_if": lambda: lax.raise_if(False, ValueError()),
    "lax.padtype_to_pads": lambda: lax.padtype_to_pads((4,), (2,), (1,), "SAME"), "lax.switch": lambda:
    lax.switch(0, [jnp.sin, jnp.cos], VECTOR), "lax.cond": lambda: lax.cond(True, jnp.sin, jnp.cos, VECTOR),
    **{f"ops.segment_{kind}": lambda kind=kind: getattr(ops, f"segment_{kind}")(VECTOR, INTEGERS[1:])
       for kind in ("max", "min", "prod", "sum")},
    "scipy.special.bessel_jn": lambda: special.bessel_jn(VECTOR, v=1),
    "scipy.special.multigammaln": lambda: special.multigammaln(VECTOR, 1),
    "nn.initializers.variance_scaling": lambda:
    importlib.import_module("jitcore.nn.initializers").variance_scaling(1.0, "fan_in", "normal"),
}
#: Functions that are called inside others, or with what other tests make: nothing here calls them.
NOT_CALLED = set("""numpy.vectorize lax.all_gather lax.all_to_all lax.axis_index lax.axis_size lax.custom_linear_solve
    lax.custom_root lax.draw lax.gather lax.pcast lax.pmax lax.pmean lax.pmin lax.ppermute lax.pshuffle lax.psum
    lax.psum_scatter lax.pvary lax.reduce lax.reduce_window lax.scatter lax.scatter_add lax.scatter_max lax.scatter_min
    lax.scatter_mul lax.scatter_sub lax.with_sharding_constraint
    numpy.fromfile numpy.fromiter numpy.load numpy.save numpy.savez lax.cholesky_update lax.composite
    lax.conv_general_dilated_local lax.conv_general_dilated_patches lax.conv_general_permutations
    lax.conv_general_shape_tuple lax.conv_shape_tuple lax.conv_transpose_shape_tuple lax.pbroadcast
    lax.platform_dependent lax.pswapaxes lax.ragged_dot lax.ragged_dot_general lax.reduce_window_shape_tuple
    lax.scatter_apply lax.tridiagonal_solve""".split())


def find_arguments(function, node):
    """The first arguments that a function of a stub takes, and the types of their parameters."""
    positional = [*node.args.posonlyargs, *node.args.args]
    required = positional[:len(positional) - len(node.args.defaults)]
    required += [node.args.vararg] * 2 if node.args.vararg else []
    kinds = [ast.unparse(one.annotation).replace("_bool", "bool").replace(" | None", "") for one in required]
    for sample in SAMPLES if set(kinds) <= set(SAMPLES[0]) else ():
        arguments = [sample[kind] for kind in kinds]
        if succeeds(function, arguments):
            return arguments, kinds
    raise AssertionError(f"no arguments for {node.name}: {kinds}")


def succeeds(function, arguments) -> bool:
    try:
        function(*arguments)
    except (TypeError, ValueError, NotImplementedError, IndexError, AttributeError, np.linalg.LinAlgError, AssertionError):
        return False
    return True


def fits(value, kind: ast.expr) -> bool:
    """Whether a result is of a type that a stub says."""
    text = ast.unparse(kind)
    if text in ("Any", "_T", "_K", "_T | _S", "Initializer"):
        return text != "Initializer" or callable(value)
    if text in ("Array", "None"):
        return isinstance(value, jitcore.Array) if text == "Array" else value is None
    if isinstance(kind, ast.BinOp):
        return fits(value, kind.left) or fits(value, kind.right)
    if not isinstance(kind, ast.Subscript):
        return type(value).__name__ == text.removeprefix("_")
    of, kinds = ast.unparse(kind.value), getattr(kind.slice, "elts", [kind.slice])
    if of in ("tuple", "list"):
        repeated = of == "list" or ast.unparse(kinds[-1]) == "..."
        kinds = kinds[:1] * len(value) if repeated else kinds
        return type(value).__name__ == of and len(kinds) == len(value) and all(map(fits, value, kinds))
    return isinstance(value, {"np.dtype": np.dtype, "np.finfo": object, "np.iinfo": np.iinfo}[of])


def check_lists(name, function, arguments, kinds):
    """Lists are taken in the place of arrays where stubs say so, and nowhere else."""
    for i, kind in enumerate(kinds):
        if kind in ("ArrayLike", "NestedArrayLike") and np.ndim(arguments[i]):
            lists = [np.asarray(one).tolist() if at == i else one for at, one in enumerate(arguments)]
            assert succeeds(function, lists) == (kind == "NestedArrayLike"), (name, i, kind)


@pytest.mark.parametrize("namespace", NAMESPACES)
@pytest.mark.filterwarnings("ignore")
def test_results_are_what_stubs_say(namespace):
    module = importlib.import_module(f"jitcore.{namespace}")
    for node in read_stub(namespace).body:
        name = f"{namespace}.{getattr(node, 'name', '')}"
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and name not in NOT_CALLED:
            if name in CALLS:
                value = CALLS[name]()
            else:
                function = getattr(module, node.name)
                arguments, kinds = find_arguments(function, node)
                value = function(*arguments)
                check_lists(name, function, arguments, kinds)
            assert fits(value, node.returns), (name, ast.unparse(node.returns), type(value))


# -- users' files --------------------------------------------------------------------------------------------
def load_users_file(name, monkeypatch):
    """A right file as a module, whose `assert_type` looks at the values."""

    def check_type(value, kind):
        origin = typing.get_origin(kind) or kind
        if kind is not typing.Any:
            assert isinstance(value, origin), (value, kind)
            for part, of in zip(value, typing.get_args(kind)) if origin is tuple and ... not in typing.get_args(kind) else ():
                check_type(part, of)
        return value

    monkeypatch.setattr(typing, "assert_type", check_type)
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "typing" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MATRIX = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)
ARGUMENTS = {
    "arithmetic": lambda x: (jnp.arange(1, 4), np.ones(3), 3), "elements": lambda x: (x, x > 1), "methods": lambda x: (x,),
    "numpy_functions": lambda x: (x, MATRIX), "linear_algebra": lambda x: (x, x), "loops": lambda x: (x, x[0], 1),
    "random_numbers": lambda x: (random.key(0), random.PRNGKey(0)), "network_functions": lambda x: (x,),
    "transformations": lambda x: (x[0], {"w": x[0]}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_right_calls_run(name, monkeypatch):
    getattr(load_users_file("good_calls", monkeypatch), name)(*ARGUMENTS[name](jnp.asarray(MATRIX)))


@pytest.mark.parametrize("name", ["good_training", "good_solver"])
def test_right_script_runs(name, monkeypatch):
    load_users_file(name, monkeypatch).main()


def test_mypy_finds_what_is_marked():
    run = subprocess.run([sys.executable, ROOT / "tests" / "typing" / "check.py"], capture_output=True, text=True,
                         cwd=ROOT / "docs", env={**os.environ, "MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": os.devnull})
    assert run.stdout == "as marked\n", run.stdout + run.stderr
