"""This machine with other numbers."""

from jitcore.backends.cpu.machine import host


def tune(monkeypatch, **rooms: dict) -> None:
    """Changes numbers: `tune(monkeypatch, loops={"near_bytes": 1})`. What was compiled before stays."""
    known = host.MACHINE.tuning
    changed = {room: getattr(known, room)._replace(**numbers) for room, numbers in rooms.items()}
    monkeypatch.setattr(host, "MACHINE", host.Machine(known._replace(**changed)))
