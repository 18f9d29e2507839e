#!/bin/sh
# Runs one fuzzer for a counted number of executions: fuzz/run.sh TARGET COUNT [SEED].
# Needs a nightly toolchain; cargo-fuzz is not needed. Names are interned for good, so that a long run grows:
# each process makes 250,000 executions and hands its corpus to the next.
set -eu
cd "$(dirname "$0")"
target=$1 count=$2 seed=${3:-1}
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks"
host=$(rustc -vV | sed -n "s/^host: //p")
cargo +nightly build --release --bins --target "$host" # so that build scripts go without the flags
work=target/work/$target
mkdir -p "$work" "corpus/$target" "artifacts/$target"
dictionary=""
[ -f "$target.dict" ] && dictionary="-dict=$target.dict"
done=0
while [ "$done" -lt "$count" ]; do
    target/"$host"/release/"$target" -runs=250000 -seed="$seed" -rss_limit_mb=1024 -timeout=5 -max_len=4096 \
        -artifact_prefix="artifacts/$target/" -print_final_stats=1 $dictionary "$work" "corpus/$target" \
        2>"target/$target.log" || { tail -n 40 "target/$target.log"; exit 1; }
    done=$((done + 250000)) seed=$((seed + 1))
    echo "$target: $done executions, $(ls "$work" | wc -l) inputs kept"
done
