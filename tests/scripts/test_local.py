"""The local system's own decisions; starting and deploying is what the end-to-end tests do."""

import os
import socket

import pytest

from scripts import emulator
from scripts.emulator import Endpoint, Refused
from scripts.local import by_hand, named_by_suffix
from scripts.receiver import HOST, PORT


def test_the_emulator_is_ours_unless_an_endpoint_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("PUNTUAL_PORT", "4600")
    assert emulator.chosen_endpoint() == Endpoint(url="http://127.0.0.1:4600", ours=True)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:4566/")
    assert emulator.chosen_endpoint() == Endpoint(url="http://localhost:4566", ours=False)


@pytest.mark.parametrize("port", ["", "http", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, port: str) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("PUNTUAL_PORT", port)
    with pytest.raises(Refused):
        emulator.chosen_endpoint()


def test_nothing_of_the_users_account_reaches_the_local_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "real")
    environment = emulator.hermetic_environment()
    assert "AWS_PROFILE" not in environment
    assert "AWS_SESSION_TOKEN" not in environment
    assert environment["AWS_ACCESS_KEY_ID"] == "test"
    assert environment["AWS_CONFIG_FILE"] == os.devnull


def test_a_port_is_taken_while_somebody_listens() -> None:
    with socket.socket() as listener:
        listener.bind((emulator.HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert emulator.port_taken(port)
    assert not emulator.port_taken(port)


def test_outputs_are_named_by_what_they_are() -> None:
    outputs = {"StrictQueueUrl": "a", "RelayFailuresQueueUrl": "b", "ApiUrl": "c"}
    assert named_by_suffix(outputs, "QueueUrl") == {"strict": "a", "relay_failures": "b"}


def test_the_first_steps_start_what_they_send_to_and_list_a_few_runs() -> None:
    steps = by_hand({"api_url": "http://127.0.0.1:4566/", "region": "us-east-1"}).splitlines()
    assert "-m scripts.receiver" in steps[0]
    assert any(f'"http://{HOST}:{PORT}/ok"' in step for step in steps)
    assert "occurrences?limit=5" in steps[-1]


def test_the_first_steps_sign_by_a_function_which_every_shell_calls_alike() -> None:
    steps = by_hand({"api_url": "http://127.0.0.1:4566/", "region": "us-east-1"})
    assert "call() { curl " in steps
    # zsh takes `$call -X PUT` for the name of one command.
    assert "$call" not in steps
