"""Expressions of the loop program as Python: what has a name, where it gets it, and how the rest is written.

In: expressions and indexes of statements. Out: text. An expression gets a name where it is first needed, if
it is needed again or is long, and in front of a loop, if it does not change in it. A load names an element as
it is where the expression is first written.
"""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jitcore import dtypes
from jitcore.backends.python.helpers import HELPERS
from jitcore.backends.python.operations import (ATOM, COMPARISON, NOT, NUMPY, PRODUCT, SUM, TERNARY, UNARY,
                                                Operations, Text, type_name)
from jitcore.loopir.expr import Axis, Buffer, Dynamic, Expr, FloorDiv, Index, Mod, delinearize, number_of
from jitcore.loopir.program import Choice, Loop, Reduce, Repeat, Scan
from jitcore.loopir.traversal import flatten, list_roots

#: Letters of an expression without a name, at most.
MAX_TEXT = 64
#: Loops' variables, outermost first.
_LETTERS = "ijklmnpq"
#: Comparisons of numbers are made here: loops over edges have some.
_COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}


class Names:
    """Identifiers, each given once."""

    def __init__(self, reserved: Iterable[str] = ()):
        self.taken, self._count = set(reserved), Counter()

    def take(self, stem: str, *, first: bool = False) -> str:
        """first: whether the stem itself will do, for the first one."""
        name = stem if first and stem not in self.taken else ""
        while not name or name in self.taken:
            name = f"{stem}{self._count[stem]}"
            self._count[stem] += 1
        self.taken.add(name)
        return name


