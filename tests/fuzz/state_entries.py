"""Ways into a function of the user's: by a call, by C code that calls back, by special methods.

Data only. `ENTRIES` maps a name to its definition and its uses. In a definition `H` stands for a name of its own,
`BODY` for statements about a number `v`, `RET` for the number that comes back. A use is an expression of a number
`V`, or statements that change the local variable `t`.
"""

from __future__ import annotations

from typing import NamedTuple


class Way(NamedTuple):
    """How a function is entered: its definition at the level of the module, and uses."""

    definition: str
    uses: tuple[str, ...]


_FUNCTION = """\
def H(v):
    BODY
    return RET
"""


def _method(head: str, *uses: str, result: str = "RET", first: str = "") -> Way:
    """A class with one method and an object of it."""
    first = f"        {first}\n" if first else ""
    return Way(f"class HType:\n    def {head}:\n{first}        BODY\n        return {result}\n\n\nH = HType()\n", uses)


#: Plain calls: what is entered is written at the call.
CALLS = {
    "function": Way(_FUNCTION, ("H(V)", "H(v=V)", "H(H(V))")),
    "helper of a helper": Way(_FUNCTION + "\n\ndef Houter(v):\n    return H(v) + 1\n", ("Houter(V)",)),
    "in the loop of a helper": Way(_FUNCTION + "\n\ndef Houter(m):\n    total = 0\n    for v in range(m):\n        total = total + H(v)\n    return total\n",
                                   ("Houter(n % 5)", "Houter(2)")),
    "in a branch of a helper": Way(_FUNCTION + "\n\ndef Houter(v):\n    if v > 0.5:\n        return H(v)\n    return 0\n", ("Houter(V)",)),
    "default": Way("def H(v, kept=[]):\n    kept.append(v)\n    BODY\n    return len(kept)\n", ("H(V)",)),
    "keyword default": Way("def H(v, *, kept={'a': 0}):\n    kept['a'] = v\n    BODY\n    return len(kept)\n", ("H(V)",)),
    "own attribute": Way("def H(v):\n    H.count = getattr(H, 'count', 0) + 1\n    BODY\n    return H.count\n", ("H(V)",)),
    "own list": Way("def H(v):\n    H.seen.append(v)\n    BODY\n    return len(H.seen)\n\n\nH.seen = []\n", ("H(V)",)),
    "closure": Way("def Hmake():\n    kept, calls = [], 0\n\n    def H(v):\n        nonlocal calls\n        calls += 1\n        kept.append(v)\n        BODY\n        return len(kept) + calls\n\n    return H\n\n\nH = Hmake()\n",
                   ("H(V)",)),
    "wraps": Way("def Hmake(function):\n    @functools.wraps(function)\n    def inner(*args):\n        v = args[0]\n        BODY\n        return function(*args)\n    return inner\n\n\n@Hmake\ndef H(v):\n    return RET\n",
                 ("H(V)",)),
    "star": Way("def H(*args, **options):\n    v = args[0]\n    BODY\n    return RET\n", ("H(V)", "H(*[V, 1])", "H(V, **{'o': 1})")),
    "early return": Way("def H(v):\n    if v > 1:\n        return v\n    BODY\n    return RET\n", ("H(V)",)),
    "try": Way("def H(v):\n    try:\n        BODY\n        return RET\n    finally:\n        H.left = getattr(H, 'left', 0) + 1\n", ("H(V)",)),
    "recursion": Way("def H(v, depth=2):\n    BODY\n    return RET if depth == 0 else H(v, depth - 1)\n", ("H(V)", "H(V, 1)")),
    "method": _method("step(self, v)", "H.step(V)"),
    "bound method": Way("class HType:\n    def step(self, v):\n        BODY\n        return RET\n\n\nH = HType().step\n", ("H(V)",)),
    "static method": Way("class HType:\n    @staticmethod\n    def step(v):\n        BODY\n        return RET\n\n\nH = HType()\n", ("H.step(V)", "HType.step(V)")),
    "class method": Way("class HType:\n    made = 0\n\n    @classmethod\n    def step(cls, v):\n        cls.made = cls.made + 1\n        BODY\n        return RET\n\n\nH = HType()\n",
                        ("H.step(V)", "HType.step(V) + HType.made")),
    "inherited method": Way("class HBase:\n    def step(self, v):\n        BODY\n        return RET\n\n\nclass HType(HBase):\n    def step(self, v):\n        return super().step(v) + 1\n\n\nH = HType()\n",
                            ("H.step(V)",)),
    "other module": Way("Hmodule = types.ModuleType('Hmodule')\nexec('K = 1\\nSEEN = []\\ndef step(v):\\n    global K\\n    K += 1\\n    SEEN.append(v)\\n    return K + v\\n', Hmodule.__dict__)\n\n\ndef H(v):\n    BODY\n    return Hmodule.step(v)\n",
                        ("H(V)", "Hmodule.step(V)", "Hmodule.K + len(Hmodule.SEEN)")),
    "lambda": Way("H = lambda v: (EXPRESSION, RET)[1]\n", ("H(V)", "(lambda w: H(w))(V)")),
    "counting decorator": Way("class HType:\n    def __init__(self, function):\n        self.function = function\n        self.calls = 0\n\n    def __call__(self, v):\n        self.calls += 1\n        BODY\n        return self.function(v)\n\n\n@HType\ndef H(v):\n    return RET\n",
                              ("H(V)", "H(V) + H.calls")),
    "match": Way(_FUNCTION, ("match n:\n    case 1 if H(V):\n        t = t + 1\n    case w:\n        t = t + H(w)", "match [V, 1]:\n    case [w, 1]:\n        t = t + H(w)")),
    "compiled": Way("@compiled\n" + _FUNCTION, ("H(V)", "H(1)", "sum(map(H, (1, 2)))")),
    "callable object": _method("__call__(self, v)", "H(V)", "sum(map(H, (1, 2)))"),
}

