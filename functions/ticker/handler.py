"""Once a minute: a planner for every shard, and whether schedules follow the deployed zone data."""

from typing import Any

from aws_lambda_powertools import Logger, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from puntual import bootstrap

ZONE_RULES_BEHIND = "ZoneRulesBehind"
"""1 while stored cursors may follow other zone rules than the deployed ones, else 0."""

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(_event: Any, _context: Any) -> None:
    report = bootstrap.tick()()
    if report.failed:
        logger.warning("some planners were not started", shards=list(report.failed))
    logger.info("tick", planners=len(report.started))
    _note_zone_release()


def _note_zone_release() -> None:
    try:
        in_use = bootstrap.note_zone_release()()
    except Exception:  # the outermost handler: planners are started, whatever becomes of this
        logger.exception("zone release not noted")
        return
    behind = in_use.is_behind(bootstrap.zone_data().release)
    if behind:
        logger.warning(
            "schedules may follow former zone rules: re-plan",
            deployed=in_use.current,
            former=sorted(in_use.former),
        )
    with single_metric(name=ZONE_RULES_BEHIND, unit=MetricUnit.Count, value=int(behind)):
        pass
