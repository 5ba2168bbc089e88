"""What CONTRIBUTING asks of every file, checked rather than hoped for."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

import puntual.adapters
import tests.fakes
from puntual.application import ports

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "layers" / "core" / "python"
FUNCTION_LINES_MAX = 70
EMPTY_WORDS = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
RULE = re.compile(r"(?<![A-Za-z0-9])(P(?:10|[1-9])|E1[01]|E[1-9])(?![A-Za-z0-9])")
RULE_IN_A_NAME = re.compile(r"(?<![a-z0-9])(p(?:10|[1-9])|e1[01]|e[1-9])(?![a-z0-9])")

# In parts, so that this file does not break its own rule.
FORBIDDEN_TEXTS = [
    "/wo" + "rk/",
    "/ro" + "ot/",
    "pypi" + ".org",
    "registry" + ".npmjs",
    "files" + ".pythonhosted",
]


def ignored_names() -> list[str]:
    lines = (ROOT / ".gitignore").read_text().splitlines()
    return [".git", *(line.strip("/") for line in lines if line and not line.startswith("#"))]


def files(under: Path = ROOT, *, ignored: list[str] | None = None) -> Iterator[Path]:
    """Give the files that belong to the project."""
    ignored = ignored_names() if ignored is None else ignored
    for path in sorted(under.iterdir()):
        if any(fnmatch(path.name, name) for name in ignored):
            continue
        if path.is_dir():
            yield from files(path, ignored=ignored)
        elif path.is_file():
            yield path


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


ALL_FILES = list(files())
PYTHON_FILES = [path for path in ALL_FILES if path.suffix == ".py"]
PRODUCT_FILES = [path for path in PYTHON_FILES if not shown(path).startswith("tests/")]
TEST_FILES = [path for path in PYTHON_FILES if shown(path).startswith("tests/")]


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=shown(path))


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_the_rules_look_at_the_files_that_they_are_about() -> None:
    seen = {shown(path) for path in ALL_FILES}
    assert {"Makefile", "tests/test_house_rules.py", "functions/relay/handler.py"} <= seen
    assert not any(name.startswith((".venv/", "node_modules/", "build/")) for name in seen)
    assert len(PRODUCT_FILES) > 40


def test_no_function_is_longer_than_a_screen() -> None:
    too_long = [
        f"{shown(path)}:{function.lineno} {function.name}"
        for path in PRODUCT_FILES
        for function in functions_of(path)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert too_long == []


def test_no_module_or_class_hides_behind_an_empty_word() -> None:
    modules = [shown(path) for path in PYTHON_FILES if set(path.stem.split("_")) & EMPTY_WORDS]
    classes = [
        f"{shown(path)} {node.name}"
        for path in PYTHON_FILES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and {word.lower() for word in re.findall(r"[A-Z][a-z]+", node.name)} & EMPTY_WORDS
    ]
    assert (modules, classes) == ([], [])


def test_every_module_says_in_a_line_what_it_is() -> None:
    silent = [
        shown(path)
        for path in PRODUCT_FILES
        if path.read_text().strip() and not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


@pytest.mark.parametrize("text", FORBIDDEN_TEXTS)
def test_no_file_names_a_machine_or_a_registry(text: str) -> None:
    found = [shown(path) for path in ALL_FILES if text.encode() in path.read_bytes()]
    assert found == []


def rules_built() -> set[str]:
    """Give the rules of the design that the product's code says it keeps."""
    return {
        rule
        for path in PRODUCT_FILES
        if shown(path).startswith(("layers/", "functions/"))
        for rule in RULE.findall(path.read_text())
    }


def rules_tested() -> set[str]:
    """Give the rules that tests and simulation variants name, or speak of in a docstring."""
    tested: set[str] = set()
    for path in TEST_FILES:
        tree = tree_of(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                tested |= {rule.upper() for rule in RULE_IN_A_NAME.findall(node.name)}
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                tested |= set(RULE.findall(ast.get_docstring(node) or ""))
    return tested


def test_every_rule_that_is_built_is_tested_under_its_name() -> None:
    assert len(rules_built()) > 15
    assert "P10" in rules_built()
    assert rules_built() - rules_tested() == set()


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        yield importlib.import_module(found.name)


def classes_of(package: ModuleType) -> list[type]:
    return [
        value
        for module in modules_of(package)
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]


PORTS = [
    value
    for value in vars(ports).values()
    if inspect.isclass(value) and Protocol in value.__mro__ and value.__module__ == ports.__name__
]


def methods_of(port: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(port).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


def stands_for(candidate: type, port: type) -> bool:
    """Tell whether a class has every method of a port, with the same parameters."""
    return all(
        inspect.isfunction(method := getattr(candidate, name, None))
        and list(inspect.signature(method).parameters) == parameters
        for name, parameters in methods_of(port).items()
    )


def test_the_ports_are_found() -> None:
    assert {port.__name__ for port in PORTS} >= {"Clock", "Agenda", "Ledger", "Lanes", "Targets"}


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
@pytest.mark.parametrize("package", [puntual.adapters, tests.fakes], ids=["adapter", "fake"])
def test_every_port_has_a_fake_that_mirrors_its_adapter(port: type, package: ModuleType) -> None:
    assert any(stands_for(candidate, port) for candidate in classes_of(package))


def test_every_module_of_the_library_is_used_by_the_product() -> None:
    sources = {path: path.read_text() for path in PRODUCT_FILES}
    unused = []
    for path in PRODUCT_FILES:
        if not path.is_relative_to(LIBRARY) or path.stem == "__init__":
            continue
        parts = path.relative_to(LIBRARY).with_suffix("").parts
        dotted, package = ".".join(parts), ".".join(parts[:-1])
        used = re.compile(
            rf"from {re.escape(dotted)} import|import {re.escape(dotted)}\b"
            rf"|from {re.escape(package)} import [^\n]*\b{parts[-1]}\b"
        )
        if not any(used.search(text) for other, text in sources.items() if other != path):
            unused.append(dotted)
    assert unused == []
