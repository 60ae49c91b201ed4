"""What methods and C code change under a traced condition or in a traced loop: compiled, or refused; never
done while tracing, whatever the program does."""

from __future__ import annotations

import array
import collections
import itertools
import linecache
import operator

import numpy as np
import pytest

import jitcore
from jitcore.rewriter.errors import ControlFlowError
from tests.autojit.checking import assert_same


class Point:
    def __init__(self):
        self.v, self.items, self.table = 1, [1, 2], {"k": 1}


class Slotted:
    __slots__ = ("v",)

    def __init__(self):
        self.v = [1]


ARRAYS = """a.fill(7) a.sort() a.partition(1) np.copyto(a,9.0) np.put(a,[0],9.0) a.put([0],9.0)
    np.place(a,a>1,[9.0]) np.putmask(a,a>1,[9.0]) np.put_along_axis(a,np.array([0]),9.0,0) np.add(a,1,out=a)
    np.add.at(a,[0],1) np.sum(np.ones((3,3)),axis=0,out=a) np.random.shuffle(a) a.flat[0]=9
    a.byteswap(inplace=True) a.__setitem__(0,9.0) operator.setitem(a,0,9.0) operator.iadd(a,1.0)
    np.einsum('i->i',np.ones(3),out=a) a.clip(0,1,out=a) np.fill_diagonal(a.reshape(3,1),5.0) a.real[0]=9
    np.nan_to_num(a,copy=False,nan=0.0) a.resize(2,refcheck=False) a.setfield(4.0,a.dtype) a[:]=1 a[0]+=1
    np.multiply(a,a,a) np.cumsum(a,out=a) np.random.default_rng(1).shuffle(a) a.dtype.type(1)""".split()
MAKERS = {
    "list": lambda: [3, 1, 2], "dict": lambda: {"a": 1, "b": 2}, "set": lambda: {1, 2}, "object": Point,
    "slots": Slotted, "deque": lambda: collections.deque([1, 2]), "bytes": lambda: bytearray(b"ab"),
    "defaultdict": lambda: collections.defaultdict(int, {"z": 1}), "array": lambda: array.array("i", [5, 6]),
    "ordered": lambda: collections.OrderedDict({"q": 5, "r": 1}), "counter": lambda: collections.Counter("a"),
    "deep": lambda: [0, [0, [0, [0, [0, [0, [0, [1]]]]]]]], "nested": lambda: [[1], {"k": [1]}],
}
CHANGES = {
    "list": """a.append(1) a.extend([1]) a.insert(0,1) a.pop() a.remove(1) a.clear() a.sort() a.reverse()
        a+=[1] a*=2 a[0]+=1 a[0:1]=[5,6] a[0:1]=[9] a.__setitem__(0,9) a[-1]=5 operator.iconcat(a,[1])""",
    "dict": """a['c']=1 a.update(c=1) a.pop('a') a.setdefault('c',1) a.popitem() a.clear() a|={'c':1}
        a['a']+=1 a.update(a=5) a.__setitem__('a',4) a.update(a=a.pop('a'))""",
    "set": "a.add(5) a.discard(1) a.update({7}) a|={9} a-={1} a.clear() a.add(1)",
    "object": """a.v=5 a.v+=1 a.items[0]=9 a.items.append(3) a.table['k']+=1 a.table['n']=1 a.new=3
        delattr(a,'v') setattr(a,'v',5) a.__dict__.update(v=8) a.__dict__['v']=7 a.items+=[1]
        object.__setattr__(a,'v',7) vars(a).pop('v')""",
    "slots": "a.v=5 a.v.append(1) a.v[0]=2",
    "deque": "a.append(1) a.appendleft(1) a.popleft() a[0]=9 a.rotate(1)",
    "bytes": "a.append(3) a[0]=1 a.clear()",
    "array": "a.append(3) a[0]=1 a.reverse()",
    "defaultdict": "a['z']+=1 a['n'] a['n']=1",
    "ordered": "a['q']=1 a.move_to_end('q') a.popitem()",
    "counter": "a.update('ab') a['q']+=1",
    "deep": "a[1][1][1][1][1][1][1].append(3) a[1][1][1][1][1][1][1][0]=3",
    "nested": "a[0][0]=5 a[0].append(1) a[1]['k'].append(2) a[1]['k'][0]+=1",
}
CASES = [("ndarray", text, lambda: np.array([3.0, 1.0, 2.0])) for text in ARRAYS]
CASES += [(name, text, MAKERS[name]) for name, texts in CHANGES.items() for text in texts.split()]
_FORMS = {
    "condition": "def f(x, a):\n    if x > 0:\n        {}\n    return x\n",
    "loop": "def f(x, a):\n    while x > 0:\n        {}\n        x = x - 1\n    return x\n",
    "call": "def g(a):\n    {}\ndef f(x, a):\n    if x > 0:\n        g(a)\n    return x\n",
}
_files = itertools.count()


