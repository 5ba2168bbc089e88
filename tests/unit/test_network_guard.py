"""The tests' own guard."""

import socket

import pytest


def test_a_test_cannot_reach_beyond_this_machine() -> None:
    with socket.socket() as outside, pytest.raises(AssertionError, match="tried to reach"):
        outside.connect(("192.0.2.1", 80))


def test_a_test_can_reach_this_machine() -> None:
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