class Expressions:
    """The lines of a function, and what they have named.

    Attributes:
        variables: by 0-d buffer, the name of the variable that stands for it; all others are arrays.
        names: of the function; file_names: of what stands above it.
        arrays: names of buffers; moving: those whose names change places.
        written: by the kernel at hand; results: names of what reductions and registers hold.
        empty: what has no elements, which only loops that never run read."""

    #: Functions, by kind of numbers and operation, and the sources of helpers.
    FUNCTIONS, HELPERS = NUMPY, HELPERS

    def __init__(self, names: Names):
        self.names, self.file_names = names, names
        self.operations = Operations(self._use_helper, self.number, self.FUNCTIONS)
        self.lines: list[str] = []
        self.depth = 1
        self.helpers: dict[str, str] = {}
        self.constants: dict[tuple, tuple[str, str]] = {}
        self.arrays: dict[Buffer, str] = {}
        self.variables: dict[Buffer, str] = {}
        self.counters: set[Buffer] = set()
        self.moving: set[Buffer] = set()
        self.flat: dict[Buffer, str] = {}
        self.axes: dict[Axis, str] = {}
        self.known: dict[int, Text] = {}
        self.uses: Counter = Counter()
        self.results: dict = {}
        self.written: set[Buffer] = set()
        self.empty: set[Buffer] = set()

    # -- lines -----------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def suite(self, head: str, body: Sequence = ()) -> Iterator[None]:
        """The lines of a compound statement: what is named in it is forgotten behind it. body: statements
        whose expressions are counted."""
        known, uses = self.known, self.uses
        self.line(head)
        self.known, self.depth = dict(known), self.depth + 1
        self.uses = count_uses(body) if body else uses
        first = len(self.lines)
        yield
        if len(self.lines) == first:
            self.line("pass")
        self.known, self.uses, self.depth = known, uses, self.depth - 1

    def name_axis(self, axis: Axis) -> str:
        letters = [letter for letter in _LETTERS if letter not in self.names.taken]
        number = len(self.axes)
        self.axes[axis] = letters[number] if number < len(letters) else self.names.take("i")
        return self.axes[axis]

    def _use_helper(self, name: str) -> str:
        self.helpers[name] = self.HELPERS[name]
        return name

    # -- numbers ---------------------------------------------------------------------------------------------
    def number(self, value, dtype) -> Text:
        """Literals are float64, int64 or bool; every other number has a name."""
        dtype = np.dtype(np.float32) if dtypes.is_half(dtype) else np.dtype(dtype)
        value = np.asarray(value).astype(dtype)[()]
        if dtype == np.int64:
            return Text(str(value), ATOM if value >= 0 else UNARY, True)
        if dtype.kind == "b":
            return Text(str(value))
        if dtype == np.float64 and np.isfinite(value):
            return Text(repr(float(value)), UNARY if np.signbit(value) else ATOM)
        key = value.tobytes(), dtype
        if key not in self.constants:
            parts = [value.real, value.imag] if dtype.kind == "c" else [value]
            text = ", ".join(map(str, parts)).replace("inf", "np.inf").replace("nan", "np.nan")
            text = f"complex({text})" if dtype.kind == "c" else text
            self.constants[key] = self.file_names.take("C"), f"{type_name(dtype)}({text})"
        return Text(self.constants[key][0])

    # -- expressions -----------------------------------------------------------------------------------------
    def expr(self, root: Expr) -> Text:
        """What an expression is here; what has to have a name gets it in the lines before."""
        stack = [root]
        while stack:
            node = stack[-1]
            missing = (
                [] if id(node) in self.known else [x for x in operands_of(node) if id(x) not in self.known])
            stack.extend(missing)
            if missing:
                continue
            stack.pop()
            if id(node) not in self.known:
                text, is_plain = self._write(node)
                if not is_plain and (self.uses[id(node)] > 1 or len(text.text) > MAX_TEXT):
                    text = self.give_name(text)
                self.known[id(node)] = text
        return self.known[id(root)]

    def give_name(self, text: Text, stem: str = "t") -> Text:
        name = self.names.take(stem)
        self.line(f"{name} = {text.text}")
        return Text(name, ATOM, text.is_whole)

    def text(self, root: Expr, level: int = TERNARY) -> str:
        return self.expr(root).at(level)

    def _write(self, node: Expr) -> tuple[Text, bool]:
        """The text of an expression, and whether a name would say no more."""
        if node.op == "const":
            if dtypes.is_narrow(node.dtype):
                return self.number(node.attr.view(np.uint8), dtypes.uint8), True
            return self.number(node.attr, node.dtype), True
        if node.op == "result":
            return Text(self.results[node.attr]), True
        if node.op == "index":
            return self._write_index(node)
        if node.op == "load":
            buffer, offset = node.attr
            return self.load(buffer, offset), buffer in self.variables and buffer not in self.written
        test = find_range_test(node)
        if test is not None:
            place, limit = (x if isinstance(x, str) else self.text(x, SUM) for x in test)
            text = f"0 <= {place} < {limit}" if node.op == "lt" else f"not 0 <= {place} <= {limit}"
            return Text(text, COMPARISON if node.op == "lt" else NOT), False
        numbers = list(map(number_of, node.args))
        if node.op in _COMPARE and None not in numbers:
            return Text(str(bool(_COMPARE[node.op](*numbers)))), True
        args = [self.known[id(arg)] for arg in node.args]
        if node.op == "select" and args[0].text in ("True", "False"):
            return args[1 if args[0].text == "True" else 2], True
        given = [arg.dtype for arg in node.args]
        return self.operations.write(node.op, node.dtype, given, args, numbers), False

    def _write_index(self, node: Expr) -> tuple[Text, bool]:
        if not node.attr.terms:
            return self.number(int(node.attr.const), node.dtype), True
        text = self.index(node.attr)
        if node.dtype == dtypes.int64:
            return text, not node.attr.exprs
        return self.operations.convert(text, dtypes.int64, node.dtype), False

    # -- places ----------------------------------------------------------------------------------------------
    def index(self, index: Index) -> Text:
        index = self._fold(index)
        added, subtracted = [], []
        for atom, factor in index.terms:
            text, factor = self._atom(atom), int(factor)
            if abs(factor) != 1:
                text = Text(f"{abs(factor)} * {text.at(UNARY)}", PRODUCT)
            (added if factor > 0 else subtracted).append(text)
        const = int(index.const)
        if const or not added and not subtracted:
            (added if const >= 0 else subtracted).append(Text(str(abs(const))))
        if len(added) == 1 and not subtracted:
            return added[0]._replace(is_whole=not index.exprs)
        text = " + ".join(part.at(SUM if number == 0 else SUM + 1) for number, part in enumerate(added))
        text += "".join(f" - {part.at(SUM + 1)}" if text or number else f"-{part.at(UNARY)}"
                        for number, part in enumerate(subtracted))
        return Text(text, SUM, not index.exprs)

    def _fold(self, index: Index) -> Index:
        """The index with terms that are known as one number, and sizes as ints."""
        terms, const = [], int(index.const)
        for atom, factor in index.terms:
            text = self.expr(atom.expr).text if isinstance(atom, Dynamic) else ""
            if text.isdigit():
                const += int(text) * int(factor)
            else:
                terms.append((atom, int(factor)))
        return Index(tuple(terms), const)

    def _atom(self, atom) -> Text:
        if isinstance(atom, Axis):
            return Text(self.axes[atom])
        if isinstance(atom, Dynamic):
            return self.expr(atom.expr)
        sign = "%" if isinstance(atom, Mod) else "//"
        return Text(f"{self.index(atom.index).at(PRODUCT)} {sign} {int(atom.size)}", PRODUCT)

    def place(self, buffer: Buffer, offset: Index, shift: str = "") -> str:
        """What an element is called: by its multi-index where its offset shows that; else by its place in
        the line of all elements. shift: a variable that is added to the place."""
        if buffer in self.variables:
            return self.variables[buffer]
        name = self.arrays[buffer]
        if not buffer.shape:
            return f"{name}[()]"
        offset = self._fold(offset)
        places = delinearize(offset, tuple(map(int, buffer.shape)))
        if shift:
            first = self.index(offset).text
            return f"{self._line_of(buffer)}[{'' if first == '0' else f'{first} + '}{shift}]"
        if len(places) > 1 and _count_divisions(places) > _count_divisions([offset]):
            return f"{self._line_of(buffer)}[{self.index(offset).text}]"
        return f"{name}[{', '.join(self.index(place).text for place in places)}]"

    def _line_of(self, buffer: Buffer) -> str:
        """The name of a buffer's elements in one dimension."""
        name = self.arrays[buffer]
        if len(buffer.shape) == 1:
            return name
        if buffer in self.moving:
            return f"{name}.reshape(-1)"
        if buffer not in self.flat:
            self.flat[buffer] = self.names.take(f"{name}_flat", first=True)
        return self.flat[buffer]

    def load(self, buffer: Buffer, offset: Index, shift: str = "") -> Text:
        text = Text(self.place(buffer, offset, shift))
        is_word = dtypes.is_half(buffer.dtype) and buffer not in self.variables
        return self.operations.from_word(text, buffer.dtype) if is_word else text

    def assign(self, buffer: Buffer, offset: Index, value: Text, shift: str = "") -> None:
        """The line of a store."""
        text, goal = value.text, self.place(buffer, offset, shift)
        if buffer in self.variables:
            is_typed = not value.is_whole or buffer in self.counters or buffer.dtype != dtypes.int64
            text = text if is_typed else f"np.int64({text})"
        elif dtypes.is_half(buffer.dtype):
            text = self.operations.to_word(value, buffer.dtype)
        self.line(f"{goal} = {text}")

    # -- what does not depend on a loop ----------------------------------------------------------------------
    def hoist(self, body: Sequence, axes: Iterable[Axis], registers: Iterable = ()) -> None:
        """Names, in front of a loop, the largest expressions of its body that do not change in it."""
        inner = flatten(body)
        inside = set(axes).union(*(s.axes for s in inner))
        defined = {result for s in inner for result in s.results}.union(registers)
        ready: dict[int, bool] = {}
        order = walk_statements(body)
        for node in order:
            ready[id(node)] = id(node) in self.known or (
                node.axes.isdisjoint(inside) and node.axes <= self.axes.keys()
                and not (node.op == "result" and (node.attr in defined or node.attr not in self.results))
                and not (node.op == "load" and (node.attr[0] in self.written or node.attr[0] in self.empty))
                and all(ready[id(x)] for x in operands_of(node)))
        roots = {id(root): root for root in list_roots(body)}
        largest = [*roots.values(), *(x for node in order if not ready[id(node)] for x in operands_of(node))]
        for node in largest:
            if ready[id(node)] and id(node) not in self.known and not self._is_cheap(node):
                text = self.expr(node)
                if text.level < ATOM or "(" in text.text or "[" in text.text:
                    self.known[id(node)] = self.give_name(text)

    def _is_cheap(self, node: Expr) -> bool:
        if node.op == "load":
            return node.attr[0] in self.variables
        return node.op in ("const", "result") or node.op == "index" and not node.attr.exprs


