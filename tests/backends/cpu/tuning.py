"""This machine with other numbers."""

from jitcore.backends.cpu.machine import host


def make_machine(rooms: dict[str, dict]) -> host.Machine:
    """`make_machine({"loops": {"near_bytes": 1}})`."""
    known = host.MACHINE.tuning
    changed = {room: getattr(known, room).replace(**numbers) for room, numbers in rooms.items()}
    return host.Machine(known.replace(**changed))


def tune(monkeypatch, **rooms: dict) -> None:
    """Changes numbers: `tune(monkeypatch, loops={"near_bytes": 1})`. What was compiled before stays."""
    monkeypatch.setattr(host, "MACHINE", make_machine(rooms))
