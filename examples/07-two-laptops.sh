#!/usr/bin/env bash
# 07: two laptops, one verdict. Each runs k6 alone, with a PREFIX of its own; a merge of their shards says
# whether every noop of all streams came. Here one machine plays both.
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
wait "$a" || true # the verdict says what is wrong
wait "$b" || true
bin/soak merge "$shards"