def compile_case(form: str, text: str):
    name = f"<effect {next(_files)}>"
    source = _FORMS[form].format(text)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    names = {"np": np, "operator": operator}
    exec(compile(source, name, "exec"), names)
    return names["f"]


def describe(value):
    """Contents as text, with nothing that a trace has put there."""
    if isinstance(value, np.ndarray):
        return repr(value) + str(value.flags.writeable)
    if isinstance(value, Point):
        return repr(vars(value))
    return repr(value.v) if isinstance(value, Slotted) else repr(value)


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(("kind", "text", "make"), CASES, ids=[f"{kind}-{text}" for kind, text, _ in CASES])
def test_a_side_that_is_not_taken_changes_nothing(kind, text, make, form):
    function, given = compile_case(form, text), make()
    before = describe(given)
    try:
        jitcore.jit(lambda x: function(x, given), rewrite=True)(-1.0)
    except ControlFlowError:
        assert describe(given) == before
        return
    after = describe(given)  # a number that the program chose is a tracer behind it, as in all traced code
    assert after == before or any(word in after for word in ("Traced", "Tracer", "Poison"))


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize(("kind", "text", "make"), CASES, ids=[f"{kind}-{text}" for kind, text, _ in CASES])
def test_autojit_changes_what_python_changes(kind, text, make, form):
    function = compile_case(form, text)
    if text in ("np.random.shuffle(a)",):
        return
    compiled = jitcore.autojit(function)
    for x in (-1.0, 2.0, -1.0, 1.0):
        ours, theirs = make(), make()
        results = []
        for call, a in ((function, theirs), (compiled, ours)):
            try:
                results.append(call(x, a))
            except Exception as error:
                results.append((type(error), str(error)))
        assert results[0] == results[1] and describe(ours) == describe(theirs)


# -- iterators ------------------------------------------------------------------------------------------------
def steps():
    yield from (1, 2, 3, 4, 5)


ITERATORS = {
    "list": lambda: iter([1, 2, 3, 4, 5]), "range": lambda: iter(range(1, 9)), "generator": steps,
    "expression": lambda: (k * 2 for k in [1, 2, 3, 4, 5]), "count": itertools.count,
    "zip": lambda: zip([1, 2, 3, 4], [4, 5, 6, 7]), "enumerate": lambda: enumerate([4, 5, 6, 7]),
    "map": lambda: map(abs, iter([1, -2, 3, -4])), "filter": lambda: filter(None, [1, 0, 2, 3, 4, 5]),
    "chain": lambda: itertools.chain([1, 2], [3, 4, 5]), "islice": lambda: itertools.islice([1, 2, 3, 4, 5], 4),
    "reversed": lambda: reversed([5, 4, 3, 2, 1]), "dict": lambda: iter({1: 2, 3: 4, 5: 6, 7: 8}),
}
HOLDERS = {
    "variable": (lambda it: it, lambda box: next(box)),
    "dict": (lambda it: {"it": it}, lambda box: next(box["it"])),
    "tuple": (lambda it: (0, [it]), lambda box: next(box[1][0])),
    "object": (lambda it: _hold(it), lambda box: next(box.it)),
    "closure": (lambda it: lambda: next(it), lambda box: box()),
}


def _hold(it):
    point = Point()
    point.it = it
    return point


def _first(value):
    return value[0] if isinstance(value, tuple) else value


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("kind", ITERATORS)
def test_iterators_are_where_python_has_them(kind, holder):
    make, (hold, take) = ITERATORS[kind], HOLDERS[holder]

    def under_a_condition(x, n):
        box, total = hold(make()), 0.0
        if x[0] > 0:
            total += _first(take(box))
        return total + _first(take(box))

    def in_a_loop(x, n):
        box, total = hold(make()), 0.0
        for i in range(n):
            total += _first(take(box)) * x[i]
        return total

    def in_a_while(x, n):
        box, total, i = hold(make()), 0.0, 0
        while x[0] > i:
            total += _first(take(box))
            i += 1
        return total

    for function in (under_a_condition, in_a_loop, in_a_while):
        compiled, arrays = jitcore.autojit(function), (np.array([2.0, 3.0, 4.0]), -np.ones(3))
        for n in (3, 1, 2, 3, 0):
            for x in arrays:
                assert_same(function(x, n), compiled(x, n))
        traced = jitcore.jit(lambda x, function=function: function(x, 3), rewrite=True)
        for x in arrays:
            try:
                found = traced(x)
            except ControlFlowError:
                continue
            np.testing.assert_allclose(found, function(x, 3), rtol=1e-6)
