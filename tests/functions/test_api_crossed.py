"""One tenant with all that belongs to another: nothing is read, guessed or changed."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from functions.api.handler import METHODS_OF
from functions.api.previews import CATCH_UP_PREVIEW
from puntual.domain.run import RunState
from tests.builders import NINE, TENANT, a_note, a_run, a_tenant, an_occurrence
from tests.functions.conftest import Answered, Api

OURS = "arn:aws:sts::123456789012:assumed-role/acme/ana"
THEIRS = "arn:aws:sts::123456789012:assumed-role/globex/ben"

DEFINITION = {
    "expression": "rate(5 minutes)",
    "target": {"type": "webhook", "url": "https://acme.example/hooks/invoices"},
    "payload": {"secret": "of acme"},
}
KEY = {"Idempotency-Key": "order-7"}
FIRE = "2026-11-30T09:00:00.000Z"
NEVER_MADE = "never-made"

QUERIES = {CATCH_UP_PREVIEW: {"from": "2026-11-30T09:00:00Z"}}
BODIES: dict[tuple[str, str], object] = {
    ("PUT", "/v1/tenants/<tenant>/schedules/<schedule>"): DEFINITION,
    ("PATCH", "/v1/tenants/<tenant>/schedules/<schedule>"): {"payload": 1},
    ("POST", "/v1/tenants/<tenant>/schedules/<schedule>/backfill"): {
        "from": "2026-11-29T09:00:00Z",
        "until": "2026-11-30T09:00:00Z",
    },
    ("POST", "/v1/tenants/<tenant>/schedules/<schedule>/occurrences/<occurrence>/replay"): {},
}
"""The right body of a route that takes one: with a wrong one, nothing would be tried."""

OF_SCHEDULES = [
    (method, path)
    for path, methods in METHODS_OF.items()
    for method in sorted(methods)
    if "<schedule>" in path
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Two:
    """Acme, with all that a tenant can have, and Globex, with a queue of its own and no more."""

    api: Api
    made: dict[str, Any]

    def as_globex(self, method: str, path: str, body: object = None, **request: Any) -> Answered:
        return self.api.call(method, f"/v1/tenants/globex{path}", body, caller=THEIRS, **request)

    def as_acme(self, method: str, path: str, body: object = None, **request: Any) -> Answered:
        return self.api.call(method, f"/v1/tenants/acme{path}", body, caller=OURS, **request)

    def belongings(self) -> str:
        """All of acme's that a request may change, as it is stored."""
        world = self.api.world
        kept = (
            {key: row for key, row in world.schedules.head_rows.items() if key.tenant == "acme"},
            {
                key: row
                for key, row in world.schedules.version_rows.items()
                if key[0].tenant == "acme"
            },
            [each for each in world.agenda.cursors() if each[1].tenant == "acme"],
            {key: dict(rows) for key, rows in world.ledger.rows.items() if key.tenant == "acme"},
            world.tenants.rows[TENANT],
        )
        return repr(kept)


@pytest.fixture
def two(api: Api) -> Two:
    for name in ("acme", "globex"):
        principal = f"arn:aws:iam::123456789012:role/{name}"
        api.world.tenants.register(a_tenant(name, principals=(principal,)))
    two = Two(api=api, made={})
    for number in range(3):
        body = {**DEFINITION, "id": f"job-{number}"}
        assert two.as_acme("POST", "/schedules", body).status == 201
    two.made.update(two.as_acme("POST", "/schedules", DEFINITION, headers=KEY).body)
    first = an_occurrence(schedule="job-0", scheduled_for=NINE)
    api.world.put(a_run(first, state=RunState.SUCCEEDED), a_note(first))
    return two


def own(path: str) -> str:
    return path.removeprefix("/v1/tenants/<tenant>")


def test_nothing_tells_anothers_schedule_from_one_that_nobody_made(two: Two) -> None:
    before = two.belongings()
    for method, path in OF_SCHEDULES:
        answers = []
        for schedule in ("job-0", NEVER_MADE):
            answer = two.as_globex(
                method,
                own(path).replace("<schedule>", schedule).replace("<occurrence>", FIRE),
                BODIES.get((method, path)),
                headers={"If-Match": '"1"'},
                query=QUERIES.get(path),
            )
            assert answer.status == 404, f"{method} {path}: has it a body in BODIES? {answer.text}"
            answers.append(answer.text.replace(schedule, "…"))
        assert answers[0] == answers[1], (method, path)
    assert two.belongings() == before


