#!/usr/bin/env bash
# Replays recorded answers of real PyTorch, where they are at hand: FOLDER/conformance/*.jsonl, and folders of a case each
# (`faults/min*`). Each line of tests/conformance.txt says how many cases must pass at least, which only ever grows; one that
# names a pipeline runs the programs with it on (`-` for none), and options of `check` may follow; PLANS in these is an empty folder, one
# for all lines.
set -euo pipefail

data=${1:?usage: conformance.sh FOLDER}/conformance
flambeau=${FLAMBEAU:-target/suite/flambeau}
if [ ! -d "$data" ]; then
    echo "conformance: skipped, there is no $data"
    exit 0
fi
status=0
plans=$(mktemp -d)
trap 'rm -rf "$plans"' EXIT
kept=" "
while read -r name least passes options; do
    case "$name" in '' | '#'*) continue ;; esac
    [ "$passes" = - ] && passes=
    case "$kept" in *" $name "*) again=yes ;; *) again= ;; esac
    [[ "$options" == *PLANS* ]] && kept="$kept$name "
    options=${options/PLANS/$plans}
    log=$(mktemp)
    case "$name" in
    # shellcheck disable=SC2206  # the name is a pattern of folders
    *'*'*) files=("$data"/$name) ;;
    *) files=("$data/$name.jsonl") ;;
    esac
    # shellcheck disable=SC2086  # options are words of their own
    "$flambeau" check "${files[@]}" ${passes:+--passes "$passes" --verify-each} $options >"$log" 2>&1 || true
    passed=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, .*/\1/p')
    echo "conformance: $name${passes:+ with $passes}${options:+ $options}: $(tail -n 1 "$log")"
    if [ "${passed:-0}" -lt "$least" ]; then
        echo "conformance: $name must pass at least $least cases; the failures:" >&2
        head -n 60 "$log" | cut -c 1-300 >&2
        status=1
    fi
    # A guard that no case has would prove nothing.
    if [[ "$options" == *--fail-guard* ]] && ! grep -q "was made to miss in [1-9]" "$log"; then
        echo "conformance: $name $options: no guard was made to miss" >&2
        status=1
    fi
    # The second time plans and modules are taken that the first one kept.
    if [ -n "$again" ] && [[ "$options" == *--plan-cache* ]]; then
        for taken in "plans of [1-9][0-9]* forms were" "[1-9][0-9]* modules were"; do
            grep -q "$taken in the cache" "$log" && continue
            echo "conformance: $name $options: the cache gave nothing: $taken" >&2
            status=1
        done
    fi
    rm -f "$log"
done <tests/conformance.txt

# Unit tests that hold for the same cases: graphs print back, archives are read, types are never contradicted.
FLAMBEAU_CONFORMANCE=$(cd "$data" && pwd)
export FLAMBEAU_CONFORMANCE
log=$(mktemp)
cargo test --quiet --profile suite --workspace --tests shared_ -- --ignored >"$log" 2>&1 || status=1
passed=$(sed -nE 's/^test result: .* ([0-9]+) passed.*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
echo "conformance: unit tests of the same cases: $passed passed"
if [ "$passed" -lt 4 ]; then
    cat "$log" >&2
    status=1
fi
rm -f "$log"
exit $status
