"""Two versions say the same, or which parts of them do not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from puntual.domain.likeness import parts_that_differ
from puntual.domain.policies import Overlap, Policies
from puntual.domain.schedule import ScheduleState, ScheduleVersion
from puntual.domain.target import WebhookTarget
from tests.builders import NINE, a_rule, a_version

VERSION = replace(a_version(), payload='{"a":1,"b":[2]}', labels=(("env", "prod"),))


@pytest.mark.parametrize(
    ("other", "parts"),
    [
        (VERSION, ()),
        (replace(VERSION, version=7, author="bo", effective_from=NINE + timedelta(days=1)), ()),
        (replace(VERSION, state=ScheduleState.PAUSED, request="r", tzdata="2099a"), ()),
        (replace(VERSION, payload='{"b":[2],"a":1}'), ()),
        (replace(VERSION, payload='{"a":1.0,"b":[2]}'), ("payload",)),
        (replace(VERSION, payload='{"a":true,"b":[2]}'), ("payload",)),
        (replace(VERSION, rule=a_rule("7 7 * * *")), ("rule",)),
        (replace(VERSION, policies=Policies(overlap=Overlap.QUEUE_ONE)), ("policies",)),
        (replace(VERSION, target=WebhookTarget(url="https://other.example")), ("target",)),
        (replace(VERSION, labels=()), ("labels",)),
        (replace(VERSION, labels=(), payload="1"), ("payload", "labels")),
    ],
)
def test_the_parts_that_differ_are_named(other: ScheduleVersion, parts: tuple[str, ...]) -> None:
    assert parts_that_differ(VERSION, other) == parts
    assert parts_that_differ(other, VERSION) == parts
