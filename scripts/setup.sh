#!/usr/bin/env bash
# Installs LLVM 22 and a C++ compiler from Debian's packages when they are missing; says what to do where it cannot.
set -euo pipefail

prefix=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}
# The wheel links LLVM statically, which needs zstd's header files; tests of flambeau.hpp compile C++.
if [ -x "$prefix/bin/llvm-config" ] && command -v c++ >/dev/null && [ -e /usr/include/zstd.h -o -z "$(command -v apt-get)" ]; then
    exit 0
fi
if ! command -v cargo >/dev/null; then
    echo "setup: cargo is missing; install a Rust toolchain (1.95 or later)" >&2
    exit 1
fi
packages="llvm-22-dev libpolly-22-dev libzstd-dev g++"
if ! command -v apt-get >/dev/null; then
    echo "setup: LLVM 22 is missing and this is not a Debian; install LLVM 22 with its headers and set LLVM_SYS_221_PREFIX," >&2
    echo "       or build without it: cargo build --release --no-default-features" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
        echo "setup: LLVM 22 is missing; run: sudo apt-get install --no-install-recommends $packages" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "setup: installing $packages" >&2
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
