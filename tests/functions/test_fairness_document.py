"""The example of docs/fairness.md does what it says."""

from tests.functions.conftest import Api
from tests.functions.documented_examples import DOCUMENT, LEFT_OUT, examples


def test_the_documented_requests_get_the_documented_answers(api: Api) -> None:
    told = list(examples(DOCUMENT.with_name("fairness.md").read_text(encoding="utf-8")))
    assert told
    for example in told:
        answer = api.call(example.method, example.path, example.body)
        assert answer.status == example.status, example.name
        assert example.answer.pop(LEFT_OUT), "only a part is shown"
        assert {name: answer.body[name] for name in example.answer} == example.answer
        assert answer.body["quotas"]["weight"] == example.body["quotas"]["weight"]
