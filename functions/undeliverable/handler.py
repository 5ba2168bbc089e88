"""Messages that were received too often: judged once more, and DEAD where nothing else holds."""

from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.codec import message_of_body

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Any) -> dict[str, list[dict[str, str]]]:
    kept = [record["messageId"] for record in event["Records"] if _is_kept(record)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in kept]}


def _is_kept(record: Any) -> bool:
    try:
        message = message_of_body(record["body"])
        settled = bootstrap.bury_message()(message)
    except Exception:  # the outermost handler: one message must not stop the others
        logger.exception("message kept", message_id=record["messageId"])
        return True
    occurrence = message.occurrence
    logger.warning(
        "undeliverable",
        outcome=settled.why,
        tenant=occurrence.tenant,
        schedule=occurrence.schedule,
        occurrence=occurrence.id,
        kept=settled.keep,
    )
    return settled.keep
