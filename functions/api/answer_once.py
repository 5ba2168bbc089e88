"""Idempotency-Key: what one key and body ask for is done once, and answered the same each time."""

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
from puntual.domain.errors import Unavailable
from puntual.domain.request import IdempotencyKeyReused, Request
from puntual.domain.tenant import TenantId

REMEMBERED_SECONDS = 24 * 60 * 60


def answer_once(
    desk: Desk,
    run: Callable[[], dict[str, Any]],
    *,
    what: str,
    tenant: TenantId,
    request: Request | None,
    context: Any,
) -> dict[str, Any]:
    """Run, or give again what this request was answered; without one, just run.

    `what` keeps keys of one kind out of another's. While a record is in progress the key is held
    no longer than the function may live. Raises `IdempotencyKeyReused`, `RequestInProgress`,
    `Unavailable` and what `run` does.
    """
    if request is None:
        return run()

    def once(*, asked: dict[str, str]) -> dict[str, Any]:
        assert asked["tenant"] == tenant
        return run()

    remembered = idempotent_function(
        once,
        data_keyword_argument="asked",
        persistence_store=desk.idempotency,
        config=_config(context),
        key_prefix=what,
    )
    try:
        answer: dict[str, Any] = remembered(
            asked={"tenant": tenant, "key": request.key, "body": request.body}
        )
    except IdempotencyValidationError as error:
        raise IdempotencyKeyReused(request.key) from error
    except IdempotencyAlreadyInProgressError as error:
        raise RequestInProgress("a request of this Idempotency-Key is in progress") from error
    except (IdempotencyPersistenceLayerError, IdempotencyInconsistentStateError) as error:
        raise Unavailable("the idempotency store did not answer") from error
    return answer


def _config(context: Any) -> IdempotencyConfig:
    return IdempotencyConfig(
        event_key_jmespath="[tenant, key]",
        payload_validation_jmespath="body",
        raise_on_no_idempotency_key=True,
        expires_after_seconds=REMEMBERED_SECONDS,
        hash_function="sha256",
        lambda_context=context,
    )
