"""Multiplying in blocks: from a job, the list of its items and tiles to a result, on all threads.

In: the shape of tiles. Out: LLVM text of `multiply(job)`. Stage: rendering, once per process and dtype.

Follows Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): panels of the right
operand are as wide as a tile, a thread keeps a block of the left operand in its second-level cache, packed
where its strides are unfavourable, and sums tiles in registers. A job is a list of *items*, products with
strides and sizes in common: matrices of a batch, stretches of a long sum, rows of images. An element of the
result is summed in an order that depends on sizes alone, so threads do not change it.
"""

from __future__ import annotations

from jitcore.backends.cpu.native.text_writer import Operand, TextWriter
from jitcore.backends.cpu.routines.product.job import (EPILOGUE_TYPE, RANGE_ARGUMENTS, UNHURRIED, Job,
                                                       call_parallel, divide_up, find_part, load_part,
                                                       load_thread_count, name_symbol)
from jitcore.backends.cpu.routines.product.matrices_routine import ITEM_BYTES
from jitcore.backends.cpu.routines.product.packing import PACK_ARGUMENTS
from jitcore.backends.cpu.routines.product.parts import PACK_AT, TILE_BYTES, TILES_AT, TileShape
from jitcore.backends.cpu.routines.product.tile import REST_BYTES, TILE_ARGUMENTS, write_rests

# Bytes of what is kept about a row of tiles.
_PLACE_BYTES = 48


def write_multiply(w: TextWriter, shape: TileShape) -> None:
    """The exported function of the module, with all that it calls."""
    write_rests(w, shape)
    multiplier = _Multiplier(w, shape)
    multiplier.write_units()
    multiplier.write_multiply()


def call_multiply(w: TextWriter, shape: TileShape, job: Job) -> None:
    """In another module."""
    w.call(name_symbol("multiply", shape), job.pointer, type="void (ptr)")


