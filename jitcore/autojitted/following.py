"""Defaults and parameters of a function that change after it was decorated: its wrapper gets them too.

In: calls that a wrapper has bound by what was there before. Out: the same calls, bound as the function binds
them now.
"""

from __future__ import annotations

from typing import Any

from jitcore.process.generated import Parameters

__all__ = ["Following"]


class Following:
    """Args: the autojitted function (`AutojitFunction`) that is kept up to date."""

    def __init__(self, owner: Any):
        function = owner.function
        self._owner, self._code = owner, function.__code__
        self._known = {name: getattr(function, name) for name in ("__defaults__", "__kwdefaults__")}

    def has_other_parameters(self) -> bool:
        """Whether the function got code with other parameters than the wrapper has."""
        if self._owner.function.__code__ is self._code:
            return False
        self._code = self._owner.function.__code__
        return Parameters(self._code).header != self._owner.parameters.header

    def serve(self, values: tuple, *old: Any) -> Any:
        """A call that an outdated wrapper has bound: what is the same object as a default of before is taken
        as not given. old: what has those with which it was made."""
        args, kwargs = self._owner.parameters.split(values, self._owner.wrapper, *old)
        self._update()
        return self._owner.wrapper(*args, **kwargs)

    def catch_up(self) -> None:
        """Brings the wrapper up to date where the function got other parameters or defaults."""
        is_same = all(getattr(self._owner.function, name) is value for name, value in self._known.items())
        if not is_same or self.has_other_parameters():
            self._update()

    def _update(self) -> None:
        """Gives the wrapper the parameters that the function has now, and its defaults where the function got
        others; those that somebody gave to the wrapper stay."""
        owner, now = self._owner, Parameters(self._owner.function.__code__)
        if now.header != owner.parameters.header:
            owner.parameters = now
            owner.signatures.clear()
        for name, known in self._known.items():
            value = getattr(owner.function, name)
            if value is not known:
                self._known[name] = value
                setattr(owner.wrapper, name, value)
        owner.serve_again()
