"""Every example of docs/callbacks.md does what it says."""

import json
import re
from datetime import timedelta
from typing import Any

from functions.callbacks.handler import ACTIONS, respond
from puntual.application.settle_message import SettleMessage
from puntual.application.take_callback import TakeCallback
from puntual.domain.callback_token import Ticket, token_of
from puntual.domain.policies import (
    HEARTBEAT_MAX,
    HEARTBEAT_MIN,
    MAX_DURATION_MAX,
    MAX_DURATION_MIN,
)
from tests.builders import NINE, a_run, an_occurrence
from tests.fakes.in_memory_lanes import InMemoryLanes
from tests.fakes.seeded_chance import FixedChance
from tests.functions.conftest import Api
from tests.functions.documented_examples import CALLBACKS, as_told, examples
from tests.functions.test_callbacks import an_event
from tests.gates import GatePorts, failing_by, gates_of

TEXT = CALLBACKS.read_text(encoding="utf-8")
RUN = a_run(an_occurrence(schedule="report"))
BLOCK = re.compile(
    r"```(?P<kind>http|callback)\n(?P<request>.*?)```\s*"
    r"```json (?P<status>\d{3})\n(?P<body>.*?)```",
    re.DOTALL,
)


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(BLOCK.finditer(TEXT))
    assert [each["kind"] for each in told].count("callback") >= 3
    for each in told:
        if each["kind"] == "callback":
            status, body = called_back(api, each["request"])
        else:
            [example] = examples(each[0])
            answer = api.call(example.method, example.path, example.body)
            status, body = answer.status, answer.body
            if status == 201:
                # Its target has taken it, half a minute before it says anything.
                api.world.put(RUN)
                api.world.clock.advance_to(NINE + timedelta(seconds=90))
        assert status == int(each["status"]), each["request"]
        said = json.loads(each["body"])
        assert as_told(body, said) == said, each["request"]


def called_back(api: Api, request: str) -> tuple[int, Any]:
    world = api.world
    gates = gates_of(
        GatePorts(tenants=world.tenants, budgets=world.budgets),
        clock=world.clock,
        ids=world.ids,
        chance=FixedChance(),
    )
    take = TakeCallback(
        root_secret=world.root_secret,
        settle_message=SettleMessage(
            schedules=world.schedules,
            ledger=world.ledger,
            lanes=InMemoryLanes(),
            clock=world.clock,
            ids=world.ids,
            catch_up=world.catch_up,
        ),
        fail_attempt=failing_by(gates),
        rooms=gates.rooms,
    )
    token = token_of(Ticket(occurrence=RUN.occurrence, attempt=1), root=world.root_secret.secret)
    head, _, body = request.partition("\n\n")
    [route] = [each for each in ACTIONS if each.endswith(head.strip().removeprefix("POST "))]
    answer = respond(an_event(route, token, body.strip() or None), take)
    return answer["statusCode"], json.loads(answer["body"])


def test_every_path_and_bound_is_documented() -> None:
    for route in ACTIONS:
        assert f"`…/{route.rpartition('/')[2]}`" in TEXT
    for bound in (HEARTBEAT_MIN, HEARTBEAT_MAX, MAX_DURATION_MIN, MAX_DURATION_MAX):
        assert f"{int(bound.total_seconds()):,}" in TEXT
