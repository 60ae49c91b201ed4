"""Tuning: the numbers by which code for CPUs is made and shared out, and that only measurement explains.

In: nothing. Out: a record that stands beside the facts about a machine (`host.Machine`), so that another one
may bring other numbers. What hardware, a format or accuracy fixes is no tuning, and stands where it is used.
"""


class Record:
    """Numbers by name, as attributes of a class; of an instance, where it has others. Named tuples of so many
    fields would take each process a millisecond to make."""

    def __init__(self, **others):
        vars(self).update(others)

    def replace(self, **others):
        return type(self)(**vars(self) | others)

    def __repr__(self) -> str:
        numbers = (f"{name}={getattr(self, name)!r}" for name in type(self).__annotations__)
        return f"{type(self).__name__}({', '.join(numbers)})"


class Loops(Record):
    """How loops run (`mapping`), and how they are written (`render`)."""

    # -- stores past the caches ---------------------------------------------------------------------------
    #: Arrays of fewer bytes are in caches everywhere, so nobody need ask how large these are.
    near_bytes: int = 1 << 20
    #: What a loop reads and writes, in sizes of the last cache: a loop that only writes finds more of its
    #: output there from the last time.
    min_traffic: float = 1.5
    #: Bytes of the last cache that a processor can count on. A virtual machine is told of all of a cache that
    #: others use too: where two processors see 480 MiB, 64 MiB and more are copied past it in 0.6 of the
    #: time.
    max_share: int = 32 << 20
    #: Cost of functions above which a loop waits for arithmetic: then such stores take longer, by a few
    #: percent.
    max_streamed_cost: int = 12

    # -- short rows, one in each lane ---------------------------------------------------------------------
    #: Registers that a row fills at most: beyond that, transposing takes more time than combining lanes.
    #: Where rows are written too, where they are read only, and with more to do for a row beside its
    #: elements, by that work in multiply-adds.
    written_row: float = 1.25
    read_row: float = 2
    working_row: float = 3
    longest_row: int = 4
    some_work: int = 8
    much_work: int = 16
    #: The cost of functions, of which lanes without an element are not given any here.
    function_cost: int = 10
    #: Arrays whose rows are kept.
    max_kept_arrays: int = 4

    # -- memory order -------------------------------------------------------------------------------------
    #: A sweep in halves: bytes of a row and of the array, the latter in sizes of the second cache; how many
    #: arrays it reads; and the cost of functions above which arithmetic takes longer than memory.
    min_long_row: int = 1 << 17
    min_long_array: int = 8
    max_read_arrays: int = 2
    max_read_cost: int = 8
    #: Bytes of a row that is asked for ahead, by a second sweep and by a stencil: shorter ones are over too
    #: soon; two of the longest, and what belongs to them, stay in the second cache.
    short_rows: range = range(1 << 11, (1 << 16) + 1)
    stencil_rows: range = range(1 << 8, (1 << 16) + 1)
    #: Processors on which stencils take 1.0 to 1.2 of the time if they ask; on Zen 5 and an Intel Xeon it is
    #: 0.75 to 0.85.
    fetching_in_time: tuple[str, ...] = ("znver4",)
    #: Bytes of a row that is read from one end to the other before the next one, and how many rows: so few
    #: stay in registers.
    min_wide_row: int = 1 << 11
    min_rows: int = 16
    #: About how many bytes ahead, at least: where rows are short, not the next one is asked for, but the
    #: second, fourth, eighth or sixteenth.
    min_ahead: int = 1 << 12
    #: Bytes of an array up to which places are asked for ahead, and how many bytes ahead. In larger arrays a
    #: core waits for the tables of its pages: there it is a tenth slower.
    max_near: int = 12 << 20
    places_distance: int = 1 << 10
    #: Columns that threads take in pieces of long runs.
    many_columns: int = 1 << 15
    #: Rows that a scan down columns combines with a running value while that is in registers: it writes as
    #: many runs as it reads, and several of each get into one another's way. It asks for as many rows ahead.
    scanned_rows: int = 2

    # -- registers ----------------------------------------------------------------------------------------
    #: Expressions of a round of a loop in registers that is too short to hide its own latency.
    max_round_nodes: int = 32
    #: Columns: multiples of the usual lanes, powers of two, the most first; instructions of a wide group:
    #: longer formulas take long to compile, and have much to do while they wait.
    strips: tuple[int, ...] = (4, 2)
    max_strip_operations: int = 160
    #: Rows at a time, the most first; registers for operands that all of them share and for what is in
    #: progress.
    jams: tuple[int, ...] = (4, 2)
    working_registers: int = 8
    #: The same where each row is read too: eight would take a tenth less time, and twice as long to compile.
    #: Of fewer rows than these, each has several registers instead.
    read_jams: tuple[int, ...] = (4, 2)
    min_read_rows: int = 4
    #: Operations beside each root, or division, up to which two units are not slower. Measured on Zen 5 in
    #: the cache: 0.61x of the time without any other, 0.88x with seven, 0.73x to 1.0x with eight.
    max_work_beside_roots: int = 8
    #: What an inner reduction of unknown length is taken for.
    usual_extent: int = 16

    # -- instructions -------------------------------------------------------------------------------------
    #: Expressions behind a branch; what is shared with other code may be computed twice.
    max_guarded_nodes: int = 32
    #: Kernels after this many calls of mathematical functions keep them as calls: copies take long to
    #: compile. The same of scalar code in the entry point.
    max_inlined_calls: int = 8
    max_inlined_straight: int = 32
    #: More pointers than these are copied together: LLVM's scheduler compares each store with each load.
    max_single_stores: int = 16
    #: Kernels whose text has fewer lines know their constants: their code is made quickly.
    min_told_lines: int = 12
    #: Vectors of a range below which one more, for the part before the first line, takes longer than it
    #: saves.
    min_peeled_vectors: int = 4
    #: Vectors that are compared before one of them is searched for an extreme.
    stretch: int = 8

    # -- row by row ---------------------------------------------------------------------------------------
    #: Bytes of the widest elements of a block's rows: of what is read, of running values, and of results
    #: there are so many in the first cache.
    column_bytes: int = 1 << 13
    #: Rows that a reduction combines with a running value while that is in registers; and expressions of all
    #: rows together, as longer code takes long to compile.
    combined_rows: int = 8
    max_combined_nodes: int = 64

    # -- tiles --------------------------------------------------------------------------------------------
    #: Lanes of a tile; more of them would be more registers than there are.
    max_tile_lanes: int = 16
    #: Lines between what a row of a tile reads along the lanes and what it asks for meanwhile: there are too
    #: many rows for the processor to see where each one goes on.
    lines_ahead: int = 4
    #: Rows of formulas longer than this are a loop.
    max_unrolled_nodes: int = 12

    # -- computed places ----------------------------------------------------------------------------------
    #: Elements between an access and what is asked for meanwhile; expressions of a place that are worth
    #: computing twice.
    fetched_ahead: int = 192
    max_fetched_nodes: int = 24
    #: Updates of one list, how many are written out in the loop over it, and how many ahead of its own an
    #: element is fetched that is not in the cache.
    listed_updates: int = 256
    unrolled_updates: int = 4
    updates_ahead: int = 32
    #: Updates written out in a loop without lanes: a core waits for the more elements at a time, the fewer
    #: instructions are between them.
    unrolled_alone: int = 8


