"""Lists that grow in a traced loop of known length: the body only appends to them.

In: a list that an iteration left longer, and the variables of the loop. Out: an `Appender`, which the body
has in its place and which notes what is appended; behind the loop what all iterations appended, from arrays
in which the loop stacked it. A body that reads the list is traced in other ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jitcore.array import Array
from jitcore.core.trace import context
from jitcore.rewriter.bytecode.instructions import Unsupported
from jitcore.rewriter.control_flow.arms import Arm, is_final, make_final
from jitcore.rewriter.control_flow.carries import count_of
from jitcore.rewriter.handles import current
from jitcore.rewriter.values import Flat, convert, count_containers, count_memory, memory_of, type_of, wrap

#: Iterations from which on; fewer are traced one by one, after which all is known of each element. And
#: iterations times elements: what is read behind the loop is one operation for each.
MIN_COUNT, MAX_ELEMENTS = 17, 1000


class Appender:
    """What the body of a loop has in place of a list: all that it may do is append.

    Attributes:
        target: the list; items: what was appended; trace: that of the body."""

    __slots__ = ("target", "items", "trace")

    def __init__(self, target: list):
        self.target, self.items, self.trace = target, [], context.trace

    def append(self, item: Any, /) -> None:
        if context.trace is not self.trace:
            raise Unsupported("a list that grows in a part of an iteration")
        self.items.append(item)

    def extend(self, items: Iterable, /) -> None:
        for item in items:
            self.append(item)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported("a list that grows in a traced loop is read there")

    def _refuse(self, *args: Any) -> Any:
        raise Unsupported("a list that grows in a traced loop is read there")

    __len__ = __iter__ = __getitem__ = __setitem__ = __delitem__ = __contains__ = __add__ = __radd__ = _refuse
    __iadd__ = __mul__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __reversed__ = __array__ = __repr__ = __str__ = __format__ = __reduce_ex__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def note_growth(error: Exception, container: Any, *contents: Any, is_certain: bool = False) -> Exception:
    """The error, which now tells that a list gets more elements on one way, and which one it gets.

    is_certain: whether it gets as many in each iteration."""
    if type(container) is list:
        shared = len(container)
        added = [item for own in contents for item in own[shared:]]
        if added and all(len(own) >= shared for own in contents):
            error.__dict__["jitcore_growth"] = container, added[0]
            error.__dict__["jitcore_is_certain"] = is_certain
    return error


class Growth:
    """The lists that grow in one loop.

    Args: driver and state of the loop; count: of its iterations, or None where that is not known.

    Attributes:
        targets: the lists; samples: by id, an element that one got; appenders: what the body has for them.
        entered: what carried memory holds at the beginning of an iteration.
        names: by id of a leaf that was appended, the variable and the place in it that it is too."""

    def __init__(self, driver: Any, state: Mapping[str, Any], count: int | None):
        self.driver, self.state, self.count = driver, state, count
        self.targets: list[list] = []
        self.samples: dict[int, Any] = {}
        self.appenders: list[Appender] = []
        self.entered: list[Array] = []
        self.names: dict[int, tuple[str, int]] = {}

    def accepts(self, arm: Arm) -> bool:
        """Whether all that the body changed in place, without a store, are lists that may have been appended
        to only; from now on it has appenders for these."""
        if len(arm.kinds) > 1 or current.mode is None or not current.mode.grows:
            return False
        found = [(container, behind.value) for container, behind in arm.changes.values()
                 if self._may_grow(container, behind.value)]
        self.targets += [container for container, _ in found]
        current.mode.has_grown |= bool(found)
        self.samples |= {id(container): behind[len(container)] for container, behind in found}
        return len(found) == len(arm.changes)

    def _may_grow(self, container: Any, behind: Any) -> bool:
        if self.count is None or type(container) is not list:
            return False
        added = len(behind) - len(container)
        if added <= 0 or self.count < MIN_COUNT or self.count * added > MAX_ELEMENTS:
            return False
        if any(one is not other for one, other in zip(container, behind)):
            return False
        values = [*self.state.values(), *self.driver.list_outer()]
        direct = [*self.state.values(), *self.driver.arguments]
        has_name = any(value is container for value in self.state.values())
        names = sum(value is container for value in direct)
        return has_name and count_containers(values)[id(container)] <= names

    def replace_all(self, error: Exception, loops: Sequence[Any], carries: Mapping) -> bool:
        """Whether an error was about lists of which lists of traced length can be made: they are that now.

        loops: around this one; carries: of this one."""
        if isinstance(error, Unsupported):
            targets, self.targets = self.targets, []
            found = [(target, self.samples[id(target)]) for target in targets]
            return bool(found) and all(self._replace(error, *pair, loops, carries) for pair in found)
        pair = error.__dict__.get("jitcore_growth")
        grows = current.mode is not None and current.mode.grows
        return pair is not None and grows and self._replace(error, *pair, loops, carries)

    def _replace(self, error: Exception, container: list, item: Any, loops: Sequence[Any],
                 carries: Mapping) -> bool:
        count = error.__dict__.get("jitcore_count", 1) * (1000 if self.count is None else self.count)
        error.__dict__["jitcore_count"] = count
        self._defer(error, any(value is container for loop in loops for value in loop.state.values()))
        if is_final(error):
            return False
        if error.__dict__.get("jitcore_is_certain") and self.count is not None and self.count < MIN_COUNT:
            return False
        names = [name for name, value in self.state.items() if value is container]
        values = [*self.state.values(), *self.driver.list_outer()]
        if not names or count_containers(values)[id(container)] != len(names):
            return False
        made = None
        if not any(("name", name) in carries for name in names):
            made = current.mode.make_list(container, item, len(container) + 4 * max(count, 16))
        current.mode.has_grown |= made is not None
        for name in names if made is not None else ():
            self.state[name] = made
        return made is not None

    @staticmethod
    def _defer(error: Exception, to_outer: bool) -> None:
        """Leaves a list to a loop around this one, which has it too, and is traced again for that."""
        was_deferred = error.__dict__.pop("jitcore_deferred", False)
        if to_outer and not is_final(error) or to_outer and was_deferred:
            make_final(error)
            error.__dict__["jitcore_deferred"] = True
        elif was_deferred:
            del error.__dict__["jitcore_is_final"]

    def enter(self, state: dict[str, Any], carried: Iterable[Any]) -> dict[str, Any]:
        """The variables at the beginning of an iteration, with appenders in place of the lists. carried: the
        values of the carries."""
        leaves = [leaf for value in carried for leaf in Flat(value).leaves] if self.targets else []
        memories = map(memory_of, leaves)
        self.entered = [memory.value for memory in memories if hasattr(memory, "value")]
        self.names = {}
        self.appenders = [Appender(target) for target in self.targets]
        by_id = {id(appender.target): appender for appender in self.appenders}
        return {name: by_id.get(id(value), value) for name, value in state.items()}

    def leave(self, arm: Arm) -> None:
        """Gives the variables behind an iteration their lists again.

        Raises: Unsupported where the body put a list elsewhere, or leaves the loop."""
        if not self.appenders:
            return
        own = {id(appender): appender for appender in self.appenders}
        for name, flat in arm.state.items():
            if id(flat.value) in own:
                arm.state[name] = Flat(own[id(flat.value)].target)
        left = [leaf for value in arm.list_values() for leaf in Flat(value).leaves]
        if len(arm.kinds) > 1 or any(id(leaf) in own for leaf in left):
            raise Unsupported("a list that grows in a loop which ends early, or that gets another name")
        self._check_items(arm)

    def _check_items(self, arm: Arm) -> None:
        """Raises: Unsupported for elements of which a loop makes no array."""
        leaves = self.list_leaves()
        memories = Counter(id(memory_of(leaf)) for leaf in leaves)
        for leaf in leaves:
            if type_of(leaf) is None:
                raise Unsupported("a list that grows in a traced loop gets elements that are no numbers")
            if memory_of(leaf) is None:
                continue
            if not arm.made(leaf) or not leaf.is_whole or memories[id(memory_of(leaf))] > 1:
                raise Unsupported("a list that grows in a traced loop gets an array that has other names")

    def note_names(self, arm: Arm, carried: Mapping[tuple, Any], next_leaves: Mapping[tuple, list]) -> None:
        """Notes which variable behind an iteration is an array that was appended.

        carried, next_leaves: values of the carries at the beginning of an iteration, and their leaves behind.
        Raises: Unsupported where what the next iteration does may be seen in that element."""
        behind = count_memory(arm.list_values())
        for leaf in self.list_leaves():
            count = count_of(behind, leaf)
            if not count:
                continue
            names = [(name, place) for name, flat in arm.state.items()
                     for place, other in enumerate(flat.leaves) if other is leaf]
            if count > 1 or len(names) != 1:
                raise Unsupported("a list that grows in a traced loop gets an array that has other names")
            self.names[id(leaf)] = names[0]
            self._check_carry(carried, next_leaves, *names[0], behind)

    def _check_carry(self, carried: Mapping, next_leaves: Mapping, name: str, place: int, behind: Counter):
        """The memory with which an iteration begins is the last element: it may neither be written nor go on
        under another name."""
        value = carried.get(("name", name))
        if value is None:  # read behind the loop only
            return
        old = memory_of(Flat(value).leaves[place])
        is_written = not any(old.value is raw for raw in self.entered)
        if is_written or behind[id(old)] or any(memory_of(leaf) is old for leaf in self.list_leaves()):
            raise Unsupported("a list that grows in a traced loop gets an array that is written later")

    def list_leaves(self) -> list:
        """What was appended in the iteration."""
        return [leaf for appender in self.appenders for item in appender.items for leaf in Flat(item).leaves]

    def list_outputs(self) -> list[Array]:
        """What the body returns of each iteration."""
        return [convert(leaf, type_of(leaf)) for leaf in self.list_leaves()]

    def finish(self, stacks: Sequence[Array], state: Mapping[str, Any]) -> None:
        """Appends what all iterations did. stacks: by leaf, one row for each iteration; state: behind the
        loop, where a variable may be the last element."""
        rows = iter(stacks)
        for appender in self.appenders:
            made = [self._take_apart(Flat(item), rows, state) for item in appender.items]
            appender.target += [items[i] for i in range(self.count) for items in made]

    def _take_apart(self, flat: Flat, rows: Iterator[Array], state: Mapping[str, Any]) -> list:
        """The elements that one call of `append` gave, in the order of iterations."""
        columns = []
        for leaf in flat.leaves:
            leaf_type, stack = type_of(leaf), next(rows)
            raws = [current.mode.take_element(stack, i) for i in range(self.count)]
            columns.append([wrap(raw, leaf_type) for raw in raws])
            if id(leaf) in self.names:
                name, place = self.names[id(leaf)]
                columns[-1][-1] = Flat(state[name]).leaves[place]
        return [flat.rebuild(leaves) for leaves in zip(*columns)]