@pytest.mark.parametrize("ref", [FIRE, f"{FIRE}~v1", f"{FIRE}~v1~manual~order-7"])
def test_a_ref_of_an_occurrence_opens_nothing(two: Two, ref: str) -> None:
    anothers = two.as_globex("GET", f"/schedules/job-0/occurrences/{ref}")
    nobodys = two.as_globex("GET", f"/schedules/{NEVER_MADE}/occurrences/{ref}")
    assert anothers.status == nobodys.status
    assert anothers.text.replace("job-0", NEVER_MADE) == nobodys.text


def test_a_schedule_of_the_same_id_shows_its_own_occurrences_only(two: Two) -> None:
    mine = {**DEFINITION, "id": "job-0", "payload": "of globex"}
    assert two.as_globex("POST", "/schedules", mine).status == 201
    shown = two.as_globex("GET", "/schedules/job-0")
    assert shown.body["payload"] == "of globex"
    query = {"from": "2026-11-30T08:00:00Z", "to": "2026-11-30T09:00:01Z"}
    assert (
        len(two.as_acme("GET", "/schedules/job-0/occurrences", query=query).body["occurrences"]) > 0
    )
    listed = two.as_globex("GET", "/schedules/job-0/occurrences", query=query)
    assert listed.body["occurrences"] == []
    before = two.belongings()
    assert two.as_globex("DELETE", "/schedules/job-0").status == 200
    assert two.belongings() == before


def test_a_page_token_leads_into_no_other_tenants_listing(two: Two) -> None:
    assert two.as_globex("POST", "/schedules", {**DEFINITION, "id": "job-0"}).status == 201
    listings = [
        ("/schedules", {"limit": "1"}),
        ("/schedules/job-0/occurrences", {"limit": "1", "to": "2026-11-30T12:00:00Z"}),
    ]
    for path, query in listings:
        token = two.as_acme("GET", path, query=query).body["next_page_token"]
        assert token, path
        crossed = two.as_globex("GET", path, query={**query, "page_token": token})
        assert crossed.status == 400, path
        assert crossed.body["errors"][0]["field"] == "page_token"


def test_an_idempotency_key_gives_nobody_anothers_schedule(two: Two) -> None:
    before = two.belongings()
    theirs = {**DEFINITION, "payload": "of globex"}
    made = two.as_globex("POST", "/schedules", theirs, headers=KEY)
    assert (made.status, made.body["payload"]) == (201, "of globex")
    assert made.body["id"] != two.made["id"]
    again = two.as_acme("POST", "/schedules", DEFINITION, headers=KEY)
    assert again.body["id"] == two.made["id"]
    assert two.belongings() == before


def test_keys_quotas_usage_and_forecast_are_each_tenants_own(two: Two) -> None:
    before = two.belongings()
    acmes = two.as_acme("GET", "/webhook-keys").body["keys"]
    rotated = two.as_globex("POST", "/webhook-keys/rotate", {"generation": 1})
    assert rotated.status == 200
    assert not {key["key"] for key in rotated.body["keys"]} & {key["key"] for key in acmes}
    assert two.as_globex("GET", "/usage").body["used"]["schedules"] == 0
    assert two.as_globex("GET", "").body["usage"] == {"schedules": 0}
    assert two.as_globex("GET", "/forecast").body["fires"] == 0
    assert two.as_globex("GET", "/schedules").body["schedules"] == []
    assert two.belongings() == before


def test_anothers_targets_and_roles_cannot_be_named(two: Two) -> None:
    queue = "arn:aws:sqs:us-east-1:123456789012:puntual-target-acme"
    two.api.world.tenants.register(a_tenant(targets=(queue,)))
    target = {"type": "sqs", "queue_arn": queue}
    anothers = two.as_globex("POST", "/targets/try", {"target": target})
    nobodys = two.as_globex(
        "POST", "/targets/try", {"target": {**target, "queue_arn": f"{queue}x"}}
    )
    assert anothers.status == nobodys.status == 400
    assert anothers.text == nobodys.text.replace(f"{queue}x", queue)


@pytest.mark.parametrize("schedule", ["acme#job-0", "acme%23job-0", "..%2Facme%2Fjob-0", "job-0#1"])
def test_no_id_reaches_into_anothers_keys(two: Two, schedule: str) -> None:
    before = two.belongings()
    for method in ("GET", "DELETE"):
        answer = two.as_globex(method, f"/schedules/{schedule}")
        assert answer.status in {400, 404}
        assert "of acme" not in answer.text
    made = two.as_globex("POST", "/schedules", {**DEFINITION, "id": schedule})
    assert made.status == 400
    assert two.belongings() == before


def test_no_answer_of_a_listing_of_tenants_is_a_tenants(two: Two) -> None:
    """The listing is the administrators': below a tenant's path there is none."""
    for path in ("/v1/tenants", "/v1/tenants/globex/tenants"):
        answer = two.api.call("GET", path, caller=THEIRS)
        assert answer.status == 404
        assert "acme" not in json.dumps(answer.body)
