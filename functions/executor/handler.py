"""Messages of the lanes: each is judged, claimed and delivered on its own, side by side."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.codec import message_of_body
from puntual.application.settle_message import Settled
from puntual.domain.message import Message

logger = Logger()

BATCH_MAX = 10


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Any) -> dict[str, list[dict[str, str]]]:
    records = event["Records"]
    bootstrap.execute_occurrence()  # wired once, before the threads share it
    # A receiver that hangs must not hold up the rest of its batch.
    with ThreadPoolExecutor(max_workers=BATCH_MAX) as pool:
        kept = pool.map(_is_kept, records)
        return {
            "batchItemFailures": [
                {"itemIdentifier": record["messageId"]}
                for record, keep in zip(records, kept, strict=True)
                if keep
            ]
        }


def _is_kept(record: Any) -> bool:
    try:
        sent_at = datetime.fromtimestamp(int(record["attributes"]["SentTimestamp"]) / 1000, tz=UTC)
        message = message_of_body(record["body"], sent_at=sent_at)
        settled = bootstrap.execute_occurrence()(message)
    except Exception:  # the outermost handler: one message must not stop the others
        logger.exception("message kept", message_id=record["messageId"])
        return True
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
