"""Idempotency-Key: the create of one key and body runs once, however often it is asked for."""

from collections.abc import Callable
from typing import Any

from functions.api.answer_once import answer_once
from functions.api.desk import Desk
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.request import Request
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId


def create_once(
    desk: Desk,
    create: Callable[[], ShownSchedule],
    *,
    tenant: TenantId,
    request: Request | None,
    context: Any,
) -> ShownSchedule:
    """Run `create`, or give again what it answered.

    The record holds the schedule's id alone: the answer is made again from version 1, so it is
    the same to the byte and no payload is stored twice. Raises what `answer_once` and `create` do.
    """
    made: list[ShownSchedule] = []

    def run() -> dict[str, str]:
        made.append(create())
        return {"schedule": made[0].head.schedule}

    answer = answer_once(
        desk, run, what="create-schedule", tenant=tenant, request=request, context=context
    )
    if made:
        return made[0]
    key = ScheduleKey(tenant=tenant, schedule=ScheduleId(answer["schedule"]))
    return desk.plane.create_schedule.created(key)
