"""The door: nobody comes in unsigned, and every refusal is a problem document."""

import json
from typing import Any

import pytest

from functions.api.handler import METHODS_OF
from infra.environments import ENVIRONMENTS
from tests.infra.conftest import Synthesise, Templates

ADMIN_METHODS = {
    method
    for path, methods in METHODS_OF.items()
    if path.startswith("/v1/admin/")
    for method in methods
}


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_every_method_asks_for_a_signature(synthesise: Synthesise, name: str) -> None:
    methods = synthesise(name).api.find_resources("AWS::ApiGateway::Method")
    assert methods
    for method in methods.values():
        assert method["Properties"]["AuthorizationType"] == "AWS_IAM"


def gateway_responses(templates: Templates) -> dict[str, Any]:
    found = templates.api.find_resources("AWS::ApiGateway::GatewayResponse").values()
    return {response["Properties"]["ResponseType"]: response["Properties"] for response in found}


def test_what_the_gateway_refuses_is_a_problem_document(prod: Templates) -> None:
    responses = gateway_responses(prod)
    for response in responses.values():
        header = response["ResponseParameters"]["gatewayresponse.header.Content-Type"]
        assert header == "'application/problem+json'"
        body = response["ResponseTemplates"]["application/json"]
        # The gateway puts the message in with its quotes.
        problem = json.loads(body.replace("$context.error.messageString", '"why"'))
        assert problem["type"] == "about:blank"
        assert problem["title"]
        assert problem["detail"] == "why"
        assert str(problem.get("status", "")) == response.get("StatusCode", "")


def test_all_refusals_that_callers_meet_are_covered(prod: Templates) -> None:
    assert gateway_responses(prod).keys() >= {
        "ACCESS_DENIED",
        "DEFAULT_4XX",
        "DEFAULT_5XX",
        "EXPIRED_TOKEN",
        "INVALID_SIGNATURE",
        "MISSING_AUTHENTICATION_TOKEN",
        "REQUEST_TOO_LARGE",
        "RESOURCE_NOT_FOUND",
        "THROTTLED",
    }


def test_the_stage_is_throttled_and_keeps_an_access_log(prod: Templates) -> None:
    (stage,) = prod.api.find_resources("AWS::ApiGateway::Stage").values()
    properties = stage["Properties"]
    assert properties["AccessLogSetting"]["DestinationArn"]
    every_method = settings_of(prod)["/*", "*"]
    assert every_method["ThrottlingRateLimit"] == 2000
    assert every_method["ThrottlingBurstLimit"] == 4000


def settings_of(templates: Templates) -> dict[tuple[str, str], dict[str, Any]]:
    (stage,) = templates.api.find_resources("AWS::ApiGateway::Stage").values()
    settings = stage["Properties"]["MethodSettings"]
    return {(each["ResourcePath"], each["HttpMethod"]): each for each in settings}


def test_administrators_have_a_resource_and_a_throttle_of_their_own(prod: Templates) -> None:
    resources = prod.api.find_resources("AWS::ApiGateway::Resource")
    [admin] = [
        name for name, each in resources.items() if each["Properties"]["PathPart"] == "admin"
    ]
    [below] = [
        name
        for name, each in resources.items()
        if each["Properties"]["ParentId"] == {"Ref": admin}
        and each["Properties"]["PathPart"] == "{proxy+}"
    ]
    methods = prod.api.find_resources("AWS::ApiGateway::Method").values()
    taken = {
        each["Properties"]["HttpMethod"]
        for each in methods
        if each["Properties"]["ResourceId"] == {"Ref": below}
    }
    assert taken == ADMIN_METHODS
    for method in taken:
        throttle = settings_of(prod)["/~1v1~1admin~1{proxy+}", method]
        assert throttle["ThrottlingRateLimit"] == 20
        assert throttle["ThrottlingBurstLimit"] == 40
        assert throttle["DataTraceEnabled"] is False


def test_the_callers_payload_is_never_logged(prod: Templates) -> None:
    for settings in settings_of(prod).values():
        assert settings["DataTraceEnabled"] is False
