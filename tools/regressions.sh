#!/usr/bin/env bash
# Three regressions in a row: does `soak compare` find each run of a build that was made slower on purpose (a backend without
# the compiler's optimizations), and none of a build that was not? docs/report.md#compare-runs says more.
#
#   tools/regressions.sh FOLDER      keeps what it said there; the runs stay in results/
#
# What else it takes of the environment: LEVELS, LEVEL_SECONDS, VOLUMES.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?say in which folder to keep what soak compare says}
mkdir -p "$folder"
export LEVELS=${LEVELS:-20,50,100,200} LEVEL_SECONDS=${LEVEL_SECONDS:-10} VOLUMES=${VOLUMES:-1000}

programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
mkdir "$programs/usual"
go build -o "$programs/usual/" ./cmd/soak ./cmd/k6 ./backend
cp -r "$programs/usual" "$programs/slower"
go build -gcflags='all=-N -l' -o "$programs/slower/backend" ./backend

stamp=regressions-$(date -u +%Y%m%d-%H%M%S)
name() { echo "results/$stamp-$1-$2"; }
for round in 1 2 3; do
  for kind in old same slower; do
    build=usual
    [ "$kind" != slower ] || build=slower
    "$programs/$build/soak" run throughput --testid "$(basename "$(name "$kind" "$round")")" --out results
  done
done

wrong=0
# says WANTED-EXIT-CODE NAME RUN… compares new runs with the old ones, and keeps the answer.
says() {
  local wanted=$1 as=$2 code=0
  shift 2
  "$programs/usual/soak" compare "$(name old 1)" "$(name old 2)" "$(name old 3)" -- "$@" >"$folder/$as.txt" || code=$?
  echo "$as: exit code $code, wanted $wanted: $(head -1 "$folder/$as.txt")" | tee -a "$folder/summary.txt"
  [ "$code" = "$wanted" ] || wrong=1
}
{ echo "commit $(git rev-parse HEAD), $(go version), LEVELS=$LEVELS LEVEL_SECONDS=$LEVEL_SECONDS VOLUMES=$VOLUMES"; uname -srm; nproc; } >"$folder/summary.txt"
for kind in slower same; do
  wanted=0
  [ "$kind" != slower ] || wanted=1
  for round in 1 2 3; do
    says "$wanted" "$kind-$round" "$(name "$kind" "$round")"
  done
  says "$wanted" "$kind-all" "$(name "$kind" 1)" "$(name "$kind" 2)" "$(name "$kind" 3)"
done
exit "$wrong"