def operands_of(node: Expr) -> Sequence[Expr]:
    """What has a text before a node has one."""
    test = find_range_test(node)
    return node.inner if test is None else [x for x in test if isinstance(x, Expr)]


def walk_statements(body: Iterable) -> list[Expr]:
    """Every expression of statements and of those in them, operands first."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack = [(root, False) for root in list_roots(body)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack += [(node, True), *((x, False) for x in operands_of(node))]
    return order


def count_uses(body: Sequence) -> Counter:
    """How often statements use each expression; all that is in an inner loop uses it once."""
    count: Counter = Counter()
    seen: set[int] = set()
    for statement in body:
        is_single = isinstance(statement, Scan) and len(body) == 1
        if isinstance(statement, (Loop, Reduce, Scan, Repeat, Choice)) and not is_single:
            count.update(id(node) for node in walk_statements([statement]))
            continue
        stack = list(statement.roots)
        while stack:
            node = stack.pop()
            count[id(node)] += 1
            if id(node) not in seen:
                seen.add(id(node))
                stack.extend(operands_of(node))
    return count


def find_range_test(node: Expr) -> tuple[Expr, Expr | str] | None:
    """(place, limit) where numbers are compared without their signs: 0 <= place < limit is meant, or, for
    "gt", its opposite with <=. A known limit is its text."""
    if node.op not in ("lt", "gt") or node.args[0].op != "convert":
        return None
    place, limit = node.args[0].args[0], node.args[1]
    if dtypes.kind_of(place.dtype) != "i" or dtypes.kind_of(node.args[0].dtype) != "u":
        return None
    if limit.op == "convert":
        return place, limit.args[0]
    known = number_of(limit)
    return None if known is None else (place, str(int(known)))


def _count_divisions(indexes: Iterable[Index]) -> int:
    atoms = [atom for index in indexes for atom, _ in index.terms if isinstance(atom, FloorDiv)]
    return len(atoms) + sum(_count_divisions([atom.index]) for atom in atoms)
