#!/usr/bin/env bash
# Prints where NVIDIA's assembler is, for tests that assemble PTX: named by FLAMBEAU_PTXAS, on the path, or installed from
# PyPI into target/ptxas. Prints nothing, and says why on stderr, where it cannot be had; PTX is not assembled then.
set -euo pipefail
cd "$(dirname "$0")/.."

version=13.3.33
if [ -n "${FLAMBEAU_PTXAS:-}" ]; then
    echo "$FLAMBEAU_PTXAS"
    exit 0
fi
if command -v ptxas; then
    exit 0
fi
folder=$PWD/target/ptxas
if [ ! -x "$folder/ptxas" ]; then
    if ! { python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check \
        --no-deps --target "$folder/package" "nvidia-cuda-nvcc==$version"; } >&2; then
        echo "ptxas: skipped, nvidia-cuda-nvcc $version cannot be installed from PyPI (python3 with venv is needed)" >&2
        exit 0
    fi
    found=$(find "$folder/package" -name ptxas -type f | head -n 1)
    chmod +x "$found"
    ln -sf "$found" "$folder/ptxas"
fi
echo "$folder/ptxas"
