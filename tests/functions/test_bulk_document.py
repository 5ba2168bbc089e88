"""Every example of docs/bulk.md does what it says."""

import json

from tests.functions.conftest import Api
from tests.functions.documented_examples import BULK, examples
from tests.functions.test_api_document import as_told


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(BULK.read_text(encoding="utf-8")))
    assert len(told) >= 6
    for example in told:
        answer = api.call(
            example.method,
            example.path,
            example.body,
            query=example.query,
            headers=example.headers,
        )
        assert answer.status == example.status, example.name
        if isinstance(example.answer, list):
            said: object = [json.loads(line) for line in answer.text.splitlines()]
        else:
            said = answer.body
        assert as_told(said, example.answer) == example.answer, example.name