class Product(Record):
    """Products and convolutions. Work is counted in multiply-adds."""

    # -- matrices, or loops -------------------------------------------------------------------------------
    #: Work of one product below which loops, which need no call and fuse, win; and contracted extent up to
    #: which they also win for large results: reading and writing is all there is to do.
    loop_work: int = 4096
    loop_steps: int = 4
    #: Rows that are few enough to be multiplied with each of the other side's while it is in registers, if
    #: they are so many times longer: the right operand else is packed, for no more rows than these.
    few_left: int = 8
    few_right: int = 6
    steps_of_few: int = 8
    #: Rows of more elements than loops unroll, and of at most so many bytes, are too short for sums along
    #: them one by one; so many rows are summed side by side.
    unrolled_steps: int = 8
    short_row_bytes: int = 512
    many_rows: int = 2048

    # -- blocks -------------------------------------------------------------------------------------------
    #: Steps per visit of a tile, at most: its operands then stay in the caches, and sums of blocks of steps
    #: are more accurate than one long sum.
    block_steps: int = 512
    #: Right operands are read where they lie, which tiles foresee, unless columns are far apart, or there are
    #: so many bytes that finding their pages takes longer than packing for as many rows: Zen's cores find
    #: them beside their work, others wait. So are left ones, whose rows may lie beside each other.
    unpacked_bytes: int = 1 << 20
    unpacked_bytes_on_zen: int = 32 << 20
    packed_rows: int = 512
    #: Rows, and columns, from which on packing the other operand pays where its lines compete for the cache.
    competing_rows: int = 28
    competing_columns: int = 256
    #: Packed rows of the left operand fill one such part of a thread's second cache, and at most so many
    #: rows of tiles.
    left_share: int = 4
    most_tiles: int = 64
    #: Right operands are packed in chunks of about so many bytes, for the third level of caches.
    chunk_bytes: int = 8 << 20
    #: Steps of a stretch of a long sum, and how many stretches there are at most. Results of fewer tiles than
    #: this, of about 8 x 32, leave threads without work unless sums are stretched.
    stretch_steps: int = 2048
    most_stretches: int = 16
    few_tiles: int = 16
    #: Rows that are packed side by side: so many runs of memory are read at a time.
    packed_side_by_side: int = 16

    # -- threads ------------------------------------------------------------------------------------------
    #: Work that a thread should have before another one is woken up.
    grain_work: int = 1 << 18
    #: Pieces of work to aim at where the rows of tiles alone are few: enough for the threads of a large
    #: machine.
    fewest_units: int = 32
    #: Rows of tiles that share the passes over a panel, where the left operand is not packed.
    block_tiles: int = 8
    #: Bytes of a row that an epilogue gets at a time: a block of them stays in the second cache.
    epilogue_bytes: int = 2048

    # -- tiles --------------------------------------------------------------------------------------------
    #: How many bytes ahead tiles ask for the right operand, packed and as it lies.
    packed_ahead: int = 4096
    ahead: int = 256
    #: Rows whose addresses share one pointer, with registers that are added to it.
    rows_per_pointer: int = 5

    # -- vectors ------------------------------------------------------------------------------------------
    #: Rows that are added to a sum while it is in a register: at first so many, then what is left of them.
    summed_rows: tuple[int, ...] = (8, 4, 2, 1)
    #: Bytes of the sums that stay in the first cache while rows are read, at most. Of rows from so many bytes
    #: on, two threads read halves.
    sums_bytes: int = 16 << 10
    wide_row: int = 4 << 10
    #: Rows of a stretch, at most: sums of sums are more accurate than long sums.
    most_rows: int = 512
    #: Work from which on threads share a product, pieces that they share, and rows of a piece at least.
    shared_work: int = 1 << 19
    pieces: int = 32
    least_rows: int = 64

    # -- two-sided products -------------------------------------------------------------------------------
    #: Rows that are read side by side; stretches of rows, at most, and their rows at least: each has sums of
    #: columns of its own.
    pair_rows: int = 4
    most_pair_stretches: int = 32
    least_pair_rows: int = 32

    # -- convolutions -------------------------------------------------------------------------------------
    #: Results of a group per position below which lanes would be empty: loops then run along positions or
    #: groups.
    least_features: int = 4


