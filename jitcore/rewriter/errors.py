"""What is said when Python control flow on traced values cannot be compiled.

In: names of variables, their values, and the `Place` of the condition or loop. Out: a `ControlFlowError`,
laid out as all errors are (`jitcore.errors`): what happened, why, the user's line, a way out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import CodeType
from typing import Any

from jitcore.core.source import SourcePosition, format_snippet
from jitcore.core.trace import user_snippet
from jitcore.errors import ConcretizationTypeError, ControlFlowError, build_error
from jitcore.rewriter.handles import current
from jitcore.rewriter.journal import list_children

#: The variable that holds what a function returns.
RESULT = "$result"


class Place:
    """A line of the user's where a traced value decides.

    columns: (last line, first column, column behind the last) of the expression that decides, where known."""

    def __init__(self, code: CodeType, line: int, columns: tuple[int | None, ...] = (None, None, None)):
        self.position = SourcePosition(code.co_filename, line, *columns, code.co_qualname)

    def resolve(self) -> SourcePosition:
        return self.position

    @property
    def lines(self) -> list[str]:
        return format_snippet(self)

    def __str__(self) -> str:
        text = self.lines[1].strip() if len(self.lines) > 1 else ""
        place = f"{self.position.file}:{self.position.line} in {self.position.function}()"
        return f"{place}: `{text}`" if text else place


def name_variable(name: str) -> str:
    """A variable, stack slot or place as a reader knows it."""
    if name == RESULT:
        return "The return value"
    if name[0] == "$":
        return "An intermediate value"
    return name if " " in name else f"'{name}'"  # parts of containers have names already


def name_container(container: Any, names: Mapping[str, Any]) -> str:
    """A list, dict or set by the variable that holds it, or that holds what it is in."""
    kind = type(container).__name__
    for name, value in names.items():
        if value is container and name[0] != "$":
            return f"The {kind} '{name}'"
    for name, value in names.items():
        if name[0] != "$" and _is_inside(container, value):
            return f"A {kind} in '{name}'"
    return f"A {kind}"


def _is_inside(container: Any, value: Any) -> bool:
    waiting, seen = [value], {}
    while waiting:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            waiting += list_children(value) or ()
    return id(container) in seen


def describe_value(value: Any) -> str:
    """A Python value in few words."""
    if type(value) in (list, tuple, dict, set):
        count = len(value)
        return f"a {type(value).__name__} of {count} item{'' if count == 1 else 's'}"
    aval = getattr(value, "aval", None)
    if aval is not None:
        return f"a traced {aval.long()}"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def count_items(container: Any) -> str:
    return "1 item" if len(container) == 1 else f"{len(container)} items"


def _build(headline: str, detail: str, place: Place | None, fix: str) -> Exception:
    where = place.lines if place is not None else ()
    return build_error(ControlFlowError, headline, detail=detail, where=where, fix=_translate(fix))


def _translate(fix: str) -> str:
    """Advice about arrays of jnp, for the arrays of the mode, which are NumPy's: their items are assigned."""
    if current.mode is None:
        return fix
    return re.sub(r"(\w+) = \1\.at\[(\w+)\]\.set\((\w+)\)", r"\1[\2] = \3", fix).replace("jnp.", "np.")


_ONE_PROGRAM = "Both sides of a traced condition become one program, in which a variable is one thing."
_ONE_BODY = "All iterations of a traced loop are one program, in which a variable is one thing."


# -- branches -----------------------------------------------------------------------------------------------
def branch_values_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    """A Python value differs and is needed behind the condition."""
    headline = (f"{name_variable(name)} is {describe_value(one)} where the condition holds and "
                f"{describe_value(other)} where it does not.")
    return _build(
        headline, "Only arrays and numbers can be chosen when the program runs.", place,
        "use numbers or arrays on both sides (a flag 0 or 1 for a word or None), or decide by a "
        "Python value.")


