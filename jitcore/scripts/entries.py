"""On-stack replacement: places at the head of each loop where a frame that runs can be entered from outside.

In: a code object. Out: the same code with a handler behind its end for each loop, and a `Loop` for each. All
else is as it was, instruction by instruction: what a frame does, and what it costs, is the same until
somebody raises `Leave` in it while it stands at the head of a loop. The handler then asks the loop's
`resume(iterator)`, which may have run iterations meanwhile and have assigned variables of the frame:

    number, iterator = resume(iterator)      # of a `while`: None; of a comprehension its list comes, too
    go to the exit of this number; for -1 to the head, with this iterator

Nothing here needs the compiler: a script's code is prepared so when it is loaded.
"""

from __future__ import annotations

import bisect
import opcode
from collections.abc import Callable, Container, Iterable
from types import CodeType

from jitcore.rewriter.bytecode.assembler import Assembler, Handler, Label, encode_handlers, encode_positions
from jitcore.rewriter.bytecode.instructions import PAIRS, Raw, is_generator, read_handlers, read_raw
from jitcore.rewriter.bytecode.versions import LOOP_ENDS, NAME_SHIFTS, NULL_BELOW, find_opcode
from jitcore.scripts.gates import DECLINED, RAISED, WATCH, Gate, Leave, Loop, Prepared, Slot
from jitcore.scripts.watching import LoopCopy

__all__ = ["add_entries", "list_appended", "list_assigned", "list_parameters", "list_read",
           "may_take_long"]

#: What ends a block.
_ENDS = frozenset("RETURN_VALUE RETURN_CONST RAISE_VARARGS RERAISE JUMP_FORWARD JUMP_BACKWARD "
                  "JUMP_BACKWARD_NO_INTERRUPT".split())
_CALLS = frozenset({"CALL", "CALL_FUNCTION_EX", "CALL_KW"})
#: What may take long.
_WORK = _CALLS | {"BINARY_OP", "STORE_SUBSCR", "STORE_SLICE", "FOR_ITER"}
#: Of co_flags: a function; variadic, a generator, a coroutine.
_FUNCTION, _SPECIAL = 0x01 | 0x02, 0x04 | 0x08 | 0x20 | 0x80 | 0x200
#: Code objects with loops that run where they are made, most of the time.
_EXPRESSIONS = frozenset({"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"})
#: Operations of a function without a loop, from which on its calls may be worth a program.
_FEW_OPERATIONS = 4
_OPERATIONS = _CALLS | {"BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE"}
_GLOBALS, _ATTRIBUTES = ("LOAD_GLOBAL",), ("LOAD_METHOD", "LOAD_ATTR")
#: Names by which scripts call what has effects outside of them.
OPAQUE = frozenset("print input open plt pyplot ax axes fig figure sys logging write savefig imshow plot "
                   "pause show draw tqdm info".split())