class Linalg(Record):
    """Decompositions and solvers."""

    #: Matrices of more elements than this are given to LAPACK one after another: its own threads share the
    #: work. Of smaller ones a thread gets at least as many as have this many elements together.
    small_matrix: int = 64 * 64
    #: Multiplications for each matrix up to which calling a library would take longer than the work.
    tiny_factorisation: int = 2048
    tiny_solution: int = 256
    #: Pieces into which a batch of small matrices is cut, at most; each has work memory of its own.
    max_pieces: int = 16
    #: Sides of matrices of real numbers that one thread factorizes in the caches.
    block_sides: range = range(24, 513)
    #: Columns that the LU factorisation on one thread treats at once, a multiple of the rows of all tiles;
    #: and those of a panel that are made one by one, a multiple of the rows of small tiles.
    panel: int = 48
    strip: int = 8
    #: Bytes of a row of right-hand sides from which on a tile of them is full enough.
    wide_bytes: int = 128


class Fft(Record):
    """Fourier transforms. Times are relative to one another."""

    #: The time that a point of a butterfly takes, by the sizes of those that have code.
    radix_times: tuple[tuple[int, int], ...] = (
        (2, 5), (3, 6), (4, 6), (5, 8), (7, 11), (8, 8), (11, 17), (13, 20))
    #: Bytes of a block of lines, as it is transformed: of the first cache, and of the second; and how often
    #: the time of a point in each of them, and behind both, is that in the first.
    inner_bytes: int = 32 << 10
    outer_bytes: int = 512 << 10
    distances: tuple[float, float, float] = (1.0, 1.25, 3.0)
    #: Time that a point takes beside butterflies: read and written as columns, and as rows; turned;
    #: untangled.
    columns_time: int = 2
    rows_time: int = 5
    turn_time: int = 4
    untangle_time: int = 6
    #: Points of a line from which on several threads share it, and lines from which on they do not.
    shared_points: int = 1 << 14
    many_lines: int = 4
    #: Time that a thread should have before another one is woken up; of a point of a block, about.
    grain_time: int = 1 << 16
    point_time: int = 32


