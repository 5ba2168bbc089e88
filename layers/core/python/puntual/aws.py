"""What the AWS adapters share: which failures pass, batches done to their end, a row of two."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

from botocore.client import BaseClient
from botocore.exceptions import (
    ClientError,
    ConnectionError,  # noqa: A004 botocore's own name; both kinds of error mean a lost network
    HTTPClientError,
    ResponseStreamingError,
)
from pynamodb.attributes import JSONAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import PynamoDBException
from pynamodb.indexes import GlobalSecondaryIndex, IncludeProjection
from pynamodb.models import Model

from puntual.domain.errors import Unavailable
from puntual.domain.target import AwsTarget
from puntual.domain.tenant import TenantId

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesUnionTypeDef as ReadRequest
    from mypy_boto3_dynamodb.type_defs import PutItemInputTypeDef as PutItem
    from mypy_boto3_dynamodb.type_defs import ScanInputTypeDef as Scan
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as TransactWriteItem
    from mypy_boto3_dynamodb.type_defs import WriteRequestUnionTypeDef as WriteRequest
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef as MessageAttribute
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_sts import STSClient
    from mypy_boto3_sts.type_defs import CredentialsTypeDef as Credentials
else:  # the stubs are for the checker; they are no part of the layer
    from botocore.client import BaseClient as DynamoDBClient
    from botocore.client import BaseClient as EventBridgeClient
    from botocore.client import BaseClient as LambdaClient
    from botocore.client import BaseClient as SFNClient
    from botocore.client import BaseClient as SNSClient
    from botocore.client import BaseClient as SQSClient
    from botocore.client import BaseClient as STSClient
    from botocore.client import BaseClient as SecretsManagerClient

    Credentials = MessageAttribute = PutItem = ReadRequest = dict[str, Any]
    Scan = TransactWriteItem = Value = WriteRequest = dict[str, Any]

__all__ = [
    "Credentials",
    "DynamoDBClient",
    "EventBridgeClient",
    "LambdaClient",
    "MessageAttribute",
    "PutItem",
    "SFNClient",
    "SNSClient",
    "SQSClient",
    "STSClient",
    "Scan",
    "SecretsManagerClient",
    "TransactWriteItem",
    "WriteRequest",
]

type ClientOf = Callable[[str, AwsTarget, TenantId], BaseClient]
"""Gives the SDK's client of a service for a target, with the credentials that it asks for.

Raises what botocore does where there are none to be had.
"""

type Item = dict[str, Value]
"""A row as the low-level client gives and takes it."""

type ReadRequests = Mapping[str, ReadRequest]
type WriteRequests = Mapping[str, Sequence[WriteRequest]]
"""What a batch call asks of each table, and what it gives back as unprocessed."""

CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 5
TRIES_MAX = 3
"""Of the SDK's own, in its standard mode; DynamoDB answers in milliseconds or not at all."""

Sleep = Callable[[float], None]
"""Waits so many seconds; tests give one that does not."""

WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each repetition of what was not taken: some three seconds in all."""

CONDITION_FAILED = "ConditionalCheckFailedException"

TRANSIENT_CODES = frozenset(
    {
        "EC2ThrottledException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "KmsThrottled",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceException",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""Codes that AWS documents as worth a retry; any 5xx is one too, whatever its code."""

TRANSACTION_IN_PROGRESS = "TransactionInProgressException"
"""This very transaction is still being decided: an earlier try of the SDK's, or of ours."""

TRANSACTION_LOST = "ConditionalCheckFailed"
TRANSACTION_EXPECTED_CODES = frozenset(
    {"", TRANSACTION_LOST, "TransactionConflict", "ThrottlingError"}
    | {"ProvisionedThroughputExceeded"}
)
"""Why a part of a transaction may be refused without a bug of ours."""

SERVER_ERRORS_FROM = 500


def error_code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def is_transient(error: BaseException | None) -> bool:
    """Tell whether repeating later may help; anything else is a bug or a missing permission."""
    match error:
        case ClientError():
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            return error_code(error) in TRANSIENT_CODES or status >= SERVER_ERRORS_FROM
        case ConnectionError() | HTTPClientError() | ResponseStreamingError():
            return True
        case PynamoDBException():
            return is_transient(error.cause)
        case _:
            return False


