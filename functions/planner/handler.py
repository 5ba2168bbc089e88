"""A planner's pass over one shard, within this function's time."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap

logger = Logger()

RESERVE = timedelta(seconds=30)
"""Left for closing buckets and relaying leftovers once planning has stopped."""


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Any) -> None:
    shard = int(event["shard"])
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    deadline = bootstrap.clock().now() + left - RESERVE
    report = bootstrap.plan_shard()(shard, deadline=deadline)
    logger.info(
        "pass" if report.leased else "no pass: no such shard, or another planner holds it",
        shard=shard,
        buckets=report.buckets,
        planned=report.planned,
        spans=report.spans,
        quarantined=report.quarantined,
        carried=report.carried,
        relayed=report.relayed,
        completed_through=report.completed_through,
        drained_through=report.drained_through,
    )
