"""What statements say of themselves, what traversals find, and what the specification refuses."""

from __future__ import annotations

import pytest

import jitcore.numpy as jnp
from jitcore import dtypes
from jitcore.loopir.check import LoopProgramError, check_program
from jitcore.loopir.expr import ZERO, Axis, Buffer, Graph, Index, Result
from jitcore.loopir.program import Choice, Kernel, Loop, Native, Program, Reduce, Scan, Store, While
from jitcore.loopir.traversal import (find_split, flatten, list_buffers, list_outermost, list_reads,
                                      list_roots, list_writes, nest, outside_kernels, peel)
from jitcore.schedule.unrolling import Rewrite
from tests.loop_program import schedule


def make_buffer(name, shape=(8,), dtype=dtypes.float64, kind="temp"):
    return Buffer(name, shape, dtype, kind)


class Parts:
    """A sum over columns, which is stored, in a loop over rows."""

    def __init__(self):
        self.graph = g = Graph()
        self.source, self.goal = make_buffer("in0", (4, 8), kind="in"), make_buffer("out0", (4,), kind="out")
        self.row, self.column = Axis(4), Axis(8)
        self.element = g.load(self.source, Index.of(self.row) * 8 + Index.of(self.column))
        total = Result(dtypes.float64, frozenset((self.row,)), 0)
        self.reduce = Reduce((self.column,), [(total, "add", self.element)], [])
        self.store = Store(self.goal, Index.of(self.row), g.result(total))
        self.loop = Loop(self.row, [self.reduce, self.store])
        self.kernel = Kernel([self.loop], self.column)
        self.program = Program([self.source], [self.goal], [], [Native([self.kernel])])


def test_traversal_of_a_kernel():
    parts = Parts()
    body = [Native([parts.kernel])]
    assert flatten(body) == [body[0], parts.kernel, parts.loop, parts.reduce, parts.store]
    assert list_roots(body) == [parts.element, parts.store.value]
    assert (list_reads(body), list_writes(body)) == ({parts.source}, {parts.goal})
    assert list_buffers(body) == {parts.source, parts.goal}
    assert peel(parts.kernel.body) == ([parts.loop], parts.loop.body)
    assert parts.loop.axes == (parts.row,) and parts.reduce.results == [parts.store.value.attr]


def test_what_is_outside_of_kernels():
    parts, flag = Parts(), make_buffer("flag", (), dtypes.bool_, "scalar")
    other = make_buffer("other")
    loop = While([], flag, [parts.kernel], [(other, make_buffer("another"))])
    assert outside_kernels([loop]) == [loop, parts.kernel]
    assert outside_kernels([loop], frozenset((loop,))) == [loop]
    assert list_outermost([Native([loop])]) == [loop]
    assert (flag, None) in loop.loads and (other, None) in loop.targets


def test_a_choice_defines_what_both_of_its_bodies_do():
    parts = Parts()
    choice = Choice(parts.graph.const(True, dtypes.bool_), [parts.reduce], [parts.reduce])
    assert choice.results == parts.reduce.results and choice.ends == [choice.condition]
    assert len(flatten([choice])) == 3


def test_partial_results_are_written_and_mark_a_split():
    parts, partial = Parts(), make_buffer("tmp0")
    assert find_split(parts.kernel) is None
    parts.reduce.block_results = [partial]
    assert find_split(parts.kernel) == ([parts.row], parts.reduce)
    assert partial in list_writes([parts.kernel])


def test_copies_with_other_axes_and_buffers():
    parts, new, row = Parts(), make_buffer("new", (2, 4)), Axis(4)
    rewrite = Rewrite(parts.graph, {parts.row: row}, buffers={parts.goal: (new, Index((), 4))})
    loop = rewrite.statement(parts.loop)
    reduce, store = loop.body
    assert loop.axes == (row,) and reduce.axes == (parts.column,)
    assert (store.buffer, store.offset) == (new, Index.of(row) + 4)
    assert store.value.attr is reduce.results[0] is not parts.reduce.results[0]
    assert parts.store.buffer is parts.goal


def test_copies_keep_their_blocks():
    graph, axis, goal, blocks = Graph(), Axis(8), make_buffer("out0", kind="out"), make_buffer("tmp0")
    scan = Scan(axis, "add", graph.load(goal, Index.of(axis)), goal, Index.of(axis), False)
    scan.block_results, scan.block = [blocks, blocks], 4
    copied = Rewrite(graph, {}).statement(scan)
    assert (copied.block_results, copied.block, copied.buffer) == (scan.block_results, 4, goal)


def test_nests_of_loops():
    first, second = Axis(2), Axis(3)
    (outer,) = nest((first, second), ["body"])
    assert (outer.axis, outer.body[0].axis, outer.body[0].body) == (first, second, ["body"])
    assert nest((), ["body"]) == ["body"]


def test_scheduled_programs_keep_the_rules():
    check_program(Parts().program)
    check_program(schedule(lambda x: jnp.cumsum(jnp.sort(x), 0) * x.sum(), (jnp.ones((40, 30)),)))


def read_before(parts):
    parts.loop.body.reverse()


def read_outside(parts):
    parts.store.offset = Index.of(parts.column)


def store_into_input(parts):
    parts.store.buffer = parts.source


def read_undeclared(parts):
    parts.store.value = parts.graph.load(make_buffer("tmp0"), ZERO)


def store_another_type(parts):
    parts.store.value = parts.graph.const(1, dtypes.int32)


def store_packed(parts):
    parts.store.packed = True


def end_at_a_float(parts):
    parts.loop.high = parts.graph.const(3.0, dtypes.float64)


def read_what_was_stored(parts):
    parts.loop.body.append(Store(parts.goal, Index.of(parts.row), parts.graph.load(parts.goal, Index.of(parts.row))))


def run_in_tiles(parts):
    parts.kernel.tile = (parts.row, parts.column)


def hold_no_statement(parts):
    parts.loop.body.append("x = 1")


@pytest.mark.parametrize(("change", "message"), [
    (read_before, "before its reduction"), (read_outside, "outside of its loop"), (store_into_input, "into input"),
    (read_undeclared, "not declared"), (store_another_type, "store of int32"), (store_packed, "no mask"),
    (end_at_a_float, "not an int64"), (read_what_was_stored, "read behind a store"), (run_in_tiles, "its tiles"),
    (hold_no_statement, "not a statement"),
])
def test_broken_rules(change, message):
    parts = Parts()
    change(parts)
    with pytest.raises(LoopProgramError, match=message):
        check_program(parts.program)
