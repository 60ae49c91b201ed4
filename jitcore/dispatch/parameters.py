"""Which parameters of a function are static or donated, and what its arguments are called.

In: a function and `JitOptions`. Out: an `ArgumentPlan`, made once per function and options; names of the
leaves of a call, made only when a message needs them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitcore import argument_errors, tree_util
from jitcore.dispatch.options import JitOptions


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


def read_signature(fun: Callable) -> inspect.Signature | None:
    """The signature, or None for builtins that have none."""
    try:
        return inspect.signature(fun)
    except (ValueError, TypeError):
        return None


def plan_arguments(fun: Callable, options: JitOptions) -> ArgumentPlan:
    """Static and donated parameters; what is given by position only is found by name too, and vice versa.

    Raises: StaticArgumentError for positions and names the function does not have, or for an argument that
    is both.
    """
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
        raise argument_errors.argnames_overlap_error(both)
    return ArgumentPlan(static_nums, static_names, donate_nums, donate_names)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _list_positional(signature: inspect.Signature) -> tuple[list[inspect.Parameter], bool]:
    """The positional parameters, and whether `*args` follows."""
    parameters = signature.parameters.values()
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    return positional, any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)


def _check_positions(signature: inspect.Signature, option: str, nums: Sequence[int]) -> None:
    positional, open_ended = _list_positional(signature)
    count = len(positional)
    if not open_ended and any(not -count <= num < count for num in nums):
        raise argument_errors.argnums_range_error(option, nums, count)


def _check_names(signature: inspect.Signature, option: str, names: Sequence[str]) -> None:
    parameters = signature.parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = [name for name, parameter in parameters.items() if parameter.kind in by_keyword]
    unknown = set(names) - set(known)
    if unknown:
        raise argument_errors.argnames_unknown_error(option, unknown, known)


def _infer_both(signature, nums, names) -> tuple[tuple[int, ...], frozenset[str]]:
    """Positions and names of the same parameters, each found from the other when only one is given."""
    if signature is None or (nums is None) == (names is None):
        return tuple(nums or ()), frozenset(names or ())
    positional, open_ended = _list_positional(signature)
    if nums is not None:
        if not open_ended:
            nums = tuple(num % len(positional) for num in nums)
        reached = [positional[num] for num in nums if -len(positional) <= num < len(positional)]
        names = [parameter.name for parameter in reached
                 if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    else:
        nums = tuple(i for i, parameter in enumerate(positional) if parameter.name in names
                     and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return nums, frozenset(names)


def name_leaves(fun: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """What the user would call each leaf of a call, in order: "x", "params['w']", "args[1]".

    `args` and `kwargs` are the dynamic ones; a static argument is passed as a container without leaves."""
    names: list[str] = []
    for name, value in _name_arguments(fun, args, kwargs):
        for path, _ in tree_util.tree_leaves_with_path(value):
            names.append(name + tree_util.keystr(path))
    return names


def _name_arguments(fun, args, kwargs) -> list[tuple[str, Any]]:
    signature = read_signature(fun)
    positional, open_ended = _list_positional(signature) if signature is not None else ([], True)
    rest = "args"
    if signature is not None and open_ended:
        rest = next(parameter.name for parameter in signature.parameters.values()
                    if parameter.kind is inspect.Parameter.VAR_POSITIONAL)
    named = []
    for i, value in enumerate(args):
        name = positional[i].name if i < len(positional) else f"{rest}[{i - len(positional)}]"
        named.append((name, value))
    return named + [(name, kwargs[name]) for name in sorted(kwargs)]


def name_position(fun: Callable, position: int) -> str:
    """The name of a positional parameter."""
    signature = read_signature(fun)
    positional = _list_positional(signature)[0] if signature is not None else []
    return positional[position].name if position < len(positional) else f"args[{position}]"
