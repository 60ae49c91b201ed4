"""Matrix products in machine code: what the routines of `product` and `convolution` call.

In: a symbol, `jitcore_product_f32`, `..._f64`, `jitcore_windows_f32`, `..._f64`, Out: LLVM text that
defines it. Stage: rendering, once per process.

The product follows Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block
of the right operand is packed into panels as wide as a tile, a thread packs blocks of the left operand for
its second-level cache, and tiles of the result are summed in registers. Work is a list of *items*, products
with strides and sizes in common: matrices of a batch, stretches of a long sum, rows of images. An element of
the result is summed in an order that depends on sizes alone, so threads do not change it.
"""

from __future__ import annotations

from jitcore.backends.cpu.routines.llvm_text import Operand, TextWriter
from jitcore.backends.cpu.routines.product_tile_code import (
    REST_BYTES,
    TILE_ARGUMENTS,
    TileShape,
    choose_tile_shape,
    write_packers,
    write_tiles,
)
from jitcore.backends.cpu.threads import SYMBOL as PARALLEL_SYMBOL

__all__ = ["ITEM_BYTES", "render"]

#: Bytes of an entry of the table of items: offsets in left, right and result, steps of a segment.
ITEM_BYTES = 32

# Multiply-adds that a thread should have before another one is woken up.
_GRAIN_WORK = 1 << 18
# Pieces of work to aim at where the rows of tiles alone are few: enough for the threads of a large machine.
_FEWEST_UNITS = 32
# Bytes of packed left operand per thread: half of a small second-level cache. They lie on the stack.
_PACKED_BYTES = 176 << 10

_FIELDS = ("a", "b", "c", "items", "segments", "packed", "item_count", "segment_count", "m", "n", "steps",
           "tiles", "groups", "group_panels", "panels", "a_row", "a_step", "b_item",
           "b_step", "b_column", "b_panel", "c_row", "k_block", "packs_a", "adds")  # fmt: skip


