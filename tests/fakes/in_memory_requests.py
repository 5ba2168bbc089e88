"""Requests in memory."""

from puntual.domain.run_request import RunRequest
from puntual.domain.schedule import ScheduleKey


class InMemoryRequests:
    def __init__(self) -> None:
        self.rows: dict[tuple[ScheduleKey, str], RunRequest] = {}

    def read(self, key: ScheduleKey, request_id: str) -> RunRequest | None:
        return self.rows.get((key, request_id))

    def put(self, request: RunRequest) -> RunRequest:
        return self.rows.setdefault((request.key, request.id), request)
