"""Every example of docs/bulk.md does what it says."""

from tests.functions.conftest import Api
from tests.functions.documented_examples import BULK, answers_as_told, examples


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(BULK.read_text(encoding="utf-8")))
    assert len(told) >= 6
    for example in told:
        answers_as_told(api, example)
