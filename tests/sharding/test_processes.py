"""Programs of two processes on this machine."""

import socket

import pytest

from tests.sharding.on_devices import start

pytest.importorskip("jax")


@pytest.mark.slow
def test_stencil_on_two_processes():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    processes = [
        start(["-m", "tests.sharding.two_processes", str(number), str(port)], devices=4) for number in (0, 1)
    ]
    try:
        texts = [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [text.splitlines()[-1:] for text in texts] == [["done"], ["done"]]
