"""Writing LLVM text: straight-line instructions by method, loops and branches as `with` blocks.

In: method calls in the order of the code. Out: `text()`. Stage: rendering of what is no loop program: machine
code of routines, and functions of the run time, which call Python and share memory with threads. It takes a
tenth of the time of LLVM's builder objects.
A value is its name in the text ("%12", "%a") or an int; integers have 64 bits, addresses are byte offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jitcore.backends.cpu.native.python_objects import ITEMS_OFFSET, SIZE_OFFSET, TYPE_OFFSET

Operand = str | int
_HEADER = re.compile(r"((?:fastcc )?(?:<[^>]*>|\S+)) @([\w.]+)\((.*)\)")
_SIGNATURE = re.compile(r"(.*?) ?\((.*)\)")
_NAME = re.compile(r" %\w+")
_LEAPS = "  ret ", "  br ", "  unreachable"
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_NUMBERS = {"float": "f32", "double": "f64"}


def _name_type(kind: str) -> str:
    """A type in names of LLVM's functions."""
    vector = _VECTOR.fullmatch(kind)
    lanes, number = (f"v{vector[1]}", vector[2]) if vector else ("", kind)
    return lanes + _NUMBERS.get(number, number)


def _measure(kind: str) -> tuple[int, int]:
    """The lanes of a vector type, and the bytes of one."""
    lanes, number = _VECTOR.fullmatch(kind).groups()
    return int(lanes), int(_NUMBERS.get(number, number)[1:]) // 8


class TextWriter:
    """Text of one module under construction.

    Attributes:
        tuning: the numbers of its room; attributes: of its functions.
        library: name -> type of functions elsewhere, such as "i32 (ptr, ptr)", which `call` declares."""

    library: Mapping[str, str] = {
        "free": "void (ptr)", "malloc": "ptr (i64)", "llvm.ctlz.i64": "i64 (i64, i1)",
        "llvm.prefetch.p0": "void (ptr, i32, i32, i32)"}

    def __init__(self, tuning: tuple = (), attributes: str = ""):
        self.tuning, self.attributes = tuning, attributes
        self._lines: list[str] = []
        self._declared: dict[str, None] = {}
        self._own: dict[str, tuple[str, str]] = {}
        self._called: dict[str, str] = {}
        self._count = 0
        self._block = "enter"

    def text(self) -> str:
        called = [line for name, line in self._called.items() if name not in self._own]
        return "\n".join([*self._declared, *called, *self._lines, ""])

    # -- functions and instructions -----------------------------------------------------------------------
    def declare(self, line: str) -> None:
        """A declaration or global, once however often it is asked for."""
        self._declared[line] = None

    @contextmanager
    def function(self, header: str, last: str | None = "ret void") -> Iterator[None]:
        """A function; header: "void @name(ptr %a, ...)", with linkage if any. last: its last instruction, or
        None where the body ends with one."""
        result, name, parameters = _HEADER.search(header).groups()
        self._own[name] = result, _NAME.sub("", parameters)
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

    def call(self, name: str, *operands: Operand, type: str = "") -> str:  # noqa: A002
        """The result of a function that is written above, of `library`, or of the type that is given: one of
        another module, one that is written below, one to which a value points. Parameters may have names in
        it. Operands behind the parameters have their own types, as in LLVM's text."""
        place = name if name.startswith("%") else f"@{name}"
        if name in self._own:
            result, parameters = self._own[name]
        else:
            result, parameters = _SIGNATURE.fullmatch(_NAME.sub("", type) or self.library[name]).groups()
            if place != name:
                self._called[name] = f"declare {result} {place}({parameters})"
        kind = f"{result} ({parameters})" if "..." in parameters else result
        kinds = parameters.removesuffix(", ...").split(", ")
        given = [*map("{} {}".format, kinds, operands), *map(str, operands[len(kinds) :])]
        call = f"call {kind} {place}({', '.join(given)})"
        if result.split()[-1] != "void":
            return self.let(call)
        self.do(call)
        return ""

    def intrinsic(self, name: str, kind: str, *operands: Operand) -> str:
        """One of LLVM's functions whose operands and result are of one type: "smin", "fmuladd"."""
        return self.call(f"llvm.{name}.{_name_type(kind)}", *operands,
                         type=f"{kind} ({', '.join([kind] * len(operands))})")

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
        return self.intrinsic("smax", "i64", x, y)

    def minimum(self, x: Operand, y: Operand) -> str:
        return self.intrinsic("smin", "i64", x, y)

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
        place = self.let(f"alloca {kind}, align 8")
        self.store(value, place, kind)
        return place

    def table(self, kind: str, values: Sequence[Operand]) -> str:
        """Room on the stack for values of 8 bytes, which it holds; not in a loop."""
        table = self.let(f"alloca {kind}, i64 {len(values)}")
        for k, value in enumerate(values):
            self.store(value, self.at(table, 8 * k), kind)
        return table

    def prefetch(self, pointer: str, *, is_write: bool = False, level: int = 1) -> None:
        """Asks for what is at an address, which need not be of an array, into a level of caches."""
        self.call("llvm.prefetch.p0", pointer, int(is_write), 4 - level, 1)

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

    def pick(self, kind: str, x: str, y: str, lanes: Iterable[int]) -> str:
        """These lanes of two vectors, counted on from the first to the second."""
        order = [f"i32 {lane}" for lane in lanes]
        return self.let(f"shufflevector {kind} {x}, {kind} {y}, <{len(order)} x i32> <{', '.join(order)}>")

    def first_lanes(self, count: Operand, lanes: int) -> str:
        """A mask, true in the first `count` lanes."""
        places = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return self.let(f"icmp slt <{lanes} x i64> <{places}>, {self.splat(count, 'i64', lanes)}")

    def load_masked(self, pointer: str, kind: str, mask: str, otherwise: str = "zeroinitializer") -> str:
        """A vector; of what is not in memory, lanes of another."""
        lanes, align = _measure(kind)
        return self.call(f"llvm.masked.load.{_name_type(kind)}.p0", pointer, align, mask, otherwise,
                         type=f"{kind} (ptr, i32, <{lanes} x i1>, {kind})")

    def store_masked(self, value: str, pointer: str, kind: str, mask: str) -> None:
        lanes, align = _measure(kind)
        self.call(f"llvm.masked.store.{_name_type(kind)}.p0", value, pointer, align, mask,
                  type=f"void ({kind}, ptr, i32, <{lanes} x i1>)")

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


