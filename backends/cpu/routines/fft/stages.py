"""Machine code of Fourier transforms: which module defines which symbol, and what runs the stages.

In: a symbol `jitcore_fft_<function>_<dtype>`. Out: the LLVM text of the module that exports it. Stage:
rendering, once per process and symbol. `stages` (input, output, temporary, table) does the stages of a table
made by `plan`; it finds the other functions there.
"""

from __future__ import annotations

import functools

from jitcore.backends.cpu.machine import host
from jitcore.backends.cpu.machine.tuning import Fft
from jitcore.backends.cpu.routines.fft.butterflies import PASS_ARGUMENTS, write_pass
from jitcore.backends.cpu.routines.fft.plan import BLOCKS, PASS_FIELDS, PRIVATE, STAGE_FIELDS, UNTANGLE
from jitcore.backends.cpu.routines.fft.rows import (RANGE_ARGUMENTS, find_line, write_extend_block,
                                                    write_load_rows, write_store_rows, write_untangle_block,
                                                    write_untangle_lines)
from jitcore.backends.cpu.routines.fft.stage import LaneWriter
from jitcore.backends.cpu.runtime.threads import PARALLEL_TYPE, SYMBOL as PARALLEL_SYMBOL

# Attributes of functions that run seldom: they are translated quickly instead of well.
_UNHURRIED = "noinline optnone"

# Memory of a thread begins at a cache line.
_ALIGNMENT = 64


