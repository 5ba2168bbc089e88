"""Callers are told by the role or user behind what API Gateway names."""

import pytest

from puntual.domain.errors import Rejected
from puntual.domain.principal import (
    ARN_LENGTH_MAX,
    CallerNotRegistered,
    caller_of,
    may_call,
    principal_of,
)
from puntual.domain.tenant import TenantId

ROLE = "arn:aws:iam::123456789012:role/billing"
PATHED = "arn:aws:iam::123456789012:role/teams/eu/billing"
RESERVED = (
    "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/eu-west-1/"
    "AWSReservedSSO_Billing_0123456789abcdef"
)
USER = "arn:aws:iam::123456789012:user/ana"

LET_IN = [
    # The caller, as API Gateway names it, and the principal that is listed.
    ("arn:aws:sts::123456789012:assumed-role/billing/ana", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/billing/i-0abc@x.y=z,+", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/billing/ana", PATHED),
    (
        "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Billing_0123456789abcdef/ana",
        RESERVED,
    ),
    (USER, USER),
    ("arn:aws:iam::123456789012:user/people/ana", USER),
    (
        "arn:aws-cn:sts::123456789012:assumed-role/billing/a",
        "arn:aws-cn:iam::123456789012:role/billing",
    ),
]
TURNED_AWAY = [
    # Another account, kind, name, case or partition.
    ("arn:aws:sts::210987654321:assumed-role/billing/ana", ROLE),
    ("arn:aws:iam::123456789012:user/billing", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/ana/ana", USER),
    ("arn:aws:sts::123456789012:assumed-role/billing2/ana", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/teams/billing", PATHED),
    ("arn:aws:sts::123456789012:assumed-role/Billing/ana", ROLE),
    ("arn:aws-cn:sts::123456789012:assumed-role/billing/ana", ROLE),
    # No role and no user.
    ("arn:aws:iam::123456789012:root", ROLE),
    ("arn:aws:sts::123456789012:federated-user/billing", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/billing", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/billing/ana/x", ROLE),
    ("arn:aws:sts::123456789012:assumed-role/billing/ana\n", ROLE),
    ("unknown", ROLE),
    ("", ROLE),
    # What nobody can read admits nobody, not even who cannot be read either.
    ("unknown", "arn:aws:iam::123456789012:root"),
]


OTHER = "arn:aws:iam::999999999999:role/other"


@pytest.mark.parametrize(("caller", "listed"), LET_IN)
def test_a_caller_is_the_role_or_user_behind_its_session(caller: str, listed: str) -> None:
    assert may_call(caller, (listed,))
    assert may_call(caller, (OTHER, listed))
    assert not may_call(caller, (OTHER,))


@pytest.mark.parametrize(("caller", "listed"), TURNED_AWAY)
def test_nobody_else_is_let_in(caller: str, listed: str) -> None:
    assert not may_call(caller, (listed,))
    assert not may_call(caller, (OTHER, listed))


def test_where_no_principal_is_listed_all_may_call() -> None:
    assert may_call("unknown", ())


def test_a_role_and_a_user_of_one_name_are_two_principals() -> None:
    assert caller_of(USER) != caller_of("arn:aws:sts::123456789012:assumed-role/ana/x")
    assert caller_of("arn:aws:iam::123456789012:root") is None


@pytest.mark.parametrize(
    "arn",
    [
        "",
        "arn:aws:iam::123456789012:root",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:role/*",
        "arn:aws:iam::123456789012:role//billing/",
        "arn:aws:iam::*:role/billing",
        "arn:aws:iam::12345678901:role/billing",
        "arn:aws:iam::٣23456789012:role/billing",
        "arn:aws:iam::123456789012:group/billing",
        "arn:aws:sts::123456789012:assumed-role/billing/ana",
        f"{ROLE}\n",
        f"arn:aws:iam::123456789012:role/{'x' * 65}",
        f"arn:aws:iam::123456789012:role/{'p/' * ARN_LENGTH_MAX}x",
    ],
)
def test_only_roles_and_users_can_be_registered(arn: str) -> None:
    with pytest.raises(Rejected) as caught:
        principal_of(arn, field="principals.0")
    assert caught.value.field == "principals.0"
    assert "role or user" in caught.value.allowed


def test_a_refusal_names_nobody_but_the_caller() -> None:
    refusal = str(CallerNotRegistered(TenantId("acme"), USER))
    assert USER in refusal
    assert "acme" not in refusal
