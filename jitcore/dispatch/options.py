"""The arguments of `jit`, checked and made hashable, and what they say of the parameters of a function.

In: what the user gave to `jit`, and a function. Out: `JitOptions`, the key under which jitted forms of one
function share their caches; an `ArgumentPlan`, made once per function and options: which parameters are
static or donated.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from jitcore import tree_util
from jitcore.config import FLAGS
from jitcore.core.source import list_positional, read_signature
from jitcore.errors import arguments
from jitcore.sharding import PartitionSpec, Sharding


class _UnspecifiedValue:
    """Says that a sharding was not given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self):
        return "UNSPECIFIED"  # it is known by its identity


UNSPECIFIED = _UnspecifiedValue()


class JitKeywords(TypedDict, total=False):
    """The keywords of `jit`, for type checkers; `jit` says what they mean."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    abstracted_axes: Any
    compiler_options: Mapping[str, Any] | None
    rewrite: bool


class JitOptions(NamedTuple):
    """static_*, donate_*: tuples, or None when not given. compiler_options: sorted (key, value) pairs.
    in_shardings, out_shardings: where they name several devices; one device is `sharding`."""

    static_argnums: tuple[int, ...] | None = None
    static_argnames: tuple[str, ...] | None = None
    donate_argnums: tuple[int, ...] | None = None
    donate_argnames: tuple[str, ...] | None = None
    keep_unused: bool = False
    backend: str | None = None
    sharding: Any = None
    inline: bool = False
    abstracted_axes: Any = None
    compiler_options: tuple[tuple[str, Any], ...] = ()
    rewrite: bool = False
    in_shardings: Any = UNSPECIFIED
    out_shardings: Any = UNSPECIFIED

    @property
    def names_devices(self) -> bool:
        """Whether programs run on devices that are named here."""
        return self.sharding is not None or self.in_shardings is not UNSPECIFIED or (
            self.out_shardings is not UNSPECIFIED)


DEFAULT_OPTIONS = JitOptions()


class _OptionRow(NamedTuple):
    accepts: Callable[[Any], bool]
    accepted: str


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_COUNT = _OptionRow(lambda value: _is_integer(value) and value >= 1, "an integer of at least 1")
#: The keys of `compiler_options`; their meaning stands in `backend.CompileOptions`.
COMPILER_OPTIONS = {
    "fastmath": _OptionRow(_is_bool, "True or False"),
    "contract": _OptionRow(_is_bool, "True or False"),
    "opt_level": _OptionRow(lambda value: _is_integer(value) and 0 <= value <= 3, "an integer from 0 to 3"),
    "parallel": _OptionRow(_is_bool, "True or False"),
    "codegen": _OptionRow(FLAGS["codegen"].choices.__contains__, FLAGS["codegen"].describe_accepted()),
    "num_threads": _COUNT,
    "thread_work": _COUNT,
}


def read_compiler_options(given: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Raises: UnknownCompilerOptionError for a key that no stage reads; ValueError for a bad value."""
    if not given:
        return ()
    for key, value in given.items():
        row = COMPILER_OPTIONS.get(key)
        if row is None:
            raise arguments.compiler_option_error(str(key), sorted(COMPILER_OPTIONS))
        if not row.accepts(value):
            raise ValueError(f"compiler_options[{key!r}] does not accept {value!r}; it takes {row.accepted}.")
    return tuple(sorted(given.items()))


