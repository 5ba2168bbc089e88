"""Alarms look at what the functions measure, and are heard."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from functions.ticker.handler import handler
from infra.environments import ENVIRONMENTS
from tests.functions.deployed import LambdaContext, deployed, recorded
from tests.infra.conftest import Synthesise, Templates
from tests.infra.test_compute import functions

ROOT = Path(__file__).parents[2]


def alarms(template: Template) -> Mapping[str, Mapping[str, Any]]:
    found = template.find_resources("AWS::CloudWatch::Alarm")
    return {
        resource["Properties"]["AlarmName"]: resource["Properties"] for resource in found.values()
    }


def measured_by_the_ticker(
    settings: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Give what a tick writes for CloudWatch in the environment that the template gives it."""
    with deployed(), pytest.MonkeyPatch.context() as patch:
        for name in ("POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"):
            patch.setenv(name, settings[name])
        handler(recorded("eventbridge_scheduled"), LambdaContext())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [document] = [line for line in lines if "_aws" in line]
    return dict(document)


@pytest.mark.parametrize("what", ["zone-rules-behind", "zone-rules-unknown"])
@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_the_alarms_on_zone_rules_look_at_what_the_ticker_measures(
    synthesise: Synthesise, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    template = synthesise(name).compute
    alarm = alarms(template)[f"puntual-{name}-{what}"]
    settings = functions(template)["ticker"]["Environment"]["Variables"]
    document = measured_by_the_ticker(settings, capsys)
    [directive] = document["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == alarm["Namespace"]
    assert [metric["Name"] for metric in directive["Metrics"]] == [alarm["MetricName"]]
    [dimensions] = directive["Dimensions"]
    assert {name: document[name] for name in dimensions} == {
        dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]
    }


def test_the_alarm_on_zone_rules_rings_at_one_and_is_ended_by_zero_alone(prod: Templates) -> None:
    alarm = alarms(prod.compute)["puntual-prod-zone-rules-behind"]
    assert (alarm["Threshold"], alarm["ComparisonOperator"], alarm["Statistic"]) == (
        1,
        "GreaterThanOrEqualToThreshold",
        "Maximum",
    )
    assert alarm["TreatMissingData"] == "ignore"


def test_fifteen_minutes_without_a_measure_ring(prod: Templates) -> None:
    alarm = alarms(prod.compute)["puntual-prod-zone-rules-unknown"]
    assert (alarm["Threshold"], alarm["ComparisonOperator"], alarm["Statistic"]) == (
        1,
        "LessThanThreshold",
        "SampleCount",
    )
    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 15 * 60
    assert alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]) == alarm["EvaluationPeriods"]


def test_every_alarm_is_heard_and_names_a_page_that_exists(prod: Templates) -> None:
    [topic] = prod.compute.find_resources("AWS::SNS::Topic")
    for alarm in alarms(prod.compute).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
        page = alarm["AlarmDescription"].split("(")[-1].rstrip(").")
        assert (ROOT / page).is_file(), page


def test_alarms_may_speak_on_their_encrypted_topic_and_nobody_without_tls(
    prod: Templates,
) -> None:
    [(topic_id, topic)] = prod.compute.find_resources("AWS::SNS::Topic").items()
    assert topic["Properties"]["TopicName"] == "puntual-prod-alarms"
    key_id = topic["Properties"]["KmsMasterKeyId"]["Fn::GetAtt"][0]
    key = prod.compute.find_resources("AWS::KMS::Key")[key_id]
    assert key["Properties"]["EnableKeyRotation"] is True
    assert spoken(key["Properties"]["KeyPolicy"]) == {"kms:Decrypt", "kms:GenerateDataKey*"}
    [policy] = prod.compute.find_resources("AWS::SNS::TopicPolicy").values()
    assert policy["Properties"]["Topics"] == [{"Ref": topic_id}]
    assert spoken(policy["Properties"]["PolicyDocument"]) == {"sns:Publish"}
    denied = [
        statement
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
    ]
    assert [statement["Condition"] for statement in denied] == [
        {"Bool": {"aws:SecureTransport": "false"}}
    ]


def spoken(policy: Mapping[str, Any]) -> set[str]:
    """Give what CloudWatch may do, on behalf of this account alone."""
    actions: set[str] = set()
    for statement in policy["Statement"]:
        if statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}:
            condition = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
            assert statement["Condition"] == condition
            allowed = statement["Action"]
            actions |= set(allowed if isinstance(allowed, list) else [allowed])
    return actions