class _Multiplier:
    """Writes the functions around the tiles."""

    def __init__(self, w: TextWriter, shape: TileShape):
        self.w, self.shape = w, shape

    def write_multiply(self) -> None:
        """`multiply(job)`: cuts items into units, rows of tiles of some panels, and shares them out."""
        w, shape = self.w, self.shape
        with w.function(f"void @{name_symbol('multiply', shape)}(ptr %job) {UNHURRIED}"):
            job = Job(w, "%job")
            m, items = job.get("m"), job.get("item_count")
            tall = w.div(m, shape.rows)
            rest = w.at("@rests", w.mul(w.sub(m, w.mul(tall, shape.rows)), REST_BYTES))
            tiles = w.add(tall, w.load(rest))
            job.put(tall=tall)
            job.put_pointers(rest=rest)
            panels = divide_up(w, job.get("n"), shape.width)
            wanted = divide_up(w, w.tuning.fewest_units, w.mul(items, tiles))
            group_panels = divide_up(w, panels, w.minimum(wanted, panels))
            groups = divide_up(w, panels, group_panels)
            job.put(tiles=tiles, panels=panels, groups=groups, group_panels=group_panels)
            height = divide_up(w, m, tiles)
            finishes = w.compare("ne", job.get("finishes"), 0)
            steps = w.add(job.get("steps"), w.choose(finishes, job.get("epilogue_work"), 0))
            work = w.mul(w.mul(height, w.mul(group_panels, shape.width)), steps)
            units = w.mul(w.mul(items, groups), tiles)
            block = w.minimum(w.tuning.block_tiles, w.div(units, load_thread_count(w)))
            grain = w.maximum(block, divide_up(w, w.tuning.grain_work, work))
            call_parallel(w, "multiply_units", "%job", units, grain)

    def write_units(self) -> None:
        """`multiply_units`: units [start, stop), neighbours of one group of panels in blocks."""
        w = self.w
        with w.function(f"internal void @multiply_units({RANGE_ARGUMENTS}) {UNHURRIED}"):
            job = Job(w, "%job")
            tile_bytes = self._count_tile_bytes(job)
            packs = w.compare("ne", job.get("left_tiles"), 0)
            most = w.choose(packs, job.get("left_tiles"), w.tuning.block_tiles)
            size = w.mul(w.minimum(most, w.sub("%stop", "%start")), tile_bytes)
            packed = w.call("malloc", w.choose(packs, size, 0))
            all_tiles = w.mul(job.get("item_count"), job.get("tiles"))
            unit = w.variable("%start")
            with w.repeat() as until:
                u = w.load(unit)
                until(w.compare("sge", u, "%stop"))
                first, group = w.rem(u, all_tiles), w.div(u, all_tiles)
                left = w.minimum(w.sub(all_tiles, first), w.sub("%stop", u))
                count = divide_up(w, left, divide_up(w, left, most))  # blocks of about one size
                w.call("multiply_block", "%job", packed, group, first, count,
                       type="void (ptr, ptr, i64, i64, i64)")
                w.store(w.add(u, count), unit)
            w.call("free", packed)
        self._write_place()
        self._write_block()
        self._write_end()

    def _write_block(self) -> None:
        """`multiply_block`: `count` rows of tiles from `first` on, times a group of panels.

        They may belong to several items: where these share a right operand, it stays in cache."""
        w, shape = self.w, self.shape
        arguments = "ptr %job, ptr %packed, i64 %group, i64 %first, i64 %count"
        with w.function(f"internal void @multiply_block({arguments}) {UNHURRIED}"):
            job = Job(w, "%job")
            w.do(f"%places = alloca [{w.tuning.most_tiles * _PLACE_BYTES} x i8], align 64")
            packs = w.compare("ne", job.get("left_tiles"), 0)
            a_row = w.choose(packs, shape.itemsize, job.get("a_row"))
            w.call("place_tiles", "%job", "%packed", "%places", "%first", "%count")
            group_panels, k_block = job.get("group_panels"), job.get("k_block")
            start = w.mul("%group", group_panels)
            stop = w.minimum(w.add(start, group_panels), job.get("panels"))
            has_epilogue = w.let(f"icmp ne ptr {job.get_pointer('epilogue')}, null")
            has_epilogue = w.choose(has_epilogue, job.get("finishes"), 0)
            with w.loop(0, job.get("length"), k_block) as k:
                is_last = w.compare("sge", w.add(k, k_block), job.get("length"))
                runs_epilogue = w.compare("ne", w.choose(is_last, has_epilogue, 0), 0)
                with w.loop(start, stop) as panel:
                    with w.loop(0, "%count") as t:
                        place = w.at("%places", w.mul(t, _PLACE_BYTES))
                        steps = w.minimum(w.sub(w.load(w.at(place, 40)), k), k_block)
                        with w.when(w.compare("sgt", steps, 0)):
                            self._multiply_tile(job, place, a_row, panel, k, steps)
                    with w.when(runs_epilogue):
                        w.call("end_panel", "%job", "%places", "%count", start, stop, panel,
                               type="void (ptr, ptr, i64, i64, i64, i64)")

    def _write_end(self) -> None:
        """`end_panel`: runs the epilogue on the latest panels from `start` on, where enough of them are
        finished."""
        w = self.w
        arguments = "ptr %job, ptr %places, i64 %count, i64 %start, i64 %stop, i64 %panel"
        with w.function(f"internal void @end_panel({arguments}) {UNHURRIED}"):
            w.do("%total = alloca i64, align 8")
            self._end_panel(Job(w, "%job"), "%start", "%stop", "%panel")

    def _end_panel(self, job: Job, start: str, stop: str, panel: str) -> None:
        w, shape = self.w, self.shape
        most = w.tuning.epilogue_bytes // (shape.width * shape.itemsize)
        before = w.rem(w.sub(panel, start), most)
        is_end = w.compare("eq", w.add(panel, 1), stop)
        with w.when(w.let(f"or i1 {is_end}, {w.compare('eq', before, most - 1)}")):
            first = w.mul(w.sub(panel, before), shape.width)
            past = w.minimum(w.mul(w.add(panel, 1), shape.width), job.get("n"))
            row, column = self._find_result(job, 0)
            last = w.sub("%count", 1)
            end, last_column = self._find_result(job, last)
            end = w.add(end, self._count_rows(last))
            w.store(0, "%total")
            with w.loop(0, "%count") as t:
                w.store(w.add(w.load("%total"), self._count_rows(t)), "%total")
            is_straight = w.let(f"and i1 {w.compare('eq', w.load('%total'), w.sub(end, row))}, "
                                f"{w.compare('eq', column, last_column)}")
            with w.when(is_straight):  # the rows of all tiles follow each other
                self._call_epilogue(job, row, end, w.add(column, first), w.add(column, past))
            with w.when(w.let(f"xor i1 {is_straight}, true")), w.loop(0, "%count") as t:
                row, column = self._find_result(job, t)
                end = w.add(row, self._count_rows(t))
                self._call_epilogue(job, row, end, w.add(column, first), w.add(column, past))

    def _count_rows(self, t: Operand) -> str:
        w = self.w
        return w.load(w.load(w.at("%places", w.add(w.mul(t, _PLACE_BYTES), 32)), "ptr"))

    def _find_result(self, job: Job, t: Operand) -> tuple[str, str]:
        """Row and column of the whole result where a row of tiles begins."""
        w = self.w
        here = w.load(w.at("%places", w.add(w.mul(t, _PLACE_BYTES), 24)))
        offset, pitch = w.sub(here, job.get("result")), job.get("c_row")
        return w.div(offset, pitch), w.div(w.rem(offset, pitch), self.shape.itemsize)

    def _call_epilogue(self, job: Job, *ends: str) -> None:
        table, dims = job.get_pointer("epilogue_table"), job.get_pointer("epilogue_dims")
        self.w.call(job.get_pointer("epilogue"), table, dims, *ends, type=EPILOGUE_TYPE)

    def _write_place(self) -> None:
        """`place_tiles`: fills `places` for rows of tiles, and packs them where a plan says so. Small
        matrices wait for it: there is one division, for the first of many tiles."""
        w = self.w
        arguments = "ptr %job, ptr %packed, ptr %places, i64 %first, i64 %count"
        with w.function(f"internal void @place_tiles({arguments}) {UNHURRIED}"):
            job = Job(w, "%job")
            entry_slot, number_slot = w.let("alloca ptr"), w.let("alloca i64")
            packs, tiles = w.compare("ne", job.get("left_tiles"), 0), job.get("tiles")
            item = w.div("%first", tiles)
            w.store(w.at(job.get_pointer("items"), w.mul(item, ITEM_BYTES)), entry_slot, "ptr")
            w.store(w.sub("%first", w.mul(item, tiles)), number_slot)
            with w.loop(0, "%count") as t:
                entry, number = w.load(entry_slot, "ptr"), w.load(number_slot)
                self._place_tile(job, t, entry, number)
                following = w.add(number, 1)
                is_last = w.compare("eq", following, tiles)
                w.store(w.choose(is_last, 0, following), number_slot)
                w.store(w.at(entry, w.choose(is_last, ITEM_BYTES, 0)), entry_slot, "ptr")
            with w.when(packs):
                self._pack_left(job)

    def _place_tile(self, job: Job, t: str, entry: str, number: str) -> None:
        """Fills an entry of `places`: where a row of tiles has its operands and results, the stride of its
        steps, its functions, its number of steps."""
        w, length = self.w, self.w.load(self.w.at(entry, 24))
        row, tile = self._find_tile(job, number)
        left = w.at(w.at(job.get_pointer("a"), w.load(entry)), w.mul(row, job.get("a_row")))
        place = w.at("%places", w.mul(t, _PLACE_BYTES))
        w.store(left, place, "ptr")
        w.store(job.get("a_step"), w.at(place, 8))
        right = w.at(job.get_pointer("b"), w.load(w.at(entry, 8)))
        result = w.at(w.at(job.get_pointer("c"), w.load(w.at(entry, 16))), w.mul(row, job.get("c_row")))
        w.store(right, w.at(place, 16), "ptr")
        w.store(result, w.at(place, 24), "ptr")
        w.store(tile, w.at(place, 32), "ptr")
        w.store(length, w.at(place, 40))

    def _find_tile(self, job: Job, number: str) -> tuple[str, str]:
        """(first row, entry in the table of parts) of a tile of an item: tall ones stand first."""
        w, shape, tall = self.w, self.shape, job.get("tall")
        is_tall = w.compare("slt", number, tall)
        behind = w.choose(is_tall, 0, w.sub(number, tall))
        place = w.at(job.get_pointer("rest"), w.add(w.mul(behind, 16), 8))
        row = w.choose(is_tall, w.mul(number, shape.rows), w.add(w.mul(tall, shape.rows), w.load(place)))
        height = w.choose(is_tall, 0, w.load(w.at(place, 8)))
        return row, w.at(find_part(w, shape, TILES_AT), w.mul(height, TILE_BYTES))

    def _pack_left(self, job: Job) -> None:
        """The rows of tiles, step by step, into the thread's memory; a few steps of all of them before the
        next ones where the operand's columns, which are long runs of memory, are steps."""
        w, shape = self.w, self.shape
        a_row, a_step, steps = job.get("a_row"), job.get("a_step"), job.get("length")
        block, pack = self._count_tile_bytes(job), load_part(w, shape, PACK_AT)
        most = w.choose(w.compare("eq", a_row, shape.itemsize), w.tuning.packed_side_by_side, steps)
        with w.loop(0, steps, most) as first, w.loop(0, "%count") as t:
            place = w.at("%places", w.mul(t, _PLACE_BYTES))
            source, rows = w.load(place, "ptr"), w.load(w.load(w.at(place, 32), "ptr"))
            length = w.minimum(most, w.sub(w.load(w.at(place, 40)), first))
            pitch, blocks = w.mul(rows, shape.itemsize), divide_up(w, rows, shape.lanes)
            source = w.at(source, w.mul(first, a_step))
            target = w.at("%packed", w.add(w.mul(t, block), w.mul(first, pitch)))
            with w.loop(0, blocks) as number:  # the last block first, see `write_pack`
                start = w.mul(w.sub(w.sub(blocks, 1), number), shape.lanes)
                here, there = w.at(target, w.mul(start, shape.itemsize)), w.at(source, w.mul(start, a_row))
                w.call(pack, here, pitch, there, a_row, a_step, w.sub(rows, start), length,
                       type=f"void ({PACK_ARGUMENTS})")
        with w.loop(0, "%count") as t:
            place = w.at("%places", w.mul(t, _PLACE_BYTES))
            w.store(w.at("%packed", w.mul(t, block)), place, "ptr")
            w.store(w.mul(w.load(w.load(w.at(place, 32), "ptr")), shape.itemsize), w.at(place, 8))

    def _count_tile_bytes(self, job: Job) -> str:
        """Memory of a packed tile, with what is overwritten behind its last step."""
        w, shape = self.w, self.shape
        return w.add(w.mul(job.get("length"), shape.rows * shape.itemsize), shape.vector_bytes)

    def _multiply_tile(self, job: Job, place: str, a_row: str, panel: str, k: str, steps: str) -> None:
        """One tile, from step k on."""
        w, shape = self.w, self.shape
        a_step, b_step = w.load(w.at(place, 8)), job.get("b_step")
        tile = w.load(w.at(place, 32), "ptr")
        left = w.at(w.load(place, "ptr"), w.mul(k, a_step))
        right = w.at(w.load(w.at(place, 16), "ptr"), w.mul(panel, job.get("b_panel")))
        right = w.at(right, w.mul(k, b_step))
        column = w.mul(panel, shape.width)
        target = w.at(w.load(w.at(place, 24), "ptr"), w.mul(column, shape.itemsize))
        adds = w.let(f"or i64 {job.get('adds')}, {k}")
        columns = w.sub(job.get("n"), column)
        is_full, is_half = w.compare("sge", columns, shape.width), w.compare("sle", columns, shape.lanes)
        function = w.load(w.at(tile, w.choose(is_full, 8, w.choose(is_half, 24, 16))), "ptr")
        w.call(function, left, a_row, a_step, right, b_step, target, job.get("c_row"),
               job.get_pointer("segments"), job.get("segment_count"), steps, w.load(tile), columns, adds,
               type=f"void ({TILE_ARGUMENTS})")