def render(symbol: str) -> str:
    """LLVM text of the module that exports `symbol`."""
    kind, dtype = symbol.removeprefix("jitcore_").split("_")
    shape = choose_tile_shape(int(dtype[1:]) // 8)
    w = TextWriter()
    w.declare(f"declare void @{PARALLEL_SYMBOL}(ptr, ptr, ptr, i64, i64)")
    write_tiles(w, shape)
    write_packers(w, shape)
    driver = _Driver(w, shape)
    driver.write_units()
    driver.write_multiply()
    if kind == "product":
        driver.write_pack_panels()
        driver.write_product(symbol)
    return w.text()


class _Job:
    """The fields of one product: an array of 64-bit integers that all its threads read."""

    def __init__(self, w: TextWriter, pointer: str):
        self.w, self.pointer = w, pointer

    @classmethod
    def allocate(cls, w: TextWriter) -> _Job:
        return cls(w, w.let(f"alloca [{len(_FIELDS)} x i64], align 64"))

    def _at(self, field: str) -> str:
        return self.w.at(self.pointer, 8 * _FIELDS.index(field))

    def get(self, field: str) -> str:
        return self.w.load(self._at(field))

    def get_pointer(self, field: str) -> str:
        return self.w.load(self._at(field), "ptr")

    def put(self, **fields: Operand) -> None:
        for field, value in fields.items():
            self.w.store(value, self._at(field))

    def put_pointers(self, **fields: str) -> None:
        for field, value in fields.items():
            self.w.store(value, self._at(field), "ptr")


class _Driver:
    """Writes the functions around the tiles."""

    def __init__(self, w: TextWriter, shape: TileShape):
        self.w, self.shape = w, shape

    def round_up_div(self, x: Operand, y: Operand) -> str:
        return self.w.div(self.w.add(x, self.w.sub(y, 1)), y)

    # -- multiplying ------------------------------------------------------------------------------------------
    def write_multiply(self) -> None:
        """`multiply(job)`: cuts items into units, rows of tiles of some panels, and shares them out."""
        w, shape = self.w, self.shape
        with w.function("internal void @multiply(ptr %job)"):
            job = _Job(w, "%job")
            m, items = job.get("m"), job.get("item_count")
            rest = w.load(w.at("@rests", w.mul(w.rem(m, shape.rows), REST_BYTES)))
            tiles = w.add(w.div(m, shape.rows), rest)
            panels = self.round_up_div(job.get("n"), shape.width)
            wanted = self.round_up_div(_FEWEST_UNITS, w.mul(items, tiles))
            group_panels = self.round_up_div(panels, w.minimum(wanted, panels))
            groups = self.round_up_div(panels, group_panels)
            job.put(tiles=tiles, panels=panels, groups=groups, group_panels=group_panels)
            height = self.round_up_div(m, tiles)
            work = w.mul(w.mul(height, w.mul(group_panels, shape.width)), job.get("steps"))
            grain = self.round_up_div(_GRAIN_WORK, work)
            units = w.mul(w.mul(items, groups), tiles)
            self.call_parallel("multiply_units", "%job", units, grain)

    def call_parallel(self, body: str, job: str, count: Operand, grain: Operand) -> None:
        w = self.w
        alone, shared, after = w.label("alone"), w.label("shared"), w.label("after")
        w.do(f"br i1 {w.compare('sle', count, grain)}, label %{alone}, label %{shared}")
        w.start_block(alone)
        w.do(f"call void @{body}(ptr null, ptr {job}, i64 0, i64 {count})")
        w.do(f"br label %{after}")
        w.start_block(shared)
        w.do(f"call void @{PARALLEL_SYMBOL}(ptr @{body}, ptr null, ptr {job}, i64 {count}, i64 {grain})")
        w.do(f"br label %{after}")
        w.start_block(after)

    def write_units(self) -> None:
        """`multiply_units`: units [start, stop), neighbouring rows of tiles in blocks."""
        w, shape = self.w, self.shape
        with w.function("internal void @multiply_units(ptr %none, ptr %job, i64 %start, i64 %stop)"):
            job = _Job(w, "%job")
            slack = shape.vector_bytes
            packed = w.let(f"alloca [{_PACKED_BYTES + slack} x i8], align 64")
            tiles, groups = job.get("tiles"), job.get("groups")
            steps = job.get("steps")
            tile_bytes = w.mul(steps, shape.rows * shape.itemsize)
            most = w.choose(w.compare("ne", job.get("packs_a"), 0), w.div(_PACKED_BYTES, tile_bytes), 8)
            unit = w.let("alloca i64")
            w.store("%start", unit)
            head, body, done = w.label("head"), w.label("body"), w.label("done")
            w.do(f"br label %{head}")
            w.start_block(head)
            u = w.load(unit)
            w.do(f"br i1 {w.compare('slt', u, '%stop')}, label %{body}, label %{done}")
            w.start_block(body)
            first, column = w.rem(u, tiles), w.div(u, tiles)
            count = w.minimum(w.minimum(w.sub(tiles, first), w.sub("%stop", u)), most)
            group, item = w.rem(column, groups), w.div(column, groups)
            w.do(f"call void @multiply_block(ptr %job, ptr {packed}, i64 {item}, i64 {group}, i64 {first}, "
                 f"i64 {count})")  # fmt: skip
            w.store(w.add(u, count), unit)
            w.do(f"br label %{head}")
            w.start_block(done)
        self._write_block()

    def _write_block(self) -> None:
        """`multiply_block`: `count` rows of tiles from `first` on, times a group of panels."""
        w = self.w
        arguments = "ptr %job, ptr %packed, i64 %item, i64 %group, i64 %first, i64 %count"
        with w.function(f"internal void @multiply_block({arguments})"):
            job = _Job(w, "%job")
            entry = w.at(job.get_pointer("items"), w.mul("%item", ITEM_BYTES))
            a = w.at(job.get_pointer("a"), w.load(entry))
            b = w.at(job.get_pointer("b"), w.load(w.at(entry, 8)))
            c = w.at(job.get_pointer("c"), w.load(w.at(entry, 16)))
            length = w.load(w.at(entry, 24))
            packs = w.compare("ne", job.get("packs_a"), 0)
            with w.when(packs):
                self._pack_left(job, a, length)
            group_panels = job.get("group_panels")
            start = w.mul("%group", group_panels)
            stop = w.minimum(w.add(start, group_panels), job.get("panels"))
            k_block = job.get("k_block")
            with w.loop(0, length, k_block) as k, w.loop(start, stop) as panel, w.loop(0, "%count") as t:
                steps = w.minimum(w.sub(length, k), k_block)
                self._multiply_tile(job, packs, (a, b, c), panel, t, k, steps, length)

    def _find_tile(self, job: _Job, t: str) -> tuple[str, str]:
        """(first row, entry in `tiles`) of a tile of the block: tall ones stand first."""
        w, shape = self.w, self.shape
        number, m = w.add("%first", t), job.get("m")
        tall = w.div(m, shape.rows)
        rest = w.at("@rests", w.mul(w.rem(m, shape.rows), REST_BYTES))
        is_tall = w.compare("slt", number, tall)
        place = w.at(rest, w.add(w.mul(w.choose(is_tall, 0, w.sub(number, tall)), 16), 8))
        row = w.choose(is_tall, w.mul(number, shape.rows), w.add(w.mul(tall, shape.rows), w.load(place)))
        height = w.choose(is_tall, 0, w.load(w.at(place, 8)))
        return row, w.at("@tiles", w.mul(height, 24))

    def _pack_left(self, job: _Job, a: str, length: str) -> None:
        """Rows of tiles, each step by step, into the thread's memory."""
        w, shape = self.w, self.shape
        a_row, a_step = job.get("a_row"), job.get("a_step")
        with w.loop(0, "%count") as t:
            row, tile = self._find_tile(job, t)
            rows = w.load(tile)
            source = w.at(a, w.mul(row, a_row))
            target = w.at("%packed", w.mul(t, w.mul(length, shape.rows * shape.itemsize)))
            blocks = self.round_up_div(rows, shape.lanes)
            with w.loop(0, blocks) as number:  # the last block first, see `pack`
                start = w.mul(w.sub(w.sub(blocks, 1), number), shape.lanes)
                w.do(f"call void @pack(ptr {w.at(target, w.mul(start, shape.itemsize))}, "
                     f"i64 {w.mul(rows, shape.itemsize)}, ptr {w.at(source, w.mul(start, a_row))}, "
                     f"i64 {a_row}, i64 {a_step}, i64 {w.sub(rows, start)}, i64 {length})")  # fmt: skip

    def _multiply_tile(self, job: _Job, packs: str, operands, panel, t, k, steps, length) -> None:
        w, shape = self.w, self.shape
        a, b, c = operands
        row, tile = self._find_tile(job, t)
        rows = w.load(tile)
        a_row, a_step = job.get("a_row"), job.get("a_step")
        own = w.at("%packed", w.mul(t, w.mul(length, shape.rows * shape.itemsize)))
        left = w.choose(packs, own, w.at(a, w.mul(row, a_row)), "ptr")
        a_row = w.choose(packs, shape.itemsize, a_row)
        a_step = w.choose(packs, w.mul(rows, shape.itemsize), a_step)
        left = w.at(left, w.mul(k, a_step))
        b_step, c_row = job.get("b_step"), job.get("c_row")
        right = w.at(w.at(b, w.mul(panel, job.get("b_panel"))), w.mul(k, b_step))
        column = w.mul(panel, shape.width)
        target = w.at(c, w.add(w.mul(row, c_row), w.mul(column, shape.itemsize)))
        adds = w.let(f"or i1 {w.compare('ne', job.get('adds'), 0)}, {w.compare('ne', k, 0)}")
        columns = w.sub(job.get("n"), column)
        is_full = w.compare("sge", columns, shape.width)
        places = w.choose(is_full, 1, self.round_up_div(w.minimum(columns, shape.width), shape.lanes))
        function = w.load(w.at(tile, w.choose(is_full, 8, 16)), "ptr")
        with w.loop(0, places) as part:
            offset, lane = w.mul(part, shape.vector_bytes), w.mul(part, shape.lanes)
            arguments = (left, a_row, a_step, w.at(right, offset), b_step, w.at(target, offset), c_row,
                         job.get_pointer("segments"), job.get("segment_count"), steps, w.sub(columns, lane),
                         adds)  # fmt: skip
            w.do(f"call void {function}({_name_arguments(*arguments)})")

    # -- the matrix product -----------------------------------------------------------------------------------
    def write_pack_panels(self) -> None:
        """`pack_panels`: panels [start, stop) of the right operands of a chunk of items."""
        w, shape = self.w, self.shape
        with w.function("internal void @pack_panels(ptr %none, ptr %job, i64 %start, i64 %stop)"):
            job = _Job(w, "%job")
            panels, n, steps = job.get("panels"), job.get("n"), job.get("steps")
            b_step, b_column = job.get("b_step"), job.get("b_column")
            b, packed, b_item = job.get_pointer("b"), job.get_pointer("packed"), job.get("b_item")
            with w.loop("%start", "%stop") as u, w.loop(0, shape.vectors) as part:
                item, panel = w.div(u, panels), w.rem(u, panels)
                column = w.add(w.mul(panel, shape.width), w.mul(part, shape.lanes))
                source = w.at(b, w.add(w.mul(item, b_item), w.mul(column, b_column)))
                target = w.at(packed, w.mul(w.mul(u, steps), shape.width * shape.itemsize))
                target = w.at(target, w.mul(part, shape.vector_bytes))
                with w.when(w.compare("slt", column, n)):
                    w.do(f"call void @pack(ptr {target}, i64 {shape.width * shape.itemsize}, ptr {source}, "
                         f"i64 {b_column}, i64 {b_step}, i64 {w.sub(n, column)}, i64 {steps})")  # fmt: skip

    def write_product(self, symbol: str) -> None:
        """The exported matrix product; sizes and strides are elements.

        c[i] (m x n, contiguous) = a[i] (m x k) @ b[i] (k x n) for i < batch. See `product.Plan` for the rest.
        """
        names = ("batch", "m", "n", "k", "a_item", "a_row", "a_step", "b_item", "b_step", "b_column", "packs_a",
                 "packs_b", "batch_block", "n_block", "k_block", "inner_block", "splits")  # fmt: skip
        arguments = ", ".join(f"i64 %{name}" for name in names)
        w, shape = self.w, self.shape
        with w.function(f"void @{symbol}(ptr %a, ptr %b, ptr %c, ptr %work, {arguments})"):
            job = _Job.allocate(w)
            scale = {name: w.mul(f"%{name}", shape.itemsize) for name in names[4:10]}
            items = w.at("%work", 64)
            w.store(0, "%work")
            w.store(0, w.at("%work", 8))
            item_count = w.mul("%batch_block", "%splits")
            packed = w.at(items, w.mul(self.round_up_div(w.mul(item_count, ITEM_BYTES), 64), 64))
            is_split = w.compare("sgt", "%splits", 1)
            partials = w.mul(w.mul(w.mul("%batch", "%splits"), w.mul("%m", "%n")), shape.itemsize)
            partials = w.mul(self.round_up_div(w.choose(is_split, partials, 0), 64), 64)
            target = w.choose(is_split, packed, "%c", "ptr")
            packed = w.at(packed, partials)
            job.put_pointers(a="%a", c=target, items=items, segments="%work", packed=packed)
            c_row = w.mul("%n", shape.itemsize)
            job.put(segment_count=1, m="%m", packs_a="%packs_a", k_block="%inner_block", c_row=c_row,
                    **{name: scale[name] for name in ("a_row", "a_step", "b_item", "b_column")})  # fmt: skip
            with (w.loop(0, "%batch", "%batch_block") as first, w.loop(0, "%n", "%n_block") as column,
                  w.loop(0, "%k", "%k_block") as k):  # fmt: skip
                self._multiply_chunk(job, scale, first, column, k)
            with w.when(is_split):
                self._sum_partials(target)

    def _multiply_chunk(self, job: _Job, scale: dict[str, str], first: str, column: str, k: str) -> None:
        """Some matrices of the batch, some columns, some steps."""
        w, shape = self.w, self.shape
        batch = w.minimum(w.sub("%batch", first), "%batch_block")
        columns = w.minimum(w.sub("%n", column), "%n_block")
        steps = w.minimum(w.sub("%k", k), "%k_block")
        panels = self.round_up_div(columns, shape.width)
        offset = w.add(w.mul(k, scale["b_step"]), w.mul(column, scale["b_column"]))
        b = w.at("%b", w.add(w.mul(first, scale["b_item"]), offset))
        job.put_pointers(b=b)
        adds = w.let(f"zext i1 {w.compare('ne', k, 0)} to i64")
        job.put(n=columns, steps=steps, panels=panels, b_step=scale["b_step"], adds=adds,
                b_panel=shape.width * shape.itemsize, item_count=w.mul(batch, "%splits"))  # fmt: skip
        packs = w.compare("ne", "%packs_b", 0)
        width = shape.width * shape.itemsize
        with w.when(packs):
            grain = self.round_up_div(_GRAIN_WORK // 8, w.mul(steps, shape.width))
            self.call_parallel("pack_panels", job.pointer, w.mul(batch, panels), grain)
            job.put_pointers(b=job.get_pointer("packed"))
            job.put(b_step=width, b_panel=w.mul(steps, width))
        b_item = w.choose(packs, w.mul(w.mul(panels, steps), width), scale["b_item"])
        b_step = w.choose(packs, width, scale["b_step"])
        c_item = w.mul(w.mul("%m", "%n"), shape.itemsize)
        items = job.get_pointer("items")
        length = self.round_up_div(steps, "%splits")
        job.put(steps=w.choose(packs, steps, length))
        with w.loop(0, batch) as item, w.loop(0, "%splits") as part:
            number, start = w.add(w.mul(item, "%splits"), part), w.mul(part, length)
            entry = w.at(items, w.mul(number, ITEM_BYTES))
            a_offset = w.add(w.mul(w.add(first, item), scale["a_item"]),
                             w.mul(w.add(k, start), scale["a_step"]))  # fmt: skip
            w.store(a_offset, entry)
            w.store(w.add(w.mul(item, b_item), w.mul(start, b_step)), w.at(entry, 8))
            result = w.add(w.mul(w.mul(first, "%splits"), c_item), w.mul(number, c_item))
            w.store(w.add(result, w.mul(column, shape.itemsize)), w.at(entry, 16))
            w.store(w.minimum(w.sub(steps, start), length), w.at(entry, 24))
        w.do(f"call void @multiply(ptr {job.pointer})")

    def _sum_partials(self, partials: str) -> None:
        """c = the sum of the stretches' results, in their order."""
        w, shape = self.w, self.shape
        count = w.mul("%m", "%n")
        whole = w.mul(w.div(count, shape.lanes), shape.lanes)
        item_bytes = w.mul(count, shape.itemsize)
        for start, stop, step, kind in ((0, whole, shape.lanes, shape.vector), (whole, count, 1, shape.element)):
            with w.loop(0, "%batch") as item, w.loop(start, stop, step) as place:
                offset = w.mul(place, shape.itemsize)
                source = w.at(partials, w.add(w.mul(w.mul(item, "%splits"), item_bytes), offset))
                target = w.at("%c", w.add(w.mul(item, item_bytes), offset))
                w.store(w.load(source, kind, shape.itemsize), target, kind, shape.itemsize)
                with w.loop(1, "%splits") as part:
                    term = w.load(w.at(source, w.mul(part, item_bytes)), kind, shape.itemsize)
                    total = w.let(f"fadd {kind} {w.load(target, kind, shape.itemsize)}, {term}")
                    w.store(total, target, kind, shape.itemsize)


def _name_arguments(*values: Operand) -> str:
    """Arguments of a tile with their types."""
    kinds = [declared.split()[0] for declared in TILE_ARGUMENTS.split(", ")]
    return ", ".join(f"{kind} {value}" for kind, value in zip(kinds, values, strict=True))
