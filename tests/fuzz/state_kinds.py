"""Kinds of objects that functions capture, and what programs do with them.

Data only. In a template `E` stands for the object, `V` for a number, which may be traced. `reads` are expressions of
numbers; `writes` are statements that change the object; `rebinds` need an `E` that can be assigned to.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """What an object is at first, and what can be done with it."""

    values: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    rebinds: tuple[str, ...]


_LIST = Kind(
    ("[]", "[1, 2.5]", "[3, 1, 2]", "[0.5]"),
    ("len(E)", "sum(E)", "(E[-1] if E else 0)", "max(E, default=0)", "E.count(1)", "sum(E[:2])", "sum(w for w in E)", "E[0]", "(1 in E)",
     "len([w for w in E if w > 0])", "sum(sorted(E)[:1])", "len(E[1:])", "(1 if E else 2)", "sum(w * j for j, w in enumerate(E))", "E.index(1)",
     "len(E + [1])", "len(list(E))", "E[n]"),
    ("E.append(V)", "E.append(V)", "E.append(1)", "E.extend([V, 1])", "E.extend(w for w in (1, V))", "E.insert(0, V)", "E[:0] = [V]", "E[1:] = [V]", "del E[:1]",
     "E.pop()", "if E: E.pop()", "E.clear()", "E.reverse()", "E.sort()", "if E: E[0] = V", "E[0] = V", "if len(E) > 2: del E[0]", "del E[-1]",
     "if 1 in E: E.remove(1)", "t = t + (E.pop() if E else 0)", "if len(E) < 6: E.extend(E)", "if E: E[-1] += V", "for w in E[:2]: t = t + w",
     "for w in list(E): E.append(w)\nE[4:] = []", "E[n] = V", "E.append(len(E))", "while len(E) > 3: E.pop(0)", "E.reverse()\nif len(E) > 1: E[0], E[1] = E[1], E[0]", "if len(E) > 1: E[-1] = V\nE.reverse()"),
    ("E += [V]", "E = E + [V]", "E = [V]", "E = E[:2]", "E = sorted(E)", "E = []", "E = [w + 1 for w in E]", "E += (1, V)", "E = list(E)"),
)
_DICT = Kind(
    ("{}", "{'a': 1}", "{'a': 0.5, 'b': 2}", "{1: 2.0}"),
    ("len(E)", "E.get('a', 0)", "sum(E.values())", "sum(w for _, w in E.items())", "('a' in E)", "E['a']", "max(E.values(), default=0)", "len(list(E))",
     "sum(E[k] for k in E)", "(1 if E else 2)", "len(E.keys() & {'a', 'z'})", "E.get(n, 0)"),
    ("E['a'] = V", "E['new'] = V", "E['b'] = E.get('b', 0) + 1", "E[len(E)] = V", "E.update(c=V)", "E.update({'a': V})", "E.setdefault('d', V)",
     "E.pop('a', None)", "if E: E.popitem()", "E.clear()", "if 'a' in E: del E['a']", "del E['a']", "E['a'] += V", "E[n] = V",
     "if 'k' not in E: E['k'] = V", "for w in list(E): E[w] = V", "for w in E.values(): t = t + w", "E['n'] = len(E)", "t = t + E.setdefault('e', 1)",
     "if 'a' in E: E['a'] += 1", "try: t = t + E['k']\nexcept KeyError: E['k'] = V",
     "E.update(a=V)\nE['a'] = 1\nE.update(b=V)", "E['a'] = V\nE.clear()\nE['a'] = 1"),
    ("E |= {'e': V}", "E = {'a': V}", "E = {**E, 'f': V}", "E = {}", "E = dict(E)", "E = {k: 1 for k in E}"),
)
_SET = Kind(
    ("set()", "{1, 2}", "{0.5}"),
    ("len(E)", "(1 in E)", "sum(E)", "max(E, default=0)", "len(E | {1})", "len(E & {1})", "sum(sorted(E)[:1])"),
    ("E.add(V)", "E.add(n)", "E.add(1)", "E.discard(1)", "E.update([V, 1])", "E.clear()", "E.remove(1)", "E.add(len(E))", "E.discard(V)", "E.difference_update({1})"),
    ("E |= {V}", "E = E | {V}", "E = {V}", "E = set()", "E -= {1}"),
)
_DEQUE = Kind(
    ("deque()", "deque([1, 2])", "deque([1, 2], maxlen=3)"),
    ("len(E)", "sum(E)", "(E[-1] if E else 0)", "E[0]", "E.count(1)", "max(E, default=0)", "(1 in E)"),
    ("E.append(V)", "E.append(V)", "E.appendleft(V)", "if E: E.pop()", "E.popleft()", "E.rotate(1)", "E.extend([V, 1])", "E.clear()", "if E: E[0] = V", "E.append(len(E))",
     "t = t + (E.popleft() if E else 0)", "for w in E: t = t + w"),
    ("E = deque([V])", "E += [V]", "E = deque(E, maxlen=2)"),
)
_COUNTS = Kind(
    ("defaultdict(int)", "defaultdict(int, a=1)", "defaultdict(lambda: 2.5)"),
    ("len(E)", "E['a']", "E['z']", "sum(E.values())", "E.get('b', 0)", "('a' in E)"),
    ("E['a'] += V", "E['b'] += 1", "E[n] += 1", "E['c'] = V", "E.pop('a', None)", "E.clear()", "t = t + E['q']", "E[len(E)] += V", "E.update(a=V)", "E.setdefault('s', V)"),
    ("E = defaultdict(int)", "E |= {'e': V}"),
)
_GROUPS = Kind(
    ("defaultdict(list)", "defaultdict(list, a=[1])"),
    ("len(E)", "len(E['a'])", "len(E['z'])", "sum(map(len, E.values()))"),
    ("E['a'].append(V)", "E['b'].append(V)", "E[n].append(1)", "E['a'] = [V]", "E['a'] += [V]", "E.clear()", "E.pop('a', None)", "if E['a']: E['a'].pop()"),
    ("E = defaultdict(list)",),
)
_ORDERED = Kind(
    ("OrderedDict()", "OrderedDict(a=1, b=2)"),
    ("len(E)", "E.get('a', 0)", "sum(E.values())", "E['a']", "('a' in E)"),
    ("E['a'] = V", "E['c'] = V", "if 'a' in E: E.move_to_end('a')", "if E: E.popitem(last=False)", "E.update(c=V)", "E.pop('a', None)", "E.clear()", "E['a'] += V",
     "E.move_to_end('a')", "E[n] = V\nwhile len(E) > 2: E.popitem(last=False)"),
    ("E = OrderedDict(a=V)",),
)
_COUNTER = Kind(
    ("Counter()", "Counter('aab')", "Counter(a=2)"),
    ("len(E)", "E['a']", "E['z']", "sum(E.values())", "E.total()", "(E.most_common(1)[0][1] if E else 0)"),
    ("E['a'] += 1", "E['b'] += V", "E.update('ab')", "E.update([1, 2])", "E[n] += 1", "E.subtract('a')", "E.clear()", "del E['a']", "E.update(a=V)"),
    ("E = Counter()", "E += Counter('a')", "E = E + Counter('ab')"),
)
_ARRAY = Kind(
    ("np.zeros(4)", "np.arange(4.0)", "np.array([3, 1, 2, 0])", "np.arange(6.0)[::2]", "np.ones((2, 2))", "np.zeros(3, np.float32)"),
    ("E[0]", "E.sum()", "E[n]", "E.max()", "len(E)", "(E * 2).sum()", "E[-1]", "E.size", "(E + x).sum()", "E[1:].sum()", "sum(w for w in E)", "(E > 1).sum()", "E.shape[0]", "E[n % 2]"),
    ("E[0] = V", "E[0] += V", "E[1:] += 1", "E[:] = V", "E[n % 3] = V", "E.sort()", "E.fill(V)", "np.add(E, 1, out=E)", "E[E > 1] = 0.0", "E[1:] = E[:-1]", "E[n] = V",
     "E[:] = E[::-1]", "E[-1] = E[0]", "for w in E: t = t + w", "E[...] = 0", "np.copyto(E, 1)"),
    ("E += 1", "E = E + V", "E = E * 0.5", "E *= 2", "E = x", "E = x + 1", "E = E[::-1]", "E = E.copy()", "E -= x", "E = np.append(E, V)[-4:]"),
)
_OBJECT = Kind(
    ("Box(1)", "Box(0.5)", "Record(2, [])", "types.SimpleNamespace(m=1, items=[])", "Slots(1)"),
    ("E.m", "len(E.items)", "getattr(E, 'new', 0)", "hasattr(E, 'new')", "(E.m > 1)", "sum(E.items)", "E.missing", "getattr(E, 'm')"),
    ("E.m = V", "E.m += V", "E.m += 1", "E.new = V", "setattr(E, 'new', V)", "E.items.append(V)", "E.items.append(1)", "if hasattr(E, 'new'): del E.new", "del E.new",
     "E.items = [V]", "E.items += [V]", "E.m, E.new = V, E.m", "vars(E)['new'] = V", "E.__dict__.update(m=V)", "delattr(E, 'new')", "if not hasattr(E, 'new'): E.new = V",
     "E.items.clear()", "if E.items: E.items.pop()", "E.array = x", "E.m = E.m * 0.5", "E.other = E", "vars(E).update(m=V)\nE.m = E.m + 1", "E.m = V\nvars(E)['m'] = 1"),
    ("E = Box(V)", "E = E", "E = copy.copy(E)"),
)
_INT = Kind(
    ("0", "1", "3", "2**62", "-1"),
    ("E", "(E % 3)", "(E > 1)", "E * 2", "E // 2", "E + n", "-E"),
    ("t = t + E", "if E > 2: t = t + 1", "for j in range(E % 4): t = t + j"),
    ("E += 1", "E = E + n", "E = V", "E = E * 2 + 1", "E = -E", "E = n", "E -= 1", "E = max(E, n)", "E = E * 3 % 1000", "E += V", "E = E << 1"),
)
_FLOAT = Kind(
    ("0.0", "0.5", "-1.25", "float('nan')"),
    ("E", "E * 2", "(E > 1)", "E + s"),
    ("t = t + E", "if E > 0.5: t = t - 1"),
    ("E += V", "E = V", "E = E * 0.5", "E = s", "E = x[0]", "E += 1", "E = min(E, V)"),
)
_TEXT = Kind(
    ("''", "'ab'"),
    ("len(E)", "(E == 'a')", "('b' in E)", "len(E.upper())"),
    ("print(E)", "t = t + len(E)"),
    ("E += 'a'", "E = E[:-1]", "E = f'{V}'", "E = str(n)", "E = E + str(V)", "E = E.replace('a', 'b')"),
)
_NONE = Kind(
    ("None", "True", "(1, 2)", "()"),
    ("(E is None)", "(1 if E else 2)"),
    ("t = t + (E is None)", "if E: t = t + 1"),
    ("E = V", "if E is None: E = V", "E = None", "E = not E", "if E is None: E = x + 1", "E = (V, 1)", "E = x", "E = [V]", "E = x[1:]"),
)
_ARRAYS = Kind(
    ("[np.zeros(3), np.ones(3)]", "[np.arange(4.0)]", "[]"),
    ("len(E)", "E[0][0]", "E[-1].sum()", "E[0].sum()", "sum(w[0] for w in E)"),
    ("E.append(x)", "E.append(x * 2)", "E.append(x[1:])", "E[0] = x", "E[0][1] = V", "E[0] += 1", "E[0] = E[-1]", "E.append(E[0])", "E.pop()", "E[-1][:] = V", "E.reverse()",
     "E.append(x.copy())", "if len(E) > 2: del E[0]", "E[0], E[-1] = E[-1], E[0]", "E.append(np.zeros(2))", "for w in E: w += 1"),
    ("E = [x, x]", "E = E + [x]", "E = [w * 2 for w in E]"),
)
_OBJECTS = Kind(
    ("{'a': Box(1)}", "{'a': Box(1), 'b': Box(2.5)}"),
    ("E['a'].m", "len(E)", "sum(w.m for w in E.values())", "len(E['a'].items)"),
    ("E['a'].m = V", "E['b'] = Box(V)", "E['b'] = E['a']", "E['a'].items.append(V)", "E['a'].new = V", "E.setdefault('c', Box(1)).items.append(V)", "for w in E.values(): w.m += 1",
     "E.pop('b', None)", "E['a'].m += V", "E['b'].m = 1", "E[n] = Box(V)"),
    ("E = {'a': Box(V)}", "E = dict(E)"),
)
_NESTED = Kind(
    ("[[], [1]]", "[[1, 2]]"),
    ("len(E[0])", "sum(map(len, E))", "len(E)", "sum(E[-1])"),
    ("E[0].append(V)", "E.append([V])", "E[-1] = E[0]", "E[-1].append(V)", "if E[0]: E[0].pop()", "E.append(E[0])", "E[0] = [V]", "E[0] += [V]", "for w in E: w.append(V)",
     "E[0][:] = [V]", "if len(E) > 3: del E[1:]", "E[0].clear()", "E.insert(0, [])", "E[-1][0] = V"),
    ("E = [list(w) for w in E]", "E = E[::-1]", "E = [[V]]"),
)
_LISTS = Kind(
    ("{}", "{'k': []}", "{'k': [1], 'l': [2]}"),
    ("len(E)", "len(E.get('k', []))", "sum(map(sum, E.values()))", "E['k'][0]"),
    ("E.setdefault('k', []).append(V)", "E.setdefault('new', []).append(V)", "E['k'].append(V)", "E['k'] = [V]", "E['l'] = E.get('k', [])", "E.pop('k', None)",
     "for w in E.values(): w.append(1)", "E.setdefault(n, []).append(V)", "E.setdefault('k', [1, 2])[0] = V", "E['k'] += [V]"),
    ("E = {'k': [V]}",),
)
_PAIR = Kind(
    ("([], {})", "([1], {'a': 1})"),
    ("len(E[0])", "len(E[1])", "E[1].get('a', 0)", "sum(E[0])"),
    ("E[0].append(V)", "E[1]['a'] = V", "E[1]['new'] = V", "E[0].clear()", "E[0][:] = [V]", "if E[0]: E[0].pop()", "E[1].update(a=V)"),
    ("E = ([V], {})", "E = (E[0], {'a': V})"),
)
_ITERATOR = Kind(
    ("itertools.count()", "itertools.count(3)", "itertools.cycle((1, 2))", "iter([1, 2, 3])"),
    ("next(E)", "next(E, 0)"),
    ("t = t + next(E)", "for w in E:\n    t = t + w\n    break", "next(E, None)"),
    ("E = iter((1, 2, 5))",),
)
_BYTES = Kind(
    ("bytearray(b'ab')", "array.array('d', [1.0, 2.0])", "memoryview(bytearray(4))"),
    ("len(E)", "E[0]"),
    ("E[0] = 1", "E[1] = 2", "E[n] = 1"),
    (),
)
#: What knows another object: a method, the dict of its attributes, a dict in which it is a key.
_METHOD = Kind(
    ("(lambda w: (w, w.append, w.count))([1, 2.5])", "(lambda w: (w, w.append, w.count))([])"),
    ("len(E[0])", "E[2](1)", "sum(E[0])", "len(E[1].__self__)"),
    ("E[1](V)", "E[1](V)", "E[0].append(V)", "E[1](1)", "if E[0]: E[0].pop()", "for w in (1, V): E[1](w)", "E[0].clear()", "t = t + E[2](1)", "w = E[1]\nw(V)", "list(map(E[1], (1, V)))",
     "E[0].append(E[2](1))"),
    ("E = (E[0], E[0].append, E[2])", "E = (lambda w: (w, w.append, w.count))([V])"),
)
_VARIABLES = Kind(
    ("(lambda w: (w, vars(w)))(Box(1))", "(lambda w: (w, w.__dict__))(Box(0.5))"),
    ("E[0].m", "E[1]['m']", "len(E[1])", "len(E[0].items)", "getattr(E[0], 'new', 0)", "E[1].get('new', 0)"),
    ("E[0].m = V", "E[1]['m'] = V", "E[1]['new'] = V", "E[0].new = V", "E[1].pop('new', None)", "E[0].items.append(V)", "E[1]['m'] += V", "E[1].update(m=V)", "vars(E[0])['m'] = V"),
    ("E = (E[0], vars(E[0]))", "E = (lambda w: (w, vars(w)))(Box(V))"),
)
_KEYED = Kind(
    ("({}, Box(1))", "(lambda w: ({w: 1}, w))(Box(1))"),
    ("len(E[0])", "E[0].get(E[1], 0)", "E[1].m", "(E[1] in E[0])", "sum(E[0].values())"),
    ("E[0][E[1]] = V", "E[0].pop(E[1], None)", "E[0][E[1]] = E[1].m", "E[1].m = V", "E[0].clear()", "E[0].setdefault(E[1], V)", "E[0]['a'] = V", "for w in E[0]: t = t + E[0][w]"),
    ("E = ({E[1]: V}, E[1])", "E = ({}, E[1])"),
)

KINDS: dict[str, Kind] = {
    "list": _LIST, "dict": _DICT, "set": _SET, "deque": _DEQUE, "counting dict": _COUNTS, "grouping dict": _GROUPS, "ordered dict": _ORDERED,
    "counter": _COUNTER, "array": _ARRAY, "object": _OBJECT, "int": _INT, "float": _FLOAT, "text": _TEXT, "none": _NONE, "list of arrays": _ARRAYS,
    "dict of objects": _OBJECTS, "list of lists": _NESTED, "dict of lists": _LISTS, "pair": _PAIR, "iterator": _ITERATOR, "bytes": _BYTES, "method": _METHOD, "variables": _VARIABLES, "keyed dict": _KEYED}
#: How often each kind is taken.
WEIGHTS = {"list": 8, "dict": 6, "array": 5, "object": 5, "int": 4, "none": 3, "iterator": 0.7, "bytes": 0.4, "float": 2.5}
