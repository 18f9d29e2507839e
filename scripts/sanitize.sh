#!/bin/sh
# Runs unit tests under AddressSanitizer and under Miri: [PACKAGES="PACKAGE..."] scripts/sanitize.sh [FILTER...], of the packages
# that hold the filters' modules, or of all.
# AddressSanitizer takes the modules in which memory is shared, mapped, read by offsets or handed to vector code, and the
# ops and programs above them; Miri, which is slower by hundreds, the first three. A nightly toolchain is used where there is
# one; a stable one is asked for the unstable flag. What is missing is named, and is not a failure.
set -eu
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n "s/^host: //p")
case "$host" in
    x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu) ;;
    *) echo "SKIPPED: AddressSanitizer is not tried on $host"; exit 0 ;;
esac

if cargo +nightly --version >/dev/null 2>&1; then
    nightly=+nightly
else
    nightly=
    export RUSTC_BOOTSTRAP=1
fi

# Without LLVM, which is not compiled with AddressSanitizer.
chosen=--no-default-features
[ -z "${PACKAGES:-}" ] || chosen=$(printf -- ' --package %s' $PACKAGES)

asan() {
    # Memory that the pool of a process keeps for the next tensor is not a leak, and sizes that cannot be had are what some tests ask
    # for. Without debug information the build takes half the time; symbols remain.
    # Its frames are larger than those that limits of depth were measured with.
    RUST_MIN_STACK=268435456 RUSTFLAGS="-Zsanitizer=address" CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0 \
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1" \
        cargo $nightly test --quiet $chosen --lib --target "$host" --target-dir target/sanitize -- "$@"
}

if [ $# -gt 0 ]; then
    filters=$*
else
    filters="tensor:: ir:: value:: resources:: kernels:: dialects:: runtime:: frontend::archive"
fi
echo "AddressSanitizer: $filters"
# shellcheck disable=SC2086 # several filters
asan $filters

if [ -z "$nightly" ] || ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "SKIPPED: Miri is not installed (rustup toolchain install nightly --component miri,rust-src)"
    exit 0
fi
[ $# -gt 0 ] || filters="tensor:: ir:: value::"
echo "Miri: $filters"
# Tests read files and the clock. Properties draw fewer cases, as each step is interpreted.
# shellcheck disable=SC2086
MIRIFLAGS="-Zmiri-disable-isolation" PROPTEST_CASES=4 \
    cargo +nightly miri test --quiet --no-default-features --lib --target-dir target/miri -- $filters
