"""The IAM policies of docs/tenants.md open what they are said to open, and nothing else."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest

from functions.api.handler import METHODS_OF
from tests.functions.documented_examples import DOCUMENT

TENANTS = DOCUMENT.with_name("tenants.md")
API = "arn:aws:execute-api:us-east-1:123456789012:abcde12345/prod"

POLICIES = [
    json.loads(text)["Statement"]
    for text in re.findall(r"```json\n(.*?)```", TENANTS.read_text(encoding="utf-8"), re.DOTALL)
]
ADMIN, ACME = POLICIES

HOSTILE_IDS = ("acme-test", "globex", "v1", "tenants", "admin", "acme.", "xacme")
"""Ids of others, and those that try to look like a part of acme's own path."""


def resources_of(statement: Any) -> list[str]:
    named = statement["Resource"]
    return [named] if isinstance(named, str) else named


def allows(policy: Any, method: str, path: str) -> bool:
    """Judge as IAM does: `*` matches slashes too, and a denial wins."""
    effects = {
        statement["Effect"]
        for statement in policy
        for resource in resources_of(statement)
        if fnmatchcase(f"{API}/{method}{path}", resource)
    }
    return effects == {"Allow"}


def calls(tenant: str, *ids: str) -> Iterator[tuple[str, str]]:
    for path, methods in METHODS_OF.items():
        for method, schedule, occurrence in product(methods, ids, ids):
            named = path.replace("<tenant>", tenant).replace("<schedule>", schedule)
            yield method, named.replace("<occurrence>", occurrence)


def test_administrators_reach_every_registration_and_nothing_of_a_tenants() -> None:
    for method, path in calls("acme", "invoices"):
        assert allows(ADMIN, method, path) == path.startswith("/v1/admin/"), path


def test_a_tenant_reaches_all_of_its_own_but_the_keys_and_no_registration() -> None:
    for method, path in calls("acme", "invoices"):
        is_own = path == "/v1/tenants/acme" or path.startswith("/v1/tenants/acme/")
        assert allows(ACME, method, path) == (is_own and "/webhook-keys" not in path), path


@pytest.mark.parametrize("tenant", HOSTILE_IDS)
def test_a_tenant_reaches_no_other_whatever_ids_there_are(tenant: str) -> None:
    for method, path in calls(tenant, "acme", *HOSTILE_IDS):
        assert not allows(ACME, method, path), path
