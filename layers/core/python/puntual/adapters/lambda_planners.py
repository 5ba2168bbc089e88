"""Planners as asynchronous invocations of a function."""

import json
from dataclasses import dataclass

from puntual.aws import LambdaClient, unavailable_if_transient


@dataclass(frozen=True, slots=True, kw_only=True)
class LambdaPlanners:
    client: LambdaClient
    function: str

    def start(self, shard: int) -> None:
        with unavailable_if_transient("start a planner"):
            self.client.invoke(
                FunctionName=self.function,
                InvocationType="Event",
                Payload=json.dumps({"shard": shard}).encode(),
            )
