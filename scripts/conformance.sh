#!/usr/bin/env bash
# Replays recorded answers of real PyTorch, where they are at hand: FOLDER/conformance/*.jsonl. Each file must pass
# at least as many cases as tests/conformance.txt says, which only ever grows; a line that names a pipeline runs the
# programs with it on (`-` for none), and options of `check` may follow.
set -euo pipefail

data=${1:?usage: conformance.sh FOLDER}/conformance
flambeau=${FLAMBEAU:-target/debug/flambeau}
if [ ! -d "$data" ]; then
    echo "conformance: skipped, there is no $data"
    exit 0
fi
status=0
while read -r name least passes options; do
    case "$name" in '' | '#'*) continue ;; esac
    [ "$passes" = - ] && passes=
    log=$(mktemp)
    # shellcheck disable=SC2086  # options are words of their own
    "$flambeau" check "$data/$name.jsonl" ${passes:+--passes "$passes" --verify-each} $options >"$log" 2>&1 || true
    passed=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, .*/\1/p')
    echo "conformance: $name${passes:+ with $passes}${options:+ $options}: $(tail -n 1 "$log")"
    if [ "${passed:-0}" -lt "$least" ]; then
        echo "conformance: $name must pass at least $least cases; the failures:" >&2
        head -n 60 "$log" | cut -c 1-300 >&2
        status=1
    fi
    rm -f "$log"
done <tests/conformance.txt
exit $status
