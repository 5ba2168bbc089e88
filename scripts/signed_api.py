"""The API of the local system, called the way AWS asks for: signed with SigV4."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

TIMEOUT_SECONDS = 60.0
CONNECTIONS_MAX = 16
CREDENTIALS = Credentials("test", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any

    def expect(self, status: int) -> "Answer":
        """Give this answer; raises RuntimeError where its status is another."""
        if self.status != status:
            raise RuntimeError(f"the API answered {self.status}, not {status}: {self.body}")
        return self


class SignedApi:
    """`url` is the stage's root, with a slash at its end."""

    def __init__(
        self, url: str, *, region: str = "us-east-1", credentials: Credentials = CREDENTIALS
    ) -> None:
        self._url, self._region, self._credentials = url, region, credentials
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS_MAX, retries=False)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """Call `v1/…`; a body of bytes goes as it is, anything else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = AWSRequest(method=method, url=self._url + path, data=data, headers=sent)
        if signed:
            SigV4Auth(self._credentials, "execute-api", self._region).add_auth(request)
        answer = self._pool.request(
            method,
            self._url + path,
            body=data,
            headers=dict(request.headers.items()),
            timeout=TIMEOUT_SECONDS,
        )
        text = answer.data.decode()
        return Answer(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.headers.items()},
            body=json.loads(text) if text else None,
        )

    def register(self, tenant: str, **settings: object) -> None:
        self.call("PUT", f"v1/admin/tenants/{quote(tenant)}", settings).expect(200)

    def webhook_keys(self, tenant: str) -> list[str]:
        """The keys that sign a tenant's webhooks, the newest first."""
        shown = self.call("GET", f"v1/tenants/{quote(tenant)}/webhook-keys").expect(200).body
        return [each["key"] for each in shown["keys"]]

    def create(self, tenant: str, schedule: Mapping[str, object]) -> dict[str, Any]:
        answer = self.call("POST", f"v1/tenants/{quote(tenant)}/schedules", schedule).expect(201)
        created: dict[str, Any] = answer.body
        return created

    def schedule(self, tenant: str, schedule: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.call("GET", self.path(tenant, schedule)).expect(200).body
        return shown

    def occurrences(self, tenant: str, schedule: str, **query: str) -> Iterator[dict[str, Any]]:
        """Every occurrence of a range, page after page."""
        while True:
            path = f"{self.path(tenant, schedule)}/occurrences?{urlencode(query)}"
            page = self.call("GET", path).expect(200).body
            yield from page["occurrences"]
            token = page["next_page_token"]
            if not token:
                return
            query = {**query, "page_token": token}

    def occurrence(self, tenant: str, schedule: str, ref: str) -> dict[str, Any]:
        """One occurrence with its attempts."""
        path = f"{self.path(tenant, schedule)}/occurrences/{quote(ref)}"
        shown: dict[str, Any] = self.call("GET", path).expect(200).body
        return shown

    @staticmethod
    def path(tenant: str, schedule: str) -> str:
        return f"v1/tenants/{quote(tenant)}/schedules/{quote(schedule)}"
