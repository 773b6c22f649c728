#!/usr/bin/env bash
# 07: two laptops, one verdict. Each laptop runs k6 with its own PREFIX; the merge of their shards checks
# whether every noop arrived on every stream. Here one machine acts as both.
#
#   bin/backend --noop-interval 1s &
#   examples/07-two-laptops.sh
#
# With two laptops, each runs its own `laptop` line at the same time; then copy the shards into one folder.
set -euo pipefail
cd "$(dirname "$0")/.."

url=${BACKEND_URL:-http://localhost:8080}
shards=${1:-$(mktemp -d)} # an empty folder

laptop() { # NAME STREAMS
  bin/k6 run load-tests/sse/connectionTest.js --quiet --vus "$2" --iterations "$2" --duration 10m \
    --env BACKEND_URL="$url" --env NOOP_INTERVAL=1 --env SECONDS=9 --env PREFIX="laptop-$1-" --out soak="$shards"
}

laptop a 6 &
a=$!
laptop b 4 &
b=$!
wait "$a" || true # the verdict reports the faults
wait "$b" || true
bin/soak merge "$shards"
