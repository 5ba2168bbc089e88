"""The layer keeps what the functions call of the SDK, and no other service's description."""

import re
from pathlib import Path

import puntual.bootstrap
from puntual.adapters.aws_targets import WAYS
from scripts.build_layer import BOTOCORE_DATA_KEPT


def test_the_services_that_clients_are_made_of_are_in_the_layer_and_no_others() -> None:
    bootstrap = Path(puntual.bootstrap.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'boto3\.client\("(\w+)"', bootstrap))
    made = named | {way.client for way in WAYS.values()}
    services = {name for name in BOTOCORE_DATA_KEPT if not name.endswith(".json")}
    assert len(named) >= 5
    assert services == made