_PASSING = frozenset({"NOP", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


class Flow:
    """Where control goes in a code object, and how deep its stack is.

    Attributes:
        depths: of the stack before each instruction that can be reached, by offset.
    """

    def __init__(self, code: CodeType):
        self.names = code.co_names
        self.raw = list(read_raw(code))
        self.handlers = list(read_handlers(code))
        offsets = [item.offset for item in self.raw]
        self.following = dict(zip(offsets, offsets[1:]))
        self.by_offset = dict(zip(offsets, self.raw))
        self.starts = [found.start for found in self.handlers]
        self.depths: dict[int, int] = {}
        self._walk()

    def list_successors(self, item: Raw) -> list[tuple[int, bool]]:
        """(offset, whether by a jump) of where control may go from an instruction."""
        found = [] if item.target is None else [(item.target, True)]
        if item.name not in _ENDS and item.offset in self.following:
            found.append((self.following[item.offset], False))
        return found

    def find_handler(self, offset: int):
        """Of exceptions that the instruction at an offset raises, or None."""
        place = bisect.bisect_right(self.starts, offset) - 1
        found = self.handlers[place] if place >= 0 else None
        return found if found is not None and offset < found.stop else None

    def _walk(self) -> None:
        waiting = [(self.raw[0].offset, 0)]
        while waiting:
            offset, depth = waiting.pop()
            while offset not in self.depths:
                self.depths[offset] = depth
                item = self.by_offset[offset]
                handler = self.find_handler(offset)
                if handler is not None and handler.target not in self.depths:
                    waiting.append((handler.target, handler.depth + handler.pushes_offset + 1))
                following = [(target, depth + _effect(item, jumps))
                             for target, jumps in self.list_successors(item)]
                if not following:
                    break
                offset, depth = following.pop()
                waiting += following

    def find_loops(self) -> list[Loop]:
        """Those that control can go around in, outer ones first."""
        heads: dict[int, list[int]] = {}
        before: dict[int, list[int]] = {}
        for offset in self.depths:
            item = self.by_offset[offset]
            for target, _ in self.list_successors(item):
                before.setdefault(target, []).append(offset)
            if item.target is not None and item.target <= offset:
                heads.setdefault(item.target, []).append(offset)
        bodies = {head: _find_body(head, latches, before) for head, latches in heads.items()}
        loops = [self._describe(head, body, bodies) for head, body in bodies.items()]
        parts = [part for loop in loops if loop is not None for part in self._split(loop, bodies)]
        return sorted(parts, key=lambda part: (part.level, part.head))

    def _describe(self, head: int, body: set[int], bodies: dict[int, set[int]]) -> Loop | None:
        item = self.by_offset[head]
        if any(self.by_offset[offset].name in ("YIELD_VALUE", "SEND", "GET_ANEXT") for offset in body):
            return None
        level = sum(head in other and body < other for other in bodies.values())
        is_for = item.name == "FOR_ITER"
        end = self._settle(item.target) if is_for else -1
        line = min(filter(None, (self.by_offset[offset].position[0] for offset in body)), default=0)
        own = frozenset(body)
        return Loop(head, is_for, own, self._find_exits(body), end, *self._find_sides(head, body), False, own,
                    self.depths[head], level, line, self._find_lists(head, body))

    def _find_lists(self, head: int, body: set[int]) -> tuple[int, ...]:
        appends = [self.by_offset[offset] for offset in body if self.by_offset[offset].name == "LIST_APPEND"]
        places = {self.depths[item.offset] - 1 - item.arg for item in appends}
        return tuple(sorted(place for place in places if place < self.depths[head] - 1))

    def _find_exits(self, body: set[int]) -> tuple[int, ...]:
        items = [self.by_offset[offset] for offset in body]
        return tuple(sorted({self._settle(target) for one in items
                             for target, _ in self.list_successors(one) if target not in body}))

    def _split(self, loop: Loop, bodies: dict[int, set[int]]) -> list[Loop]:
        """A loop, if it does something before its first opaque statement, and runs of statements behind such
        ones that each iteration comes to, up to the next such one or the head."""
        if loop.stop < 0:
            return [loop]
        head, body, stop, sides = loop.head, {*loop.body}, loop.stop, {**loop.sides}
        starts = [offset for offset in sorted(sides.pop(stop))
                  if self.depths[offset] == loop.depth and offset >= stop]
        inside = {offset for part in sides.values() for offset in part}
        left = {offset for part in sides.values() if any(map(self._is_opaque, part)) for offset in part}
        opaque: set[int] = set()
        waiting = []
        for start, end in zip(starts, [*starts[1:], max(body) + 1]):
            statement = {offset for offset in body if start <= offset < end}
            if any(self._is_opaque(offset) for offset in statement - inside):
                opaque |= statement
                waiting.append(end)
        rest, runs = body - opaque - {head}, []
        for start in waiting:
            run = self._reach(start, rest)
            is_passed = self._ends_all(head, body, body - self._reach(head, body - {start}))
            if is_passed and start not in bodies and self._has_work(run - left):
                runs.append(Loop(start, False, frozenset(run), self._find_exits(run), -1,
                                 {target: part for target, part in sides.items() if target in run}, -1, True,
                                 run, loop.depth, loop.level + 1,
                                 self.by_offset[start].position[0] or loop.line, ()))
        inner = {offset for other in bodies.values() if head not in other for offset in other & opaque}
        begins = [run.head for run in runs]
        spans = [{offset for offset in loop.sides[stop] if begin <= offset < end} - inner | run.body
                 for run, begin, end in zip(runs, begins, [*begins[1:], max(body) + 1])]
        own = loop.body.difference(inner, *spans)
        parts = [part._replace(span=frozenset(span)) for part, span in zip([loop, *runs], [own, *spans])]
        return parts[not self._has_work(body - loop.sides[stop] - left - {head}):]

    def _has_work(self, offsets: Iterable[int]) -> bool:
        return any(self.by_offset[offset].name in _WORK for offset in offsets)

    def _find_sides(self, head: int, body: set[int]) -> tuple[dict[int, frozenset[int]], int]:
        """Of the larger ones of parts inside of each other; and the stop."""
        found: dict[int, set[int]] = {}
        for offset in sorted(body):
            targets = [target for target, _ in self.list_successors(self.by_offset[offset])]
            for target in targets if len(targets) > 1 else ():
                if target in body and target != head and self.depths[target] == self.depths[head]:
                    part = body - self._reach(head, body - {target})
                    calls = any(self.by_offset[one].name in _CALLS for one in part)
                    is_inside = any(target in other for other in found.values())
                    if calls and not is_inside and not self._ends_all(head, body, part):
                        found[target] = part
        stop = self._find_stop(head, body, found)
        if stop is not None:
            found[stop] = body - self._reach(head, body - {stop})
        return {target: frozenset(part) for target, part in found.items()}, -1 if stop is None else stop

    def _find_stop(self, head: int, body: set[int], sides: dict[int, set[int]]) -> int | None:
        """The first statement that each iteration comes to and that calls what is opaque."""
        inside, start = {offset for part in sides.values() for offset in part}, None
        for offset in sorted(body - inside):
            if self.depths[offset] == self.depths[head]:
                start = offset
            if start is not None and self._is_opaque(offset):
                part = body - self._reach(head, body - {start})
                if start == head or self._ends_all(head, body, part):
                    return start
        return None

    def _is_opaque(self, offset: int) -> bool:
        """Whether an instruction reads a global, or a variable of a module, of such a name."""
        item = self.by_offset[offset]
        is_named = item.name in ("LOAD_NAME", *_GLOBALS)
        return is_named and self.names[item.arg >> NAME_SHIFTS[item.name]] in OPAQUE

    def _reach(self, head: int, body: set[int]) -> set[int]:
        seen, waiting = set(), [head]
        while waiting:
            offset = waiting.pop()
            if offset in body and offset not in seen:
                seen.add(offset)
                waiting += [target for target, _ in self.list_successors(self.by_offset[offset])]
        return seen

    def _ends_all(self, head: int, body: set[int], part: set[int]) -> bool:
        """Whether no iteration ends without a part of the loop."""
        return not any(self.by_offset[one].target == head for one in body - part)

    def _settle(self, offset: int) -> int:
        """Where control comes to do something behind a loop: what stands at the end of a `for`, and jumps, do
        nothing."""
        for name in LOOP_ENDS:
            if self.by_offset[offset].name != name:
                break
            offset = self.following[offset]
        seen: set[int] = set()
        while (name := self.by_offset[offset].name) in _PASSING and offset not in seen:
            seen.add(offset)
            offset = self.following[offset] if name == "NOP" else self.by_offset[offset].target
        return offset


def _effect(item: Raw, jumps: bool) -> int:
    number, arg = find_opcode(item.name, item.arg)
    if item.name == "FOR_ITER" and jumps:  # what stands at the end of the loop is skipped
        return opcode.stack_effect(number, arg, jump=True)
    return opcode.stack_effect(number, arg if number >= opcode.HAVE_ARGUMENT else None, jump=jumps)


def _find_body(head: int, latches: Iterable[int], before: dict[int, list[int]]) -> set[int]:
    body, waiting = {head}, list(latches)
    while waiting:
        offset = waiting.pop()
        if offset not in body:
            body.add(offset)
            waiting += before.get(offset, ())
    return body


def list_read(code: CodeType, offsets: Container[int], with_attributes: bool = False) -> frozenset[str]:
    """Names of variables and globals, and of attributes, that instructions at these offsets read."""
    read = [raw for raw in read_raw(code) if raw.offset in offsets]
    found = {name for raw in read for name in _list_variables(code, raw)}
    kinds = _GLOBALS + _ATTRIBUTES if with_attributes else _GLOBALS
    return frozenset(found | {code.co_names[raw.arg >> NAME_SHIFTS[raw.name]] for raw in read
                              if raw.name in kinds})


def list_appended(code: CodeType, offsets: Container[int], certain: Container[int]) -> frozenset[str]:
    """Names of variables whose method `append` instructions at these offsets read, and of which those at
    certain ones read nothing else."""
    found, others, last, is_certain = set(), set(), "", False
    for raw in read_raw(code):
        appends = raw.name in _ATTRIBUTES and code.co_names[raw.arg >> NAME_SHIFTS[raw.name]] == "append"
        if appends:
            found.add(last)
        elif is_certain:
            others.add(last)
        is_certain = raw.offset in certain
        *before, last = ["", *(_list_variables(code, raw) if raw.offset in offsets else ())]
        if is_certain:
            others |= {*before}
    return frozenset(found - others - {""})


def _list_variables(code: CodeType, raw: Raw) -> list[str]:
    """Variables that an instruction reads."""
    if raw.name == "LOAD_NAME":
        return [code.co_names[raw.arg]]
    first, second = PAIRS.get(raw.name, (raw.name, ""))
    numbers = (raw.arg >> 4, raw.arg & 15) if second else (raw.arg, 0)
    return [code.co_varnames[number] for name, number in zip((first, second), numbers)
            if name in ("LOAD_FAST", "LOAD_FAST_CHECK")]


def list_assigned(code: CodeType, body: Container[int]) -> frozenset[str]:
    """Names that instructions at these offsets of a module's code assign."""
    return frozenset(code.co_names[raw.arg] for raw in read_raw(code)
                     if raw.name == "STORE_NAME" and raw.offset in body)


def add_entries(code: CodeType, make_entry: Callable[[Loop], tuple[Gate, Callable]], slot: Slot | None = None,
                most_levels: int = 2) -> Prepared | None:
    """The code with an entry for each loop that fewer than `most_levels` loops stand around; None if there is
    none.

    Args:
        make_entry: gives the gate of a loop, and the function that its entry asks.
        slot: that calls of the function ask.
    """
    if is_generator(code):
        return None
    loops: tuple[Loop, ...] = ()
    if any(item.target is not None and item.target <= item.offset for item in read_raw(code)):
        flow = Flow(code)
        loops = tuple(loop for loop in flow.find_loops() if loop.level - loop.is_run < most_levels)
    elif slot is not None:
        flow = Flow(code)
    if not loops and slot is None:
        return None
    return _Writer(code, flow, {loop.head: (loop, *make_entry(loop)) for loop in loops}, slot).write()


def list_parameters(code: CodeType) -> tuple[str, ...] | None:
    """The names of a function's parameters; None where a call of it cannot be a call of a program with their
    values."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    is_plain = code.co_flags & (_FUNCTION | _SPECIAL) == _FUNCTION
    in_cells = {*code.co_freevars} or {*names} & {*code.co_cellvars}
    return names if is_plain and names and not in_cells else None


def may_take_long(code: CodeType) -> bool:
    """Whether calls of a function may be worth a program: an entry costs each call some nanoseconds."""
    if not list_parameters(code):
        return False
    return _has_loop(code) or sum(item.name in _OPERATIONS for item in read_raw(code)) >= _FEW_OPERATIONS


def _has_loop(code: CodeType) -> bool:
    """Whether it has a loop, or a comprehension or generator expression, which have loops of their own."""
    if any(isinstance(one, CodeType) and one.co_name in _EXPRESSIONS for one in code.co_consts):
        return True
    return any(item.target is not None and item.target <= item.offset for item in read_raw(code))


class _Writer:
    """Writes the code as it is, with gates before heads and what they lead to behind its end."""

    def __init__(self, code: CodeType, flow: Flow, entries: dict[int, tuple[Loop, Gate, Callable]],
                 slot: Slot | None):
        self.code, self.flow, self.entries, self.slot = code, flow, entries, slot
        self.out = Assembler(code, code.co_varnames)
        self.labels = {item.offset: Label() for item in flow.raw}
        self.heads = {head: Label() for head in entries}  # behind the gates
        self.called = {head: Label() for head in entries}
        self.raised = {head: Label() for head in entries}
        self.stack_size = code.co_stacksize

    def write(self) -> Prepared:
        out, marks, asked, started = self.out, [], Label(), Label()
        for item, following in zip(self.flow.raw, [*self.flow.raw[1:], None]):
            self._set_handler(item)
            out.place(self.labels[item.offset])
            marks.append((self.labels[item.offset], item.offset))
            if item.offset in self.entries:
                self._write_gate(item.offset)
                marks.append((self.heads[item.offset], item.offset))
            if item.target is None:
                out.emit(item.name, item.arg)
            else:
                out.emit(item.name, self._find_target(item))
            if item.name == "RESUME" and self.slot is not None:
                out.position = following.position  # one of its own would be a line that is traced
                out.load_const(self.slot.gate)
                out.branch("TRUE", asked)
                out.place(started)
        end = Label()
        out.place(end)
        marks.append((end, -1))
        if self.slot is not None:
            self._write_call(asked, started)
        for loop, _, resume in self.entries.values():
            copy = LoopCopy(out, self.flow, loop, self.labels, resume)
            copy.write(self.called[loop.head], self._set_handler)
            marks += [(copy.labels[offset], offset) for offset in sorted(copy.labels)]
            self._write_entry(loop, resume, copy)
            marks.append((self.raised[loop.head], -1))
        data, positions, ranges = out.encode()
        code = self.code.replace(
            co_code=data, co_consts=tuple(out.consts), co_names=tuple(out.names),
            co_stacksize=self.stack_size, co_exceptiontable=encode_handlers(ranges),
            co_linetable=encode_positions(self.code.co_firstlineno, positions))
        new, old = map(list, zip(*[(2 * label.offset, old) for label, old in marks]))
        loops = tuple(loop for loop, _, _ in self.entries.values())
        heads = {head: 2 * label.offset for head, label in self.heads.items()}
        return Prepared(self.code, code, loops, heads, new, old)

    def _write_call(self, asked: Label, started: Label) -> None:
        out, line, names = self.out, self.code.co_firstlineno, list_parameters(self.code)
        declined = Label()
        out.handler, out.position = None, (line, line, 0, 0)
        out.place(asked)
        if NULL_BELOW:
            out.emit("PUSH_NULL")
        out.load_const(self.slot)
        out.load_attribute("call")
        if not NULL_BELOW:
            out.emit("PUSH_NULL")
        for name in names:
            out.load(name)
        out.call(len(names))
        out.copy()
        out.branch_is(DECLINED, declined)
        out.emit("RETURN_VALUE")
        out.place(declined)
        out.pop()
        out.emit("JUMP_BACKWARD_NO_INTERRUPT", started)
        self.stack_size = max(self.stack_size, len(names) + 4)

    def _set_handler(self, item: Raw) -> None:
        self.out.handler, self.out.position = self._find_handler(item.offset), item.position

    def _find_handler(self, offset: int) -> Handler | None:
        found = self.flow.find_handler(offset)
        return found and Handler(self.labels[found.target], found.depth, found.pushes_offset)

    def _find_target(self, item: Raw) -> Label:
        entry = self.entries.get(item.target)
        is_inside = entry is not None and item.offset in entry[0].body and entry[0].stop < 0
        return self.heads[item.target] if is_inside else self.labels[item.target]

    def _write_gate(self, head: int) -> None:
        out, (loop, gate, _) = self.out, self.entries[head]
        out.load_const(gate)
        out.branch("TRUE", self.called[head])
        out.place(self.heads[head])
        out.handler = Handler(self.raised[head], loop.depth, True)

    def _write_entry(self, loop: Loop, resume: Callable, copy: LoopCopy) -> None:
        out = self.out
        out.handler = self._find_handler(loop.head)
        out.position = (loop.line, loop.line, 0, 0)
        out.place(self.raised[loop.head])  # ..., iterator, offset that raised, exception
        found = Label()
        out.copy()
        out.load_const(Leave)
        out.emit("CHECK_EXC_MATCH")
        out.swap()
        out.pop()
        out.branch("TRUE", found, exact=True)
        out.emit("RERAISE", 1)
        out.place(found)
        out.pop()
        out.pop()
        out.place(self.called[loop.head])  # ..., iterator
        out.push_callee(resume)
        if loop.is_for:
            out.copy(3)
        else:
            out.load_const(None)
        for number, place in enumerate(loop.lists):
            out.copy(loop.depth + 3 + number - place)
        out.call(1 + len(loop.lists))
        out.emit("UNPACK_SEQUENCE", 2)  # ..., iterator, new iterator, number of the exit
        for number, exit in enumerate((*loop.exits, *loop.sides)):
            self._write_exit(loop, number, exit, copy)
        goes_on, is_watched = Label(), Label()
        out.copy()
        out.branch_is(RAISED, goes_on, holds=False)
        out.pop()
        out.emit("RAISE_VARARGS", 1)
        out.place(goes_on)
        out.branch_is(WATCH, is_watched)
        for label, target in ((None, self.heads[loop.head]), (is_watched, copy.labels[loop.head])):
            if label is not None:
                out.place(label)
            if loop.is_for:
                out.swap()
            out.pop()
            out.emit("JUMP_BACKWARD_NO_INTERRUPT", target)
        self.stack_size = max(self.stack_size, loop.depth + 8 + len(loop.lists))

    def _write_exit(self, loop: Loop, number: int, exit: int, copy: LoopCopy) -> None:
        out, following = self.out, Label()
        out.copy()
        out.branch_is(number, following, holds=False)
        depth, wanted = loop.depth + 2, self.flow.depths[exit]
        if exit in loop.body and loop.is_for:
            out.pop()
            out.swap()
            out.pop()
        else:
            for _ in range(max(2, depth - wanted)):
                out.pop()
        for _ in range(wanted - loop.depth):  # of iterators that are only taken from the stack there
            out.load_const(None)
        self.stack_size = max(self.stack_size, wanted)
        out.emit("JUMP_BACKWARD_NO_INTERRUPT", copy.labels.get(exit) or self.labels[exit])
        out.place(following)