class Sort(Record):
    """Sorting of rows, orders and largest elements."""

    #: Rows and columns of a block: a block and its copy fit a first cache.
    block: int = 64
    #: Vectors read at a time: the more, the less often it is to be guessed at which end.
    group_vectors: int = 4
    #: Rows of the networks, with 16 registers and with 32; segments of more than the larger are partitioned.
    network_rows: tuple[tuple[int, int], ...] = ((2, 8), (4, 16))
    #: Keys of a segment whose sides are worth two threads, and whose pivot is worth the median of many.
    shared: int = 1 << 12
    well_sampled: int = 1 << 12
    #: Pieces into which rows are cut, at most: the threads of a large machine. Each has scratch of its own.
    max_pieces: int = 64
    #: Keys beyond twice the wanted ones that `top_k` gathers before it keeps the best.
    gathered: int = 128
    #: Elements that a thread should have at least.
    grain: int = 1 << 14


class Runtime(Record):
    """Calls, threads and memory."""

    #: Bytes of arrays above which a call lets other Python threads run meanwhile; below, it would cost more
    #: than it takes.
    release_bytes: int = 65536
    #: Plans that a process keeps on disk for one machine code: a script has few shapes, a server may have
    #: any.
    max_plans: int = 8

    # -- threads ------------------------------------------------------------------------------------------
    #: Pieces per thread: one, in which a thread finds again what it left in its cache; for loops of many
    #: grains so many that a thread which starts late, or has the harder part or the last piece, delays the
    #: end little, and for loops that go back so many that the second caches hold several of each thread.
    many_grains: int = 16
    pieces_each: int = 16
    #: Pieces of many iterations are multiples of so many: their vectors begin at lines of the caches where
    #: the first piece does.
    whole_lines: int = 64
    fine_piece: int = 1024
    #: How often a caller looks whether its job has users left before it sleeps.
    spins: int = 1000
    #: How often an idle thread looks for a job before it sleeps: a fifth of a millisecond, twice what it may
    #: take to wake it, so that those of a loop who are done before others are there for the next loop. In
    #: between it lets others have its processor, as the one that works may wait for it.
    yields: int = 1000
    #: Microseconds between ticks: twice in the half second that Ctrl-C may take, and seldom enough that
    #: waiting for the GIL, up to 5 ms where other threads compute in Python, does not count.
    tick: int = 150_000

    # -- memory -------------------------------------------------------------------------------------------
    #: Bytes of arrays from which on their memory is made here, and of blocks that are made of huge pages.
    large_bytes: int = 1 << 15
    huge_bytes: int = 2 << 21
    #: What is kept for later arrays, at most: bytes, and the part of the memory of the machine.
    max_kept_bytes: int = 1 << 30
    kept_part: int = 16


class Tuning(Record):
    """The records of all rooms; those of `routines` have the names of their rooms."""

    loops: Loops = Loops()
    product: Product = Product()
    linalg: Linalg = Linalg()
    fft: Fft = Fft()
    sort: Sort = Sort()
    runtime: Runtime = Runtime()
