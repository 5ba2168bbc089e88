"""Each environment is synthesised once per session; jsii and cdk-nag make it the slow part."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from infra.app import add_stacks, environment_named, project_context

FUNCTIONS = (
    "api",
    "callbacks",
    "executor",
    "planner",
    "relay",
    "replanner",
    "ticker",
    "undeliverable",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    storage: Template
    compute: Template
    api: Template


class Synthesise(Protocol):
    def __call__(self, name: str, *, endpoint: str | None = None) -> Templates:
        """Synthesise an environment, for an emulator at `endpoint` or for the cloud."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One worker does them all, or each worker would synthesise everything anew.
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("infra"))


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Just enough of the repository to synthesise: templates do not depend on the code."""
    root = tmp_path_factory.mktemp("repository")
    for name in FUNCTIONS:
        folder = root / "functions" / name
        folder.mkdir(parents=True)
        (folder / "handler.py").touch()
    (root / "functions" / "__init__.py").touch()
    (root / "unrelated.txt").touch()
    for platform in ("host", "arm64"):
        (root / "build" / "layer" / platform / "python").mkdir(parents=True)
    return root


@pytest.fixture(scope="session")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cdk.out")


@pytest.fixture(scope="session")
def synthesise(repository: Path, assemblies: Path) -> Synthesise:
    done: dict[tuple[str, str | None], Templates] = {}

    def once(name: str, *, endpoint: str | None = None) -> Templates:
        if (name, endpoint) not in done:
            folder = assemblies / (name if endpoint is None else f"{name}-emulated")
            context = {**project_context(), **({} if endpoint is None else {"endpoint": endpoint})}
            app = cdk.App(outdir=str(folder), context=context)
            storage, compute, api = add_stacks(app, environment_named(name), root=repository)
            done[name, endpoint] = Templates(
                storage=Template.from_stack(storage),
                compute=Template.from_stack(compute),
                api=Template.from_stack(api),
            )
        return done[name, endpoint]

    return once


@pytest.fixture(scope="session")
def prod(synthesise: Synthesise) -> Templates:
    return synthesise("prod")


@pytest.fixture(scope="session")
def local(synthesise: Synthesise) -> Templates:
    return synthesise("local")
