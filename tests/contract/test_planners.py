"""Planners: asked for, not waited for."""

import json
from typing import Any

import boto3
import pytest

from puntual.adapters.lambda_planners import LambdaPlanners
from puntual.aws import LambdaClient
from puntual.domain.errors import Unavailable
from tests.contract.sdk import hooked, recording, refusing
from tests.fakes.recording_planners import RecordingPlanners


class Accepted:
    status_code = 202


@pytest.fixture(scope="session")
def client() -> LambdaClient:
    return boto3.client("lambda")


def test_a_pass_is_asked_for_as_an_event(client: LambdaClient) -> None:
    planners = LambdaPlanners(client=client, function="planner")

    def accept(**_: Any) -> Any:
        return Accepted(), {"StatusCode": 202}

    with hooked(client, "before-call", "Invoke", accept), recording(client, "Invoke") as calls:
        planners.start(7)
    (call,) = calls
    assert (call["FunctionName"], call["InvocationType"]) == ("planner", "Event")
    assert json.loads(call["Payload"]) == {"shard": 7}


def test_too_many_requests_are_unavailable(client: LambdaClient) -> None:
    planners = LambdaPlanners(client=client, function="planner")
    code = "TooManyRequestsException"
    with refusing(client, "Invoke", code, status=429), pytest.raises(Unavailable):
        planners.start(7)


def test_the_fake_remembers_and_tells_of_each_start() -> None:
    heard: list[int] = []
    planners = RecordingPlanners(on_start=heard.append)
    planners.start(3)
    planners.start(3)
    assert planners.started == heard == [3, 3]
