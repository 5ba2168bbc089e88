"""Every example of docs/targets.md and docs/tenants.md does what it says."""

import pytest

from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, answers_as_told, examples


@pytest.mark.parametrize("page", ["targets.md", "tenants.md"])
def test_the_documented_requests_get_the_documented_answers(api: Api, page: str) -> None:
    told = list(examples(DOCUMENT.with_name(page).read_text(encoding="utf-8")))
    assert len(told) == 3
    for example in told:
        answers_as_told(api, example)