#: Functions that C code calls.
CALLBACKS = {
    "sorted": Way(_FUNCTION, ("sorted([3, 1, 2], key=H)[0]", "sorted((V, 2, 1), key=H)[0]", "sorted(x, key=H)[0]")),
    "sort": Way(_FUNCTION, ("r = [3, 1, 2]\nr.sort(key=H)\nt = t + r[0]", "r = [V, 1]\nr.sort(key=H)\nt = t + r[0]")),
    "max": Way(_FUNCTION, ("max([1, 2], key=H)", "min((V, 1), key=H)", "max(x, key=H, default=0)")),
    "map": Way(_FUNCTION, ("list(map(H, [1, 2]))[-1]", "sum(map(H, (V, 1)))", "sum(map(H, x))", "sum(list(map(H, x))[:1])",
                           "next(map(H, [1, 2]))", "for w in map(H, (1, 2)):\n    t = t + w")),
    "filter": Way(_FUNCTION, ("len(list(filter(H, [1, 0, 2])))", "sum(filter(H, [1, 2]))")),
    "reduce": Way(_FUNCTION, ("functools.reduce(lambda a, b: H(a) + b, [1, 2, 3])", "functools.reduce(lambda a, b: a + H(b), x, 0)")),
    "accumulate": Way(_FUNCTION, ("list(itertools.accumulate([1, 2, 3], lambda a, b: a + H(b)))[-1]",)),
    "takewhile": Way(_FUNCTION, ("sum(itertools.takewhile(lambda w: H(w) < 2, [0, 1, 2, 3]))", "len(list(itertools.dropwhile(lambda w: H(w) < 1, x)))")),
    "starmap": Way(_FUNCTION, ("sum(itertools.starmap(lambda a, b: H(a) + b, [(1, 2), (3, 4)]))",)),
    "groupby": Way(_FUNCTION, ("len([k for k, _ in itertools.groupby([1, 1, 2], key=H)])",)),
    "any": Way(_FUNCTION, ("any(H(w) > 0 for w in (1, 2, 3))", "any(H(w) > 1 for w in x)", "all(H(w) > 1 for w in (1, 2))")),
    "sum of a generator expression": Way(_FUNCTION, ("sum(H(w) for w in (1, 2))", "sum(H(w) for w in x)", "max(H(w) for w in (1, V))",
                                                     "sum(H(w) for w in range(n % 5))")),
    "generator expression": Way(_FUNCTION, ("r = (H(w) for w in (1, 2, 3))\nt = t + next(r)", "r = (H(w) for w in (1, 2))\nfor w in r:\n    t = t + w")),
    "list comprehension": Way(_FUNCTION, ("sum([H(w) for w in (1, 2)])", "len([H(w) for w in x if w > 0])", "[H(w) for w in range(2)][-1]",
                                          "r = [H(w) for w in x]\nt = t + len(r)", "len([w for w in (1, 2) if H(w) > 1])")),
    "other comprehension": Way(_FUNCTION, ("len({H(w) for w in (1, 2)})", "sum({w: H(w) for w in (1, 2)}.values())")),
    "re.sub": Way(_FUNCTION, ("len(re.sub('a', lambda m: str(H(1)), 'aba'))", "len(re.sub('a', lambda m: 'b' * (H(2) > 1), 'aba'))")),
    "partial": Way(_FUNCTION, ("functools.partial(H, V)()", "functools.partial(H)(V)", "functools.partial(H, v=V)()")),
    "lru_cache": Way("@functools.lru_cache\n" + _FUNCTION, ("H(1)", "H(n)", "H(V)", "H(1) + H(1)")),
    "singledispatch": Way("@functools.singledispatch\ndef H(v):\n    BODY\n    return RET\n\n\n@H.register\ndef _(v: int):\n    BODY\n    return v + 1\n", ("H(V)", "H(1)", "H(s)")),
    "defaultdict": Way(_FUNCTION, ("defaultdict(lambda: H(1))['a']", "r = defaultdict(lambda: H(2))\nr['a'] += V\nt = t + r['a']")),
    "iter of a callable": Way(_FUNCTION, ("next(iter(lambda: H(1), None))",)),
    "cmp_to_key": Way(_FUNCTION, ("sorted([2, 1], key=functools.cmp_to_key(lambda a, b: (H(a) > 0) - (a < b)))[0]",)),
    "vectorize": Way(_FUNCTION, ("np.vectorize(H)(np.arange(2.0)).sum()",)),
    "apply_along_axis": Way(_FUNCTION, ("np.apply_along_axis(lambda w: H(w[0]) * w, 0, np.arange(2.0)).sum()",)),
    "fromiter": Way(_FUNCTION, ("np.fromiter((H(w) for w in (1, 2)), float).sum()", "np.array([H(w) for w in (1, 2)]).sum()")),
    "quad": Way(_FUNCTION, ("round(scipy.integrate.quad(lambda w: 1.0 + 0 * H(1), 0, 1)[0], 6)",)),
    "brentq": Way(_FUNCTION, ("round(scipy.optimize.brentq(lambda w: w - 0.5 + 0 * H(1), 0, 1), 6)",)),
    "join": Way(_FUNCTION, ("len(''.join(map(lambda w: str(H(w)), (1, 2))))",)),
    "generator function": Way("def H(v):\n    for j in range(3):\n        BODY\n        yield RET\n",
                              ("sum(H(V))", "list(H(1))[-1]", "next(H(V))", "for w in H(V):\n    t = t + w", "for w in H(V):\n    t = t + w\n    break",
                               "r = H(1)\nnext(r)\nt = t + next(r)", "for j, w in zip(range(2), H(V)):\n    t = t + w", "t = t + [*H(1)][0]")),
    "kept generator": Way("def Hnew(v):\n    while True:\n        BODY\n        v = v + 1\n        yield v\n\n\nH = Hnew(1)\n", ("next(H)", "for w in H:\n    t = t + w\n    break", "[w for w, _ in zip(H, (1, 2))][0]")),
    "yield from": Way("def Hinner(v):\n    BODY\n    yield RET\n    yield 1\n\n\ndef H(v):\n    yield from Hinner(v)\n    yield 2\n", ("sum(H(V))", "list(H(1))[0]")),
    "contextmanager": Way("@contextmanager\ndef H(v):\n    BODY\n    try:\n        yield RET\n    finally:\n        BODY\n",
                          ("with H(V) as w:\n    t = t + w", "with H(V):\n    t = t + 1", "for j in range(2):\n    with H(j) as w:\n        t = t + w",
                           "try:\n    with H(1):\n        t = t + 1 // n\nexcept ZeroDivisionError:\n    t = t - 1")),
    "contextmanager as decorator": Way("@contextmanager\ndef Hmanager(v):\n    BODY\n    yield\n    BODY\n\n\n@Hmanager(1)\ndef H(v):\n    return v\n", ("H(V)",)),
    "suppressing contextmanager": Way("@contextmanager\ndef H(v):\n    try:\n        yield v\n    except (ZeroDivisionError, IndexError):\n        BODY\n",
                                      ("with H(V):\n    t = t + 1 // n", "with H(V):\n    t = t + x[n]")),
    "exit stack": Way(_FUNCTION, ("with ExitStack() as stack:\n    stack.callback(H, 1)\n    t = t + 1",)),
}