def read_argnums(given: int | Iterable[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    try:
        return (operator.index(given),)
    except TypeError:
        return tuple(operator.index(number) for number in given)


def read_argnames(given: str | Iterable[str] | None, option: str) -> tuple[str, ...] | None:
    """Raises: TypeError when a name is no string."""
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{option} must be a string or a collection of strings, got {given!r}")
    return names


def read_placement(device: Any, backend: str | None, in_shardings: Any, out_shardings: Any) -> dict[str, Any]:
    """What `device`, `backend` and the shardings ask for, as options.

    Raises: ValueError when they contradict each other."""
    if device is not None and backend is not None:
        raise ValueError(f"can't specify both a device and a backend for jit, got {device=} and {backend=}")
    groups = [] if device is None else [{device}]
    for name, shardings in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        groups += _devices_of_shardings(name, shardings)
    if backend is not None and not isinstance(backend, str):
        raise TypeError(f"backend must be a string such as 'cpu', got {backend!r}")
    devices = [found for group in groups for found in group]
    is_one_each = all(len(group) == 1 for group in groups) and None not in devices
    if is_one_each and len(set(devices)) > 1:
        text = "jit runs on a single device, or on a mesh, but its shardings name several"
        raise ValueError(f"{text}: {devices}")
    if not is_one_each:
        if device is not None:
            raise ValueError(f"can't specify both a device and a mesh for jit, got {device=}")
        return {"backend": backend, "in_shardings": in_shardings, "out_shardings": out_shardings}
    return {"backend": devices[0].backend, "sharding": devices[0]} if devices else {"backend": backend}


def _devices_of_shardings(option: str, shardings: Any) -> list[Any]:
    """The devices of each sharding; {None} for a spec on a mesh that a call knows."""
    found = []
    for sharding in tree_util.tree_leaves(shardings):
        if sharding is UNSPECIFIED:
            continue
        if isinstance(sharding, PartitionSpec):
            found.append({None})
        elif isinstance(sharding, Sharding):
            found.append(sharding.device_set)
        else:
            raise ValueError(f"{option} takes shardings and None, got {sharding!r}")
    return found


class ArgumentPlan(NamedTuple):
    """Positions (negative ones count from the end of the call's arguments) and keyword names."""

    static_nums: tuple[int, ...] = ()
    static_names: frozenset[str] = frozenset()
    donate_nums: tuple[int, ...] = ()
    donate_names: frozenset[str] = frozenset()

    def find_static(self, n_args: int) -> tuple[int, ...]:
        """Positions of the static ones among `n_args` positional arguments, in order."""
        return _place(self.static_nums, n_args)

    def find_donated(self, n_args: int) -> tuple[int, ...]:
        return _place(self.donate_nums, n_args)


NOTHING_SPECIAL = ArgumentPlan()


def _place(nums: tuple[int, ...], n_args: int) -> tuple[int, ...]:
    placed = {num + n_args if num < 0 else num for num in nums}
    return tuple(sorted(num for num in placed if 0 <= num < n_args))


def plan_arguments(fun: Callable, options: JitOptions) -> ArgumentPlan:
    """Static and donated parameters; what is given by position only is found by name too, and vice versa.

    Raises: StaticArgumentError for positions and names the function does not have, or for an argument that
    is both."""
    given = options[:4]
    if given == (None, None, None, None):
        return NOTHING_SPECIAL
    signature = read_signature(fun)
    if signature is not None:
        for option, nums in (("static_argnums", given[0]), ("donate_argnums", given[2])):
            _check_positions(signature, option, nums or ())
        for option, names in (("static_argnames", given[1]), ("donate_argnames", given[3])):
            _check_names(signature, option, names or ())
    static_nums, static_names = _infer_both(signature, given[0], given[1])
    donate_nums, donate_names = _infer_both(signature, given[2], given[3])
    both = (static_names & donate_names) or {str(num) for num in set(static_nums) & set(donate_nums)}
    if both:
        raise arguments.argnames_overlap_error(both)
    return ArgumentPlan(static_nums, static_names, donate_nums, donate_names)


def _check_positions(signature: inspect.Signature, option: str, nums: Sequence[int]) -> None:
    positional, rest = list_positional(signature)
    count = len(positional)
    if not rest and any(not -count <= num < count for num in nums):
        raise arguments.argnums_range_error(option, nums, count)


def _check_names(signature: inspect.Signature, option: str, names: Sequence[str]) -> None:
    parameters = signature.parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [name for name, parameter in parameters.items() if parameter.kind in by_keyword]
    unknown = set(names) - set(known)
    if unknown:
        raise arguments.argnames_unknown_error(option, unknown, known)


def _infer_both(signature, nums, names) -> tuple[tuple[int, ...], frozenset[str]]:
    """Positions and names of the same parameters, each found from the other when only one is given."""
    if signature is None or (nums is None) == (names is None):
        return tuple(nums or ()), frozenset(names or ())
    positional, rest = list_positional(signature)
    if nums is not None:
        if not rest:
            nums = tuple(num % len(positional) for num in nums)
        reached = [positional[num] for num in nums if -len(positional) <= num < len(positional)]
        names = [parameter.name for parameter in reached
                 if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    else:
        nums = tuple(i for i, parameter in enumerate(positional) if parameter.name in names
                     and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return nums, frozenset(names)
