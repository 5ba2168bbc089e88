"""A target's call in, by the token of its attempt; what became of the run, or a problem, out.

Nobody signs here. The token is judged first, and whatever is wrong with it gets the same answer.
Neither it nor the path that holds it is ever logged or repeated.
"""

import base64
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn

from aws_lambda_powertools import Logger

from puntual import bootstrap
from puntual.application.take_callback import TakeCallback
from puntual.domain.callback import AttemptOver, reason_of, result_of, retry_of
from puntual.domain.callback_token import Ticket, UnknownCallback
from puntual.domain.errors import Rejected, Unavailable
from puntual.domain.instant import text_of
from puntual.domain.run import Run

BODY_BYTES_MAX = 8 * 1024
"""A result of 1 KB, each of its characters escaped, and room for a client's own manner."""

RETRY_AFTER_SECONDS = 1
JSON = "application/json"
PROBLEM_JSON = "application/problem+json"

logger = Logger()

Body = Mapping[str, object]
Action = Callable[[TakeCallback, Ticket, Body], Run]


class BodyTooLarge(Rejected):
    """A callback says little."""

    def __init__(self, size: int) -> None:
        super().__init__("body", f"{size} bytes", f"at most {BODY_BYTES_MAX} bytes")


def _heartbeat(take: TakeCallback, ticket: Ticket, body: Body) -> Run:
    _check_names(body)
    return take.heartbeat(ticket)


def _complete(take: TakeCallback, ticket: Ticket, body: Body) -> Run:
    _check_names(body, "result")
    return take.complete(ticket, result=result_of(body.get("result")))


def _fail(take: TakeCallback, ticket: Ticket, body: Body) -> Run:
    _check_names(body, "reason", "retry")
    retry = retry_of(body.get("retry", True))
    return take.fail(ticket, reason=reason_of(body.get("reason")), retry=retry)


ACTIONS: Mapping[str, Action] = {
    "POST /v1/callbacks/{token}/heartbeat": _heartbeat,
    "POST /v1/callbacks/{token}/complete": _complete,
    "POST /v1/callbacks/{token}/fail": _fail,
}


@logger.inject_lambda_context(clear_state=True)
def handler(event: Any, _context: Any) -> dict[str, Any]:
    return respond(event, bootstrap.take_callback())


def respond(event: Any, take: TakeCallback) -> dict[str, Any]:
    """Answer one call; one line of log for it, without its path and its body."""
    route = event["routeKey"]
    try:
        ticket = take.ticket(event["pathParameters"]["token"])
        logger.append_keys(
            tenant=ticket.occurrence.tenant,
            schedule=ticket.occurrence.schedule,
            occurrence=ticket.occurrence.id,
            attempt=ticket.attempt,
        )
        answer = _answer(ACTIONS[route](take, ticket, _body_of(event)))
    except UnknownCallback:
        answer = _problem(HTTPStatus.NOT_FOUND, "There is no such callback.")
    except BodyTooLarge as error:
        answer = _problem(HTTPStatus.CONTENT_TOO_LARGE, str(error), error)
    except Rejected as error:
        answer = _problem(HTTPStatus.BAD_REQUEST, str(error), error)
    except AttemptOver as error:
        answer = _problem(HTTPStatus.CONFLICT, str(error))
    except Unavailable as error:
        logger.warning("unavailable", why=str(error))
        answer = _problem(HTTPStatus.SERVICE_UNAVAILABLE, "Repeat the request.")
        answer["headers"]["Retry-After"] = str(RETRY_AFTER_SECONDS)
    except Exception:  # the outermost handler: a problem document, as for every other error
        logger.exception("unexpected failure")
        answer = _problem(HTTPStatus.INTERNAL_SERVER_ERROR, "An unexpected failure; it was logged.")
    logger.info("called back", route=route, status=answer["statusCode"])
    return answer


def _body_of(event: Any) -> Body:
    """Read a body, which may be left out; raises `Rejected`, which repeats nothing of it."""
    text = event.get("body") or ""
    raw = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()
    if len(raw) > BODY_BYTES_MAX:
        raise BodyTooLarge(len(raw))
    if not raw.strip():
        return {}
    try:
        body = json.loads(raw, parse_constant=_refuse, object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise Rejected(
            "body", "text that is no such JSON", "one JSON object in UTF-8, or nothing"
        ) from error
    if not isinstance(body, dict):
        raise Rejected("body", "another JSON value", "one JSON object in UTF-8, or nothing")
    return body


def _members(members: list[tuple[str, object]]) -> Body:
    body = dict(members)
    if len(body) < len(members):
        raise Rejected("body", "a name that comes twice", "each name once")
    return body


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")


def _check_names(body: Body, *known: str) -> None:
    for name in body:
        if name not in known:
            allowed = f"only {', '.join(known)}" if known else "no members"
            raise Rejected("body", name, allowed)


def _answer(run: Run) -> dict[str, Any]:
    """Tell what the run is now; a heartbeat hears by it whether it should end itself."""
    document = {
        "state": run.state.value,
        "attempt": run.attempt,
        "lease_until": None if run.lease_until is None else text_of(run.lease_until),
        "not_before": None if run.not_before is None else text_of(run.not_before),
        "cancel_requested": run.cancel_requested,
    }
    return _response(HTTPStatus.OK, JSON, document)


def _problem(status: HTTPStatus, detail: str, error: Rejected | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
    }
    if error is not None:
        document["errors"] = [
            {"field": error.field, "value": error.value, "allowed": error.allowed}
        ]
    return _response(status, PROBLEM_JSON, document)


def _response(status: HTTPStatus, content_type: str, document: Body) -> dict[str, Any]:
    return {
        "statusCode": status.value,
        "headers": {"Content-Type": content_type, "Cache-Control": "no-store"},
        "body": json.dumps(document, separators=(",", ":")),
    }
