#!/usr/bin/env bash
# 07: two laptops, one verdict. Each runs k6 alone, with a PREFIX of its own; a merge of what they leave says
# whether every noop of all streams came. Here both are this machine.
#
#   bin/backend --noop-interval 1s &
#   examples/07-two-laptops.sh
#
# On two, each runs its line of `laptop` at the same time, and the shards are copied into one folder.
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
