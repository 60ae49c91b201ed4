"""Writing LLVM text: straight-line instructions by method, loops and branches as `with` blocks.

In: method calls in the order of the code. Out: `text()`. Stage: rendering of what is no loop program: machine
code of routines, functions that Python calls. It takes a tenth of the time of LLVM's builder objects.
A value is its name in the text ("%12", "%a") or an int; integers have 64 bits, addresses are byte offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

Operand = str | int
_HEADER = re.compile(r"((?:fastcc )?(?:<[^>]*>|\S+)) @([\w.]+)\((.*)\)")
_LEAPS = "  ret ", "  br ", "  unreachable"


class TextWriter:
    """Text of one module under construction.

    Attributes:
        tuning: the numbers of its room; attributes: of its functions.
        library: name -> type of functions elsewhere, such as "i32 (ptr, ptr)", which `call` declares."""

    library: Mapping[str, str] = {}

    def __init__(self, tuning: tuple = (), attributes: str = ""):
        self.tuning, self.attributes = tuning, attributes
        self._lines: list[str] = []
        self._declared: dict[str, None] = {}
        self._own: dict[str, tuple[str, str]] = {}
        self._count = 0
        self._block = "enter"

    def text(self) -> str:
        return "\n".join([*self._declared, *self._lines, ""])

    # -- functions and instructions -----------------------------------------------------------------------
    def declare(self, line: str) -> None:
        """A declaration or global, once however often it is asked for."""
        self._declared[line] = None

    @contextmanager
    def function(self, header: str, last: str | None = "ret void") -> Iterator[None]:
        """A function; header: "void @name(ptr %a, ...)", with linkage if any. last: its last instruction, or
        None where the body ends with one."""
        result, name, parameters = _HEADER.search(header).groups()
        self._own[name] = result, re.sub(r" %\w+", "", parameters)
        self._lines.append(f"define {' '.join(filter(None, (header, self.attributes)))} {{")
        self.start_block("enter")
        yield
        if last is not None:
            self.do(last)
        self._lines.append("}")

    def do(self, instruction: str) -> None:
        self._lines.append(f"  {instruction}")

    def let(self, instruction: str) -> str:
        """The name of an instruction's result."""
        self._count += 1
        self.do(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def call(self, name: str, *operands: Operand) -> str:
        """The result of a function that is written above, or of `library`. Operands behind the parameters of
        its type have their own types, as in LLVM's text."""
        if name in self._own:
            result, parameters = self._own[name]
        else:
            result, _, parameters = self.library[name].partition(" ")
            self.declare(f"declare {result} @{name}{parameters}")
            parameters = parameters[1:-1]
        kind = f"{result} ({parameters})" if "..." in parameters else result
        kinds = parameters.removesuffix(", ...").split(", ")
        given = [*map("{} {}".format, kinds, operands), *map(str, operands[len(kinds) :])]
        call = f"call {kind} @{name}({', '.join(given)})"
        if result.split()[-1] != "void":
            return self.let(call)
        self.do(call)
        return ""

    def add(self, x: Operand, y: Operand) -> str:
        return self.let(f"add i64 {x}, {y}")

    def sub(self, x: Operand, y: Operand) -> str:
        return self.let(f"sub i64 {x}, {y}")

    def mul(self, x: Operand, y: Operand) -> str:
        return self.let(f"mul i64 {x}, {y}")

    def div(self, x: Operand, y: Operand) -> str:
        return self.let(f"udiv i64 {x}, {y}")

    def rem(self, x: Operand, y: Operand) -> str:
        return self.let(f"urem i64 {x}, {y}")

    def maximum(self, x: Operand, y: Operand) -> str:
        self.declare("declare i64 @llvm.smax.i64(i64, i64)")
        return self.let(f"call i64 @llvm.smax.i64(i64 {x}, i64 {y})")

    def minimum(self, x: Operand, y: Operand) -> str:
        self.declare("declare i64 @llvm.smin.i64(i64, i64)")
        return self.let(f"call i64 @llvm.smin.i64(i64 {x}, i64 {y})")

    def compare(self, kind: str, x: Operand, y: Operand, of: str = "i64") -> str:
        """kind: LLVM's name, such as "slt"."""
        return self.let(f"icmp {kind} {of} {x}, {y}")

    def is_null(self, pointer: str) -> str:
        return self.compare("eq", pointer, "null", "ptr")

    def choose(self, condition: str, x: Operand, y: Operand, kind: str = "i64") -> str:
        return self.let(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def at(self, pointer: str, offset: Operand) -> str:
        """The address `offset` bytes behind a pointer."""
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, pointer: str, kind: str = "i64", align: int = 8) -> str:
        return self.let(f"load {kind}, ptr {pointer}, align {align}")

    def store(self, value: Operand, pointer: str, kind: str = "i64", align: int = 8) -> None:
        self.do(f"store {kind} {value}, ptr {pointer}, align {align}")

    def element(self, table: str, index: Operand, kind: str = "ptr") -> str:
        """The address of one element of a table."""
        return self.let(f"getelementptr {kind}, ptr {table}, i64 {index}")

    def item(self, table: str, index: Operand, kind: str = "ptr") -> str:
        """One element of a table."""
        return self.load(self.element(table, index, kind), kind)

    def variable(self, value: Operand, kind: str = "i64") -> str:
        """A place on the stack that holds a value at first; not in a loop."""
        place = self.let(f"alloca {kind}")
        self.store(value, place, kind)
        return place

    def prefetch(self, pointer: str, *, is_write: bool = False, level: int = 1) -> None:
        """Asks for what is at an address, which need not be of an array, into a level of caches."""
        self.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(is_write)}, i32 {4 - level}, i32 1)")

    def hide(self, pointer: str) -> str:
        """The same pointer, of which LLVM does not know how it was found: it then does not rewrite addresses
        as sums of one another, a chain in which each has to wait for the one before."""
        return self.let(f'call ptr asm "", "=r,0"(ptr {pointer})')

    # -- vectors --------------------------------------------------------------------------------------------
    def splat(self, x: Operand, element: str, lanes: int) -> str:
        """A number in all lanes; itself where there is one."""
        if lanes == 1:
            return x
        vector = f"<{lanes} x {element}>"
        single = self.let(f"insertelement {vector} poison, {element} {x}, i32 0")
        return self.let(f"shufflevector {vector} {single}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def first_lanes(self, count: Operand, lanes: int) -> str:
        """A mask, true in the first `count` lanes."""
        places = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return self.let(f"icmp slt <{lanes} x i64> <{places}>, {self.splat(count, 'i64', lanes)}")

    # -- control flow ---------------------------------------------------------------------------------------
    def label(self, name: str) -> str:
        self._count += 1
        return f"{name}{self._count}"

    def start_block(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def go(self, label: str) -> None:
        """Ends a block by going on at a label, unless it has ended by a leap of its own."""
        if not self._lines[-1].startswith(_LEAPS):
            self.do(f"br label %{label}")

    @contextmanager
    def loop(self, start: Operand, stop: Operand, step: Operand = 1) -> Iterator[str]:
        """Runs the body for start, start + step, ... below stop; yields the counter."""
        head, body, done = (self.label(name) for name in ("head", "body", "done"))
        counter, following = f"%{head}.i", f"%{head}.next"
        before = self._block
        self.do(f"br label %{head}")
        place = len(self._lines) + 1
        self.start_block(head)
        self.do(f"%{head}.more = icmp slt i64 {counter}, {stop}")
        self.do(f"br i1 %{head}.more, label %{body}, label %{done}")
        self.start_block(body)
        yield counter
        self.do(f"{following} = add i64 {counter}, {step}")
        phi = f"  {counter} = phi i64 [ {start}, %{before} ], [ {following}, %{self._block} ]"
        self._lines.insert(place, phi)
        self.do(f"br label %{head}")
        self.start_block(done)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Runs the body if an i1 is true."""
        then, after = self.label("then"), self.label("after")
        self.do(f"br i1 {condition}, label %{then}, label %{after}")
        self.start_block(then)
        yield
        self.go(after)
        self.start_block(after)

    @contextmanager
    def repeat(self) -> Iterator[Callable[[str], None]]:
        """Runs the body again and again; yields `until(condition)`, which ends it where an i1 is true."""
        again, done = self.label("again"), self.label("done")
        self.do(f"br label %{again}")
        self.start_block(again)

        def until(condition: str) -> None:
            following = self.label("on")
            self.do(f"br i1 {condition}, label %{done}, label %{following}")
            self.start_block(following)

        yield until
        self.go(again)
        self.start_block(done)

    def require(self, condition: str, otherwise: str) -> None:
        """Goes on if an i1 is true, else at a label."""
        after = self.label("so")
        self.do(f"br i1 {condition}, label %{after}, label %{otherwise}")
        self.start_block(after)

    @contextmanager
    def cases(self) -> Iterator[Callable[[str], AbstractContextManager]]:
        """Yields `case(condition)`: the body of the first one that is true runs, or else what comes behind
        them."""
        done = self.label("done")

        @contextmanager
        def case(condition: str) -> Iterator[None]:
            body, other = self.label("case"), self.label("other")
            self.do(f"br i1 {condition}, label %{body}, label %{other}")
            self.start_block(body)
            yield
            self.go(done)
            self.start_block(other)

        yield case
        self.go(done)
        self.start_block(done)
