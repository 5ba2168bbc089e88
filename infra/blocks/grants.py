"""Permissions, spelled out: the actions a function calls, on the resource it calls them on.

CDK's own grants are wider than we want: a read grant carries Scan, a write grant every write.
"""

from collections.abc import Sequence

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sqs as sqs

from infra.blocks.tables import Tables


def on_table(table: dynamodb.Table, *actions: str) -> iam.PolicyStatement:
    return _allow("dynamodb", actions, [table.table_arn])


def on_index(table: dynamodb.Table, index: str, *actions: str) -> iam.PolicyStatement:
    return _allow("dynamodb", actions, [f"{table.table_arn}/index/{index}"])


def write_schedules(tables: Tables) -> tuple[iam.PolicyStatement, ...]:
    """Allow to write versions and their first cursors.

    A first fire that is due soon is planned by its writer, with the planner's code: that reads
    heads by batch, completes what has no fire left, and writes pages and spans.
    """
    return (
        on_table(tables.schedules, "GetItem", "BatchGetItem", "PutItem", "UpdateItem"),
        on_table(tables.versions, "GetItem", "PutItem", "UpdateItem"),
        # Cursors come in by transactions and batches, and go by batches alone.
        on_table(tables.agenda, "BatchWriteItem", "PutItem"),
        on_table(tables.occurrences, "PutItem"),
        on_table(tables.shards, "GetItem", "PutItem"),
        on_table(tables.outbox, "PutItem"),
    )


def draw_on_budgets(tables: Tables) -> iam.PolicyStatement:
    return on_table(tables.tenants, "GetItem", "UpdateItem")


def read_stream(table: dynamodb.Table) -> iam.PolicyStatement:
    assert table.table_stream_arn is not None
    actions = ("DescribeStream", "GetRecords", "GetShardIterator")
    return _allow("dynamodb", actions, [table.table_stream_arn])


def list_streams() -> iam.PolicyStatement:
    # An event source lists streams, and that action knows no resource.
    return _allow("dynamodb", ("ListStreams",), ["*"])


def send(queues: Sequence[sqs.Queue]) -> iam.PolicyStatement:
    return _allow("sqs", ("SendMessage",), [queue.queue_arn for queue in queues])


def consume(queues: Sequence[sqs.Queue]) -> iam.PolicyStatement:
    actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
    return _allow("sqs", actions, [queue.queue_arn for queue in queues])


def invoke(function: lambda_.Function) -> iam.PolicyStatement:
    return _allow("lambda", ("InvokeFunction",), [function.function_arn])


def read_secret(secret: secretsmanager.Secret) -> iam.PolicyStatement:
    return _allow("secretsmanager", ("GetSecretValue",), [secret.secret_arn])


def on_targets(service: str, resources: str, *actions: str) -> iam.PolicyStatement:
    """Allow actions on resources of any account, by their names alone."""
    return _allow(service, actions, [resources])


def write_logs(group: logs.LogGroup) -> iam.PolicyStatement:
    return _allow("logs", ("CreateLogStream", "PutLogEvents"), [group.log_group_arn])


def _allow(service: str, actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=[f"{service}:{action}" for action in actions], resources=list(resources)
    )
