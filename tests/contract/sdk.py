"""Ways in which the SDK and the services behave at their worst, by botocore's own hooks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError


@contextmanager
def hooked(client: BaseClient, event: str, operation: str, handle: Any) -> Iterator[None]:
    """Have one of botocore's hooks call `handle` for each call of an operation."""
    service = client.meta.service_model.service_id.hyphenize()
    name = f"{event}.{service}.{operation}"
    client.meta.events.register_first(name, handle)
    try:
        yield
    finally:
        client.meta.events.unregister(name, handle)


@contextmanager
def recording(client: BaseClient, operation: str) -> Iterator[list[dict[str, Any]]]:
    """Remember what each call asks for."""
    calls: list[dict[str, Any]] = []

    def record(params: dict[str, Any], **_: Any) -> None:
        calls.append(params)

    with hooked(client, "provide-client-params", operation, record):
        yield calls


@contextmanager
def repeating(client: BaseClient, operation: str) -> Iterator[list[int]]:
    """Lose each call's first answer, after it took effect: the SDK then sends the same again."""
    repeated: list[int] = []

    def handle(attempts: int, **_: Any) -> float | None:
        if attempts > 1:
            return None
        repeated.append(attempts)
        return 0.0

    with hooked(client, "needs-retry", operation, handle):
        yield repeated
    assert repeated, f"{operation} was never called"


@contextmanager
def timing_out(client: BaseClient, operation: str) -> Iterator[None]:
    """Let each call take effect and then time out for good."""

    def handle(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://aws.example")

    with hooked(client, "after-call", operation, handle):
        yield


@contextmanager
def refusing(
    client: BaseClient,
    operation: str,
    code: str,
    *,
    status: int = 400,
    reasons: Sequence[str] = (),
    times: int = 99,
) -> Iterator[None]:
    """Answer so many calls with an error of the service, and no effect."""
    answered: list[str] = []

    def handle(model: Any, **_: Any) -> Any:
        answered.append(model.name)
        if len(answered) > times:
            return None
        return _Response(status), {
            "Error": {"Code": code, "Message": f"{code}: {model.name} was refused"},
            "ResponseMetadata": {"HTTPStatusCode": status},
            "CancellationReasons": [{"Code": reason} for reason in reasons],
        }

    # botocore takes a response from here instead of sending; it holds errors by its status.
    with hooked(client, "before-call", operation, handle):
        yield
    assert answered, f"{operation} was never called"


@contextmanager
def leaving_unprocessed(
    client: BaseClient, operation: str, *, unprocessed: str, taken: int, times: int
) -> Iterator[list[int]]:
    """Let a batch call take only its first items, and give the others back, so many times."""
    calls: list[int] = []
    left: dict[str, Any] = {}

    def cut(params: dict[str, Any], **_: Any) -> None:
        left.clear()
        calls.append(sum(len(_items(request)) for request in params["RequestItems"].values()))
        if len(calls) > times:
            return
        for table, request in list(params["RequestItems"].items()):
            items = _items(request)
            left[table] = _with_items(request, items[taken:])
            params["RequestItems"] = {table: _with_items(request, items[:taken])}

    def give_back(parsed: dict[str, Any], **_: Any) -> None:
        parsed[unprocessed] = {table: rest for table, rest in left.items() if _items(rest)}

    with (
        hooked(client, "provide-client-params", operation, cut),
        hooked(client, "after-call", operation, give_back),
    ):
        yield calls


class _Response:
    def __init__(self, status: int) -> None:
        self.status_code = status


def _items(request: Any) -> Any:
    return request["Keys"] if isinstance(request, dict) else request


def _with_items(request: Any, items: Any) -> Any:
    return request | {"Keys": items} if isinstance(request, dict) else items
