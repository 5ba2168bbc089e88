"""What each function may do, and how it is started."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from infra.environments import ENVIRONMENTS
from tests.infra.conftest import FUNCTIONS, Synthesise, Templates

TABLES = {
    "SCHEDULES_TABLE",
    "VERSIONS_TABLE",
    "AGENDA_TABLE",
    "OUTBOX_TABLE",
    "OCCURRENCES_TABLE",
    "SHARDS_TABLE",
    "TENANTS_TABLE",
    "ZONE_RELEASES_TABLE",
    "IDEMPOTENCY_TABLE",
}
LANE_URLS = {"STRICT_QUEUE_URL", "FLEXIBLE_QUEUE_URL", "RECOVERY_QUEUE_URL"}
SETTINGS = {
    *TABLES,
    *LANE_URLS,
    "ENVIRONMENT",
    "WEBHOOK_ROOT_SECRET_ARN",
    "SHARD_COUNT",
    "HORIZON_SECONDS",
    "STRICT_EXECUTORS",
    "FLEXIBLE_EXECUTORS",
    "RECOVERY_EXECUTORS",
    "RETENTION_DAYS",
    "DELIVERY_TIMEOUT_MAX_SECONDS",
    "ALLOW_PRIVATE_TARGETS",
    "PYTHONTZPATH",
    "POWERTOOLS_LOG_LEVEL",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_SERVICE_NAME",
}

CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
}
# What delivers to a target, and what tries one.
TARGETS: Mapping[str, set[str]] = {
    ":sqs:*:*:puntual-target-*": {"sqs:GetQueueUrl", "sqs:SendMessage"},
    ":sns:*:*:puntual-target-*": {"sns:Publish"},
    ":events:*:*:event-bus/puntual-target-*": {"events:PutEvents"},
    ":lambda:*:*:function:puntual-target-*": {"lambda:InvokeFunction"},
    ":states:*:*:stateMachine:puntual-target-*": {"states:StartExecution"},
    ":iam::*:role/puntual-target-*": {"sts:AssumeRole", "sts:TagSession"},
    "WebhookRootSecret": {"secretsmanager:GetSecretValue"},
}
# Function → resource → actions, without writing its own log, which all may. They are what the
# adapters of its use cases call: a transaction asks for its parts' actions (put, update, check), a
# batch for its own alone, whatever is in it. Not called by us: what event sources read with, and
# the item that Powertools' idempotency reads where a refused put did not bring it.
PERMISSIONS: Mapping[str, Mapping[str, set[str]]] = {
    "ticker": {
        "Shards": {"dynamodb:Scan"},
        "ZoneReleases": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "PlannerFunction": {"lambda:InvokeFunction"},
    },
    "planner": {
        "Schedules": {"dynamodb:BatchGetItem", "dynamodb:UpdateItem"},
        "ScheduleVersions": {"dynamodb:GetItem"},
        "Shards": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "Agenda": {"dynamodb:Query", "dynamodb:BatchWriteItem", "dynamodb:PutItem"},
        "Outbox": {"dynamodb:Query", "dynamodb:PutItem", "dynamodb:DeleteItem"},
        "Occurrences": {"dynamodb:PutItem"},
        "Tenants": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "Strict": {"sqs:SendMessage"},
        "Flexible": {"sqs:SendMessage"},
        "Recovery": {"sqs:SendMessage"},
    },
    "relay": {
        "Outbox": {"dynamodb:DeleteItem"},
        "Outbox stream": {
            "dynamodb:DescribeStream",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
        },
        "*": {"dynamodb:ListStreams"},
        "Strict": {"sqs:SendMessage"},
        "Flexible": {"sqs:SendMessage"},
        "Recovery": {"sqs:SendMessage"},
        "Failures": {"sqs:SendMessage"},
    },
    "replanner": {
        "ZoneReleases": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "Schedules": {
            "dynamodb:Scan",
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "ScheduleVersions": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "Agenda": {"dynamodb:BatchWriteItem", "dynamodb:PutItem"},
        "Occurrences": {"dynamodb:PutItem"},
        "Shards": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "Outbox": {"dynamodb:PutItem"},
    },
    "executor": {
        "Occurrences": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:Query",
        },
        "Schedules": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "ScheduleVersions": {"dynamodb:GetItem"},
        "Strict": {"sqs:SendMessage", *CONSUME},
        "Flexible": {"sqs:SendMessage", *CONSUME},
        "Recovery": {"sqs:SendMessage", *CONSUME},
        "Tenants": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        **TARGETS,
    },
    "callbacks": {
        "Occurrences": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "ScheduleVersions": {"dynamodb:GetItem"},
        "Strict": {"sqs:SendMessage"},
        "Flexible": {"sqs:SendMessage"},
        "Recovery": {"sqs:SendMessage"},
        "Tenants": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "WebhookRootSecret": {"secretsmanager:GetSecretValue"},
    },
    "undeliverable": {
        "Occurrences": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:ConditionCheckItem",
        },
        "Schedules": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "ScheduleVersions": {"dynamodb:GetItem"},
        "Strict": {"sqs:SendMessage"},
        "Flexible": {"sqs:SendMessage"},
        "Recovery": {"sqs:SendMessage"},
        "StrictDlq": CONSUME,
        "FlexibleDlq": CONSUME,
        "RecoveryDlq": CONSUME,
    },
    "api": {
        "Schedules": {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "Schedules/index/by_tenant": {"dynamodb:Query"},
        "Schedules/index/by_spread": {"dynamodb:Query"},
        "Tenants/index/by_item": {"dynamodb:Query"},
        "ScheduleVersions": {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        },
        "Agenda": {"dynamodb:BatchWriteItem", "dynamodb:PutItem"},
        "Tenants": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "Occurrences": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:PutItem"},
        "Occurrences/index/dead_letters": {"dynamodb:Query"},
        "Shards": {"dynamodb:GetItem", "dynamodb:PutItem"},
        "Outbox": {"dynamodb:PutItem"},
        "Idempotency": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
        },
        **TARGETS,
    },
}


def functions(template: Template) -> Mapping[str, Mapping[str, Any]]:
    """By short name."""
    found = template.find_resources("AWS::Lambda::Function")
    return {
        resource["Properties"]["FunctionName"].split("-")[-1]: resource["Properties"]
        for resource in found.values()
    }


def statements_of(template: Template, function: str) -> list[Mapping[str, Any]]:
    role_id = functions(template)[function]["Role"]["Fn::GetAtt"][0]
    role = template.find_resources("AWS::IAM::Role")[role_id]["Properties"]
    assert "ManagedPolicyArns" not in role
    return [
        statement
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def short_name(resource: Any) -> str:
    """The readable part of a resource in a template: a reference, an import, or plain text."""
    match resource:
        case str():
            return resource
        case {"Fn::GetAtt": [logical_id, _]}:
            return construct_name(logical_id)
        case {"Fn::ImportValue": exported}:
            attribute_of = re.split(r"ExportsOutput(?:FnGetAtt|Ref)", exported)[1]
            name = construct_name(re.split(r"(?:Arn|StreamArn)?[0-9A-F]{8}$", attribute_of)[0])
            return f"{name} stream" if "StreamArn" in attribute_of else name
        case {"Fn::Join": [_, parts]}:
            return "".join(short_name(part) for part in parts if part != "arn:")
        case {"Ref": "AWS::Partition"}:
            return ""
        case _:
            raise AssertionError(resource)


def construct_name(logical_id: str) -> str:
    """TablesScheduleVersions0123ABCD → ScheduleVersions."""
    without_hash = re.sub(r"[0-9A-F]{8}$", "", logical_id)
    return without_hash.removeprefix("Tables").removeprefix("Lanes").removeprefix("RelayRelay")


def test_whoever_computes_for_seconds_has_a_whole_processor(prod: Templates) -> None:
    """Lambda gives one for 1,769 MB: planners have a minute to keep, forecasts five seconds."""
    for name in ("planner", "api"):
        assert functions(prod.compute)[name]["MemorySize"] >= 1769


def test_there_is_one_role_for_each_function(prod: Templates) -> None:
    roles = [properties["Role"]["Fn::GetAtt"][0] for properties in functions(prod.compute).values()]
    assert len(set(roles)) == len(roles) == len(FUNCTIONS)
    # Whatever CDK's helpers would grant on top arrives as policies of its own.
    prod.compute.resource_count_is("AWS::IAM::Policy", 0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_needs_and_nothing_else(prod: Templates, function: str) -> None:
    allowed: dict[str, set[str]] = {}
    for statement in statements_of(prod.compute, function):
        for resource in as_list(statement["Resource"]):
            name = short_name(resource)
            allowed.setdefault(name, set()).update(as_list(statement["Action"]))
    logs = {name for name, actions in allowed.items() if "logs:PutLogEvents" in actions}
    assert [allowed.pop(name) for name in logs] == [{"logs:CreateLogStream", "logs:PutLogEvents"}]
    assert allowed == PERMISSIONS[function]


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_no_action_is_a_wildcard(synthesise: Synthesise, name: str) -> None:
    for function in FUNCTIONS:
        for statement in statements_of(synthesise(name).compute, function):
            assert statement["Effect"] == "Allow"
            assert not [action for action in as_list(statement["Action"]) if "*" in action]


def test_the_planner_is_not_called_late_nor_again(prod: Templates) -> None:
    qualifiers = prod.compute.find_resources("AWS::Lambda::EventInvokeConfig").values()
    configured = {
        construct_name(config["Properties"]["FunctionName"]["Ref"]): config["Properties"]
        for config in qualifiers
    }
    planner = configured["PlannerFunction"]
    assert planner["MaximumEventAgeInSeconds"] == 60
    assert planner["MaximumRetryAttempts"] == 0


def test_the_planner_has_ten_minutes_everywhere(synthesise: Synthesise) -> None:
    for name in ENVIRONMENTS:
        assert functions(synthesise(name).compute)["planner"]["Timeout"] == 600


def test_the_ticker_runs_every_minute(prod: Templates) -> None:
    prod.compute.has_resource_properties(
        "AWS::Events::Rule", {"ScheduleExpression": "rate(1 minute)", "State": "ENABLED"}
    )


def test_the_relay_follows_the_outbox_from_the_start_without_ever_getting_stuck(
    prod: Templates,
) -> None:
    prod.compute.has_resource_properties(
        "AWS::Lambda::EventSourceMapping",
        {
            "StartingPosition": "TRIM_HORIZON",
            "BatchSize": 5,
            "BisectBatchOnFunctionError": True,
            "MaximumRetryAttempts": 5,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "ParallelizationFactor": 10,
            "FilterCriteria": {"Filters": [{"Pattern": '{"eventName":["INSERT"]}'}]},
        },
    )


def queue_sources(template: Template) -> list[Mapping[str, Any]]:
    found = template.find_resources("AWS::Lambda::EventSourceMapping").values()
    return [source["Properties"] for source in found if "ScalingConfig" in source["Properties"]]


def test_every_queue_source_reports_single_failures_and_has_its_own_limit(prod: Templates) -> None:
    sources = queue_sources(prod.compute)
    assert len(sources) == 6
    for source in sources:
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert source["BatchSize"] == 10
        assert "MaximumBatchingWindowInSeconds" not in source
    limits = {
        short_name(source["EventSourceArn"]): source["ScalingConfig"]["MaximumConcurrency"]
        for source in sources
    }
    assert (limits["Strict"], limits["Flexible"], limits["Recovery"]) == (1000, 500, 100)


def test_the_lanes_and_their_dead_letter_queues_are_consumed_and_no_other_queue(
    prod: Templates,
) -> None:
    consumed = [short_name(source["EventSourceArn"]) for source in queue_sources(prod.compute)]
    assert sorted(consumed) == sorted(
        name for lane in ("Strict", "Flexible", "Recovery") for name in (lane, f"{lane}Dlq")
    )


def test_no_function_reserves_concurrency(prod: Templates) -> None:
    for properties in functions(prod.compute).values():
        assert "ReservedConcurrentExecutions" not in properties


def test_functions_that_park_messages_may_hop_for_ever(prod: Templates) -> None:
    hopping = {
        name
        for name, properties in functions(prod.compute).items()
        if properties.get("RecursiveLoop") == "Allow"
    }
    assert hopping == {"executor", "undeliverable"}


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_every_function_gets_all_settings_that_are_read_and_no_other(
    synthesise: Synthesise, name: str
) -> None:
    for function, properties in functions(synthesise(name).compute).items():
        settings = properties["Environment"]["Variables"]
        own = {"ticker": {"PLANNER_FUNCTION_NAME"}, "executor": {"CALLBACKS_URL"}}.get(
            function, set()
        )
        assert settings.keys() == SETTINGS | own
        assert settings["ENVIRONMENT"] == name
        assert settings["SHARD_COUNT"] == str(ENVIRONMENTS[name].shard_count)
        executors = ENVIRONMENTS[name].max_concurrency
        assert settings["STRICT_EXECUTORS"] == str(executors.strict)
        assert settings["FLEXIBLE_EXECUTORS"] == str(executors.flexible)
        assert settings["RECOVERY_EXECUTORS"] == str(executors.recovery)
        assert settings["ALLOW_PRIVATE_TARGETS"] == ("true" if name == "local" else "false")
        assert settings["PYTHONTZPATH"] == ""
        assert settings["POWERTOOLS_SERVICE_NAME"] == function
        assert settings["POWERTOOLS_METRICS_NAMESPACE"] == f"puntual-{name}"


def test_functions_run_on_arm_in_the_cloud(synthesise: Synthesise) -> None:
    for name in ("dev", "staging", "prod"):
        for properties in functions(synthesise(name).compute).values():
            assert properties["Architectures"] == ["arm64"]
            assert properties["Runtime"] == "python3.13"


def test_an_asset_holds_the_functions_own_folder_and_nothing_else(
    prod: Templates, assemblies: Path
) -> None:
    handler = functions(prod.compute)["relay"]["Handler"]
    assert handler == "functions.relay.handler.handler"
    contents = {
        tuple(sorted(str(file.relative_to(asset)) for file in asset.rglob("*.py")))
        for asset in (assemblies / "prod").glob("asset.*")
        if (asset / "functions").is_dir()
    }
    assert contents == {
        ("functions/__init__.py", f"functions/{name}/handler.py") for name in FUNCTIONS
    }
    assert not list((assemblies / "prod").rglob("unrelated.txt"))
