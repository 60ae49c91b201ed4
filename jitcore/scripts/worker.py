"""The process that compiles for one that runs a script: jobs come in, programs go out.

In, on the standard input: a message for each `Job`. Out, on what was the standard output: for each the
pickle of its `FromDisk`, or a text that says why there is none. A message is the number of its bytes and a
pickle. The process ends with its input.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import pickle
import signal
import struct
import sys
import time
from typing import Any, BinaryIO

from jitcore.scripts.helper import LONGEST
from jitcore.scripts.learned import Note, add_lesson

try:
    import resource
except ImportError:  # another system
    resource = None  # type: ignore[assignment]


SIZE = struct.Struct("<Q")


def write_message(file: BinaryIO, value: Any) -> None:
    data = pickle.dumps(value, 5)
    file.write(SIZE.pack(len(data)) + data)
    file.flush()


def read_message(file: BinaryIO) -> Any:
    """None at the end."""
    head = file.read(SIZE.size)
    return pickle.loads(file.read(*SIZE.unpack(head))) if len(head) == SIZE.size else None


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes
    if hasattr(os, "nice"):
        os.nice(int(os.environ.get("JITCORE_SCRIPTS_NICE", 5)))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is traced may print
    jobs = os.fdopen(os.dup(0), "rb")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting threads takes 50 ms
    gc.disable()
    from jitcore.config import config
    from jitcore.scripts.compiling import Refused, compile_loop

    gc.freeze()
    gc.enable()
    config.update("announce_compiles", False)  # nobody waits
    config.update("default_backend", "cpu")  # whose programs lie on disk
    tell(answers, "ready")
    answer: bytes | str = ""
    while (message := read_message(jobs)) is not None:
        if isinstance(message, Note):  # the script may have ended with the answer unread
            add_lesson(message, answer)
            break
        limit_processor_time(jobs)
        try:
            answer = compile_loop(message).pack()
        except Refused as error:
            answer = str(error)
        except Exception as error:
            if os.environ.get("JITCORE_SCRIPTS_DEBUG"):
                import traceback

                traceback.print_exc()
            answer = f"{type(error).__name__}: {error}"
        tell(answers, answer)
    os._exit(0)


def tell(answers: BinaryIO, message: Any) -> None:
    """Tells the script, if it is still there."""
    with contextlib.suppress(BrokenPipeError):
        write_message(answers, message)


def give_up(jobs: BinaryIO) -> None:
    """Keeps for later runs of the script that its last job takes too long."""
    note = read_message(jobs)
    if isinstance(note, Note):
        add_lesson(note, "compiling it takes too long")
    os._exit(0)


def limit_processor_time(jobs: BinaryIO) -> None:
    """Of a job, where nobody is there to end this process when it has taken too long."""
    if resource is None:
        return
    used = time.process_time() + 2 * LONGEST
    signal.signal(signal.SIGXCPU, lambda *_: give_up(jobs))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used), hard))


if __name__ == "__main__":
    sys.exit(main())
