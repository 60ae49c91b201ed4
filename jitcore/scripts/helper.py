"""The process that compiles beside the script, as the script's process sees it.

In: jobs, one at a time. Out: their answers, when they are there; nothing here waits. It runs with low
priority, and is killed when a job takes longer than it may.
"""

from __future__ import annotations

import os
import signal
import sys
from time import monotonic, time
from typing import Any

from jitcore.process.lazy import LazyModule

pickle = LazyModule("pickle")

__all__ = ["LONGEST", "Helper"]

#: The most seconds of processor time that a job may take.
LONGEST = 2.0
#: Bytes of the size of a message.
_SIZE = 8
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_START = "import sys; sys.path[:] = {path!r}; from jitcore.scripts.worker import main; main()"


class Helper:
    """Args: sys.path of the process.

    Attributes:
        is_ready: whether the process takes jobs already.
    """

    def __init__(self, path: list[str]):
        self.path = path
        self.is_ready = False
        self._since = 0.0
        self._process: int | None = None
        self._out = b""
        self._in = bytearray()

    def submit(self, job: Any) -> None:
        if self._process is None:
            self._start()
        self._send(job)
        if self.is_ready:
            self._since = self._clock()
        self._write()

    def _send(self, message: Any) -> None:
        data = pickle.dumps(message, 5)
        self._out += len(data).to_bytes(_SIZE, "little") + data

    def _start(self) -> None:
        jobs, self._jobs = os.pipe()
        self._answers, answers = os.pipe()
        errors = 2 if os.environ.get("JITCORE_SCRIPTS_DEBUG") else os.open(os.devnull, os.O_WRONLY)
        actions = [(os.POSIX_SPAWN_DUP2, own, number) for number, own in enumerate((jobs, answers, errors))]
        command = [sys.executable, "-c", _START.format(path=self.path)]
        self._process = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)
        os.close(jobs)
        os.close(answers)
        if errors != 2:
            os.close(errors)
        os.set_blocking(self._jobs, False)
        os.set_blocking(self._answers, False)

    def _write(self) -> None:
        try:
            while self._out:
                self._out = self._out[os.write(self._jobs, self._out):]
        except BlockingIOError:
            pass
        except OSError:
            self.kill()

    def poll(self) -> Any:
        """The answer to the job; None while there is none. A process that died answers with a text."""
        if self._process is None:
            return None
        self._write()
        try:
            while data := os.read(self._answers, 1 << 16):
                self._in += data
            self.kill()
            return "the compiling process ended"
        except BlockingIOError:
            pass
        while len(self._in) >= _SIZE:
            end = _SIZE + int.from_bytes(self._in[:_SIZE], "little")
            if len(self._in) < end:
                break
            answer = pickle.loads(self._in[_SIZE:end])
            del self._in[:end]
            if answer == "ready":
                self.is_ready, self._since = True, self._clock()
                continue
            return answer
        return None

    @property
    def maker(self) -> tuple[int, float] | None:
        """See `Lesson`."""
        return None if self._process is None else (self._process, time() + 4 * LONGEST)

    @property
    def seconds(self) -> float:
        """Of processor time that the job has had; 0 before it was begun with."""
        return self._clock() - self._since if self.is_ready else 0.0

    def _clock(self) -> float:
        try:
            with open(f"/proc/{self._process}/stat", "rb") as file:
                user, system = file.read().rpartition(b")")[2].split()[11:13]
            return (int(user) + int(system)) / _TICKS
        except OSError:  # another system: waiting counts too
            return monotonic()

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        if self._process is not None:
            os.close(self._jobs)
            os.close(self._answers)
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        self._process, self._out, self._in, self.is_ready = None, b"", bytearray(), False

    def leave(self, note: Any = None) -> None:
        """Lets the process end by itself, when it has done what it has begun. note: what it is to do with
        that."""
        if self._process is not None:
            if note is not None:
                self._send(note)
                self._write()
            os.close(self._jobs)
            os.close(self._answers)
            self._process = None