#: Methods that operators and built-in functions enter.
SPECIAL_METHODS = {
    "property": Way("class HType:\n    @property\n    def value(self):\n        v = 1\n        BODY\n        return RET\n\n\nH = HType()\n", ("H.value", "H.value + H.value")),
    "property setter": Way("class HType:\n    @property\n    def value(self):\n        return self._value\n\n    @value.setter\n    def value(self, v):\n        BODY\n        self._value = v\n\n\nH = HType()\n",
                           ("H.value = V\nt = t + H.value", "H.value = 1")),
    "cached property": Way("class HType:\n    @functools.cached_property\n    def value(self):\n        v = 2\n        BODY\n        return RET\n\n\nH = HType()\n", ("H.value", "HType().value")),
    "descriptor": Way("class HField:\n    def __get__(self, owner, kind):\n        v = 3\n        BODY\n        return RET\n\n    def __set__(self, owner, v):\n        BODY\n\n\nclass HType:\n    value = HField()\n\n\nH = HType()\n",
                      ("H.value", "HType.value", "H.value = V", "H.value = 1\nt = t + H.value")),
    "metaclass property": Way("class HMeta(type):\n    @property\n    def value(cls):\n        v = 1\n        BODY\n        return RET\n\n\nclass H(metaclass=HMeta):\n    pass\n", ("H.value",)),
    "__getitem__": _method("__getitem__(self, v)", "H[V]", "H[1]", "sum(H[j] for j in (0, 1))"),
    "iterated by __getitem__": _method("__getitem__(self, v)", "sum(w for w in H)", "for w in H:\n    t = t + w", first="if v > 2: raise IndexError"),
    "__setitem__": _method("__setitem__(self, key, v)", "H[0] = V", "H['a'] = 1", result="None"),
    "__delitem__": _method("__delitem__(self, v)", "del H[1]", "del H[n]", result="None"),
    "__len__": _method("__len__(self)", "len(H)", "1 if H else 2", result="3", first="v = 1"),
    "__contains__": _method("__contains__(self, v)", "(V in H)", "(3 not in H)", result="v == 3"),
    "__eq__": _method("__eq__(self, v)", "(H == V)", "(1 != H)", "[0, H].index(1)", "(1 in [H])", "[H].count(1)", "([H] == [V])", result="True"),
    "__lt__": _method("__lt__(self, v)", "(H < V)", "(V > H)", "t = t + (1 if H < 1 else 2)", "len(sorted([H, HType()]))", "(max(H, HType()) is H)", result="v > 1"),
    "__hash__": _method("__hash__(self)", "len({H: 1})", "len({H, H})", "hash(H)", "len({H, HType()})", result="7", first="v = 1"),
    "__bool__": _method("__bool__(self)", "(1 if H else 2)", "(not H)", "t = t + (H and 1 or 2)", result="False", first="v = 1"),
    "__index__": _method("__index__(self)", "[4, 5, 6][H]", "x[H]", "range(5)[H]", result="1", first="v = 1"),
    "__float__": _method("__float__(self)", "float(H)", "math.sqrt(H)", result="4.0", first="v = 1"),
    "__int__": _method("__int__(self)", "int(H)", result="4", first="v = 1"),
    "__add__": _method("__add__(self, v)", "(H + V)", "(H + 1)"),
    "__radd__": _method("__radd__(self, v)", "(V + H)", "(1 + H)", "sum([H])"),
    "__mul__": _method("__mul__(self, v)", "(H * V)", "(H * 2)"),
    "__neg__": _method("__neg__(self)", "(-H)", first="v = 1"),
    "__abs__": _method("__abs__(self)", "abs(H)", first="v = 1"),
    "__round__": _method("__round__(self, digits=0)", "round(H)", result="2", first="v = 1"),
    "__matmul__": _method("__matmul__(self, v)", "(H @ 2)"),
    "__iadd__": _method("__iadd__(self, v)", "w = H\nw += V", "w = H\nfor j in range(2):\n    w += j", result="self"),
    "__iter__": _method("__iter__(self)", "sum(H)", "for w in H:\n    t = t + w", "[*H][0]", "w, *r = H\nt = t + w", "(1 in H)", "dict.fromkeys(H)[1] is None", "max(H)", result="iter([1, 2])", first="v = 1"),
    "generator __iter__": Way("class HType:\n    def __iter__(self):\n        for v in (1, 2):\n            BODY\n            yield v\n\n\nH = HType()\n",
                              ("sum(H)", "for w in H:\n    t = t + w", "sum([w for w in H])", "next(iter(H))")),
    "__next__": Way("class HType:\n    def __init__(self):\n        self.k = 0\n\n    def __iter__(self):\n        return self\n\n    def __next__(self):\n        self.k += 1\n        if self.k % 4 == 0:\n            raise StopIteration\n        v = self.k\n        BODY\n        return v\n\n\nH = HType()\n",
                    ("next(H, 0)", "sum(H)", "for w in H:\n    t = t + w", "for w in H:\n    t = t + w\n    break")),
    "__reversed__": _method("__reversed__(self)", "sum(reversed(H))", result="iter([1, 2])", first="v = 1"),
    "__getattr__": Way("class HType:\n    def __getattr__(self, name):\n        if name.startswith('_'):\n            raise AttributeError(name)\n        v = len(name)\n        BODY\n        return RET\n\n\nH = HType()\n",
                       ("H.some", "H.other + H.some", "getattr(H, 'any')", "hasattr(H, 'some')")),
    "__getattribute__": Way("class HType:\n    k = 2\n\n    def __getattribute__(self, name):\n        v = 1\n        BODY\n        return object.__getattribute__(self, name)\n\n\nH = HType()\n", ("H.k",)),
    "__setattr__": Way("class HType:\n    def __setattr__(self, name, v):\n        BODY\n        object.__setattr__(self, name, v)\n\n\nH = HType()\n", ("H.k = V", "H.k = 1\nt = t + H.k", "setattr(H, 'm', 2)")),
    "__delattr__": Way("class HType:\n    def __delattr__(self, name):\n        v = 1\n        BODY\n        object.__delattr__(self, name)\n\n\nH = HType()\n", ("H.k = 1\ndel H.k",)),
    "__enter__": Way("class HType:\n    def __enter__(self):\n        v = 1\n        BODY\n        return RET\n\n    def __exit__(self, *error):\n        v = 2\n        BODY\n\n\nH = HType()\n",
                     ("with H as w:\n    t = t + w", "for j in range(2):\n    with H:\n        t = t + 1", "with H:\n    t = t + 1 // n")),
    "__exit__ that suppresses": Way("class HType:\n    def __enter__(self):\n        return 1\n\n    def __exit__(self, *error):\n        v = 2 if error[0] else 1\n        BODY\n        return True\n\n\nH = HType()\n",
                                    ("with H:\n    t = t + 1", "with H:\n    t = t + 1 // n", "with H:\n    t = t + x[n]", "with H:\n    time.time()\n    t = t + 1")),
    "__str__": _method("__str__(self)", "print(H)", "len(str(H))", "len(f'{H}')", result="'shown'", first="v = 1"),
    "__format__": _method("__format__(self, how)", "len(f'{H:5}')", "len(format(H))", result="'shown'", first="v = 1"),
    "__repr__": _method("__repr__(self)", "len(repr(H))", "print([H])", "len(f'{H!r}')", result="'shown'", first="v = 1"),
    "__init__": Way("class H:\n    def __init__(self, v):\n        BODY\n        self.v = v\n", ("H(V).v", "H(1).v")),
    "__new__": Way("class H:\n    def __new__(cls, v):\n        BODY\n        made = super().__new__(cls)\n        made.k = v\n        return made\n", ("H(V).k", "H(1).k")),
    "__post_init__": Way("@dataclass\nclass H:\n    v: float\n\n    def __post_init__(self):\n        v = self.v\n        BODY\n", ("H(V).v", "H(1).v")),
    "default factory": Way("def Hnew(v=1):\n    BODY\n    return RET\n\n\n@dataclass\nclass H:\n    v: float = field(default_factory=Hnew)\n", ("H().v",)),
    "__missing__": Way("class HType(dict):\n    def __missing__(self, v):\n        BODY\n        return RET\n\n\nH = HType()\n", ("H[V]", "H[1]")),
    "list subclass": Way("class HType(list):\n    def append(self, v):\n        BODY\n        super().append(v)\n\n\nH = HType()\n", ("H.append(V)\nt = t + 1", "H.append(1)\nt = t + len(H)")),
    "dict subclass": Way("class HType(dict):\n    def __setitem__(self, key, v):\n        BODY\n        super().__setitem__(key, v)\n\n\nH = HType()\n", ("H['a'] = V", "H['b'] = 1\nt = t + len(H)")),
    "__array_ufunc__": _method("__array_ufunc__(self, ufunc, method, *args, **options)", "np.add(H, V)", "np.sqrt(H)", result="7", first="v = 1"),
    "__array__": _method("__array__(self, dtype=None, copy=None)", "np.asarray(H).sum()", "np.sum(H)", result="np.arange(3.0)", first="v = 1"),
    "__copy__": _method("__copy__(self)", "copy.copy(H).k", result="types.SimpleNamespace(k=3)", first="v = 1"),
    "__deepcopy__": _method("__deepcopy__(self, memo)", "copy.deepcopy(H).k", result="types.SimpleNamespace(k=3)", first="v = 1"),
    "__class_getitem__": Way("class H:\n    @classmethod\n    def __class_getitem__(cls, v):\n        BODY\n        return RET\n", ("H[1]", "H[V]")),
    "__instancecheck__": Way("class HMeta(type):\n    def __instancecheck__(cls, one):\n        v = 1\n        BODY\n        return True\n\n\nclass H(metaclass=HMeta):\n    pass\n", ("isinstance(1, H)",)),
    "__del__": Way("class H:\n    def __del__(self):\n        v = 1\n        BODY\n", ("w = H()\nw = None", "w = H()\ndel w\nt = t + 1")),
    "enum": Way("class HKind(enum.Enum):\n    A = 1\n    B = 2\n\n    @classmethod\n    def _missing_(cls, v):\n        BODY\n        return cls.A\n\n\nH = HKind\n", ("H(5).value", "H(1).value")),
    "namedtuple": Way("class HType(namedtuple('HBase', 'a b')):\n    @property\n    def total(self):\n        v = self.a\n        BODY\n        return RET\n\n\nH = HType(1, 2)\n", ("H.total", "HType(V, 1).total")),
}

ENTRIES: dict[str, Way] = CALLS | CALLBACKS | SPECIAL_METHODS
