"""Every environment can be synthesised for any account and region, without asking a cloud."""

import json
from pathlib import Path

import pytest

from infra.environments import ENVIRONMENTS
from tests.infra.conftest import Synthesise


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_templates_name_no_account_and_no_region(
    synthesise: Synthesise, assemblies: Path, name: str
) -> None:
    synthesise(name)
    manifest = json.loads((assemblies / name / "manifest.json").read_text())
    stacks = [
        artifact
        for artifact in manifest["artifacts"].values()
        if artifact["type"] == "aws:cloudformation:stack"
    ]
    assert len(stacks) == 3
    assert {stack["environment"] for stack in stacks} == {"aws://unknown-account/unknown-region"}
    assert not manifest.get("missing")
