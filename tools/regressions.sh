#!/usr/bin/env bash
# Tests `soak compare` with two builds: it must report each run of a backend without compiler optimizations as slower, and
# no other run. docs/report.md#compare-runs describes this test.
#
#   tools/regressions.sh FOLDER      writes the output of soak compare to FOLDER; the runs stay in results/
#
# LEVELS, LEVEL_SECONDS and VOLUMES set the load.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?usage: tools/regressions.sh FOLDER}
mkdir -p "$folder"
export LEVELS=${LEVELS:-20,50,100,200} LEVEL_SECONDS=${LEVEL_SECONDS:-10} VOLUMES=${VOLUMES:-1000}

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
mkdir "$programs/optimized"
go build -o "$programs/optimized/" ./cmd/soak ./cmd/k6 ./backend
cp -r "$programs/optimized" "$programs/unoptimized"
go build -gcflags='all=-N -l' -o "$programs/unoptimized/backend" ./backend

stamp=regressions-$(date -u +%Y%m%d-%H%M%S)
name() { echo "results/$stamp-$1-$2"; }
for round in 1 2 3; do
  for kind in old same slower; do
    build=optimized
    [ "$kind" != slower ] || build=unoptimized
    "$programs/$build/soak" run throughput --testid "$(basename "$(name "$kind" "$round")")" --out results
  done
done

failed=0
# check EXIT-CODE NAME RUN… compares new runs with the old ones, writes the output to NAME.txt, and checks the exit code.
check() {
  local expected=$1 output=$2 code=0
  shift 2
  "$programs/optimized/soak" compare "$(name old 1)" "$(name old 2)" "$(name old 3)" -- "$@" >"$folder/$output.txt" || code=$?
  echo "$output: exit code $code, expected $expected: $(head -1 "$folder/$output.txt")" | tee -a "$folder/summary.txt"
  [ "$code" = "$expected" ] || failed=1
}
{ echo "commit $(git rev-parse HEAD), $(go version), LEVELS=$LEVELS LEVEL_SECONDS=$LEVEL_SECONDS VOLUMES=$VOLUMES"; uname -srm; nproc; } >"$folder/summary.txt"
for kind in slower same; do
  expected=0
  [ "$kind" != slower ] || expected=1
  for round in 1 2 3; do
    check "$expected" "$kind-$round" "$(name "$kind" "$round")"
  done
  check "$expected" "$kind-all" "$(name "$kind" 1)" "$(name "$kind" 2)" "$(name "$kind" 3)"
done
exit "$failed"
