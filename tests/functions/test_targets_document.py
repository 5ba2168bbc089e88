"""Every example of docs/targets.md and docs/tenants.md does what it says."""

import pytest

from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, examples
from tests.functions.test_api_document import as_told


@pytest.mark.parametrize("page", ["targets.md", "tenants.md"])
def test_the_documented_requests_get_the_documented_answers(api: Api, page: str) -> None:
    told = list(examples(DOCUMENT.with_name(page).read_text(encoding="utf-8")))
    assert len(told) == 3
    for example in told:
        answer = api.call(example.method, example.path, example.body)
        assert answer.status == example.status, answer.text
        assert as_told(answer.body, example.answer) == example.answer, example.name
