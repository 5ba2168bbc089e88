"""The outbox's stream: each new page to its lanes.

A page that fails is reported, and stays in the outbox in any case: the planner relays what is left,
so nothing depends on the stream alone.
"""

from base64 import b64decode
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.codec import page_of_packed

logger = Logger()

CARRIED = "carried"
"""The attribute of pages that the planner takes to their lanes itself."""


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Any) -> dict[str, list[dict[str, str]]]:
    records = [record for record in event["Records"] if not _is_carried(record)]
    failed = [record for record in records if not _relayed(record)]
    # A stream is read again from the first failure on; those after it that went well go twice,
    # which the ledger makes harmless.
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["dynamodb"]["SequenceNumber"]} for record in failed[:1]
        ]
    }


def _is_carried(record: Any) -> bool:
    return CARRIED in record.get("dynamodb", {}).get("NewImage", {})


def _relayed(record: Any) -> bool:
    try:
        page = page_of_packed(b64decode(record["dynamodb"]["NewImage"]["body"]["B"]))
        report = bootstrap.relay_page()(page)
    except Exception:  # the outermost handler: one page must not stop the others
        logger.exception("page not relayed", keys=record.get("dynamodb", {}).get("Keys"))
        return False
    log = logger.warning if report.refused else logger.info
    log("page", shard=page.shard, page=page.id, sent=report.sent, refused=report.refused)
    return not report.refused
