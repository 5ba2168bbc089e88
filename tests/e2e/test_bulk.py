"""Files of schedules through the deployed API: in, again, out, and into another tenant."""

import gzip
import json
import uuid
from typing import Any
from urllib.parse import urlencode

from tests.e2e.conftest import Stage

LINES = 200
BAD = {7: b"{", 77: b'{"id": "\xff"}', 177: b'{"id": "b", "expression": "61 * * * *"}'}
"""By their places in the file; the last one has no target either."""


def a_line(number: int) -> bytes:
    body = {
        "id": f"s-{number:03}",
        "expression": f"{number % 60} 3 * * *",
        "target": {"type": "webhook", "url": "https://receiver.example/hook"},
        "payload": {"number": number},
        "labels": {"team": "billing" if number % 2 else "ops", "made/by": "a test"},
    }
    return json.dumps(body).encode()


def a_file() -> bytes:
    return b"\r\n".join(BAD.get(number) or a_line(number) for number in range(LINES))


def imports(stage: Stage, content: bytes, *, tenant: str = "", **query: str) -> dict[str, Any]:
    path = f"v1/tenants/{tenant or stage.tenant}/schedules/import?{urlencode(query)}"
    headers = {"Content-Type": "application/x-ndjson"}
    if content.startswith(gzip.compress(b"")[:2]):
        headers = {"Content-Type": "application/gzip"}
    done: dict[str, Any] = stage.api.call("POST", path, content, headers=headers).expect(200).body
    return done


def exports(stage: Stage, tenant: str = "", **query: str) -> list[dict[str, Any]]:
    lines, token = list[dict[str, Any]](), ""
    while True:
        asked = {**query, **({"page_token": token} if token else {})}
        path = f"v1/tenants/{tenant or stage.tenant}/schedules/export?{urlencode(asked)}"
        answer = stage.api.call("GET", path).expect(200)
        lines += answer.body
        token = answer.headers.get("next-page-token", "")
        if not token:
            return lines


def test_a_file_goes_in_and_out_and_in_again(stage: Stage) -> None:
    first = imports(stage, a_file())
    results = first["results"]
    assert (len(results), first["resume"]) == (LINES, None)
    refused = {each["line"] - 1: each for each in results if each["result"] == "refused"}
    assert refused.keys() == BAD.keys()
    assert sum(each["result"] == "created" for each in results) == LINES - len(BAD)

    again = imports(stage, gzip.compress(a_file()), mode="upsert")
    unchanged = [each for each in again["results"] if each["result"] == "unchanged"]
    assert len(unchanged) == LINES - len(BAD)

    listed = stage.api.call(
        "GET", f"v1/tenants/{stage.tenant}/schedules?limit=100&label=team=ops&label=made/by"
    ).expect(200)
    assert len(listed.body["schedules"]) == LINES // 2
    assert all(each["labels"]["team"] == "ops" for each in listed.body["schedules"])

    ours = exports(stage, limit="90")
    assert [each["id"] for each in ours] == sorted(each["id"] for each in unchanged)
    assert len(exports(stage, label="team=ops")) == LINES // 2

    other = f"t-{uuid.uuid4().hex[:8]}"
    stage.api.register(other)
    content = "".join(json.dumps(line) + "\n" for line in ours).encode()
    moved = imports(stage, content, tenant=other)
    assert {each["result"] for each in moved["results"]} == {"created"}
    assert exports(stage, other) == ours


def test_an_import_stops_in_time_and_goes_on(stage: Stage) -> None:
    content = b"\n".join(a_line(number) for number in range(1, LINES + 1))
    token, seen, calls = "", list[dict[str, Any]](), 0
    while calls == 0 or token:
        query = {"time_limit_seconds": "1", **({"resume": token} if token else {})}
        done = imports(stage, content, **query)
        seen += done["results"]
        token, calls = done["resume"] or "", calls + 1
        assert done["stopped"] == ("time" if token else None)
    assert calls > 1, "else it was not stopped"
    assert [each["line"] for each in seen] == list(range(1, LINES + 1))
    assert {each["result"] for each in seen} == {"created"}


def test_a_dry_run_leaves_nothing(stage: Stage) -> None:
    done = imports(stage, a_line(1), dry_run="true")
    assert [each["result"] for each in done["results"]] == ["created"]
    assert exports(stage) == []
