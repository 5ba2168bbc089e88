"""Idempotency-Key: the create of one key and body runs once, however often it is asked for."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyInconsistentStateError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)

from functions.api.desk import Desk
from functions.api.problems import RequestInProgress
from puntual.application.create_schedule import IdempotencyKeyReused, Request
from puntual.application.show_schedule import ShownSchedule
from puntual.domain.errors import Unavailable
from puntual.domain.schedule import ScheduleKey
from puntual.domain.tenant import ScheduleId, TenantId

REMEMBERED_SECONDS = 24 * 60 * 60


def create_once(
    desk: Desk,
    create: Callable[[], ShownSchedule],
    *,
    tenant: TenantId,
    request: Request,
    context: Any,
) -> ShownSchedule:
    """Run `create`, or give again what it answered.

    The record holds the schedule's id alone: the answer is made again from version 1, so it is
    the same to the byte and no payload is stored twice. While a record is in progress the key is
    held no longer than the function may live. Raises `IdempotencyKeyReused`, `RequestInProgress`,
    `Unavailable` and what `create` does.
    """
    made: list[ShownSchedule] = []

    def run(*, asked: dict[str, str]) -> dict[str, str]:
        assert asked["tenant"] == tenant
        made.append(create())
        return {"schedule": made[0].head.schedule}

    once = idempotent_function(
        run,
        data_keyword_argument="asked",
        persistence_store=desk.idempotency,
        config=_config(context),
        key_prefix="create-schedule",
    )
    try:
        answer = once(asked={"tenant": tenant, "key": request.key, "body": request.body})
    except IdempotencyValidationError as error:
        raise IdempotencyKeyReused(request.key) from error
    except IdempotencyAlreadyInProgressError as error:
        raise RequestInProgress("a request of this Idempotency-Key is in progress") from error
    except (IdempotencyPersistenceLayerError, IdempotencyInconsistentStateError) as error:
        raise Unavailable("the idempotency store did not answer") from error
    if made:
        return made[0]
    key = ScheduleKey(tenant=tenant, schedule=ScheduleId(answer["schedule"]))
    return desk.plane.create_schedule.created(key)


def _config(context: Any) -> IdempotencyConfig:
    return IdempotencyConfig(
        event_key_jmespath="[tenant, key]",
        payload_validation_jmespath="body",
        raise_on_no_idempotency_key=True,
        expires_after_seconds=REMEMBERED_SECONDS,
        hash_function="sha256",
        lambda_context=context,
    )