def branch_types_error(name: str, difference: str, place: Place) -> Exception:
    """difference: "shape (3,) and (2,)"."""
    return _build(
        f"{name_variable(name)} has {difference} on the two sides of a condition.", _ONE_PROGRAM, place,
        "give both sides one shape and dtype, for example by jnp.where(condition, x, 0), jnp.pad or astype.")


def branch_containers_error(name: str, value: Any, place: Place) -> Exception:
    headline = f"{name_variable(name)} is {describe_value(value)} that depends on a traced condition."
    return _build(
        headline, "What is stored in it would have to be seen under the other names that it has on one side.",
        place, "choose the items instead, or store a copy: list(items).")


def branch_structures_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    headline = (f"{name_variable(name)} is {describe_value(one)} where the condition holds and "
                f"{describe_value(other)} where it does not.")
    return _build(headline, _ONE_PROGRAM, place,
                  "let both sides have the same number of items and the same keys, with 0 for what is "
                  "missing.")


def branch_container_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    """A list, dict or set was changed in place."""
    if isinstance(one, dict):
        extra = [", ".join(repr(key) for key in own if key not in others)
                 for own, others in ((one, other), (other, one))]
        sides = "only where the condition holds", "only where it does not"
        texts = [f"{keys} {side}" for keys, side in zip(extra, sides) if keys]
        headline = f"{name} has {' and '.join(texts) or 'its keys in another order on the two sides'}."
        fix = "set the same keys on both sides, table[key] = 0 where there is no value."
    else:
        headline = (f"{name} has {count_items(one)} where the condition holds and {len(other)} where it does "
                    "not.")
        fix = _find_queue_fix(name) or (
            "append on both sides, values.append(x if condition else 0), or use an array and "
            "x = x.at[i].set(value).")
    return _build(headline, "A container has one length and one set of keys in a program.", place, fix)


def reordered_error(name: str, place: Place) -> Exception:
    """A key was deleted and set again."""
    return _build(f"{name} gets its keys in another order.",
                  "A condition or loop of a program changes the values of keys only.", place,
                  "set table[key] without deleting it before.")


def _find_queue_fix(name: str) -> str:
    """What helps for a queue; "" for other containers."""
    if " deque" not in name:
        return ""
    return ("use an array of the largest size and two ints: queue[last] = x; last += 1; x = queue[first]; "
            "first += 1.")


def branch_set_error(name: str, place: Place) -> Exception:
    return _build(f"{name} holds other elements on the two sides of a condition.",
                  "The elements of a set are Python's, and traced values cannot be told apart.", place,
                  "use an array of bools, one for each possible element: present = present.at[i].set(True).")


def one_sided_error(name: str, place: Place) -> Exception:
    """An attribute, key or cell that is set for the first time."""
    return _build(f"{name_variable(name)} is set only on one side of a condition.",
                  "Behind it the program cannot know whether it is there.", place,
                  "give it a value before the condition, or on both sides.")


def numpy_array_error(name: str, place: Place, *, in_loop: bool = False) -> Exception:
    where = "inside a traced loop" if in_loop else "under a traced condition"
    return _build(f"{name} is changed {where}.",
                  "A NumPy array would be changed while tracing, whatever the program does.", place,
                  "use an array of jnp, x = x.at[i].set(v), or @autojit, which compiles stores into NumPy's.")


def iterator_error(name: str, place: Place, *, in_loop: bool = False) -> Exception:
    where = "inside a traced loop" if in_loop else "under a traced condition"
    return _build(f"{name} is advanced {where}.",
                  "Its position is Python's, and cannot depend on values of the program.", place,
                  "take the elements before, values = list(iterator), and index an array of them.")


# -- loops --------------------------------------------------------------------------------------------------
def carry_types_error(name: str, difference: str, place: Place) -> Exception:
    """difference: "shape (2,) and (4,)"."""
    return _build(
        f"{name_variable(name)} has {difference} before and behind an iteration of a traced loop.",
        _ONE_BODY, place,
        "keep the shape: allocate the largest before the loop and fill it, x = x.at[i].set(value).")


