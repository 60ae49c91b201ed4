"""Docstrings of public functions: each has an example that prints what it says, and all sections.

Examples stand in `jitcore/docstrings/*.txt`; digits may differ in the last places from one processor to another.
"""

from __future__ import annotations

import contextlib
import copy
import doctest
import functools
import importlib
import inspect
import io
import pickle
import pydoc
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy
import pytest

import jitcore
from jitcore import docstrings

FOLDER = Path(docstrings.__file__).parent
TABLES = sorted(path.stem for path in FOLDER.glob("*.txt") if path.stem != "parameters")
#: Functions that have no example yet, one a line. The list only gets shorter, but for names that are added to
#: the package at the same time: write a block in the module's table instead.
WAITING = set((Path(__file__).parent / "docstrings_waiting.txt").read_text().split())
PRELUDE = """
import dataclasses
import numpy
import jitcore, jitcore.numpy as jnp, jitcore.lax.linalg
from jitcore import ad_checkpoint, experimental, test_util
from jitcore import debug, flatten_util, image, lax, nn, ops, random, ref, tree, tree_util
from jitcore.scipy import fft as sfft, integrate, linalg as slinalg, ndimage, optimize, signal, special, stats
from jitcore.scipy.cluster.vq import vq
from jitcore.scipy.sparse import linalg as sparse
"""
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


class SameNumbers(doctest.OutputChecker):
    """Text is equal but for spaces, numbers are close."""

    def check_output(self, want, got, flags):
        texts = [re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (want, got)]
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (want, got)]
        return texts[0] == texts[1] and numpy.allclose(*numbers, rtol=2e-5, atol=1e-6)


def find_module(table):
    return jitcore if table == "jitcore" else importlib.import_module(f"jitcore.{table}")


def list_public_functions():
    """(module, name) of each public function of the modules that have a table, and of those in them."""
    for table in TABLES:
        module = find_module(table)
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            value = getattr(module, name)
            if inspect.ismodule(value) and value.__name__.startswith("jitcore.scipy.stats."):
                yield from ((value, inner) for inner in value.__all__)
            elif callable(value) and not isinstance(value, (type, types.ModuleType, types.GenericAlias)):
                if value.__doc__ and not type(value).__name__.startswith("_"):
                    yield module, name


@pytest.fixture(scope="module")
def prelude():
    names = {}
    exec(PRELUDE, names)
    return names


@pytest.mark.parametrize("table", TABLES)
def test_examples_print_what_they_say(table, prelude):
    runner = doctest.DocTestRunner(SameNumbers(), verbose=False)
    report, parser = io.StringIO(), doctest.DocTestParser()
    for name, entry in docstrings.read_table(table).items():
        assert ">>>" in entry.example, name
        test = parser.get_doctest(entry.example, dict(prelude), f"{table}.{name}", f"{table}.txt", 0)
        with contextlib.redirect_stdout(report):
            runner.run(test, out=report.write)
    assert not runner.failures, report.getvalue()[:4000]


def test_every_public_function_has_an_example():
    has_example = {}
    for module, name in list_public_functions():
        _, *subject = getattr(getattr(module, name).__doc__, "subject", (None, module.__name__, name))
        shown = ">>>" in inspect.getdoc(getattr(module, name))
        has_example[f"{module.__name__}.{name}"] = shown and docstrings.find_entry(*subject) is not None
    missing = {name for name, present in has_example.items() if not present}
    assert missing <= WAITING, "write an example in jitcore/docstrings"
    assert not WAITING & (has_example.keys() - missing), "strike these from docstrings_waiting.txt"


@pytest.mark.parametrize("title", ["Returns:", "Raises:"])
def test_every_docstring_says_what_comes_out_and_what_is_refused(title):
    lacking = [f"{module.__name__}.{name}" for module, name in list_public_functions()
               if f"{module.__name__}.{name}" not in WAITING
               and not re.search(f"{title}|Context manager", inspect.getdoc(getattr(module, name)))]
    assert not lacking


def test_every_parameter_is_described():
    described, lacking = docstrings.read_parameters(), set()
    for module, name in list_public_functions():
        text = inspect.getdoc(getattr(module, name))
        if f"{module.__name__}.{name}" in WAITING:
            continue
        for parameter in inspect.signature(getattr(module, name)).parameters:
            if not parameter.startswith("_") and parameter not in described and not re.search(rf"\b{parameter}\b", text):
                lacking.add(f"{module.__name__}.{name}: {parameter}")
    assert not lacking


