#!/bin/sh
# Print the path of a Python 3.13 that works, or fetch one with uv ($1).
#
# Each candidate is run, not only looked for: a pyenv shim answers to `python3.13` on PATH and
# then fails when the version that is selected globally is another one.
set -eu

uv="$1"
wanted='import ssl, sys, venv; sys.exit(sys.version_info[:2] != (3, 13))'

works() {
    [ -n "$1" ] && "$1" -c "$wanted" >/dev/null 2>&1
}

for candidate in \
    "${PUNTUAL_PYTHON:-}" \
    "$(command -v python3.13 || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3.13 \
    "$HOME"/.pyenv/versions/3.13*/bin/python3.13 \
    "$("$uv" python find --no-project 3.13 2>/dev/null || true)"; do
    if works "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

echo "No Python 3.13 here: fetching one with uv (set PUNTUAL_PYTHON to name your own)." >&2
"$uv" python install 3.13 >&2
"$uv" python find --no-project --managed-python 3.13
