from copy import deepcopy
from datetime import UTC, datetime, timedelta

from functions.undeliverable.handler import handler
from puntual.application.codec import body_of, message_of_body
from puntual.domain.lane import Lane
from puntual.domain.run import RunState
from tests.builders import a_message, a_version, an_occurrence
from tests.functions.deployed import LambdaContext, deployed, recorded

DEAD_LETTERS = recorded("sqs_dead_letters")


def test_e4_a_dead_letter_without_a_row_leaves_a_dead_run() -> None:
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    occurrence = an_occurrence(scheduled_for=due)
    event = deepcopy(DEAD_LETTERS)
    event["Records"][0]["body"] = body_of(a_message(occurrence), timedelta(0))
    with deployed() as world:
        world.creates(a_version(effective_from=due - timedelta(hours=1)))
        assert handler(event, LambdaContext()) == {"batchItemFailures": []}
        run = world.ledger.read(occurrence.key)
    assert run is not None
    assert (run.state, run.reason) == (RunState.DEAD, "undeliverable")


def test_a_dead_letter_of_long_ago_is_judged_as_an_executor_would() -> None:
    occurrence = message_of_body(DEAD_LETTERS["Records"][0]["body"]).occurrence
    with deployed() as world:
        world.creates(a_version(effective_from=datetime(2024, 1, 1, tzinfo=UTC)))
        assert handler(DEAD_LETTERS, LambdaContext()) == {"batchItemFailures": []}
        run = world.ledger.read(occurrence.key)
    assert run is not None
    assert run.state is RunState.MISSED


def test_e4_a_dead_letter_that_must_still_wait_goes_back_to_its_lane() -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=5)
    event = deepcopy(DEAD_LETTERS)
    message = a_message(an_occurrence(scheduled_for=soon))
    event["Records"][0]["body"] = body_of(message, timedelta(0))
    with deployed() as world:
        assert handler(event, LambdaContext()) == {"batchItemFailures": []}
        assert world.waiting(Lane.STRICT) == 1


def test_a_dead_letter_that_nobody_can_read_is_kept_and_stops_no_other() -> None:
    event = deepcopy(DEAD_LETTERS)
    unreadable = event["Records"][0] | {"messageId": "unreadable", "body": "no message at all"}
    event["Records"].insert(0, unreadable)
    with deployed() as world:
        world.creates(a_version(effective_from=datetime(2024, 1, 1, tzinfo=UTC)))
        answer = handler(event, LambdaContext())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "unreadable"}]}
