"""A slice of planning anew what new zone data move; called again with its token until it ends.

Event: `dry_run` (false) and `next_token` of the last answer (none). Answer: `from` and `to`, the
releases; `zones`, the names whose clocks differ; `dropped`, the names that are gone; `looked_at`
and `already`, counts; `replanned` and `refused`, an entry for each schedule; `left`, how many the
run has refused so far; `next_token`; `caught_up`, true once nothing is behind.
"""

from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.replan_zones import Refused, Replanned, ReplanReport
from puntual.domain.errors import Rejected
from puntual.domain.instant import text_of

RESERVE = timedelta(seconds=30)
"""Left for the schedule at hand, its first fires and the answer."""

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, context: Any) -> dict[str, Any]:
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    token, dry_run = _asked_for(event)
    report = bootstrap.replan_zones()(
        token=token,
        dry_run=dry_run,
        deadline=bootstrap.clock().now() + remaining - RESERVE,
        tell=_tell,
    )
    logger.info(
        "re-planned",
        former=report.former,
        deployed=report.deployed,
        dry_run=dry_run,
        looked_at=report.looked_at,
        already=report.already,
        replanned=len(report.replanned),
        refused=len(report.refused),
        caught_up=report.caught_up,
    )
    return _answer(report)


def _asked_for(event: Any) -> tuple[str | None, bool]:
    """Read an event strictly: a dry run that is spelt otherwise must not write."""
    for name in sorted(event.keys() - {"dry_run", "next_token"}):
        raise Rejected(name, event[name], "not there: dry_run and next_token are all there is")
    token, dry_run = event.get("next_token"), event.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise Rejected("dry_run", dry_run, "true or false")
    if not (token is None or isinstance(token, str)):
        raise Rejected("next_token", token, "the next_token of the run's last answer, or null")
    return token, dry_run


def _tell(replanned: Replanned) -> None:
    version = replanned.version
    logger.info(
        "schedule re-planned",
        tenant=version.tenant,
        schedule=version.schedule,
        version=version.version,
    )


def _answer(report: ReplanReport) -> dict[str, Any]:
    return {
        "from": list(report.former),
        "to": report.deployed,
        "zones": list(report.zones),
        "dropped": list(report.dropped),
        "looked_at": report.looked_at,
        "already": report.already,
        "replanned": [_replanned(replanned) for replanned in report.replanned],
        "refused": [_refused(refused) for refused in report.refused],
        "left": report.left,
        "next_token": report.token,
        "caught_up": report.caught_up,
    }


def _replanned(replanned: Replanned) -> dict[str, Any]:
    version, differences = replanned.version, replanned.differences
    return {
        "tenant": version.tenant,
        "schedule": version.schedule,
        "version": version.version,
        "expression": version.rule.expression,
        "time_zone": version.rule.time_zone,
        "vanished": differences.vanished,
        "first_vanished": _text(differences.first_vanished),
        "appeared": differences.appeared,
        "first_appeared": _text(differences.first_appeared),
        "complete": differences.complete,
    }


def _refused(refused: Refused) -> dict[str, Any]:
    return {
        "tenant": refused.key.tenant,
        "schedule": refused.key.schedule,
        "reason": refused.reason,
    }


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else text_of(instant)
