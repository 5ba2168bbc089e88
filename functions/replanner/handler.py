"""A slice of planning anew what new zone data move; called again with its token until it ends.

Event: `dry_run` (false) and `next_token` of the last answer (none). Answer: `from` and `to`, the
releases; `zones`, the names whose clocks differ; `looked_at` and `already`, counts; `changed`, an
entry for each schedule; `next_token`; `settled`, true once nothing is behind.
"""

from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.replan_zones import Replanned, ReplanReport
from puntual.domain.instant import text_of

RESERVE = timedelta(seconds=30)
"""Left for the schedule at hand, its first fires and the answer."""

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Any) -> dict[str, Any]:
    left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    dry_run = event.get("dry_run") is True
    report = bootstrap.replan_zones()(
        token=event.get("next_token"),
        dry_run=dry_run,
        deadline=bootstrap.clock().now() + left - RESERVE,
    )
    logger.info(
        "re-planned",
        former=report.former,
        deployed=report.deployed,
        dry_run=dry_run,
        looked_at=report.looked_at,
        already=report.already,
        changed=len(report.changed),
        settled=report.settled,
    )
    return _answer(report)


def _answer(report: ReplanReport) -> dict[str, Any]:
    return {
        "from": list(report.former),
        "to": report.deployed,
        "zones": list(report.zones),
        "looked_at": report.looked_at,
        "already": report.already,
        "changed": [_changed(replanned) for replanned in report.changed],
        "next_token": report.token,
        "settled": report.settled,
    }


def _changed(replanned: Replanned) -> dict[str, Any]:
    version, moved = replanned.version, replanned.moved
    return {
        "tenant": version.tenant,
        "schedule": version.schedule,
        "version": version.version,
        "state": version.state.value,
        "expression": version.rule.expression,
        "time_zone": version.rule.time_zone,
        "vanished": moved.vanished,
        "first_vanished": _text(moved.first_vanished),
        "appeared": moved.appeared,
        "first_appeared": _text(moved.first_appeared),
        "complete": moved.complete,
    }


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)
