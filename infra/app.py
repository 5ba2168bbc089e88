"""Entry of cdk.json: the whole of Puntual for one environment.

The CDK CLI runs it with ``-c environment=NAME``. With names as arguments it synthesises each
into ``cdk.out/NAME`` in one go, which is what `make synth` does.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from infra.environments import ENVIRONMENTS, Environment
from infra.stacks.api_stack import ApiStack
from infra.stacks.compute_stack import ComputeStack
from infra.stacks.storage_stack import StorageStack

ROOT = Path(__file__).resolve().parent.parent


def main(names: Iterable[str]) -> None:
    chosen = tuple(names)
    if not chosen:
        app = cdk.App()
        add_stacks(app, environment_named(app.node.try_get_context("environment")))
        app.synth()
    for name in chosen:
        app = cdk.App(outdir=str(ROOT / "cdk.out" / name), context=project_context())
        add_stacks(app, environment_named(name))
        app.synth()


def add_stacks(
    app: cdk.App, environment: Environment, *, root: Path = ROOT, layer: Path | None = None
) -> tuple[StorageStack, ComputeStack, ApiStack]:
    """Add all stacks; functions are taken from `root`, the layer from its build unless given."""
    layer = layer or root / "build" / "layer" / environment.layer
    if not layer.is_dir():
        raise SystemExit(f"No layer in {layer}: run `make layer` first.")
    storage = StorageStack(app, f"{environment.prefix}-storage", environment=environment)
    compute = ComputeStack(
        app,
        f"{environment.prefix}-compute",
        environment=environment,
        storage=storage,
        root=root,
        layer=layer,
    )
    api = ApiStack(
        app, f"{environment.prefix}-api", environment=environment, handler=compute.api.function
    )
    cdk.Tags.of(app).add("application", "puntual")
    cdk.Tags.of(app).add("environment", environment.name)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))
    return storage, compute, api


def environment_named(name: str | None) -> Environment:
    if name is None or name not in ENVIRONMENTS:
        raise SystemExit(f"Unknown environment {name!r}: one of {', '.join(ENVIRONMENTS)}.")
    return ENVIRONMENTS[name]


def project_context() -> Mapping[str, Any]:
    """The feature flags that the CDK CLI would have read from cdk.json."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


if __name__ == "__main__":
    main(sys.argv[1:])
