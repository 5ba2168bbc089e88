"""Who may call for a tenant: IAM roles and users, and how API Gateway names them."""

import re
from dataclasses import dataclass

from puntual.domain.errors import Rejected
from puntual.domain.tenant import TenantId

ARN_LENGTH_MAX = 700
"""An IAM path has at most 512 characters, a name 64."""

PRINCIPAL_ALLOWED = "the ARN of an IAM role or user, such as arn:aws:iam::123456789012:role/billing"

_NAME = r"[A-Za-z0-9+=,.@_-]{1,64}"
_PRINCIPAL = re.compile(
    rf"arn:(aws[a-z-]*):iam::(\d{{12}}):(role|user)/(?:[!-.0-~]+/)*({_NAME})", re.ASCII
)
_SESSION = re.compile(rf"arn:(aws[a-z-]*):sts::(\d{{12}}):assumed-role/({_NAME})/{_NAME}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A role or user of an account, without its path, since a session's ARN does not hold it.

    A name is unique among an account's roles, and among its users, whatever its path.
    """

    partition: str
    account: str
    kind: str
    name: str


class CallerNotRegistered(Rejected):
    """The tenant's registration lists principals, and the caller is none of them."""

    def __init__(self, tenant: TenantId, caller: str) -> None:
        super().__init__("caller", caller, "a principal that may call for this tenant")
        self.tenant, self.caller = tenant, caller


def principal_of(arn: str, *, field: str) -> Principal:
    """Read the ARN that a registration lists; raises `Rejected`."""
    match = _PRINCIPAL.fullmatch(arn) if len(arn) <= ARN_LENGTH_MAX else None
    if match is None:
        raise Rejected(field, arn, PRINCIPAL_ALLOWED)
    partition, account, kind, name = match.groups()
    return Principal(partition=partition, account=account, kind=kind, name=name)


def caller_of(arn: str) -> Principal | None:
    """Give who signed a request, by the `userArn` of its event: a user, or a session's role.

    None for everybody else, an account's root and a federated user among them.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-arns
    """
    session = _SESSION.fullmatch(arn)
    if session is not None:
        partition, account, name = session.groups()
        return Principal(partition=partition, account=account, kind="role", name=name)
    try:
        return principal_of(arn, field="caller")
    except Rejected:
        return None


def may_call(caller: str, principals: tuple[str, ...]) -> bool:
    """Tell whether a caller is among the principals of a registration; all are where it has none.

    An ARN that a registration lists and nobody can read admits nobody.
    """
    return not principals or caller_of(caller) in {caller_of(arn) for arn in principals} - {None}
