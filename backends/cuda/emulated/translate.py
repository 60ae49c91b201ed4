"""A function of PTX in, LLVM's text out. Between `ptx` and `machine_code`.

Registers are integers in stack slots, of which LLVM makes values again. A kernel becomes a coroutine in a
frame that the launch provides, a function that it calls a function. Spaces of memory are PTX's: addresses of
shared and local memory are offsets, of which `races.access` makes places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import llvmlite.binding as llvm

from jitcore.backends.cuda.emulated import ptx, races, scheduler
from jitcore.backends.cuda.emulated.context import LAUNCH, THREAD

SHARED_LIMIT = 227 * 1024  # bytes of shared memory that a block can have, on the largest GPUs
_RULES: dict[str, Callable[[Body, ptx.Instruction], None]] = {}
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_CALL = re.compile(r"call ([^@]+) @((?:llvm|emulated)[\w.]+)\((.*)\)$")
_AXIS = re.compile(r"%(n?tid|n?ctaid)\.([xyz])")
#: Registers that are made of a thread's number.
_SPECIAL = {
    "%laneid": "and i32 {lane}, 31", "%warpid": "lshr i32 {number}, 5", "%lanemask_eq": "shl i32 1, {lane}",
    "%lanemask_ge": "shl i32 -1, {lane}", "%lanemask_gt": "shl i32 -2, {lane}",
    "%lanemask_lt": "ge = shl i32 -1, {lane}; xor i32 {ge}, -1",
    "%lanemask_le": "gt = shl i32 -2, {lane}; xor i32 {gt}, -1",
}
#: What LLVM's end of a coroutine gives: up to LLVM 21 whether it unwinds.
_END = "void" if llvm.llvm_version_info >= (22,) else "i1"
#: What every module has besides its functions.
RUNTIME = f"""declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare {_END} @llvm.coro.end(ptr, i1, token)"""
# A coroutine whose frame is too small says how large it has to be, and ends.
_KERNEL = f"""define ptr @"%s"(ptr %%thread, ptr %%launch, ptr %%parameters) presplitcoroutine {{
%s
  %%id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)
  %%size = call i64 @llvm.coro.size.i64()
  %%have.place = getelementptr i8, ptr %%launch, i64 {LAUNCH.fields["frame_bytes"][1]}
  %%have = load i64, ptr %%have.place
  %%fits = icmp ule i64 %%size, %%have
  br i1 %%fits, label %%begin, label %%ask
ask:
  store i64 %%size, ptr %%have.place
  ret ptr null
begin:
  %%frame.place = getelementptr i8, ptr %%thread, i64 {THREAD.fields["frame"][1]}
  %%frame = load ptr, ptr %%frame.place
  %%handle = call ptr @llvm.coro.begin(token %%id, ptr %%frame)
%s
finish:
  %%state = getelementptr i8, ptr %%thread, i64 {THREAD.fields["state"][1]}
  store i32 {scheduler.DONE}, ptr %%state
  br label %%suspend
suspend:
  call {_END} @llvm.coro.end(ptr %%handle, i1 false, token none)
  ret ptr %%handle
}}
"""
_FUNCTION = 'define internal void @"%s"(ptr %%thread, ptr %%launch%s) {\n%s\n%s\nfinish:\n  ret void\n}\n'


def rule(*opcodes: str) -> Callable:
    """Registers the translation of instructions: a function of a `Body` and the instruction."""

    def register(function):
        _RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


class Layout:
    """Where a module's variables are. variables: places in the table of their addresses; shared: name ->
    (offset, bytes); local_bytes: what one thread needs for all functions."""

    def __init__(self, assembly: ptx.Assembly):
        self.functions = assembly.functions
        self.variables: dict[str, int] = {}
        self.shared: dict[str, tuple[int, int]] = {}
        self.shared_bytes = self.local_bytes = 0
        for variable in sorted(assembly.variables.values(), key=lambda each: each.size):
            if variable.space == "shared":
                self.add_shared(variable)
            else:
                self.variables[variable.name] = len(self.variables)

    def add_shared(self, variable: ptx.Variable) -> None:
        """With a gap, so that what is past its end is in no other one. That without a size comes first."""
        self.shared[variable.name] = self.shared_bytes if variable.size else 0, variable.size
        self.shared_bytes += (variable.size or SHARED_LIMIT) // 128 * 128 + 256

    def add_local(self, variable: ptx.Variable) -> str:
        offset = -(-self.local_bytes // variable.align) * variable.align
        self.local_bytes = -(-(offset + variable.size) // 16) * 16
        return str(offset)


class _Meaning(NamedTuple):
    """Of a name in a body. kind: register, local (text: its offset) or param (text: a pointer)."""

    kind: str
    text: str
    type: str


class Body:
    """The text of one function while it is being written.

    Values are texts of LLVM, `%v7` or `42`, and integers unless a rule makes them floats. Attributes: uses:
    names of shared variables and of functions; declarations: of LLVM's functions that it calls."""

    def __init__(self, function: ptx.Function, layout: Layout):
        self.function, self.layout = function, layout
        self.lines: list[str] = []
        self.allocas: dict[str, str] = {}
        self.declarations: set[str] = set()
        self.uses: set[str] = set()
        self.labels: set[str] = set()
        self.jump_tables: dict[str, list[str]] = {}
        self.is_open, self._count = True, 0  # is_open: no jump stands at the end
        self._arguments = [] if function.is_kernel else [*function.returns, *function.parameters]
        self._scopes = [{name: _Meaning("param", f'%"{name}"', "ptr") for name in self._arguments}]

    def translate(self) -> str:
        """The whole function."""
        statements = self.function.statements
        for label, following in zip(statements, statements[1:]):
            if following.text.startswith(".branchtargets"):
                self.jump_tables[label.text[:-1]] = ptx.split_operands(following.text.partition(" ")[2])
        for statement in statements:
            text = statement.text
            if text == "{":
                self._scopes.append({})
            elif text == "}":
                self._scopes.pop()
            elif text.endswith(":"):
                self.write_label(text[:-1])
                self.labels.add(text[:-1])
            elif text[0] != ".":
                self.instruction = ptx.Instruction(statement)
                self._translate_instruction(self.instruction)
            elif not text.startswith((".pragma", ".branchtargets", ".callprototype")):
                self._declare(statement)
        if self.is_open:
            self.jump("br label %finish")
        slots = "\n".join(f"  {name} = alloca {kind}, align 16" for name, kind in self.allocas.items())
        if self.function.is_kernel:
            return _KERNEL % (self.function.name, slots, "\n".join(self.lines))
        arguments = "".join(f', ptr %"{name}"' for name in self._arguments)
        return _FUNCTION % (self.function.name, arguments, slots, "\n".join(self.lines))

    # -- text ------------------------------------------------------------------------------------------------
    def write(self, text: str) -> None:
        if not self.is_open:  # behind a jump and without a label
            self.write_label(self.new_name("dead"))
        if called := _CALL.search(text):
            kinds = [argument.rsplit(None, 1)[0] for argument in re.split(r",(?![^<]*>) ?", called[3])]
            self.declarations.add(f"declare {called[1]} @{called[2]}({', '.join(kinds)})")
        self.lines.append(f"  {text}")

    def emit(self, template: str, **values: str | int) -> str:
        """Writes instructions, `name = add i32 {a}, {b}; sub i32 {name}, 1`. Returns the last one's value."""
        for text in template.split("; "):
            name, equals, operation = text.partition(" = ")
            value = f"%{self.new_name('v')}"
            self.write(f"{value} = {(operation if equals else text).format(**values)}")
            values[name] = value
        return value

    def new_name(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def write_label(self, name: str) -> None:
        if self.is_open:
            self.lines.append(f'  br label %"{name}"')
        self.lines.append(f'"{name}":')
        self.is_open = True

    def jump(self, text: str) -> None:
        self.write(text)
        self.is_open = False

    # -- operands --------------------------------------------------------------------------------------------
    def find(self, name: str) -> _Meaning | None:
        stem = name.rstrip("0123456789")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
            if family := scope.get(stem + "<"):  # `.reg .b32 %r<9>;`
                return family._replace(text=family.text + name[len(stem) :])
        return None

    def _find_slot(self, register: _Meaning) -> str:
        slot = f'%"{register.text}.slot"'
        self.allocas[slot] = register.type
        return slot

    def read(self, operand: str, kind: str) -> str:
        """An operand as an integer of LLVM's type `kind`."""
        if operand[0] == "!":  # of a predicate
            return self.emit(f"xor {kind} {self.read(operand[1:], kind)}, 1")
        literal = ptx.parse_literal(operand, int(kind[1:]))
        if literal is not None:
            return str(literal)
        meaning = self.find(operand)
        if meaning is None and operand[0] == "%":
            return self.resize(self._read_special(operand), "i32", kind)
        if meaning is None or meaning.kind == "local":
            return self.resize(meaning.text if meaning else self._read_symbol(operand), "i64", kind)
        if meaning.kind == "param":
            raise self.error(f"the address of the parameter {operand}")
        value = self.emit(f"load {meaning.type}, ptr {self._find_slot(meaning)}")
        return self.resize(value, meaning.type, kind)

    def assign(self, register: str, value: str, kind: str, is_signed: bool = False) -> None:
        """Gives a register a value of LLVM's type `kind`; a narrow one is extended."""
        meaning = self.find(register)
        if register != "_":
            if meaning is None or meaning.kind != "register":
                raise self.error(f"unknown register {register}")
            value = self.resize(value, kind, meaning.type, is_signed)
            self.write(f"store {meaning.type} {value}, ptr {self._find_slot(meaning)}")

    def resize(self, value: str, have: str, want: str, is_signed: bool = False) -> str:
        if have == want:
            return value
        conversion = "trunc" if int(have[1:]) > int(want[1:]) else "sext" if is_signed else "zext"
        return self.emit(f"{conversion} {have} {value} to {want}")

    def _read_special(self, name: str) -> str:
        if found := _AXIS.fullmatch(name):
            return self.load("thread" if found[1] == "tid" else "launch", f"{found[1]}_{found[2]}")
        if name not in _SPECIAL:
            raise self.error(f"unknown register {name}")
        number = self.load("thread", "number")
        return self.emit("lane = and i32 {number}, 31; " + _SPECIAL[name], number=number)

    def _read_symbol(self, name: str) -> str:
        if name in self.layout.shared:
            self.uses.add(name)
            return str(self.layout.shared[name][0])
        if name not in self.layout.variables:
            raise self.error(f"unknown name {name}")
        place = "t = inttoptr i64 {all} to ptr; p = getelementptr i64, ptr {t}, i64 {n}; load i64, ptr {p}"
        return self.emit(place, all=self.load("launch", "variables"), n=self.layout.variables[name])

    # -- records, memory, jumps and waiting ------------------------------------------------------------------
    def _point_to(self, record: str, name: str) -> tuple[str, str]:
        """(pointer, type) of a field of the thread's record or the launch's."""
        kind, offset = (THREAD if record == "thread" else LAUNCH).fields[name][:2]
        return self.emit(f"getelementptr i8, ptr %{record}, i64 {offset}"), f"i{8 * kind.itemsize}"

    def load(self, record: str, name: str) -> str:
        pointer, kind = self._point_to(record, name)
        return self.emit(f"load {kind}, ptr {pointer}")

    def store(self, name: str, value: str | int) -> None:
        pointer, kind = self._point_to("thread", name)
        self.write(f"store {kind} {value}, ptr {pointer}")

    def address(self, text: str) -> str:
        """`[%rd1+8]`, `[buffer]` or `[%r1]` as a number of 64 bits."""
        found = _ADDRESS.fullmatch(text)
        if not found:
            raise self.error(f"unknown address {text}")
        base, offset = self.read(found[1], "i64"), int(found[2] or "0", 0)
        return self.emit(f"add i64 {base}, {offset}") if offset else base

    def access(self, address: str, kinds: int, space: str, size: int | str) -> str:
        """A checked pointer to memory. size: bytes, or a value of 64 bits."""
        known = size if isinstance(size, int) else 0
        what = str(races.pack_access(kinds, space, known, self.instruction.line))
        if isinstance(size, str):
            what = self.emit(f"s = shl i64 {size}, 9; or i64 {{s}}, {what}")
        return self.emit(f"call ptr @emulated_access(ptr %thread, ptr %launch, i64 {address}, i64 {what})")

    def jump_to(self, label: str) -> None:
        """Backwards only as often as a thread may."""
        if label not in self.labels:
            return self.jump(f'br label %"{label}"')
        self.store("site", self.instruction.line)
        left = self.emit(f"sub i64 {self.load('thread', 'steps')}, 1")
        self.store("steps", left)
        self.jump(f'br i1 {self.emit(f"icmp slt i64 {left}, 0")}, label %finish, label %"{label}"')

    def suspend(self, state: int) -> None:
        if not self.function.is_kernel:
            raise self.error(f"{self.function.name} is called, but only kernels can wait: have it inlined")
        self.store("site", self.instruction.line)
        self.store("state", state)
        outcome = self.emit("call i8 @llvm.coro.suspend(token none, i1 false)")
        resumed = self.new_name("resumed")
        self.jump(f'switch i8 {outcome}, label %suspend [i8 0, label %"{resumed}" i8 1, label %suspend]')
        self.write_label(resumed)

    # -- statements ------------------------------------------------------------------------------------------
    def _translate_instruction(self, instruction: ptx.Instruction) -> None:
        if instruction.opcode not in _RULES:
            raise self.error("unknown instruction")
        if instruction.guard:
            then, behind = self.new_name("then"), self.new_name("behind")
            first, second = (behind, then) if instruction.negated else (then, behind)
            self.jump(f'br i1 {self.read(instruction.guard, "i1")}, label %"{first}", label %"{second}"')
            self.write_label(then)
        try:
            _RULES[instruction.opcode](self, instruction)
        except (
            ValueError,
            LookupError,
            AttributeError,
        ) as error:  # other modifiers or operands than it takes
            raise self.error("unknown form of the instruction") from error
        if instruction.modifiers:
            raise self.error(f"unknown modifier .{instruction.modifiers[0]}")
        if instruction.guard:
            self.write_label(behind)

    def _declare(self, statement: ptx.Statement) -> None:
        """`.reg`, `.param`, `.local` or `.shared` inside of a body."""
        scope = self._scopes[-1]
        if statement.text.startswith(".reg"):
            _, kind, names = statement.text.split(None, 2)
            for name in names.split(","):
                stem, bracket, _ = name.strip().partition("<")
                unique = stem if len(self._scopes) == 1 else self.new_name(f"{stem}.") + "."
                scope[stem + bracket] = _Meaning("register", unique, f"i{ptx.width_of(kind[1:])}")
            return
        variable = ptx.parse_variable(statement)
        if variable.space == "shared":
            self.layout.add_shared(variable)
        elif variable.space == "local":
            scope[variable.name] = _Meaning("local", self.layout.add_local(variable), "i64")
        else:
            place = f'%"{self.new_name(variable.name)}"'
            self.allocas[place] = f"[{max(variable.size, 8)} x i8]"
            scope[variable.name] = _Meaning("param", place, "ptr")

    def error(self, reason: str) -> Exception:
        return self.instruction.error(reason)
