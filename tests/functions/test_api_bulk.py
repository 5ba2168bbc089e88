"""Files of schedules over HTTP: imports, exports, labels."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from functions.api.bulk import LAST_LINES_SECONDS
from functions.api.problems import LINE_ERRORS_SHOWN_MAX
from functions.api.requests import GZIP_MEMBERS_MAX
from puntual.application.import_schedules import CONTENT_BYTES_MAX
from tests.builders import a_tenant
from tests.control_plane_world import OWN_QUEUE
from tests.functions.conftest import Answered, Api

SCHEDULES = "/v1/tenants/acme/schedules"
IMPORT, EXPORT = f"{SCHEDULES}/import", f"{SCHEDULES}/export"
TARGET = {"type": "webhook", "url": "https://acme.example/hook"}
PRIVATE = "what only the target may read"


def a_body(name: str, **fields: object) -> dict[str, object]:
    return {"id": name, "expression": "0 12 * * *", "target": TARGET, **fields}


def file_of(*lines: object) -> bytes:
    """Give a file: bytes as they are, anything else as JSON."""
    return b"\n".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
    )


def results_of(answered: Answered) -> list[dict[str, Any]]:
    assert answered.status == 200, answered.text
    results: list[dict[str, Any]] = answered.body["results"]
    return results


def told(answered: Answered) -> list[str]:
    return [f"{each['line']} {each['id']} {each['result']}" for each in results_of(answered)]


def test_a_file_is_imported_line_by_line(api: Api) -> None:
    answered = api.call("POST", IMPORT, file_of(a_body("a"), b"", a_body("b"), a_body("a")))
    assert answered.body == {
        "mode": "create",
        "dry_run": False,
        "results": [
            {"line": 1, "id": "a", "result": "created", "version": 1},
            {"line": 3, "id": "b", "result": "created", "version": 1},
            {
                "line": 4,
                "id": "a",
                "result": "refused",
                "status": 400,
                "detail": "id: 'a' is not allowed; allowed: an id that no other line has;"
                " line 1 has it",
                "errors": [
                    {
                        "field": "id",
                        "value": "a",
                        "allowed": "an id that no other line has; line 1 has it",
                    }
                ],
            },
        ],
        "stopped": None,
        "resume": None,
    }
    assert api.call("GET", f"{SCHEDULES}/a").body["version"] == 1


@pytest.mark.parametrize(
    ("line", "status", "field"),
    [
        (b"{", 400, "line"),
        (b"\xff\xfe{}", 400, "line"),
        (b'{"id":"\xc3"}', 400, "line"),
        (b"[]", 400, "line"),
        (b"NaN", 400, "line"),
        (b"[" * 100_000, 400, "line"),
        (b"9" * 5_000, 400, "line"),
        (b'{"a":' * 150 + b"1" + b"}" * 150, 400, "a"),
        (b'{"id":"a","id":"b"}', 400, "id"),
        ({"expression": "@daily", "target": TARGET}, 400, "id"),
        (a_body("a", id=None), 400, "id"),
        (a_body("a", id=7), 400, "id"),
        (a_body(".."), 400, "id"),
        (a_body("export"), 400, "id"),
        (a_body("a", surprise=1), 400, "surprise"),
        (a_body("a", expression="61 * * * *"), 400, "expression"),
        (a_body("a", expression=None), 400, "expression"),
        (a_body("a", target={"type": "fax"}), 400, "target.type"),
        (a_body("a", labels=[]), 400, "labels"),
        (a_body("a", labels={"team": 7}), 400, "labels.team"),
        (a_body("a", labels={"a b": ""}), 400, "labels"),
        (a_body("a", payload="x" * 70_000), 413, "payload"),
        (b" " * 10 + b'"' + b"x" * 300_000 + b'"', 400, "line"),
    ],
)
def test_a_bad_line_is_refused_by_name_and_stops_nobody(
    api: Api, line: object, status: int, field: str
) -> None:
    first, bad, last = results_of(
        api.call("POST", IMPORT, file_of(a_body("first"), line, a_body("last")))
    )
    assert (first["result"], last["result"]) == ("created", "created")
    assert (bad["line"], bad["result"], bad["status"]) == (2, "refused", status)
    assert bad["errors"][0]["field"] == field
    assert all(error["allowed"] for error in bad["errors"])
    assert len(json.dumps(bad)) < 2_000


def test_a_line_with_much_wrong_names_some_of_it(api: Api) -> None:
    bad = {"id": 1, "expression": 2, "time_zone": 3, "gap": 4, "fold": 5, "overlap": 6, "retry": 7}
    (result,) = results_of(api.call("POST", IMPORT, file_of(bad)))
    assert len(result["errors"]) == LINE_ERRORS_SHOWN_MAX


def test_conflicts_are_told_as_a_create_tells_them(api: Api) -> None:
    for name in ("a", "gone"):
        api.call("POST", SCHEDULES, a_body(name))
    api.call("DELETE", f"{SCHEDULES}/gone")
    lines = file_of(a_body("a", payload=1), a_body("gone"))
    first, second = results_of(api.call("POST", IMPORT, lines))
    assert (first["status"], first["errors"][0]["field"]) == (409, "id")
    assert "payload" in first["detail"]
    assert (second["status"], second["result"]) == (409, "refused")
    updated, _ = results_of(api.call("POST", IMPORT, lines, query={"mode": "upsert"}))
    assert updated == {"line": 1, "id": "a", "result": "updated", "version": 2}


def test_a_quota_that_is_reached_stops_the_file(api: Api) -> None:
    api.world.tenants.register(a_tenant(schedules_max=1))
    answered = api.call("POST", IMPORT, file_of(a_body("a"), a_body("b"), a_body("c")))
    _, full = results_of(answered)
    assert (full["status"], answered.body["stopped"]) == (403, "quota")
    assert answered.body["resume"]


def test_a_dry_run_writes_nothing(api: Api) -> None:
    before = api.world.writes()
    answered = api.call("POST", IMPORT, file_of(a_body("a")), query={"dry_run": "true"})
    assert told(answered) == ["1 a created"]
    assert answered.body["dry_run"] is True
    assert api.world.writes() == before


def test_a_call_ends_before_its_function_and_is_gone_on_with(api: Api) -> None:
    api.context.remaining_milliseconds = LAST_LINES_SECONDS * 1000
    lines = file_of(a_body("a"), a_body("b"))
    first = api.call("POST", IMPORT, lines)
    assert (told(first), first.body["stopped"]) == (["1 a created"], "time")
    second = api.call("POST", IMPORT, lines, query={"resume": first.body["resume"]})
    assert (told(second), second.body["resume"]) == (["2 b created"], None)
    other = api.call("POST", IMPORT, file_of(a_body("z")), query={"resume": first.body["resume"]})
    assert (other.status, other.body["errors"][0]["field"]) == (400, "resume")


PLAIN = file_of(a_body("a", payload="ñ"), a_body("b"))


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (PLAIN, {}),
        (gzip.compress(PLAIN, mtime=0), {"Content-Encoding": "gzip"}),
        (gzip.compress(PLAIN, mtime=0), {"Content-Encoding": "GZIP"}),
        (gzip.compress(PLAIN, mtime=0), {"Content-Type": "application/gzip"}),
        (
            gzip.compress(PLAIN[:40], mtime=0) + gzip.compress(PLAIN[40:], mtime=0),
            {"Content-Encoding": "gzip"},
        ),
        # API Gateway has unpacked it and left the header.
        (PLAIN, {"Content-Encoding": "gzip"}),
        # Of a type that API Gateway takes for text.
        (PLAIN.decode(), {"Content-Type": "application/x-ndjson; charset=utf-8"}),
    ],
)
def test_a_file_comes_plain_or_packed(
    api: Api, content: bytes | str, headers: dict[str, str]
) -> None:
    answered = api.call("POST", IMPORT, content, headers=headers)
    assert told(answered) == ["1 a created", "2 b created"]


BOMB = gzip.compress(b"0" * (CONTENT_BYTES_MAX + 1), mtime=0)
FULL = gzip.compress(b"0" * 100, mtime=0) * 2


@pytest.mark.parametrize(
    ("content", "headers", "status", "field"),
    [
        (BOMB, {}, 413, "body"),
        (BOMB + BOMB, {}, 413, "body"),
        (gzip.compress(b" " * 3_000_000, mtime=0) * 2, {}, 413, "body"),
        (gzip.compress(b"", mtime=0) * (GZIP_MEMBERS_MAX + 1), {}, 400, "body"),
        (FULL[:-5], {}, 400, "body"),
        (FULL + b"garbage", {}, 400, "body"),
        (b"\x1f\x8bgarbage", {}, 400, "body"),
        (b" " * (CONTENT_BYTES_MAX + 1), {}, 413, "body"),
        (b"\n0" * 50_001, {}, 413, "body"),
        (PLAIN, {"Content-Encoding": "br"}, 400, "Content-Encoding"),
    ],
)
def test_a_file_that_cannot_be_unpacked_is_refused_as_a_whole(
    api: Api, content: bytes, headers: dict[str, str], status: int, field: str
) -> None:
    before = api.world.writes()
    answered = api.call("POST", IMPORT, content, headers=headers)
    assert (answered.status, answered.body["errors"][0]["field"]) == (status, field)
    assert api.world.writes() == before


def test_no_more_is_unpacked_than_is_taken(api: Api) -> None:
    bomb = gzip.compress(b"0" * 40 * CONTENT_BYTES_MAX, compresslevel=1, mtime=0)
    tracemalloc.start()
    try:
        assert api.call("POST", IMPORT, bomb).status == 413
        assert tracemalloc.get_traced_memory()[1] < 8 * CONTENT_BYTES_MAX
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"mode": "replace"}, "mode"),
        ({"dry_run": "1"}, "dry_run"),
        ({"time_limit_seconds": "21"}, "time_limit_seconds"),
        ({"time_limit_seconds": "0"}, "time_limit_seconds"),
        ({"resume": "x"}, "resume"),
        ({"surprise": "1"}, "query"),
    ],
)
def test_a_bad_parameter_is_refused_by_name(api: Api, query: dict[str, str], field: str) -> None:
    answered = api.call("POST", IMPORT, PLAIN, query=query)
    assert (answered.status, answered.body["errors"][0]["field"]) == (400, field)


def test_a_file_without_lines_is_imported(api: Api) -> None:
    for content in (None, b"", b"\r\n\n", gzip.compress(b"", mtime=0)):
        assert results_of(api.call("POST", IMPORT, content)) == []


def test_an_unknown_tenant_is_not_found(api: Api) -> None:
    for method, path in (("POST", "import"), ("GET", "export")):
        answered = api.call(method, f"/v1/tenants/nobody/schedules/{path}")
        assert (answered.status, answered.body["errors"][0]["field"]) == (404, "tenant")


def test_the_answer_of_the_largest_file_fits(api: Api) -> None:
    """Every line is refused, with much to be said of it."""
    bad = {"id": 1, "expression": "\u00f1\\", "time_zone": 3, "gap": 4, "fold": 5, "overlap": 6}
    answered = api.call("POST", IMPORT, gzip.compress(file_of(*[bad] * 40_000)))
    assert answered.body["stopped"] == "answer"
    assert len(json.dumps({"body": answered.text})) < 6 * 1024 * 1024


def exported(api: Api, **query: str | Sequence[str]) -> Answered:
    return api.call("GET", EXPORT, query=query)


def test_an_export_gives_bodies_that_an_import_takes(api: Api) -> None:
    api.world.tenants.register(a_tenant(targets=(OWN_QUEUE,)))
    api.call("POST", SCHEDULES, a_body("a", payload={"ñ": ["\n", '"']}, labels={"team": "x=y"}))
    api.call("POST", SCHEDULES, a_body("b", target={"type": "sqs", "queue_arn": OWN_QUEUE}))
    answered = exported(api)
    assert answered.status == 200
    assert answered.headers["Content-Type"] == "application/x-ndjson"
    assert "Next-Page-Token" not in answered.headers
    first, second = (json.loads(line) for line in answered.text.splitlines())
    shown = api.call("GET", f"{SCHEDULES}/a").body
    assert first == {name: shown[name] for name in first}
    assert {*first} - {"id"} < {*shown}
    assert second["target"]["queue_arn"] == OWN_QUEUE
    assert answered.text.endswith("\n")
    again = api.call("POST", IMPORT, answered.text.encode())
    assert told(again) == ["1 a unchanged", "2 b unchanged"]


def test_pages_of_an_export_follow_each_other(api: Api) -> None:
    for name in "abc":
        api.call("POST", SCHEDULES, a_body(name, labels={"in": "all", "is": name}))
    first = exported(api, limit="2", label=["in", "in=all"])
    token = first.headers["Next-Page-Token"]
    second = exported(api, limit="2", label=["in=all", "in"], page_token=token)
    ids = [json.loads(line)["id"] for page in (first, second) for line in page.text.splitlines()]
    assert ids == ["a", "b", "c"]
    assert exported(api, label="is=d").text == ""


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "1001"}, "limit"),
        ({"state": "SLEEPING"}, "state"),
        ({"label": "a b"}, "label"),
        ({"page_token": "x"}, "page_token"),
        ({"prefix": "a/b"}, "prefix"),
        ({"surprise": "1"}, "query"),
    ],
)
def test_a_bad_parameter_of_an_export_is_refused_by_name(
    api: Api, query: dict[str, str], field: str
) -> None:
    answered = exported(api, **query)
    assert (answered.status, answered.body["errors"][0]["field"]) == (400, field)


def test_no_schedule_has_the_name_of_a_path(api: Api) -> None:
    for name in ("export", "import"):
        answered = api.call("POST", SCHEDULES, a_body(name))
        assert (answered.status, answered.body["errors"][0]["field"]) == (400, "id")
    assert api.call("GET", f"{SCHEDULES}/import").status == 400
    assert api.call("PUT", f"{SCHEDULES}/export", a_body("x")).status == 400
    assert api.call("POST", EXPORT).status == 405


def test_payloads_are_in_no_log(api: Api, logged: io.StringIO) -> None:
    lines = file_of(
        a_body("a", payload=PRIVATE),
        a_body("b", payload=PRIVATE, retry={"max_attempts": 0}),
        a_body("b", payload=PRIVATE),
        json.dumps(a_body("c", payload=PRIVATE)).encode()[:-1],
    )
    answered = api.call("POST", IMPORT, lines)
    assert [each["result"] for each in results_of(answered)] == ["created"] + ["refused"] * 3
    assert PRIVATE not in answered.text
    assert PRIVATE in exported(api).text
    assert PRIVATE not in logged.getvalue()


def test_labels_are_shown_listed_and_filtered_by(api: Api) -> None:
    for name, labels in (("a", {"team": "billing", "env": "prod"}), ("b", {"team": "ops"})):
        made = api.call("POST", SCHEDULES, a_body(name, labels=labels))
        assert made.body["labels"] == labels
    (listed,) = api.call("GET", SCHEDULES, query={"label": ["team=billing", "env"]}).body[
        "schedules"
    ]
    assert (listed["id"], listed["labels"]) == ("a", {"env": "prod", "team": "billing"})
    for label, count in (("team", 2), ("team=ops", 1), ("env=", 0)):
        answered = api.call("GET", SCHEDULES, query={"label": label})
        assert len(answered.body["schedules"]) == count
    assert api.call("GET", SCHEDULES, query={"label": "a b"}).status == 400


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"labels": {"env": "dev"}}, {"env": "dev", "team": "billing"}),
        ({"labels": {"env": None}}, {"team": "billing"}),
        ({"labels": {"absent": None}}, {"env": "prod", "team": "billing"}),
        ({"labels": None}, {}),
        ({"labels": {}}, {"env": "prod", "team": "billing"}),
        ({"payload": 1}, {"env": "prod", "team": "billing"}),
    ],
)
def test_a_patch_merges_labels(api: Api, patch: object, expected: dict[str, str]) -> None:
    api.call("POST", SCHEDULES, a_body("a", labels={"team": "billing", "env": "prod"}))
    answered = api.call("PATCH", f"{SCHEDULES}/a", patch, headers={"If-Match": '"1"'})
    assert answered.body["labels"] == expected


@pytest.mark.parametrize("labels", [{"env": 7}, {"env": {"x": "y"}}, [], "x", {"a b": "c"}])
def test_a_patch_of_what_are_no_labels_is_refused(api: Api, labels: object) -> None:
    api.call("POST", SCHEDULES, a_body("a", labels={"env": "prod"}))
    answered = api.call("PATCH", f"{SCHEDULES}/a", {"labels": labels}, headers={"If-Match": '"1"'})
    assert answered.status == 400
    assert answered.body["errors"][0]["field"].startswith("labels")


def test_a_replacement_puts_labels_anew(api: Api) -> None:
    api.call("POST", SCHEDULES, a_body("a", labels={"env": "prod"}))
    body = {"expression": "0 12 * * *", "target": TARGET, "labels": {"x": "y"}}
    for version, labels in ((1, {"x": "y"}), (2, {})):
        answered = api.call(
            "PUT",
            f"{SCHEDULES}/a",
            {**body, "labels": labels},
            headers={"If-Match": f'"{version}"'},
        )
        assert answered.body["labels"] == labels
