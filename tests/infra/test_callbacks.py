"""The door that is open: three calls behind a token, throttled, and no token in any log."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Template

from infra.environments import ENVIRONMENTS
from tests.infra.conftest import Synthesise, Templates
from tests.infra.test_compute import functions


def only(template: Template, kind: str) -> Mapping[str, Any]:
    (found,) = template.find_resources(kind).values()
    properties: Mapping[str, Any] = found["Properties"]
    return properties


def test_three_calls_are_open_and_nothing_else(prod: Templates) -> None:
    routes = prod.compute.find_resources("AWS::ApiGatewayV2::Route").values()
    assert {route["Properties"]["RouteKey"] for route in routes} == {
        f"POST /v1/callbacks/{{token}}/{action}" for action in ("heartbeat", "complete", "fail")
    }
    assert {route["Properties"]["AuthorizationType"] for route in routes} == {"NONE"}
    integration = only(prod.compute, "AWS::ApiGatewayV2::Integration")
    assert integration["PayloadFormatVersion"] == "2.0"
    assert "CallbacksFunction" in integration["IntegrationUri"]["Fn::GetAtt"][0]
    assert not prod.api.find_resources("AWS::ApiGatewayV2::Api")


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_the_stage_is_throttled_and_stands_at_the_root(synthesise: Synthesise, name: str) -> None:
    stage = only(synthesise(name).compute, "AWS::ApiGatewayV2::Stage")
    environment = ENVIRONMENTS[name]
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": environment.callbacks_per_second,
        "ThrottlingBurstLimit": environment.callbacks_burst,
    }


def test_the_access_log_names_the_route_and_never_the_path(prod: Templates) -> None:
    logged = only(prod.compute, "AWS::ApiGatewayV2::Stage")["AccessLogSettings"]
    fields = json.loads(logged["Format"])
    assert fields["route"] == "$context.routeKey"
    assert "path" not in logged["Format"].lower()
    assert logged["DestinationArn"]


def test_the_executor_knows_the_address_by_a_reference_within_its_stack(prod: Templates) -> None:
    (api,) = prod.compute.find_resources("AWS::ApiGatewayV2::Api")
    url = functions(prod.compute)["executor"]["Environment"]["Variables"]["CALLBACKS_URL"]
    assert url == {"Fn::GetAtt": [api, "ApiEndpoint"]}
    assert prod.compute.find_outputs("CallbacksUrl")["CallbacksUrl"]["Value"] == url


def test_on_an_emulator_the_address_is_the_emulators(emulated: Template) -> None:
    (api,) = emulated.find_resources("AWS::ApiGatewayV2::Api")
    url = functions(emulated)["executor"]["Environment"]["Variables"]["CALLBACKS_URL"]
    assert url == {"Fn::Join": ["", ["http://127.0.0.1:4577/_aws/execute-api/", {"Ref": api}]]}


@pytest.fixture(scope="session")
def emulated(synthesise: Synthesise) -> Template:
    return synthesise("local", endpoint="http://127.0.0.1:4577").compute
