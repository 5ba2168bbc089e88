"""Once a minute: a planner for every shard."""

from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: Any, _context: Any) -> None:
    report = bootstrap.tick()()
    if report.failed:
        logger.warning("some planners were not started", shards=list(report.failed))
    logger.info("tick", planners=len(report.started))
