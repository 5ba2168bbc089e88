"""Tenants through the deployed API: registered by administrators, called by their principals."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import boto3
import pytest
from botocore.credentials import Credentials

from puntual.application.admit_caller import ADMISSION_AGE_MAX
from scripts.signed_api import Answer, SignedApi
from scripts.waiting import until
from tests.e2e.conftest import Stage
from tests.e2e.test_refusals import GOOD, expect_problem

KEY = {"Idempotency-Key": "order-7"}
PATH = "/teams/scheduling/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    arn: str
    api: SignedApi


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """Makes roles and users of the emulator's own IAM, and signs with what they hold."""

    outputs: dict[str, Any]

    def user(self) -> Caller:
        iam, name = self._client("iam"), f"u-{uuid.uuid4().hex[:8]}"
        arn = iam.create_user(UserName=name)["User"]["Arn"]
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return self._caller(arn, Credentials(key["AccessKeyId"], key["SecretAccessKey"]))

    def role(self) -> Caller:
        name = f"r-{uuid.uuid4().hex[:8]}"
        role = self._client("iam").create_role(
            RoleName=name, Path=PATH, AssumeRolePolicyDocument="{}"
        )["Role"]
        session = self._client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="ana")
        held = session["Credentials"]
        return self._caller(
            role["Arn"],
            Credentials(held["AccessKeyId"], held["SecretAccessKey"], held["SessionToken"]),
        )

    def _client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload] # either of two
            endpoint_url=self.outputs["endpoint"],
            region_name=self.outputs["region"],
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 the emulator takes any
        )

    def _caller(self, arn: str, credentials: Credentials) -> Caller:
        url, region = self.outputs["api_url"], self.outputs["region"]
        return Caller(arn=arn, api=SignedApi(url, region=region, credentials=credentials))


@pytest.fixture
def accounts(outputs: dict[str, Any]) -> Accounts:
    return Accounts(outputs=outputs)


def listed(api: SignedApi) -> Iterator[str]:
    token = ""
    while True:
        page = api.call("GET", f"v1/admin/tenants?limit=3{token}").expect(200).body
        yield from (each["tenant"] for each in page["tenants"])
        if page["next_page_token"] is None:
            return
        token = f"&page_token={page['next_page_token']}"


def test_a_tenant_is_registered_and_listed_on_the_admin_path_only(stage: Stage) -> None:
    admin, own = f"v1/admin/tenants/{stage.tenant}", f"v1/tenants/{stage.tenant}"
    quotas = {"schedules_max": 3, "running_max": 7, "weight": 9}
    registered = stage.api.call("PUT", admin, {"quotas": quotas}).expect(200).body
    assert registered["quotas"].items() >= quotas.items()
    for path in (admin, own):
        assert stage.api.call("GET", path).expect(200).body == registered
    assert stage.api.call("PUT", own, {}).status == 405
    refused = stage.api.call("PUT", admin, {"quotas": {"weight": 101}})
    expect_problem(refused.headers, refused.body, 400, "quotas.weight")
    names = until(lambda: list(listed(stage.api)), lambda names: stage.tenant in names, seconds=5)
    assert stage.tenant in names
    assert sorted(set(names)) == names


def test_only_registered_principals_call_for_a_tenant(stage: Stage, accounts: Accounts) -> None:
    role, user, foreign = accounts.role(), accounts.user(), accounts.user()
    tenant = f"{stage.tenant}-own"
    schedules = f"v1/tenants/{tenant}/schedules"
    stage.api.register(tenant, principals=[role.arn, user.arn])
    assert PATH in role.arn
    for own in (role, user):
        own.api.call("GET", schedules).expect(200)
    made = role.api.create(tenant, GOOD)
    for api in (foreign.api, stage.api):
        refused = api.call("GET", schedules)
        expect_problem(refused.headers, refused.body, 403, "caller")
        for method, path in (("DELETE", f"{schedules}/{made['id']}"), ("GET", f"{schedules}/none")):
            assert api.call(method, path).body == refused.body

    stage.api.register(tenant, principals=[role.arn, foreign.arn])
    foreign.api.call("GET", schedules).expect(200)
    seconds = ADMISSION_AGE_MAX.total_seconds() + 5
    out = until(
        lambda: user.api.call("GET", schedules),
        lambda answer: answer.status == 403,
        seconds=seconds,
    )
    assert out.status == 403
    assert role.api.schedule(tenant, made["id"])["state"] == "ACTIVE"


def test_a_rule_that_is_too_fast_is_refused_and_usage_is_read(stage: Stage) -> None:
    quotas = {"smallest_interval_seconds": 1800, "fires_per_minute_max": 60}
    stage.api.register(stage.tenant, quotas=quotas)
    path = f"v1/tenants/{stage.tenant}/schedules"
    refused = stage.api.call("POST", path, {**GOOD, "expression": "0,29 8 * * *"})
    expect_problem(refused.headers, refused.body, 400, "expression")
    stage.api.create(stage.tenant, {**GOOD, "expression": "0,30 8 * * *"})
    usage = stage.api.call("GET", f"v1/tenants/{stage.tenant}/usage").expect(200).body
    assert usage["quotas"].items() >= quotas.items()
    nothing = {"waiting": 0, "held": 0}
    assert usage["used"] == {
        "schedules": 1,
        "fires": nothing,
        "retries": nothing,
        "catch_ups": nothing,
        "targets": [],
    }


def test_nothing_of_one_tenant_is_read_or_changed_below_anothers_path(stage: Stage) -> None:
    other = replace(stage, tenant=f"{stage.tenant}-b")
    stage.api.register(other.tenant)
    made = stage.api.call(
        "POST", f"v1/tenants/{stage.tenant}/schedules", {**GOOD, "payload": "of a"}, headers=KEY
    ).body
    stage.api.create(stage.tenant, GOOD)
    before = stage.api.schedule(stage.tenant, made["id"])

    def crossed(method: str, rest: str = "", body: object = None) -> None:
        headers = {"If-Match": '"1"'}
        answers: list[Answer] = [
            stage.api.call(method, other.path(name, rest), body, headers=headers)
            for name in (made["id"], "never-made")
        ]
        assert [answer.status for answer in answers] == [404, 404], (method, rest)
        told = [str(answer.body).replace(made["id"], "never-made") for answer in answers]
        assert told[0] == told[1]

    crossed("GET")
    crossed("PUT", body=GOOD)
    crossed("PATCH", body={"payload": "of b"})
    crossed("POST", "/pause")
    crossed("POST", "/resume")
    crossed("DELETE")
    crossed("GET", "/preview")
    crossed("GET", "/occurrences")
    crossed("GET", f"/occurrences/{before['next_fires'][0]['utc']}")

    listing = f"v1/tenants/{stage.tenant}/schedules?limit=1"
    token = stage.api.call("GET", listing).expect(200).body["next_page_token"]
    theirs = f"v1/tenants/{other.tenant}/schedules"
    refused = stage.api.call("GET", f"{theirs}?limit=1&page_token={token}")
    expect_problem(refused.headers, refused.body, 400, "page_token")
    again = stage.api.call("POST", theirs, {**GOOD, "payload": "of b"}, headers=KEY).expect(201)
    assert (again.body["payload"], again.body["id"] == made["id"]) == ("of b", False)
    assert stage.api.schedule(stage.tenant, made["id"]) == before
