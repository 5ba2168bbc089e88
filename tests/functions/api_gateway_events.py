"""Events as API Gateway's REST proxy gives them, recorded and then made to measure."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

CALLER = "arn:aws:sts::123456789012:assumed-role/scheduling/ana"

_RECORDED: dict[str, Any] = {
    "resource": "/v1/{proxy+}",
    "path": "",
    "httpMethod": "",
    "headers": {
        "Accept": "*/*",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/execute-api/"
        "aws4_request, SignedHeaders=host;x-amz-date, Signature=5d672d79",
        "Host": "abcde12345.execute-api.us-east-1.amazonaws.com",
        "User-Agent": "python-urllib3/2.5.0",
        "X-Amz-Date": "20261130T090000Z",
        "X-Amzn-Trace-Id": "Root=1-6745d9d0-4f2c1f2f5b3a0d2f7e6a1b2c",
        "X-Forwarded-For": "203.0.113.7",
        "X-Forwarded-Port": "443",
        "X-Forwarded-Proto": "https",
    },
    "multiValueHeaders": {},
    "queryStringParameters": None,
    "multiValueQueryStringParameters": None,
    "pathParameters": {"proxy": ""},
    "stageVariables": None,
    "requestContext": {
        "resourceId": "a1b2c3",
        "resourcePath": "/v1/{proxy+}",
        "httpMethod": "",
        "extendedRequestId": "CByTsFRdIAMEXAMPLE=",
        "requestTime": "30/Nov/2026:09:00:00 +0000",
        "path": "",
        "accountId": "123456789012",
        "protocol": "HTTP/1.1",
        "stage": "v",
        "domainPrefix": "abcde12345",
        "requestTimeEpoch": 1796029200000,
        "requestId": "0f6ce3c8-4a3c-4f0d-9f0a-6f0c2f7a9b11",
        "identity": {
            "cognitoIdentityPoolId": None,
            "accountId": "123456789012",
            "cognitoIdentityId": None,
            "caller": "AROAEXAMPLE:ana",
            "sourceIp": "203.0.113.7",
            "principalOrgId": None,
            "accessKey": "ASIAEXAMPLE",
            "cognitoAuthenticationType": None,
            "cognitoAuthenticationProvider": None,
            "userArn": CALLER,
            "userAgent": "python-urllib3/2.5.0",
            "user": "AROAEXAMPLE:ana",
        },
        "domainName": "abcde12345.execute-api.us-east-1.amazonaws.com",
        "deploymentId": "d4e5f6",
        "apiId": "abcde12345",
    },
    "body": None,
    "isBase64Encoded": False,
}


def an_event(
    method: str,
    path: str,
    body: object = None,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    caller: str | None = CALLER,
) -> dict[str, Any]:
    """Give the event of a request; a body of text goes as it is, anything else as JSON."""
    event = deepcopy(_RECORDED)
    event["httpMethod"] = event["requestContext"]["httpMethod"] = method
    event["path"], event["requestContext"]["path"] = path, f"/v{path}"
    event["pathParameters"]["proxy"] = path.removeprefix("/v1/")
    event["requestContext"]["identity"]["userArn"] = caller
    if query:
        event["queryStringParameters"] = dict(query)
        event["multiValueQueryStringParameters"] = {name: [text] for name, text in query.items()}
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
        event["headers"]["Content-Type"] = "application/json"
    event["headers"].update(headers or {})
    event["multiValueHeaders"] = {name: [text] for name, text in event["headers"].items()}
    return event