def carry_structure_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    return _build(
        f"{name_variable(name)} is {describe_value(one)} before and {describe_value(other)} behind an "
        "iteration of a traced loop.", _ONE_BODY, place,
        "fill an array instead, x = x.at[i].set(value), or loop over a range of known length.")


def lent_memory_error(place: Place) -> Exception:
    return _build(
        "An array whose memory variables exchange in a traced loop is used under another name.", _ONE_BODY,
        place, "use one name for it in the loop, or a copy, x = x.copy().")


def carry_kind_error(name: str, value: Any, place: Place) -> Exception:
    return _build(
        f"{name_variable(name)} is a number before and {describe_value(value)} behind an iteration of a "
        "traced loop.", _ONE_BODY, place, "keep it a number or an array in each iteration.")


def carry_object_error(name: str, one: Any, other: Any, place: Place) -> Exception:
    return _build(
        f"{name_variable(name)} changes from {describe_value(one)} to {describe_value(other)} in a traced "
        "loop.",
        "Which one it is depends on the number of iterations, which is not known while tracing.", place,
        "use a number or an array for it, or a loop whose range Python knows.")


def carry_unsettled_error(place: Place) -> Exception:
    return _build("The types of what a traced loop changes do not settle.",
                  "Each iteration gives a variable another type than the one before.", place,
                  "convert before the loop to the type that the body gives, for example x = x.astype(float).")


def loop_container_error(name: str, before: Any, behind: Any, place: Place) -> Exception:
    return _build(
        f"{name} has {count_items(before)} before and {len(behind)} behind an iteration of a traced loop.",
        "The number of iterations is not known while tracing, and so the container has no length.", place,
        _find_queue_fix(name) or "fill an array instead, x = x.at[i].set(value), or loop over a range of "
        "known length.")


def loop_attribute_error(name: str, place: Place) -> Exception:
    """An attribute that is not there before the loop, or not behind an iteration."""
    return _build(f"{name_variable(name)} is set for the first time, or deleted, inside a traced loop.",
                  "Behind it the program cannot know whether it is there.", place,
                  "give it a value before the loop, and do not delete it there.")


def endless_loop_error(place: Place) -> Exception:
    return _build("A traced loop has no way out.",
                  "Its condition always holds, and nothing breaks it.", place,
                  "add a `break` or a condition that depends on what the body changes.")


# -- calls --------------------------------------------------------------------------------------------------
def caught_outside_error(error: BaseException, place: Place) -> Exception:
    return _build(
        f"{type(error).__name__} is raised under a traced condition, and a caller may catch it.",
        "What a program raises ends it: the `except` around this call cannot go on with it.", place,
        "return a flag instead of raising, or put the `try` into the function that raises.")


def text_error(wanted: str) -> Exception:
    """wanted: what Python asked for, `len() of a text`."""
    return build_error(
        ConcretizationTypeError, f"{wanted} needs the value of what is traced in it.", where=user_snippet(),
        detail="The program makes texts of traced values when it runs; it can print them.",
        fix="print the text, or make it behind the call, of what the function returns.")


def traced_length_error() -> Exception:
    return build_error(
        ControlFlowError, "len() of a range with traced bounds is asked for.", where=user_snippet(),
        detail="Its length is known when the program runs.",
        fix="compute it, n = (stop - start) // step, or use it as bound of the loop itself.")


def traced_iterable_error(name: str) -> Exception:
    return build_error(
        ControlFlowError, f"Something else than a loop uses a {name}() of traced values.",
        where=user_snippet(), detail="What it holds is known when the program runs.",
        fix="let a `for` loop go through it, or compute from its bounds.")


def recursion_error(code: CodeType) -> Exception:
    return _build(
        f"{code.co_qualname}() calls itself under a traced condition.",
        "Whether it ends is known when the program runs: both sides are traced, so tracing never ends.",
        Place(code, code.co_firstlineno),
        "write a `while` loop with the arguments as variables, or make what ends the recursion static.")
