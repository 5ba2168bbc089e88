"""Messages of the lanes: each is judged, claimed and delivered on its own, side by side."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.codec import message_of_body
from puntual.application.settle_message import Settled
from puntual.application.share_executors import SEAT_RENEWED_AFTER
from puntual.domain.errors import Unavailable
from puntual.domain.gate import BY_SEATS
from puntual.domain.message import Crowd, Message

logger = Logger()

BATCH_MAX = 10


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Any) -> dict[str, list[dict[str, str]]]:
    records = event["Records"]
    bootstrap.execute_occurrence()  # wired once, before the threads share it
    messages = [_message_or_none(record) for record in records]
    waits = _admitted(messages)
    took: dict[Crowd, timedelta] = {}
    # A receiver that hangs must not hold up the rest of its batch.
    with ThreadPoolExecutor(max_workers=BATCH_MAX) as pool:
        settling = [
            pool.submit(_is_kept, record, message, waits.get(place), took)
            for place, (record, message) in enumerate(zip(records, messages, strict=True))
        ]
        while wait(settling, timeout=SEAT_RENEWED_AFTER.total_seconds()).not_done:
            _renew()
    bootstrap.share_executors().settled(took)
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["messageId"]}
            for record, kept in zip(records, settling, strict=True)
            if kept.result()
        ]
    }


def _message_or_none(record: Any) -> Message | None:
    try:
        sent_at = datetime.fromtimestamp(int(record["attributes"]["SentTimestamp"]) / 1000, tz=UTC)
        return message_of_body(record["body"], sent_at=sent_at)
    except (KeyError, ValueError):
        logger.exception("message kept", message_id=record["messageId"])
        return None


def _admitted(messages: Sequence[Message | None]) -> dict[int, datetime]:
    """Give the places of those that must wait for a seat, and until when."""
    readable = [place for place, message in enumerate(messages) if message is not None]
    batch = [message for message in messages if message is not None]
    waits = bootstrap.share_executors().admit(batch)
    return {readable[place]: until for place, until in waits.items()}


def _renew() -> None:
    try:
        bootstrap.share_executors().renew()
    except Unavailable:
        logger.warning("seats not renewed")


def _is_kept(
    record: Any, message: Message | None, until: datetime | None, took: dict[Crowd, timedelta]
) -> bool:
    if message is None:
        return True
    began = bootstrap.clock().now()
    try:
        if until is None:
            settled = bootstrap.execute_occurrence()(message)
        else:
            waiting = message.kept_waiting(BY_SEATS, now=began, until=until)
            settled = bootstrap.settle_message().park(waiting, until, why=BY_SEATS)
    except Exception:  # the outermost handler: one message must not stop the others
        logger.exception("message kept", message_id=record["messageId"])
        return True
    if until is None:
        lasted = bootstrap.clock().now() - began
        took[message.crowd] = max(lasted, took.get(message.crowd, lasted))
    _log(message, settled)
    return settled.keep


def _log(message: Message, settled: Settled) -> None:
    occurrence, run = message.occurrence, settled.run
    log = logger.error if settled.stalled else logger.info
    log(
        "settled",
        outcome=settled.why,
        tenant=occurrence.tenant,
        schedule=occurrence.schedule,
        occurrence=occurrence.id,
        attempt=run.attempt if run else None,
        kept=settled.keep,
        stalled=settled.stalled,
    )
