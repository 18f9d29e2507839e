#!/bin/sh
# Runs the unit tests of tensors, graphs, values and budgets under AddressSanitizer and under Miri: scripts/sanitize.sh [FILTER...].
# Both need a nightly toolchain; what is missing is told, and is no failure.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- tensor:: ir:: value:: resources::
host=$(rustc -vV | sed -n "s/^host: //p")

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "SKIPPED: AddressSanitizer and Miri need a nightly toolchain (rustup toolchain install nightly)"
    exit 0
fi

echo "AddressSanitizer: $*"
# Memory that the pool of a process keeps for the next tensor is no leak.
RUSTFLAGS="-Zsanitizer=address" ASAN_OPTIONS="detect_leaks=0" \
    cargo +nightly test --quiet --no-default-features --lib --target "$host" --target-dir target/sanitize -- "$@"

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "SKIPPED: Miri is not installed (rustup component add miri rust-src --toolchain nightly)"
    exit 0
fi
echo "Miri: $*"
# Tests read files and the clock. Properties draw fewer cases, as each step is interpreted.
MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=4 \
    cargo +nightly miri test --quiet --no-default-features --lib --target-dir target/miri -- "$@"