@contextmanager
def unavailable_if_transient(what: str) -> Iterator[None]:
    """Turn throttles, timeouts and server errors into `Unavailable`; let all else pass."""
    try:
        yield
    except (
        ClientError,
        ConnectionError,
        HTTPClientError,
        ResponseStreamingError,
        PynamoDBException,
    ) as error:
        if is_transient(error):
            cause = error.cause if isinstance(error, PynamoDBException) else error
            raise Unavailable(f"{what}: {cause}") from error
        raise


def took(write: Callable[[], object]) -> bool:
    """Do a conditional write; False where its condition failed, which is an answer, no error."""
    return lost_to(write) is None


def lost_to(write: Callable[[], object]) -> Item | None:
    """Do a conditional write; None if it took, else the row in its way if it asked for that."""
    try:
        write()
    except ClientError as error:
        if error_code(error) != CONDITION_FAILED:
            raise
        return cast("Item", error.response.get("Item", {}))
    return None


def put_if_absent(client: DynamoDBClient, table: str, item: Item, *, key: str) -> None:
    """Put a row, or leave the one that is there; `key` names one of its key attributes."""
    took(
        lambda: client.put_item(
            TableName=table,
            Item=item,
            ConditionExpression="attribute_not_exists(#key)",
            ExpressionAttributeNames={"#key": key},
        )
    )


def until_nothing_is_left[R](rest: R, send: Callable[[R], R], *, what: str, sleep: Sleep) -> None:
    """Send, and send again what was left unprocessed, until all of it is done (P9).

    Raises `Unavailable` when some is still left after the last wait.
    """
    for wait in (*WAITS, None):
        with unavailable_if_transient(what):
            rest = send(rest)
        if not rest:
            return
        if wait is not None:
            sleep(wait)
    raise Unavailable(f"{what}: some was left unprocessed")


@cache
def bound[R](row: type[R], table: str) -> type[R]:
    """Give a PynamoDB model bound to a table, whose name is known only at run time."""
    meta = {
        "table_name": table,
        "connect_timeout_seconds": CONNECT_TIMEOUT_SECONDS,
        "read_timeout_seconds": READ_TIMEOUT_SECONDS,
        "max_retry_attempts": TRIES_MAX - 1,
    }
    namespace = {"Meta": type("Meta", (), meta), "__module__": row.__module__}
    metaclass: Callable[..., Any] = type(row)
    return cast("type[R]", metaclass(row.__name__, (row,), namespace))


REGISTRATION = "registration"


class ByItem(GlobalSecondaryIndex["RegistrationRow"]):  # type: ignore[no-untyped-call] # PynamoDB's own
    """The tenants' rows by what they hold, of which a listing asks for the registrations.

    It leaves out what schedules and budgets write, so that none of their writes is one of its own.
    """

    class Meta:
        index_name = "by_item"
        projection = IncludeProjection(["schedules_max", "quotas"])

    item = UnicodeAttribute(hash_key=True)
    tenant = UnicodeAttribute(range_key=True)


class RegistrationRow(Model):
    """What a tenant is registered with, and the count that transactions on schedules keep."""

    tenant = UnicodeAttribute(hash_key=True)
    item = UnicodeAttribute(range_key=True)
    schedules_max = NumberAttribute()
    quotas = UnicodeAttribute(default="{}")
    schedules = NumberAttribute(default=0)
    targets = JSONAttribute()
    roles = JSONAttribute()
    principals = JSONAttribute(default=list)
    key_generation = NumberAttribute(default=1)
    by_item: ClassVar[ByItem] = ByItem()


FORECAST_TURN = "forecast-turn"


class ForecastTurnRow(Model):
    """When a tenant last took its turn; apart from its count, which transactions contend for."""

    tenant = UnicodeAttribute(hash_key=True)
    item = UnicodeAttribute(range_key=True)
    taken_at = UnicodeAttribute()


def registration_key(tenant: TenantId) -> Item:
    return {"tenant": {"S": tenant}, "item": {"S": REGISTRATION}}
