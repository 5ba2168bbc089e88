"""Builds the Lambda layer without Docker: wheels for the wanted platform, then the library.

Usage: ``python -m scripts.build_layer arm64|host [--uv PATH]``; the layer lands in
``build/layer/<target>/python``.
"""

import argparse
import shutil
import subprocess
from pathlib import Path
from typing import Literal, get_args

type Target = Literal["arm64", "host"]

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ROOT / "build" / "layer"
LIBRARY = ROOT / "layers" / "core" / "python" / "puntual"
REQUIREMENTS = ROOT / "requirements" / "layer.txt"

# botocore carries the models of every AWS service, most of the layer's size. Kept are those the
# library calls, and the files botocore itself loads.
BOTOCORE_DATA_KEPT = frozenset(
    {
        "_retry.json",
        "dynamodb",
        "endpoints.json",
        "events",
        "lambda",
        "partitions.json",
        "sdk-default-configuration.json",
        "secretsmanager",
        "sns",
        "sqs",
        "stepfunctions",
        "sts",
    }
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=get_args(Target.__value__))
    parser.add_argument("--uv", default="uv")
    arguments = parser.parse_args()
    layer = LAYERS / arguments.target
    shutil.rmtree(layer, ignore_errors=True)
    install_wheels(arguments.uv, target=arguments.target, into=layer / "python")
    keep_only_called_services(layer / "python" / "botocore" / "data")
    copy_library(layer / "python" / LIBRARY.name)


def install_wheels(uv: str, *, target: Target, into: Path) -> None:
    # --link-mode copy: uv hard-links from its cache by default, and whoever rewrites a file of
    # the build would rewrite the cache of every other project with it.
    command = [uv, "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    command += ["--only-binary", ":all:", "--link-mode", "copy", "--target", str(into)]
    match target:
        case "arm64":
            command += ["--python-platform", "aarch64-manylinux_2_34", "--python-version", "3.13"]
        case "host":
            command += ["--python", str(ROOT / ".venv" / "bin" / "python")]
    subprocess.run([*command, "-r", str(REQUIREMENTS)], check=True)  # noqa: S603 - our own argv


def keep_only_called_services(data: Path) -> None:
    for entry in data.iterdir():
        if entry.name in BOTOCORE_DATA_KEPT:
            continue
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def copy_library(into: Path) -> None:
    shutil.copytree(LIBRARY, into, ignore=shutil.ignore_patterns("__pycache__"))


if __name__ == "__main__":
    main()