@pytest.mark.parametrize("table", TABLES)
def test_tables_name_what_exists(table):
    for name in docstrings.read_table(table):
        value = find_module(table)
        for part in name.split("."):
            value = getattr(value, part)
        assert callable(value)


def test_the_median_docstring_is_long():
    lengths = sorted(len(inspect.getdoc(getattr(module, name))) for module, name in list_public_functions())
    assert lengths[len(lengths) // 2] > 400


#: Where NumPy answers otherwise, as the docstrings say: 32 bits, no changes in place, fewer leading zeros.
OTHERWISE = {"__array_namespace_info__", "array_repr", "array_str", "einsum_path", "empty_like", "fill_diagonal", "place", "polydiv",
             "promote_types", "put", "put_along_axis", "result_type", "spacing"}


@pytest.mark.parametrize("table", ["numpy", "numpy.fft", "numpy.linalg"])
def test_examples_give_what_numpy_gives(table, prelude):
    for name, entry in docstrings.read_table(table).items():
        if name in OTHERWISE:
            continue
        ours, theirs = dict(prelude), {**prelude, "jnp": numpy}
        for example in doctest.DocTestParser().get_examples(entry.example):
            with numpy.errstate(all="ignore"):
                run = eval if example.want else exec
                results = run(example.source, ours), run(example.source, theirs)
            for a, b in zip(*map(spread, results), strict=True) if example.want else ():
                numpy.testing.assert_allclose(a, numpy.asarray(b).astype(numpy.asarray(a).dtype), rtol=1e-5, atol=1e-6, err_msg=name)


def spread(value):
    return [part for item in value for part in spread(item)] if isinstance(value, (tuple, list)) else [value]


#: What the sections `Raises` say, a call each.
REFUSED = [
    (TypeError, "jnp.sin([1.0])"), (TypeError, "jnp.sum([1.0])"), (TypeError, "jnp.bitwise_not(1.5)"),
    (ValueError, "jnp.add(jnp.ones(2), jnp.ones(3))"), (ValueError, "jnp.equal(jnp.ones(2), jnp.ones(3))"),
    (TypeError, "jnp.arctan2(1j, 1.)"), (TypeError, "jnp.frexp(1j)"), (TypeError, "jnp.modf(1j)"),
    (ValueError, "jnp.where(jnp.array([True]), 1.)"), (TypeError, "jnp.zeros(1.5)"),
    (TypeError, "jnp.zeros(2, 'nonsense')"), (ValueError, "jnp.diagonal(jnp.ones(2))"),
    (jitcore.errors.ConcretizationTypeError, "jitcore.jit(jnp.nonzero)(jnp.ones(2))"),
    (jitcore.errors.ConcretizationTypeError, "jitcore.jit(jnp.unique)(jnp.ones(2))"),
    (jitcore.errors.ConcretizationTypeError, "jitcore.jit(jnp.bincount)(jnp.array([1]))"),
    (ValueError, "jnp.cumsum(jnp.ones(2), axis=1)"), (NotImplementedError, "jnp.cumsum(jnp.ones(2), out=jnp.ones(2))"),
    (ValueError, "jnp.sum(jnp.ones(2), axis=1)"), (ValueError, "jnp.sum(jnp.ones(2), where=jnp.ones(2))"),
    (NotImplementedError, "jnp.sum(jnp.ones(2), out=jnp.ones(2))"), (ValueError, "jnp.finfo('int32')"),
    (TypeError, "jnp.finfo('nonsense')"), (TypeError, "jnp.promote_types('int32', 'datetime64')"),
    (ValueError, "jnp.isdtype('float32', 'nonsense')"), (TypeError, "jnp.concatenate(['a'])"),
    (ValueError, "jnp.stack([jnp.ones(2), jnp.ones(3)])"), (ValueError, "jnp.split(jnp.ones(3), 2)"),
    (TypeError, "jnp.dot(jnp.ones(2), jnp.ones(3))"), (TypeError, "jnp.matmul(jnp.ones(2), jnp.ones(3))"),
    (ValueError, "jnp.einsum('ij,jk', jnp.ones((2, 3)), jnp.ones((2, 3)))"), (ValueError, "jnp.roots(jnp.ones((2, 2)))"),
    (TypeError, "jnp.polyadd([1], [2])"), (ValueError, "jnp.sort(jnp.ones(2), axis=1)"),
    (TypeError, "jnp.take(jnp.ones(2), jnp.ones(2))"), (ValueError, "jnp.put(jnp.ones(2), jnp.array([0]), 1.)"),
    (ValueError, "jnp.cov(jnp.ones((2, 2, 2)))"), (TypeError, "jnp.reshape(jnp.ones(3), (2,))"),
    (ValueError, "jnp.linalg.inv(jnp.ones((2, 3)))"), (ValueError, "jnp.fft.fft(jnp.ones(2), norm='x')"),
    (ValueError, "jnp.fft.fft(jnp.ones(2), n=0)"), (TypeError, "lax.sin(1)"), (TypeError, "lax.bitwise_not(1.5)"),
    (TypeError, "lax.add(jnp.ones(2), jnp.ones(3))"), (TypeError, "lax.add(jnp.ones(2), jnp.array([1, 2]))"),
    (ValueError, "lax.reduce_sum(jnp.ones(2), (1,))"), (TypeError, "lax.reduce_sum(jnp.array([True]), (0,))"),
    (ValueError, "lax.top_k(jnp.array([1j]), 1)"), (TypeError, "lax.dynamic_slice(jnp.ones(2), (0.,), (1,))"),
    (ValueError, "lax.dot(jnp.ones(2), jnp.ones(3))"), (TypeError, "lax.cond(True, lambda x: 1, lambda x: 1.5, 0)"),
    (TypeError, "lax.scan(lambda c, x: ((c, c), x), 0, jnp.ones(2))"), (NameError, "lax.psum(1., 'i')"),
    (TypeError, "lax.linalg.cholesky(jnp.array([[1]]))"), (ValueError, "lax.linalg.cholesky(jnp.ones((2, 3)))"),
    (TypeError, "random.normal(3)"), (ValueError, "random.normal(random.key(0), (2,), 'int32')"),
    (ValueError, "random.gamma(random.key(0), jnp.ones(3), (2,))"), (ValueError, "random.key(0, impl='nonsense')"),
    (TypeError, "nn.relu([1.])"), (ValueError, "nn.logsumexp(jnp.ones(2), axis=2)"),
    (ValueError, "nn.initializers.glorot_normal()(random.key(0), (2,))"), (TypeError, "special.erf(1j)"),
    (ValueError, "special.beta(jnp.ones(2), jnp.ones(3))"), (ValueError, "slinalg.inv(jnp.ones((2, 3)))"),
    (ValueError, "slinalg.hadamard(3)"), (ValueError, "signal.convolve(jnp.ones(2), jnp.ones(2), mode='x')"),
    (NotImplementedError, "stats.rankdata(jnp.ones(2), nan_policy='omit')"),
    (ValueError, "sparse.cg(jnp.ones((2, 3)), jnp.ones(2))"), (ValueError, "vq(jnp.ones((2, 1)), jnp.ones((2, 2)))"),
    (ValueError, "optimize.minimize(lambda x: x.sum(), jnp.ones(2), method='x')"),
    (ValueError, "image.resize(jnp.ones(2), (4,), 'x')"), (TypeError, "ops.segment_sum(jnp.ones(2), jnp.ones(2))"),
    (ValueError, "tree.map(lambda x, y: x, [1], (1,))"), (TypeError, "jitcore.grad(lambda x: x)(1)"),
    (TypeError, "jitcore.jit(lambda x: 'a')(1.)"), (TypeError, "jitcore.typeof('a')"),
    (jitcore.errors.BackendNotFoundError, "jitcore.devices('nonsense')"),
]


@pytest.mark.parametrize(("error", "call"), REFUSED, ids=[call for _, call in REFUSED])
def test_what_docstrings_say_is_refused_is_refused(error, call, prelude):
    with pytest.raises(error):
        eval(call, dict(prelude))


def test_help_shows_every_section():
    for function in (jitcore.numpy.sum, jitcore.random.gamma, jitcore.lax.sin):
        text = pydoc.render_doc(function, renderer=pydoc.plaintext)
        assert all(title in text for title in ("Args:", "Returns:", "Raises:", "Example:"))


def test_docstrings_are_texts_elsewhere():
    text = jitcore.numpy.sum.__doc__
    assert text.startswith("Sum of the elements.") and ">>>" not in str(text)
    for copied in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):
        assert type(copied) is str and copied == text
    assert ">>>" in inspect.getdoc(functools.wraps(jitcore.numpy.sum)(lambda *args: None))


def test_tables_are_read_when_somebody_asks():
    code = ("import sys; read = []\n"
            "sys.addaudithook(lambda event, args: event == 'open' and read.append(str(args[0])))\n"
            "import inspect, jitcore.numpy as jnp, jitcore.random\n"
            "assert not [name for name in read if name.endswith('.txt')]\n"
            "assert '>>>' in inspect.getdoc(jnp.sum) and [name for name in read if name.endswith('numpy.txt')]\n")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