class RuntimeWriter(TextWriter):
    """Text of functions `PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t nargs)` and of what
    they call, and of what threads share, whose accesses are atomic, of one order with all others unless said.
    `require` leaves for a block that the function writes at its end."""

    library = TextWriter.library | {
        # Python's
        "PyBool_FromLong": "ptr (i64)", "PyContextVar_Get": "i32 (ptr, ptr, ptr)",
        "PyErr_CheckSignals": "i32 ()", "PyErr_Format": "ptr (ptr, ptr, ...)", "PyErr_Occurred": "ptr ()",
        "PyEval_RestoreThread": "void (ptr)", "PyEval_SaveThread": "ptr ()",
        "PyFloat_FromDouble": "ptr (double)", "PyGILState_Check": "i32 ()", "PyGILState_Ensure": "i32 ()",
        "PyGILState_Release": "void (i32)", "PyList_SetItem": "i32 (ptr, i64, ptr)",
        "PyLong_AsLongLong": "i64 (ptr)", "PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
        "PyLong_AsVoidPtr": "ptr (ptr)", "PyLong_FromLongLong": "ptr (i64)",
        "PyObject_CallObject": "ptr (ptr, ptr)", "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
        "PyTuple_New": "ptr (i64)", "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
        "PyType_IsSubtype": "i32 (ptr, ptr)", "Py_DecRef": "void (ptr)", "Py_IncRef": "void (ptr)",
        # the C library's
        "_longjmp": "void (ptr, i32)", "clock_gettime": "i32 (i32, ptr)",
        "madvise": "i32 (ptr, i64, i32)", "posix_memalign": "i32 (ptr, i64, i64)",
        "pthread_cond_broadcast": "i32 (ptr)", "pthread_cond_signal": "i32 (ptr)",
        "pthread_cond_timedwait": "i32 (ptr, ptr, ptr)", "pthread_cond_wait": "i32 (ptr, ptr)",
        "pthread_create": "i32 (ptr, ptr, ptr, ptr)", "pthread_detach": "i32 (ptr)",
        "pthread_kill": "i32 (i64, i32)", "pthread_mutex_lock": "i32 (ptr)",
        "pthread_mutex_unlock": "i32 (ptr)", "pthread_self": "i64 ()",
        "pthread_sigmask": "i32 (i32, ptr, ptr)", "sched_yield": "i32 ()",
        "sigaction": "i32 (i32, ptr, ptr)", "sigaddset": "i32 (ptr, i32)", "sigemptyset": "i32 (ptr)",
        "signal": "ptr (i32, ptr)", "usleep": "i32 (i32)",
        # LLVM's
        "llvm.aarch64.hint": "void (i32)", "llvm.memcpy.p0.p0.i64": "void (ptr, ptr, i64, i1)",
        "llvm.memmove.p0.p0.i64": "void (ptr, ptr, i64, i1)", "llvm.memset.p0.i64": "void (ptr, i8, i64, i1)",
        "llvm.x86.sse2.pause": "void ()",
    }

    # -- what threads share
    def part(self, pointer: str, field: Any) -> str:
        """Where a field of a structure of `ctypes` is."""
        return self.at(pointer, field.offset)

    def load_atomic(self, pointer: str, kind: str = "i64", order: str = "seq_cst") -> str:
        return self.let(f"load atomic {kind}, ptr {pointer} {order}, align 8")

    def store_atomic(self, value: Operand, pointer: str, kind: str = "i64", order: str = "seq_cst") -> None:
        self.do(f"store atomic {kind} {value}, ptr {pointer} {order}, align 8")

    def add_atomic(self, value: int, pointer: str, order: str = "seq_cst") -> str:
        """Adds to a number. Returns: what it was."""
        return self.let(f"atomicrmw add ptr {pointer}, i64 {value} {order}")

    def replace_atomic(self, pointer: str, old: Operand, new: Operand, kind: str = "i64") -> str:
        """Stores a new value in the place of an old one. Returns: whether it was this one, an i1."""
        pair = self.let(f"cmpxchg ptr {pointer}, {kind} {old}, {kind} {new} seq_cst seq_cst")
        return self.let(f"extractvalue {{ {kind}, i1 }} {pair}, 1")

    # -- Python's objects
    def symbol(self, name: str, kind: str = "i8") -> str:
        """The address of a variable of another library."""
        self.declare(f"@{name} = external global {kind}")
        return f"@{name}"

    def field(self, pointer: str, offset: int, kind: str = "ptr") -> str:
        """What an object holds, so many bytes behind its beginning."""
        return self.load(self.at(pointer, offset), kind)

    def is_type(self, kind: str, name: str) -> str:
        """Whether an object's type is the one of this symbol."""
        return self.compare("eq", kind, self.symbol(name), "ptr")

    def is_subtype(self, kind: str, name: str) -> str:
        return self.compare("ne", self.call("PyType_IsSubtype", kind, self.symbol(name)), 0, "i32")

    def require_type(self, item: str, name: str, otherwise: str) -> None:
        self.require(self.is_type(self.field(item, TYPE_OFFSET), name), otherwise)

    def require_list(self, item: str, size: Operand, otherwise: str) -> str:
        """A list of so many items. Returns: where these are."""
        self.require_type(item, "PyList_Type", otherwise)
        self.require(self.compare("eq", self.field(item, SIZE_OFFSET, "i64"), size), otherwise)
        return self.field(item, ITEMS_OFFSET)

    def require_no_error(self, otherwise: str) -> None:
        self.require(self.is_null(self.call("PyErr_Occurred")), otherwise)

    def read_int(self, item: str, limit: int, overflow: str, otherwise: str) -> str:
        """An int from -limit to limit - 1. overflow: where there is room for an i32."""
        value = self.call("PyLong_AsLongLongAndOverflow", item, overflow)
        is_right = self.compare("eq", self.load(overflow, "i32", 4), 0, "i32")
        is_small = self.compare("ult", self.add(value, limit), 2 * limit)
        self.require(self.let(f"and i1 {is_right}, {is_small}"), otherwise)
        return value

    def give_int(self, value: Operand) -> None:
        """Ends a function with a new int."""
        self.do(f"ret ptr {self.call('PyLong_FromLongLong', value)}")