def render(symbol: str, _: Fft) -> str:
    """LLVM text of the module that exports `symbol`."""
    kind, dtype = symbol.removeprefix("jitcore_fft_").rsplit("_", 1)
    w = LaneWriter(int(dtype[1:]) // 8, host.native_vector_bytes())
    if kind.startswith("pass"):
        write_pass(w, symbol, int(kind.removeprefix("pass")))
    else:
        _WRITERS[kind](w, symbol)
    return w.text()


def _write_stages(w: LaneWriter, symbol: str) -> None:
    """The exported function: one stage after the other, with the functions that its threads run."""
    _write_passes(w)
    _write_blocks(w)
    _write_threads(w)
    with w.function(f"void @{symbol}(ptr %input, ptr %output, ptr %temporary, i64 %address) {_UNHURRIED}"):
        table = w.let("inttoptr i64 %address to ptr")
        buffers = w.let(f"alloca [{PRIVATE + 1} x ptr]")
        for number, buffer in enumerate(("%input", "%output", "%temporary")):
            w.store(buffer, w.at(buffers, 8 * number), "ptr")
        with w.loop(0, w.load(table)) as number:
            w.do(f"%stage = load ptr, ptr {w.at(table, w.add(w.mul(number, 8), 8))}")
            kind = w.number("kind")
            body = w.choose(w.compare("eq", kind, BLOCKS), "@share_blocks", "@share_lines", "ptr")
            body = w.choose(w.compare("eq", kind, UNTANGLE), w.pointer("untangle_code"), body, "ptr")
            items, grain = w.number("items"), w.number("grain")
            w.call(PARALLEL_SYMBOL, body, buffers, "%stage", items, grain, type=PARALLEL_TYPE)


def _write_passes(w: LaneWriter) -> None:
    """`run_passes`: all passes over the block at `work`. After the first one, stretches that fit a nearer
    cache are done one by one."""
    arguments = "ptr %stage, ptr %work, ptr %src, ptr %dst, i64 %count, ptr %turns"
    with w.function(f"internal void @run_passes({arguments}) {_UNHURRIED}"):
        last, chunks = w.sub(w.number("pass_count"), 1), w.number("chunks")
        bases, chunk_bases = w.pointer("bases_at"), w.mul(w.number("chunk_bases"), 4)
        chunk_bytes = w.mul(w.div(w.number("points"), chunks), w.point)
        whole = w.choose(w.compare("sgt", chunks, 1), 1, w.add(last, 1))
        with w.loop(0, whole) as number:
            _call_pass(w, number, last, "%work", bases)
        with w.loop(0, chunks) as chunk:
            work = w.at("%work", w.mul(chunk, chunk_bytes))
            own_bases = w.at(bases, w.mul(chunk, chunk_bases))
            with w.loop(whole, w.add(last, 1)) as number:
                _call_pass(w, number, last, work, own_bases)


def _call_pass(w: LaneWriter, number: str, last: str, work: str, bases: str) -> None:
    entry = w.at(w.pointer("passes_at"), w.mul(number, 8 * len(PASS_FIELDS)))
    fields = ("code", "roots_at", "distance", "blocks")
    places = [w.at(entry, 8 * PASS_FIELDS.index(field)) for field in fields]
    function, roots = (w.load(place, "ptr") for place in places[:2])
    distance, blocks = map(w.load, places[2:])
    src = w.choose(w.compare("eq", number, 0), "%src", "null", "ptr")
    dst = w.choose(w.compare("eq", number, last), "%dst", "null", "ptr")
    w.call(function, "%stage", work, blocks, distance, roots, src, dst, bases, "%count", "%turns",
           type=f"void ({PASS_ARGUMENTS})")


def _write_blocks(w: LaneWriter) -> None:
    """`run_blocks`: blocks [start, stop) of a stage, in a thread's memory."""
    with w.function(f"internal void @run_blocks({RANGE_ARGUMENTS}, ptr %work) {_UNHURRIED}"):
        blocks, lines = w.number("blocks"), w.number("lines")
        turns, points = w.pointer("turn_blocks_at"), w.number("points")
        is_plain = w.let(f"icmp eq ptr {turns}, null")
        with w.loop("%start", "%stop") as item:
            outer, block = w.div(item, blocks), w.rem(item, blocks)
            count = w.minimum(w.sub(lines, w.mul(block, w.lanes)), w.lanes)
            own = w.at(turns, w.mul(block, w.mul(points, 2 * w.itemsize)))
            own = w.choose(is_plain, "null", own, "ptr")
            src, dst = (w.at(find_line(w, side, outer), w.mul(block, w.number(f"{side}_block")))
                        for side in ("src", "dst"))
            _run_block(w, src, dst, count, own)


#: Of what loads and stores a block.
_BLOCK_TYPE = "void (ptr, ptr, ptr, i64)"


def _run_block(w: LaneWriter, src: str, dst: str, count: str, turns: str) -> None:
    load, store, untangle = (w.pointer(field) for field in ("load_code", "store_code", "untangle_code"))
    from_rows, to_rows, untangles = (w.let(f"icmp ne ptr {code}, null") for code in (load, store, untangle))
    to_real = w.compare("ne", w.number("is_real_output"), 0)
    with w.when(from_rows):
        w.call(load, "%stage", "%work", src, count, type=_BLOCK_TYPE)
    with w.when(w.let(f"and i1 {untangles}, {to_real}")):
        w.call(untangle, "%stage", "%work", type="void (ptr, ptr)")
    columns = [w.choose(is_rows, "null", side, "ptr") for is_rows, side in ((from_rows, src), (to_rows, dst))]
    w.call("run_passes", "%stage", "%work", *columns, count, turns)
    with w.when(w.let(f"and i1 {untangles}, {w.let(f'xor i1 {to_real}, true')}")):
        w.call(untangle, "%stage", "%work", type="void (ptr, ptr)")
    with w.when(to_rows):
        w.call(store, "%stage", "%work", dst, count, type=_BLOCK_TYPE)


def _write_threads(w: LaneWriter) -> None:
    """`share_blocks` and `share_lines`: what threads run, with memory of their own."""
    with w.function(f"internal void @share_blocks({RANGE_ARGUMENTS}) {_UNHURRIED}"):
        memory, work = _allocate(w, w.number("work_bytes"))
        w.call("run_blocks", "%buffers", "%stage", "%start", "%stop", work)
        w.call("free", memory)
    with w.function(f"internal void @share_lines({RANGE_ARGUMENTS}) {_UNHURRIED}"):
        own_bytes, parts, part_count = w.number("own_bytes"), w.pointer("parts_at"), w.number("part_count")
        memory, own = _allocate(w, w.add(own_bytes, w.number("work_bytes")))
        work = w.at(own, own_bytes)
        mine = w.let(f"alloca [{PRIVATE + 1} x ptr]")
        for number in range(PRIVATE):
            w.store(w.load(w.at("%buffers", 8 * number), "ptr"), w.at(mine, 8 * number), "ptr")
        w.store(own, w.at(mine, 8 * PRIVATE), "ptr")
        with w.loop("%start", "%stop") as line, w.loop(0, part_count) as number:
            part = w.load(w.at(parts, w.mul(number, 8)), "ptr")
            kind, blocks = (w.load(w.at(part, 8 * STAGE_FIELDS.index(field))) for field in ("kind", "blocks"))
            first = w.mul(line, blocks)
            given = mine, part, first, w.add(first, blocks)
            with w.when(w.compare("eq", kind, BLOCKS)):
                w.call("run_blocks", *given, work)
            with w.when(w.compare("eq", kind, UNTANGLE)):
                untangle = w.load(w.at(part, 8 * STAGE_FIELDS.index("untangle_code")), "ptr")
                w.call(untangle, *given, type=f"void ({RANGE_ARGUMENTS})")
        w.call("free", memory)


def _allocate(w: LaneWriter, size: str) -> tuple[str, str]:
    """(what is to be freed, what is to be used) of `size` bytes."""
    memory = w.call("malloc", w.add(size, _ALIGNMENT))
    address = w.let(f"ptrtoint ptr {memory} to i64")
    return memory, w.at(memory, w.sub(_ALIGNMENT, w.rem(address, _ALIGNMENT)))


_WRITERS = {
    "load_rows": write_load_rows,
    "store_rows": write_store_rows,
    "load_reals": functools.partial(write_load_rows, are_real=True),
    "store_reals": functools.partial(write_store_rows, are_real=True),
    "extend_block": write_extend_block,
    "untangle_block": write_untangle_block,
    "untangle_lines": write_untangle_lines,
    "stages": _write_stages,
}
